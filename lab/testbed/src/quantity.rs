//! Parses quantities as ns writes them: `0.4Mb`, `25ms`, `0.01`.

use std::net::Ipv4Addr;
use std::str::FromStr;

use hol_base::{BitRate, Duration, Ratio};

use crate::tcl::{MEASURED_VALUE, Word, WordError, error_at};

/// Parses a bit rate; a capital B means octets, as in ns.
pub(crate) fn rate(word: &Word) -> Result<BitRate, WordError> {
    let (number, unit) = split(&word.text);
    let factor = match unit.strip_suffix("ps").unwrap_or(unit) {
        "b" | "bit" => 1.0,
        "k" | "kb" | "Kb" | "kbit" => 1e3,
        "M" | "Mb" | "mb" | "Mbit" => 1e6,
        "Gb" | "gb" | "Gbit" => 1e9,
        "B" => 8.0,
        "kB" | "KB" => 8e3,
        "MB" | "mB" => 8e6,
        "GB" | "gB" => 8e9,
        "" if number == Some(0.0) => 1.0,
        _ => return expected(word, "a rate with its unit, such as 0.4Mb (units: b, kb, Mb, Gb)"),
    };
    let Some(bits) = number.map(|number| (number * factor).round()).filter(|bits| *bits < 1e18) else {
        return expected(word, "a rate such as 0.4Mb");
    };
    match BitRate::from_bits_per_second(bits as u64) {
        Some(rate) => Ok(rate),
        None => error_at(
            word.at,
            format!("a rate of {:?} sends nothing; use a higher one, such as 0.4Mb", word.text),
        ),
    }
}

/// Parses a time with a unit. A number without a unit is rejected, because it means seconds in ns and milliseconds in
/// some testbeds.
pub(crate) fn delay(word: &Word) -> Result<Duration, WordError> {
    let (number, unit) = split(&word.text);
    let factor = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "us" => 1e3,
        "ns" => 1.0,
        "" if number == Some(0.0) => 1.0,
        _ => return expected(word, "a time with its unit, such as 25ms (units: s, ms, us, ns)"),
    };
    match number.map(|number| (number * factor).round()).filter(|nanos| *nanos < 1e18) {
        Some(nanos) => Ok(Duration::from_nanos(nanos as u64)),
        None => expected(word, "a time such as 25ms"),
    }
}

/// Parses the bit rate of a link. In scripts of ns a number without a unit is in bit/s; below 1000 it is rejected,
/// because its unit has probably been forgotten.
pub(crate) fn link_rate(word: &Word, is_emulab: bool) -> Result<BitRate, WordError> {
    let bare = word.text.parse::<f64>().ok().filter(|bits| !is_emulab && (1e3..1e18).contains(bits));
    match bare.and_then(|bits| BitRate::from_bits_per_second(bits.round() as u64)) {
        Some(rate) => Ok(rate),
        None => rate(word),
    }
}

/// Parses the delay of a link. In scripts of ns a number without a unit is in seconds; from one second on it is
/// rejected, because milliseconds are probably meant.
pub(crate) fn link_delay(word: &Word, is_emulab: bool) -> Result<Duration, WordError> {
    match word.text.parse::<f64>() {
        Ok(number) if !is_emulab && (0.0..1.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => delay(word),
    }
}

/// Parses a time or interval. A number without a unit is in seconds, as everywhere in ns except for links.
pub(crate) fn seconds(word: &Word) -> Result<Duration, WordError> {
    match word.text.parse::<f64>() {
        Ok(number) if (0.0..1e9).contains(&number) => Ok(Duration::from_secs_f64(number)),
        Ok(_) => expected(word, "a number of seconds from 0 to 1e9"),
        Err(_) => delay(word),
    }
}

/// Parses the time of an event. ns ignores units and reads 500ms as 500 s (`atof` in common/scheduler.cc); Emulab does
/// not.
pub(crate) fn event_time(word: &Word, is_emulab: bool) -> Result<Duration, WordError> {
    let time = seconds(word)?;
    if is_emulab || word.text.parse::<f64>().is_ok() {
        return Ok(time);
    }
    let (number, in_seconds) = (split(&word.text).0.unwrap_or_default(), time.as_secs_f64());
    if number == in_seconds {
        return Ok(time);
    }
    error_at(
        word.at,
        format!("ns ignores the unit of a time and takes {:?} for {number} s; write {in_seconds}", word.text),
    )
}

/// Parses the rate of an application; a number without a unit is in bit/s.
pub(crate) fn bits_per_second(word: &Word) -> Result<f64, WordError> {
    match word.text.parse::<f64>() {
        Ok(number) if (1e-3..1e15).contains(&number) => Ok(number),
        Ok(_) => expected(word, "a rate such as 1Mb"),
        Err(_) => rate(word).map(|rate| rate.bits_per_second() as f64),
    }
}

/// Parses a loss rate from 0 to 1.
pub(crate) fn loss(word: &Word) -> Result<Ratio, WordError> {
    match word.text.parse().ok().and_then(Ratio::new) {
        Some(ratio) => Ok(ratio),
        None => expected(word, "a loss rate from 0 to 1, such as 0.01"),
    }
}

/// Parses a finite number, which may be negative.
pub(crate) fn any_number(word: &Word) -> Result<f64, WordError> {
    match word.text.trim().parse::<f64>().ok().filter(|number| number.is_finite()) {
        Some(number) => Ok(number),
        None => expected(word, "a number"),
    }
}

/// Parses a number above zero, such as a queue's limit.
pub(crate) fn positive<N: FromStr + PartialOrd + Default>(word: &Word) -> Result<N, WordError> {
    // Rust would also read "inf".
    let numeric = word.text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    match word.text.parse().ok().filter(|number| numeric && *number > N::default()) {
        Some(number) => Ok(number),
        None => expected(word, "a number above 0"),
    }
}

/// Parses a number of at least 1, which is the inverse of a probability.
pub(crate) fn at_least_one(word: &Word) -> Result<f64, WordError> {
    let number = positive(word)?;
    if number >= 1.0 {
        Ok(number)
    } else {
        expected(word, "at least 1, because its inverse is a probability")
    }
}

/// Parses a whole number from 0 on, such as a number of packets.
pub(crate) fn whole_number(word: &Word) -> Result<u64, WordError> {
    match word.text.parse().ok().filter(|number| *number < 1 << 40) {
        Some(number) => Ok(number),
        None => expected(word, "a whole number from 0 on"),
    }
}

/// Parses a switch of ns: 1 or true for on, 0 or false for off.
pub(crate) fn switch(word: &Word) -> Result<bool, WordError> {
    match word.text.as_str() {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => expected(word, "1 or 0"),
    }
}

/// Parses an IPv4 address.
pub(crate) fn address(word: &Word) -> Result<Ipv4Addr, WordError> {
    word.text.parse().or_else(|_| expected(word, "an IPv4 address such as 10.1.1.2"))
}

fn split(text: &str) -> (Option<f64>, &str) {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    (text[..text.len() - unit.len()].parse().ok(), unit)
}

fn expected<T>(word: &Word, expected: &str) -> Result<T, WordError> {
    if word.text == MEASURED_VALUE {
        return error_at(
            word.at,
            "this depends on results of the run, but a script is evaluated before the run; write the value instead",
        );
    }
    error_at(word.at, format!("{:?} is not {expected}", word.text))
}
