//! The Python subset of scripts, for assertions: `%{ assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd }%`.
//!
//! Statements are `assert`, assignments, `print` (which does nothing) and `pass`; expressions have Python's operators on numbers, names
//! and strings. Everything else is an error.

use std::collections::BTreeMap;

/// Maximum nesting of brackets and operators.
const MAX_NESTED: usize = 64;

/// A value in a script's code: a number, or a word such as the name of a state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Self::Number(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
        }
    }

    fn number(&self) -> Result<f64, String> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Text(text) => Err(format!("{text:?} is not a number")),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Number(f64::from(u8::from(value)))
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The variables that a script has assigned.
pub(crate) type Variables = BTreeMap<String, Value>;

/// Why the code of a script fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// The code cannot be parsed.
    Unsupported(String),
    /// An assertion of the script is false.
    Fails(String),
}

impl From<String> for EvaluationError {
    fn from(problem: String) -> Self {
        Self::Unsupported(problem)
    }
}

/// Runs the code of a script; `lookup` returns the variables of the endpoint.
pub(crate) fn run(
    code: &str,
    variables: &mut Variables,
    lookup: &dyn Fn(&str) -> Option<Value>,
) -> Result<(), EvaluationError> {
    statements(code)?.iter().try_for_each(|statement| execute(statement, variables, lookup))
}

/// Checks that `code` can be parsed, without evaluating it; `is_known` returns whether a name exists.
pub(crate) fn check(
    code: &str,
    variables: &mut Variables,
    is_known: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    let lookup = |name: &str| is_known(name).then_some(Value::Number(1.0));
    for statement in statements(code)? {
        if let Err(EvaluationError::Unsupported(problem)) = execute(&statement, variables, &lookup) {
            return Err(problem);
        }
    }
    Ok(())
}

/// Evaluates an expression that contains no names; returns its value as text.
pub(crate) fn evaluate_constant(expression: &str) -> Result<String, String> {
    let tokens = tokens(expression)?;
    Ok(Parser::new(&tokens, &|_| None).parse_whole()?.to_string())
}

fn execute(
    tokens: &[Token],
    variables: &mut Variables,
    lookup: &dyn Fn(&str) -> Option<Value>,
) -> Result<(), EvaluationError> {
    let find = |name: &str| variables.get(name).cloned().or_else(|| lookup(name)).or_else(|| constant(name));
    match tokens {
        [] => Ok(()),
        [Token::Name(name)] if name == "pass" => Ok(()),
        [Token::Name(name), ..] if name == "print" => Ok(()),
        [Token::Name(name), rest @ ..] if name == "assert" => {
            let mut parser = Parser::new(rest, &find);
            let value = parser.expression()?;
            match parser.rest() {
                // The message that Python would print if the assertion failed.
                [] | [Token::Sign(","), ..] => {}
                [other, ..] => return Err(format!("unexpected {other} after the assertion").into()),
            }
            if value.is_true() {
                return Ok(());
            }
            let text = |tokens: &[Token]| tokens.iter().map(Token::to_string).collect::<Vec<_>>().join(" ");
            let condition = &rest[..rest.len() - parser.rest().len()];
            let names = condition.iter().filter_map(|token| match token {
                Token::Name(name) if constant(name).is_none() => Some(format!("{name} is {}", find(name)?)),
                _ => None,
            });
            let names: Vec<String> = names.collect();
            Err(EvaluationError::Fails(format!("expected {}, but {}", text(condition), names.join(", "))))
        }
        [Token::Name(name), Token::Sign("="), rest @ ..] => {
            let value = Parser::new(rest, &find).parse_whole()?;
            variables.insert(name.clone(), value);
            Ok(())
        }
        [Token::Name(name), Token::Sign(sign @ ("+=" | "-=")), rest @ ..] => {
            let before = find(name).ok_or_else(|| format!("unknown variable {name:?}"))?.number()?;
            let by = Parser::new(rest, &find).parse_whole()?.number()?;
            let value = if *sign == "+=" { before + by } else { before - by };
            variables.insert(name.clone(), Value::Number(value));
            Ok(())
        }
        [first, ..] => Err(format!(
            "{first} starts an unsupported Python statement; use \"assert NAME == VALUE\" or \"NAME = VALUE\""
        )
        .into()),
    }
}

/// Returns the value of a constant of Linux (include/net/tcp_states.h, include/uapi/linux/tcp.h). The value of a
/// TCP state is its name in RFC 9293.
fn constant(name: &str) -> Option<Value> {
    let states = [
        ("TCP_ESTABLISHED", "ESTABLISHED"),
        ("TCP_SYN_SENT", "SYN-SENT"),
        ("TCP_SYN_RECV", "SYN-RECEIVED"),
        ("TCP_FIN_WAIT1", "FIN-WAIT-1"),
        ("TCP_FIN_WAIT2", "FIN-WAIT-2"),
        ("TCP_TIME_WAIT", "TIME-WAIT"),
        ("TCP_CLOSE", "CLOSED"),
        ("TCP_CLOSE_WAIT", "CLOSE-WAIT"),
        ("TCP_LAST_ACK", "LAST-ACK"),
        ("TCP_LISTEN", "LISTEN"),
        ("TCP_CLOSING", "CLOSING"),
    ];
    let numbers = [
        ("TCP_CA_Open", 0),
        ("TCP_CA_Disorder", 1),
        ("TCP_CA_CWR", 2),
        ("TCP_CA_Recovery", 3),
        ("TCP_CA_Loss", 4),
        ("TCPI_OPT_TIMESTAMPS", 1),
        ("TCPI_OPT_SACK", 2),
        ("TCPI_OPT_WSCALE", 4),
        ("TCPI_OPT_ECN", 8),
        ("TCPI_OPT_ECN_SEEN", 16),
        ("TCPI_OPT_SYN_DATA", 32),
        ("True", 1),
        ("False", 0),
    ];
    let state =
        states.iter().find(|(known, _)| *known == name).map(|(_, state)| Value::Text((*state).to_owned()));
    let number =
        numbers.iter().find(|(known, _)| *known == name).map(|(_, value)| Value::Number(f64::from(*value)));
    // A state by its name in the RFC.
    let is_state =
        !name.contains('_') && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-');
    state.or(number).or_else(|| is_state.then(|| Value::Text(name.to_owned())))
}

/// A token of the subset of Python that scripts may use.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Text(String),
    Sign(&'static str),
    /// The end of a statement.
    End,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Sign(sign) => f.write_str(sign),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Operators and brackets; longer ones come first, so that they are matched first.
const OPERATOR_SIGNS: [&str; 31] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "+", "-", "*", "/", "%", "&", "|", "^", "~",
    "<", ">", "=", "(", ")", ",", ":", ".", "[", "]", "{", "}",
];

fn statements(code: &str) -> Result<Vec<Vec<Token>>, String> {
    let code = code.replace("\\\n", " ");
    let tokens = tokens(&code)?;
    Ok(tokens.split(|token| *token == Token::End).map(<[Token]>::to_vec).collect())
}

fn tokens(code: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut rest, mut depth) = (Vec::new(), code, 0_usize);
    while let Some(next) = rest.chars().next() {
        let taken = match next {
            '\n' | ';' => {
                if depth == 0 {
                    tokens.push(Token::End);
                }
                1
            }
            '#' => rest.find('\n').unwrap_or(rest.len()),
            c if c.is_whitespace() || c == '\\' => c.len_utf8(),
            '"' | '\'' => {
                let end =
                    rest[1..].find(next).ok_or("the Python string does not end; add the closing quote")?;
                tokens.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '0'..='9' => {
                let word =
                    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '.').next().unwrap_or_default();
                tokens.push(Token::Number(literal(word)?));
                word.len()
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let word = name(rest);
                tokens.push(Token::Name(word.to_owned()));
                word.len()
            }
            _ => {
                let sign = OPERATOR_SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| format!("{next:?} is not a supported Python operator"))?;
                depth += usize::from(matches!(*sign, "(" | "[" | "{"));
                depth -= usize::from(matches!(*sign, ")" | "]" | "}") && depth > 0);
                tokens.push(Token::Sign(sign));
                sign.len()
            }
        };
        rest = &rest[taken..];
    }
    Ok(tokens)
}

fn literal(word: &str) -> Result<f64, String> {
    let hexadecimal = word.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let value = hexadecimal.map(|value| value as f64).or_else(|| word.parse().ok());
    value.ok_or_else(|| format!("{word:?} is not a supported Python number"))
}

/// Returns the name at the beginning of the text. Names of TCP states contain hyphens, as in `SYN-SENT`.
fn name(text: &str) -> &str {
    let bytes = text.as_bytes();
    let is_upper = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_uppercase() || b.is_ascii_digit());
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let joins = *byte == b'-'
            && is_upper(end + 1)
            && text[..end].bytes().all(|b| b == b'-' || b.is_ascii_uppercase());
        if !(byte.is_ascii_alphanumeric() || *byte == b'_' || joins) {
            break;
        }
        end += 1;
    }
    &text[..end]
}

/// Evaluates an expression while parsing it.
struct Parser<'t> {
    tokens: &'t [Token],
    find: &'t dyn Fn(&str) -> Option<Value>,
    nested: usize,
}

/// Binary operators, grouped by precedence, the lowest first.
const OPERATOR_LEVELS: [&[&str]; 6] =
    [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];

impl<'t> Parser<'t> {
    fn new(tokens: &'t [Token], find: &'t dyn Fn(&str) -> Option<Value>) -> Self {
        Self { tokens, find, nested: 0 }
    }

    fn rest(&self) -> &'t [Token] {
        self.tokens
    }

    /// Parses an expression that extends to the end of the text.
    fn parse_whole(mut self) -> Result<Value, String> {
        let value = self.expression()?;
        self.tokens.first().map_or(Ok(value), |token| Err(format!("unexpected {token} after the expression")))
    }

    fn take_name(&mut self, name: &str) -> bool {
        let is_next = matches!(self.tokens.first(), Some(Token::Name(next)) if next == name);
        self.tokens = &self.tokens[usize::from(is_next)..];
        is_next
    }

    fn take_sign(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        match self.tokens.first() {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                self.tokens = &self.tokens[1..];
                Some(sign)
            }
            _ => None,
        }
    }

    fn expression(&mut self) -> Result<Value, String> {
        self.nested += 1;
        if self.nested > MAX_NESTED {
            return Err(format!("the Python expression is nested more than {MAX_NESTED} levels deep"));
        }
        let mut value = self.conjunction()?;
        while self.take_name("or") {
            let other = self.conjunction()?;
            value = if value.is_true() { value } else { other };
        }
        self.nested -= 1;
        Ok(value)
    }

    fn conjunction(&mut self) -> Result<Value, String> {
        let mut value = self.negation()?;
        while self.take_name("and") {
            let other = self.negation()?;
            value = if value.is_true() { other } else { value };
        }
        Ok(value)
    }

    fn negation(&mut self) -> Result<Value, String> {
        let mut negated = false;
        let mut is_negation = false;
        while self.take_name("not") {
            (negated, is_negation) = (!negated, true);
        }
        let value = self.comparison()?;
        Ok(if is_negation { Value::from(value.is_true() != negated) } else { value })
    }

    /// Evaluates a comparison. A chain such as `a <= b <= c` is true if both comparisons are.
    fn comparison(&mut self) -> Result<Value, String> {
        let mut left = self.operation(0)?;
        let mut holds = None;
        while let Some(sign) = self.take_sign(&["==", "!=", "<=", ">=", "<", ">"]) {
            let right = self.operation(0)?;
            let is_so = match sign {
                "==" => left == right,
                "!=" => left != right,
                "<" => left.number()? < right.number()?,
                ">" => left.number()? > right.number()?,
                "<=" => left.number()? <= right.number()?,
                _ => left.number()? >= right.number()?,
            };
            holds = Some(holds.unwrap_or(true) && is_so);
            left = right;
        }
        Ok(holds.map_or(left, Value::from))
    }

    fn operation(&mut self, level: usize) -> Result<Value, String> {
        let Some(signs) = OPERATOR_LEVELS.get(level) else { return self.unary() };
        let mut value = self.operation(level + 1)?;
        while let Some(sign) = self.take_sign(signs) {
            let right = self.operation(level + 1)?.number()?;
            value = Value::Number(apply(value.number()?, sign, right)?);
        }
        Ok(value)
    }

    fn unary(&mut self) -> Result<Value, String> {
        let mut signs = Vec::new();
        while let Some(sign) = self.take_sign(&["-", "+", "~"]) {
            signs.push(sign);
        }
        let mut value = self.atom()?;
        for sign in signs.into_iter().rev() {
            value = Value::Number(match sign {
                "-" => -value.number()?,
                "~" => !(value.number()? as i64) as f64,
                _ => value.number()?,
            });
        }
        Ok(value)
    }

    fn atom(&mut self) -> Result<Value, String> {
        let (token, rest) = self.tokens.split_first().ok_or("the Python expression is incomplete")?;
        self.tokens = rest;
        match token {
            Token::Number(number) => Ok(Value::Number(*number)),
            Token::Text(text) => Ok(Value::Text(text.clone())),
            Token::Sign("(") => {
                let value = self.expression()?;
                self.take_sign(&[")"]).ok_or("the Python expression has no \")\"; write one")?;
                Ok(value)
            }
            Token::Name(name) if self.take_sign(&["("]).is_some() => self.function(name),
            Token::Name(name) => (self.find)(name).ok_or_else(|| format!("unknown variable {name:?}")),
            other => Err(format!("unexpected {other} instead of a Python value")),
        }
    }

    /// Parses a function call, starting after its opening bracket.
    fn function(&mut self, name: &str) -> Result<Value, String> {
        let mut values = vec![self.expression()?.number()?];
        while self.take_sign(&[","]).is_some() {
            values.push(self.expression()?.number()?);
        }
        self.take_sign(&[")"]).ok_or("the Python call has no \")\"; write one")?;
        let value = match (name, &values[..]) {
            ("abs", [value]) => value.abs(),
            ("int", [value]) => value.trunc(),
            ("float", [value]) => *value,
            ("round", [value]) => value.round_ties_even(),
            ("min", values) => values.iter().copied().fold(f64::INFINITY, f64::min),
            ("max", values) => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            _ => {
                return Err(format!(
                    "the Python function {name}() is not supported; use abs, int, float, round, min or max"
                ));
            }
        };
        Ok(Value::Number(value))
    }
}

fn apply(left: f64, sign: &str, right: f64) -> Result<f64, String> {
    let bits = |both: fn(i64, i64) -> i64| both(left as i64, right as i64) as f64;
    Ok(match sign {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" | "//" | "%" if right == 0.0 => return Err("Python code divides by 0".to_owned()),
        "/" => left / right,
        "//" => (left / right).floor(),
        "%" => left - right * (left / right).floor(),
        "&" => bits(|left, right| left & right),
        "|" => bits(|left, right| left | right),
        "^" => bits(|left, right| left ^ right),
        "<<" | ">>" if !(0.0..63.0).contains(&right) => {
            return Err(format!(
                "Python code shifts by {right} bits; only shifts by 0 to 62 bits are supported"
            ));
        }
        "<<" => bits(|left, right| left.wrapping_shl(right as u32)),
        _ => bits(|left, right| left.wrapping_shr(right as u32)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<Value> {
        match name {
            "tcpi_snd_cwnd" => Some(Value::Number(10.0)),
            "tcpi_state" => Some(Value::Text("SYN-SENT".to_owned())),
            _ => None,
        }
    }

    fn check(code: &str) -> Result<(), EvaluationError> {
        run(code, &mut Variables::new(), &lookup)
    }

    #[test]
    fn failed_assertions_show_the_actual_values() {
        for code in [
            "assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd",
            "assert tcpi_snd_cwnd == 10; assert 9 <= tcpi_snd_cwnd <= 11, 'cwnd=%d' % tcpi_snd_cwnd",
            "\nassert (tcpi_snd_cwnd & 8) != 0 # a comment\nassert not tcpi_snd_cwnd & 1\n",
            "assert tcpi_state == SYN-SENT and tcpi_state == TCP_SYN_SENT",
            "x = 0x10 + 2 * 3; x += 1; print(x); assert x == 23 and -7 // 2 == -4 and 7 % 4 == 3",
            "assert abs(-3) == max(1, 3) and (1 == 2 or 1 << 3 == 8) and 1.5 > 1, \\\n 'long'",
            "assert TCP_CA_Recovery == 3 and TCPI_OPT_SACK | TCPI_OPT_WSCALE == 6",
        ] {
            assert_eq!(check(code), Ok(()), "{code}");
        }
        let fails = check("assert tcpi_snd_cwnd == 7, 'no'");
        assert_eq!(
            fails,
            Err(EvaluationError::Fails("expected tcpi_snd_cwnd == 7, but tcpi_snd_cwnd is 10".to_owned()))
        );
    }

    #[test]
    fn unknown_python_is_refused() {
        let deep = format!("assert {}1", "(".repeat(100_000));
        for (code, cure) in [
            ("import sys", "import starts an unsupported Python statement"),
            ("assert frob == 1", "unknown variable \"frob\""),
            ("assert 1 / 0", "divides by 0"),
            ("assert 'x' < 1", "is not a number"),
            ("assert f(1)", "the Python function f() is not supported"),
            ("assert (1", "has no \")\""),
            ("assert 1 1", "after the assertion"),
            ("assert 'x", "does not end"),
            ("assert 1 << 99", "shifts by 99"),
            ("assert", "is incomplete"),
            (&deep, "more than 64 levels deep"),
        ] {
            let Err(EvaluationError::Unsupported(problem)) = check(code) else { panic!("{cure}") };
            assert!(problem.contains(cure), "{problem}");
        }
    }
}
