//! Points with error bars and thin lines between.

use hol_measure::Bounds;

use super::edge::Edge;
use super::mark::{Mark, marker};
use super::{Look, Panel, Scale, Svg};

/// A measured value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// The value with its 95 % interval, whose ends are infinite where one repetition tells nothing of them.
    pub value: Bounds,
    /// Repetitions behind it …
    pub n: usize,
    /// … those that have no value …
    pub missing: usize,
    /// … and those, with a value or without, that did not do what they were to do.
    pub collapsed: usize,
}

/// A place on the horizontal axis that was planned and has no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap {
    /// Where.
    pub x: f64,
    /// Why, in a few words; `None` if nothing was measured there.
    pub why: Option<&'static str>,
}

/// A named curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is called in legends and tables.
    pub label: String,
    /// Colour, marker, dash.
    pub look: Look,
    /// What was measured, ascending in x.
    pub points: Vec<Point>,
    /// What the closed form says, ascending in x; drawn dashed and without markers.
    pub theory: Vec<(f64, f64)>,
    /// Where there is no value, ascending in x; the line is broken there.
    pub gaps: Vec<Gap>,
}

impl Series {
    /// A curve through `points`, ascending in x, and nothing else.
    pub fn new(label: &str, look: Look, points: Vec<Point>) -> Self {
        Self { label: label.to_owned(), look, points, theory: Vec::new(), gaps: Vec::new() }
    }

    /// Draws the line through the points, and the closed form, without marks.
    pub fn draw_line(&self, svg: &mut Svg, panel: &Panel) {
        self.draw_dashed(svg, panel, self.look.dash);
    }

    /// As [`Series::draw_line`], with other dashes than its own.
    pub(super) fn draw_dashed(&self, svg: &mut Svg, panel: &Panel, dash: &str) {
        let frame = panel.frame;
        svg.group(self.look.class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                svg.polyline("theory", "2 3", self.theory.iter().map(|&(x, y)| panel.at(x, y)));
                for unbroken in self.unbroken() {
                    svg.polyline("curve", dash, unbroken.iter().map(|p| panel.at(p.x, p.value.value)));
                }
            });
        });
    }

    /// The points between one gap and the next: nobody knows what a line across would pass.
    fn unbroken(&self) -> impl Iterator<Item = &[Point]> {
        let gap_between = |a: &Point, b: &Point| self.gaps.iter().any(|gap| a.x < gap.x && gap.x < b.x);
        self.points.chunk_by(move |a, b| !gap_between(a, b))
    }

    /// Draws the points with their bars, without a line between. What is off the axis stands at its `edge`.
    pub fn draw_marks(&self, svg: &mut Svg, panel: &Panel, edge: &mut Edge) {
        let frame = panel.frame;
        svg.group(self.look.class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                for point in &self.points {
                    bar(svg, panel, point);
                }
            });
            for point in self.points.iter().filter(|p| panel.x.scale.contains(p.x)) {
                let place = panel.x.scale.name(point.x);
                svg.group("", &tooltip(&self.label, &place, point), |svg| self.mark(svg, panel, point, edge));
            }
            for Gap { x, why } in self.gaps.iter().filter(|gap| panel.x.scale.contains(gap.x)) {
                let Some(why) = why else { continue };
                let place = panel.x.scale.name(*x);
                let tooltip = format!("{} at {place}: {why}", self.label);
                svg.group("", &tooltip, |svg| Mark::NoValue.draw(svg, edge.above(panel, *x)));
            }
        });
    }

    fn mark(&self, svg: &mut Svg, panel: &Panel, point: &Point, edge: &mut Edge) {
        let at = panel.at(point.x, point.value.value);
        let place = place(&panel.y.scale, point);
        let seen = match place {
            Place::Inside => at,
            Place::Above => edge.above(panel, point.x),
            Place::Below => edge.below(panel, point.x),
        };
        match place {
            Place::Inside => marker(svg, self.look.marker, at),
            Place::Above => Mark::Above.draw(svg, seen),
            Place::Below => Mark::Below.draw(svg, seen),
        }
        if point.collapsed > 0 {
            Mark::Collapsed.draw(svg, seen);
        }
    }

    /// The marks beside its own marker that it has on these axes, with what they say; `collapsed` is what a collapse is there.
    pub fn marks(&self, x: &Scale, y: &Scale, collapsed: &'static str) -> Vec<(Mark, &'static str)> {
        let seen = self.points.iter().filter(|point| x.contains(point.x));
        let of_point = |point: &Point| {
            let at_edge = match place(y, point) {
                Place::Inside => None,
                Place::Above => Some((Mark::Above, "above the axis")),
                Place::Below => Some((Mark::Below, "below the axis")),
            };
            let ring = (point.collapsed > 0).then_some((Mark::Collapsed, collapsed));
            [ring, at_edge].into_iter().flatten()
        };
        let gaps = self.gaps.iter().filter(|gap| x.contains(gap.x));
        seen.flat_map(of_point).chain(gaps.filter_map(|gap| Some((Mark::NoValue, gap.why?)))).collect()
    }
}

/// Where a value stands on the vertical axis.
enum Place {
    Inside,
    Above,
    Below,
}

fn place(axis: &Scale, point: &Point) -> Place {
    let value = point.value.value;
    match axis.contains(value) {
        true => Place::Inside,
        false if axis.fraction(value) > 1.0 => Place::Above,
        false => Place::Below,
    }
}

fn bar(svg: &mut Svg, panel: &Panel, point: &Point) {
    let Bounds { low, high, .. } = point.value;
    if !(low.is_finite() && high.is_finite()) {
        return;
    }
    let (low, high) = (panel.at(point.x, low), panel.at(point.x, high));
    // A bar that its own marker hides is not worth the ink.
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
    /// What a reader has to know beside the value, from a comma on; mostly nothing.
    pub fn remark(&self) -> String {
        let Self { n, missing, collapsed, .. } = *self;
        let all = n + missing;
        match (all, missing, collapsed) {
            (1, ..) => ", one repetition".to_owned(),
            (_, 0, 0) => String::new(),
            (_, _, collapsed) if collapsed > missing => format!(", {collapsed} of {all} runs collapsed"),
            _ => format!(", {n} of {all} runs have a value"),
        }
    }
}
