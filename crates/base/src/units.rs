//! Quantities as people write them: `"10ms"`, `"100Mbit"`, `"1%"`, `"128B"`, `"100/s"`, `"1000p"`.
//!
//! A number without a unit is refused: `delay = 10` means nothing.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Duration;

/// A quantity that could not be read, with what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseUnitError {
    text: String,
    expected: &'static str,
}

/// A bit rate in bit/s, decimal: `"100Mbit"`, `"400kbit"`, `"9600bit"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BitRate(u64);

/// A size in octets: `"128B"`, `"64kB"` (1000), `"64KiB"` (1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteCount(pub u64);

/// A probability between 0 and 1, written as a percentage: `"1%"`, `"0.5%"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ratio(f64);

/// Events a second: `"100/s"`, `"0.1/s"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Frequency(f64);

/// How much a queue holds: `"1000p"` (packets) or `"64KiB"` (octets).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum QueueLimit {
    /// At most this many packets.
    Packets(u64),
    /// At most this many octets.
    Bytes(u64),
}

impl BitRate {
    /// `bits` bit/s; zero is refused, for nothing would ever leave.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }
    /// bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// The time that `bytes` octets take, and the part of a nanosecond left over in units of 1/rate ns.
    ///
    /// Carrying the remainder into the next packet keeps a busy link exact for ever.
    pub const fn serialization(self, bytes: u64, carried: u64) -> (Duration, u64) {
        const NANOBITS: u64 = 8 * 1_000_000_000;
        // A packet fits into 64 bits, which divide much faster.
        if let Some(nanobits) = bytes.checked_mul(NANOBITS)
            && let Some(numerator) = nanobits.checked_add(carried)
        {
            return (Duration::from_nanos(numerator / self.0), numerator % self.0);
        }
        let numerator = bytes as u128 * NANOBITS as u128 + carried as u128;
        let rate = self.0 as u128;
        (Duration::from_nanos((numerator / rate) as u64), (numerator % rate) as u64)
    }
}

impl Ratio {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// A probability; `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }
    /// Between 0 and 1.
    pub const fn value(self) -> f64 {
        self.0
    }
    /// True for a probability of exactly 0.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl Frequency {
    /// `per_second` events a second; `None` unless positive and finite.
    pub fn new(per_second: f64) -> Option<Self> {
        (per_second.is_finite() && per_second > 0.0).then_some(Self(per_second))
    }
    /// Events a second.
    pub const fn per_second(self) -> f64 {
        self.0
    }
    /// The mean time between two events.
    pub fn period(self) -> Duration {
        Duration::from_secs_f64(1.0 / self.0)
    }
}

/// Splits `"12.5ms"` into its number and its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text[..text.len() - unit.len()].parse().ok()?;
    number.is_finite().then_some((number, unit.trim()))
}

/// Reads a number in one of `units`, each with its factor; the result is rounded to a whole number.
fn scaled(text: &str, units: &[(&str, f64)]) -> Option<u64> {
    let (number, unit) = split(text)?;
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let value = (number * factor).round();
    (value < 1.8e19).then_some(value as u64)
}

fn refuse<T>(value: Option<T>, text: &str, expected: &'static str) -> Result<T, ParseUnitError> {
    value.ok_or_else(|| ParseUnitError { text: text.to_owned(), expected })
}

const TIME_UNITS: [(&str, f64); 8] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
    ("h", 3600e9),
    ("d", 86_400e9),
];
const RATE_UNITS: [(&str, f64); 4] = [("bit", 1.0), ("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9)];
const SIZE_UNITS: [(&str, f64); 5] =
    [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("KiB", 1024.0), ("MiB", 1_048_576.0)];

impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        refuse(scaled(text, &TIME_UNITS), text, "a time such as \"10ms\" (units: ns, us, ms, s, min, h, d)")
            .map(Self::from_nanos)
    }
}
impl FromStr for BitRate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let rate = scaled(text, &RATE_UNITS).and_then(Self::from_bits_per_second);
        refuse(rate, text, "a bit rate above zero such as \"100Mbit\" (units: bit, kbit, Mbit, Gbit)")
    }
}
impl FromStr for ByteCount {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        refuse(scaled(text, &SIZE_UNITS), text, "a size such as \"128B\" (units: B, kB, MB, KiB, MiB)")
            .map(Self)
    }
}
impl FromStr for Ratio {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let ratio = split(text).filter(|(_, unit)| *unit == "%").and_then(|(n, _)| Self::new(n / 100.0));
        refuse(ratio, text, "a percentage from \"0%\" to \"100%\"")
    }
}
impl FromStr for Frequency {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let frequency = split(text).filter(|(_, unit)| *unit == "/s").and_then(|(n, _)| Self::new(n));
        refuse(frequency, text, "a rate above zero such as \"100/s\"")
    }
}
impl FromStr for QueueLimit {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let packets = scaled(text, &[("p", 1.0)]).map(Self::Packets);
        let limit = packets.or_else(|| scaled(text, &SIZE_UNITS).map(Self::Bytes));
        refuse(limit, text, "a queue limit such as \"1000p\" (packets) or \"64KiB\" (octets)")
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, bits) in [("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000)] {
            if self.0.is_multiple_of(bits) {
                return write!(f, "{}{unit}", self.0 / bits);
            }
        }
        write!(f, "{}bit", self.0)
    }
}
impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}B", self.0)
    }
}
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Rounded to 12 digits so that 0.029 prints as 2.9 and not as 2.9000000000000004.
        write!(f, "{}%", (self.0 * 1e14).round() / 1e12)
    }
}
impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(bytes) => write!(f, "{bytes}B"),
        }
    }
}

/// serde reads and writes every quantity as its text.
macro_rules! text_form {
    ($($unit:ty),*) => {$(
        impl TryFrom<String> for $unit {
            type Error = ParseUnitError;
            fn try_from(text: String) -> Result<Self, ParseUnitError> {
                text.parse()
            }
        }
        impl From<$unit> for String {
            fn from(value: $unit) -> String {
                value.to_string()
            }
        }
    )*};
}
text_form!(Duration, BitRate, ByteCount, Ratio, Frequency, QueueLimit);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_round_trip_through_text() {
        for text in ["10ms", "1500us", "60s", "1ns"] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        }
        for text in ["100Mbit", "400kbit", "9600bit"] {
            assert_eq!(text.parse::<BitRate>().unwrap().to_string(), text);
        }
        for text in ["0%", "0.5%", "2.9%", "100%"] {
            assert_eq!(text.parse::<Ratio>().unwrap().to_string(), text);
        }
        assert_eq!("64KiB".parse::<QueueLimit>(), Ok(QueueLimit::Bytes(65536)));
        assert_eq!("6p".parse::<QueueLimit>(), Ok(QueueLimit::Packets(6)));
        assert_eq!("0.1/s".parse::<Frequency>().unwrap().period(), Duration::from_secs(10));
    }

    #[test]
    fn numbers_without_a_unit_are_refused() {
        assert!("10".parse::<Duration>().is_err());
        assert!("0.01".parse::<Ratio>().is_err());
        assert!("101%".parse::<Ratio>().is_err());
        assert!("-1ms".parse::<Duration>().is_err());
        assert!("0Mbit".parse::<BitRate>().is_err());
        assert!("100 Mbps".parse::<BitRate>().is_err());
        assert!("0/s".parse::<Frequency>().is_err());
    }

    #[test]
    fn serialization_carries_its_remainder() {
        let rate: BitRate = "3bit".parse().unwrap();
        let (first, carried) = rate.serialization(1, 0);
        let (second, carried) = rate.serialization(1, carried);
        let (third, carried) = rate.serialization(1, carried);
        assert_eq!(first + second + third, Duration::from_secs(8));
        assert_eq!(carried, 0);
        let rate: BitRate = "100Gbit".parse().unwrap();
        assert_eq!(
            rate.serialization(4_000_000_000_000, 1),
            (Duration::from_secs(320), 1),
            "more than 64 bits"
        );
    }
}
