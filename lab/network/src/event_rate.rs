//! The bit rate that an event sets. Unlike the initial rate of a link, it may be 0.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use hol_base::{BitRate, ParseUnitError, deserialize_text};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The bit rate that an event sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRate {
    /// The link sends nothing, and packets wait in its queue: `"0bit"`.
    Zero,
    /// The link sends at this rate.
    Positive(BitRate),
}

impl EventRate {
    /// Creates a rate of `bits` bit/s.
    pub fn from_bits_per_second(bits: u64) -> Self {
        BitRate::from_bits_per_second(bits).map_or(Self::Zero, Self::Positive)
    }

    /// Returns the rate in bit/s.
    pub const fn bits_per_second(self) -> u64 {
        match self {
            Self::Zero => 0,
            Self::Positive(rate) => rate.bits_per_second(),
        }
    }

    /// Returns the rate; `None` if it is 0.
    pub const fn positive(self) -> Option<BitRate> {
        match self {
            Self::Zero => None,
            Self::Positive(rate) => Some(rate),
        }
    }
}

impl From<BitRate> for EventRate {
    fn from(rate: BitRate) -> Self {
        Self::Positive(rate)
    }
}

impl FromStr for EventRate {
    type Err = ParseUnitError;

    /// Parses a bit rate. Zero may have any unit of a bit rate, or none.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        BitRate::parse_or_zero(text).map(|rate| rate.map_or(Self::Zero, Self::Positive))
    }
}

impl fmt::Display for EventRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("0bit"),
            Self::Positive(rate) => rate.fmt(f),
        }
    }
}

impl Serialize for EventRate {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for EventRate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize_text(from, BitRate::OR_ZERO_SYNTAX)
    }
}

impl JsonSchema for EventRate {
    fn schema_name() -> Cow<'static, str> {
        "EventRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": BitRate::OR_ZERO_SYNTAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSpec;

    #[test]
    fn zero_is_written_with_any_unit_of_a_rate() {
        for text in ["0bit", "0Mbit", "0 kbit", "0", "0.0", "0.00Gbit", "00"] {
            assert_eq!(text.parse(), Ok(EventRate::Zero), "{text}");
        }
        assert_eq!(EventRate::Zero.to_string().parse(), Ok(EventRate::Zero));
        let rate: BitRate = "500bit".parse().unwrap();
        for text in ["500bit", "0.5kbit"] {
            assert_eq!(text.parse(), Ok(EventRate::Positive(rate)), "{text}");
        }
        for (text, words) in [
            ("", "is not a bit rate such as \"100Mbit\", or \"0bit\""),
            (".", "is not a bit rate such as"),
            ("0s", "is not a bit rate such as"),
            ("0x", "is not a bit rate such as"),
            ("-0bit", "is not a bit rate such as"),
            ("5", "is not a bit rate such as"),
            ("0.4bit", "is not a bit rate such as"),
            ("0Mbps", "is ambiguous"),
            ("2000Tbit", "is more than the maximum"),
        ] {
            let problem = text.parse::<EventRate>().unwrap_err().to_string();
            assert!(problem.contains(words) && !problem.contains("above zero"), "{text}: {problem}");
        }
        let other_type = toml::from_str::<EventSpec>("at = '1s'\nrate = 5").unwrap_err().to_string();
        assert!(other_type.contains("expected a bit rate such as \"100Mbit\", or \"0bit\""), "{other_type}");
        let schema = schemars::schema_for!(EventSpec).as_value().to_string();
        assert!(schema.contains("or \\\"0bit\\\"") && !schema.contains("above zero"), "{schema}");
    }
}
