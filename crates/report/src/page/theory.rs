//! The closed form against the measurement: means and the heights of the CCDFs' plateaus.

use std::fmt::Write;

use hol_base::Duration;
use hol_measure::Interval;

use crate::closed_form::applicable;
use crate::data::Cell;
use crate::plot::escape;
use crate::report::Report;

/// How near the mean has to be, as a share of it.
const WITHIN: f64 = 0.03;
/// What a response may take beyond the round trip and still count as undisturbed, in ms.
const UNDISTURBED_MS: f64 = 1.0;

/// One point that the closed form describes.
struct Row<'a> {
    cell: &'a Cell,
    measured: Interval,
    expected: f64,
    plateau: f64,
    expected_plateau: f64,
}

pub fn html(report: &Report) -> String {
    let experiments: Vec<&str> = report.layout.closed_form_experiments.iter().map(String::as_str).collect();
    let mut text = String::new();
    for stack in &report.layout.views {
        let others =
            report.layout.views.iter().map(|v| v.suffix.as_str()).filter(|s| s.len() > stack.suffix.len());
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
        let near = rows.iter().filter(|row| row.is_near()).count();
        let covered = rows.iter().filter(|row| !row.is_near() && row.measured.contains(row.expected)).count();
        let _ = write!(
            text,
            "<h3>{}</h3><p>{near} of {} means are within {} % of the closed form, and {covered} more have it inside their own 95 % interval; at {} further points its assumptions do not hold.</p><details><summary>the points</summary><div class=\"scroll\">{}</div></details>",
            escape(&stack.title),
            rows.len(),
            100.0 * WITHIN,
            cells.len() - rows.len(),
            table(&rows)
        );
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "<p class=\"soft\">The model of resequencing (Kiesel and Scharf 2006, derived anew): each loss costs its detection time, and every later message of the stream waits with it. It knows neither windows nor bundling. Plateau: the share of transactions that take longer than a round trip.</p>{text}"
    )
}

impl Row<'_> {
    fn deviation(&self) -> f64 {
        self.measured.mean / self.expected - 1.0
    }

    fn is_near(&self) -> bool {
        self.deviation().abs() <= WITHIN
    }
}

fn row(cell: &Cell) -> Option<Row<'_>> {
    let transfer = applicable(cell).ok()?;
    let floor = Duration::from_secs_f64((cell.conditions.rtt_ms() + UNDISTURBED_MS) / 1000.0);
    Some(Row {
        cell,
        measured: cell.mean()?,
        expected: transfer.mean_response(),
        plateau: cell.latency.share_above(floor)?,
        expected_plateau: transfer.share_delayed(),
    })
}

/// Points at 1 % loss at once, all others when opened.
fn table(rows: &[Row<'_>]) -> String {
    let head = "<tr><th>point</th><th>transport</th><th>measured (ms)</th><th>closed form</th><th>deviation</th><th>plateau measured</th><th>closed form</th></tr>";
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

fn line(row: &Row<'_>) -> String {
    let agrees = row.is_near() || row.measured.contains(row.expected);
    let class = if agrees { "yes" } else { "no" };
    format!(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td class=\"{class}\">{:+.1} %</td><td>{:.2} %</td><td>{:.2} %</td></tr>",
        escape(&row.cell.place()),
        escape(&row.cell.transport),
        row.measured,
        row.expected,
        100.0 * row.deviation(),
        100.0 * row.plateau,
        100.0 * row.expected_plateau
    )
}
