//! A framed area with two axes, in which series are drawn.

use super::{Anchor, Axis, Scale, Svg};

/// The average width of a letter of a tick label, in px.
const TICK_LETTER_WIDTH: f64 = 5.8;

/// The position of a panel in its drawing, in pixels, without tick labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

/// A framed area with two axes.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Position of the panel.
    pub frame: Frame,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

impl Panel {
    /// Returns the pixel of (`x`, `y`), which may lie outside the frame.
    pub fn pixel_of(&self, x: f64, y: f64) -> (f64, f64) {
        let Frame { left, top, width, height } = self.frame;
        // Limited, so that a value far off the axis has a valid coordinate; clipping hides it.
        let (fx, fy) = (self.x.scale.fraction(x), self.y.scale.fraction(y).clamp(-3.0, 4.0));
        (left + width * fx, top + height * (1.0 - fy))
    }

    /// Draws the frame, grid, ticks and names of the axes that have one. `title` is drawn above the frame.
    pub fn draw(&self, svg: &mut Svg, title: &str) {
        let Frame { left, top, width, height } = self.frame;
        svg.rect("frame", (left, top), width, height);
        self.horizontal_axis(svg);
        self.vertical_axis(svg);
        svg.text("panel", (left, top - 8.0), Anchor::Start, title);
    }

    fn horizontal_axis(&self, svg: &mut Svg) {
        let Frame { left, top, width, height } = self.frame;
        let bottom = top + height;
        let mut label_end = f64::NEG_INFINITY;
        for mut tick in self.x.ticks() {
            let x = left + width * self.x.scale.fraction(tick.value);
            let half = TICK_LETTER_WIDTH / 2.0 * tick.label.chars().count() as f64;
            if matches!(self.x.scale, Scale::Names(_)) || x - half > label_end + 4.0 {
                label_end = x + half;
            } else {
                tick.label.clear();
            }
            let length = if tick.label.is_empty() { 2.5 } else { 5.0 };
            if !tick.label.is_empty() && x > left + 1.0 && x < left + width - 1.0 {
                svg.line("grid", (x, top), (x, bottom));
            }
            svg.line("tick-mark", (x, bottom), (x, bottom + length));
            if !tick.label.is_empty() {
                svg.text("tick", (x, bottom + 17.0), Anchor::Middle, &tick.label);
            }
        }
        if let Some(gap) = self.x.scale.break_position() {
            let x = left + width * gap;
            for shift in [-3.0, 1.0] {
                svg.line("break", (x + shift, bottom + 4.0), (x + shift + 3.0, bottom - 4.0));
            }
        }
        svg.text("axis", (left + width / 2.0, bottom + 33.0), Anchor::Middle, &self.x.label);
    }

    fn vertical_axis(&self, svg: &mut Svg) {
        let Frame { left, top, width, height } = self.frame;
        for tick in self.y.ticks() {
            let y = top + height * (1.0 - self.y.scale.fraction(tick.value));
            let length = if tick.label.is_empty() { 2.5 } else { 5.0 };
            if !tick.label.is_empty() && y > top + 1.0 && y < top + height - 1.0 {
                svg.line("grid", (left, y), (left + width, y));
            }
            svg.line("tick-mark", (left - length, y), (left, y));
            if !tick.label.is_empty() {
                svg.text("tick", (left - 8.0, y + 3.5), Anchor::End, &tick.label);
            }
        }
        let longest = self.y.ticks().iter().map(|tick| tick.label.len()).max().unwrap_or(0);
        let aside = (16.0 + TICK_LETTER_WIDTH * longest as f64).max(40.0);
        debug_assert!(left >= aside + 10.0, "the label {:?} begins left of the figure", self.y.label);
        svg.text_upwards("axis", (left - aside, top + height / 2.0), &self.y.label);
    }
}
