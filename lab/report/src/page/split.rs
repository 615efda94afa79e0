//! The components of a transaction's delay beyond the round trip, as bars.

use hol_measure::{DelayComponent, MeanDelayBreakdown};

use super::selected_points::{selected_points, side_by_side};
use crate::data::Cell;
use crate::plot::{Anchor, Svg, component_key_height, draw_component_key, escape};
use crate::report::Report;

/// The height of a bar, in px.
const BAR_HEIGHT: f64 = 14.0;
/// The height of a bar with the gap below it.
const LINE_HEIGHT: f64 = 20.0;
/// The least margin for the names of transports.
const LEFT_MARGIN: f64 = 110.0;
/// The average width of a letter, in px.
const LETTER_WIDTH: f64 = 6.8;
/// The width, in px.
const WIDTH: f64 = 880.0;
/// The width right of the longest bar, for its time.
const TIME_WIDTH: f64 = 90.0;

/// Returns the description of a delay component for the legend.
const fn meaning(component: DelayComponent) -> &'static str {
    match component {
        DelayComponent::Slip => "behind schedule, or at the server",
        DelayComponent::Sender => "waiting at the sender",
        DelayComponent::Recovery => "loss recovery",
        DelayComponent::Network => "network delay above base RTT",
        DelayComponent::HeadOfLine => "head-of-line wait",
    }
}

/// Returns the section.
pub fn html(report: &Report) -> String {
    let drawn = selected_points(report, &report.study_figures.splits).into_iter().enumerate();
    let figures: Vec<(String, String)> = drawn
        .filter_map(|(index, (conditions, filter))| {
            let cells = report
                .data
                .cells
                .iter()
                .filter(|cell| filter.selects(cell) && cell.delay_breakdown.is_some());
            Some((conditions.clone(), figure(index, &conditions, &cells.collect::<Vec<_>>())?))
        })
        .collect();
    if figures.is_empty() {
        return String::new();
    }
    format!(
        "<p>The components add up exactly to the delay of a message. The bars do not include the round-trip time itself.</p>{}",
        side_by_side(report, &figures)
    )
}

fn figure(index: usize, conditions: &str, cells: &[&Cell]) -> Option<String> {
    if cells.is_empty() {
        return None;
    }
    let at = if conditions.is_empty() { String::new() } else { format!(", {conditions}") };
    let title = format!("Components of the mean delay, both directions together{at}");
    let (svg, table) = (draw(&format!("split-{index}"), &title, cells).inline(), table(cells));
    Some(format!(
        "<figure id=\"split-{index}\">{svg}<figcaption>{}</figcaption><details><summary>numbers</summary><div class=\"scroll\">{table}</div></details></figure>",
        escape(&title)
    ))
}

/// Returns the delay components of a point, in ms, in the order of [`DelayComponent::ALL`].
fn parts(cell: &Cell) -> [f64; 5] {
    let MeanDelayBreakdown { slip, service, sender, recovery, network, head_of_line } =
        cell.delay_breakdown.unwrap_or_default();
    [slip + service, sender, recovery, (network - cell.conditions.rtt_ms()).max(0.0), head_of_line]
}

fn draw(id: &str, title: &str, cells: &[&Cell]) -> Svg {
    let top = component_key_height(WIDTH, meaning) + 14.0;
    let letters = cells.iter().map(|cell| cell.transport.chars().count()).max().unwrap_or(0);
    let left = (LETTER_WIDTH * letters as f64 + 20.0).max(LEFT_MARGIN);
    let span = WIDTH - left - TIME_WIDTH;
    let mut svg = Svg::new(id, WIDTH, top + LINE_HEIGHT * cells.len() as f64 + 8.0, title);
    let longest = cells.iter().map(|cell| parts(cell).iter().sum::<f64>()).fold(0.1, f64::max);
    draw_component_key(&mut svg, WIDTH, meaning);
    for (index, cell) in cells.iter().enumerate() {
        let y = top + LINE_HEIGHT * index as f64;
        svg.text("tick", (left - 10.0, y + BAR_HEIGHT - 3.0), Anchor::End, &cell.transport);
        let mut x = left;
        for (ms, component) in parts(cell).into_iter().zip(DelayComponent::ALL) {
            let width = span * ms / longest;
            svg.group("", &format!("{}: {} {ms:.2} ms", cell.transport, meaning(component)), |svg| {
                svg.rect(&format!("split-{}", component.name()), (x, y), width, BAR_HEIGHT);
            });
            x += width;
        }
        let total: f64 = parts(cell).iter().sum();
        svg.text("note", (x + 6.0, y + BAR_HEIGHT - 3.0), Anchor::Start, &format!("+{total:.2} ms"));
    }
    svg
}

fn table(cells: &[&Cell]) -> String {
    let head: String =
        DelayComponent::ALL.map(|component| format!("<th>{}</th>", meaning(component))).concat();
    let rows = cells.iter().map(|cell| {
        let parts: String = parts(cell).iter().map(|ms| format!("<td>{ms:.3}</td>")).collect();
        let rtt = cell.conditions.rtt_ms();
        format!("<tr><td>{}</td><td>{rtt:.0}</td>{parts}</tr>", escape(&cell.transport))
    });
    format!("<table><tr><th>ms</th><th>round trip</th>{head}</tr>{}</table>", rows.collect::<String>())
}
