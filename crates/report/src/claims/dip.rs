//! A fall of the throughput at one place of an axis.

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};
use crate::metric::Metric;

/// Each of `transports` has less throughput at one value of a swept key than at another, all else equal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dip {
    transports: Vec<String>,
    #[serde(default)]
    at: Filter,
    /// The swept key.
    along: String,
    /// Its value at the dip.
    here: String,
    /// The value that it is held against.
    there: String,
    /// The least fall that counts, as a share.
    share: f64,
    /// Where the paper sees none: the claim holds if no point falls.
    #[serde(default)]
    none: bool,
}

impl Dip {
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let at = |value: &str| {
            let mut at = self.at.clone();
            at.axes.insert(self.along.clone(), vec![value.to_owned()]);
            view.cells_of(&self.transports, &at)
        };
        let others = at(&self.there);
        let fall = |cell: &&Cell| {
            let other = others.iter().find(|other| self.all_else_equal(cell, other))?;
            let [here, there] = [*cell, *other].map(|cell| Metric::Throughput.mean(cell));
            let (here, there) = (here?, there?);
            let row = format!(
                "{} at {}: {here} against {there} kbit/s at {}",
                cell.transport,
                cell.place(),
                self.there
            );
            Some((1.0 - here.mean / there.mean, row))
        };
        let mut falls: Vec<(f64, String)> = at(&self.here).iter().filter_map(fall).collect();
        falls.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let Some(&(deepest, _)) = falls.first() else { return Finding::no_points() };
        let count = falls.iter().filter(|(fall, _)| *fall >= self.share).count();
        let text = format!(
            "throughput falls by {} % or more at {count} of {} points; the deepest fall is {:.1} %",
            100.0 * self.share,
            falls.len(),
            100.0 * deepest
        );
        let holds = if self.none { count == 0 } else { count == falls.len() };
        Finding::new(holds, text).with_rows(falls.into_iter().map(|(_, row)| row).collect())
    }

    fn all_else_equal(&self, one: &Cell, other: &Cell) -> bool {
        let others = |cell: &Cell| -> Vec<(String, String)> {
            let axes = cell.conditions.axes.iter();
            axes.filter(|(key, _)| *key != self.along).cloned().collect()
        };
        one.transport == other.transport && one.experiment == other.experiment && others(one) == others(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dataset, flow, view};

    fn holds(none: bool, here: f64) -> Option<bool> {
        let [here, there] = [("10ms", here), ("0ms", 375.0)]
            .map(|(interval, kbps)| flow("TCP", &[("interval", interval), ("queue", "12p")], &[kbps], 385.0));
        let check = Dip {
            transports: vec!["TCP".into()],
            at: Filter::default(),
            along: "interval".into(),
            here: "10ms".into(),
            there: "0ms".into(),
            share: 0.1,
            none,
        };
        check.evaluate(&view(&dataset(vec![here, there]))).holds
    }

    #[test]
    fn a_fall_is_found_where_there_is_one() {
        assert_eq!((holds(false, 278.0), holds(true, 278.0)), (Some(true), Some(false)));
        assert_eq!((holds(false, 372.0), holds(true, 372.0)), (Some(false), Some(true)));
    }
}
