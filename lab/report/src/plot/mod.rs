//! A small plotter: one look for all figures, real text, error bars, log axes, markers that print.
//!
//! Colours are CSS classes and live in [`theme`], so one drawing serves light, dark and paper.

mod axis;
mod ccdf;
mod course;
mod curves;
mod edge;
mod legend;
mod mark;
mod panel;
mod scale;
mod series;
mod svg;
pub mod theme;

pub use axis::Axis;
pub use ccdf::Ccdf;
pub use course::{Course, events};
pub use curves::{curves, marks};
pub use edge::Edge;
pub use legend::{causes, key, side_labels};
pub use mark::{Mark, mark_key};
pub use panel::{Frame, Panel};
pub use scale::{Scale, number};
pub use series::{Gap, Point, Series};
pub use svg::{Anchor, Svg, escape};
pub use theme::{Look, Marker};
