//! The words of a line of tc, and its units.

use hol_base::{BitRate, Duration, Ratio};

/// The words of a line that have not been parsed yet.
pub(super) struct Words<'w> {
    pub words: &'w [&'w str],
}

impl<'w> Words<'w> {
    pub fn next(&mut self) -> Option<&'w str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    /// Returns the next word as the value of `key`; an error if there is none.
    pub fn value(&mut self, key: &str) -> Result<&'w str, String> {
        self.next().ok_or_else(|| format!("{key:?} has no value"))
    }

    /// Parses the next word, and skips it if `read` accepts it; otherwise returns `None`.
    pub fn parse_optional<T>(&mut self, read: fn(&str) -> Option<T>) -> Option<T> {
        let value = read(self.words.first()?)?;
        self.next();
        Some(value)
    }

    /// Skips the next word if it is `label`, which tc prints before a value.
    pub fn skip_label(&mut self, label: &str) -> &mut Self {
        if self.words.first() == Some(&label) {
            self.next();
        }
        self
    }

    pub fn parse_value<T>(&mut self, key: &str, read: fn(&str) -> Option<T>) -> Result<T, String> {
        let word = self.value(key)?;
        read(word).ok_or_else(|| format!("{key}: unknown value {word}"))
    }
}

/// Parses a time. A number without a unit is in microseconds. tc(8), UNITS.
pub(super) fn parse_time(word: &str) -> Option<Duration> {
    word.parse().or_else(|_| format!("{word}us").parse()).ok()
}

/// Parses a percentage, with or without a percent sign (`parse_percent` in iproute2's tc_util.c).
pub(super) fn parse_percentage(word: &str) -> Option<Ratio> {
    word.parse().or_else(|_| format!("{word}%").parse()).ok()
}

/// Parses a rate. A number without a unit is in bit/s; `mbps` means megaoctets per second. tc(8), UNITS.
pub(super) fn parse_rate(word: &str) -> Option<BitRate> {
    let small = word.to_ascii_lowercase();
    if let Some(octets) = small.strip_suffix("bps") {
        let digits = octets.trim_end_matches(char::is_alphabetic);
        let factor = match &octets[digits.len()..] {
            "" => 8.0,
            "k" => 8e3,
            "m" => 8e6,
            "g" => 8e9,
            "ki" => 8.0 * 1024.0,
            "mi" => 8.0 * 1024.0 * 1024.0,
            "gi" => 8.0 * 1024.0 * 1024.0 * 1024.0,
            _ => return None,
        };
        return BitRate::from_bits_per_second((digits.parse::<f64>().ok()? * factor) as u64);
    }
    small.parse().ok().or_else(|| BitRate::from_bits_per_second(small.parse().ok()?))
}

/// Parses a number of octets, which must fit into 32 bits; `k` and `kb` mean 1024 octets. tc(8), UNITS.
pub(super) fn parse_octets(word: &str) -> Option<u64> {
    let small = word.to_ascii_lowercase();
    let digits = small.trim_end_matches(char::is_alphabetic);
    let factor = match &small[digits.len()..] {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024.0 * 1024.0 * 1024.0,
        "kbit" => 128.0,
        "mbit" => 131_072.0,
        _ => return None,
    };
    let octets = digits.parse::<f64>().ok()? * factor;
    (0.0..=f64::from(u32::MAX)).contains(&octets).then_some(octets as u64)
}

pub(super) fn parse_number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|number: &f64| number.is_finite())
}

pub(super) fn parse_count(word: &str) -> Option<u64> {
    word.parse().ok()
}
