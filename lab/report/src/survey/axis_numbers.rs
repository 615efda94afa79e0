//! Parses swept values as numbers: `10ms`, `0.5%` and `12p` have positions on an axis, `reno` has none.

use hol_lab::Quantity;

/// The values of one axis in a common unit.
#[derive(Debug, Clone, PartialEq)]
pub struct AxisNumbers {
    /// The unit, such as `ms`; may be empty.
    pub unit: &'static str,
    /// The values in this unit, in the order of the file.
    pub values: Vec<f64>,
}

impl AxisNumbers {
    /// Reads `texts` as numbers; `None` if one is not a number, or if their quantities differ.
    pub fn read(texts: &[&str]) -> Option<Self> {
        let read: Vec<(Quantity, f64)> =
            texts.iter().map(|text| Quantity::read(text)).collect::<Option<_>>()?;
        let quantity = read.first()?.0;
        if read.iter().any(|(other, _)| *other != quantity) {
            return None;
        }
        let max = read.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let (unit, factor) = unit(quantity, max);
        // Rounded, because quotients of decimals have small errors.
        let clean = |value: f64| format!("{value:.9e}").parse().unwrap_or(value);
        Some(Self { unit, values: read.iter().map(|(_, value)| clean(value / factor)).collect() })
    }

    /// Returns whether all values differ.
    pub fn are_distinct(&self) -> bool {
        (1..self.values.len()).all(|index| !self.values[..index].contains(&self.values[index]))
    }

    /// Returns whether the values only increase, or only decrease, as `others` increase.
    pub fn are_monotonic_in(&self, others: &Self) -> bool {
        let mut steps: Vec<(f64, f64)> =
            others.values.iter().copied().zip(self.values.iter().copied()).collect();
        steps.sort_by(|a, b| a.0.total_cmp(&b.0));
        steps.is_sorted_by(|a, b| a.1 <= b.1) || steps.is_sorted_by(|a, b| a.1 >= b.1)
    }

    /// Returns a number of this axis as an experiment file writes it: `12.5ms`.
    pub fn text(&self, value: f64) -> String {
        let unit = match self.unit {
            "µs" => "us",
            "octets" => "B",
            "packets" => "p",
            "1/s" => "/s",
            unit => unit.trim_end_matches("/s"),
        };
        format!("{value}{unit}")
    }

    /// Rounds to three significant digits, and to a whole number if the quantity is a count.
    pub fn round(&self, value: f64) -> f64 {
        let is_whole = |value: &f64| value.fract() == 0.0;
        let counts = ["octets", "packets"].contains(&self.unit)
            || self.unit.is_empty() && self.values.iter().all(is_whole);
        let rounded = format!("{value:.2e}").parse().unwrap_or(value);
        if counts { rounded.round() } else { rounded }
    }

    /// Returns whether a logarithmic axis suits the values: none is negative, and the largest is at least 20 times the
    /// smallest positive one.
    pub fn suits_log_scale(&self) -> bool {
        let positive = self.values.iter().copied().filter(|value| *value > 0.0);
        let (min, max) = (positive.clone().fold(f64::INFINITY, f64::min), positive.fold(0.0, f64::max));
        max >= 20.0 * min && self.values.iter().all(|value| *value >= 0.0)
    }
}

/// Returns the unit for values up to `max`, and its size in the unit of [`Quantity::read`].
const fn unit(quantity: Quantity, max: f64) -> (&'static str, f64) {
    match quantity {
        Quantity::Time if max >= 10.0 => ("s", 1.0),
        Quantity::Time if max < 1e-3 => ("µs", 1e-6),
        Quantity::Time => ("ms", 1e-3),
        Quantity::BitRate if max >= 1e9 => ("Gbit/s", 1e9),
        Quantity::BitRate if max >= 1e6 => ("Mbit/s", 1e6),
        Quantity::BitRate => ("kbit/s", 1e3),
        Quantity::Size if max >= 1e6 => ("MB", 1e6),
        Quantity::Size if max >= 1e4 => ("kB", 1e3),
        Quantity::Size => ("octets", 1.0),
        Quantity::Share => ("%", 1.0),
        Quantity::Frequency => ("1/s", 1.0),
        Quantity::Packets => ("packets", 1.0),
        Quantity::Plain => ("", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_get_one_unit() {
        let numbers = |texts: &[&str]| AxisNumbers::read(texts).map(|n| (n.unit, n.values));
        assert_eq!(numbers(&["500us", "1ms", "0.25s"]), Some(("ms", vec![0.5, 1.0, 250.0])));
        assert_eq!(numbers(&["0%", "0.7%"]), Some(("%", vec![0.0, 0.7])));
        assert_eq!(numbers(&["400kbit", "2Mbit"]), Some(("Mbit/s", vec![0.4, 2.0])));
        assert_eq!(numbers(&["12p", "6p"]), Some(("packets", vec![12.0, 6.0])));
        assert_eq!(numbers(&["64B", "1460B"]), Some(("octets", vec![64.0, 1460.0])));
        assert_eq!(numbers(&["1", "2.5"]), Some(("", vec![1.0, 2.5])));
    }

    #[test]
    fn names_and_mixed_quantities_are_not_numbers() {
        for texts in [&["reno", "cubic"][..], &["12p", "64KiB"], &["10ms", "1%"], &["nan"], &[]] {
            assert_eq!(AxisNumbers::read(texts), None, "{texts:?}");
        }
        assert!(!AxisNumbers::read(&["1ms", "1000us"]).unwrap().are_distinct());
    }

    #[test]
    fn interpolated_number_is_written_in_the_units_of_the_file() {
        let text = |texts: &[&str], value: f64| {
            let numbers = AxisNumbers::read(texts).unwrap();
            numbers.text(numbers.round(value))
        };
        assert_eq!(text(&["10ms", "20ms"], 14.1421), "14.1ms");
        assert_eq!(text(&["0%", "1%"], 0.000_123_49), "0.000123%");
        assert_eq!(text(&["1Mbit", "2Mbit"], 1.5), "1.5Mbit");
        assert_eq!(text(&["6p", "12p"], 8.49), "8p");
        assert_eq!(text(&["10/s", "100/s"], 31.62), "31.6/s");
        assert_eq!(text(&["0", "8"], 2.6), "3");
        for texts in [
            ["10us", "20us"],
            ["10s", "20s"],
            ["10B", "20B"],
            ["20kB", "30kB"],
            ["2GB", "1MB"],
            ["1Gbit", "2Gbit"],
        ] {
            let Some(numbers) = AxisNumbers::read(&texts) else { continue };
            let back = AxisNumbers::read(&[&numbers.text(numbers.values[0]), texts[1]]).unwrap();
            assert_eq!(back.values, numbers.values, "{texts:?}");
        }
    }

    #[test]
    fn a_decade_and_more_is_logarithmic() {
        let spans = |texts: &[&str]| AxisNumbers::read(texts).unwrap().suits_log_scale();
        assert!(spans(&["0%", "0.1%", "10%"]) && !spans(&["1%", "2%", "10%"]) && !spans(&["0%", "5%"]));
        assert!(!spans(&["-1", "100", "1"]));
    }
}
