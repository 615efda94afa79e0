//! Evaluates expressions: `$i < 2 * ($n - 1)`, during parsing; `live` is false in a branch that is not
//! taken.

use std::cmp::Ordering;

use super::interpreter::{Host, Interpreter, Outcome, Stop};
use super::number::{MEASURED, Number, TOO_LARGE};
use super::parse::Parser;
use super::{Text, WordError, error_at};

/// The octets that an octet of an expression counts for.
const CALCULATED: usize = 32;

/// Binary operators and their precedence; longer ones before their prefixes.
const OPERATORS: [(&str, u8); 16] = [
    ("||", 1),
    ("&&", 2),
    ("eq", 4),
    ("ne", 4),
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
        self.budget.octets(text.place(0), text.text.len() * CALCULATED)?;
        let mut expression = Expression { interpreter: self, parser: Parser::new(text) };
        let value = expression.choice(true)?;
        match expression.parser.peek() {
            // A number is written as such: 010 is 8.
            None => Ok(Number::parse(&value).map_or(value, |number| number.to_string())),
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
            _ if value == MEASURED => value,
            "-" => numeric(&value, at)?.negative().ok_or_else(|| too_large(at))?.to_string(),
            _ => numeric(&value, at)?.to_string(),
        })
    }

    fn operand(&mut self, live: bool) -> Outcome {
        let at = self.parser.place();
        match self.parser.peek() {
            Some('$' | '[') => match self.parser.substitution()? {
                Some(part) if live => self.interpreter.value(at, &part),
                Some(_) => Ok("0".to_owned()),
                None => wrong(at, "a $ without a name behind it"),
            },
            Some('"') => {
                self.parser.take();
                let parts = self.parser.parts(|c| c == '"')?;
                if !self.parser.eat("\"") {
                    return wrong(at, "the quotes that open here are never closed; add a \"");
                }
                if live { self.interpreter.join(at, &parts) } else { Ok(String::new()) }
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
            let exponent_sign = "+-".contains(c) && text.ends_with(['e', 'E']) && !text.starts_with("0x");
            if !(c.is_ascii_alphanumeric() || c == '.' || exponent_sign) {
                break;
            }
            text.push(c);
            self.parser.take();
        }
        match Number::parse(&text) {
            // As it is written, for eq and ne compare texts.
            Some(_) => Ok(text),
            None => wrong(at, Number::problem(&text)),
        }
    }

    fn function(&mut self, at: usize, live: bool) -> Outcome {
        let mut name = String::new();
        while let Some(c) = self.parser.peek().filter(char::is_ascii_alphanumeric) {
            name.push(c);
            self.parser.take();
        }
        match name.as_str() {
            "true" | "yes" | "on" | "false" | "no" | "off" | MEASURED => return Ok(name),
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
        let argument = numeric(&argument, at)?;
        // Whole numbers stay whole; floor and the rest give real ones, as expr(n) has it.
        if let (Number::Whole(whole), "int" | "round" | "abs") = (argument, name.as_str()) {
            let whole = if name == "abs" { whole.checked_abs() } else { Some(whole) };
            return Ok(Number::Whole(whole.ok_or_else(|| too_large(at))?).to_string());
        }
        let value = function(argument.real());
        if !value.is_finite() {
            return wrong(at, format!("{name}({argument}) is not a finite number"));
        }
        Ok(match name.as_str() {
            "int" | "round" => Number::whole_of(value).ok_or_else(|| too_large(at))?,
            _ => Number::Real(value),
        }
        .to_string())
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
            self.interpreter.host.note_unseeded(at);
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
    Number::parse(text).ok_or_else(|| WordError { at, problem: Number::problem(text) })
}

fn too_large(at: usize) -> WordError {
    WordError { at, problem: TOO_LARGE.to_owned() }
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
    if let Some(large) = [left, right].into_iter().find(|text| Number::is_too_large(text))
        && !matches!(operator, "eq" | "ne")
    {
        return error_at(at, Number::problem(large));
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
