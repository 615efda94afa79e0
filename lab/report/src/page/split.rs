//! The components of a message's delay beyond propagation, as bars. All lengths are in px.

use hol_measure::{DelayComponent, MeanDelayBreakdown};

use super::selected_points::{selected_points, side_by_side};
use crate::data::Cell;
use crate::plot::{Anchor, Svg, component_key_height, draw_component_key, escape};
use crate::report::Report;

/// The height of a bar, in px.
const BAR_HEIGHT: f64 = 14.0;
/// The height of a bar with the gap below it, in px.
const LINE_HEIGHT: f64 = 20.0;
/// The least margin for the names of transports, in px.
const LEFT_MARGIN: f64 = 110.0;
/// The average width of a letter, in px.
const LETTER_WIDTH: f64 = 6.8;
/// The width of a drawing, in px.
const WIDTH: f64 = 880.0;
/// The width right of the longest bar, for its time, in px.
const TIME_WIDTH: f64 = 90.0;

/// Returns the description of a delay component for the legend, where the propagation delay is subtracted.
const fn meaning(component: DelayComponent) -> &'static str {
    match component {
        DelayComponent::Network => "network delay beyond propagation",
        other => meaning_with_propagation(other),
    }
}

/// Returns the description of a delay component for the legend, where propagation is a part of the network delay.
const fn meaning_with_propagation(component: DelayComponent) -> &'static str {
    match component {
        DelayComponent::Slip => "behind schedule, or at the server",
        DelayComponent::Sender => "waiting at the sender",
        DelayComponent::Recovery => "loss recovery",
        DelayComponent::Network => "network delay",
        DelayComponent::HeadOfLine => "head-of-line wait",
    }
}

/// Returns this section of the page as HTML; empty if it has no content.
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
        "<p>The components add up exactly to the mean delay of the messages that arrived.</p>{}",
        side_by_side(report, &figures)
    )
}

fn figure(index: usize, conditions: &str, cells: &[&Cell]) -> Option<String> {
    if cells.is_empty() {
        return None;
    }
    let bars = Bars::of(cells);
    let at = if conditions.is_empty() { String::new() } else { format!(", {conditions}") };
    let without = if bars.propagation.is_some() { " without propagation" } else { "" };
    let title = format!("Components of the mean delay{without}, all directions together{at}");
    let (svg, table) = (bars.draw(&format!("split-{index}"), &title).inline(), bars.table());
    Some(format!(
        "<figure id=\"split-{index}\">{svg}<figcaption>{}</figcaption><details><summary>numbers</summary><div class=\"scroll\">{table}</div></details></figure>",
        escape(&title)
    ))
}

/// The bars of a figure.
struct Bars {
    /// The names of the transports.
    names: Vec<String>,
    /// The components of each delay in ms, in the order of [`DelayComponent::ALL`], without `propagation`.
    components: Vec<[f64; 5]>,
    /// The propagation delay of each point in ms; `None` if one of them has none, because its path changes.
    propagation: Option<Vec<f64>>,
    /// The function that returns the description of a component.
    meaning: fn(DelayComponent) -> &'static str,
}

impl Bars {
    fn of(cells: &[&Cell]) -> Self {
        let propagation: Option<Vec<f64>> = cells.iter().map(|cell| cell.conditions.propagation_ms).collect();
        let subtracted = propagation.clone().unwrap_or_else(|| vec![0.0; cells.len()]);
        let components = cells.iter().zip(subtracted).map(|(cell, ms)| components(cell, ms)).collect();
        let meaning = if propagation.is_some() { meaning } else { meaning_with_propagation };
        Self { names: cells.iter().map(|cell| name(cell)).collect(), components, propagation, meaning }
    }

    fn draw(&self, id: &str, title: &str) -> Svg {
        let top = component_key_height(WIDTH, self.meaning) + 14.0;
        let letters = self.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        let left = (LETTER_WIDTH * letters as f64 + 20.0).max(LEFT_MARGIN);
        let span = WIDTH - left - TIME_WIDTH;
        let mut svg = Svg::new(id, WIDTH, top + LINE_HEIGHT * self.names.len() as f64 + 8.0, title);
        let total = |bar: &[f64; 5]| bar.iter().sum::<f64>();
        let longest = self.components.iter().map(total).fold(0.1, f64::max);
        draw_component_key(&mut svg, WIDTH, self.meaning);
        for (index, (name, bar)) in self.names.iter().zip(&self.components).enumerate() {
            let y = top + LINE_HEIGHT * index as f64;
            svg.text("tick", (left - 10.0, y + BAR_HEIGHT - 3.0), Anchor::End, name);
            let mut x = left;
            for (ms, component) in bar.iter().zip(DelayComponent::ALL) {
                let width = span * ms / longest;
                svg.group("", &format!("{name}: {} {ms:.2} ms", (self.meaning)(component)), |svg| {
                    svg.rect(&format!("split-{}", component.name()), (x, y), width, BAR_HEIGHT);
                });
                x += width;
            }
            let sign = if self.propagation.is_some() { "+" } else { "" };
            let note = format!("{sign}{:.2} ms", total(bar));
            svg.text("note", (x + 6.0, y + BAR_HEIGHT - 3.0), Anchor::Start, &note);
        }
        svg
    }

    fn table(&self) -> String {
        let head: String =
            DelayComponent::ALL.map(|component| format!("<th>{}</th>", (self.meaning)(component))).concat();
        let propagation = self.propagation.as_ref().map_or("", |_| "<th>propagation</th>");
        let rows = self.names.iter().zip(&self.components).enumerate().map(|(index, (name, bar))| {
            let propagation = self.propagation.iter().map(|all| format!("<td>{:.3}</td>", all[index]));
            let components = bar.iter().map(|ms| format!("<td>{ms:.3}</td>"));
            let cells: String = propagation.chain(components).collect();
            format!("<tr><td>{}</td>{cells}</tr>", escape(name))
        });
        format!("<table><tr><th>ms</th>{propagation}{head}</tr>{}</table>", rows.collect::<String>())
    }
}

/// Returns the delay components of a point less its propagation delay, in ms, in the order of [`DelayComponent::ALL`].
fn components(cell: &Cell, propagation: f64) -> [f64; 5] {
    let MeanDelayBreakdown { slip, service, sender, recovery, network, head_of_line } =
        cell.delay_breakdown.unwrap_or_default();
    [slip + service, sender, recovery, (network - propagation).max(0.0), head_of_line]
}

/// Returns the name of a point's transport, and how many of its messages arrived unless all did.
fn name(cell: &Cell) -> String {
    match (cell.latency.completed(), cell.offered()) {
        (arrived, offered) if arrived < offered => {
            format!("{} ({arrived} of {offered} arrived)", cell.transport)
        }
        _ => cell.transport.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    /// Returns a cell whose messages spend 25 ms in the network and 3 ms in recovery.
    fn measured(propagation: Option<f64>) -> Cell {
        let mut cell = cell("TCP", 1.0, 100.0, &[28.0]);
        cell.delay_breakdown =
            Some(MeanDelayBreakdown { network: 25.0, recovery: 3.0, ..MeanDelayBreakdown::default() });
        cell.conditions.propagation_ms = propagation;
        cell
    }

    #[test]
    fn components_and_propagation_add_up_to_the_mean() {
        for propagation in [Some(20.0), None] {
            let bars = Bars::of(&[&measured(propagation)]);
            let subtracted: f64 = bars.propagation.iter().flatten().sum();
            assert_eq!(bars.components[0].iter().sum::<f64>() + subtracted, 28.0, "{propagation:?}");
            assert_eq!(bars.table().contains("beyond propagation"), propagation.is_some());
        }
    }

    #[test]
    fn nothing_is_subtracted_if_the_path_of_one_transport_changes() {
        let bars = Bars::of(&[&measured(Some(20.0)), &measured(None)]);
        assert_eq!(bars.components, [[0.0, 0.0, 3.0, 25.0, 0.0]; 2]);
    }
}
