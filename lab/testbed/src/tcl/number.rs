//! Numbers of Tcl: integers while all operands are integers, otherwise floating-point numbers.

use std::cmp::Ordering;
use std::fmt;

use super::WordError;
use super::interpreter::Stop;

/// The result of reading a variable whose value only a run can determine, such as a window, and of expressions that
/// contain the variable. It is not a number.
pub(crate) const MEASURED_VALUE: &str = "measured";

const TOO_LARGE: &str =
    "the result is too large for a whole number; write one operand with a point, as in 2.0";

/// Returns the error for an integer that Tcl supports and hol does not.
pub(super) fn too_large(at: usize) -> Stop {
    Stop::Limit(WordError { at, problem: TOO_LARGE.to_owned() })
}

/// A number in a Tcl script.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

use Number::{Real, Whole};

impl Number {
    /// Parses a number such as `12`, `014`, `0xc`, `0b1100` or `1.2e1`. A leading zero means octal, as in expr(n) of
    /// Tcl 8.6.
    pub fn parse(text: &str) -> Option<Self> {
        let text = trimmed(text);
        // Most numbers are decimal.
        if !text.trim_start_matches(['+', '-']).starts_with('0')
            && let Ok(whole) = text.parse()
        {
            return Some(Whole(whole));
        }
        if let Some((sign, digits, radix)) = split_whole(text) {
            return i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Whole);
        }
        // Rust would also read "inf" and "nan", and Tcl reads no 08.
        let is_numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let is_real = is_numeric && text.contains(['.', 'e', 'E']);
        text.parse().ok().filter(|real: &f64| is_real && real.is_finite()).map(Real)
    }

    /// Parses a number; returns an error if the text is not one. `catch` catches an error of Tcl, but not an error
    /// about a feature that hol lacks.
    pub fn read(text: &str, at: usize) -> Result<Self, Stop> {
        if let Some(number) = Self::parse(text) {
            return Ok(number);
        }
        Self::refuse_unsupported(text, at)?;
        let problem = format!("{text:?} is not a number; compare text with eq and ne");
        Err(WordError { at, problem }.into())
    }

    /// Returns an error for a text that is a number in Tcl but not supported here: a number of more than 64 bits,
    /// infinity, NaN, or a value that is known only during a run.
    pub fn refuse_unsupported(text: &str, at: usize) -> Result<(), Stop> {
        let is_odd = |text: &str| text.parse().is_ok_and(|real: f64| !real.is_finite());
        let problem = match trimmed(text) {
            MEASURED_VALUE => {
                "this depends on results of the run, but a script is evaluated before the run".to_owned()
            }
            own if split_whole(own).is_some() && Self::parse(own).is_none() => {
                format!("{text} has more than 64 bits, which is not supported; write it with a point")
            }
            own if is_odd(own) => format!("{text} is not a finite number, which is not supported"),
            _ => return Ok(()),
        };
        Err(Stop::Limit(WordError { at, problem }))
    }

    /// Returns a floating-point result; an error if it is infinite, which Tcl supports but hol does not.
    pub fn finite(real: f64, at: usize) -> Result<Self, Stop> {
        let problem = "the result is not a finite number".to_owned();
        match real {
            _ if real.is_finite() => Ok(Real(real)),
            _ if real.is_nan() => Err(WordError { at, problem }.into()),
            _ => Err(Stop::Limit(WordError { at, problem })),
        }
    }

    /// Returns the number as floating point.
    pub const fn to_f64(self) -> f64 {
        match self {
            Whole(whole) => whole as f64,
            Real(real) => real,
        }
    }

    /// Returns whether the number is true: not zero.
    pub fn is_true(self) -> bool {
        self.to_f64() != 0.0
    }

    /// Converts a floating-point number to an integer; `None` if it is too large.
    pub fn from_real(real: f64) -> Option<Self> {
        const INTEGER_LIMIT: f64 = i64::MAX as f64;
        (-INTEGER_LIMIT..INTEGER_LIMIT).contains(&real).then_some(Whole(real as i64))
    }

    /// Returns the negative of the number; `None` if it is too large.
    pub fn negated(self) -> Option<Self> {
        match self {
            Whole(whole) => whole.checked_neg().map(Whole),
            Real(real) => Some(Real(-real)),
        }
    }

    /// Compares two numbers exactly, even an integer with a floating-point number.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Whole(a), Whole(b)) => a.cmp(&b),
            // All numbers are finite; -0.0 equals 0.0.
            (Real(a), Real(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            (Whole(a), Real(b)) => compare_exactly(a, b),
            (Real(a), Whole(b)) => compare_exactly(b, a).reverse(),
        }
    }

    /// Returns the result of an operator applied to two numbers, or an error.
    pub fn combine(self, operator: &str, other: Self, at: usize) -> Result<Self, Stop> {
        let wrong = |problem: &str| Err(WordError { at, problem: problem.to_owned() }.into());
        match (self, other) {
            (Whole(_), Whole(0)) if matches!(operator, "/" | "%") => {
                wrong("division by zero; guard it with `if`")
            }
            (Whole(a), Whole(b)) => Ok(Whole(
                match operator {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    // Tcl rounds the quotient towards minus infinity, so the remainder has the sign of the divisor:
                    // expr(n).
                    "/" => a
                        .checked_div_euclid(b)
                        .map(|quotient| quotient - i64::from(b < 0 && a.wrapping_rem(b) != 0)),
                    "%" => {
                        let rest = a.wrapping_rem(b);
                        Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
                    }
                    "&" => Some(a & b),
                    "|" => Some(a | b),
                    "^" => Some(a ^ b),
                    "<<" | ">>" if b < 0 => return wrong("a shift by a negative number"),
                    "<<" if a == 0 => Some(0),
                    "<<" => u32::try_from(b)
                        .ok()
                        .and_then(|b| a.checked_shl(b).filter(|shifted| *shifted >> b == a)),
                    ">>" => Some(a >> b.min(63)),
                    "**" if b < 0 && a == 0 => return wrong("zero has no negative power"),
                    "**" if b < 0 => Some(if matches!(a, -1 | 1) { a.pow(u32::from(b % 2 != 0)) } else { 0 }),
                    // Powers of 0, 1 and -1 are never too large.
                    "**" if (-1..=1).contains(&a) => Some(a.pow((b % 2 + 2 * i64::from(b > 0)) as u32)),
                    "**" => u32::try_from(b).ok().and_then(|power| a.checked_pow(power)),
                    other => unreachable!("{other} is not an operator on numbers"),
                }
                .ok_or_else(|| too_large(at))?,
            )),
            _ => {
                let (a, b) = (self.to_f64(), other.to_f64());
                let result = match operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "**" if a == 0.0 && b < 0.0 => return wrong("zero has no negative power"),
                    "**" => a.powf(b),
                    _ => {
                        let problem =
                            format!("{operator} needs whole numbers; use int() around its operands");
                        return wrong(&problem);
                    }
                };
                Self::finite(result, at)
            }
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole(whole) => whole.fmt(f),
            // The text has a point or an exponent, so that it is read as a real number again: tcl_precision of 0.
            Real(real) => {
                let (digits, exponent) = split(&format!("{real:e}"));
                match (-4..=16).contains(&exponent) {
                    true if real.fract() == 0.0 => write!(f, "{real}.0"),
                    true => write!(f, "{real}"),
                    false => write!(f, "{digits}e{exponent:+}"),
                }
            }
        }
    }
}

/// Compares an integer with a floating-point number, without rounding either of them.
fn compare_exactly(whole: i64, real: f64) -> Ordering {
    match Number::from_real(real) {
        // If the whole parts are equal, the fraction of the real number decides.
        Some(Whole(near)) => {
            whole.cmp(&near).then(0.0_f64.partial_cmp(&real.fract()).unwrap_or(Ordering::Equal))
        }
        _ if real < 0.0 => Ordering::Greater,
        _ => Ordering::Less,
    }
}

/// Returns a text without the white space around it, as `TclIsSpaceProc` of Tcl 8.6 defines it.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c| matches!(c, ' ' | '\t'..='\r'))
}

/// Splits an integer into its sign, its digits and its radix.
fn split_whole(text: &str) -> Option<(&str, &str, u32)> {
    let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    let is_whole = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    is_whole.then_some((sign, digits, radix))
}

fn split(scientific: &str) -> (String, i32) {
    let (digits, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

/// Formats a number as `%e` of C does, for example `4.483996e-01` with a precision of six digits after the decimal
/// point.
pub(crate) fn format_scientific(value: f64, precision: usize) -> String {
    let (digits, exponent) = split(&format!("{value:.precision$e}"));
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Formats a number as `%g` of C does, with at most `precision` significant digits.
pub(crate) fn format_general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let (_, exponent) = split(&format!("{value:.*e}", precision - 1));
    let trimmed = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    match (-4..precision as i32).contains(&exponent) {
        true => trimmed(&format!("{value:.*}", (precision as i32 - 1 - exponent) as usize)),
        false => {
            let text = format_scientific(value, precision - 1);
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, ""));
            format!("{}e{exponent}", trimmed(digits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor() {
        for (a, b, quotient, rest) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, -2, -3, 0)]
        {
            assert_eq!(
                Whole(a).combine("/", Whole(b), 0).unwrap().to_string(),
                quotient.to_string(),
                "{a} / {b}"
            );
            assert_eq!(
                Whole(a).combine("%", Whole(b), 0).unwrap().to_string(),
                rest.to_string(),
                "{a} % {b}"
            );
        }
    }

    #[test]
    fn invalid_operations_and_numbers_are_refused() {
        assert!(Whole(1).combine("/", Whole(0), 0).is_err());
        assert!(Whole(i64::MIN).combine("/", Whole(-1), 0).is_err());
        assert!(Whole(10).combine("**", Whole(40), 0).is_err());
        assert!(["inf", "1e999", "08", "0x", "1 2", ""].iter().all(|text| Number::parse(text).is_none()));
    }

    #[test]
    fn numbers_are_written_as_in_c() {
        let written = [
            format_scientific(0.448_399_6, 6),
            format_scientific(-1.268_476, 6),
            format_general(0.486_208_412, 6),
        ];
        assert_eq!(written, ["4.483996e-01", "-1.268476e+00", "0.486208"]);
    }
}
