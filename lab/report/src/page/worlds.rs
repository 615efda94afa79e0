//! Compares the kernel's results with the model's: where they disagree, for each claim and at each point
//! measured in both.

use std::fmt::Write;

use crate::claims::JudgedClaim;
use crate::plot::escape;
use crate::report::Report;
use crate::two_worlds::{Agreement, KernelResults};
use crate::validation::Validation;
use hol_lab::Metric;

/// Returns the summary: the claims on which the worlds disagree.
pub fn summary(report: &Report) -> String {
    let Some(kernel) = &report.kernel else { return String::new() };
    let mut text = String::new();
    if !report.judged_claims.is_empty() {
        let disputes = links(report, kernel, Agreement::is_dispute);
        let verdict = match disputes.len() {
            0 => "no claim holds in one world and is refuted in the other".to_owned(),
            count => {
                format!(
                    "the worlds disagree on {count} of {} claims: {}",
                    report.judged_claims.len(),
                    disputes.join(", ")
                )
            }
        };
        let _ = write!(text, "<p class=\"lead\"><b>Model and kernel, on today's stack: {verdict}.</b>");
        let others = [
            ("Decided in the kernel only", Agreement::OpenInModel),
            ("Decided in the model only", Agreement::OpenInKernel),
            ("Undecided in both", Agreement::Open),
        ];
        for (what, wanted) in others {
            let claims = links(report, kernel, |agreement| agreement == wanted);
            if !claims.is_empty() {
                let _ = write!(text, " {what}: {}.", claims.join(", "));
            }
        }
        text += "</p>";
    }
    let _ = write!(text, "<p>{}</p>", points(kernel));
    text
}

/// Returns links to the claims whose agreement is `wanted`; if the worlds disagree, each with the world in which the claim holds.
fn links(report: &Report, kernel: &KernelResults, wanted: impl Fn(Agreement) -> bool) -> Vec<String> {
    let claims =
        report.judged_claims.iter().zip(&kernel.agreements).filter(|(_, agreement)| wanted(**agreement));
    let link = |(judged, agreement): (&JudgedClaim, &Agreement)| {
        let which = match agreement {
            Agreement::ModelOnly => " (holds in the model only)",
            Agreement::KernelOnly => " (holds in the kernel only)",
            _ => "",
        };
        format!("<a href=\"#{0}\">{0}</a>{which}", escape(&judged.claim.id))
    };
    claims.map(link).collect()
}

/// Returns how many points were measured in both worlds, and at how many the worlds agree.
fn points(kernel: &KernelResults) -> String {
    let mut text = format!("{} points were measured in both worlds", kernel.shared_points);
    for validation in &kernel.validations {
        let tally = validation.tally();
        let _ = write!(
            text,
            "; at {} of {} the <a href=\"#worlds\">{}</a>{}",
            tally.agree,
            tally.points,
            quantity(validation),
            if tally.imprecise > 0 {
                format!(
                    " (at {} the uncertainty exceeds the tolerance, and {} of these agree)",
                    tally.imprecise, tally.imprecise_and_agree
                )
            } else {
                String::new()
            }
        );
    }
    if kernel.incomparable_points > 0 {
        let _ = write!(
            text,
            "; {} have runs of different lengths, which cannot be compared: run both worlds with <code>--quick</code> or both \
             without it",
            kernel.incomparable_points
        );
    }
    for ((count, _), world) in [(&kernel.only_model, "model"), (&kernel.only_kernel, "kernel")] {
        if *count > 0 {
            let _ = write!(text, "; {count} more were measured <a href=\"#worlds\">only in the {world}</a>");
        }
    }
    text + ". The answers and figures below are those of the model."
}

fn quantity(validation: &Validation) -> &'static str {
    match validation.metric {
        Metric::Throughput => "throughputs agree",
        _ => "response times agree",
    }
}

/// Returns the verdicts on a claim as labels, the model's first; with results of one world, only the verdict of that
/// world.
pub fn verdict_labels(report: &Report, at: usize) -> String {
    let chip = |judged: &JudgedClaim, world: &str| {
        let verdict = judged.verdict;
        let (class, title, short) = (verdict.class(), verdict.text(), verdict.short());
        format!("<span class=\"chip {class}\" title=\"{title}\">{world}{short}</span>")
    };
    match &report.kernel {
        None => chip(&report.judged_claims[at], ""),
        Some(kernel) => {
            let dispute =
                if kernel.agreements[at].is_dispute() { "<b class=\"no\">disagree</b>" } else { "" };
            let (model, other) =
                (chip(&report.judged_claims[at], "model: "), chip(&kernel.judged_claims[at], "kernel: "));
            format!("<span class=\"chips\">{model}{other}{dispute}</span>")
        }
    }
}

/// Returns the results of both worlds on a claim side by side; `format` formats the results of one world.
pub fn columns(report: &Report, at: usize, format: impl Fn(&JudgedClaim) -> String) -> String {
    let Some(kernel) = &report.kernel else { return format(&report.judged_claims[at]) };
    format!(
        "{}<div class=\"worlds\"><div><h4>model</h4>{}</div><div><h4>{}</h4>{}</div></div>",
        describe_dispute(kernel.agreements[at], kernel.agreements_on_shared[at]),
        format(&report.judged_claims[at]),
        escape(&kernel.name),
        format(&kernel.judged_claims[at])
    )
}

/// Returns a remark that the worlds disagree, and whether they also disagree on the points measured in both worlds.
fn describe_dispute(agreement: Agreement, on_shared: Agreement) -> String {
    let which = match agreement {
        Agreement::ModelOnly => "The claim holds in the model, and not in the kernel",
        Agreement::KernelOnly => "The claim holds in the kernel, and not in the model",
        _ => return String::new(),
    };
    let by_points = match on_shared {
        shared if shared == agreement => {
            "the worlds also disagree if only the points that were measured in both are counted"
        }
        Agreement::Same => {
            "the worlds agree if only the points that were measured in both are counted, so the other points cause the disagreement"
        }
        _ => "the points that were measured in both are too few to show whether the worlds agree",
    };
    format!("<p class=\"warning\">The worlds disagree. {which}; {by_points}.</p>")
}

/// Returns the points measured in both worlds, the worst first, and the points measured in only one world.
pub fn html(report: &Report) -> String {
    let Some(kernel) = &report.kernel else { return String::new() };
    let mut text: String = kernel.validations.iter().map(Validation::fragment).collect();
    for ((count, lines), world, other) in
        [(&kernel.only_model, "model", "kernel"), (&kernel.only_kernel, "kernel", "model")]
    {
        if *count == 0 {
            continue;
        }
        let lines: String = lines.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        let _ = write!(
            text,
            "<details><summary>{count} points that were measured only in the {world}, because the {other} does not support them or has not \
             run them yet</summary><ul class=\"lines\">{lines}</ul></details>"
        );
    }
    text
}
