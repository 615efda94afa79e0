//! The numbers of a figure as a CSV file and as an HTML table.

use std::fmt::Write;

use super::{Curves, Figure};
use crate::plot::{Point, Scale, Series, escape};
use hol_lab::Metric;

/// Returns CSV with a row for each x and series. The names of its columns depend on the kind of figure and on
/// the metric.
pub fn csv(figure: &Figure) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut write =
        |cells: &[String]| writer.write_record(cells).expect("every row has the header's columns");
    write(&header(figure).into_iter().map(str::to_owned).collect::<Vec<_>>());
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
            Curves::OverTime { curves, .. } => {
                for curve in curves {
                    for (at, value) in &curve.points {
                        let value = value.map_or(String::new(), |value| format!("{value:.4}"));
                        write(&[title.clone(), curve.label.clone(), format!("{at:.4}"), value]);
                    }
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
    let octets = writer.into_inner().expect("writing to memory does not fail");
    String::from_utf8(octets).expect("cells are text")
}

fn header(figure: &Figure) -> Vec<&'static str> {
    let over_time = figure.panels.iter().find_map(|panel| match &panel.curves {
        Curves::OverTime { events, .. } => {
            Some(if events.is_empty() { "s_since_start" } else { "s_since_event" })
        }
        Curves::Means(_) | Curves::Ccdfs(_) => None,
    });
    if let Some(time) = over_time {
        let value = if figure.metric == Metric::Throughput { "goodput_kbps" } else { "response_ms" };
        return vec!["panel", "series", time, value];
    }
    if figure.is_ccdf {
        return vec!["panel", "series", "response_ms", "share_longer", "low95", "high95"];
    }
    let info = figure.metric.info();
    let [low, high] = match (figure.metric, info.unit) {
        (Metric::Defined(_), _) => ["low95", "high95"],
        (_, "ms") => ["low95_ms", "high95_ms"],
        (_, "kbit/s") => ["low95_kbps", "high95_kbps"],
        _ => ["low95", "high95"],
    };
    let closed_form = info.theory.map_or("", |[column, _]| column);
    vec!["panel", "series", "x", info.column, low, high, closed_form, "n", "missing", "collapsed"]
}

fn mean_cells(title: &str, scale: &Scale, series: &Series, point: &Point) -> Vec<String> {
    let theory = series.theory.iter().find(|(x, _)| *x == point.x).map(|(_, y)| *y);
    let Point { x, value, n, missing, collapsed } = point;
    let x = if let Scale::Names(_) = scale { scale.name(*x) } else { x.to_string() };
    let numbers = [Some(value.value), Some(value.low), Some(value.high), theory];
    // Unknown values are empty.
    let number =
        |value: Option<f64>| value.filter(|v| v.is_finite()).map(|v| format!("{v:.4}")).unwrap_or_default();
    let counts = [n, missing, collapsed].map(usize::to_string);
    [title.to_owned(), series.label.clone(), x].into_iter().chain(numbers.map(number)).chain(counts).collect()
}

/// Returns an HTML table with a row for each series and a column for each x.
pub fn html(figure: &Figure) -> String {
    let mut text = String::new();
    for panel in &figure.panels {
        let Curves::Means(series) = &panel.curves else { continue };
        let place = |x: f64| if let Scale::Names(_) = figure.x.scale { x.round() } else { x };
        let places = |one: &Series| -> Vec<f64> {
            one.points
                .iter()
                .map(|point| point.x)
                .chain(one.gaps.iter().map(|gap| gap.x))
                .map(place)
                .collect()
        };
        let mut xs: Vec<f64> = series.iter().flat_map(places).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        let head: String =
            xs.iter().map(|x| format!("<th>{}</th>", escape(&figure.x.scale.name(*x)))).collect();
        let _ = write!(
            text,
            "<div class=\"scroll\"><table class=\"numbers\"><caption>{}{}, with 95 % CI</caption><tr><th>{}</th>{head}</tr>",
            if panel.title.is_empty() { String::new() } else { escape(&panel.title) + ": " },
            figure.metric.axis_title(),
            escape(&figure.x.label)
        );
        for one in series.iter().filter(|one| !one.points.is_empty()) {
            let _ = write!(text, "<tr><th>{}</th>", escape(&one.label));
            for x in &xs {
                let why = one.gaps.iter().find(|gap| place(gap.x) == *x).and_then(|gap| gap.why);
                let _ = match one.points.iter().find(|point| place(point.x) == *x) {
                    Some(point) => {
                        write!(text, "<td>{}<small>{}</small></td>", point.value, point.remark())
                    }
                    None => write!(text, "<td>{}</td>", why.unwrap_or("–")),
                };
            }
            text.push_str("</tr>");
        }
        text.push_str("</table></div>");
    }
    text
}
