//! The numbers of a figure: a CSV file, and a table on the page.

use std::fmt::Write;

use super::{Curves, Figure};
use crate::metric::Metric;
use crate::plot::{Point, Scale, Series, escape};

/// One row for each x and series: `panel,series,x,mean,ci95` or `panel,series,ms,share,low,high`.
pub fn csv(figure: &Figure) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write =
        |cells: &[String]| writer.write_record(cells).expect("every row has the header's columns");
    write(&header(figure).map(str::to_owned).collect::<Vec<_>>());
    for panel in &figure.panels {
        let title = &panel.title;
        match &panel.curves {
            Curves::Means(series) => {
                for one in series {
                    one.points
                        .iter()
                        .for_each(|point| write(&mean_cells(title, &figure.x.scale, one, point)));
                }
            }
            Curves::Ccdfs(curves) => {
                for curve in curves {
                    for (&(ms, share), &(_, low, high)) in curve.points.iter().zip(&curve.band) {
                        let numbers = [share, low, high].map(|number| format!("{number:.6}"));
                        let [share, low, high] = numbers;
                        write(&[title.clone(), curve.label.clone(), format!("{ms:.4}"), share, low, high]);
                    }
                }
            }
        }
    }
    let octets = writer.into_inner().expect("memory takes what is written");
    String::from_utf8(octets).expect("cells are text")
}

fn header(figure: &Figure) -> impl Iterator<Item = &'static str> {
    let columns = match (figure.is_ccdf, figure.metric) {
        (true, _) => "panel,series,response_ms,share_longer,low95,high95",
        (_, Metric::ResponseTime) => "panel,series,x,mean_ms,ci95_ms,closed_form_ms,n,missing",
        (_, Metric::Tail) => "panel,series,x,p99_ms,ci95_ms,,n,missing",
        (_, Metric::Throughput) => "panel,series,x,throughput_kbps,ci95_kbps,ceiling_kbps,n,missing",
        (_, Metric::Delivered) => "panel,series,x,delivered_percent,ci95,,n,missing",
        (_, Metric::ConnectTime) => "panel,series,x,connect_ms,ci95_ms,,n,missing",
        (_, Metric::FirstOctets) => "panel,series,x,first_octets_ms,ci95_ms,,n,missing",
        (_, Metric::ObjectTime) => "panel,series,x,object_ms,ci95_ms,,n,missing",
        (_, Metric::PacketsLost) => "panel,series,x,packets_lost,ci95,,n,missing",
        (_, Metric::Fairness) => "panel,series,x,fairness,ci95,,n,missing",
    };
    columns.split(',')
}

fn mean_cells(title: &str, scale: &Scale, series: &Series, point: &Point) -> [String; 8] {
    let theory = series.theory.iter().find(|(x, _)| *x == point.x);
    let theory = theory.map(|(_, y)| format!("{y:.4}")).unwrap_or_default();
    let Point { x, y, low, high, n, missing } = point;
    let half_width = (high - low) / 2.0;
    let (title, label) = (title.to_owned(), series.label.clone());
    let half_width = if half_width.is_finite() { format!("{half_width:.4}") } else { String::new() };
    let mean = format!("{y:.4}");
    let x = if let Scale::Names(_) = scale { scale.name(*x) } else { x.to_string() };
    [title, label, x, mean, half_width, theory, n.to_string(), missing.to_string()]
}

/// One row for each series, one column for each x.
pub fn html(figure: &Figure) -> String {
    let mut text = String::new();
    for panel in &figure.panels {
        let Curves::Means(series) = &panel.curves else { continue };
        let place = |point: &Point| match figure.x.scale {
            Scale::Names(_) => point.x.round(),
            _ => point.x,
        };
        let mut xs: Vec<f64> = series.iter().flat_map(|one| one.points.iter().map(place)).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let head: String =
            xs.iter().map(|x| format!("<th>{}</th>", escape(&figure.x.scale.name(*x)))).collect();
        let _ = write!(
            text,
            "<div class=\"scroll\"><table class=\"numbers\"><caption>{}{}, ± 95 %</caption><tr><th>{}</th>{head}</tr>",
            if panel.title.is_empty() { String::new() } else { escape(&panel.title) + ": " },
            figure.metric.axis(),
            escape(&figure.x.label)
        );
        for one in series.iter().filter(|one| !one.points.is_empty()) {
            let _ = write!(text, "<tr><th>{}</th>", escape(&one.label));
            for x in &xs {
                let _ = match one.points.iter().find(|p| place(p) == *x) {
                    Some(p) => {
                        write!(text, "<td>{:.2}<small>{}{}</small></td>", p.y, p.margin(), of(p))
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
