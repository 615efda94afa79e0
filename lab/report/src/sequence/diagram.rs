//! Draws a sequence diagram: time runs down, packets run across, waiting is a bar.

use hol_base::Time;

use super::{Arrow, Delivery, Trace};
use crate::plot::{Anchor, Svg};

/// The width of a diagram, in px.
const WIDTH: f64 = 910.0;
/// The horizontal position of the client's line, in px.
const CLIENT_X: f64 = 190.0;
/// The horizontal position of the server's line, in px.
const SERVER_X: f64 = 530.0;
/// The top margin, in px.
const TOP_MARGIN: f64 = 56.0;
/// The vertical distance in pixels that stands for the shortest one-way delay.
const DELAY_HEIGHT: f64 = 90.0;
/// The position of the first bar, in px.
const BARS_X: f64 = SERVER_X + 14.0;
/// The width of a bar with the gap beside it, in px.
const BAR_WIDTH: f64 = 11.0;
/// The position of the names of deliveries, in px.
const NAMES_X: f64 = SERVER_X + 140.0;
/// The minimum distance between two names, in px.
const LINE_HEIGHT: f64 = 12.0;

/// Draws a trace under its heading.
pub fn draw(id: &str, heading: &str, trace: &Trace) -> Svg {
    let start = trace.arrows.first().map_or(Time::ZERO, |arrow| arrow.sent);
    let end = trace.deliveries.iter().map(|d| d.delivered).max().unwrap_or(start);
    let delay_ms = shortest_delay_ms(trace);
    let scale = DELAY_HEIGHT / delay_ms;
    let y = |time: Time| TOP_MARGIN + 12.0 + scale * time.saturating_since(start).as_millis_f64();
    let bottom = y(end) + 24.0;
    // Deliveries at the same time are named below each other, the last of them below the end.
    let together = trace.deliveries.iter().filter(|d| d.delivered == end).count().max(1);
    let names = y(end) + LINE_HEIGHT * together as f64;
    let mut svg = Svg::new(id, WIDTH, bottom.max(names) + 14.0, heading);
    frame(&mut svg, bottom);
    ticks(&mut svg, bottom, delay_ms);
    let (mut names, mut answered) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for arrow in trace.arrows.iter().filter(|arrow| arrow.sent <= end) {
        // The names of two packets that arrive together are drawn at different positions.
        let share = if y(arrow.sent) < answered + LINE_HEIGHT { 0.68 } else { 0.3 };
        draw_arrow(&mut svg, arrow, y, bottom, share);
        if !arrow.is_forward {
            answered = if share < 0.5 { y(arrow.sent) } else { f64::NEG_INFINITY };
        }
        // The names of two packets that leave together are drawn below each other.
        if arrow.is_forward {
            let name = y(arrow.sent).max(names);
            names = name + LINE_HEIGHT;
            svg.group(colour(arrow), "", |svg| {
                svg.text("message", (CLIENT_X - 8.0, name + 3.5), Anchor::End, &arrow.label);
            });
        }
    }
    draw_deliveries(&mut svg, &trace.deliveries, y);
    svg
}

fn frame(svg: &mut Svg, bottom: f64) {
    for (x, name) in [(CLIENT_X, "client"), (SERVER_X, "server")] {
        svg.text("panel", (x, 20.0), Anchor::Middle, name);
        svg.line("lifeline", (x, 34.0), (x, bottom));
    }
    svg.text("panel", (NAMES_X, 20.0), Anchor::Start, "delivered to the application");
    svg.text("note", (40.0, 20.0), Anchor::Middle, "time (ms)");
    svg.rect("wait", (BARS_X, 26.0), 9.0, 16.0);
    svg.text("note", (BARS_X + 15.0, 38.0), Anchor::Start, "arrived and waiting: head-of-line blocking");
}

/// Returns the shortest one-way delay in ms, rounded down to two significant digits; it gives the time scale.
fn shortest_delay_ms(trace: &Trace) -> f64 {
    let delays =
        trace.arrows.iter().filter_map(|arrow| Some(arrow.arrived?.since(arrow.sent).as_millis_f64()));
    let shortest = delays.fold(f64::INFINITY, f64::min);
    if !shortest.is_finite() || shortest <= 0.0 {
        return 10.0;
    }
    let tenth = 10f64.powf(shortest.log10().floor() - 1.0);
    (shortest / tenth).floor() * tenth
}

/// Draws a tick at each multiple of the one-way delay `delay_ms`.
fn ticks(svg: &mut Svg, bottom: f64, delay_ms: f64) {
    let digits = (1.0 - delay_ms.log10().floor()).max(0.0) as usize;
    let digits = if delay_ms.fract() < 1e-9 { 0 } else { digits };
    for count in 0.. {
        let y = TOP_MARGIN + 12.0 + DELAY_HEIGHT * f64::from(count);
        if y > bottom - 10.0 {
            break;
        }
        svg.line("tick-mark", (52.0, y), (58.0, y));
        let ms = delay_ms * f64::from(count);
        svg.text("tick", (46.0, y + 3.5), Anchor::End, &format!("{ms:.digits$}"));
    }
    svg.line("tick-mark", (58.0, TOP_MARGIN + 12.0), (58.0, bottom - 10.0));
}

/// Draws a packet as an arrow; its name is at the fraction `share` of the arrow.
fn draw_arrow(svg: &mut Svg, arrow: &Arrow, y: impl Fn(Time) -> f64, bottom: f64, share: f64) {
    let (from, to) = if arrow.is_forward { (CLIENT_X, SERVER_X) } else { (SERVER_X, CLIENT_X) };
    let start = (from, y(arrow.sent));
    svg.group(colour(arrow), &arrow.label, |svg| {
        match arrow.arrived {
            Some(at) => {
                let end = (to, y(at));
                // An arrow that would end below the edge is cut there.
                let share = ((bottom - start.1) / (end.1 - start.1)).min(1.0);
                let cut = (from + (to - from) * share, start.1 + (end.1 - start.1) * share);
                svg.line("arrow", start, cut);
                if share >= 1.0 {
                    draw_arrow_head(svg, start, end);
                }
            }
            None => draw_lost_packet(svg, start, to),
        }
        if !arrow.is_forward && start.1 + 20.0 < bottom {
            let slope = -(DELAY_HEIGHT / (SERVER_X - CLIENT_X)).atan().to_degrees();
            let at = (from + (to - from) * share, start.1 + DELAY_HEIGHT * share - 3.0);
            svg.text_sloped("message", at, slope, &arrow.label);
        }
    });
}

const fn colour(arrow: &Arrow) -> &'static str {
    match arrow {
        Arrow { arrived: None, .. } => "c-vermilion",
        Arrow { is_retransmission: true, .. } => "c-green",
        Arrow { is_forward: true, .. } => "c-blue",
        Arrow { is_forward: false, .. } => "c-grey",
    }
}

/// Draws a packet that does not arrive: it ends half way with a cross.
fn draw_lost_packet(svg: &mut Svg, start: (f64, f64), to: f64) {
    let end = (start.0 + (to - start.0) * 0.55, start.1 + DELAY_HEIGHT * 0.55);
    svg.line("arrow", start, end);
    for (dx, dy) in [(6.0, 6.0), (6.0, -6.0)] {
        svg.line("lost", (end.0 - dx, end.1 - dy), (end.0 + dx, end.1 + dy));
    }
    svg.text("message", (end.0 + 12.0, end.1 + 4.0), Anchor::Start, "lost");
}

fn draw_arrow_head(svg: &mut Svg, (x0, y0): (f64, f64), (x, y): (f64, f64)) {
    let length = ((x - x0).powi(2) + (y - y0).powi(2)).sqrt();
    let (ux, uy) = ((x - x0) / length, (y - y0) / length);
    let back = |side: f64| (x - 8.0 * ux + side * uy, y - 8.0 * uy - side * ux);
    svg.polygon("arrow-head", [(x, y), back(3.0), back(-3.0)]);
}

/// Draws bars from arrival to delivery, and the name of each message at its delivery.
fn draw_deliveries(svg: &mut Svg, deliveries: &[Delivery], y: impl Fn(Time) -> f64) {
    let mut in_order: Vec<&Delivery> = deliveries.iter().collect();
    in_order.sort_by_key(|d| (d.delivered.as_nanos(), d.message));
    // A single stream needs no name, and TCP has no streams.
    let streams = deliveries.iter().any(|delivery| delivery.stream != 0);
    let mut waiting = 0;
    let mut next_name = f64::NEG_INFINITY;
    for delivery in in_order {
        let (arrived, delivered) = (y(delivery.arrived), y(delivery.delivered));
        let Delivery { message, stream, .. } = delivery;
        let mut text = format!("message {message}");
        if streams {
            text += &format!(" (stream {stream})");
        }
        let mut class = "note";
        if let Some(wait) = delivery.waited_ms() {
            class = "wait-label";
            text += &format!(", waited {wait:.1} ms");
            let x = BARS_X + BAR_WIDTH * f64::from(waiting);
            svg.group("", &text, |svg| svg.rect("wait", (x, arrived), BAR_WIDTH - 2.0, delivered - arrived));
            svg.circle("waiting", (SERVER_X, arrived), 3.2);
            waiting += 1;
        }
        svg.circle("delivered", (SERVER_X, delivered), 3.6);
        let name = delivered.max(next_name);
        next_name = name + LINE_HEIGHT;
        svg.text(class, (NAMES_X, name + 3.5), Anchor::Start, &text);
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Eight messages every 4 ms with a one-way delay of 10 ms; the third is lost and retransmitted after three SACKs.
    pub fn trace() -> Trace {
        let ms = Time::from_millis;
        let arrow = |is_forward, sent, arrived: Option<u64>, label: &str| Arrow {
            is_forward,
            sent: ms(sent),
            arrived: arrived.map(ms),
            is_retransmission: false,
            label: label.to_owned(),
        };
        let mut arrows: Vec<Arrow> = (0..10)
            .map(|n| {
                let arrived = (n != 2).then_some(4 * n + 10);
                arrow(true, 4 * n, arrived, &format!("DATA {} · stream 0", n + 1))
            })
            .collect();
        arrows.extend(
            (3..6).map(|n| arrow(false, 4 * n + 10, Some(4 * n + 20), &format!("SACK 2, 4–{}", n + 1))),
        );
        arrows.push(arrow(true, 40, Some(50), "DATA 3 · stream 0"));
        arrows.sort_by_key(|arrow| arrow.sent.as_nanos());
        let deliveries = (0..10)
            .map(|n| {
                let arrived = if n == 2 { 50 } else { 4 * n + 10 };
                let delivered = if n >= 2 { arrived.max(50) } else { arrived };
                Delivery { message: n + 1, stream: 0, arrived: ms(arrived), delivered: ms(delivered) }
            })
            .collect();
        Trace { arrows, deliveries }
    }

    #[test]
    fn lost_packet_has_a_cross_and_waiting_messages_have_bars() {
        let svg = draw("s", "One lost message", &trace()).inline();
        assert_eq!(svg.matches("class=\"lost\"").count(), 2, "two strokes of one cross");
        // Messages 4 to 10 wait, except those that arrive with or after the retransmission; and the key has one bar.
        let waiting = trace().deliveries.iter().filter(|d| d.delivered > d.arrived).count();
        assert_eq!(svg.matches("class=\"wait\"").count(), waiting + 1);
        assert_eq!(svg.matches("class=\"delivered\"").count(), 10);
        assert!(svg.contains("message 4, waited 28.0 ms"), "{svg}");
    }

    #[test]
    fn summary_counts_waiting_messages() {
        let summary = Trace { ..trace() }.summary();
        assert!(
            summary.contains("7 messages that have arrived wait for it, for 28.0 ms at most"),
            "{summary}"
        );
    }
}
