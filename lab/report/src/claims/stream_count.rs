//! The claim "A rather small number of streams is sufficient".

use hol_measure::Comparison;
use serde::Deserialize;

use super::{Finding, View, compare};
use crate::data::{Cell, Filter};
use hol_lab::Metric;

/// The claim that few streams are as good as the largest number: at most k* = ceil(rate · RTT + 3), as in a model in
/// which a lost message is retransmitted before the next message of its stream arrives. If losses are rare and their
/// delay is short, fewer streams suffice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnoughStreams {
    /// The transports by ascending number of streams; the last one is the reference.
    pub(super) transports: Vec<String>,
    /// The points to which the claim applies.
    #[serde(default)]
    pub(super) at: Filter,
    /// The largest permitted deviation of a mean from the reference, as a fraction of the reference.
    #[serde(rename = "within")]
    tolerance: f64,
    /// By how many entries of `transports` the measured number of streams may exceed the prediction of the model.
    steps: usize,
}

/// The result under one set of conditions.
struct StreamCountResult {
    agrees: Option<bool>,
    row: String,
}

impl EnoughStreams {
    /// Evaluates the claim on the points of `view`, which belong to one stack (a named set of transport defaults).
    pub(super) fn evaluate(&self, view: &View<'_>) -> Finding {
        let Some(many) = self.transports.last() else { return Finding::no_points() };
        let references = view.cells(many, &self.at);
        let results: Vec<StreamCountResult> =
            references.into_iter().filter_map(|reference| self.judge_point(view, reference)).collect();
        if results.is_empty() {
            return Finding::no_points();
        }
        let count = |wanted| results.iter().filter(|place| place.agrees == wanted).count();
        let (agree, contradict) = (count(Some(true)), count(Some(false)));
        let text = format!(
            "holds at {agree} of {} points, is contradicted at {contradict}, and is undecided at {}; it holds if \
             the number of streams needed comes at most {} after the model's prediction in the list of transports",
            results.len(),
            count(None),
            match self.steps {
                1 => "one entry".to_owned(),
                steps => format!("{steps} entries"),
            }
        );
        let finding = match (contradict, agree == results.len()) {
            (0, true) => Finding::new(true, text),
            (0, false) => Finding::unknown(text),
            _ => Finding::new(false, text),
        };
        finding.with_rows(results.into_iter().map(|place| place.row).collect())
    }

    fn judge_point(&self, view: &View<'_>, reference: &Cell) -> Option<StreamCountResult> {
        let margin = self.tolerance * reference.mean()?.mean;
        let cells: Vec<&Cell> =
            self.transports.iter().filter_map(|label| view.with_same_conditions(reference, label)).collect();
        let needed = reference.conditions.rate * reference.conditions.rtt_ms() / 1000.0 + 3.0;
        let needed = needed.ceil() as u16;
        let model = cells.iter().position(|cell| cell.streams >= needed)?;
        // The reference is not compared with itself.
        let last = (model + self.steps).min(cells.len().checked_sub(2)?);
        let compared = |cell: &&Cell| compare(Metric::ResponseTime, cell, reference, margin);
        let as_good = |c: &Comparison| c.difference.high() <= margin;
        let worse = |c: &Comparison| c.difference.low() > margin;
        let enough = cells[..=last].iter().position(|cell| compared(cell).as_ref().is_some_and(as_good));
        let agrees = match (enough, compared(&cells[last])) {
            (Some(_), _) => Some(true),
            (None, Some(comparison)) if worse(&comparison) => Some(false),
            _ => None,
        };
        let (place, within, many) =
            (reference.describe_conditions(), 100.0 * self.tolerance, reference.streams);
        let model = format!(
            "the model predicts {needed} streams; the smallest measured number that reaches this is {}",
            cells[model].streams
        );
        let row = match (enough, compared(&cells[last])) {
            (Some(index), _) => {
                format!(
                    "{place}: the mean response time with {} streams is within {within} % of that with {many}; {model}",
                    cells[index].streams
                )
            }
            (None, Some(comparison)) => format!(
                "{place}: the mean response time with {} streams minus that with {many} is {} ms; {model}",
                cells[last].streams, comparison.difference
            ),
            (None, None) => {
                format!("{place}: {} streams did not carry the load; {model}", cells[last].streams)
            }
        };
        Some(StreamCountResult { agrees, row })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset, view};

    fn holds(means: [f64; 6]) -> Option<bool> {
        known_to(0.001, means)
    }

    fn known_to(noise: f64, means: [f64; 6]) -> Option<bool> {
        let labels = ["SCTP-1", "SCTP-2", "SCTP-4", "SCTP-8", "SCTP-16", "SCTP-1024"];
        let cells = labels.iter().zip(means).map(|(label, mean)| {
            let noise = if *label == "SCTP-1024" { -noise } else { noise };
            cell(label, 1.0, 100.0, &[mean - noise, mean, mean + noise, mean])
        });
        let data = dataset(cells.collect());
        let transports = labels.map(str::to_owned).to_vec();
        let check = EnoughStreams { transports, at: Filter::default(), tolerance: 0.02, steps: 1 };
        check.evaluate(&view(&data)).holds
    }

    #[test]
    fn eight_streams_are_enough_at_20_ms() {
        assert_eq!(holds([22.96, 21.79, 21.50, 21.0, 21.0, 21.0]), Some(true));
        assert_eq!(holds([22.96, 21.79, 21.20, 21.0, 21.0, 21.0]), Some(true), "one step below the model");
        assert_eq!(holds([21.2, 21.1, 21.0, 21.0, 21.0, 21.0]), Some(true), "fewer are enough");
        assert_eq!(holds([35.0, 30.0, 26.0, 24.0, 22.6, 21.0]), Some(false), "only the last is near itself");
    }

    #[test]
    fn undecided_difference_decides_nothing() {
        assert_eq!(known_to(5.0, [35.0, 30.0, 26.0, 24.0, 22.6, 21.0]), None);
        assert_eq!(known_to(5.0, [23.0, 22.0, 21.2, 21.0, 21.0, 21.0]), None);
    }
}
