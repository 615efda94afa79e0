//! A table of all points of an experiment that is not a study, with sorting and search.

use std::fmt::Write;

use hol_lab::DefinedMetric;
use hol_measure::ConfidenceInterval;

use crate::data::Cell;
use crate::plot::{escape, number};
use crate::report::Report;
use crate::survey::{SurveyResults, defined_metrics, main_metric};
use hol_lab::Metric;

/// A column: its heading, its text for a point, and the number by which it is sorted.
struct Column {
    head: &'static str,
    cell_of: fn(&Cell) -> (String, Option<f64>),
}

const COLUMNS: [Column; 9] = [
    Column { head: "mean, 95 %, ms", cell_of: mean },
    Column { head: "median, ms", cell_of: |cell| quantile(cell, 0.5) },
    Column { head: "p99, ms", cell_of: |cell| quantile(cell, 0.99) },
    Column { head: "p99.9, ms", cell_of: |cell| quantile(cell, 0.999) },
    Column { head: "longest, ms", cell_of: |cell| quantile(cell, 1.0) },
    Column { head: "median run, ms", cell_of: |cell| bounds(cell.median(Metric::ResponseTime)) },
    Column { head: "runs collapsed", cell_of: collapsed },
    Column { head: "not arrived", cell_of: |cell| whole_number(cell.lost_messages()) },
    Column { head: "of", cell_of: |cell| whole_number(cell.latency.offered()) },
];

/// Columns of flows, if messages go one way or there is background traffic.
const FLOW_COLUMNS: [Column; 5] = [
    Column { head: "kbit/s, 95 %", cell_of: |cell| bounds(cell.mean_with_bounds(Metric::Throughput)) },
    Column {
        head: "background, kbit/s",
        cell_of: |cell| {
            bounds(cell.flows.as_ref().and_then(|f| f.background_kbps).map(ConfidenceInterval::from))
        },
    },
    Column { head: "fairness (Jain)", cell_of: |cell| bounds(cell.mean_with_bounds(Metric::Fairness)) },
    Column {
        head: "connected after, ms",
        cell_of: |cell| bounds(cell.mean_with_bounds(Metric::ConnectTime)),
    },
    Column {
        head: "runs not connected",
        cell_of: |cell| whole_number(cell.runs_without_value(Metric::ConnectTime) as u64),
    },
];

/// Columns for points whose path is disrupted.
const OUTAGE_COLUMNS: [Column; 6] = [
    Column { head: "outage, 95 %, ms", cell_of: |cell| bounds(cell.mean_with_bounds(Metric::Outage)) },
    Column { head: "runs not recovered", cell_of: unrecovered_runs },
    Column { head: "late messages", cell_of: |cell| bounds(cell.mean_with_bounds(Metric::LateMessages)) },
    Column {
        head: "event to first late message, ms",
        cell_of: |cell| bounds(cell.mean_with_bounds(Metric::BacklogFirst)),
    },
    Column {
        head: "event to last late message, ms",
        cell_of: |cell| bounds(cell.mean_with_bounds(Metric::BacklogLast)),
    },
    Column { head: "event to error, ms", cell_of: |cell| bounds(cell.mean_with_bounds(Metric::Noticed)) },
];

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    report.surveys.iter().map(|survey| table(report, survey)).collect()
}

fn table(report: &Report, survey: &SurveyResults) -> String {
    let cells: Vec<&Cell> =
        report.data.cells.iter().filter(|cell| cell.experiment == survey.experiment).collect();
    let has_flows = cells.iter().any(|cell| cell.flows.is_some());
    let defined = defined_metrics(cells.iter().copied());
    let flows = &FLOW_COLUMNS[..if has_flows { FLOW_COLUMNS.len() } else { 0 }];
    let is_disrupted = cells.iter().any(|cell| cell.recovered_runs().is_some());
    let outages = &OUTAGE_COLUMNS[..if is_disrupted { OUTAGE_COLUMNS.len() } else { 0 }];
    let groups = match main_metric(cells.iter().copied()) {
        Metric::Throughput => [flows, &COLUMNS, outages],
        _ => [outages, &COLUMNS, flows],
    };
    let columns: Vec<&Column> = groups.into_iter().flatten().collect();
    let axes: Vec<&String> = survey.axes.iter().flat_map(|axis| &axis.keys).collect();
    let keys = axes.iter().map(|key| key.as_str());
    let own: Vec<String> =
        defined.iter().map(|defined| format!("{}, 95 %", Metric::Defined(*defined).axis_title())).collect();
    let heads = ["transport"].into_iter().chain(keys).chain(own.iter().map(String::as_str));
    let heads = heads.chain(columns.iter().map(|column| column.head));
    let head: String = heads.map(|head| format!("<th scope=\"col\">{}</th>", escape(head))).collect();
    let rows: String = cells.iter().map(|cell| row(cell, &axes, &defined, &columns)).collect();
    format!(
        "<div class=\"points\"><p class=\"soft\">The mean and the median run summarise the repetitions. A run has collapsed if it ended early, \
         fell more than a second behind its schedule, or had a growing backlog; on a path whose rate changes, falling behind counts only if the load exceeds the mean rate of the path. Without a steady state the mean depends on the length of the runs. All other times are quantiles over the messages of all runs (figures of the 99th percentile show the mean of the percentiles of the runs); a message that never arrived counts as infinitely late.</p><div class=\"scroll\"><table class=\"numbers \
         sortable\"><caption>{} points</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></div>",
        cells.len()
    )
}

fn row(cell: &Cell, axes: &[&String], defined: &[DefinedMetric], columns: &[&Column]) -> String {
    let mut text = format!("<tr><th scope=\"row\">{}</th>", escape(&cell.transport));
    for key in axes {
        let _ = write!(text, "<td>{}</td>", escape(cell.conditions.axis_value(key).unwrap_or_default()));
    }
    let own = defined.iter().map(|defined| bounds(cell.mean_with_bounds(Metric::Defined(*defined))));
    for (shown, value) in own.chain(columns.iter().map(|column| (column.cell_of)(cell))) {
        let value = value.map_or(String::new(), |value| format!(" data-v=\"{value}\""));
        let _ = write!(text, "<td{value}>{shown}</td>");
    }
    let why = cell.stop_reason.as_ref().map(|why| format!("<td class=\"text\">{}</td>", escape(why)));
    text + &why.unwrap_or_default() + "</tr>"
}

fn mean(cell: &Cell) -> (String, Option<f64>) {
    if cell.is_steady {
        bounds(cell.mean_with_bounds(Metric::ResponseTime))
    } else {
        ("no steady state".to_owned(), None)
    }
}

fn collapsed(cell: &Cell) -> (String, Option<f64>) {
    let (collapsed, runs) = (cell.collapsed_runs(), cell.runs.len());
    (format!("{collapsed} of {runs}"), Some(collapsed as f64))
}

fn unrecovered_runs(cell: &Cell) -> (String, Option<f64>) {
    let missing = cell.recovered_runs().map(|recovered| cell.runs.len() - recovered);
    missing.map_or(("–".to_owned(), None), |missing| whole_number(missing as u64))
}

fn bounds(bounds: Option<ConfidenceInterval>) -> (String, Option<f64>) {
    bounds.map_or(("–".to_owned(), None), |bounds| (bounds.to_string(), Some(bounds.value)))
}

fn quantile(cell: &Cell, p: f64) -> (String, Option<f64>) {
    let ms = cell.quantile_ms(p);
    ms.map_or(("–".to_owned(), None), |ms| (number((ms * 1000.0).round() / 1000.0), Some(ms)))
}

fn whole_number(count: u64) -> (String, Option<f64>) {
    (number(count as f64), Some(count as f64))
}
