//! Describes the checks of a point.

use hol_measure::ConfidenceInterval;

use super::{CollapseCounts, ComparedPoint, MedianComparison};
use hol_lab::Metric;

/// The p-value below which only a bound is shown.
const MIN_SHOWN_P: f64 = 0.001;

/// Formats a median with its interval to four digits, for a table: `21.62 (21.13 to 23.97)`; without the interval if the runs are too few.
pub fn format_median(median: ConfidenceInterval) -> String {
    let ConfidenceInterval { value, low, high } = median;
    let bounded = low.is_finite() && high.is_finite();
    let largest = if bounded { high.abs().max(low.abs()) } else { value.abs() };
    let digits = (3.0 - largest.log10().floor()).clamp(0.0, 3.0) as usize;
    if bounded {
        format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
    } else {
        format!("{value:.digits$}")
    }
}

impl MedianComparison {
    /// Formats the difference with its interval: `+1.4 % (−0.9 to +3.1)`.
    pub fn format_difference(&self) -> String {
        let ConfidenceInterval { value, low, high } = self.percent();
        if low.is_finite() && high.is_finite() {
            format!("{value:+.1} % ({low:+.1} to {high:+.1})")
        } else {
            format!("{value:+.1} % (interval unknown)")
        }
    }

    /// Formats how often the value of a kernel run is higher than the value of a model run: `53 %, p = 0.41`.
    pub fn format_ranks(&self) -> String {
        format!("{:.0} %, {}", 100.0 * self.ranks.superiority, format_p_value(self.ranks.p))
    }
}

impl ComparedPoint {
    /// Returns a sentence for each value that decides the verdict.
    pub fn describe_checks(&self) -> Vec<String> {
        let (names, unit, more): (&[&str], _, _) = match self.metric {
            Metric::Throughput => (&["Throughput"], "kbit/s", "is faster"),
            _ => (&["Mean response time", "99th percentile"], "ms", "takes longer"),
        };
        let sentence = |(name, check): (&&str, Option<MedianComparison>)| match check {
            Some(check) => describe_check(name, unit, more, &check),
            None => format!("{name}: one world has no value in most of its runs."),
        };
        let mut sentences: Vec<String> = names.iter().zip(self.judged_checks()).map(sentence).collect();
        if self.metric != Metric::Throughput && (self.collapses.kernel.0 > 0 || self.collapses.model.0 > 0) {
            sentences.push(self.collapses.sentence());
        }
        sentences
    }
}

fn describe_check(name: &str, unit: &str, more: &str, check: &MedianComparison) -> String {
    let (difference, excess) = (check.difference.value, check.excess());
    let side = if difference < 0.0 { "below" } else { "above" };
    let ranked = match (check.ranks_differ(), excess <= 1.0) {
        (false, _) => "this is not significant",
        (true, true) => "this is significant, but within the tolerance",
        (true, false) => "this is significant",
    };
    format!(
        "{name}: the model's median run is {:.2} {unit} {side} that of Linux, {}; the difference is {excess:.1} times the \
         tolerance. A run of Linux {more} than a run of the model in {:.0} % of all pairs; {ranked} ({}).",
        difference.abs(),
        check.format_difference(),
        100.0 * check.ranks.superiority,
        format_p_value(check.ranks.p),
    )
}

impl CollapseCounts {
    fn sentence(&self) -> String {
        let Self { kernel, model } = self;
        let verdict = if self.agree() { "no significant difference" } else { "significantly different" };
        format!(
            "Collapsed: {} of {} runs of Linux, {} of {} of the model, {verdict} ({}).",
            kernel.0,
            kernel.1,
            model.0,
            model.1,
            format_p_value(self.p_value())
        )
    }
}

fn format_p_value(p: f64) -> String {
    match p {
        _ if p < MIN_SHOWN_P => format!("p < {MIN_SHOWN_P}"),
        _ if p < 0.1 => format!("p = {p:.3}"),
        _ => format!("p = {p:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_points::compared;
    use super::*;

    const POINT: &str = "transports = ['tcp']\nmessages = 8\nrepetitions = 8";

    #[test]
    fn sentence_states_the_difference_and_the_ranks() {
        let model: Vec<u64> = (20..60).collect();
        let slower = compared(POINT, &[52, 53, 54, 55, 56, 57, 58, 59], &model);
        let sentences = slower.describe_checks();
        assert_eq!(sentences.len(), 2, "none collapsed: {sentences:?}");
        let mean = &sentences[0];
        assert!(
            mean.starts_with(
                "Mean response time: the model's median run is 16.00 ms below that of Linux, -28.8 % ("
            ),
            "{mean}"
        );
        assert!(mean.contains("in 90 % of all pairs; this is significant (p < 0.001)"), "{mean}");
    }

    #[test]
    fn a_median_has_four_digits() {
        let words = |value, low, high| format_median(ConfidenceInterval { value, low, high });
        assert_eq!(words(70.146047, 70.137855, 70.146047), "70.15 (70.14 to 70.15)");
        assert_eq!(words(939.4, 894.0, 1426.3), "939 (894 to 1426)");
        assert_eq!(words(20.1234, f64::NEG_INFINITY, f64::INFINITY), "20.12");
        assert_eq!(words(0.0, 0.0, 0.0), "0.000 (0.000 to 0.000)");
    }

    #[test]
    fn few_runs_leave_the_interval_open() {
        let check = compared(POINT, &[20, 22], &[21; 10]).mean.unwrap();
        assert_eq!(check.format_difference(), "+0.0 % (interval unknown)");
        assert_eq!(check.format_ranks(), "50 %, p = 1.00");
    }
}
