//! Points with error bars and lines between them.

use hol_measure::ConfidenceInterval;

use super::edge::EdgeMarks;
use super::mark::{Mark, draw_marker};
use super::{Panel, Scale, SeriesStyle, Svg};

/// A measured value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The position on the horizontal axis.
    pub x: f64,
    /// The value with its 95 % interval, whose ends are infinite if there is one repetition.
    pub value: ConfidenceInterval,
    /// Number of repetitions.
    pub n: usize,
    /// Number of repetitions without a value.
    pub missing: usize,
    /// Number of repetitions that collapsed, with or without a value.
    pub collapsed: usize,
}

/// A planned position on the horizontal axis without a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// The position.
    pub x: f64,
    /// Why there is no value, in a few words; `None` if nothing was measured there.
    pub why: Option<&'static str>,
}

/// A curve of a plot, with its name and style.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in legends and tables.
    pub label: String,
    /// Colour, marker, dash.
    pub style: SeriesStyle,
    /// The measured values, ascending in x.
    pub points: Vec<Point>,
    /// The closed form, ascending in x; drawn dashed and without markers.
    pub theory: Vec<(f64, f64)>,
    /// The positions without a value, ascending in x; the line is broken there.
    pub gaps: Vec<Gap>,
}

impl Series {
    /// Creates a curve through `points`, ascending in x, without a closed form or gaps.
    pub fn new(label: &str, style: SeriesStyle, points: Vec<Point>) -> Self {
        Self { label: label.to_owned(), style, points, theory: Vec::new(), gaps: Vec::new() }
    }

    /// Draws the closed form, and the line through the points, without markers.
    pub fn draw_line(&self, svg: &mut Svg, panel: &Panel) {
        self.draw_dashed(svg, panel, self.style.dash);
    }

    /// Draws the line as [`Series::draw_line`] does, with another dash pattern.
    pub(super) fn draw_dashed(&self, svg: &mut Svg, panel: &Panel, dash: &str) {
        let frame = panel.frame;
        svg.group(self.style.class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                svg.polyline("theory", "2 3", self.theory.iter().map(|&(x, y)| panel.pixel_of(x, y)));
                for unbroken in self.unbroken() {
                    svg.polyline("curve", dash, unbroken.iter().map(|p| panel.pixel_of(p.x, p.value.value)));
                }
            });
        });
    }

    /// Returns the points between gaps: a line across a gap would be a guess.
    fn unbroken(&self) -> impl Iterator<Item = &[Point]> {
        let gap_between = |a: &Point, b: &Point| self.gaps.iter().any(|gap| a.x < gap.x && gap.x < b.x);
        self.points.chunk_by(move |a, b| !gap_between(a, b))
    }

    /// Draws the points with their error bars. Values off the axis are drawn at the panel's `edge`.
    pub fn draw_marks(&self, svg: &mut Svg, panel: &Panel, edge: &mut EdgeMarks) {
        let frame = panel.frame;
        svg.group(self.style.class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                for point in &self.points {
                    bar(svg, panel, point);
                }
            });
            for point in self.points.iter().filter(|p| panel.x.scale.contains(p.x)) {
                let place = panel.x.scale.name(point.x);
                svg.group("", &tooltip(&self.label, &place, point), |svg| {
                    self.draw_mark(svg, panel, point, edge);
                });
            }
            for Gap { x, why } in self.gaps.iter().filter(|gap| panel.x.scale.contains(gap.x)) {
                let Some(why) = why else { continue };
                let place = panel.x.scale.name(*x);
                let tooltip = format!("{} at {place}: {why}", self.label);
                svg.group("", &tooltip, |svg| Mark::NoValue.draw(svg, edge.place_above(panel, *x)));
            }
        });
    }

    fn draw_mark(&self, svg: &mut Svg, panel: &Panel, point: &Point, edge: &mut EdgeMarks) {
        let at = panel.pixel_of(point.x, point.value.value);
        let place = axis_position(&panel.y.scale, point);
        let seen = match place {
            AxisPosition::Inside => at,
            AxisPosition::Above => edge.place_above(panel, point.x),
            AxisPosition::Below => edge.place_below(panel, point.x),
        };
        match place {
            AxisPosition::Inside => draw_marker(svg, self.style.marker, at),
            AxisPosition::Above => Mark::Above.draw(svg, seen),
            AxisPosition::Below => Mark::Below.draw(svg, seen),
        }
        if point.collapsed > 0 {
            Mark::Collapsed.draw(svg, seen);
        }
    }

    /// Returns the marks that the points need on these axes, with their meanings; `collapsed` describes a collapsed run.
    pub fn marks(&self, x: &Scale, y: &Scale, collapsed: &'static str) -> Vec<(Mark, &'static str)> {
        let seen = self.points.iter().filter(|point| x.contains(point.x));
        let of_point = |point: &Point| {
            let at_edge = match axis_position(y, point) {
                AxisPosition::Inside => None,
                AxisPosition::Above => Some((Mark::Above, "above the axis")),
                AxisPosition::Below => Some((Mark::Below, "below the axis")),
            };
            let ring = (point.collapsed > 0).then_some((Mark::Collapsed, collapsed));
            [ring, at_edge].into_iter().flatten()
        };
        let gaps = self.gaps.iter().filter(|gap| x.contains(gap.x));
        seen.flat_map(of_point).chain(gaps.filter_map(|gap| Some((Mark::NoValue, gap.why?)))).collect()
    }
}

/// The position of a value relative to the vertical axis.
enum AxisPosition {
    Inside,
    Above,
    Below,
}

fn axis_position(axis: &Scale, point: &Point) -> AxisPosition {
    let value = point.value.value;
    match axis.contains(value) {
        true => AxisPosition::Inside,
        false if axis.fraction(value) > 1.0 => AxisPosition::Above,
        false => AxisPosition::Below,
    }
}

fn bar(svg: &mut Svg, panel: &Panel, point: &Point) {
    let ConfidenceInterval { low, high, .. } = point.value;
    if !(low.is_finite() && high.is_finite()) {
        return;
    }
    let (low, high) = (panel.pixel_of(point.x, low), panel.pixel_of(point.x, high));
    // An error bar that its marker hides is omitted.
    if low.1 - high.1 < 5.0 {
        return;
    }
    svg.line("bar", low, high);
    for end in [low, high] {
        svg.line("bar", (end.0 - 3.0, end.1), (end.0 + 3.0, end.1));
    }
}

fn tooltip(label: &str, x: &str, point: &Point) -> String {
    format!("{label} at {x}: {}{}", point.value, point.remark())
}

impl Point {
    /// Returns a remark on the value that starts with a comma; usually empty.
    pub fn remark(&self) -> String {
        let Self { n, missing, collapsed, .. } = *self;
        let all = n + missing;
        match (all, missing, collapsed) {
            (1, ..) => ", one repetition".to_owned(),
            (_, 0, 0) => String::new(),
            (_, _, collapsed) if collapsed > missing => {
                format!(", {collapsed} of {all} runs collapsed (did not carry the load)")
            }
            _ => format!(", {n} of {all} runs have a value"),
        }
    }
}
