//! Lifetimes as users write them: `90s`, `5m`, `2h`, `1d`, `1h30m`.

use hol_simco::Lifetime;

const UNITS: [(&str, u32); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
/// The unit for minutes in settings and experiments.
const MINUTE_UNIT: &str = "min";

/// Parses a lifetime such as `1h30m`; the error message shows the format.
pub fn parse(text: &str) -> Result<Lifetime, String> {
    let seconds = sum_of_units(text).filter(|seconds| *seconds > 0);
    seconds.map(Lifetime).ok_or_else(|| "write a time such as 90s, 5m, 2h, 1d or 1h30m".to_owned())
}

/// Returns the sum of numbers with units, in seconds; `None` if the text is malformed or the sum overflows.
fn sum_of_units(mut text: &str) -> Option<u32> {
    let mut seconds = 0u32;
    loop {
        let digits = text.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, rest) = text.split_at(digits);
        let (unit, factor) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        let number: u32 = number.parse().ok()?;
        seconds = seconds.checked_add(number.checked_mul(*factor)?)?;
        text = rest.strip_prefix(MINUTE_UNIT).unwrap_or(&rest[unit.len()..]);
        if text.is_empty() {
            return Some(seconds);
        }
    }
}

/// Formats a lifetime in seconds with units, such as `1h30m`.
pub fn format(seconds: u32) -> String {
    let mut rest = seconds;
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if rest >= factor {
            text += &format!("{}{unit}", rest / factor);
            rest %= factor;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_and_written() {
        for (text, seconds) in
            [("90s", 90), ("5m", 300), ("1h30min", 5400), ("1d", 86_400), ("4294967295s", u32::MAX)]
        {
            assert_eq!(parse(text), Ok(Lifetime(seconds)), "{text}");
            assert_eq!(parse(&format(seconds)), Ok(Lifetime(seconds)), "{text}");
        }
        assert_eq!(format(299), "4m59s");
        for text in ["", "5", "m", "5x", "0s", "4294967296s", "-5s", "99999999d", "5m "] {
            assert!(parse(text).unwrap_err().contains("1h30m"), "{text}");
        }
    }
}
