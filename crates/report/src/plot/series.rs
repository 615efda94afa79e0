//! Points with error bars and thin lines between.

use super::{Look, Marker, Panel, Svg};

/// A measured value with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Place on the horizontal axis.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower end of its 95 % interval; infinite where the repetitions tell nothing of it …
    pub low: f64,
    /// … and the upper one.
    pub high: f64,
    /// Repetitions behind it …
    pub n: u64,
    /// … and those that have no value.
    pub missing: usize,
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
    /// Places without a mean, for runs did not end there, and why.
    pub unended: Vec<(f64, String)>,
}

impl Series {
    /// Draws the curve into its panel; points above the axis become small triangles at its edge.
    pub fn draw(&self, svg: &mut Svg, panel: &Panel) {
        self.draw_line(svg, panel);
        self.draw_marks(svg, panel);
    }

    /// Draws the line through the points, and the closed form, without marks.
    pub fn draw_line(&self, svg: &mut Svg, panel: &Panel) {
        let Look { class, dash, .. } = self.look;
        let frame = panel.frame;
        svg.group(class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                svg.polyline("theory", "2 3", self.theory.iter().map(|&(x, y)| panel.at(x, y)));
                svg.polyline("curve", dash, self.points.iter().map(|p| panel.at(p.x, p.y)));
            });
        });
    }

    /// Draws the points with their bars, without a line between.
    pub fn draw_marks(&self, svg: &mut Svg, panel: &Panel) {
        let frame = panel.frame;
        svg.group(self.look.class, "", |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                for point in &self.points {
                    self.bar(svg, panel, point);
                }
            });
            for point in self.points.iter().filter(|p| panel.x.scale.contains(p.x)) {
                svg.group("", &tooltip(&self.label, &panel.x.scale.name(point.x), point), |svg| {
                    self.mark(svg, panel, point);
                });
            }
            for (x, why) in self.unended.iter().filter(|(x, _)| panel.x.scale.contains(*x)) {
                let at = (panel.at(*x, 0.0).0, frame.top);
                svg.group("", &format!("{} did not end here: {why}", self.label), |svg| no_entry(svg, at));
            }
        });
    }

    fn bar(&self, svg: &mut Svg, panel: &Panel, point: &Point) {
        let Point { x, y, low, high, .. } = *point;
        let [low, high] = [low, high].map(|end| panel.at(x, if end.is_finite() { end } else { y }));
        // A bar that its own marker hides is not worth the ink.
        if low.1 - high.1 < 5.0 {
            return;
        }
        svg.line("bar", low, high);
        for end in [low, high] {
            svg.line("bar", (end.0 - 3.0, end.1), (end.0 + 3.0, end.1));
        }
    }

    fn mark(&self, svg: &mut Svg, panel: &Panel, point: &Point) {
        let (x, y) = panel.at(point.x, point.y);
        let top = panel.frame.top;
        if panel.y.scale.contains(point.y) {
            marker(svg, self.look.marker, (x, y));
        } else if y < top {
            svg.polygon("off-axis", [(x - 4.0, top + 8.0), (x, top + 1.5), (x + 4.0, top + 8.0)]);
        }
    }
}

/// A bar across the upper edge: there is no mean, however high the axis.
fn no_entry(svg: &mut Svg, (x, top): (f64, f64)) {
    svg.line("stroke", (x - 4.0, top + 1.0), (x + 4.0, top + 9.0));
    svg.line("stroke", (x - 4.0, top + 9.0), (x + 4.0, top + 1.0));
}

fn tooltip(label: &str, x: &str, point: &Point) -> String {
    let Point { y, n, missing, .. } = *point;
    let of =
        if missing > 0 { format!(" ({n} of {} repetitions)", n + missing as u64) } else { String::new() };
    format!("{label} at {x}: {y:.2}{}{of}", point.margin())
}

impl Point {
    /// How well the value is known: ` ± 0.25`, or ` (20.10 to 23.50)` if that is not even, or that it is not.
    pub fn margin(&self) -> String {
        let Self { y, low, high, .. } = *self;
        let even = ((high - y) - (y - low)).abs() < 1e-6 * (high - low).abs();
        match (low.is_finite() && high.is_finite(), even || low == high) {
            (true, true) => format!(" ± {:.2}", high - y),
            (true, false) => format!(" ({low:.2} to {high:.2})"),
            (false, _) => " (too few repetitions)".to_owned(),
        }
    }
}

/// Draws the shape of a point in the current colour.
pub fn marker(svg: &mut Svg, marker: Marker, (x, y): (f64, f64)) {
    let polygon =
        |corners: &[(f64, f64)]| corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect::<Vec<_>>();
    match marker {
        Marker::Disc => svg.circle("solid", (x, y), 2.7),
        Marker::Ring => svg.circle("open", (x, y), 3.0),
        Marker::Square => svg.rect("solid", (x - 2.5, y - 2.5), 5.0, 5.0),
        Marker::Diamond => svg.polygon("solid", polygon(&[(0.0, -3.7), (3.7, 0.0), (0.0, 3.7), (-3.7, 0.0)])),
        Marker::Up => svg.polygon("solid", polygon(&[(0.0, -3.6), (3.4, 2.6), (-3.4, 2.6)])),
        Marker::Down => svg.polygon("solid", polygon(&[(0.0, 3.6), (3.4, -2.6), (-3.4, -2.6)])),
        Marker::Cross => {
            svg.line("stroke", (x - 3.0, y - 3.0), (x + 3.0, y + 3.0));
            svg.line("stroke", (x - 3.0, y + 3.0), (x + 3.0, y - 3.0));
        }
    }
}
