//! "A rather small number of streams is sufficient."

use serde::Deserialize;

use super::{Finding, View};
use crate::data::{Cell, Filter};

/// No more streams are needed to be as good as with the largest number than the model says:
/// k* = ceil(rate · RTT + 3), for then a loss is repaired before the stream's next message arrives. Where loss
/// is rare and costs little, fewer are enough.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnoughStreams {
    /// In ascending order of streams; the last is the yardstick.
    transports: Vec<String>,
    #[serde(default)]
    at: Filter,
    /// How near a mean has to be to the yardstick's, as a share of it.
    within: f64,
    /// How many listed numbers the measured one may lie above the model's.
    steps: usize,
}

impl EnoughStreams {
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let Some(many) = self.transports.last() else { return Finding::no_points() };
        let yardsticks = view.cells(many, &self.at);
        let rows: Vec<(bool, String)> =
            yardsticks.into_iter().filter_map(|yardstick| self.at_one_place(view, yardstick)).collect();
        if rows.is_empty() {
            return Finding::no_points();
        }
        let agree = rows.iter().filter(|(agrees, _)| *agrees).count();
        let text = format!(
            "no more streams are needed than the model says (and {} listed step) at {agree} of {} points",
            self.steps,
            rows.len()
        );
        Finding::new(agree == rows.len(), text).with_rows(rows.into_iter().map(|(_, row)| row).collect())
    }

    fn at_one_place(&self, view: &View<'_>, yardstick: &Cell) -> Option<(bool, String)> {
        let goal = yardstick.mean()?.mean * (1.0 + self.within);
        let cells: Vec<&Cell> =
            self.transports.iter().filter_map(|label| view.beside(yardstick, label)).collect();
        let enough = cells.iter().position(|cell| cell.mean().is_some_and(|mean| mean.mean <= goal))?;
        let needed = yardstick.conditions.rate * yardstick.conditions.rtt_ms() / 1000.0 + 3.0;
        let needed = needed.ceil() as u16;
        let model = cells.iter().position(|cell| cell.streams >= needed)?;
        let place = yardstick.place();
        let row = format!(
            "{place}: {} streams are within {} % of {}; the model says {needed}, that is {} of those measured",
            cells[enough].streams,
            100.0 * self.within,
            yardstick.streams,
            cells[model].streams
        );
        Some((enough <= model + self.steps, row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn holds(means: [f64; 6]) -> Option<bool> {
        let labels = ["SCTP-1", "SCTP-2", "SCTP-4", "SCTP-8", "SCTP-16", "SCTP-1024"];
        let cells = labels.iter().zip(means).map(|(label, mean)| cell(label, 1.0, 100.0, &[mean, mean]));
        let data = dataset(cells.collect());
        let transports = labels.map(str::to_owned).to_vec();
        let check = EnoughStreams { transports, at: Filter::default(), within: 0.02, steps: 1 };
        check.evaluate(&view(&data)).holds
    }

    #[test]
    fn eight_streams_are_enough_at_20_ms() {
        assert_eq!(holds([22.96, 21.79, 21.50, 21.0, 21.0, 21.0]), Some(true));
        assert_eq!(holds([22.96, 21.79, 21.20, 21.0, 21.0, 21.0]), Some(true), "one step below the model");
        assert_eq!(holds([21.2, 21.1, 21.0, 21.0, 21.0, 21.0]), Some(true), "fewer are enough");
        assert_eq!(holds([35.0, 30.0, 26.0, 24.0, 22.6, 21.0]), Some(false), "only the last is near itself");
    }
}
