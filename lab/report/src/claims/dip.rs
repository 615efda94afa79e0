//! Claims that the throughput drops at one value of an axis.

use serde::Deserialize;

use super::{ComparedWith, Finding, View};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that each of `transports` has less throughput than at other values of the axis, everything else
/// being equal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThroughputDip {
    pub(super) transports: Vec<String>,
    /// The points of the dip.
    pub(super) at: Filter,
    /// The points with which the points of the dip are compared.
    #[serde(rename = "than")]
    pub(super) reference: ComparedWith,
    /// The smallest drop that counts, as a fraction.
    share: f64,
    /// The number of points at which the drop has to occur.
    #[serde(default)]
    points: RequiredPoints,
}

/// The points at which the throughput has to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RequiredPoints {
    /// The throughput has to drop at every point.
    #[default]
    All,
    /// The throughput has to drop at one or more points.
    Some,
    /// The throughput may drop at no point, as in the paper.
    None,
}

impl ThroughputDip {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let fall = |cell: &&Cell| {
            let other = view.compared_cell(cell, &self.reference)?;
            let (here, there) = (cell.mean_of(Metric::Throughput)?, other.mean_of(Metric::Throughput)?);
            let (transport, place, reference) =
                (&cell.transport, cell.describe_conditions(), &self.reference);
            let row = format!("{transport} at {place}: {here} kbit/s, compared with {there} at {reference}");
            Some((1.0 - here.mean / there.mean, row))
        };
        let mut falls: Vec<(f64, String)> =
            view.cells_of(&self.transports, &self.at).iter().filter_map(fall).collect();
        falls.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let Some(&(deepest, _)) = falls.first() else { return Finding::no_points() };
        let count = falls.iter().filter(|(fall, _)| *fall >= self.share).count();
        let place = match self.at.experiments.join(", ") {
            all if all.is_empty() => all,
            some => some + ": ",
        };
        let text = format!(
            "{place}at {count} of {} points the throughput is at least {} % lower than with {}; the largest difference is {:.1} %",
            falls.len(),
            100.0 * self.share,
            self.reference,
            100.0 * deepest
        );
        let holds = match self.points {
            RequiredPoints::All => count == falls.len(),
            RequiredPoints::Some => count > 0,
            RequiredPoints::None => count == 0,
        };
        Finding::new(holds, text).with_rows(falls.into_iter().map(|(_, row)| row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    fn holds(points: RequiredPoints, here: f64) -> Option<bool> {
        let [here, there] = [("10ms", here), ("0ms", 375.0)]
            .map(|(interval, kbps)| flow("TCP", &[("interval", interval), ("queue", "12p")], &[kbps], 385.0));
        let check = ThroughputDip {
            transports: vec!["TCP".into()],
            at: Filter { axes: [("interval".into(), vec!["10ms".into()])].into(), ..Filter::default() },
            reference: ComparedWith::Axes([("interval".into(), "0ms".into())].into()),
            share: 0.1,
            points,
        };
        check.evaluate(&view(&dataset(vec![here, there]))).holds
    }

    #[test]
    fn dip_is_found_where_the_throughput_falls() {
        for (points, fallen, even) in [
            (RequiredPoints::All, true, false),
            (RequiredPoints::Some, true, false),
            (RequiredPoints::None, false, true),
        ] {
            assert_eq!((holds(points, 278.0), holds(points, 372.0)), (Some(fallen), Some(even)));
        }
    }
}
