//! The section with every claim and its verdict; the numbers behind a verdict can be expanded.

use std::fmt::Write;

use super::worlds;
use crate::claims::{ClaimKind, Finding, JudgedClaim};
use crate::plot::escape;
use crate::report::Report;

/// The largest number of lines that a claim shows for each stack; the CSV files have all.
const MAX_LINES: usize = 24;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    if report.judged_claims.is_empty() {
        return String::new();
    }
    let legend = "<p class=\"soft\">A claim is <b>reproduced</b> if it holds on today's stack; <b>reproduced only with the settings of the paper's time</b> if it is refuted on today's stack and holds on a stack of the paper's time; <b>holds with the settings of the paper's time, undecided today</b> if it holds on a stack of the paper's time and today's stack does not decide it; <b>not reproduced today</b> if it is refuted on today's stack and the stack of the paper's time is undecided or not available in this world; <b>not decided</b> if neither the measurement nor the paper's text decides it in this world. Expand a claim to see its numbers and the result that would refute it.</p>";
    ClaimKind::ALL.into_iter().fold(legend.to_owned(), |text, kind| text + &of_kind(report, kind))
}

/// Returns the claims of one kind with their heading.
fn of_kind(report: &Report, kind: ClaimKind) -> String {
    let claims = (0..report.judged_claims.len()).filter(|at| report.judged_claims[*at].claim.kind == kind);
    let claims: Vec<String> = claims.map(|at| claim_html(report, at)).collect();
    if claims.is_empty() {
        return String::new();
    }
    let (heading, about) = (kind.heading(), kind.about());
    format!("<h3>{heading}</h3><p class=\"soft\">{about}</p>\n{}", claims.concat())
}

fn claim_html(report: &Report, at: usize) -> String {
    let claim = &report.judged_claims[at].claim;
    let mut body = format!("<p class=\"soft\">Refuted if {}.</p>", escape(&claim.refuted_by));
    if let Some(settings) = report.judged_claims[at].settings() {
        let _ = write!(body, "<p><b>{}.</b></p>", escape(&capitalized(&settings)));
    }
    body += &worlds::columns(report, at, |judged: &JudgedClaim| {
        judged.findings.iter().map(|(stack, finding)| stack_html(stack, finding)).collect()
    });
    if let Some(note) = &claim.note {
        let _ = write!(body, "<p class=\"soft\">{}</p>", escape(note));
    }
    let reading = claim.reading.as_ref().map(|reading| format!(" <small>{}</small>", escape(reading)));
    format!(
        "<details class=\"claim\" id=\"{}\"><summary>{}<span class=\"id\">{}</span><span>{}{}</span></summary><div class=\"body\">{body}</div></details>\n",
        claim.id,
        worlds::verdict_labels(report, at),
        claim.id,
        escape(&claim.quote),
        reading.unwrap_or_default()
    )
}

fn stack_html(stack: &str, finding: &Finding) -> String {
    let (class, word) = match finding.holds {
        Some(true) => ("yes", "holds"),
        Some(false) => ("no", "does not hold"),
        None => ("open-question", "not decided"),
    };
    let mut text = format!(
        "<p><span class=\"stack\">{}</span>: <span class=\"{class}\">{word}</span>. {}.</p>",
        escape(stack),
        escape(&capitalized(&finding.text))
    );
    for left in &finding.left_out {
        let _ = write!(text, "<p class=\"soft\">{}.</p>", escape(left));
    }
    if !finding.rows.is_empty() {
        let shown = finding.rows.iter().take(MAX_LINES).map(|row| format!("<li>{}</li>", escape(row)));
        let more = finding.rows.len().saturating_sub(MAX_LINES);
        let more = if more > 0 { format!("<li>… and {more} more</li>") } else { String::new() };
        let _ = write!(
            text,
            "<details><summary>{} lines</summary><ul>{}{more}</ul></details>",
            finding.rows.len(),
            shown.collect::<String>()
        );
    }
    text
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
