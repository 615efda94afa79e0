//! Lists settings that the paper does not state. For each it shows whether it agrees with the paper's
//! conclusion (the first check), and whether it passes the further checks, too.

use std::fmt::Write;

use crate::claims::{Finding, View};
use crate::figures::StackView;
use crate::plot::escape;
use crate::report::Report;

/// A variant and the results of its checks.
type Row<'a> = (&'a StackView, Vec<Finding>);

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let (layout, trials) = (&report.study_figures, &report.claims.trials);
    let data = &*report.data.with_all_options();
    let tried = |variant| {
        let view = View { data, stack: variant };
        trials.iter().map(|trial| trial.check.evaluate(&view)).collect::<Vec<_>>()
    };
    let rows: Vec<Row<'_>> = layout.variants.iter().map(|variant| (variant, tried(variant))).collect();
    let measured = |(_, findings): &Row<'_>| findings.iter().any(|finding| *finding != Finding::no_points());
    if !rows.iter().any(measured) {
        return String::new();
    }
    let head = trials.iter().enumerate().map(|(index, trial)| {
        let role = if index == 0 { "the conclusion" } else { "further check" };
        format!("<th class=\"text\"><small>{role}</small><br>{}</th>", escape(&trial.description))
    });
    let body: String = rows.iter().map(row).collect();
    format!(
        "<p>{} {}</p>
<div class=\"scroll\"><table><tr><th></th>{}</tr>{body}</table></div>
<p class=\"soft\">\"Not refuted\" means that no point contradicts the claim, but some confidence intervals are too wide to confirm it.</p>",
        escape(&layout.variants_about),
        verdict(&rows),
        head.collect::<String>()
    )
}

fn row((variant, findings): &Row<'_>) -> String {
    let mut text = format!("<tr><td class=\"text\">{}</td>", escape(&variant.title));
    for finding in findings {
        let (class, word) = match finding.holds {
            Some(true) => ("yes", "holds"),
            Some(false) => ("no", "refuted"),
            None => ("open-question", "not refuted"),
        };
        let _ = write!(
            text,
            "<td class=\"text\"><span class=\"{class}\">{word}</span><br><small>{}</small></td>",
            escape(&finding.text)
        );
    }
    text + "</tr>"
}

/// Describes the settings with which the conclusion is not refuted, and those with which no check fails.
fn verdict(rows: &[Row<'_>]) -> String {
    let named = |admitted: &dyn Fn(&[Finding]) -> bool| {
        let titles =
            rows.iter().filter(|(_, findings)| admitted(findings)).map(|(variant, _)| variant.title.as_str());
        titles.collect::<Vec<_>>()
    };
    let is_not_refuted = |finding: &Finding| finding.holds != Some(false);
    let agreeing = named(&|findings| findings.first().is_some_and(is_not_refuted));
    let agreeing_with_all = named(&|findings| findings.iter().all(is_not_refuted));
    let format_titles = |titles: &[&str]| match titles {
        [] => "none".to_owned(),
        titles => format!("<b>{}</b>", escape(&titles.join("; "))),
    };
    format!(
        "The conclusion is not refuted with {} of {} settings: {}. Settings with which the further checks are not refuted either: {}.",
        agreeing.len(),
        rows.len(),
        format_titles(&agreeing),
        format_titles(&agreeing_with_all)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuted_trials_of_each_variant_are_listed() {
        let stack = |title: &str| StackView { title: title.into(), suffix: String::new() };
        let (fits, fails, open) = (Finding::new(true, ""), Finding::new(false, ""), Finding::unknown(""));
        let stacks = ["both", "fit only", "neither", "open"].map(stack);
        let findings = [[&fits, &fits], [&fits, &fails], [&fails, &fits], [&fits, &open]]
            .map(|row| row.map(Clone::clone).to_vec());
        let rows: Vec<Row<'_>> = stacks.iter().zip(findings).collect();
        assert_eq!(
            verdict(&rows),
            "The conclusion is not refuted with 3 of 4 settings: <b>both; fit only; open</b>. Settings with which the further checks are not refuted either: <b>both; open</b>."
        );
    }
}
