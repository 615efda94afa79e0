//! Claims that one transport meets a requirement in a larger region of a plane than another.

use hol_measure::{CONFIDENCE, Interval};
use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::region::Requirement;

/// The claim that each of `transports` meets the requirement at more points than `reference` does.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargerRegion {
    /// Labels of the transports to which the claim applies.
    pub(super) transports: Vec<String>,
    #[serde(rename = "than")]
    reference: String,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The requirement that a point has to meet.
    #[serde(rename = "enough")]
    requirement: Requirement,
}

impl LargerRegion {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        Finding::combine(self.transports.iter().map(|transport| self.compare(view, transport)))
    }

    /// Compares the shares of points at which each of the two transports meets the requirement, in pairs of
    /// repetitions, because these have the same losses.
    fn compare(&self, view: &View<'_>, transport: &str) -> Finding {
        let cells = view.cells(transport, &self.at);
        let pairs: Vec<(&Cell, &Cell)> = cells
            .into_iter()
            .filter_map(|cell| Some((cell, view.with_same_conditions(cell, &self.reference)?)))
            .collect();
        let (cells, others): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let [ours, theirs] = [&cells, &others].map(|cells| self.requirement.shares_met_by_repetition(cells));
        let gains: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours - theirs).collect();
        let of = |areas: &[f64]| Interval::of(areas, CONFIDENCE);
        let (Some(ours), Some(theirs), Some(gain)) = (of(&ours), of(&theirs), of(&gains)) else {
            return Finding::no_points();
        };
        let text = format!(
            "{transport} meets the requirement ({}) at {ours} % of {} points, {} at {theirs} %; the difference is {gain} percentage points",
            self.requirement.describe(),
            cells.len(),
            self.reference
        );
        let holds = if gain.low() > 0.0 { Some(true) } else { (gain.high() <= 0.0).then_some(false) };
        Finding { holds, ..Finding::unknown(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};
    use hol_lab::Metric;

    fn holds(of_sctp: [[f64; 3]; 2]) -> Option<bool> {
        let requirement = Requirement { metric: Metric::ResponseTime, from: 30.0 };
        let check = LargerRegion {
            transports: vec!["SCTP-1".into()],
            reference: "TCP".into(),
            at: Filter::default(),
            requirement,
        };
        let points = [1.0, 2.0].into_iter().zip(of_sctp);
        let points = points.flat_map(|(loss, sctp)| {
            [cell("TCP", loss, 100.0, &[20.0 * loss; 3]), cell("SCTP-1", loss, 100.0, &sctp)]
        });
        check.evaluate(&view(&dataset(points.collect()))).holds
    }

    #[test]
    fn region_is_larger_if_every_repetition_agrees() {
        // TCP takes 20 ms at 1 %, and 40 ms at 2 %.
        assert_eq!(holds([[20.0; 3], [20.0; 3]]), Some(true));
        assert_eq!(holds([[20.0; 3], [40.0; 3]]), Some(false), "as large");
        assert_eq!(holds([[40.0; 3], [40.0; 3]]), Some(false));
        assert_eq!(holds([[20.0; 3], [20.0, 40.0, 40.0]]), None);
    }
}
