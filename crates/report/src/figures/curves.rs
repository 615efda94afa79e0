//! From points to curves.

use hol_base::Duration;
use hol_measure::{CONFIDENCE, Interval};

use super::{Curves, Figure, FigureSpec, Kind, PanelData, StackView, StudyFigures};
use crate::closed_form;
use crate::data::{Cell, Dataset, Filter, short};
use crate::metric::Metric;
use crate::plot::{Ccdf, Look, Point, Series, number};

/// Stands for zero on a logarithmic axis: far below its end.
const TINY: f64 = 1e-9;

/// The figure that `spec` describes; `None` if the data have no point of it.
pub fn figure(spec: &FigureSpec, study: &StudyFigures, data: &Dataset) -> Option<Figure> {
    let filter = spec.filter();
    let mut panels: Vec<PanelData> = study
        .views
        .iter()
        .map(|view| PanelData { title: view.title.clone(), curves: curves(spec, view, study, &filter, data) })
        .filter(|panel| !panel.curves.is_empty())
        .collect();
    if spec.overlay && panels.len() > 1 {
        panels = overlay(panels);
    }
    if panels.is_empty() {
        return None;
    }
    Some(Figure {
        id: spec.number.id(),
        name: format!("Figure {}", spec.number),
        caption: spec.caption.clone(),
        basis: basis(spec, &filter, data),
        note: spec.note.clone(),
        experiment: spec.experiment.clone(),
        is_ccdf: spec.kind == Kind::Ccdf,
        panels,
        x_label: match spec.kind {
            Kind::Loss => "packet loss in each direction (%)".to_owned(),
            Kind::Streams => "number of SCTP streams".to_owned(),
            Kind::Rate => "transactions a second".to_owned(),
            Kind::Ccdf => spec.metric.time_axis().to_owned(),
            Kind::Axis => axis_label(&spec.over, &filter, data),
        },
        spec: spec.clone(),
    })
}

fn curves(
    spec: &FigureSpec,
    view: &StackView,
    study: &StudyFigures,
    filter: &Filter,
    data: &Dataset,
) -> Curves {
    let labels = labels(spec, view, study, filter, data);
    let cells = |label: &str| -> Vec<&Cell> {
        let full = format!("{label}{}", view.suffix);
        data.cells.iter().filter(|cell| cell.transport == full && filter.takes(cell)).collect()
    };
    let means = |x: &dyn Fn(&Cell) -> f64| -> Vec<Series> {
        labels.iter().map(|label| over(spec.metric, label, &cells(label), x)).collect()
    };
    match spec.kind {
        Kind::Loss => Curves::Means(means(&|cell| cell.conditions.loss)),
        Kind::Rate => Curves::Means(means(&|cell| cell.conditions.rate)),
        Kind::Axis => {
            let mut series = means(&|cell| place(cell, &spec.over).0);
            series.extend(reference(&spec.reference));
            Curves::Means(series)
        }
        Kind::Streams => {
            let all: Vec<&Cell> = labels.iter().flat_map(|label| cells(label)).collect();
            let level = |(index, loss): (usize, &f64)| {
                let at_loss: Vec<&Cell> =
                    all.iter().copied().filter(|cell| close(cell.conditions.loss, *loss)).collect();
                let series = over(spec.metric, &format!("{} %", number(*loss)), &at_loss, |cell| {
                    f64::from(cell.streams)
                });
                Series { look: Look::of_level(index), ..series }
            };
            Curves::Means(spec.loss.iter().enumerate().map(level).collect())
        }
        Kind::Ccdf => Curves::Ccdfs(
            labels
                .iter()
                .filter_map(|label| {
                    let with_theory = study.closed_form.contains(label);
                    Some(ccdf(spec.metric, label, cells(label).first()?, with_theory))
                })
                .collect(),
        ),
    }
}

/// The labels without suffix: those of the figure, or all that the data have on this stack.
fn labels(
    spec: &FigureSpec,
    view: &StackView,
    study: &StudyFigures,
    filter: &Filter,
    data: &Dataset,
) -> Vec<String> {
    if !spec.transports.is_empty() {
        return spec.transports.clone();
    }
    let others: Vec<&str> = study
        .views
        .iter()
        .map(|v| v.suffix.as_str())
        .filter(|s| !s.is_empty() && *s != view.suffix)
        .collect();
    let mine = |label: &&str| label.ends_with(&view.suffix) && !others.iter().any(|o| label.ends_with(o));
    let stripped = |label: &str| label[..label.len() - view.suffix.len()].to_owned();
    data.transports(filter).into_iter().filter(mine).map(stripped).collect()
}

/// A curve of means, ascending in `x`.
fn over(metric: Metric, label: &str, cells: &[&Cell], x: impl Fn(&Cell) -> f64) -> Series {
    let mut points: Vec<Point> = cells
        .iter()
        .filter_map(|cell| {
            let mean = metric.mean(cell)?;
            let half_width = if mean.half_width.is_finite() { mean.half_width } else { 0.0 };
            Some(Point { x: x(cell), y: mean.mean, half_width, n: mean.n, missing: metric.missing(cell) })
        })
        .collect();
    let mut theory: Vec<(f64, f64)> =
        cells.iter().filter_map(|cell| Some((x(cell), metric.closed_form(cell)?))).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    theory.sort_by(|a, b| a.0.total_cmp(&b.0));
    Series { label: label.to_owned(), look: Look::of_transport(label), points, theory }
}

/// Where a point stands on a swept axis, and in which unit: `10ms` is 10 and `ms`.
fn place<'a>(cell: &'a Cell, key: &str) -> (f64, &'a str) {
    let text = cell.conditions.axis(key).unwrap_or_default();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    (text[..text.len() - unit.len()].parse().unwrap_or(f64::NAN), unit)
}

fn axis_label(key: &str, filter: &Filter, data: &Dataset) -> String {
    let name = short(key);
    let unit = data.cells.iter().find(|cell| filter.takes(cell)).map_or("", |cell| place(cell, key).1);
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// The line that the paper draws for orientation.
fn reference(points: &[(f64, f64)]) -> Option<Series> {
    let look = Look::of_transport("reference");
    let series = Series { label: "reference".to_owned(), look, points: Vec::new(), theory: points.to_vec() };
    (!points.is_empty()).then_some(series)
}

/// A distribution, with an interval at each of its corners.
fn ccdf(metric: Metric, label: &str, cell: &Cell, with_theory: bool) -> Ccdf {
    const PER_DECADE: u32 = 24;
    let distribution = metric.distribution(cell);
    let corners = distribution.ccdf(PER_DECADE, CONFIDENCE);
    let mut points: Vec<(f64, f64)> = corners.iter().map(|c| (c.latency.as_millis_f64(), c.share)).collect();
    // Where every transaction took the same time there is one step, down to nothing.
    if let (true, Some(most)) = (points.is_empty(), distribution.max()) {
        points.push((most.as_millis_f64(), TINY));
    }
    let band = match metric {
        // Messages of one repetition depend on each other; repetitions do not.
        Metric::ResponseTime => points.iter().map(|&(ms, share)| band(cell, ms, share)).collect(),
        _ => corners.iter().map(|c| (c.latency.as_millis_f64(), c.low.max(TINY), c.high)).collect(),
    };
    let theory = if with_theory { closed_form::ccdf(cell) } else { Vec::new() };
    Ccdf { label: label.to_owned(), look: Look::of_transport(label), points, band, theory }
}

/// 95 % limits of a share from the spread of the repetitions.
fn band(cell: &Cell, ms: f64, share: f64) -> (f64, f64, f64) {
    let at = Duration::from_secs_f64(ms / 1000.0);
    let shares: Vec<f64> = cell.runs.iter().filter_map(|run| run.latency.share_above(at)).collect();
    let half = Interval::of(&shares, CONFIDENCE)
        .filter(|interval| interval.half_width.is_finite())
        .map_or(0.0, |interval| interval.half_width);
    (ms, (share - half).max(TINY), (share + half).min(1.0))
}

/// All stacks in one panel, the later ones dashed.
fn overlay(panels: Vec<PanelData>) -> Vec<PanelData> {
    let mut all = Vec::new();
    for (index, panel) in panels.into_iter().enumerate() {
        let Curves::Means(series) = panel.curves else { continue };
        all.extend(series.into_iter().map(|mut series| {
            series.label = format!("{}, {}", series.label, panel.title);
            series.look = if index == 0 { series.look } else { series.look.elsewhere() };
            series
        }));
    }
    vec![PanelData { title: "Two stacks".to_owned(), curves: Curves::Means(all) }]
}

/// How much was measured for a figure, and how much of it is not in its means.
fn basis(spec: &FigureSpec, filter: &Filter, data: &Dataset) -> String {
    let cells: Vec<&Cell> = data.cells.iter().filter(|cell| filter.takes(cell)).collect();
    let messages: u64 = cells.iter().map(|cell| cell.latency.offered()).sum();
    let repetitions = |pick: fn(std::slice::Iter<'_, usize>) -> Option<usize>| {
        let counts: Vec<usize> = cells.iter().map(|cell| cell.runs.len()).collect();
        pick(counts.iter()).unwrap_or(0)
    };
    let (least, most) = (repetitions(|c| c.min().copied()), repetitions(|c| c.max().copied()));
    let repetitions = if least == most { format!("{most}") } else { format!("{least} to {most}") };
    let missing: usize = cells.iter().map(|cell| spec.metric.missing(cell)).sum();
    let left_out = match missing {
        // A distribution is over all of them.
        _ if spec.kind == Kind::Ccdf => String::new(),
        0 => String::new(),
        _ => format!("; {} repetitions that did not end are in no mean", number(missing as f64)),
    };
    format!(
        "{} points, {} transactions, {repetitions} repetitions a point{left_out}",
        cells.len(),
        number(messages as f64)
    )
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}
