//! The question of the experiment, and the answer in a few generated sentences.

use std::fmt::Write;

use hol_measure::{Comparison, Verdict as ComparedPoint};

use crate::data::record_noun;

use super::{figures, survey, worlds};
use crate::claims::{ClaimKind, JudgedClaim, SummaryComparison, Verdict, View, compare};
use crate::figures::StackView;
use crate::plot::{escape, number};
use crate::report::Report;

/// The comparison of one answer on one stack, with both means in the unit of the metric.
struct StackComparison {
    comparison: Comparison,
    mean: f64,
    other_value: f64,
}

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let mut text = worlds::summary(report);
    if !report.provenance.complete {
        text.push_str("<p class=\"warning\">Some runs are missing, because the sweep was interrupted or they failed. This report uses the finished runs; run the same command again for the others.</p>");
    }
    text.push_str(&quick_run_warning(report));
    if !report.absent_stacks.is_empty() {
        let titles: Vec<String> = report.absent_stacks.iter().map(|stack| escape(&stack.title)).collect();
        let _ = write!(
            text,
            "<p class=\"warning\">Not measured, because only the model world has this stack: {}. Figures show the other stacks; claims that need this one say so.</p>",
            titles.join(", ")
        );
    }
    text.push_str(&survey::headlines(report));
    if !report.claims.question.is_empty() {
        let _ = write!(text, "<p class=\"question\">{}</p>", escape(&report.claims.question));
        let _ = write!(text, "<p class=\"lead\">{}</p>", answer_sentences(report));
        text.push_str(&answers(report));
    }
    if !report.judged_claims.is_empty() {
        text.push_str(&verdicts(report));
    }
    text.push_str(&figures::main_figure(report));
    let provenance = &report.provenance;
    let seeds: Vec<String> = provenance.seeds.iter().map(u64::to_string).collect();
    let _ = write!(
        text,
        "<p class=\"soft\">{} {} in {} points, {} world, headofline {}, seed {}. Confidence intervals are 95 % over the repetitions; {}.</p>",
        number(provenance.transactions as f64),
        record_noun(report.data.cells.iter()),
        report.data.cells.len(),
        escape(&provenance.world),
        escape(&provenance.version),
        seeds.join(", "),
        if provenance.repeatable {
            "in each repetition the random losses are the same for all transports"
        } else {
            "the transports ran one after another in real time, so their losses differ"
        },
    );
    text
}

/// Returns the caveat of a quick run, for the top of the page; empty for a whole study.
fn quick_run_warning(report: &Report) -> String {
    if report.planned_share > 0.99 {
        return String::new();
    }
    let part = match (1.0 / report.planned_share).round() {
        20.0 => "a twentieth".to_owned(),
        parts => format!("1/{parts}"),
    };
    let is_open = |judged: &&JudgedClaim| judged.findings.iter().any(|(_, finding)| finding.holds.is_none());
    let link = |judged: &JudgedClaim| format!("<a href=\"#{0}\">{0}</a>", escape(&judged.claim.id));
    let open: Vec<String> = report.judged_claims.iter().filter(is_open).map(link).collect();
    let open = match open.as_slice() {
        [] => "no claim is undecided in this run".to_owned(),
        open => format!("undecided in this run: {}", open.join(", ")),
    };
    format!(
        "<p class=\"warning\">A quick run with {part} of the study's messages. Rare events are missing and confidence intervals are wide, so verdicts may differ in the whole study; {open}.</p>"
    )
}

/// Returns the answer in three or four sentences.
fn answer_sentences(report: &Report) -> String {
    let mut sentences: Vec<String> = describe_dependent_findings(report).into_iter().collect();
    sentences.extend(report.study_figures.views.iter().filter_map(|stack| tally(report, stack)));
    if report.claims_of_kind(ClaimKind::Finding).next().is_some() {
        sentences.push(count_findings(report));
    }
    sentences.join(" ")
}

/// Describes the findings that depend on a setting which the paper does not state, and the setting.
fn describe_dependent_findings(report: &Report) -> Option<String> {
    let depends = |judged: &JudgedClaim| {
        let settings = judged.settings()?;
        Some(format!("<a href=\"#{0}\">{0}</a> {1}", escape(&judged.claim.id), escape(&settings)))
    };
    let depends: Vec<String> = report.claims_of_kind(ClaimKind::Finding).filter_map(depends).collect();
    let subject = counted(depends.len(), "finding <b>depends", "findings <b>depend");
    let what = "on a setting that the paper does not state</b>";
    (!depends.is_empty()).then(|| format!("{subject} {what}: {}.", depends.join(". ")))
}

/// Returns how many of the paper's findings were reproduced.
fn count_findings(report: &Report) -> String {
    let total = report.claims_of_kind(ClaimKind::Finding).count();
    let of =
        |wanted| report.claims_of_kind(ClaimKind::Finding).filter(|judged| judged.verdict == wanted).count();
    let period = match of(Verdict::PeriodOnly) + of(Verdict::OpenToday) {
        _ if report.study_figures.views.len() < 2 || !report.absent_stacks.is_empty() => String::new(),
        period => format!(" and {period} more with the stack of the paper's time"),
    };
    let others = report.judged_claims.len() - total;
    let apart = if others > 0 {
        let subject = counted(others, "further claim is", "further claims are");
        format!(" {subject} <a href=\"#claims\">not counted as findings</a>.")
    } else {
        String::new()
    };
    format!(
        "Of the paper's {}, {} today{period}; {} not, and {} undecided.{apart}",
        counted(total, "finding", "findings"),
        counted(of(Verdict::Reproduced), "holds", "hold"),
        counted(of(Verdict::NotToday) + of(Verdict::NotReproduced), "does", "do"),
        counted(of(Verdict::NotDecidable), "is", "are")
    )
}

/// Returns a number with the word that follows it in singular or plural.
fn counted(count: usize, singular: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { singular } else { plural })
}

/// Counts the comparisons of the table of answers on one stack by their results; `None` if none is possible.
fn tally(report: &Report, stack: &StackView) -> Option<String> {
    let verdicts: Vec<ComparedPoint> = report
        .claims
        .answers
        .iter()
        .filter_map(|answer| Some(compare_on(report, stack, answer)?.comparison.verdict))
        .collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let (faster, slower) = (count(ComparedPoint::Faster), count(ComparedPoint::Slower));
    let even = verdicts.len() - faster - slower;
    let all = report.claims.answers.len();
    let missing = match all - verdicts.len() {
        0 => String::new(),
        n => format!("; in {n} a transport did not carry the load or has no steady state"),
    };
    (!verdicts.is_empty()).then(|| {
        format!(
            "On <b>{}</b> the answer is yes in {faster} of the {all} comparisons below and no in {slower}; {even} show no significant difference{missing}.",
            escape(&stack.title)
        )
    })
}

fn compare_on(report: &Report, stack: &StackView, answer: &SummaryComparison) -> Option<StackComparison> {
    let view = View { data: &report.data.with_all_options(), stack };
    let cell = *view.cells(&answer.transport, &answer.at).first()?;
    let other = view.with_same_conditions(cell, &answer.reference)?;
    let SummaryComparison { metric, margin, .. } = *answer;
    // Better is lower for a time and higher for a throughput.
    let (first, second) = if metric.gain(1.0) < 0.0 { (cell, other) } else { (other, cell) };
    let comparison = compare(metric, first, second, margin)?;
    Some(StackComparison {
        comparison,
        mean: cell.mean_of(metric)?.mean,
        other_value: other.mean_of(metric)?.mean,
    })
}

/// Returns the table of answers: a row for each condition, a column for each stack.
fn answers(report: &Report) -> String {
    if report.claims.answers.is_empty() {
        return String::new();
    }
    let stacks = &report.study_figures.views;
    let head: String = stacks.iter().map(|stack| format!("<th>{}</th>", escape(&stack.title))).collect();
    let rows = report.claims.answers.iter().map(|answer| {
        let cells: String =
            stacks.iter().map(|stack| format!("<td>{}</td>", sentence(report, stack, answer))).collect();
        format!("<tr><td>{}</td>{cells}</tr>", escape(&answer.condition))
    });
    format!("<table class=\"answers\"><tr><th></th>{head}</tr>{}</table>", rows.collect::<String>())
}

fn sentence(report: &Report, stack: &StackView, answer: &SummaryComparison) -> String {
    let Some(StackComparison { comparison, mean, other_value: other }) = compare_on(report, stack, answer)
    else {
        return describe_missing(report, stack, answer);
    };
    let unit = answer.metric.info().unit;
    let mut by = comparison.difference;
    let slower = by.mean > 0.0;
    by.mean = by.mean.abs();
    let verdict = match comparison.verdict {
        ComparedPoint::NoDifference => "<span class=\"even\">as fast as</span>".to_owned(),
        ComparedPoint::Undecided => "<span class=\"even\">not significantly different from</span>".to_owned(),
        _ if slower => format!("<span class=\"slower\">{by} {unit} slower</span> than"),
        _ => format!("<span class=\"faster\">{by} {unit} faster</span> than"),
    };
    let SummaryComparison { transport, reference, .. } = answer;
    format!("{transport} is {verdict} {reference}<br><small>{mean:.2} and {other:.2} {unit}</small>")
}

/// Returns why two transports cannot be compared.
fn describe_missing(report: &Report, stack: &StackView, answer: &SummaryComparison) -> String {
    let view = View { data: &report.data, stack };
    let stopped = [&answer.transport, &answer.reference].into_iter().find_map(|transport| {
        let cell = *view.cells(transport, &answer.at).first()?;
        let why = cell.why_no_mean()?;
        Some(format!("{transport} has no mean<br><small>{}</small>", escape(&why)))
    });
    format!("<span class=\"soft\">{}</span>", stopped.unwrap_or_else(|| "not measured".to_owned()))
}

/// Returns the verdicts on the findings as a bar whose parts are proportional to their numbers.
fn verdicts(report: &Report) -> String {
    let parts =
        report.verdict_counts().into_iter().filter(|(_, count)| *count > 0).map(|(verdict, count)| {
            let (class, words) = (verdict.class(), verdict.text());
            format!("<a class=\"{class}\" style=\"flex:{count}\" href=\"#claims\"><b>{count}</b>{words}</a>")
        });
    format!("<div class=\"verdicts\">{}</div>", parts.collect::<String>())
}
