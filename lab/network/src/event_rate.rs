//! The bit rate that an event sets, which may be 0, unlike that of a link at the start.

use std::fmt;
use std::str::FromStr;

use hol_base::{BitRate, ParseUnitError};
use serde::de::{self, Visitor};
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

    /// Returns the rate, unless it is 0.
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

    /// Parses a bit rate. Zero with any unit of a rate is zero, and so is a bare `0`.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_zero = text[..text.len() - unit.len()].parse() == Ok(0.0);
        let is_unit = unit.is_empty() || format!("1{unit}").parse::<BitRate>().is_ok();
        if is_zero && is_unit { Ok(Self::Zero) } else { text.parse().map(Self::Positive) }
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
        struct Text;
        impl Visitor<'_> for Text {
            type Value = EventRate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a bit rate such as \"100Mbit\" (units: bit, kbit, Mbit, Gbit)")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<EventRate, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for text in ["", ".", "0s", "0x", "-0bit", "5", "0Mbps"] {
            assert!(text.parse::<EventRate>().is_err(), "{text}");
        }
    }
}
