//! The shapes of points, and marks of exceptional points.

use super::{Anchor, Marker, Svg};

/// A mark of an exceptional point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Some runs collapsed: a ring around the point.
    Collapsed,
    /// There is no value: ∅ at the upper edge, a shape that no marker has.
    NoValue,
    /// The value is above the axis: a triangle at its upper end.
    Above,
    /// The value is below the axis: a triangle at its lower end.
    Below,
}

impl Mark {
    /// Draws the mark in the current colour.
    pub fn draw(self, svg: &mut Svg, (x, y): (f64, f64)) {
        match self {
            Self::Collapsed => svg.circle("ring", (x, y), 6.0),
            Self::NoValue => {
                svg.circle("open", (x, y), 3.5);
                svg.line("stroke", (x - 4.5, y + 4.5), (x + 4.5, y - 4.5));
            }
            Self::Above => svg.polygon("off-axis", [(x - 4.0, y + 3.3), (x, y - 3.3), (x + 4.0, y + 3.3)]),
            Self::Below => svg.polygon("off-axis", [(x - 4.0, y - 3.3), (x, y + 3.3), (x + 4.0, y - 3.3)]),
        }
    }
}

/// Draws the meaning of each mark in one line, starting at `at`.
pub fn draw_mark_key(svg: &mut Svg, at: (f64, f64), marks: &[(Mark, String)]) {
    /// The average width of a letter, in px.
    const LETTER_WIDTH: f64 = 5.9;
    let mut x = at.0;
    svg.group("c-grey", "", |svg| {
        for (mark, words) in marks {
            mark.draw(svg, (x + 5.0, at.1));
            svg.text("note", (x + 16.0, at.1 + 3.5), Anchor::Start, words);
            x += 40.0 + LETTER_WIDTH * words.len() as f64;
        }
    });
}

/// Draws the marker of a point in the current colour.
pub fn draw_marker(svg: &mut Svg, marker: Marker, (x, y): (f64, f64)) {
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
