//! Figures of a validation: the median runs of model and kernel, and the distributions of the worst points.

use hol_measure::{CONFIDENCE, ConfidenceInterval, Distribution};

use super::{ComparedPoint, Validation};
use crate::data::Conditions;
use crate::plot::{
    Axis, Ccdf, EdgeMarks, Frame, Marker, Panel, Point, Scale, Series, SeriesStyle, Svg, draw_key,
    side_labels,
};

/// The width of a figure, in px.
const WIDTH: f64 = 880.0;
/// The height of a figure, in px.
const HEIGHT: f64 = 340.0;
/// The margin left of the first panel, for tick labels and the name of the axis, in px.
const LEFT_MARGIN: f64 = 62.0;
/// The top margin, in px.
const TOP_MARGIN: f64 = 34.0;
/// The margin below the panels, for tick labels and the name of the axis, in px.
const BOTTOM_MARGIN: f64 = 46.0;
/// The margin right of a panel, for the names of its curves, in px.
const NAMES_WIDTH: f64 = 118.0;
/// The end of the vertical axis in round trips; values above it are triangles at the edge.
const ROUND_TRIPS: f64 = 6.0;
/// The transports of the overview.
const OVERVIEW_TRANSPORTS: [&str; 4] = ["TCP", "SCTP-1", "SCTP-8", "SCTP-1024"];

/// The quantity of the horizontal axis.
#[derive(Clone, Copy)]
struct HorizontalQuantity {
    name: &'static str,
    value_of: fn(&Conditions) -> f64,
}

const HORIZONTAL_QUANTITIES: [HorizontalQuantity; 2] = [
    HorizontalQuantity { name: "packet loss in each direction (%)", value_of: |conditions| conditions.loss },
    HorizontalQuantity { name: "transactions a second", value_of: |conditions| conditions.rate },
];

impl Validation {
    /// Returns the names of the experiments that have points.
    pub(super) fn experiments(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.points.iter().map(|c| c.point.experiment.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Draws the median runs of an experiment over packet loss or rate: lines for the model, marks for the kernel.
    /// `None` if neither varies.
    pub fn figure(&self, experiment: &str) -> Option<Svg> {
        let points: Vec<&ComparedPoint> =
            self.points.iter().filter(|compared| compared.point.experiment == experiment).collect();
        drawing(&format!("beside-{experiment}"), &points)
    }

    /// Draws a few transports of the first experiment; `None` if there is nothing to draw.
    pub fn overview(&self) -> Option<Svg> {
        let experiment = *self.experiments().first()?;
        let mine = |compared: &&ComparedPoint| {
            compared.point.experiment == experiment
                && OVERVIEW_TRANSPORTS.contains(&compared.point.label.as_str())
        };
        drawing("overview", &self.points.iter().filter(mine).collect::<Vec<_>>())
    }
}

fn drawing(id: &str, points: &[&ComparedPoint]) -> Option<Svg> {
    let along = HORIZONTAL_QUANTITIES.into_iter().find(|along| {
        let first = points.first().map(|compared| (along.value_of)(&compared.conditions));
        points.iter().any(|compared| Some((along.value_of)(&compared.conditions)) != first)
    })?;
    let mut svg = Svg::new(id, WIDTH, HEIGHT, "Model and kernel: mean response time of the median run");
    let variants = variants(points);
    let count = variants.len() as f64;
    let width =
        ((WIDTH - LEFT_MARGIN - NAMES_WIDTH * count - LEFT_MARGIN * (count - 1.0)) / count).min(560.0);
    for (index, variant) in variants.iter().enumerate() {
        let left = LEFT_MARGIN + (width + NAMES_WIDTH + LEFT_MARGIN) * index as f64;
        let frame = Frame { left, top: TOP_MARGIN, width, height: HEIGHT - TOP_MARGIN - BOTTOM_MARGIN };
        let mut panel = panel(frame, along, points);
        if index > 0 {
            panel.y.label.clear();
        }
        let title = if variant.is_empty() { "lines: model, marks: Linux" } else { variant };
        panel.draw(&mut svg, title);
        curves(&mut svg, &panel, along, points, variant);
    }
    Some(svg)
}

/// Returns the suffixes of the labels, which follow a blank; each of these variants has a panel.
fn variants<'c>(points: &[&'c ComparedPoint]) -> Vec<&'c str> {
    let mut variants: Vec<&str> =
        points.iter().map(|compared| split_label(&compared.point.label).1).collect();
    variants.sort_unstable();
    variants.dedup();
    variants
}

/// Splits `SCTP-8 (200 ms)` into `SCTP-8` and `(200 ms)`.
fn split_label(label: &str) -> (&str, &str) {
    label.split_once(' ').unwrap_or((label, ""))
}

fn panel(frame: Frame, along: HorizontalQuantity, points: &[&ComparedPoint]) -> Panel {
    let xs = points.iter().map(|compared| (along.value_of)(&compared.conditions)).filter(|x| *x > 0.0);
    let (min, max) = xs.fold((f64::INFINITY, 0.0_f64), |(min, max), x| (min.min(x), max.max(x)));
    let floor = points.iter().map(|compared| compared.conditions.rtt_ms()).fold(f64::INFINITY, f64::min);
    let means = points.iter().filter_map(|compared| Some(compared.mean?.kernel.value));
    let top = means.fold(1.2 * floor, f64::max).min(ROUND_TRIPS * floor);
    let x = Axis::new(Scale::Log { min, max: max.max(min * 2.0) }, along.name);
    let y = Axis::new(
        Scale::Linear { min: 0.95 * floor, max: 1.02 * top },
        "mean response time of the median run (ms)",
    );
    Panel { frame, x, y }
}

fn curves(svg: &mut Svg, panel: &Panel, along: HorizontalQuantity, points: &[&ComparedPoint], variant: &str) {
    let mine = points.iter().filter(|compared| split_label(&compared.point.label).1 == variant);
    let mut labels: Vec<&str> = mine.map(|compared| compared.point.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let (mut ends, mut edge) = (Vec::new(), EdgeMarks::default());
    for label in labels {
        let of_label = || points.iter().filter(|compared| compared.point.label == label);
        let model =
            series(label, along, of_label().filter_map(|c| Some((c, c.model.repetitions, c.mean?.model))));
        let kernel =
            series(label, along, of_label().filter_map(|c| Some((c, c.kernel.repetitions, c.mean?.kernel))));
        model.draw_line(svg, panel);
        kernel.draw_marks(svg, panel, &mut edge);
        if let Some(last) = model.points.last() {
            ends.push((
                split_label(label).0.to_owned(),
                model.style,
                panel.pixel_of(last.x, last.value.value),
            ));
        }
    }
    side_labels(svg, panel, &ends);
}

fn series<'c>(
    label: &str,
    along: HorizontalQuantity,
    medians: impl Iterator<Item = (&'c &'c ComparedPoint, usize, ConfidenceInterval)>,
) -> Series {
    let point = |(compared, n, value): (&&ComparedPoint, usize, ConfidenceInterval)| Point {
        x: (along.value_of)(&compared.conditions),
        value,
        n,
        missing: 0,
        collapsed: 0,
    };
    let mut points: Vec<Point> = medians.map(point).filter(|point| point.x > 0.0).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series::new(label, SeriesStyle::of_transport(label), points)
}

/// Draws the distributions of both worlds at a point.
pub(super) fn distributions(id: &str, compared: &ComparedPoint) -> Svg {
    let mut svg = Svg::new(id, WIDTH, HEIGHT, &format!("Distribution at {}", compared.point));
    let curves = [
        ccdf(
            "Linux",
            SeriesStyle { class: "c-vermilion", marker: Marker::Disc, dash: "" },
            &compared.kernel.latency,
        ),
        ccdf(
            "model",
            SeriesStyle { class: "c-blue", marker: Marker::Ring, dash: "6 3" },
            &compared.model.latency,
        ),
    ];
    let times = || curves.iter().flat_map(|curve| curve.points.iter().map(|(ms, _)| *ms));
    let min = times().fold(f64::INFINITY, f64::min).min(compared.conditions.rtt_ms().max(0.1));
    let max = times().fold(10.0 * min, f64::max);
    let frame = Frame {
        left: LEFT_MARGIN,
        top: TOP_MARGIN,
        width: 560.0,
        height: HEIGHT - TOP_MARGIN - BOTTOM_MARGIN,
    };
    let x = Axis::new(Scale::Log { min: 0.9 * min, max: 1.1 * max }, "response time (ms)");
    let y = Axis::new(Scale::Log { min: 1e-4, max: 1.0 }, "share of transactions that took longer");
    let panel = Panel { frame, x, y };
    panel.draw(&mut svg, &compared.point.to_string());
    curves.iter().for_each(|curve| curve.draw(&mut svg, &panel));
    let entries = curves.map(|curve| (curve.label, curve.style));
    draw_key(&mut svg, (LEFT_MARGIN + 576.0, TOP_MARGIN + 10.0), &entries, false);
    svg
}

fn ccdf(label: &str, style: SeriesStyle, latency: &Distribution) -> Ccdf {
    const POINTS_PER_DECADE: u32 = 24;
    let corners = latency.ccdf(POINTS_PER_DECADE, CONFIDENCE);
    let points = corners.iter().map(|corner| (corner.latency.as_millis_f64(), corner.share)).collect();
    Ccdf { label: label.to_owned(), style, points, band: Vec::new(), theory: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::test_points::{compared, validation};
    use super::*;

    fn points() -> Vec<ComparedPoint> {
        let at = |transport: &str, loss: &str| {
            let text = format!(
                "transports = [{{ spec = 'sctp', label = '{transport}' }}]\nmessages = 2\nrepetitions = 2\n\
                 [network]\nloss = '{loss}'"
            );
            compared(&text, &[20, 30], &[22, 24])
        };
        vec![at("SCTP-1", "1%"), at("SCTP-1", "0.1%"), at("SCTP-1 (200 ms)", "1%")]
    }

    #[test]
    fn model_has_lines_and_kernel_has_marks_in_each_panel() {
        let svg = validation(points()).figure("test").unwrap().inline();
        assert_eq!(svg.matches("class=\"frame\"").count(), 2);
        assert_eq!(svg.matches("class=\"curve\"").count(), 2);
        assert!(svg.contains("SCTP-1 at 0.1: 25.000"), "the kernel's median run has a mark: {svg}");
        assert!(!svg.contains("SCTP-1 at 0.1: 23.000"), "the model's has none: {svg}");
    }

    #[test]
    fn a_single_point_has_no_figure() {
        assert!(validation(points()[..1].to_vec()).figure("test").is_none());
    }
}
