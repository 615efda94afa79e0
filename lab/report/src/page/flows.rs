//! The metrics of flows, one row for each point: throughput, background throughput, connect time.

use hol_measure::ConfidenceInterval;

use crate::data::{Cell, Flows};
use crate::plot::escape;
use crate::report::Report;
use hol_lab::Metric;

/// The largest number of points in a table that is not collapsed.
const POINTS_SHOWN: usize = 24;

const TABLE_HEAD: &str = "<tr><th>point</th><th>throughput, kbit/s</th><th>background flow, kbit/s</th>\
                    <th>fairness (Jain)</th><th>connected after, ms</th><th>runs</th><th>not connected</th>\
                    <th>not finished</th></tr>";

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    // The table of all points contains these metrics.
    if !report.surveys.is_empty() {
        return String::new();
    }
    let tables: String =
        report.provenance.experiments.iter().filter_map(|(name, ..)| table(report, name)).collect();
    if tables.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"soft\">The throughput is the rate of user data from the first message sent to the last one delivered, with 95 % confidence \
         intervals over the repetitions. A run that did not connect in time, or did not deliver every message, has no throughput; the last \
         two columns count these runs.</p>\
         {tables}"
    )
}

/// Returns the table, collapsed if there are many points.
fn table(report: &Report, experiment: &str) -> Option<String> {
    let cells: Vec<&Cell> = report.data.cells.iter().filter(|cell| cell.experiment == experiment).collect();
    let rows: String = cells.iter().filter_map(|cell| row(cell)).collect();
    let open = if cells.len() > POINTS_SHOWN { "" } else { " open" };
    (!rows.is_empty()).then(|| {
        format!(
            "<details{open}><summary>{}: {} points</summary><div class=\"scroll\"><table class=\"numbers\">{TABLE_HEAD}{rows}\
             </table></div></details>",
            escape(experiment),
            cells.len()
        )
    })
}

fn row(cell: &Cell) -> Option<String> {
    let Flows { point, background_kbps, .. } = cell.flows.as_ref()?;
    let [throughput, fairness, connect] = [Metric::Throughput, Metric::Fairness, Metric::ConnectTime]
        .map(|metric| cell.mean_with_bounds(metric));
    let cells: String = [throughput, background_kbps.map(ConfidenceInterval::from), fairness, connect]
        .map(|of| format!("<td>{}</td>", format_bounds(of)))
        .concat();
    let [unconnected, unended] =
        [Metric::ConnectTime, Metric::Throughput].map(|metric| cell.runs_without_value(metric));
    let why = cell.stop_reason.as_ref().map(|why| format!(" title=\"{}\"", escape(why))).unwrap_or_default();
    Some(format!(
        "<tr><th>{}</th>{cells}<td>{}</td><td>{unconnected}</td><td{why}>{unended}</td></tr>",
        escape(point),
        cell.values_by_run(Metric::ConnectTime).len()
    ))
}

fn format_bounds(bounds: Option<ConfidenceInterval>) -> String {
    bounds.map_or("–".to_owned(), |bounds| bounds.to_string())
}
