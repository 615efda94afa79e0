//! Behaviours that the paper does not state: which candidate fits which figure.

use std::fmt::Write;

use crate::data::Cell;
use crate::figures::{Fit, StackView};
use crate::plot::{escape, number};
use crate::report::Report;

pub fn html(report: &Report) -> String {
    let layout = &report.layout;
    if layout.variants.len() < 2
        || !layout.fits.iter().any(|fit| !cells(report, &layout.variants[0], fit).is_empty())
    {
        return String::new();
    }
    let head: String = layout
        .fits
        .iter()
        .map(|Fit { figure, axis: [low, high], .. }| {
            format!("<th>Figure {figure}<br><small>{} to {} ms</small></th>", number(*low), number(*high))
        })
        .collect();
    let mut rows = String::new();
    let mut tallies = Vec::new();
    for variant in &layout.variants {
        let (mut inside_all, mut all) = (0, 0);
        let _ = write!(rows, "<tr><td class=\"text\">{}</td>", escape(&variant.title));
        for fit in &layout.fits {
            let cells = cells(report, variant, fit);
            let (inside, cell) = held_against(&cells, fit.axis);
            inside_all += inside;
            all += cells.len();
            rows.push_str(&cell);
        }
        rows.push_str("</tr>");
        tallies.push((variant, inside_all, all));
    }
    format!(
        "<p>{} {}</p>
<div class=\"scroll\"><table><tr><th></th>{head}</tr>{rows}</table></div>
<p class=\"soft\">Means inside the axis of the figure, and the largest of them all.</p>",
        escape(&layout.variants_about),
        verdict(&tallies)
    )
}

/// Which variant fits best, and whether it fits alone.
fn verdict(tallies: &[(&StackView, usize, usize)]) -> String {
    let fitting: Vec<&str> = tallies
        .iter()
        .filter(|(_, inside, all)| inside == all)
        .map(|(variant, ..)| variant.title.as_str())
        .collect();
    let best = tallies.iter().max_by_key(|(_, inside, _)| inside);
    match (fitting.as_slice(), best) {
        ([only], _) => format!("Every mean fits with one rule only: <b>{}</b>.", escape(only)),
        ([], Some((best, inside, all))) => format!(
            "No rule fits every mean; the best, with {inside} of {all}: <b>{}</b>.",
            escape(&best.title)
        ),
        (several, _) => format!("Several rules fit every mean: <b>{}</b>.", escape(&several.join("; "))),
    }
}

fn cells<'a>(report: &'a Report, variant: &StackView, fit: &Fit) -> Vec<&'a Cell> {
    let takes = |cell: &&Cell| cell.transport.ends_with(&variant.suffix) && fit.at.takes(cell);
    report.data.cells.iter().filter(takes).collect()
}

fn held_against(cells: &[&Cell], [low, high]: [f64; 2]) -> (usize, String) {
    let means: Vec<f64> = cells.iter().filter_map(|cell| Some(cell.mean()?.mean)).collect();
    let inside = means.iter().filter(|mean| (low * 0.99..=high * 1.01).contains(*mean)).count();
    let class = if inside == cells.len() { "yes" } else { "no" };
    let largest = cells.iter().filter_map(|cell| cell.mean()).max_by(|a, b| a.mean.total_cmp(&b.mean));
    let largest = largest.map_or("–".to_owned(), |mean| format!("{mean} ms"));
    let text = format!(
        "<td><span class=\"{class}\">{inside} of {}</span><br><small>{largest}</small></td>",
        cells.len()
    );
    (inside, text)
}
