//! Numbers of Tcl: integers while all operands are integers, otherwise floating-point numbers.

use std::cmp::Ordering;
use std::fmt;

/// The value of something that only a run measures, such as a window, and of expressions with it: not a
/// number.
pub(crate) const MEASURED: &str = "measured";

#[derive(Debug, Clone, Copy)]
/// A number of Tcl.
pub(super) enum Number {
    Whole(i64),
    Real(f64),
}

use Number::{Real, Whole};

impl Number {
    /// Parses a number.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(whole) = text.parse() {
            return Some(Whole(whole));
        }
        // Rust would also read "inf" and "nan".
        let numeric = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        text.parse().ok().filter(|real: &f64| numeric && real.is_finite()).map(Real)
    }

    /// Returns the number as floating point.
    pub const fn real(self) -> f64 {
        match self {
            Whole(whole) => whole as f64,
            Real(real) => real,
        }
    }

    /// Returns whether the number is true: not zero.
    pub fn truth(self) -> bool {
        self.real() != 0.0
    }

    /// Compares two numbers.
    pub fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Whole(a), Whole(b)) => a.cmp(&b),
            _ => self.real().total_cmp(&other.real()),
        }
    }

    /// Returns the result of an operator between two numbers, or why there is none.
    pub fn combine(self, operator: &str, other: Self) -> Result<Self, &'static str> {
        const TOO_LARGE: &str =
            "the result is too large for a whole number; write one operand with a point, as in 2.0";
        let result = match (self, other) {
            (_, divisor) if matches!(operator, "/" | "%") && !divisor.truth() => {
                return Err("division by zero; guard it with `if`");
            }
            (Whole(a), Whole(b)) => Whole(
                match operator {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    // Towards minus infinity, the remainder with the divisor's sign: expr(n).
                    "/" => a
                        .checked_div_euclid(b)
                        .map(|quotient| quotient - i64::from(b < 0 && a.wrapping_rem(b) != 0)),
                    "%" => a
                        .checked_rem(b)
                        .map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }),
                    "**" => u32::try_from(b).ok().and_then(|power| a.checked_pow(power)),
                    other => unreachable!("{other} is no operator of numbers"),
                }
                .ok_or(TOO_LARGE)?,
            ),
            _ => {
                let (a, b) = (self.real(), other.real());
                Real(match operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    "**" => a.powf(b),
                    _ => return Err("% needs whole numbers; use int() around its operands"),
                })
            }
        };
        if result.real().is_finite() { Ok(result) } else { Err("the result is not a finite number") }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Whole(whole) => whole.fmt(f),
            // With a point, so that it stays a real number.
            Real(real) => write!(f, "{real:?}"),
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
                Whole(a).combine("/", Whole(b)).unwrap().to_string(),
                quotient.to_string(),
                "{a} / {b}"
            );
            assert_eq!(Whole(a).combine("%", Whole(b)).unwrap().to_string(), rest.to_string(), "{a} % {b}");
        }
    }

    #[test]
    fn what_has_no_result_says_why() {
        assert!(Whole(1).combine("/", Whole(0)).is_err());
        assert!(Whole(i64::MIN).combine("/", Whole(-1)).is_err());
        assert!(Whole(10).combine("**", Whole(40)).is_err());
        assert!(Number::parse("inf").is_none() && Number::parse("1e999").is_none());
    }
}
