//! Complementary distribution functions on two log axes.

use super::{Panel, SeriesStyle, Svg};

/// The share of messages that took longer than a time, as a function of that time.
#[derive(Debug, Clone, PartialEq)]
pub struct Ccdf {
    /// The name in legends and tables.
    pub label: String,
    /// Colour and dash.
    pub style: SeriesStyle,
    /// Points (time in ms, share that took longer), ascending in time.
    pub points: Vec<(f64, f64)>,
    /// The confidence band (time in ms, lower, upper): 95 % limits of the share.
    pub band: Vec<(f64, f64, f64)>,
    /// The closed form (time in ms, share that takes longer), drawn dashed.
    pub theory: Vec<(f64, f64)>,
}

impl Ccdf {
    /// Creates the curve of a transport that delivered nothing.
    pub fn empty(label: &str) -> Self {
        let (points, band, theory) = (Vec::new(), Vec::new(), Vec::new());
        Self { label: label.to_owned(), style: SeriesStyle::of_transport(label), points, band, theory }
    }

    /// Draws the curve over its band.
    pub fn draw(&self, svg: &mut Svg, panel: &Panel) {
        let frame = panel.frame;
        svg.group(self.style.class, &self.label, |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                let edge = |pick: fn(&(f64, f64, f64)) -> f64| {
                    stairs(panel, &self.band.iter().map(|at| (at.0, pick(at))).collect::<Vec<_>>())
                };
                let (upper, lower) = (edge(|at| at.2), edge(|at| at.1));
                svg.polygon("band", upper.into_iter().chain(lower.into_iter().rev()));
                svg.polyline("theory", "2 3", self.theory.iter().map(|&(x, y)| panel.pixel_of(x, y)));
                svg.polyline("curve", self.style.dash, stairs(panel, &self.points));
            });
        });
    }
}

/// Returns the steps of the curve: it is 1 before the first time and falls at each time.
fn stairs(panel: &Panel, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut path = Vec::with_capacity(points.len() * 2 + 2);
    let mut share = 1.0;
    for &(time, next) in points {
        path.push(panel.pixel_of(time, share));
        path.push(panel.pixel_of(time, next));
        share = next;
    }
    if let (Some(&(time, _)), Some(first)) = (points.first(), path.first().copied()) {
        path.insert(0, (panel.frame.left.min(panel.pixel_of(time, 1.0).0), first.1));
    }
    // Points closer than a tenth of a pixel are drawn once.
    path.dedup_by(|a, b| (a.0 - b.0).abs() < 0.1 && (a.1 - b.1).abs() < 0.1);
    path
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Frame, Scale};
    use super::*;

    #[test]
    fn the_curve_is_a_staircase_that_starts_at_one() {
        let frame = Frame { left: 0.0, top: 0.0, width: 300.0, height: 300.0 };
        let x = Axis::new(Scale::Log { min: 10.0, max: 10_000.0 }, "ms");
        let y = Axis::new(Scale::Log { min: 0.001, max: 1.0 }, "CCDF");
        let panel = Panel { frame, x, y };
        let path = stairs(&panel, &[(100.0, 0.1), (1000.0, 0.01)]);
        let rounded: Vec<(i32, i32)> =
            path.iter().map(|(x, y)| (x.round() as i32, y.round() as i32)).collect();
        assert_eq!(rounded, [(0, 0), (100, 0), (100, 100), (200, 100), (200, 200)]);
        assert!(stairs(&panel, &[]).is_empty());
    }
}
