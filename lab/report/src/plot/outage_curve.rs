//! Draws the response times of messages around an event. The horizontal axis is the time when the messages
//! were due.

use super::{Panel, SeriesStyle, Svg};

/// The response times of a run's messages around an event.
#[derive(Debug, Clone, PartialEq)]
pub struct OutageCurve {
    /// The name in legends and tables.
    pub label: String,
    /// Colour and dash.
    pub style: SeriesStyle,
    /// Response times (s since the event, ms), ascending; `None` if the message never arrived.
    pub points: Vec<(f64, Option<f64>)>,
}

impl OutageCurve {
    /// Draws the messages that arrived as a line, and the others as a bar at the upper edge.
    pub fn draw(&self, svg: &mut Svg, panel: &Panel) {
        let frame = panel.frame;
        svg.group(self.style.class, &self.label, |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                for stretch in self.points.chunk_by(|a, b| a.1.is_some() == b.1.is_some()) {
                    let arrived = stretch.iter().filter_map(|(at, took)| Some(panel.pixel_of(*at, (*took)?)));
                    svg.polyline("curve", self.style.dash, arrived);
                    if let ([(first, None), ..], Some((last, _))) = (stretch, stretch.last()) {
                        let x = |at| panel.pixel_of(at, 1.0).0;
                        svg.line("stroke", (x(*first), frame.top + 2.0), (x(*last), frame.top + 2.0));
                    }
                }
            });
        });
    }

    /// Returns the position of the name: at the last message that the panel shows.
    pub fn end(&self, panel: &Panel) -> Option<(f64, f64)> {
        let (at, took) = self.points.iter().rfind(|(at, _)| panel.x.scale.contains(*at))?;
        Some(
            took.map_or((panel.pixel_of(*at, 1.0).0, panel.frame.top + 2.0), |took| {
                panel.pixel_of(*at, took)
            }),
        )
    }
}

/// Draws a line at each event; its tooltip describes the event.
pub fn draw_event_lines(svg: &mut Svg, panel: &Panel, events: &[(f64, String)]) {
    let frame = panel.frame;
    let inside = events.iter().filter(|(at, _)| panel.x.scale.contains(*at));
    for (at, what) in inside {
        let (x, _) = panel.pixel_of(*at, 1.0);
        svg.group("", what, |svg| svg.line("event", (x, frame.top), (x, frame.top + frame.height)));
    }
}
