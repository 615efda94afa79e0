//! The numbers of a figure: a CSV file, and a table on the page.

use std::fmt::Write;

use super::{Curves, Figure};
use crate::metric::Metric;
use crate::plot::{Point, Series, number};

/// One row for each x and series: `panel,series,x,mean,ci95` or `panel,series,ms,share,low,high`.
pub fn csv(figure: &Figure) -> String {
    let mut text = String::from(match (figure.is_ccdf, figure.spec.metric) {
        (true, _) => "panel,series,response_ms,share_longer,low95,high95\n",
        (_, Metric::ResponseTime) => "panel,series,x,mean_ms,ci95_ms,closed_form_ms,n,missing\n",
        (_, Metric::Throughput) => "panel,series,x,throughput_kbps,ci95_kbps,ceiling_kbps,n,missing\n",
        (_, Metric::Delivered) => "panel,series,x,delivered_percent,ci95,,n,missing\n",
        (_, Metric::ConnectTime) => "panel,series,x,connect_ms,ci95_ms,,n,missing\n",
        (_, Metric::Fairness) => "panel,series,x,fairness,ci95,,n,missing\n",
    });
    for panel in &figure.panels {
        let title = &panel.title;
        match &panel.curves {
            Curves::Means(series) => series.iter().for_each(|one| mean_rows(&mut text, title, one)),
            Curves::Ccdfs(curves) => {
                for curve in curves {
                    for (&(ms, share), &(_, low, high)) in curve.points.iter().zip(&curve.band) {
                        let label = &curve.label;
                        let _ = writeln!(text, "{title},{label},{ms:.4},{share:.6},{low:.6},{high:.6}");
                    }
                }
            }
        }
    }
    text
}

fn mean_rows(text: &mut String, title: &str, series: &Series) {
    for point in &series.points {
        let theory = series.theory.iter().find(|(x, _)| *x == point.x);
        let theory = theory.map(|(_, y)| format!("{y:.4}")).unwrap_or_default();
        let Point { x, y, half_width, n, missing } = *point;
        let _ = writeln!(text, "{title},{},{x},{y:.4},{half_width:.4},{theory},{n},{missing}", series.label);
    }
}

/// One row for each series, one column for each x.
pub fn html(figure: &Figure) -> String {
    let mut text = String::new();
    for panel in &figure.panels {
        let Curves::Means(series) = &panel.curves else { continue };
        let mut xs: Vec<f64> = series.iter().flat_map(|one| one.points.iter().map(|p| p.x)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let head: String = xs.iter().map(|x| format!("<th>{}</th>", number(*x))).collect();
        let _ = write!(
            text,
            "<div class=\"scroll\"><table class=\"numbers\"><caption>{}: {} in {}, ± 95 %</caption><tr><th>{}</th>{head}</tr>",
            panel.title,
            figure.spec.metric.name(),
            figure.spec.metric.unit(),
            figure.x_label
        );
        for one in series.iter().filter(|one| !one.points.is_empty()) {
            let _ = write!(text, "<tr><th>{}</th>", one.label);
            for x in &xs {
                let _ = match one.points.iter().find(|p| p.x == *x) {
                    Some(p) => {
                        write!(text, "<td>{:.2}<small> ± {:.2}{}</small></td>", p.y, p.half_width, of(p))
                    }
                    None => write!(text, "<td>–</td>"),
                };
            }
            text.push_str("</tr>");
        }
        text.push_str("</table></div>");
    }
    text
}

/// How many repetitions a mean is of, where some have no value.
fn of(point: &Point) -> String {
    let Point { n, missing, .. } = *point;
    if missing > 0 { format!(", {n} of {}", n + missing as u64) } else { String::new() }
}
