//! Claims that the paper's text decides without a measurement.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Finding, View};
use crate::data::Filter;
use crate::plot::number;
use hol_lab::Metric;

/// The claim that a product of numbers stated by the paper or an RFC has the value that the paper states.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatedProduct {
    /// The factors, by their meaning.
    #[serde(rename = "of")]
    factors: BTreeMap<String, f64>,
    /// The value that the paper states.
    #[serde(rename = "is")]
    stated: f64,
    /// Permitted deviation of the product, as a fraction of the stated value.
    #[serde(rename = "within", default)]
    tolerance: f64,
}

/// A claim that an interpretation of the text decides.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpretation {
    holds: bool,
    /// Why the claim holds, or does not.
    reason: String,
}

/// The claim about the total duration of all runs, performed one after another.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TotalDuration {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    at_most_days: f64,
}

impl StatedProduct {
    /// Judges whether the product of the factors is the stated number.
    pub(super) fn evaluate(&self) -> Finding {
        let product: f64 = self.factors.values().product();
        let factors: Vec<String> = self.factors.values().map(|factor| number(*factor)).collect();
        let holds = (product - self.stated).abs() <= (self.tolerance + 1e-9) * self.stated.abs();
        let text =
            format!("{} = {}; the paper has {}", factors.join(" × "), number(product), number(self.stated));
        let row = |(meaning, factor): (&String, &f64)| format!("{meaning}: {}", number(*factor));
        Finding::new(holds, text).with_rows(self.factors.iter().map(row).collect())
    }
}

impl Interpretation {
    /// Returns whether the claim holds, as the study states it, with the reason.
    pub(super) fn evaluate(&self) -> Finding {
        Finding::new(self.holds, self.reason.clone())
    }
}

impl TotalDuration {
    /// Judges whether all runs together send for at most the stated number of days.
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let cells = view.cells_of(&self.transports, &self.at);
        let (mut seconds, mut runs, mut missing) = (0.0, 0, 0);
        for cell in &cells {
            for (run, kbps) in cell.runs.iter().zip(cell.values_by_run(Metric::Throughput)) {
                runs += 1;
                match kbps {
                    Some(kbps) => seconds += run.bytes as f64 * 8.0 / kbps / 1e3,
                    None => missing += 1,
                }
            }
        }
        if runs == 0 {
            return Finding::no_points();
        }
        let days = seconds / 86_400.0;
        let text = format!(
            "{runs} runs send for {days:.1} days in total, not counting {missing} runs that did not finish; the paper's runs take at most {} days",
            number(self.at_most_days)
        );
        Finding::new(days <= self.at_most_days, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    #[test]
    fn product_has_to_equal_the_stated_value() {
        let product = |stated| {
            let factors = [("round trip, s".into(), 0.05), ("octets a second".into(), 50_000.0)].into();
            StatedProduct { factors, stated, tolerance: 0.0 }.evaluate()
        };
        assert_eq!(product(2500.0).holds, Some(true));
        assert_eq!(product(2600.0).holds, Some(false));
        assert!(product(2600.0).text.contains("= 2500; the paper has 2600"), "{:?}", product(2600.0));
    }

    #[test]
    fn durations_of_all_runs_are_added() {
        let mut cell = flow("TCP", &[], &[400.0, 200.0], 400.0);
        // 43.2 and 86.4 million seconds.
        cell.runs.iter_mut().for_each(|run| run.bytes = 2_160_000_000_000);
        let lasts = |at_most_days| {
            let check = TotalDuration { transports: vec!["TCP".into()], at: Filter::default(), at_most_days };
            check.evaluate(&view(&dataset(vec![cell.clone()])))
        };
        assert_eq!(lasts(1501.0).holds, Some(true), "{:?}", lasts(1501.0));
        assert_eq!(lasts(1499.0).holds, Some(false));
    }
}
