//! A small plotter: a common style for all figures, text as text, error bars, log axes, and markers that are legible in print.
//!
//! Colours are CSS classes, defined in [`theme`], so that one drawing works in light mode, in dark mode and
//! on paper. A drawing in a separate file has literal attributes instead.

mod axis;
mod ccdf;
mod curves;
mod edge;
mod inline_styles;
mod legend;
mod mark;
mod panel;
mod scale;
mod series;
mod svg;
pub mod theme;
mod time_curve;

pub use axis::Axis;
pub use ccdf::Ccdf;
pub use curves::{draw_curves, draw_marks};
pub use edge::EdgeMarks;
pub use inline_styles::literal_colour;
pub use legend::{component_key_height, draw_component_key, draw_key, side_labels};
pub use mark::{Mark, draw_mark_key};
pub use panel::{Frame, Panel};
pub use scale::{Scale, number};
pub use series::{Gap, Point, Series};
pub use svg::{Anchor, Svg, escape};
pub use theme::{Marker, SeriesStyle};
pub use time_curve::{Recovery, TimeCurve, draw_event_lines, draw_recoveries};
