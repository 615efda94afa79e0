//! Claims that the throughput is as high as the link rate allows, less the transport's headers.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that each of `transports` has the highest throughput possible with its headers, or the rate
/// that the sender offers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingThroughput {
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest permitted deviation of a mean below the ceiling, as a fraction of the ceiling.
    #[serde(rename = "within")]
    tolerance: f64,
}

impl CeilingThroughput {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let reached = |cell: &&Cell| {
            let (mean, ceiling) = (cell.mean_of(Metric::Throughput)?, cell.flows.as_ref()?.ceiling_kbps?);
            let row = format!(
                "{} at {}: {mean} of at most {ceiling:.1} kbit/s",
                cell.transport,
                cell.describe_conditions()
            );
            Some((mean.mean / ceiling, row))
        };
        let mut shares: Vec<(f64, String)> =
            view.cells_of(&self.transports, &self.at).iter().filter_map(reached).collect();
        shares.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let Some(&(min, _)) = shares.first() else { return Finding::no_points() };
        let near = shares.iter().filter(|(share, _)| *share >= 1.0 - self.tolerance).count();
        let text = format!(
            "{near} of {} points are within {} % of the highest possible throughput; the lowest reaches {:.2} % of it",
            shares.len(),
            100.0 * self.tolerance,
            100.0 * min
        );
        Finding::new(near == shares.len(), text).with_rows(shares.into_iter().map(|(_, row)| row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    #[test]
    fn point_far_below_the_ceiling_refutes_the_claim() {
        let check =
            CeilingThroughput { transports: vec!["TCP".into()], at: Filter::default(), tolerance: 0.01 };
        let near = flow("TCP", &[("interval", "20ms")], &[199.0, 199.1], 199.8);
        let far = flow("TCP", &[("interval", "10ms")], &[370.0, 371.0], 385.0);
        assert_eq!(check.evaluate(&view(&dataset(vec![near.clone()]))).holds, Some(true));
        let finding = check.evaluate(&view(&dataset(vec![near, far])));
        assert_eq!(finding.holds, Some(false));
        assert!(finding.rows[0].contains("interval 10ms"), "the worst first: {finding:?}");
    }
}
