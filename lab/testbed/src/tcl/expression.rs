//! Evaluates expressions: `$i < 2 * ($n - 1)`, during parsing; `live` is false in a branch that is not
//! taken.

use std::cmp::Ordering;

use super::interpreter::{Host, Interpreter, Outcome, Stop};
use super::number::{MEASURED, Number};
use super::parse::Parser;
use super::{Text, WordError, error_at};

/// Binary operators and their precedence; longer ones before their prefixes.
const OPERATORS: [(&str, u8); 16] = [
    ("||", 1),
    ("&&", 2),
    ("eq", 3),
    ("ne", 3),
    ("==", 4),
    ("!=", 4),
    ("<=", 5),
    (">=", 5),
    ("<", 5),
    (">", 5),
    ("+", 6),
    ("-", 6),
    ("**", 8),
    ("*", 7),
    ("/", 7),
    ("%", 7),
];

type Function = fn(f64) -> f64;

/// Functions of one number.
const FUNCTIONS: [(&str, Function); 13] = [
    ("abs", f64::abs),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("double", |x| x),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("int", f64::trunc),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("round", f64::round),
    ("sin", f64::sin),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
];

type PairedFunction = fn(f64, f64) -> f64;

/// Functions of two numbers.
const PAIRED: [(&str, PairedFunction); 3] =
    [("fmod", |x, y| x % y), ("hypot", f64::hypot), ("pow", f64::powf)];

/// The modulus of Tcl's random numbers.
const SEEDS: u64 = 2_147_483_647;

/// Returns the state that a seed means.
fn tcl_seed(seed: i64) -> u64 {
    let state = seed as u64 & SEEDS;
    if state == 0 || state == SEEDS { state ^ 123_459_876 } else { state }
}

struct Expression<'i, 't, H> {
    interpreter: &'i mut Interpreter<H>,
    parser: Parser<'t>,
}

impl<H: Host> Interpreter<H> {
    /// Returns the value of an expression.
    pub(super) fn expression(&mut self, text: Text<'_>) -> Outcome {
        let mut expression = Expression { interpreter: self, parser: Parser::new(text) };
        let value = expression.choice(true)?;
        match expression.parser.peek() {
            None => Ok(value),
            Some(c) => wrong(expression.parser.place(), format!("{c:?} is not supported in an expression")),
        }
    }

    /// Returns whether a condition holds.
    pub(super) fn condition(&mut self, text: Text<'_>) -> Result<bool, Stop> {
        let at = text.place(0);
        let value = self.expression(text)?;
        Ok(truth(&value, at)?)
    }
}

impl<H: Host> Expression<'_, '_, H> {
    /// `a ? b : c`, or what binds tighter.
    fn choice(&mut self, live: bool) -> Outcome {
        let at = self.parser.place();
        let condition = self.binary(1, live)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let first = live && truth(&condition, at)?;
        let at = self.parser.place();
        let then = self.deeper(|inner| inner.choice(first))?;
        if !self.eat(":") {
            return wrong(at, "a ? has no : behind it; write condition ? this : that");
        }
        let otherwise = self.deeper(|inner| inner.choice(live && !first))?;
        Ok(if first { then } else { otherwise })
    }

    fn binary(&mut self, weakest: u8, live: bool) -> Outcome {
        let mut left = self.unary(live)?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= weakest) {
            let at = self.parser.place();
            self.parser.eat(operator);
            let needed = match operator {
                "||" => live && !truth(&left, at)?,
                "&&" => live && truth(&left, at)?,
                _ => live,
            };
            // Powers are grouped from the right.
            let next = if operator == "**" { strength } else { strength + 1 };
            let right = self.deeper(|inner| inner.binary(next, needed))?;
            left = match operator {
                _ if !live => left,
                "||" => number(!needed || truth(&right, at)?),
                "&&" => number(needed && truth(&right, at)?),
                _ => apply(operator, &left, &right, at)?,
            };
        }
        Ok(left)
    }

    fn operator(&mut self) -> Option<(&'static str, u8)> {
        self.skip_blanks();
        let rest = self.parser.rest();
        OPERATORS.into_iter().find(|(operator, _)| rest.starts_with(operator))
    }

    fn unary(&mut self, live: bool) -> Outcome {
        self.skip_blanks();
        let at = self.parser.place();
        let sign = ["-", "+", "!"].into_iter().find(|sign| self.parser.eat(sign));
        let Some(sign) = sign else { return self.operand(live) };
        let value = self.deeper(|inner| inner.unary(live))?;
        Ok(match sign {
            _ if !live => value,
            "!" => number(!truth(&value, at)?),
            "-" => apply("-", "0", &value, at)?,
            _ => apply("+", "0", &value, at)?,
        })
    }

    fn operand(&mut self, live: bool) -> Outcome {
        let at = self.parser.place();
        match self.parser.peek() {
            Some('$' | '[') => match self.parser.substitution()? {
                Some(part) if live => self.interpreter.value(&part),
                Some(_) => Ok("0".to_owned()),
                None => wrong(at, "a $ without a name behind it"),
            },
            Some('"') => {
                self.parser.take();
                let parts = self.parser.parts(|c| c == '"')?;
                if !self.parser.eat("\"") {
                    return wrong(at, "the quotes that open here are never closed; add a \"");
                }
                if live { self.interpreter.join(&parts) } else { Ok(String::new()) }
            }
            Some('{') => Ok(self.parser.braces()?.0),
            Some('(') => {
                self.parser.take();
                let value = self.deeper(|inner| inner.choice(live))?;
                if self.eat(")") {
                    Ok(value)
                } else {
                    wrong(at, "the parenthesis that opens here is never closed; add a )")
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(at),
            Some(c) if c.is_ascii_alphabetic() => self.function(at, live),
            Some(c) => wrong(at, format!("{c:?} where a value is expected")),
            None => wrong(at, "the expression ends where a value is expected"),
        }
    }

    fn number(&mut self, at: usize) -> Outcome {
        let mut text = String::new();
        while let Some(c) = self.parser.peek() {
            let exponent_sign = "+-".contains(c) && text.ends_with(['e', 'E']);
            if !(c.is_ascii_alphanumeric() || c == '.' || exponent_sign) {
                break;
            }
            text.push(c);
            self.parser.take();
        }
        match Number::parse(&text) {
            Some(number) => Ok(number.to_string()),
            None => wrong(at, format!("{text:?} is not a number")),
        }
    }

    fn function(&mut self, at: usize, live: bool) -> Outcome {
        let mut name = String::new();
        while let Some(c) = self.parser.peek().filter(char::is_ascii_alphanumeric) {
            name.push(c);
            self.parser.take();
        }
        match name.as_str() {
            "true" => return Ok(number(true)),
            "false" => return Ok(number(false)),
            MEASURED => return Ok(name),
            _ => {}
        }
        if name == "rand" || name == "srand" {
            return self.random(at, &name, live);
        }
        if let Some((_, function)) = PAIRED.iter().find(|(known, _)| *known == name) {
            return self.paired(at, &name, *function, live);
        }
        let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) else {
            let known = FUNCTIONS.map(|(known, _)| known).join(", ");
            return wrong(
                at,
                format!("{name:?} is neither a number nor a function; functions here are {known}"),
            );
        };
        if !self.eat("(") {
            return wrong(at, format!("{name} needs its argument in parentheses"));
        }
        let argument = self.deeper(|inner| inner.choice(live))?;
        if !self.eat(")") {
            return wrong(at, format!("the parenthesis of {name}( is never closed; add a )"));
        }
        if !live || argument == MEASURED {
            return Ok(argument);
        }
        let value = function(numeric(&argument, at)?.real());
        if !value.is_finite() {
            return wrong(at, format!("{name}({argument}) is not a finite number"));
        }
        // Whole numbers stay whole; floor and the rest give real ones, as expr(n) has it.
        let whole = name == "int"
            || name == "round"
            || name == "abs" && matches!(numeric(&argument, at)?, Number::Whole(_));
        Ok(if whole { Number::Whole(value as i64) } else { Number::Real(value) }.to_string())
    }

    /// `rand()`, or `srand(7)`, which sets the seed: expr(n), and `ExprRandFunc` of Tcl 8.6.
    fn random(&mut self, at: usize, name: &str, live: bool) -> Outcome {
        if !self.eat("(") {
            return wrong(at, format!("this is written {name}()"));
        }
        if name == "srand" {
            let seed = self.deeper(|inner| inner.choice(live))?;
            if live && seed != MEASURED {
                self.interpreter.seed = Some(tcl_seed(numeric(&seed, at)?.real() as i64));
            }
        } else if live && self.interpreter.seed.is_none() {
            self.interpreter.host.unseeded(at);
        }
        if !self.eat(")") {
            return wrong(at, format!("the parenthesis of {name}( is never closed; add a )"));
        }
        if !live {
            return Ok("0".to_owned());
        }
        let next = self.interpreter.seed.unwrap_or(1) * 16_807 % SEEDS;
        self.interpreter.seed = Some(next);
        Ok(Number::Real(next as f64 * (1.0 / SEEDS as f64)).to_string())
    }

    fn paired(&mut self, at: usize, name: &str, function: PairedFunction, live: bool) -> Outcome {
        let form = || WordError { at, problem: format!("this is written {name}(x, y)") };
        if !self.eat("(") {
            return Err(form().into());
        }
        let first = self.deeper(|inner| inner.choice(live))?;
        if !self.eat(",") {
            return Err(form().into());
        }
        let second = self.deeper(|inner| inner.choice(live))?;
        if !self.eat(")") {
            return Err(form().into());
        }
        if !live || [&first, &second].iter().any(|value| **value == MEASURED) {
            return Ok(if live { MEASURED.to_owned() } else { first });
        }
        let value = function(numeric(&first, at)?.real(), numeric(&second, at)?.real());
        if !value.is_finite() {
            return wrong(at, format!("{name}({first}, {second}) is not a finite number"));
        }
        Ok(Number::Real(value).to_string())
    }

    fn deeper(&mut self, inside: impl FnOnce(&mut Expression<'_, '_, H>) -> Outcome) -> Outcome {
        let at = self.parser.place();
        let parser = &mut self.parser;
        self.interpreter.deeper(at, |interpreter| {
            let mut inner = Expression { interpreter, parser: parser.clone() };
            let value = inside(&mut inner)?;
            *parser = inner.parser;
            Ok(value)
        })
    }

    fn eat(&mut self, expected: &str) -> bool {
        self.skip_blanks();
        self.parser.eat(expected)
    }

    fn skip_blanks(&mut self) {
        while self.parser.peek().is_some_and(char::is_whitespace) && self.parser.take().is_some()
            || self.parser.eat("\\\n")
        {}
    }
}

fn wrong<T>(at: usize, problem: impl Into<String>) -> Result<T, Stop> {
    Ok(error_at(at, problem)?)
}

fn number(truth: bool) -> String {
    i64::from(truth).to_string()
}

fn numeric(text: &str, at: usize) -> Result<Number, WordError> {
    Number::parse(text).ok_or_else(|| WordError {
        at,
        problem: format!("{text:?} is not a number; compare text with eq and ne"),
    })
}

fn truth(text: &str, at: usize) -> Result<bool, WordError> {
    match text {
        MEASURED => error_at(
            at,
            "this depends on results of the run, but a script is evaluated before; write the commands without the condition",
        ),
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        text => numeric(text, at).map(Number::truth),
    }
}

/// Returns the result of an operator between two values; `at` is where the operator stands.
fn apply(operator: &str, left: &str, right: &str, at: usize) -> Result<String, WordError> {
    if [left, right].contains(&MEASURED) {
        return Ok(MEASURED.to_owned());
    }
    let order = match (operator, Number::parse(left), Number::parse(right)) {
        ("eq" | "ne", ..) => left.cmp(right),
        (_, Some(left), Some(right)) => left.compare(right),
        _ => left.cmp(right),
    };
    Ok(number(match operator {
        "eq" | "==" => order == Ordering::Equal,
        "ne" | "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        ">" => order == Ordering::Greater,
        "<=" => order != Ordering::Greater,
        ">=" => order != Ordering::Less,
        _ => {
            let result = numeric(left, at)?.combine(operator, numeric(right, at)?);
            let result = result.map_err(|problem| WordError { at, problem: problem.to_owned() })?;
            return Ok(result.to_string());
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcl::Word;

    /// An application that defines no commands.
    struct Nobody;

    impl Host for Nobody {
        fn command(&mut self, _: &[Word]) -> Option<Result<String, WordError>> {
            None
        }
        fn assigned(&mut self, _: &str, _: &str) {}
        fn lost(&mut self, complaint: WordError) -> Result<String, WordError> {
            Err(complaint)
        }
        fn owns(&self, _: &str, _: &str) -> bool {
            false
        }
        fn class_of(&self, _: &str) -> Option<String> {
            None
        }
        fn sets_own(&mut self, _: &[Word]) {}
        fn unseeded(&mut self, _: usize) {}
        fn defines(&mut self, _: &Word, _: &Word, _: bool) {}
        fn has_file(&self, _: &str) -> bool {
            false
        }
        fn names(&self) -> Vec<&'static str> {
            Vec::new()
        }
        fn file(&mut self, _: &[Word]) -> Result<Option<(String, usize)>, WordError> {
            Ok(None)
        }
        fn is_over(&self) -> bool {
            false
        }
    }

    #[test]
    fn values_are_those_that_tclsh_8_6_gives() {
        let mut interpreter = Interpreter::new(Nobody, "a.tcl");
        interpreter.run("set a 7").unwrap();
        for (expression, value) in [
            ("-2 ** 2", "4"),
            ("2 ** 3 ** 2", "512"),
            ("1 + 2 == 3 && 4 < 5", "1"),
            ("7 / -2", "-4"),
            ("-7 % 3", "2"),
            ("int(-2.7)", "-2"),
            ("round(2.5)", "3"),
            ("1 ? 2 : 3 / 0", "2"),
            ("0 && 1 / 0", "0"),
            ("\"b\" eq \"b\"", "1"),
            ("1e3 + 1", "1001.0"),
            ("!0 + 1", "2"),
            ("$a > 3 ? \"x\" : \"y\"", "x"),
            ("7 / 2.0", "3.5"),
            ("abs(-3)", "3"),
            ("sqrt(16)", "4.0"),
            ("1 || [error no]", "1"),
            ("\"10\" == \"10.0\"", "1"),
            ("\"abc\" < \"abd\"", "1"),
            ("10 - 2 - 3", "5"),
            ("2 + 3 * 4 % 5", "4"),
            ("ceil(1.2)", "2.0"),
            ("1 < 2 == 1", "1"),
            ("\"1\" ne \"1.0\"", "1"),
            ("- 3 + 5", "2"),
            ("pow(2, 3)", "8.0"),
            ("log10(1000)", "3.0"),
            ("srand(7)", "5.4784584815979276e-5"),
            ("rand()", "0.9207645170021637"),
            ("srand(0)", "0.24257829889775176"),
            ("$argc > 0", "0"),
        ] {
            let result = interpreter.expression(Text::whole(expression));
            assert_eq!(result.unwrap_or_else(|stop| panic!("{expression}: {stop:?}")), value, "{expression}");
        }
    }

    #[test]
    fn commands_give_what_tclsh_8_6_gives() {
        for (command, value) in [
            ("array set a {x 1 y 2}; lsort [array names a]", "x y"),
            ("array set a {x 1 y 2}; array size a", "2"),
            ("set a(x) 1; list [info exists a(x)] [info exists a] [info exists b]", "1 1 0"),
            ("set a(x) 1; array get a", "x 1"),
            ("switch b { a {set r 1} b - c {set r 2} default {set r 3} }", "2"),
            ("switch -glob -- abc a* {set r 1} default {set r 3}", "1"),
            ("eval set x 5", "5"),
            ("eval {set x 6}", "6"),
            ("string length abc", "3"),
            ("string range abcdef 1 end-1", "bcde"),
            ("string compare a b", "-1"),
            ("string equal a a", "1"),
            ("string match {a*c} abbc", "1"),
            ("string toupper abc", "ABC"),
            ("string first b abc", "1"),
            ("format %05.2f|%d|%-4s|%x 3.14159 7 ab 255", "03.14|7|ab  |ff"),
            ("format %d%% 5", "5%"),
            ("lsearch {a b c} b", "1"),
            ("linsert {a c} 1 b", "a b c"),
            ("lreplace {a b c} 1 1 x y", "a x y c"),
            ("lsort -integer {10 9 8}", "8 9 10"),
            ("lreverse {a b}", "b a"),
            ("set i 1; set j 2; list $i:$j ${i}::x", "1:2 1::x"),
            ("set ::n::m 4; list $::n::m", "4"),
            ("regsub {b+} abbbc {-&-}", "a-bbb-c"),
            ("regexp -nocase -- B abc", "1"),
            ("file dirname a/b/c.tcl", "a/b"),
            ("file rootname c.tcl", "c"),
            ("file tail a/b/c.tcl", "c.tcl"),
            ("expr {1 + \\\n 2}", "3"),
            ("foreach a {1 2 3} {b c} {x y z} {append r $a$b$c.}; set r", "1xy.2z.3."),
            ("string trimright abcb b", "abc"),
            ("string trimleft {  a }", "a "),
            ("catch {expr 1 / 0}", "1"),
            ("catch {expr 4 / 2} v; set v", "2"),
            ("lassign {1 2 3} a b; list $a $b", "1 2"),
        ] {
            let mut interpreter = Interpreter::new(Nobody, "a.tcl");
            let result = interpreter.evaluate(Text::whole(command));
            assert_eq!(result.unwrap_or_else(|stop| panic!("{command}: {stop:?}")), value, "{command}");
        }
    }
}
