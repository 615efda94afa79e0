//! Draws values over time around an event, with the event and the recovery of each transport.

use super::{Anchor, Panel, SeriesStyle, Svg, number};

/// The values of a run over time.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeCurve {
    /// The name in legends and tables.
    pub label: String,
    /// Colour and dash.
    pub style: SeriesStyle,
    /// Time in s and value, ascending; `None` if the message of this time never arrived.
    pub points: Vec<(f64, Option<f64>)>,
}

/// The recovery of a run from an event: the delivery of the messages that were late because of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    /// The name of the transport.
    pub label: String,
    /// Colour of the transport.
    pub style: SeriesStyle,
    /// When the first and the last late message arrived, in s since the event.
    pub ends: [f64; 2],
}

impl TimeCurve {
    /// Draws the values as a line, and messages that never arrived as a bar at the upper edge.
    pub fn draw(&self, svg: &mut Svg, panel: &Panel) {
        let frame = panel.frame;
        svg.group(self.style.class, &self.label, |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                for stretch in self.points.chunk_by(|a, b| a.1.is_some() == b.1.is_some()) {
                    let known = stretch.iter().filter_map(|(at, value)| Some(panel.pixel_of(*at, (*value)?)));
                    svg.polyline("curve", self.style.dash, known);
                    if let ([(first, None), ..], Some((last, _))) = (stretch, stretch.last()) {
                        let x = |at| panel.pixel_of(at, 1.0).0;
                        svg.line("stroke", (x(*first), frame.top + 2.0), (x(*last), frame.top + 2.0));
                    }
                }
            });
        });
    }

    /// Returns the position of the name: at the last value that the panel shows.
    pub fn end(&self, panel: &Panel) -> Option<(f64, f64)> {
        let (at, value) = self.points.iter().rfind(|(at, _)| panel.x.scale.contains(*at))?;
        Some(
            value.map_or((panel.pixel_of(*at, 1.0).0, panel.frame.top + 2.0), |value| {
                panel.pixel_of(*at, value)
            }),
        )
    }
}

/// Draws a line at each event; its tooltip describes the event. Few events are also described at the lines.
pub fn draw_event_lines(svg: &mut Svg, panel: &Panel, events: &[(f64, String)]) {
    /// The largest number of events with a description.
    const MAX_DESCRIBED: usize = 3;
    let frame = panel.frame;
    let inside: Vec<_> = events.iter().filter(|(at, _)| panel.x.scale.contains(*at)).collect();
    for (line, (at, what)) in inside.iter().enumerate() {
        let (x, _) = panel.pixel_of(*at, 1.0);
        svg.group("", what, |svg| svg.line("event", (x, frame.top), (x, frame.top + frame.height)));
        if inside.len() <= MAX_DESCRIBED {
            let is_right = x < frame.left + frame.width / 2.0;
            let (aside, anchor) = if is_right { (5.0, Anchor::Start) } else { (-5.0, Anchor::End) };
            svg.text("note", (x + aside, frame.top + 14.0 + 13.0 * line as f64), anchor, what);
        }
    }
}

/// Draws a bar for each recovery, at the lower edge, from the first to the last late message.
pub fn draw_recoveries(svg: &mut Svg, panel: &Panel, recoveries: &[Recovery]) {
    /// The height of a bar's ends, and the distance between two bars, in px.
    const HEIGHT: f64 = 8.0;
    let frame = panel.frame;
    for (row, Recovery { label, style, ends }) in recoveries.iter().enumerate() {
        let [first, last] = ends.map(number);
        let about = format!(
            "{label}: the first late message arrives {first} s after the event, the last {last} s after it"
        );
        let y = frame.top + frame.height - HEIGHT * (row as f64 + 1.0);
        svg.group(style.class, &about, |svg| {
            svg.clipped((frame.left, frame.top), frame.width, frame.height, |svg| {
                let [first, last] = ends.map(|at| panel.pixel_of(at, 1.0).0);
                svg.line("stroke", (first, y), (last, y));
                for x in [first, last] {
                    svg.line("stroke", (x, y - HEIGHT / 2.0 + 1.0), (x, y + HEIGHT / 2.0 - 1.0));
                }
            });
        });
    }
}
