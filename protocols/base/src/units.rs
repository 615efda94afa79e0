//! Quantities with units: `"10ms"`, `"100Mbit"`, `"1%"`, `"128B"`, `"100/s"`, `"1000p"`.
//!
//! A number without a unit is rejected: `delay = 10` means nothing. The unit names of `tc` are accepted if
//! unambiguous (`100mbit`, `10msecs`). For names that `tc` uses in another sense than most people (`mbps`,
//! `kb`), the error gives both readings.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::Duration;
use crate::wording::percentage;

/// A quantity that could not be parsed, and the reason, which names the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} {problem}")]
pub struct ParseUnitError {
    text: String,
    problem: String,
}

/// A bit rate in bit/s, decimal: `"100Mbit"`, `"400kbit"`, `"9600bit"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct BitRate(u64);

/// A size in octets: `"128B"`, `"64kB"` (1000), `"64KiB"` (1024).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "String")]
pub struct ByteCount(pub u64);

/// A probability between 0 and 1, written as a percentage: `"1%"`, `"0.5%"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize)]
#[serde(into = "String")]
pub struct Ratio(f64);

/// A frequency in events per second: `"100/s"`, `"0.1/s"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(into = "String")]
pub struct Frequency(f64);

/// The capacity of a queue: `"1000p"` (packets) or `"64KiB"` (octets).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum QueueLimit {
    /// The queue holds at most this many packets.
    Packets(u64),
    /// The queue holds at most this many octets.
    Bytes(u64),
}

impl BitRate {
    /// Creates a rate of `bits` bit/s; `None` for zero, because nothing would ever be sent.
    pub const fn from_bits_per_second(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }
    /// Returns the rate in bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// Returns the time to send `bytes` octets, and the remaining part of a nanosecond in units of 1/rate ns.
    ///
    /// The caller passes this remainder as `carried` with the next packet, so rounding errors do not add up on a
    /// busy link.
    pub const fn serialization_time(self, bytes: u64, carried: u64) -> (Duration, u64) {
        const NANOBITS_PER_OCTET: u64 = 8 * 1_000_000_000;
        // The bits of a packet fit into 64 bits, and a 64-bit division is much faster.
        if let Some(nanobits) = bytes.checked_mul(NANOBITS_PER_OCTET)
            && let Some(numerator) = nanobits.checked_add(carried)
        {
            return (Duration::from_nanos(numerator / self.0), numerator % self.0);
        }
        let numerator = bytes as u128 * NANOBITS_PER_OCTET as u128 + carried as u128;
        let rate = self.0 as u128;
        (Duration::from_nanos((numerator / rate) as u64), (numerator % rate) as u64)
    }
}

impl Ratio {
    /// A probability of zero.
    pub const ZERO: Self = Self(0.0);
    /// Creates a probability; `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }
    /// Returns the probability as a number between 0 and 1.
    pub const fn value(self) -> f64 {
        self.0
    }
    /// Returns true if the probability is exactly 0.
    pub fn is_zero(self) -> bool {
        self.0 == 0.0
    }
}

impl Frequency {
    /// The allowed range in events per second. Its limits result from the resolution of times, 1 ns, and from the
    /// longest possible run.
    const FREQUENCY_RANGE: std::ops::RangeInclusive<f64> = 1e-10..=1e9;

    /// Creates a rate of `per_second` events per second; `None` outside 1e-10 to 1e9.
    pub fn new(per_second: f64) -> Option<Self> {
        Self::FREQUENCY_RANGE.contains(&per_second).then_some(Self(per_second))
    }
    /// Returns the number of events per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }
    /// Returns the mean time between two events.
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

/// How quantities of one kind are parsed: the units and the range.
struct Scale {
    /// Names of units, each with its factor to the base unit.
    units: &'static [(&'static str, f64)],
    /// Ambiguous units in lower case, each with two factors: the one that most people mean, and the one of `tc`.
    ambiguous: &'static [(&'static str, f64, f64)],
    /// Whether units are case-insensitive; false if case distinguishes units.
    any_case: bool,
    /// The maximum in the base unit, and its text form.
    max: (f64, &'static str),
    /// Description of the expected text form, for error messages.
    expected: &'static str,
    /// Formats a quantity in the base unit as text.
    show: fn(u64) -> String,
}

impl Scale {
    /// Parses `text` as a quantity; returns it in the base unit, rounded to an integer.
    fn read(&self, text: &str) -> Result<u64, ParseUnitError> {
        let refuse = |problem| Err(ParseUnitError { text: text.to_owned(), problem });
        let Some((number, unit)) = split(text) else { return refuse(format!("is not {}", self.expected)) };
        let lower = unit.to_lowercase();
        let same = |name: &str| name == unit || (self.any_case && name.to_lowercase() == lower);
        if let Some((_, factor)) = self.units.iter().find(|(name, _)| same(name)) {
            let (value, (max, written)) = ((number * factor).round(), self.max);
            return match value <= max {
                true => Ok(value as u64),
                false => refuse(format!("is more than the maximum, {written}")),
            };
        }
        match self.ambiguous.iter().find(|(name, ..)| *name == lower) {
            Some((_, usual, tc)) => {
                let [usual, tc] = [usual, tc].map(|factor| (self.show)((number * factor).round() as u64));
                refuse(format!("is ambiguous: write {usual:?}, or {tc:?} for its meaning in tc"))
            }
            None => {
                let meant = self.longer_units(&lower);
                let meant: Vec<String> = meant.iter().map(|name| format!("\"{number}{name}\"")).collect();
                let cure =
                    if meant.is_empty() { String::new() } else { format!("; write {}", meant.join(" or ")) };
                refuse(format!("is not {}{cure}", self.expected))
            }
        }
    }

    /// Returns the units that begin with `short` (in lower case), only one spelling of each unit.
    fn longer_units(&self, short: &str) -> Vec<&'static str> {
        let mut found: Vec<(&'static str, f64)> = Vec::new();
        for (name, factor) in self.units {
            let is_known = found.iter().any(|(_, known)| known == factor);
            if !short.is_empty() && !is_known && name.to_lowercase().starts_with(short) {
                found.push((name, *factor));
            }
        }
        found.into_iter().map(|(name, _)| name).collect()
    }
}

fn refuse<T>(value: Option<T>, text: &str, expected: &str) -> Result<T, ParseUnitError> {
    value.ok_or_else(|| ParseUnitError { text: text.to_owned(), problem: format!("is not {expected}") })
}

const TIME_SCALE: Scale = Scale {
    units: &[
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("min", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
        ("nsec", 1.0),
        ("nsecs", 1.0),
        ("usec", 1e3),
        ("usecs", 1e3),
        ("msec", 1e6),
        ("msecs", 1e6),
        ("sec", 1e9),
        ("secs", 1e9),
    ],
    ambiguous: &[],
    any_case: false,
    // 100 years: the sum of several such times still fits into 64 bits of nanoseconds.
    max: (36_500.0 * 86_400e9, "36500d"),
    expected: "a time such as \"10ms\" (units: ns, us, ms, s, min, h, d)",
    show: |nanos| Duration::from_nanos(nanos).to_string(),
};
const RATE_SCALE: Scale = Scale {
    units: &[
        ("bit", 1.0),
        ("kbit", 1e3),
        ("Mbit", 1e6),
        ("Gbit", 1e9),
        ("Tbit", 1e12),
        ("Kibit", 1024.0),
        ("Mibit", 1_048_576.0),
        ("Gibit", 1_073_741_824.0),
    ],
    ambiguous: &[
        ("bps", 1.0, 8.0),
        ("kbps", 1e3, 8e3),
        ("mbps", 1e6, 8e6),
        ("gbps", 1e9, 8e9),
        ("tbps", 1e12, 8e12),
    ],
    any_case: true,
    max: (1e15, "1000Tbit"),
    expected: "a bit rate above zero such as \"100Mbit\" (units: bit, kbit, Mbit, Gbit)",
    show: |bits| BitRate(bits).to_string(),
};
const SIZE_SCALE: Scale = Scale {
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
    ambiguous: &[
        ("k", 1e3, 1024.0),
        ("kb", 1e3, 1024.0),
        ("m", 1e6, 1_048_576.0),
        ("mb", 1e6, 1_048_576.0),
        ("g", 1e9, 1_073_741_824.0),
        ("gb", 1e9, 1_073_741_824.0),
        ("kbit", 125.0, 128.0),
        ("mbit", 125e3, 131_072.0),
        ("gbit", 125e6, 134_217_728.0),
    ],
    any_case: false,
    max: (1e12, "1000GB"),
    expected: "a size such as \"128B\" (units: B, kB, MB, KiB, MiB)",
    show: |octets| ByteCount(octets).to_string(),
};

impl FromStr for Duration {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        TIME_SCALE.read(text).map(Self::from_nanos)
    }
}
impl FromStr for BitRate {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        refuse(Self::from_bits_per_second(RATE_SCALE.read(text)?), text, RATE_SCALE.expected)
    }
}
impl BitRate {
    /// Parses a bit rate that may be 0, with any unit or none; `None` for 0.
    pub fn parse_or_zero(text: &str) -> Result<Option<Self>, ParseUnitError> {
        const SCALE: Scale = Scale { expected: BitRate::OR_ZERO_SYNTAX, ..RATE_SCALE };
        let number = split(text);
        if number == Some((0.0, "")) {
            return Ok(None);
        }
        let rate = Self::from_bits_per_second(SCALE.read(text)?);
        let is_zero = number.is_some_and(|(number, _)| number == 0.0);
        if is_zero { Ok(None) } else { refuse(rate, text, SCALE.expected).map(Some) }
    }

    /// The syntax of a bit rate that may be 0, for error messages and schemas.
    pub const OR_ZERO_SYNTAX: &str =
        "a bit rate such as \"100Mbit\", or \"0bit\" (units: bit, kbit, Mbit, Gbit)";
}
impl FromStr for ByteCount {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        SIZE_SCALE.read(text).map(Self)
    }
}
impl FromStr for Ratio {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let ratio = split(text).filter(|(_, unit)| *unit == "%").and_then(|(n, _)| Self::new(n / 100.0));
        let is_bare = text.parse::<f64>().is_ok_and(|number| (0.0..=100.0).contains(&number));
        let cure = if is_bare { format!("; write {}", percentage(text)) } else { String::new() };
        refuse(ratio, text, &format!("{RATIO_SYNTAX}{cure}"))
    }
}
impl FromStr for Frequency {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let per_second = split(text).filter(|(_, unit)| *unit == "/s").map(|(number, _)| number);
        match per_second {
            Some(number) if number > *Self::FREQUENCY_RANGE.end() => Err(ParseUnitError {
                text: text.to_owned(),
                problem:
                    "is more than once per nanosecond, the resolution of time in hol; use at most \"1000000000/s\""
                        .to_owned(),
            }),
            _ => {
                let is_bare = text.parse::<f64>().is_ok_and(|number| Self::new(number).is_some());
                let cure = if is_bare { format!("; write \"{text}/s\"") } else { String::new() };
                refuse(per_second.and_then(Self::new), text, &format!("{FREQUENCY_SYNTAX}{cure}"))
            }
        }
    }
}
impl FromStr for QueueLimit {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        match split(text) {
            Some((packets, "p")) if packets.round() <= 1e12 => Ok(Self::Packets(packets.round() as u64)),
            Some((_, unit)) if !unit.is_empty() && unit != "p" => {
                SIZE_SCALE.read(text).map(Self::Bytes).map_err(|error| {
                    let unknown = error.problem.starts_with("is not ");
                    if unknown {
                        refuse::<Self>(None, text, QUEUE_SYNTAX)
                            .expect_err("refusing without a value returns an error")
                    } else {
                        error
                    }
                })
            }
            _ => refuse(None, text, QUEUE_SYNTAX),
        }
    }
}

const RATIO_SYNTAX: &str = "a percentage from \"0%\" to \"100%\"";
const FREQUENCY_SYNTAX: &str = "a rate above zero such as \"100/s\"";
const QUEUE_SYNTAX: &str = "a queue limit such as \"1000p\" (packets) or \"64KiB\" (octets)";

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

/// Deserializes a quantity from text. If the value has another type, the error names the expected form.
pub fn deserialize_text<'de, T: FromStr<Err: fmt::Display>, D: Deserializer<'de>>(
    from: D,
    expected: &'static str,
) -> Result<T, D::Error> {
    struct Text<T>(&'static str, PhantomData<T>);
    impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            text.parse().map_err(E::custom)
        }
    }
    from.deserialize_str(Text(expected, PhantomData))
}

/// Makes serde read and write a quantity as text, and names the expected form in errors and in the schema.
macro_rules! text_form {
    ($($unit:ty: $expected:expr,)*) => {$(
        impl<'de> Deserialize<'de> for $unit {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                deserialize_text(from, $expected)
            }
        }
        impl JsonSchema for $unit {
            fn schema_name() -> Cow<'static, str> {
                stringify!($unit).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $expected })
            }
        }
        impl From<$unit> for String {
            fn from(value: $unit) -> String {
                value.to_string()
            }
        }
    )*};
}
text_form! {
    Duration: TIME_SCALE.expected,
    BitRate: RATE_SCALE.expected,
    ByteCount: SIZE_SCALE.expected,
    Ratio: RATIO_SYNTAX,
    Frequency: FREQUENCY_SYNTAX,
    QueueLimit: QUEUE_SYNTAX,
}

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
        let problem = |text: &str| text.parse::<Ratio>().unwrap_err().to_string();
        assert!(problem("0.01").ends_with("; write \"1%\" for a share of 0.01"), "{}", problem("0.01"));
        assert!(problem("1").ends_with("; write \"1%\""), "{}", problem("1"));
        assert!("101%".parse::<Ratio>().is_err());
        assert!("-1ms".parse::<Duration>().is_err());
        assert!("0Mbit".parse::<BitRate>().is_err());
        assert!("100 Mbps".parse::<BitRate>().is_err());
        assert!("0/s".parse::<Frequency>().is_err());
        assert!("10".parse::<QueueLimit>().is_err());
    }

    #[test]
    fn shortened_units_are_completed() {
        let cure = |problem: ParseUnitError| problem.to_string().split("; write ").nth(1).map(str::to_owned);
        for (text, expected) in [
            ("10Mb", Some("\"10Mbit\"")),
            ("2.5m", Some("\"2.5Mbit\" or \"2.5Mibit\"")),
            ("10MB/s", None),
            ("10", None),
        ] {
            assert_eq!(text.parse::<BitRate>().map_err(cure).unwrap_err().as_deref(), expected, "{text}");
        }
        let time = "10m".parse::<Duration>().map_err(cure);
        assert_eq!(time.unwrap_err().as_deref(), Some("\"10ms\" or \"10min\""));
        let rate = "100".parse::<Frequency>().map_err(cure);
        assert_eq!(rate.unwrap_err().as_deref(), Some("\"100/s\""));
    }

    #[test]
    fn unambiguous_units_of_tc_are_accepted() {
        for (text, expected) in
            [("100mbit", "100Mbit"), ("1GBIT", "1Gbit"), ("64kibit", "65536bit"), ("2tbit", "2000Gbit")]
        {
            assert_eq!(text.parse::<BitRate>().map(String::from).as_deref(), Ok(expected));
        }
        for (text, expected) in [("10msecs", "10ms"), ("7usec", "7us"), ("2secs", "2s")] {
            assert_eq!(text.parse::<Duration>().map(String::from).as_deref(), Ok(expected));
        }
        for (problem, both) in [
            ("100mbps".parse::<BitRate>().map(String::from), ["100Mbit", "800Mbit"]),
            ("1.5Kbps".parse::<BitRate>().map(String::from), ["1500bit", "12kbit"]),
            ("64kb".parse::<ByteCount>().map(String::from), ["64000B", "65536B"]),
            ("2KB".parse::<QueueLimit>().map(String::from), ["2000B", "2048B"]),
            ("8kbit".parse::<ByteCount>().map(String::from), ["1000B", "1024B"]),
        ] {
            let problem = problem.unwrap_err().to_string();
            assert!(both.iter().all(|reading| problem.contains(reading)), "{problem}");
        }
    }

    #[test]
    fn errors_for_too_large_quantities_name_the_limit() {
        let time = "1000000d".parse::<Duration>().unwrap_err().to_string();
        assert_eq!(time, "\"1000000d\" is more than the maximum, 36500d");
        let rate = "99999999999/s".parse::<Frequency>().unwrap_err().to_string();
        assert!(rate.contains("at most \"1000000000/s\""), "{rate}");
        assert!(
            "99999999999999999999999Tbit".parse::<BitRate>().unwrap_err().to_string().contains("1000Tbit")
        );
        assert!("1001GB".parse::<QueueLimit>().unwrap_err().to_string().contains("1000GB"));
        assert_eq!("1000000000/s".parse::<Frequency>().unwrap().period(), Duration::from_nanos(1));
    }

    #[test]
    fn serialization_carries_its_remainder() {
        let rate: BitRate = "3bit".parse().unwrap();
        let (first, carried) = rate.serialization_time(1, 0);
        let (second, carried) = rate.serialization_time(1, carried);
        let (third, carried) = rate.serialization_time(1, carried);
        assert_eq!(first + second + third, Duration::from_secs(8));
        assert_eq!(carried, 0);
        let rate: BitRate = "100Gbit".parse().unwrap();
        assert_eq!(
            rate.serialization_time(4_000_000_000_000, 1),
            (Duration::from_secs(320), 1),
            "more than 64 bits"
        );
    }
}
