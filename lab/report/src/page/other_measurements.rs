//! The section with the measurements of other tools, next to the points of the run.

use std::fmt::Write;

use hol_lab::Metric;

use crate::data::Cell;
use crate::other_measurement::OtherSeries;
use crate::plot::{escape, number};
use crate::report::Report;

/// Maximum number of points in the section; the table of all points has the others.
const MAX_POINTS: usize = 40;

/// Returns the section; empty if there is no measurement of another tool.
pub fn html(report: &Report) -> String {
    if report.other_measurements.is_empty() {
        return String::new();
    }
    let mut groups = group("This run", &points(report));
    for other in &report.other_measurements {
        let rows: String = other.series.iter().map(series).collect();
        groups += &group(&format!("{}: {}", other.tool, other.file), &rows);
    }
    let left = report.data.cells.len().saturating_sub(MAX_POINTS);
    let rest =
        if left == 0 { String::new() } else { format!(" The table of all points contains {left} more.") };
    format!(
        "<p class=\"soft\">Delays of iperf3 and flent are mostly round-trip times, as the name of a series states. The delay of a point is the time of a \
         message, including its transmission and queueing. Flent's values include the idle time before and after its load.{rest}</p><div class=\"scroll\"><table class=\"numbers\">\
         <thead><tr><td></td><th scope=\"col\">kbit/s</th><th scope=\"col\">mean, ms</th>\
         <th scope=\"col\">median, ms</th><th scope=\"col\">p99, ms</th></tr></thead>{groups}</table></div>"
    )
}

fn group(name: &str, rows: &str) -> String {
    format!("<tbody><tr><th scope=\"rowgroup\" colspan=\"5\">{}</th></tr>{rows}</tbody>", escape(name))
}

fn points(report: &Report) -> String {
    let row = |cell: &Cell| {
        let axes = cell.conditions.axes.iter().map(|(_, value)| value.as_str());
        let name = [cell.transport.as_str()].into_iter().chain(axes).collect::<Vec<_>>().join(", ");
        let [kbps, mean] = [Metric::Throughput, Metric::ResponseTime]
            .map(|metric| cell.mean_with_bounds(metric).map(|bounds| bounds.to_string()));
        let [median, p99] = [0.5, 0.99].map(|p| cell.quantile_ms(p).map(rounded));
        row(&name, [kbps, mean, median, p99])
    };
    report.data.cells.iter().take(MAX_POINTS).map(row).collect()
}

fn series(OtherSeries { name, kbps, mean_ms, quantiles_ms }: &OtherSeries) -> String {
    let [median, p99] = quantiles_ms.map_or([None; 2], |quantiles| quantiles.map(Some));
    let times = [*mean_ms, median, p99].map(|ms| ms.map(rounded));
    let [mean, median, p99] = times;
    row(name, [kbps.map(|kbps| number(kbps.round())), mean, median, p99])
}

fn row(name: &str, cells: [Option<String>; 4]) -> String {
    let mut text = format!("<tr><td class=\"text\">{}</td>", escape(name));
    for cell in cells {
        let _ = write!(text, "<td>{}</td>", cell.as_deref().unwrap_or("–"));
    }
    text + "</tr>"
}

fn rounded(value: f64) -> String {
    number((value * 1000.0).round() / 1000.0)
}
