//! The figures by experiment, and the sequence diagrams.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::choices;
use crate::figures::Figure;
use crate::plot::escape;
use crate::report::Report;

/// Returns the main figure of a study: the first one that is not a distribution.
fn headline(report: &Report) -> Option<&Figure> {
    report.figures.iter().find(|figure| !figure.is_ccdf && !report.claims.question.is_empty())
}

/// Returns the main figure for the summary.
pub fn main_figure(report: &Report) -> String {
    headline(report).map(figure_html).unwrap_or_default()
}

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    if report.figures.is_empty() {
        return String::new();
    }
    let headline = headline(report).map(|figure| &figure.id);
    let axes = if report.surveys.is_empty() {
        "Where the paper shows a figure, the axes are the paper's. "
    } else {
        "All figures of one metric share their vertical axis. "
    };
    let theory = theory(report);
    let dashed = if theory.is_empty() { theory } else { format!("Dashed: {theory}. ") };
    let mut text = format!(
        "<p class=\"soft\">{axes}{dashed}Bars are 95 % confidence intervals, which are asymmetric if the repetitions are skewed. A line has a gap where a point has no value; overlapping curves are dashed alternately. Tooltips and tables show the values.</p>"
    );
    for (name, title) in experiments(report) {
        let of = |figure: &&Figure| figure.experiment == name && Some(&figure.id) != headline;
        let means: Vec<&Figure> = report.figures.iter().filter(of).filter(|f| !f.is_ccdf).collect();
        let ccdfs: Vec<&Figure> = report.figures.iter().filter(of).filter(|f| f.is_ccdf).collect();
        let _ = write!(text, "<h3 id=\"{name}\">{}</h3>", escape(title));
        for of_metric in means.chunk_by(|a, b| a.metric == b.metric && !b.choice_label.is_empty()) {
            text.push_str(&figures_html(of_metric));
        }
        text.push_str(&distributions(&ccdfs, means.is_empty() || ccdfs.len() == 1));
    }
    text
}

/// Returns the experiments with their titles, in the order of the figures.
fn experiments(report: &Report) -> Vec<(&str, &str)> {
    let mut ordered: Vec<(&str, &str)> = Vec::new();
    for Figure { experiment, .. } in &report.figures {
        let known = report.provenance.experiments.iter().find(|(name, ..)| name == experiment);
        ordered.extend(known.map(|(name, title, ..)| (name.as_str(), title.as_str())));
    }
    let mut seen = BTreeSet::new();
    ordered.retain(|(name, _)| seen.insert(*name));
    ordered
}

/// Returns the meaning of the dashed lines, for each kind of figure.
fn theory(report: &Report) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in report.figures.iter().filter_map(Figure::theory) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.join("; ")
}

/// Returns the distributions in a part of the page that is collapsed, unless `open`, because there may be many.
fn distributions(figures: &[&Figure], open: bool) -> String {
    let (Some(first), Some(last)) = (figures.first(), figures.last()) else { return String::new() };
    let numbers = match figures.len() {
        1 => first.name.clone(),
        _ => format!("Figures {} to {}", number_of(first), number_of(last)),
    };
    let body = figures_html(figures);
    let open = if open { " open" } else { "" };
    format!(
        "<details class=\"group\"{open}><summary>{numbers}: distributions (CCDF)</summary>{body}</details>"
    )
}

fn number_of(figure: &Figure) -> &str {
    figure.name.trim_start_matches("Figure ")
}

/// Returns figures below each other, or one figure with a choice of the others.
fn figures_html(figures: &[&Figure]) -> String {
    if figures.iter().any(|figure| figure.choice_label.is_empty()) {
        return figures.iter().map(|figure| figure_html(figure)).collect();
    }
    choices(
        &figures.iter().map(|figure| (figure.choice_label.clone(), figure_html(figure))).collect::<Vec<_>>(),
    )
}

fn figure_html(figure: &Figure) -> String {
    let Figure { id, name, caption, basis, note, .. } = figure;
    let svg = figure.html();
    let note = note.as_ref().map(|note| format!(" {}", escape(note))).unwrap_or_default();
    let table = figure.html_table();
    let numbers = if table.is_empty() {
        String::new()
    } else {
        format!("<details><summary>numbers</summary>{table}</details>")
    };
    format!(
        "<figure id=\"{id}\">{svg}<figcaption><b>{name}</b> {}.{note} <span class=\"soft\">{basis} · <a href=\"figures/{id}.svg\">SVG</a> · <a href=\"figures/{id}.csv\">CSV</a> · <a href=\"figures/{id}.py\">Python</a></span></figcaption>{numbers}</figure>",
        escape(caption)
    )
}

/// Returns the diagrams of runs with one lost message as HTML; empty if the report has none.
pub fn diagrams(report: &Report) -> String {
    if report.diagrams.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<p>A client sends a message of 100 octets every 4 ms over a path with a one-way delay of 10 ms, which loses one packet. Time increases downwards; at a green dot the server's application receives a message. Yellow bars show messages that have arrived and wait for the lost one (head-of-line blocking).</p>",
    );
    for diagram in &report.diagrams {
        let (id, svg) = (diagram.id, diagram.svg.inline());
        let _ = write!(
            text,
            "<h3>{}</h3><figure id=\"{id}\">{svg}<figcaption>{} <span class=\"soft\"><a href=\"figures/{id}.svg\">SVG</a></span></figcaption></figure>",
            escape(diagram.heading),
            escape(&diagram.summary)
        );
    }
    text
}
