//! Evaluates expressions such as `$i < 2 * ($n - 1)` while it parses them; `is_evaluated` is false in a branch that is
//! not taken.

use std::cmp::Ordering;

use super::interpreter::{Interpreter, Outcome, ScriptHost, Stop};
use super::list::{LIST_COST, list_at};
use super::number::Number::{Real, Whole};
use super::number::{MEASURED_VALUE, Number, too_large};
use super::parse::Parser;
use super::{Text, WordError, error_at};

/// Number of octets charged for each octet of an expression.
const EXPRESSION_COST: usize = 32;

/// Maximum length of a number in an expression, in octets.
const LONGEST_NUMBER: usize = 100;

/// Binary operators and their precedence. An operator comes before all operators with which it begins, such as `**`
/// before `*`, because the longest operator must be found first.
const OPERATORS: [(&str, u8); 23] = [
    ("||", 1),
    ("&&", 2),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("eq", 6),
    ("ne", 6),
    ("in", 6),
    ("ni", 6),
    ("==", 6),
    ("!=", 6),
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("**", 11),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

type Function = fn(f64) -> f64;

/// Functions of one number whose result is a floating-point number.
const FUNCTIONS: [(&str, Function); 17] = [
    ("abs", f64::abs),
    ("acos", f64::acos),
    ("asin", f64::asin),
    ("atan", f64::atan),
    ("ceil", f64::ceil),
    ("cos", f64::cos),
    ("cosh", f64::cosh),
    ("double", |x| x),
    ("exp", f64::exp),
    ("floor", f64::floor),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("sinh", f64::sinh),
    ("sqrt", f64::sqrt),
    ("tan", f64::tan),
    ("tanh", f64::tanh),
];

type PairedFunction = fn(f64, f64) -> f64;

/// Functions of two numbers.
const PAIRED_FUNCTIONS: [(&str, PairedFunction); 4] =
    [("atan2", f64::atan2), ("fmod", |x, y| x % y), ("hypot", f64::hypot), ("pow", f64::powf)];

/// Functions whose result is an integer, has the type of the argument, or is random.
const OTHER_FUNCTIONS: [&str; 10] =
    ["bool", "entier", "int", "isqrt", "max", "min", "rand", "round", "srand", "wide"];

/// The modulus of Tcl's generator of random numbers.
const RANDOM_MODULUS: u64 = 2_147_483_647;

/// Returns the state of Tcl's random generator for a seed.
fn tcl_seed(seed: i64) -> u64 {
    let state = seed as u64 & RANDOM_MODULUS;
    if state == 0 || state == RANDOM_MODULUS { state ^ 123_459_876 } else { state }
}

/// An expression that is being evaluated.
struct Expression<'i, 't, H> {
    interpreter: &'i mut Interpreter<H>,
    parser: Parser<'t>,
}

impl<H: ScriptHost> Interpreter<H> {
    /// Returns the value of an expression.
    pub(super) fn expression(&mut self, text: Text<'_>) -> Outcome {
        self.budget.charge_octets(text.script_position(0), text.text.len() * EXPRESSION_COST)?;
        let mut expression = Expression { interpreter: self, parser: Parser::new(text) };
        let value = expression.choice(true)?;
        match expression.parser.peek() {
            // A number is returned in decimal form: 010 becomes 8.
            None => match Number::parse(&value) {
                Some(number) => Ok(number.to_string()),
                None if value == MEASURED_VALUE => Ok(value),
                None => Number::refuse_unsupported(&value, text.script_position(0)).map(|()| value),
            },
            Some(c) => {
                wrong(expression.parser.script_position(), format!("{c:?} is not supported in an expression"))
            }
        }
    }

    /// Returns whether a condition is true.
    pub(super) fn condition(&mut self, text: Text<'_>) -> Result<bool, Stop> {
        let at = text.script_position(0);
        let value = self.expression(text)?;
        truth(&value, at)
    }
}

impl<H: ScriptHost> Expression<'_, '_, H> {
    /// Evaluates `a ? b : c`, or an expression whose operators have a higher precedence.
    fn choice(&mut self, is_evaluated: bool) -> Outcome {
        let at = self.parser.script_position();
        let condition = self.binary(1, is_evaluated)?;
        if !self.eat("?") {
            return Ok(condition);
        }
        let first = is_evaluated && truth(&condition, at)?;
        let at = self.parser.script_position();
        let then = self.one_level_deeper(|inner| inner.choice(first))?;
        if !self.eat(":") {
            return wrong(at, "a ? has no : after it; write condition ? this : that");
        }
        let otherwise = self.one_level_deeper(|inner| inner.choice(is_evaluated && !first))?;
        Ok(if first { then } else { otherwise })
    }

    fn binary(&mut self, min_precedence: u8, is_evaluated: bool) -> Outcome {
        let mut left = self.unary(is_evaluated)?;
        while let Some((operator, strength)) =
            self.operator().filter(|(_, strength)| *strength >= min_precedence)
        {
            let at = self.parser.script_position();
            self.parser.eat(operator);
            let needed = match operator {
                "||" => is_evaluated && !truth(&left, at)?,
                "&&" => is_evaluated && truth(&left, at)?,
                _ => is_evaluated,
            };
            // Powers are grouped from the right.
            let next = if operator == "**" { strength } else { strength + 1 };
            let right = self.one_level_deeper(|inner| inner.binary(next, needed))?;
            if matches!(operator, "in" | "ni") {
                self.interpreter.budget.charge_octets(at, right.len() * LIST_COST)?;
            }
            left = match operator {
                _ if !is_evaluated => left,
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
        // eq1 is an operator and a number, but eqx a word.
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let is_whole =
            |operator: &str| !(operator.starts_with(is_letter) && rest[2..].starts_with(is_letter));
        OPERATORS.into_iter().find(|(operator, _)| rest.starts_with(operator) && is_whole(operator))
    }

    fn unary(&mut self, is_evaluated: bool) -> Outcome {
        self.skip_blanks();
        let at = self.parser.script_position();
        let sign = ["-", "+", "!", "~"].into_iter().find(|sign| self.parser.eat(sign));
        let Some(sign) = sign else { return self.operand(is_evaluated) };
        let value = self.one_level_deeper(|inner| inner.unary(is_evaluated))?;
        Ok(match sign {
            _ if !is_evaluated => value,
            "!" => number(!truth(&value, at)?),
            _ if value == MEASURED_VALUE => value,
            "-" => Number::read(&value, at)?.negated().ok_or_else(|| too_large(at))?.to_string(),
            "~" => Number::read(&value, at)?.combine("^", Whole(-1), at)?.to_string(),
            _ => Number::read(&value, at)?.to_string(),
        })
    }

    fn operand(&mut self, is_evaluated: bool) -> Outcome {
        let at = self.parser.script_position();
        match self.parser.peek() {
            Some('$' | '[') => match self.parser.substitution()? {
                Some(part) if is_evaluated => self.interpreter.value(at, &part),
                Some(_) => Ok("0".to_owned()),
                None => wrong(at, "after a $ the name of a variable is missing"),
            },
            Some('"') => {
                self.parser.take();
                let parts = self.parser.parts(|c| c == '"')?;
                if !self.parser.eat("\"") {
                    return wrong(at, "the quotes that open here are never closed; add a \"");
                }
                if is_evaluated { self.interpreter.join(at, &parts) } else { Ok(String::new()) }
            }
            Some('{') => Ok(self.parser.braces()?.0),
            Some('(') => {
                self.parser.take();
                let value = self.one_level_deeper(|inner| inner.choice(is_evaluated))?;
                if self.eat(")") {
                    Ok(value)
                } else {
                    wrong(at, "the parenthesis that opens here is never closed; add a )")
                }
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(at),
            Some(c) if c.is_ascii_alphabetic() => self.function(at, is_evaluated),
            Some(c) => wrong(at, format!("{c:?} where a value is expected")),
            None => wrong(at, "the expression ends where a value is expected"),
        }
    }

    fn number(&mut self, at: usize) -> Outcome {
        let mut text = String::new();
        while let Some(c) = self.parser.peek() {
            let exponent_sign = "+-".contains(c)
                && text.ends_with(['e', 'E'])
                && !(text.starts_with("0x") || text.starts_with("0X"));
            if !(c.is_ascii_alphanumeric() || c == '.' || exponent_sign) || text.len() >= LONGEST_NUMBER {
                break;
            }
            text.push(c);
            self.parser.take();
        }
        if text.len() >= LONGEST_NUMBER {
            let problem = format!("numbers of {LONGEST_NUMBER} octets and more are not supported");
            return Err(Stop::Limit(WordError { at, problem }));
        }
        // The longest number at the start counts; an operator must follow it, as in 1eq1.
        let (end, whole) = (self.parser.offset, text.clone());
        while Number::parse(&text).is_none() && !text.is_empty() {
            Number::refuse_unsupported(&text, at)?;
            text.pop();
        }
        self.parser.offset = end - (whole.len() - text.len());
        if text.is_empty() || text != whole && self.operator().is_none() {
            Number::read(&whole, at)?;
        }
        // The number stays as it is written, because eq and ne compare texts.
        Ok(text)
    }

    /// Evaluates a function with its arguments, or a word for true or false, such as `yes`.
    fn function(&mut self, at: usize, is_evaluated: bool) -> Outcome {
        let mut name = String::new();
        while let Some(c) = self.parser.peek().filter(char::is_ascii_alphanumeric) {
            name.push(c);
            self.parser.take();
        }
        if boolean(&name).is_some() || name == MEASURED_VALUE {
            return Ok(name);
        }
        Number::refuse_unsupported(&name, at)?;
        if !self.eat("(") {
            return unknown_function(at, &name);
        }
        let mut arguments = Vec::new();
        while !self.eat(")") {
            if !arguments.is_empty() && !self.eat(",") {
                return wrong(at, format!("the parenthesis of {name}( is never closed; add a )"));
            }
            arguments.push(self.one_level_deeper(|inner| inner.choice(is_evaluated))?);
        }
        match is_evaluated {
            true => self.call(at, &name, &arguments),
            false => Ok("0".to_owned()),
        }
    }

    /// Returns the value of a function: mathfunc(n).
    fn call(&mut self, at: usize, name: &str, arguments: &[String]) -> Outcome {
        if arguments.iter().any(|argument| argument == MEASURED_VALUE) {
            return Ok(MEASURED_VALUE.to_owned());
        }
        if let ("bool", [value]) = (name, arguments) {
            return Ok(number(truth(value, at)?));
        }
        let numbers = arguments.iter().map(|argument| Number::read(argument, at));
        let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
        let whole = |real: f64| Number::from_real(real).ok_or_else(|| too_large(at));
        Ok(match (name, &numbers[..]) {
            ("rand", []) => self.random(at, None),
            ("srand", [Whole(seed)]) => self.random(at, Some(*seed)),
            ("srand", [_]) => return wrong(at, "a seed is a whole number"),
            ("int" | "wide" | "entier" | "round", [Whole(own)]) => Whole(*own),
            ("int" | "wide" | "entier", [Real(own)]) => whole(own.trunc())?,
            ("round", [Real(own)]) => whole(own.round())?,
            // Tcl converts such a number to a real one, rounded down or up.
            ("floor" | "ceil", [Whole(own)]) if own.unsigned_abs() > 1 << 53 => return Err(too_large(at)),
            ("abs", [Whole(own)]) => Whole(own.checked_abs().ok_or_else(|| too_large(at))?),
            ("isqrt", [own]) if own.to_f64() < 0.0 => return wrong(at, "a negative number has no root"),
            ("isqrt", [Whole(own)]) => Whole(own.isqrt()),
            ("isqrt", [Real(own)]) => match whole(own.trunc())? {
                Whole(own) => Whole(own.isqrt()),
                real => real,
            },
            ("max" | "min", [first, rest @ ..]) => {
                let better = if name == "max" { Ordering::Greater } else { Ordering::Less };
                rest.iter().fold(*first, |best, own| if own.compare(best) == better { *own } else { best })
            }
            (_, numbers) => {
                let function = FUNCTIONS.iter().find(|(known, _)| *known == name);
                let paired = PAIRED_FUNCTIONS.iter().find(|(known, _)| *known == name);
                let result = match (numbers, function, paired) {
                    ([own], Some((_, function)), _) => function(own.to_f64()),
                    ([own, other], _, Some((_, function))) => function(own.to_f64(), other.to_f64()),
                    (_, None, None) if !OTHER_FUNCTIONS.contains(&name) => return unknown_function(at, name),
                    _ => return wrong(at, format!("{name} does not take {} arguments", numbers.len())),
                };
                Number::finite(result, at)?
            }
        }
        .to_string())
    }

    /// Returns the result of `rand()`, or of `srand(7)`, which first sets the seed (expr(n); `ExprRandFunc` of Tcl
    /// 8.6).
    fn random(&mut self, at: usize, seed: Option<i64>) -> Number {
        let interpreter = &mut *self.interpreter;
        if let Some(seed) = seed {
            interpreter.seed = Some(tcl_seed(seed));
        } else if interpreter.seed.is_none() {
            interpreter.host.note_unseeded(at);
        }
        let next = interpreter.seed.unwrap_or(1) * 16_807 % RANDOM_MODULUS;
        interpreter.seed = Some(next);
        Real(next as f64 * (1.0 / RANDOM_MODULUS as f64))
    }

    fn one_level_deeper(&mut self, inside: impl FnOnce(&mut Expression<'_, '_, H>) -> Outcome) -> Outcome {
        let at = self.parser.script_position();
        let parser = &mut self.parser;
        self.interpreter.one_level_deeper(at, |interpreter| {
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

fn unknown_function(at: usize, name: &str) -> Outcome {
    let known = FUNCTIONS
        .map(|(known, _)| known)
        .into_iter()
        .chain(PAIRED_FUNCTIONS.map(|(known, _)| known))
        .chain(OTHER_FUNCTIONS);
    let known = known.collect::<Vec<_>>().join(", ");
    wrong(at, format!("{name:?} is neither a number nor a function; functions here are {known}"))
}

fn number(truth: bool) -> String {
    i64::from(truth).to_string()
}

/// Parses a word for true or false, which may be abbreviated, such as `t` for `true`: Tcl_GetBoolean(3).
fn boolean(text: &str) -> Option<bool> {
    let text = text.to_ascii_lowercase();
    let is_cut = |full: &&str| !text.is_empty() && full.starts_with(&text);
    match text.as_str() {
        "on" => Some(true),
        "of" | "off" => Some(false),
        _ if ["true", "yes"].iter().any(is_cut) => Some(true),
        _ if ["false", "no"].iter().any(is_cut) => Some(false),
        _ => None,
    }
}

fn truth(text: &str, at: usize) -> Result<bool, Stop> {
    if text == MEASURED_VALUE {
        let problem = "this depends on results of the run, but a script is evaluated before the run; write the commands without the condition";
        return Err(Stop::Limit(WordError { at, problem: problem.to_owned() }));
    }
    boolean(text).map_or_else(|| Number::read(text, at).map(Number::is_true), Ok)
}

/// Returns the result of an operator between two values; `at` is the operator's position.
fn apply(operator: &str, left: &str, right: &str, at: usize) -> Outcome {
    if [left, right].contains(&MEASURED_VALUE) {
        return Ok(MEASURED_VALUE.to_owned());
    }
    let is_in = || Ok::<_, Stop>(list_at(right, at)?.iter().any(|own| own == left));
    let order = || match (Number::parse(left), Number::parse(right)) {
        (Some(left), Some(right)) => Ok(left.compare(right)),
        _ => {
            [left, right].into_iter().try_for_each(|text| Number::refuse_unsupported(text, at))?;
            Ok::<_, Stop>(left.cmp(right))
        }
    };
    Ok(number(match operator {
        "eq" => left == right,
        "ne" => left != right,
        "in" => is_in()?,
        "ni" => !is_in()?,
        "==" => order()? == Ordering::Equal,
        "!=" => order()? != Ordering::Equal,
        "<" => order()? == Ordering::Less,
        ">" => order()? == Ordering::Greater,
        "<=" => order()? != Ordering::Greater,
        ">=" => order()? != Ordering::Less,
        _ => {
            let (left, right) = (Number::read(left, at)?, Number::read(right, at)?);
            return Ok(left.combine(operator, right, at)?.to_string());
        }
    }))
}
