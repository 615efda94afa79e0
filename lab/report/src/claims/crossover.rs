//! Claims of a crossover, such as "Except for very low transaction rates".

use hol_base::Seed;
use hol_measure::{CONFIDENCE, Crossover};
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// The claim that `transport` is slower than `reference` at low rates and faster at high rates.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossoverClaim {
    pub(super) transport: String,
    #[serde(rename = "than")]
    reference: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The rate in 1/s near which the order changes.
    #[serde(rename = "near")]
    expected_rate: f64,
    /// The largest permitted ratio between `expected_rate` and the rate at which the order changes.
    factor: f64,
}

impl CrossoverClaim {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let mut cells = view.cells(&self.transport, &self.at);
        cells.sort_by(|a, b| a.conditions.rate.total_cmp(&b.conditions.rate));
        let curve = |cell: &Cell| {
            let other = view.with_same_conditions(cell, &self.reference)?;
            (cell.mean().is_some() && other.mean().is_some()).then_some(())?;
            let (mut first, mut second) = (cell.means()?, other.means()?);
            // An interrupted sweep may have measured more points of one transport.
            let both_have = first.len().min(second.len());
            first.truncate(both_have);
            second.truncate(both_have);
            Some((cell.conditions.rate, first, second))
        };
        let levels: Vec<_> = cells.iter().filter_map(|cell| curve(cell)).collect();
        if levels.len() < 2 {
            return Finding::no_points();
        }
        self.judge(&levels)
    }

    fn judge(&self, levels: &[(f64, Vec<f64>, Vec<f64>)]) -> Finding {
        let rates: Vec<f64> = levels.iter().map(|(rate, ..)| *rate).collect();
        let first: Vec<Vec<f64>> = levels.iter().map(|(_, first, _)| first.clone()).collect();
        let second: Vec<Vec<f64>> = levels.iter().map(|(.., second)| second.clone()).collect();
        let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
        let rows: Vec<String> = levels
            .iter()
            .map(|(rate, a, b)| {
                let (a, b) = (mean(a), mean(b));
                format!("{rate}/s: {} {a:.2} ms, {} {b:.2} ms", self.transport, self.reference)
            })
            .collect();
        let starts_slower = mean(&first[0]) > mean(&second[0]);
        let crossing = Crossover::of(&rates, &first, &second, CONFIDENCE, Seed(1));
        let (transport, reference) = (&self.transport, &self.reference);
        match crossing {
            Some(Crossover { x, low, high }) if starts_slower => {
                let holds = x <= self.expected_rate * self.factor && x >= self.expected_rate / self.factor;
                let text = format!(
                    "{transport} is slower than {reference} below {x:.1} messages/s and faster above (95 % CI {low:.1} to {high:.1}); the crossover was expected near {}/s",
                    self.expected_rate
                );
                Finding::new(holds, text).with_rows(rows)
            }
            _ if starts_slower => {
                Finding::new(false, format!("{transport} is slower than {reference} at every rate"))
                    .with_rows(rows)
            }
            _ => {
                Finding::new(false, format!("{transport} is not slower than {reference} at the lowest rate"))
                    .with_rows(rows)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn holds(sctp: [f64; 4], tcp: [f64; 4]) -> Option<bool> {
        let mut cells = Vec::new();
        for ((rate, sctp), tcp) in [1.0, 5.0, 20.0, 100.0].into_iter().zip(sctp).zip(tcp) {
            cells.push(cell("SCTP-1024", 1.0, rate, &[sctp, sctp + 0.1, sctp - 0.1]));
            cells.push(cell("TCP", 1.0, rate, &[tcp, tcp + 0.1, tcp]));
        }
        let check = CrossoverClaim {
            transport: "SCTP-1024".into(),
            reference: "TCP".into(),
            at: Filter::default(),
            expected_rate: 10.0,
            factor: 3.0,
        };
        let whole = check.evaluate(&view(&dataset(cells.clone())));
        // The last runs are missing, as in an interrupted sweep.
        cells.iter_mut().step_by(3).for_each(|cell| cell.runs.truncate(1));
        assert!(check.evaluate(&view(&dataset(cells))) != Finding::no_points());
        whole.holds
    }

    #[test]
    fn crossover_near_ten_per_second_is_found() {
        assert_eq!(holds([40.0, 33.0, 23.0, 21.0], [24.0, 25.0, 28.0, 24.0]), Some(true));
    }

    #[test]
    fn absent_or_distant_crossover_refutes_the_claim() {
        assert_eq!(holds([40.0, 33.0, 29.0, 25.0], [24.0; 4]), Some(false));
        assert_eq!(holds([20.0; 4], [24.0; 4]), Some(false));
        assert_eq!(holds([40.0, 33.0, 29.0, 23.9], [24.0; 4]), Some(false));
    }
}
