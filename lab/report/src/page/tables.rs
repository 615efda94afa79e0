//! Tables with the means of a whole experiment, for results that the paper does not report.

use std::fmt::Write;

use crate::data::{Cell, Conditions};
use crate::plot::{escape, number};
use crate::report::Report;
use hol_lab::Metric;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let mut text = String::new();
    for name in &report.study_figures.tables {
        let cells: Vec<&Cell> = report.data.cells.iter().filter(|cell| cell.experiment == *name).collect();
        let title = report.provenance.experiments.iter().find(|(known, ..)| known == name);
        if let (Some((_, title, ..)), false) = (title, cells.is_empty()) {
            let _ = write!(text, "<h3>{}</h3><div class=\"scroll\">{}</div>", escape(title), table(&cells));
        }
    }
    text
}

/// Returns a table with a row for each transport and a column for each set of conditions.
fn table(cells: &[&Cell]) -> String {
    let mut columns: Vec<&Conditions> = Vec::new();
    let mut rows: Vec<&str> = Vec::new();
    for cell in cells {
        if !columns.contains(&&cell.conditions) {
            columns.push(&cell.conditions);
        }
        if !rows.contains(&cell.transport.as_str()) {
            rows.push(&cell.transport);
        }
    }
    let head: String = columns.iter().map(|conditions| format!("<th>{}</th>", heading(conditions))).collect();
    let mut text =
        format!("<table><caption>Mean response time in ms, with 95 % CI</caption><tr><th></th>{head}</tr>");
    for row in rows {
        let _ = write!(text, "<tr><td>{}</td>", escape(row));
        for conditions in &columns {
            let cell = cells.iter().find(|cell| cell.transport == row && cell.conditions == **conditions);
            let mean = cell.and_then(|cell| cell.mean_with_bounds(Metric::ResponseTime));
            let _ = match mean {
                Some(mean) => write!(text, "<td>{mean}</td>"),
                None => write!(text, "<td>–</td>"),
            };
        }
        text.push_str("</tr>");
    }
    text + "</table>"
}

fn heading(conditions: &Conditions) -> String {
    let Conditions { loss, rate, workload, .. } = conditions;
    format!("{}<br><small>{} % loss, {}/s</small>", escape(workload), number(*loss), number(*rate))
}
