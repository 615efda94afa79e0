//! The size of a difference with its confidence interval, rounded to the digits that the interval justifies.

/// The size of a difference, with its confidence interval.
pub(super) struct DifferenceSize {
    /// The difference itself.
    pub(super) value: f64,
    /// The lower end of the confidence interval.
    pub(super) low: f64,
    /// The upper end of the confidence interval.
    pub(super) high: f64,
    /// The unit of all three numbers.
    pub(super) unit: &'static str,
}

impl DifferenceSize {
    /// Returns the number of decimals that the interval justifies, for at most three significant digits. If an end is
    /// near zero, as many decimals as show its sign: "0 to 5" would look as if there were no difference.
    fn digits(&self) -> usize {
        let half = (self.high - self.low) / 2.0;
        let least = self.value.abs() / 100.0;
        let half = if half.is_finite() { half.max(least) } else { least };
        let digits = if half > 0.0 { (-half.log10().floor()).clamp(0.0, 3.0) as usize } else { 0 };
        let shows_zero = |end: f64, digits: usize| end != 0.0 && end.abs() < 0.5 * 0.1f64.powi(digits as i32);
        let are_ends_shown =
            |digits: &usize| ![self.low, self.high].iter().any(|end| shows_zero(*end, *digits));
        (digits..=3).find(are_ends_shown).unwrap_or(digits)
    }

    /// Formats the difference itself, without its unit.
    pub(super) fn format_value(&self) -> String {
        format!("{:.*}", self.digits(), self.value)
    }

    /// Formats the interval: `11 to 13`.
    pub(super) fn format_interval(&self) -> String {
        let end = |end: f64| match end {
            end if end.is_finite() => format!("{:.*}", self.digits(), end),
            end => if end > 0.0 { "unlimited" } else { "-unlimited" }.to_owned(),
        };
        format!("{} to {}", end(self.low), end(self.high))
    }

    /// Formats the interval of a difference that may have either sign: `3 % lower to 4 % higher`. `word` describes
    /// positive ends of the interval (`higher`), `opposite` negative ones.
    pub(super) fn format_signed_interval(&self, word: &str, opposite: &str) -> String {
        let unit = self.unit;
        let end = |end: f64| match end.is_finite() {
            true => format!("{:.*} {unit}", self.digits(), end),
            false => "arbitrarily much".to_owned(),
        };
        match self.low < 0.0 {
            true => format!("{} {opposite} to {} {word}", end(-self.low), end(self.high)),
            false => format!("{} to {} {word}", end(self.low), end(self.high)),
        }
    }
}

/// Rounds a percentage to two significant digits.
pub(super) fn round_to_two_digits(share: f64) -> f64 {
    round_to_digits(share, 2)
}

/// Rounds a non-negative number to significant digits, but keeps all digits before the point.
pub(super) fn round_to_digits(value: f64, count: i32) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(value.log10().floor() + 1.0 - f64::from(count)).min(1.0);
    (value / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_near_zero_keeps_its_sign() {
        let of = |low, high| DifferenceSize { value: 2.4, low, high, unit: "%" }.format_interval();
        assert_eq!(of(0.31, 4.6), "0.3 to 4.6");
        assert_eq!(of(0.62, 4.6), "1 to 5");
        assert_eq!(of(0.0, 4.6), "0 to 5");
        assert_eq!(of(1e-9, 4.6), "0 to 5", "no number of decimals shows it");
    }
}
