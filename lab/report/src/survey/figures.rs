//! The figures of a survey: means over the first axis, then the distributions of each point.

use super::Survey;
use super::over_time::figures_over_time;
use super::size_classes;
use crate::data::Cell;
use crate::figures::series::{basis, ccdf, means};
use crate::figures::{Curves, Figure, PanelData};
use crate::plot::{Axis, Scale};
use hol_lab::Metric;

/// Maximum number of points with distributions; the others are only in the tables.
pub(super) const MAX_DISTRIBUTIONS: usize = 60;
/// The ratio of the largest to the smallest value above which an axis is logarithmic.
const LOGARITHMIC_RATIO: f64 = 20.0;

/// Returns all figures of a survey, numbered from `first`.
pub fn figures(survey: &Survey<'_>, first: usize) -> Vec<Figure> {
    let means = metrics(survey).into_iter().flat_map(|metric| metric_figures(survey, metric));
    let by_class = size_classes::figures(survey);
    number_figures(
        figures_over_time(survey)
            .into_iter()
            .chain(means)
            .chain(by_class)
            .chain(distribution_figures(survey))
            .collect(),
        first,
    )
}

/// Numbers the figures, starting with `first`.
pub fn number_figures(mut figures: Vec<Figure>, first: usize) -> Vec<Figure> {
    for (number, figure) in (first..).zip(&mut figures) {
        figure.id = format!("fig{number:02}");
        figure.name = format!("Figure {number}");
    }
    figures
}

/// Returns the metrics that have a figure, the main one first.
fn metrics(survey: &Survey<'_>) -> Vec<Metric> {
    let main = survey.main_metric();
    let has_flows = survey.cells().any(|cell| cell.flows.is_some());
    let competes =
        survey.cells().any(|cell| cell.flows.as_ref().is_some_and(|f| f.background_kbps.is_some()));
    let loses = survey.cells().any(|cell| cell.lost_messages() > 0);
    let plays = survey.cells().any(Cell::has_playout_times);
    let has = |metric| survey.cells().any(|cell| cell.values_by_run(metric).iter().any(Option::is_some));
    let others = [
        (Metric::LateMessages, has(Metric::LateMessages)),
        (Metric::BacklogLast, has(Metric::BacklogLast)),
        (Metric::Noticed, has(Metric::Noticed)),
        (Metric::Playable, plays),
        (Metric::Glitches, plays),
        (Metric::ResponseTime, true),
        (Metric::Tail, main == Metric::ResponseTime),
        (Metric::Throughput, has_flows),
        (Metric::Fairness, competes),
        (Metric::Delivered, loses),
        (Metric::ObjectTime, has(Metric::ObjectTime)),
        (Metric::FirstOctets, has(Metric::FirstOctets)),
    ];
    let others = others.into_iter().filter(|(_, is_wanted)| *is_wanted).map(|(metric, _)| metric);
    let defined = super::defined_metrics(survey.cells()).into_iter().map(Metric::Defined);
    [main].into_iter().chain(defined.chain(others).filter(|metric| *metric != main)).collect()
}

/// Returns a metric over the horizontal axis: a figure for each combination of the third and further axes.
pub fn metric_figures(survey: &Survey<'_>, metric: Metric) -> Vec<Figure> {
    let (Some(x), Some(y)) = (horizontal(survey), vertical(survey, metric)) else { return Vec::new() };
    let figure = |others: Vec<usize>| {
        let mut cells = Vec::new();
        let panels: Vec<PanelData> = panels(survey)
            .into_iter()
            .map(|(title, step)| {
                let rest = [step, others.clone()].concat();
                PanelData { title, curves: Curves::Means(curves(survey, metric, &rest, &mut cells)) }
            })
            .collect();
        let choice_label = survey.describe_steps(2, &others);
        let over = survey
            .axes
            .first()
            .map_or("of each transport".to_owned(), |axis| format!("over {}", axis.name()));
        let each = survey
            .axes
            .get(1)
            .map_or(String::new(), |axis| format!(", a panel for each {}", axis.key_names()));
        let at = if choice_label.is_empty() { String::new() } else { format!("; {choice_label}") };
        Figure {
            id: String::new(),
            name: String::new(),
            caption: format!("{} {over}{each}{at}", capitalized(metric.info().title)),
            basis: basis(metric, false, cells.into_iter()),
            note: None,
            experiment: survey.experiment.clone(),
            is_ccdf: false,
            choice_label,
            metric,
            x: x.clone(),
            y: y.clone(),
            panels,
        }
    };
    survey
        .combinations(2)
        .into_iter()
        .map(figure)
        .filter(|figure| figure.panels.iter().any(has_curves))
        .collect()
}

fn has_curves(panel: &PanelData) -> bool {
    !panel.curves.is_empty()
}

/// Returns the titles of the panels, each with its step of the second axis.
fn panels(survey: &Survey<'_>) -> Vec<(String, Vec<usize>)> {
    let one = || vec![(String::new(), Vec::new())];
    survey.axes.get(1).map_or_else(one, |axis| {
        let steps = axis.ascending();
        let titles: Vec<String> = steps.iter().map(|step| axis.describe_step_briefly(*step)).collect();
        shorten(&titles, letters_above(steps.len()))
            .into_iter()
            .zip(steps.into_iter().map(|step| vec![step]))
            .collect()
    })
}

/// Returns the curves at fixed steps of all axes but the first; adds their points to `cells`.
fn curves<'d>(
    survey: &Survey<'d>,
    metric: Metric,
    rest: &[usize],
    cells: &mut Vec<&'d Cell>,
) -> Vec<crate::plot::Series> {
    let count = survey.transports.len();
    let series = (0..count).zip(survey.styles()).map(|(transport, style)| {
        let placed: Vec<(f64, Option<&Cell>)> = match survey.axes.first() {
            None => vec![(transport as f64, survey.at(transport, &[]))],
            Some(axis) => axis
                .ascending()
                .into_iter()
                .map(|step| {
                    // Marks of one name are drawn side by side.
                    let aside = if axis.numbers.is_some() { 0.0 } else { x_offset(transport, count) };
                    (axis.position(step) + aside, survey.at(transport, &[&[step], rest].concat()))
                })
                .collect(),
        };
        cells.extend(placed.iter().filter_map(|(_, cell)| *cell));
        means(metric, survey.transports[transport], style, &placed)
    });
    series.collect()
}

fn x_offset(transport: usize, count: usize) -> f64 {
    (transport as f64 - (count as f64 - 1.0) / 2.0) * (0.6 / count as f64).min(0.12)
}

fn horizontal(survey: &Survey<'_>) -> Option<Axis> {
    let Some(axis) = survey.axes.first() else {
        let names = survey.transports.iter().map(|label| (*label).to_owned()).collect();
        return Some(Axis::new(Scale::Names(names), ""));
    };
    let Some((_, numbers)) = &axis.numbers else {
        let names: Vec<String> = (0..axis.steps.len()).map(|step| axis.format_values(step)).collect();
        return Some(Axis::new(Scale::Names(shorten(&names, MAX_LETTERS_BELOW)), &axis.label()));
    };
    let positive = numbers.values.iter().copied().filter(|value| *value > 0.0);
    let (min, max) = (positive.clone().fold(f64::INFINITY, f64::min), positive.fold(0.0, f64::max));
    let scale = if numbers.suits_log_scale() {
        let (min, max) = (min / 1.2, max * 1.2);
        if numbers.values.contains(&0.0) { Scale::LogFromZero { min, max } } else { Scale::Log { min, max } }
    } else {
        let (min, max) = range_of(numbers.values.iter().copied())?;
        let margin = 0.05 * (max - min);
        Scale::Linear { min: min - margin, max: max + margin }
    };
    Some(Axis::new(scale, &axis.label()))
}

/// Returns a vertical axis for all figures of a metric, so that they can be compared.
fn vertical(survey: &Survey<'_>, metric: Metric) -> Option<Axis> {
    let means: Vec<_> = survey.cells().filter_map(|cell| cell.mean_with_bounds(metric)).collect();
    let (min, max) = range_of(means.iter().map(|mean| mean.value))?;
    // Error bars count too, except for very wide ones, which would compress the means.
    let bars: Vec<_> = means.iter().filter(|mean| mean.high - mean.value < mean.value.abs()).collect();
    let top = bars.iter().map(|mean| mean.high).fold(max, f64::max).min(2.0 * max.max(0.0)).max(max);
    let bottom = bars.iter().map(|mean| mean.low).fold(min, f64::min).max(min.min(0.0));
    let top = metric.info().max.map_or(top, |max| top.min(max));
    let scale = if min > 0.0 && max > LOGARITHMIC_RATIO * min {
        Scale::Log { min: min / 1.3, max: top * 1.2 }
    } else if max - min < 0.3 * max && metric != Metric::Fairness {
        let margin = (0.15 * (top - bottom)).max(0.01 * max.abs()).max(1e-9);
        Scale::Linear { min: bottom - margin, max: top + margin }
    } else {
        Scale::Linear { min: 0.0, max: (top * 1.06).max(1e-9) }
    };
    Some(Axis::new(scale, &metric.axis_title()).with_unit_for(top))
}

/// Returns a figure of distributions for each combination of the axes.
pub fn distribution_figures(survey: &Survey<'_>) -> Vec<Figure> {
    let combinations = survey.combinations(0);
    let times = survey.cells().filter(|cell| cell.latency.completed() > 0);
    let ends = times.flat_map(|cell| [cell.latency.quantile(0.0), cell.latency.max()]).flatten();
    let Some((min, max)) = range_of(ends.map(|at| at.as_millis_f64().max(0.001))) else { return Vec::new() };
    if combinations.len() > MAX_DISTRIBUTIONS {
        return Vec::new();
    }
    let x = Axis::new(
        Scale::Log { min: min / 1.1, max: (max * 1.1).max(min * 2.0) },
        &Metric::ResponseTime.time_axis(),
    )
    .with_unit_for(max);
    let y = Axis::new(Scale::Log { min: min_share(survey), max: 1.0 }, Metric::ResponseTime.share_axis());
    let figure = |steps: Vec<usize>| {
        let mut cells = Vec::new();
        let curves = (0..survey.transports.len()).zip(survey.styles()).filter_map(|(transport, style)| {
            let cell = survey.at(transport, &steps)?;
            cells.push(cell);
            Some(ccdf(Metric::ResponseTime, survey.transports[transport], style, cell, true))
        });
        let panels = vec![PanelData { title: String::new(), curves: Curves::Ccdfs(curves.collect()) }];
        let choice_label = survey.describe_steps(0, &steps);
        let at = if choice_label.is_empty() { String::new() } else { format!(" at {choice_label}") };
        Figure {
            id: String::new(),
            name: String::new(),
            caption: format!("Distribution of the response time (CCDF){at}"),
            basis: basis(Metric::ResponseTime, true, cells.into_iter()),
            note: None,
            experiment: survey.experiment.clone(),
            is_ccdf: true,
            choice_label,
            metric: Metric::ResponseTime,
            x: x.clone(),
            y: y.clone(),
            panels,
        }
    };
    combinations.into_iter().map(figure).filter(|figure| figure.panels.iter().any(has_curves)).collect()
}

/// Returns the lower end of the axis of shares: the share of ten messages at the point with the most messages, rounded
/// down to a power of ten, from 1e-6 to 0.01.
fn min_share(survey: &Survey<'_>) -> f64 {
    let max = survey.cells().map(|cell| cell.latency.offered()).max().unwrap_or(1);
    10f64.powf((10.0 / max as f64).log10().floor()).clamp(1e-6, 0.01)
}

/// Returns the smallest and the largest value; `None` without values.
pub(super) fn range_of(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (min, max) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    (min <= max).then_some((min, max))
}

/// The number of letters of a name that fit below an axis.
const MAX_LETTERS_BELOW: usize = 24;

/// Returns the number of letters that fit above a panel if there are `panels` panels, at most three in a row.
const fn letters_above(panels: usize) -> usize {
    if panels > 2 { 34 } else { 44 }
}

/// Shortens names to `max` letters if necessary, by removing their common beginning.
fn shorten(names: &[String], max: usize) -> Vec<String> {
    if names.iter().all(|name| name.chars().count() <= max) {
        return names.to_vec();
    }
    let begins = |length: &usize| names.iter().all(|name| name.get(..*length) == names[0].get(..*length));
    let ends_a_word =
        |(at, letter): (usize, char)| (!letter.is_alphanumeric()).then_some(at + letter.len_utf8());
    let shared = names[0].char_indices().filter_map(ends_a_word).take_while(begins).last().unwrap_or(0);
    let short = |name: &String| {
        let rest = format!("{}{}", if shared > 0 { "…" } else { "" }, &name[shared..]);
        let cut = rest.chars().count() > max;
        if cut { rest.chars().take(max - 1).chain(['…']).collect() } else { rest }
    };
    names.iter().map(short).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_lab::FigureRequest;

    use crate::data::Cell;
    use crate::testing::{cell, dataset, swept};

    /// Returns points of TCP and SCTP-8 for every combination of these axes.
    fn grid(axes: &[(&str, &[&str])]) -> Vec<Cell> {
        let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (key, values) in axes {
            let extend = |done: &Vec<(String, String)>| {
                let step =
                    |value: &&str| [done.clone(), vec![((*key).to_owned(), (*value).to_owned())]].concat();
                values.iter().map(step).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(extend).collect();
        }
        let mut cells = Vec::new();
        for transport in ["TCP", "SCTP-8"] {
            for (index, axes) in all.iter().enumerate() {
                let mut point = cell(transport, 1.0, 100.0, &[20.0 + index as f64, 21.0 + index as f64]);
                point.conditions.axes = axes.clone();
                cells.push(point);
            }
        }
        cells
    }

    fn of(axes: &[(&str, &[&str])]) -> Vec<Figure> {
        let data = dataset(grid(axes));
        figures(&swept(&data), 1)
    }

    #[test]
    fn axes_become_horizontal_axis_panels_and_choice() {
        let figures = of(&[
            ("cc", &["reno", "cubic"]),
            ("network.loss", &["0%", "0.1%", "10%"]),
            ("network.delay", &["5ms", "9ms"]),
        ]);
        let means: Vec<&Figure> =
            figures.iter().filter(|f| f.metric == Metric::ResponseTime && !f.is_ccdf).collect();
        assert_eq!(
            means.iter().map(|f| f.choice_label.as_str()).collect::<Vec<_>>(),
            ["delay 5ms", "delay 9ms"]
        );
        assert_eq!(means[0].x.label, "loss (%)");
        assert!(matches!(means[0].x.scale, Scale::LogFromZero { .. }), "0 and two decades");
        assert_eq!(
            means[0].panels.iter().map(|p| p.title.as_str()).collect::<Vec<_>>(),
            ["cc reno", "cc cubic"]
        );
        assert_eq!(means[0].y, means[1].y, "one vertical axis");
    }

    /// A line joins only points that differ in nothing but their position on the axis.
    #[test]
    fn no_line_joins_points_of_two_conditions() {
        let axes: [(&str, &[&str]); 3] = [
            ("network.loss", &["1%", "2%"]),
            ("network.delay", &["5ms", "9ms"]),
            ("workload.rate", &["1/s", "2/s"]),
        ];
        for figure in of(&axes) {
            for panel in &figure.panels {
                let Curves::Means(series) = &panel.curves else { continue };
                for one in series {
                    let xs: Vec<f64> = one.points.iter().map(|point| point.x).collect();
                    assert_eq!(xs, [1.0, 2.0], "{}: {}", figure.caption, one.label);
                }
            }
        }
    }

    #[test]
    fn requested_figure_has_the_requested_axes_and_metric() {
        let data = dataset(grid(&[("network.loss", &["1%", "2%"]), ("network.delay", &["5ms", "9ms"])]));
        let wish = FigureRequest {
            over: "network.delay".to_owned(),
            panels: Some("network.loss".to_owned()),
            metric: "tail".to_owned(),
        };
        let figures = swept(&data).figures(&[wish], &data, 1);
        let means: Vec<&Figure> = figures.iter().filter(|figure| !figure.is_ccdf).collect();
        let [figure] = &means[..] else { panic!("one figure: {means:?}") };
        assert_eq!((figure.metric, figure.x.label.as_str()), (Metric::Tail, "delay (ms)"));
        assert_eq!(figure.panels[0].title, "loss 1%");
    }

    #[test]
    fn names_on_an_axis_are_not_joined_by_lines() {
        let figures = of(&[("network.discipline", &["droptail", "red"])]);
        assert!(matches!(&figures[0].x.scale, Scale::Names(names) if names == &["droptail", "red"]));
        let svg = figures[0].draw().inline();
        assert!(!svg.contains("class=\"curve\""), "{svg}");
        let Curves::Means(series) = &figures[0].panels[0].curves else { panic!("means") };
        assert!(series[0].points[0].x < series[1].points[0].x);
    }

    #[test]
    fn panel_title_fits_above_its_panel() {
        let commands = [
            "curl -sf -o /dev/null http://server/a",
            "curl -sfZ -o /dev/null http://server/a http://server/b",
        ];
        let figures = of(&[("network.loss", &["0%", "1%"]), ("program.1.command", &commands)]);
        let titles: Vec<_> = figures[0].panels.iter().map(|panel| panel.title.as_str()).collect();
        assert!(titles.iter().all(|title| title.chars().count() <= letters_above(2)), "{titles:?}");
        assert!(titles[0].starts_with("…sf ") && titles[1].starts_with("…sfZ "), "{titles:?}");
    }

    #[test]
    fn shortened_names_stay_distinct() {
        let of = |names: &[&str]| {
            shorten(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), MAX_LETTERS_BELOW)
        };
        assert_eq!(
            of(&["{red={limit=100p,max=15p,min=5p}}", "{red={limit=100p,max=30p,min=5p}}"]),
            ["…15p,min=5p}}", "…30p,min=5p}}"]
        );
        assert_eq!(of(&["droptail", "red"]), ["droptail", "red"]);
        assert_eq!(of(&["a_very_long_name_of_one_word", "x"]), ["a_very_long_name_of_one…", "x"]);
        assert_eq!(of(&["grün/äöüäöüäöüäöüäöüäöüäöü", "grün/x"]), ["…äöüäöüäöüäöüäöüäöüäöü", "…x"]);
    }

    #[test]
    fn every_point_has_its_distribution() {
        let figures = of(&[("network.loss", &["1%", "2%"]), ("network.delay", &["5ms", "9ms"])]);
        let places: Vec<&str> =
            figures.iter().filter(|f| f.is_ccdf).map(|f| f.choice_label.as_str()).collect();
        assert_eq!(
            places,
            ["loss 1%, delay 5ms", "loss 1%, delay 9ms", "loss 2%, delay 5ms", "loss 2%, delay 9ms"]
        );
    }

    #[test]
    fn without_axes_transports_are_drawn_side_by_side() {
        let figures = of(&[]);
        assert!(matches!(&figures[0].x.scale, Scale::Names(names) if names == &["TCP", "SCTP-8"]));
    }
}
