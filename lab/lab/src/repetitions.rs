//! The number of repetitions: fixed, or until the mean is precise enough.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize};

/// A number of repetitions: `10`, or `"5..40"` for at least 5, and up to 40 if a precision requires more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Repetitions {
    /// Minimum number of repetitions, which are always performed.
    pub min: u32,
    /// Maximum number of repetitions.
    pub max: u32,
}

/// The largest number of repetitions; a larger number is considered a mistake.
const MAX_REPETITIONS: u32 = 1_000_000;

impl Repetitions {
    /// Creates a number of repetitions that does not depend on the results.
    pub const fn fixed(count: u32) -> Self {
        Self { min: count, max: count }
    }

    /// Returns the number of repetitions to reach next if `done` repetitions were not precise enough. Adds half as
    /// many again, to keep all cores busy.
    pub fn next_target(self, done: u32) -> u32 {
        (done + done.div_ceil(2)).clamp(self.min, self.max)
    }
}

impl fmt::Display for Repetitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{}..{}", self.min, self.max) }
    }
}

impl From<Repetitions> for String {
    fn from(repetitions: Repetitions) -> String {
        repetitions.to_string()
    }
}

impl FromStr for Repetitions {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.split_once("..") {
            None => text.parse().ok().map(Self::fixed),
            Some((min, max)) => min.parse().ok().zip(max.parse().ok()).map(|(min, max)| Self { min, max }),
        };
        parsed.filter(|r| 1 <= r.min && r.min <= r.max && r.max <= MAX_REPETITIONS).ok_or_else(|| {
            format!(
                "{text:?} is not a number of repetitions such as 10 or \"5..40\", from 1 to {MAX_REPETITIONS}"
            )
        })
    }
}

impl JsonSchema for Repetitions {
    fn schema_name() -> Cow<'static, str> {
        "Repetitions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^\d+(\.\.\d+)?$", "description": "a range such as \"5..40\"" },
        ] })
    }
}

impl<'de> Deserialize<'de> for Repetitions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrRange;
        impl Visitor<'_> for NumberOrRange {
            type Value = Repetitions;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of repetitions such as 10 or \"5..40\"")
            }
            fn visit_i64<E: de::Error>(self, count: i64) -> Result<Repetitions, E> {
                self.visit_str(&count.to_string())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Repetitions, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(NumberOrRange)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges_are_read() {
        assert_eq!("10".parse(), Ok(Repetitions::fixed(10)));
        assert_eq!("5..40".parse(), Ok(Repetitions { min: 5, max: 40 }));
        for wrong in ["0", "5..4", "x", "-1", "1..9999999"] {
            assert!(wrong.parse::<Repetitions>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn batches_grow_by_half_up_to_the_limit() {
        let repetitions = Repetitions { min: 5, max: 40 };
        let mut done = vec![repetitions.min];
        while *done.last().unwrap() < 40 {
            done.push(repetitions.next_target(*done.last().unwrap()));
        }
        assert_eq!(done, [5, 8, 12, 18, 27, 40]);
    }
}
