//! Builds the curves of figures from points.

use super::series::{basis, ccdf, means, over_time};
use super::{Curves, Figure, FigureKind, FigureSpec, PanelData, StackView, StudyFigures};
use crate::data::{Cell, Dataset, Filter, last_key_part};
use crate::plot::{Axis, Scale, Series, SeriesStyle, number};

/// Returns the figure that `spec` describes; `None` if the data contain none of its points.
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
        basis: basis(
            spec.metric,
            spec.kind == FigureKind::Ccdf,
            data.cells.iter().filter(|cell| filter.selects(cell)),
        ),
        note: spec.note.clone(),
        experiment: spec.experiment.clone(),
        is_ccdf: spec.kind == FigureKind::Ccdf,
        choice_label: String::new(),
        metric: spec.metric,
        x: horizontal(spec, &panels, &filter, data),
        y: vertical(spec),
        panels,
    })
}

fn horizontal(spec: &FigureSpec, panels: &[PanelData], filter: &Filter, data: &Dataset) -> Axis {
    let [min, max] = spec.x;
    let scale = match spec.kind {
        FigureKind::Streams => Scale::Steps(x_positions(panels)),
        FigureKind::RoundTrip | FigureKind::Time | FigureKind::Axis => Scale::Linear { min, max },
        FigureKind::Loss | FigureKind::Rate | FigureKind::Ccdf => Scale::Log { min, max },
    };
    let label = match spec.kind {
        FigureKind::Loss => "packet loss in each direction (%)".to_owned(),
        FigureKind::Streams => "number of SCTP streams".to_owned(),
        FigureKind::Rate => "transactions a second".to_owned(),
        FigureKind::RoundTrip => "round-trip time (ms)".to_owned(),
        FigureKind::Time => "time (s)".to_owned(),
        FigureKind::Ccdf => spec.metric.time_axis(),
        FigureKind::Axis => axis_label(&spec.over, filter, data),
    };
    Axis::new(scale, &label)
}

fn vertical(spec: &FigureSpec) -> Axis {
    let [min, max] = spec.y;
    match spec.kind {
        FigureKind::Ccdf => Axis::new(Scale::Log { min, max }, spec.metric.share_axis()),
        _ => Axis::new(Scale::Linear { min, max }, &spec.metric.axis_title()),
    }
}

/// Returns the positions of all points on the horizontal axis, ascending.
fn x_positions(panels: &[PanelData]) -> Vec<f64> {
    let mut xs: Vec<f64> = Vec::new();
    for panel in panels {
        let Curves::Means(series) = &panel.curves else { continue };
        for one in series {
            xs.extend(one.points.iter().map(|point| point.x));
            xs.extend(one.gaps.iter().map(|gap| gap.x));
        }
    }
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

/// A planned point, and the measured point if it was measured.
type PlannedCell<'d> = (&'d Cell, Option<&'d Cell>);

fn curves(
    spec: &FigureSpec,
    view: &StackView,
    study: &StudyFigures,
    filter: &Filter,
    data: &Dataset,
) -> Curves {
    let labels = labels(spec, view, study, filter, data);
    let planned = |label: &str| -> Vec<PlannedCell<'_>> {
        let full = format!("{label}{}", view.suffix);
        data.planned_points().filter(|(cell, _)| cell.transport == full && filter.selects(cell)).collect()
    };
    let over = |x: &dyn Fn(&Cell) -> f64| -> Vec<Series> {
        let placed = |label: &String| -> Vec<_> {
            planned(label).into_iter().map(|(cell, measured)| (x(cell), measured)).collect()
        };
        labels
            .iter()
            .map(|label| means(spec.metric, label, SeriesStyle::of_transport(label), &placed(label)))
            .collect()
    };
    match spec.kind {
        FigureKind::Loss => Curves::Means(over(&|cell| cell.conditions.loss)),
        FigureKind::Rate => Curves::Means(over(&|cell| cell.conditions.rate)),
        FigureKind::RoundTrip => Curves::Means(over(&|cell| cell.conditions.rtt_ms())),
        FigureKind::Time => Curves::Means(
            labels
                .iter()
                .filter_map(|label| {
                    let cell = planned(label).first()?.1?;
                    Some(over_time(spec.metric, label, SeriesStyle::of_transport(label), cell))
                })
                .collect(),
        ),
        FigureKind::Axis => {
            let mut series = over(&|cell| axis_position(cell, &spec.over).0);
            series.extend(reference(&spec.reference));
            Curves::Means(series)
        }
        FigureKind::Streams => {
            let all: Vec<PlannedCell<'_>> = labels.iter().flat_map(|label| planned(label)).collect();
            let level = |(index, loss): (usize, &f64)| {
                let at_loss = all.iter().filter(|(cell, _)| is_close(cell.conditions.loss, *loss));
                let placed: Vec<_> =
                    at_loss.map(|(cell, measured)| (f64::from(cell.streams), *measured)).collect();
                means(spec.metric, &format!("{} %", number(*loss)), SeriesStyle::of_level(index), &placed)
            };
            Curves::Means(spec.loss.iter().enumerate().map(level).collect())
        }
        FigureKind::Ccdf => Curves::Ccdfs(
            labels
                .iter()
                .filter_map(|label| {
                    let with_theory = study.closed_form.contains(label);
                    Some(ccdf(
                        spec.metric,
                        label,
                        SeriesStyle::of_transport(label),
                        planned(label).first()?.1?,
                        with_theory,
                    ))
                })
                .collect(),
        ),
    }
}

/// Returns the labels of the transports without the suffix of the stack: those that the figure names, or all that the
/// data have on this stack.
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

/// Returns the position of a point on a swept axis and the unit: 10 and `ms` for `10ms`.
fn axis_position<'a>(cell: &'a Cell, key: &str) -> (f64, &'a str) {
    let text = cell.conditions.axis_value(key).unwrap_or_default();
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    (text[..text.len() - unit.len()].parse().unwrap_or(f64::NAN), unit)
}

fn axis_label(key: &str, filter: &Filter, data: &Dataset) -> String {
    let name = last_key_part(key);
    let unit =
        data.cells.iter().find(|cell| filter.selects(cell)).map_or("", |cell| axis_position(cell, key).1);
    if unit.is_empty() { name.to_owned() } else { format!("{name} ({unit})") }
}

/// Returns the reference line of the paper.
fn reference(points: &[(f64, f64)]) -> Option<Series> {
    let style = SeriesStyle::of_transport("reference");
    let theory = points.to_vec();
    let series = Series { theory, ..Series::new("reference", style, Vec::new()) };
    (!points.is_empty()).then_some(series)
}

/// Merges the panels of all stacks into one; the curves of later stacks are dashed.
fn overlay(panels: Vec<PanelData>) -> Vec<PanelData> {
    let mut all = Vec::new();
    for (index, panel) in panels.into_iter().enumerate() {
        let Curves::Means(series) = panel.curves else { continue };
        all.extend(series.into_iter().map(|mut series| {
            series.label = format!("{}, {}", series.label, panel.title);
            series.style = if index == 0 { series.style } else { series.style.on_other_stack() };
            series
        }));
    }
    vec![PanelData { title: "Two stacks".to_owned(), curves: Curves::Means(all) }]
}

fn is_close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::{LatencySum, Timeline, TimelinePart};

    use super::*;
    use crate::figures::gather;
    use crate::testing::{cell, dataset};

    /// If runs end at different times, the means cover only the duration of the shortest one, so that all of them are
    /// means of the same runs.
    #[test]
    fn means_over_time_end_with_the_shortest_run() {
        let study = |kind: &str| {
            let text = format!(
                "[[view]]\ntitle = 'today'\n[[figure]]\nnumber = 4\ncaption = ''\nexperiment = 'exp1'\n\
                 kind = '{kind}'\nx = [0, 10]\ny = [0, 20]"
            );
            toml::from_str::<StudyFigures>(&text).unwrap()
        };
        let run = |ms: &[u64]| {
            let part = |ms: &u64| TimelinePart {
                messages: LatencySum { count: 2, nanos: u128::from(2_000_000 * ms) },
                octets: 500,
            };
            Timeline {
                begin: Duration::ZERO,
                interval: Duration::from_secs(2),
                parts: ms.iter().map(part).collect(),
            }
        };
        let mut tcp = cell("TCP", 1.0, 100.0, &[6.0, 6.0]);
        tcp.timelines = vec![run(&[5, 7, 9]), run(&[6, 8])];
        let data = dataset(vec![tcp]);
        let figure = &gather(&study("time"), &data)[0];
        let Curves::Means(series) = &figure.panels[0].curves else { panic!("means") };
        let points: Vec<(f64, f64)> =
            series[0].points.iter().map(|point| (point.x, point.value.value)).collect();
        assert_eq!((figure.x.label.as_str(), points), ("time (s)", vec![(1.0, 5.5), (3.0, 7.5)]));
        let figure = &gather(&study("round-trip"), &data)[0];
        let Curves::Means(series) = &figure.panels[0].curves else { panic!("means") };
        assert_eq!((figure.x.label.as_str(), series[0].points[0].x), ("round-trip time (ms)", 20.0));
    }
}
