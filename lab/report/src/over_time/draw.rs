//! Draws runs over time: five panels below each other with a common time axis, narrow enough for a phone.

use super::{Line, OverTime, Run};
use crate::plot::{Anchor, Scale, SeriesStyle, Svg, number};

const WIDTH: f64 = 310.0;
const LEFT: f64 = 46.0;
/// The width of a panel: one pixel for each column of a line.
const PANEL_WIDTH: f64 = super::line::COLUMNS as f64;
const PANEL_HEIGHT: f64 = 74.0;
/// The height above each panel, for its name.
const NAME_HEIGHT: f64 = 22.0;
/// The height above all panels, for the transport.
const TOP: f64 = 20.0;
/// The margin below, for tick labels and the name of the axis.
const BOTTOM: f64 = 36.0;
/// The size of a mark of a loss, in pixels.
const MARK_SIZE: f64 = 6.0;

/// The axes, which the drawings of all runs share.
struct Axes {
    time: Scale,
    goodput: Unit,
    octets: Unit,
    rtt: Unit,
    queue: Unit,
}

/// A vertical axis: its name, its end, and the size of its unit in that of the data.
struct Unit {
    name: String,
    scale: Scale,
    size_of_one: f64,
}

impl Unit {
    /// Creates an axis from zero to a little above `greatest`, in the largest unit (with its size) in which that is at
    /// least one.
    fn new(greatest: f64, what: &str, units: &[(&str, f64)]) -> Self {
        let fits = units.iter().rev().find(|(_, one)| greatest >= *one);
        let (unit, one) = fits.copied().unwrap_or(units[0]);
        let name = format!("{what}, {unit}");
        Self {
            name,
            scale: Scale::Linear { min: 0.0, max: (greatest / one * 1.08).max(1e-9) },
            size_of_one: one,
        }
    }

    /// Returns the same axis with another name.
    fn called(&self, what: &str) -> Self {
        let unit = self.name.rsplit(", ").next().unwrap_or_default();
        Self { name: format!("{what}, {unit}"), scale: self.scale.clone(), size_of_one: self.size_of_one }
    }
}

impl OverTime {
    /// Draws each run, all with the same axes.
    pub fn draw(&self) -> Vec<Svg> {
        let labels: Vec<&str> = self.runs.iter().map(|run| run.transport.as_str()).collect();
        let styles = SeriesStyle::of_transports(&labels);
        let axes = self.axes();
        (1..)
            .zip(self.runs.iter().zip(styles))
            .map(|(count, (run, style))| self.draw_run(count, run, style, &axes))
            .collect()
    }

    fn axes(&self) -> Axes {
        let maximum = |of: fn(&Run) -> Option<f64>| self.runs.iter().filter_map(of).fold(0.0, f64::max);
        let end = maximum(|run| Some(run.ended_s));
        let goodput = |run: &Run| run.goodput.iter().map(|(_, kbps)| *kbps).reduce(f64::max);
        let octets = maximum(|run| run.cwnd.maximum()).max(maximum(|run| run.in_flight.maximum()));
        let queue = maximum(|run| run.queued.maximum());
        // A limit far above the data is not shown, because it would compress them.
        let limit = self.limit().filter(|limit| *limit < 1.5 * queue).unwrap_or(0.0);
        Axes {
            time: Scale::Linear { min: 0.0, max: end },
            goodput: Unit::new(
                maximum(goodput),
                "goodput",
                &[("kbit/s", 1.0), ("Mbit/s", 1e3), ("Gbit/s", 1e6)],
            ),
            octets: Unit::new(octets, "cwnd and ssthresh", &[("octets", 1.0), ("kB", 1e3), ("MB", 1e6)]),
            rtt: Unit::new(maximum(|run| run.srtt.maximum()), "smoothed RTT", &[("ms", 1.0), ("s", 1e3)]),
            queue: Unit::new(queue.max(limit), "queue", &[("packets", 1.0)]),
        }
    }

    fn limit(&self) -> Option<f64> {
        self.queue.as_ref().and_then(|(_, limit)| *limit).map(|packets| packets as f64)
    }

    fn draw_run(&self, count: usize, run: &Run, style: SeriesStyle, axes: &Axes) -> Svg {
        let at = if self.place.is_empty() { String::new() } else { format!(" at {}", self.place) };
        let title = format!("{}{at} over time: goodput, windows, RTT and queue", run.transport);
        let height = TOP + 5.0 * (NAME_HEIGHT + PANEL_HEIGHT) + BOTTOM;
        let mut svg = Svg::new(&format!("{}-{count}", self.id), WIDTH, height, &title);
        svg.group(style.class, "", |svg| {
            svg.text("series-name", (LEFT, 14.0), Anchor::Start, &run.transport);
        });
        let in_flight = axes.octets.called("in flight");
        let units = [&axes.goodput, &axes.octets, &in_flight, &axes.rtt, &axes.queue];
        let tops: [f64; 5] =
            std::array::from_fn(|row| TOP + row as f64 * (NAME_HEIGHT + PANEL_HEIGHT) + NAME_HEIGHT);
        for (row, (unit, top)) in units.into_iter().zip(tops).enumerate() {
            let field = PanelArea { top, time: &axes.time, unit };
            field.frame(&mut svg, row + 1 == units.len());
            for event in self.events.iter().filter(|event| axes.time.contains(**event)) {
                let (x, _) = field.pixel_of(*event, 0.0);
                svg.line("event", (x, top), (x, top + PANEL_HEIGHT));
            }
            svg.group(style.class, "", |svg| {
                svg.clipped((LEFT, top), PANEL_WIDTH, PANEL_HEIGHT, |svg| self.fill(svg, &field, row, run));
            });
        }
        let bottom = tops[4] + PANEL_HEIGHT;
        svg.text("axis", (LEFT + PANEL_WIDTH / 2.0, bottom + 32.0), Anchor::Middle, "s since the start");
        svg
    }

    /// Draws the contents of a panel.
    fn fill(&self, svg: &mut Svg, field: &PanelArea<'_>, row: usize, run: &Run) {
        match row {
            0 => field.draw_steps(svg, &run.goodput, run.ended_s),
            1 => {
                field.line(svg, "series-thin", &run.ssthresh);
                field.line(svg, "series", &run.cwnd);
                field.marks(svg, &run.retransmissions);
            }
            2 => field.line(svg, "series", &run.in_flight),
            3 => field.line(svg, "series", &run.srtt),
            _ => {
                if let Some(limit) = self.limit() {
                    svg.line(
                        "series-limit",
                        field.pixel_of(0.0, limit),
                        (LEFT + PANEL_WIDTH, field.pixel_of(0.0, limit).1),
                    );
                }
                field.line(svg, "series", &run.queued);
                field.marks(svg, &run.dropped);
            }
        }
    }
}

/// A panel.
struct PanelArea<'a> {
    top: f64,
    time: &'a Scale,
    unit: &'a Unit,
}

impl PanelArea<'_> {
    /// Returns the pixel of a value at a time.
    fn pixel_of(&self, time: f64, value: f64) -> (f64, f64) {
        // Limited, so that a value far off the axis has a valid coordinate; clipping hides it.
        let up = self.unit.scale.fraction(value / self.unit.size_of_one).clamp(-1.0, 3.0);
        (LEFT + PANEL_WIDTH * self.time.fraction(time), self.top + PANEL_HEIGHT * (1.0 - up))
    }

    fn frame(&self, svg: &mut Svg, is_last: bool) {
        let (top, bottom) = (self.top, self.top + PANEL_HEIGHT);
        svg.rect("frame", (LEFT, top), PANEL_WIDTH, PANEL_HEIGHT);
        for tick in thin_out(self.time.ticks()) {
            let x = LEFT + PANEL_WIDTH * self.time.fraction(tick.value);
            svg.line("grid", (x, top), (x, bottom));
            if is_last {
                svg.text("tick", (x, bottom + 15.0), Anchor::Middle, &tick.label);
            }
        }
        for tick in thin_out(self.unit.scale.ticks()) {
            let y = top + PANEL_HEIGHT * (1.0 - self.unit.scale.fraction(tick.value));
            svg.line("grid", (LEFT, y), (LEFT + PANEL_WIDTH, y));
            svg.text("tick", (LEFT - 5.0, y + 3.5), Anchor::End, &number(tick.value));
        }
        svg.text("note", (LEFT, top - 6.0), Anchor::Start, &self.unit.name);
    }

    fn line(&self, svg: &mut Svg, class: &str, line: &Line) {
        for piece in line.pieces() {
            match piece[..] {
                [(time, value)] => svg.circle("solid", self.pixel_of(time, value), 1.2),
                _ => {
                    svg.polyline(
                        class,
                        "",
                        piece.into_iter().map(|(time, value)| self.pixel_of(time, value)),
                    );
                }
            }
        }
    }

    /// Draws values that hold until the next one begins.
    fn draw_steps(&self, svg: &mut Svg, values: &[(f64, f64)], ended: f64) {
        let ends = values.iter().skip(1).map(|(begins, _)| *begins).chain([ended]);
        let corners =
            values.iter().zip(ends).flat_map(|((begins, value), ends)| [(*begins, *value), (ends, *value)]);
        svg.polyline("series", "", corners.map(|(time, value)| self.pixel_of(time, value)));
    }

    /// Draws marks of losses at the lower edge.
    fn marks(&self, svg: &mut Svg, times: &[f64]) {
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
