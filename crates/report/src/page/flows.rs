//! Flows as a whole: throughput, what the background got meanwhile, connecting. One row a point.

use hol_measure::Interval;

use crate::data::{Cell, Flows};
use crate::metric::Metric;
use crate::plot::escape;
use crate::report::Report;

const HEAD: &str = "<tr><th>point</th><th>throughput, kbit/s</th><th>a flow of the background, kbit/s</th>\
                    <th>fairness (Jain)</th><th>connected after, ms</th><th>runs not connected</th></tr>";

pub fn html(report: &Report) -> String {
    let rows: String = report.data.cells.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"soft\">User data from the first message sent to the last delivered; ± 95 % over the repetitions.</p>\
         <div class=\"scroll\"><table class=\"numbers\">{HEAD}{rows}</table></div>"
    )
}

fn row(cell: &Cell) -> Option<String> {
    let Flows { point, background_kbps, connects, .. } = cell.flows.as_ref()?;
    let [throughput, fairness, connect] =
        [Metric::Throughput, Metric::Fairness, Metric::ConnectTime].map(|metric| metric.mean(cell));
    let cells: String = [throughput, *background_kbps, fairness, connect]
        .map(|of| format!("<td>{}</td>", shown(of)))
        .concat();
    let (runs, unconnected) = (connects.len(), connects.iter().filter(|time| time.is_none()).count());
    Some(format!("<tr><th>{}</th>{cells}<td>{unconnected} of {runs}</td></tr>", escape(point)))
}

fn shown(interval: Option<Interval>) -> String {
    interval.map_or("–".to_owned(), |interval| interval.to_string())
}
