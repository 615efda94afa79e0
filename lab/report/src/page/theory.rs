//! Compares the closed form with the measurement: means, and the heights of the CCDFs' plateaus.

use std::collections::BTreeSet;
use std::fmt::Write;

use hol_base::Duration;
use hol_measure::{CONFIDENCE, ConfidenceInterval};

use crate::closed_form::applicable;
use crate::data::Cell;
use crate::plot::escape;
use crate::report::Report;
use hol_lab::Metric;

/// The largest permitted deviation of a mean from the closed form, as a fraction of the closed form.
const MAX_DEVIATION: f64 = 0.03;
/// The time beyond the round trip, in ms, below which a response counts as undisturbed.
const UNDISTURBED_MS: f64 = 1.0;

/// A point to which the closed form applies.
struct Row<'a> {
    cell: &'a Cell,
    mean: TheoryComparison,
    plateau: TheoryComparison,
}

/// A measured value and the value of the closed form.
struct TheoryComparison {
    /// The confidence interval of the measured value.
    measured: ConfidenceInterval,
    /// The value of the closed form.
    expected: f64,
}

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let experiments: Vec<&str> =
        report.study_figures.closed_form_experiments.iter().map(String::as_str).collect();
    let mut text = String::new();
    for stack in &report.study_figures.views {
        let others = report
            .study_figures
            .views
            .iter()
            .map(|v| v.suffix.as_str())
            .filter(|s| s.len() > stack.suffix.len());
        let others: Vec<&str> = others.collect();
        let mine = |cell: &&Cell| {
            cell.transport.ends_with(&stack.suffix)
                && !others.iter().any(|suffix| cell.transport.ends_with(suffix))
                && experiments.contains(&cell.experiment.as_str())
                && cell.conditions.loss > 0.0
        };
        let cells: Vec<&Cell> = report.data.cells.iter().filter(mine).collect();
        let rows: Vec<Row<'_>> = cells.iter().filter_map(|cell| row(cell)).collect();
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "<h3>{}</h3><p>Of {} means, {}. Of the plateaus of the same points, {}. At {} further points the assumptions of the closed form do not hold.</p>\
             {}<details><summary>all points</summary><div class=\"scroll\">{}</div></details>",
            escape(&stack.title),
            rows.len(),
            agreement(&rows, |row| &row.mean),
            agreement(&rows, |row| &row.plateau),
            cells.len() - rows.len(),
            describe_misses(&rows),
            table(&rows)
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "<p class=\"soft\">The closed form is the resequencing model of Kiesel and Scharf (2006), derived independently. A lost message is delayed until its loss is detected, and every later message of its stream waits for it. The closed form ignores windows and bundling. If a loss halves the window, messages wait at the sender; this delay appears only in the measurement. The plateau is the share of transactions that take longer than a round trip.</p>{text}"
    )
}

impl TheoryComparison {
    fn deviation(&self) -> f64 {
        self.measured.value / self.expected - 1.0
    }

    fn is_near(&self) -> bool {
        self.deviation().abs() <= MAX_DEVIATION
    }

    fn agrees(&self) -> bool {
        self.is_near() || (self.measured.low..=self.measured.high).contains(&self.expected)
    }

    fn html(&self) -> String {
        let class = if self.agrees() { "yes" } else { "no" };
        format!(
            "<td>{}</td><td>{:.2}</td><td class=\"{class}\">{:+.1} %</td>",
            self.measured,
            self.expected,
            100.0 * self.deviation()
        )
    }
}

/// Selects a value of a point: its mean, or its plateau (the share of transactions that take longer than a round trip).
type ValueSelector = for<'r> fn(&'r Row<'_>) -> &'r TheoryComparison;

fn agreement(rows: &[Row<'_>], of: ValueSelector) -> String {
    let near = rows.iter().filter(|row| of(row).is_near()).count();
    let covered = rows.iter().filter(|row| !of(row).is_near() && of(row).agrees()).count();
    let within = 100.0 * MAX_DEVIATION;
    format!("{near} are within {within} % of the closed form, and the 95 % CIs of {covered} more contain it")
}

/// Returns for each transport at how many points the closed form is wrong, and by how much.
fn describe_misses(rows: &[Row<'_>]) -> String {
    let mut transports: Vec<&str> = rows.iter().map(|row| row.cell.transport.as_str()).collect();
    let mut seen = BTreeSet::new();
    transports.retain(|transport| seen.insert(*transport));
    let line = |transport: &&str| {
        let mine: Vec<&Row<'_>> = rows.iter().filter(|row| row.cell.transport == **transport).collect();
        let numbers = [count_failure(&mine, |row| &row.mean), count_failure(&mine, |row| &row.plateau)];
        format!("<tr><td>{}</td>{}</tr>", escape(transport), numbers.concat())
    };
    let lines: String = transports.iter().map(line).collect();
    format!(
        "<div class=\"scroll\"><table><caption>Points that do not agree, and the ratio of the measurement to the closed form</caption>\
         <tr><th>transport</th><th>means</th><th>ratio</th><th>plateaus</th><th>ratio</th></tr>{lines}</table></div>"
    )
}

fn count_failure(rows: &[&Row<'_>], of: ValueSelector) -> String {
    let missed = rows.iter().filter(|row| !of(row).agrees()).map(|row| 1.0 + of(row).deviation());
    let mut ratios: Vec<f64> = missed.collect();
    ratios.sort_by(f64::total_cmp);
    let times = match ratios.as_slice() {
        [] => "–".to_owned(),
        [one] => format!("{one:.2}"),
        [min, .., max] => format!("{min:.2} to {max:.2}"),
    };
    format!("<td>{} of {}</td><td>{times}</td>", ratios.len(), rows.len())
}

fn row(cell: &Cell) -> Option<Row<'_>> {
    let transfer = applicable(cell).ok()?;
    let floor = Duration::from_secs_f64((cell.conditions.rtt_ms() + UNDISTURBED_MS) / 1000.0);
    let shares: Vec<f64> =
        cell.runs.iter().filter_map(|run| Some(100.0 * run.latency.share_above(floor)?)).collect();
    let mean = TheoryComparison {
        measured: cell.mean_with_bounds(Metric::ResponseTime)?,
        expected: transfer.mean_response(),
    };
    let plateau = TheoryComparison {
        measured: ConfidenceInterval::of_mean(&shares, CONFIDENCE)?,
        expected: 100.0 * transfer.share_delayed(),
    };
    Some(Row { cell, mean, plateau })
}

/// Returns the table, with the points at 1 % loss visible and the others collapsed.
fn table(rows: &[Row<'_>]) -> String {
    let head = "<tr><th>point</th><th>transport</th><th>mean (ms)</th><th>closed form</th><th>deviation</th><th>plateau (%)</th><th>closed form</th><th>deviation</th></tr>";
    let (first, rest): (Vec<&Row<'_>>, Vec<&Row<'_>>) =
        rows.iter().partition(|row| (row.cell.conditions.loss - 1.0).abs() < 1e-9);
    let lines = |rows: &[&Row<'_>]| rows.iter().map(|row| line(row)).collect::<String>();
    format!(
        "<table>{head}{}</table><details><summary>all other losses ({} points)</summary><table>{head}{}</table></details>",
        lines(&first),
        rest.len(),
        lines(&rest)
    )
}

fn line(Row { cell, mean, plateau }: &Row<'_>) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td>{}{}</tr>",
        escape(&cell.describe_conditions()),
        escape(&cell.transport),
        mean.html(),
        plateau.html()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell_with;

    /// 3 of 100 transactions are late in each of ten repetitions; the closed form predicts 5.95 %.
    #[test]
    fn plateau_deviation_is_reported_with_its_transport() {
        let responses: Vec<f64> = (0..100).map(|index| if index < 3 { 61.5 } else { 20.0 }).collect();
        let tcp = cell_with("TCP", 1.0, 100.0, &vec![responses; 10]);
        let row = row(&tcp).unwrap();
        assert!(row.mean.is_near(), "{:?}", row.mean.measured);
        assert!((row.plateau.expected - 5.95).abs() < 0.01 && !row.plateau.agrees());
        let rows = [row];
        assert!(agreement(&rows, |row| &row.mean).starts_with("1 are within 3 %"));
        let misses = describe_misses(&rows);
        assert!(
            misses.contains("<td>TCP</td><td>0 of 1</td><td>–</td><td>1 of 1</td><td>0.50</td>"),
            "{misses}"
        );
    }
}
