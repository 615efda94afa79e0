//! The upper and lower edge of a panel, where marks of what it cannot show stand below each other: none hides another.

use super::Panel;

/// What a mark takes of an edge, in pixels.
const MARK: f64 = 9.0;

/// The marks that stand at a panel's edges already.
#[derive(Debug, Clone, Default)]
pub struct Edge {
    /// Where, to a pixel, and at which edge.
    taken: Vec<(i64, bool)>,
}

impl Edge {
    /// The next free place at the upper edge over `x`.
    pub fn above(&mut self, panel: &Panel, x: f64) -> (f64, f64) {
        let (x, depth) = self.take(panel, x, true);
        (x, panel.frame.top + depth)
    }

    /// The next free place at the lower edge under `x`.
    pub fn below(&mut self, panel: &Panel, x: f64) -> (f64, f64) {
        let (x, depth) = self.take(panel, x, false);
        (x, panel.frame.top + panel.frame.height - depth)
    }

    /// How deep inside the panel the next mark stands.
    fn take(&mut self, panel: &Panel, x: f64, upper: bool) -> (f64, f64) {
        let (x, _) = panel.at(x, 0.0);
        let place = (x.round() as i64, upper);
        let before = self.taken.iter().filter(|taken| **taken == place).count();
        self.taken.push(place);
        (x, 5.5 + MARK * before as f64)
    }
}
