//! Where a transaction's time goes beyond the round trip: bars by cause.

use hol_measure::SplitMean;

use super::choices;
use crate::data::{Cell, Filter};
use crate::plot::{Anchor, Svg, escape, number};
use crate::report::Report;

/// A bar and the room to the next.
const BAR: f64 = 14.0;
const LINE: f64 = 20.0;
const LEFT: f64 = 150.0;
const WIDTH: f64 = 880.0;
/// The points of more conditions than this are left to the tables.
const MOST: usize = 60;
/// The longest bar.
const SPAN: f64 = 600.0;

/// The causes with their colours, in the order of a message's life.
const CAUSES: [(&str, &str); 5] = [
    ("slip", "behind schedule"),
    ("sender", "waiting at the sender"),
    ("recovery", "loss recovery"),
    ("network", "network beyond the round trip"),
    ("head-of-line", "head-of-line wait"),
];

pub fn html(report: &Report) -> String {
    let mut text = String::new();
    let mut of_surveys = Vec::new();
    let conditions = report.surveys.iter().flat_map(|survey| &survey.conditions).take(MOST);
    let splits = report.layout.splits.iter().map(|filter| (where_(filter), filter));
    let all = splits.chain(conditions.map(|(place, filter)| (place.clone(), filter)));
    for (index, (place, filter)) in all.enumerate() {
        let cells: Vec<&Cell> =
            report.data.cells.iter().filter(|cell| filter.takes(cell) && cell.split.is_some()).collect();
        if cells.is_empty() {
            continue;
        }
        let at = if place.is_empty() { String::new() } else { format!(", {place}") };
        let title = format!("Mean of both directions together{at}");
        let svg = draw(&format!("split-{index}"), &title, &cells).inline();
        let table = table(&cells);
        let figure = format!(
            "<figure id=\"split-{index}\">{svg}<figcaption>{}</figcaption><details><summary>the numbers</summary><div class=\"scroll\">{table}</div></details></figure>",
            escape(&title)
        );
        if report.surveys.is_empty() {
            text += &figure;
        } else {
            of_surveys.push((place, figure));
        }
    }
    text += &choices(&of_surveys);
    if text.is_empty() {
        return text;
    }
    format!(
        "<p>Every record carries its times, so each delay splits without remainder. The round trip itself is left out of the bars.</p>{text}"
    )
}

fn where_(filter: &Filter) -> String {
    let loss = filter.loss.map(|[loss, _]| format!("{} % loss", number(loss)));
    let rate = filter.rate.map(|[rate, _]| format!("{}/s", number(rate)));
    let parts = [Some(filter.experiments.join(", ")), loss, rate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The parts of a point in ms, in the order of [`CAUSES`].
fn parts(cell: &Cell) -> [f64; 5] {
    let SplitMean { slip, sender, recovery, network, head_of_line } = cell.split.unwrap_or_default();
    [slip, sender, recovery, (network - cell.conditions.rtt_ms()).max(0.0), head_of_line]
}

fn draw(id: &str, title: &str, cells: &[&Cell]) -> Svg {
    let top = 34.0;
    let mut svg = Svg::new(id, WIDTH, top + LINE * cells.len() as f64 + 8.0, title);
    let longest = cells.iter().map(|cell| parts(cell).iter().sum::<f64>()).fold(0.1, f64::max);
    let mut x = LEFT;
    for (cause, meaning) in CAUSES {
        svg.rect(&format!("split-{cause}"), (x, 6.0), 11.0, 11.0);
        svg.text("note", (x + 16.0, 15.5), Anchor::Start, meaning);
        x += 34.0 + 5.6 * meaning.len() as f64;
    }
    for (index, cell) in cells.iter().enumerate() {
        let y = top + LINE * index as f64;
        svg.text("tick", (LEFT - 10.0, y + BAR - 3.0), Anchor::End, &cell.transport);
        let mut x = LEFT;
        for (ms, (cause, meaning)) in parts(cell).into_iter().zip(CAUSES) {
            let width = SPAN * ms / longest;
            svg.group("", &format!("{}: {meaning} {ms:.2} ms", cell.transport), |svg| {
                svg.rect(&format!("split-{cause}"), (x, y), width, BAR);
            });
            x += width;
        }
        let total: f64 = parts(cell).iter().sum();
        svg.text("note", (x + 6.0, y + BAR - 3.0), Anchor::Start, &format!("+{total:.2} ms"));
    }
    svg
}

fn table(cells: &[&Cell]) -> String {
    let head: String = CAUSES.iter().map(|(_, meaning)| format!("<th>{meaning}</th>")).collect();
    let rows = cells.iter().map(|cell| {
        let parts: String = parts(cell).iter().map(|ms| format!("<td>{ms:.3}</td>")).collect();
        let rtt = cell.conditions.rtt_ms();
        format!("<tr><td>{}</td><td>{rtt:.0}</td>{parts}</tr>", escape(&cell.transport))
    });
    format!("<table><tr><th>ms</th><th>round trip</th>{head}</tr>{}</table>", rows.collect::<String>())
}
