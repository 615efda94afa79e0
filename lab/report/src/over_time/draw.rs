//! Draws runs over time: five panels below each other with a common time axis, narrow enough for a phone. All lengths
//! are in px.

use super::{Run, RunsOverTime, SampledLine};
use crate::plot::{Anchor, Scale, SeriesStyle, Svg, number};

/// The width of a drawing, in px.
const WIDTH: f64 = 310.0;
/// The left margin, in px.
const LEFT_MARGIN: f64 = 46.0;
/// The width of a panel: one pixel for each column of a line.
const PANEL_WIDTH: f64 = super::sampled_line::COLUMNS as f64;
/// The height of a panel, in px.
const PANEL_HEIGHT: f64 = 74.0;
/// The height above each panel, for its name, in px.
const NAME_HEIGHT: f64 = 22.0;
/// The height above all panels, for the transport, in px.
const TOP_MARGIN: f64 = 20.0;
/// The bottom margin, for the tick labels and the name of the axis, in px.
const BOTTOM_MARGIN: f64 = 36.0;
/// The size of a mark of a loss, in pixels.
const MARK_SIZE: f64 = 6.0;

/// The axes, which the drawings of all runs share.
struct Axes {
    time: Scale,
    goodput: VerticalAxis,
    octets: VerticalAxis,
    rtt: VerticalAxis,
    queue: VerticalAxis,
}

/// A vertical axis, which all runs share.
struct VerticalAxis {
    /// The quantity and the unit.
    name: String,
    scale: Scale,
    /// Size of the axis' unit in the unit of the data: 1000 if kbit/s are shown as Mbit/s.
    unit_size: f64,
}

impl VerticalAxis {
    /// Creates an axis from zero to a little above `max_value`. `units` are the possible units with their sizes, ascending;
    /// the axis has the largest one that does not exceed `max_value`.
    fn new(max_value: f64, quantity: &str, units: &[(&str, f64)]) -> Self {
        let fits = units.iter().rev().find(|(_, size)| max_value >= *size);
        let (unit, unit_size) = fits.copied().unwrap_or(units[0]);
        let name = format!("{quantity}, {unit}");
        Self {
            name,
            scale: Scale::Linear { min: 0.0, max: (max_value / unit_size * 1.08).max(1e-9) },
            unit_size,
        }
    }

    /// Returns an axis with the same scale for another quantity.
    fn with_name(&self, quantity: &str) -> Self {
        let unit = self.name.rsplit(", ").next().unwrap_or_default();
        Self { name: format!("{quantity}, {unit}"), scale: self.scale.clone(), unit_size: self.unit_size }
    }
}

impl RunsOverTime {
    /// Draws each run, all with the same axes.
    pub fn draw(&self) -> Vec<Svg> {
        let labels: Vec<&str> = self.runs.iter().map(|run| run.transport.as_str()).collect();
        let styles = SeriesStyle::of_transports(&labels);
        let axes = self.axes();
        (1..)
            .zip(self.runs.iter().zip(styles))
            .map(|(number, (run, style))| self.draw_run(number, run, style, &axes))
            .collect()
    }

    fn axes(&self) -> Axes {
        let maximum = |of: fn(&Run) -> Option<f64>| self.runs.iter().filter_map(of).fold(0.0, f64::max);
        let end = maximum(|run| Some(run.ended_s));
        let goodput = |run: &Run| run.goodput.iter().map(|(_, kbps)| *kbps).reduce(f64::max);
        let octets = maximum(|run| run.cwnd.maximum()).max(maximum(|run| run.in_flight.maximum()));
        let queue = maximum(|run| run.queued.maximum());
        // A limit far above the data is not shown, because it would compress them.
        let queue_limit = self.queue_limit().filter(|limit| *limit < 1.5 * queue).unwrap_or(0.0);
        Axes {
            time: Scale::Linear { min: 0.0, max: end },
            goodput: VerticalAxis::new(
                maximum(goodput),
                "goodput",
                &[("kbit/s", 1.0), ("Mbit/s", 1e3), ("Gbit/s", 1e6)],
            ),
            octets: VerticalAxis::new(
                octets,
                "cwnd and ssthresh",
                &[("octets", 1.0), ("kB", 1e3), ("MB", 1e6)],
            ),
            rtt: VerticalAxis::new(
                maximum(|run| run.srtt.maximum()),
                "smoothed RTT",
                &[("ms", 1.0), ("s", 1e3)],
            ),
            queue: VerticalAxis::new(queue.max(queue_limit), "queue", &[("packets", 1.0)]),
        }
    }

    /// Returns the limit of the queue in packets.
    fn queue_limit(&self) -> Option<f64> {
        self.queue.as_ref().and_then(|(_, limit)| *limit).map(|packets| packets as f64)
    }

    fn draw_run(&self, number: usize, run: &Run, style: SeriesStyle, axes: &Axes) -> Svg {
        let at = if self.conditions.is_empty() { String::new() } else { format!(" at {}", self.conditions) };
        let title = format!("{}{at} over time: goodput, windows, RTT and queue", run.transport);
        let height = TOP_MARGIN + 5.0 * (NAME_HEIGHT + PANEL_HEIGHT) + BOTTOM_MARGIN;
        let mut svg = Svg::new(&format!("{}-{number}", self.id), WIDTH, height, &title);
        svg.group(style.class, "", |svg| {
            svg.text("series-name", (LEFT_MARGIN, 14.0), Anchor::Start, &run.transport);
        });
        let in_flight = axes.octets.with_name("in flight");
        let vertical_axes = [&axes.goodput, &axes.octets, &in_flight, &axes.rtt, &axes.queue];
        let tops: [f64; 5] =
            std::array::from_fn(|row| TOP_MARGIN + row as f64 * (NAME_HEIGHT + PANEL_HEIGHT) + NAME_HEIGHT);
        for (row, (vertical, top)) in vertical_axes.into_iter().zip(tops).enumerate() {
            let panel = TimePanel { top, time: &axes.time, vertical };
            panel.draw_frame(&mut svg, row + 1 == vertical_axes.len());
            for event in self.events.iter().filter(|event| axes.time.contains(**event)) {
                let (x, _) = panel.pixel_of(*event, 0.0);
                svg.line("event", (x, top), (x, top + PANEL_HEIGHT));
            }
            svg.group(style.class, "", |svg| {
                svg.clipped((LEFT_MARGIN, top), PANEL_WIDTH, PANEL_HEIGHT, |svg| {
                    self.draw_panel(svg, &panel, row, run);
                });
            });
        }
        let bottom = tops[4] + PANEL_HEIGHT;
        svg.text(
            "axis",
            (LEFT_MARGIN + PANEL_WIDTH / 2.0, bottom + 32.0),
            Anchor::Middle,
            "s since the start",
        );
        svg
    }

    /// Draws the contents of a panel.
    fn draw_panel(&self, svg: &mut Svg, panel: &TimePanel<'_>, row: usize, run: &Run) {
        match row {
            0 => panel.draw_steps(svg, &run.goodput, run.ended_s),
            1 => {
                panel.draw_line(svg, "series-thin", &run.ssthresh);
                panel.draw_line(svg, "series", &run.cwnd);
                panel.draw_marks(svg, &run.retransmissions);
            }
            2 => panel.draw_line(svg, "series", &run.in_flight),
            3 => panel.draw_line(svg, "series", &run.srtt),
            _ => {
                if let Some(queue_limit) = self.queue_limit() {
                    svg.line(
                        "series-limit",
                        panel.pixel_of(0.0, queue_limit),
                        (LEFT_MARGIN + PANEL_WIDTH, panel.pixel_of(0.0, queue_limit).1),
                    );
                }
                panel.draw_line(svg, "series", &run.queued);
                panel.draw_marks(svg, &run.dropped);
            }
        }
    }
}

/// A panel with the common time axis.
struct TimePanel<'a> {
    /// Upper edge, in pixels.
    top: f64,
    time: &'a Scale,
    vertical: &'a VerticalAxis,
}

impl TimePanel<'_> {
    /// Returns the pixel of a value at a time.
    fn pixel_of(&self, time: f64, value: f64) -> (f64, f64) {
        // Limited, so that a value far off the axis has a valid coordinate; clipping hides it.
        let up = self.vertical.scale.fraction(value / self.vertical.unit_size).clamp(-1.0, 3.0);
        (LEFT_MARGIN + PANEL_WIDTH * self.time.fraction(time), self.top + PANEL_HEIGHT * (1.0 - up))
    }

    fn draw_frame(&self, svg: &mut Svg, is_last: bool) {
        let (top, bottom) = (self.top, self.top + PANEL_HEIGHT);
        svg.rect("frame", (LEFT_MARGIN, top), PANEL_WIDTH, PANEL_HEIGHT);
        for tick in thin_out(self.time.ticks()) {
            let x = LEFT_MARGIN + PANEL_WIDTH * self.time.fraction(tick.value);
            svg.line("grid", (x, top), (x, bottom));
            if is_last {
                svg.text("tick", (x, bottom + 15.0), Anchor::Middle, &tick.label);
            }
        }
        for tick in thin_out(self.vertical.scale.ticks()) {
            let y = top + PANEL_HEIGHT * (1.0 - self.vertical.scale.fraction(tick.value));
            svg.line("grid", (LEFT_MARGIN, y), (LEFT_MARGIN + PANEL_WIDTH, y));
            svg.text("tick", (LEFT_MARGIN - 5.0, y + 3.5), Anchor::End, &number(tick.value));
        }
        svg.text("note", (LEFT_MARGIN, top - 6.0), Anchor::Start, &self.vertical.name);
    }

    fn draw_line(&self, svg: &mut Svg, class: &str, line: &SampledLine) {
        for segment in line.segments() {
            match segment[..] {
                [(time, value)] => svg.circle("solid", self.pixel_of(time, value), 1.2),
                _ => {
                    svg.polyline(
                        class,
                        "",
                        segment.into_iter().map(|(time, value)| self.pixel_of(time, value)),
                    );
                }
            }
        }
    }

    /// Draws a step line: each value applies until the time of the next one.
    fn draw_steps(&self, svg: &mut Svg, values: &[(f64, f64)], ended: f64) {
        let ends = values.iter().skip(1).map(|(begins, _)| *begins).chain([ended]);
        let corners =
            values.iter().zip(ends).flat_map(|((begins, value), ends)| [(*begins, *value), (ends, *value)]);
        svg.polyline("series", "", corners.map(|(time, value)| self.pixel_of(time, value)));
    }

    /// Draws marks of losses at the lower edge.
    fn draw_marks(&self, svg: &mut Svg, times: &[f64]) {
        let bottom = self.top + PANEL_HEIGHT;
        for time in times {
            let (x, _) = self.pixel_of(*time, 0.0);
            svg.line("series-lost", (x, bottom), (x, bottom - MARK_SIZE));
        }
    }
}

/// Returns every second tick if there are too many for a low panel.
fn thin_out<T>(ticks: Vec<T>) -> Vec<T> {
    let step = if ticks.len() > 5 { 2 } else { 1 };
    ticks.into_iter().step_by(step).collect()
}
