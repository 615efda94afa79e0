//! The upper and lower edge of a panel, where marks of values off the axis are stacked.

use super::Panel;

/// The height of a mark, in pixels.
const MARK_HEIGHT: f64 = 9.0;

/// The marks at a panel's edges so far.
#[derive(Debug, Clone, Default)]
pub struct EdgeMarks {
    /// The horizontal position of each mark in whole pixels, and whether the mark is at the upper edge.
    positions: Vec<(i64, bool)>,
}

impl EdgeMarks {
    /// Returns the next free position at the upper edge at `x`.
    pub fn place_above(&mut self, panel: &Panel, x: f64) -> (f64, f64) {
        let (x, depth) = self.next_position(panel, x, true);
        (x, panel.frame.top + depth)
    }

    /// Returns the next free position at the lower edge at `x`.
    pub fn place_below(&mut self, panel: &Panel, x: f64) -> (f64, f64) {
        let (x, depth) = self.next_position(panel, x, false);
        (x, panel.frame.top + panel.frame.height - depth)
    }

    /// Returns the horizontal pixel of the next mark, and its distance from the edge in pixels.
    fn next_position(&mut self, panel: &Panel, x: f64, upper: bool) -> (f64, f64) {
        let (x, _) = panel.pixel_of(x, 0.0);
        let place = (x.round() as i64, upper);
        let before = self.positions.iter().filter(|taken| **taken == place).count();
        self.positions.push(place);
        (x, 5.5 + MARK_HEIGHT * before as f64)
    }
}
