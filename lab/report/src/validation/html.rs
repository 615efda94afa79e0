//! `validation.html`: the summary, the figures, and every point, the worst first.

use std::fmt::Write;

use super::figures::distributions;
use super::{ComparedPoint, Tally, Validation, points};
use crate::page::{Section, document};
use crate::plot::escape;
use hol_lab::Metric;

/// The number of points shown with their distributions.
const WORST_POINTS_SHOWN: usize = 12;

/// The rules of agreement, by response time and by throughput.
const AGREEMENT_RULES: [&str; 2] = [
    "<p class=\"soft\">Each world is summarised by its median run, which rare collapses do not change.</p><ul class=\"soft\"><li>A point agrees if the model's median run is near that of Linux: within 0.5 ms or 3 % in the mean response time, and within 1 ms or 5 % in the 99th percentile. It also agrees if the model's median run is inside the 95 % confidence interval of Linux's median run and a rank test shows no difference (Mann–Whitney, 5 %).</li><li>In addition the shares of collapsed runs must not differ significantly (Fisher's exact test).</li><li>A point is imprecise if the longer side of the 95 % confidence interval of Linux's median run exceeds these limits, or if the interval of the model's median run would exceed them with as few runs as Linux has.</li></ul>",
    "<p class=\"soft\">Each world is summarised by its median run, which rare collapses do not change.</p><ul class=\"soft\"><li>A point agrees if the throughput of the model's median run is within 3 % of that of Linux, or within 10 % with background flows. It also agrees if the model's median run is inside the 95 % confidence interval of Linux's median run and a rank test shows no difference (Mann–Whitney, 5 %).</li><li>A point is imprecise if the longer side of the 95 % confidence interval of Linux's median run exceeds these limits, or if the interval of the model's median run would exceed them with as few runs as Linux has.</li></ul>",
];

impl Validation {
    /// Returns the page, a single file.
    pub fn html(&self) -> String {
        let sections = [
            ("summary", "Summary", summary(self)),
            ("figures", "Model and kernel", figures(self)),
            ("worst", "The worst points", worst_points(self)),
            ("points", "Every point", points::html(self)),
            ("provenance", "Provenance", provenance(self)),
        ];
        let sections: Vec<Section> =
            sections.into_iter().map(|(id, title, body)| Section { id, title, body }).collect();
        let links = sections.iter().map(|Section { id, title, .. }| format!("<a href=\"#{id}\">{title}</a>"));
        let navigation: String = links.collect();
        document(
            &self.title,
            "headofline validation: the model compared with the kernel",
            &navigation,
            &sections,
        )
    }
}

impl Validation {
    /// Returns the tally and the points, the worst first, as part of another page.
    pub(crate) fn fragment(&self) -> String {
        format!(
            "{}{}<div class=\"soft\">{}</div>{}",
            AGREEMENT_RULES[self.rule_index()],
            matrix(self),
            points::legend(self),
            points::table(self)
        )
    }

    /// Returns the index of the rule that applies.
    fn rule_index(&self) -> usize {
        usize::from(self.metric == Metric::Throughput)
    }
}

fn summary(validation: &Validation) -> String {
    let tally = validation.tally();
    let mut text = format!(
        "<p class=\"question\">Does the model agree with Linux?</p><p class=\"lead\"><b>{}.</b> {}.</p>",
        tally.describe_agreement(),
        tally.describe_certainty(),
    );
    let rank = validation.describe_rank();
    if !rank.is_empty() {
        let _ = write!(text, "<p>All points together: {rank}.</p>");
    }
    if validation.missing > 0 {
        let _ = write!(
            text,
            "<p class=\"warning\">{} points have no runs in both worlds yet; repeat the command to continue.</p>",
            validation.missing
        );
    }
    text += AGREEMENT_RULES[validation.rule_index()];
    text + &matrix(validation)
}

/// Returns how many points agree, by transport and experiment.
fn matrix(validation: &Validation) -> String {
    let experiments = validation.experiments();
    let mut labels: Vec<&str> = validation.points.iter().map(|c| c.point.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let tally = |label: Option<&str>, experiment: Option<&str>| -> Tally {
        let mine = |c: &&ComparedPoint| {
            label.is_none_or(|label| c.point.label == label)
                && experiment.is_none_or(|experiment| c.point.experiment == experiment)
        };
        validation.points.iter().filter(mine).collect()
    };
    let head: String = experiments.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let mut text = format!("<table><caption>Points that agree</caption><tr><th></th>{head}<th>all</th></tr>");
    for label in labels.iter().copied().map(Some).chain([None]) {
        let cells = experiments.iter().copied().map(Some).chain([None]);
        let cells: String = cells.map(|experiment| format_share(tally(label, experiment))).collect();
        let _ = write!(text, "<tr><td>{}</td>{cells}</tr>", escape(label.unwrap_or("all")));
    }
    text + "</table>"
}

fn format_share(tally: Tally) -> String {
    match tally {
        Tally { points: 0, .. } => "<td>–</td>".to_owned(),
        Tally { points, agree, .. } => {
            let class = if agree == points { "yes" } else { "no" };
            format!("<td class=\"{class}\">{agree} of {points}</td>")
        }
    }
}

fn figures(validation: &Validation) -> String {
    let mut text = String::from(
        "<p class=\"soft\">Mean response time of the median run. Lines: the model. Marks: Linux, with 95 % confidence intervals over the repetitions. A triangle ▲ at the upper edge is a value outside the axis.</p>",
    );
    for experiment in validation.experiments() {
        if let Some(svg) = validation.figure(experiment) {
            let _ = write!(
                text,
                "<figure>{}<figcaption><b>{}</b> <span class=\"soft\"><a href=\"figures/{}.svg\">SVG</a></span></figcaption></figure>",
                svg.inline(),
                escape(experiment),
                svg.id()
            );
        }
    }
    text
}

/// Returns the worst points with their distributions and the commands that show their packets.
fn worst_points(validation: &Validation) -> String {
    let mut text = String::new();
    for (index, compared) in validation.points.iter().take(WORST_POINTS_SHOWN).enumerate() {
        let [kernel, model] = compared.trace_commands();
        let _ = write!(
            text,
            "<details{}><summary>{} {}</summary><ul class=\"lines\">{}</ul><figure>{}</figure><pre>{}\n{}</pre></details>",
            if index < 3 { " open" } else { "" },
            points::verdict_label(compared),
            escape(&compared.point.to_string()),
            compared.describe_checks().iter().map(|line| format!("<li>{line}</li>")).collect::<String>(),
            distributions(&format!("worst-{index}"), compared).inline(),
            escape(&kernel),
            escape(&model)
        );
    }
    text
}

fn provenance(validation: &Validation) -> String {
    let total = |of: fn(&ComparedPoint) -> f64| validation.points.iter().map(of).sum::<f64>();
    let (kernel_s, model_s) = (total(|c| c.kernel.wall_s), total(|c| c.model.wall_s));
    let (kernel_messages, model_messages) =
        (total(|c| c.kernel.offered as f64), total(|c| c.model.offered as f64));
    format!(
        "<dl><dt>Linux</dt><dd>{}, {kernel_messages} transactions, {kernel_s:.0} s of wall-clock time ({:.0} µs each)</dd>\
         <dt>model</dt><dd>headofline {}, {model_messages} transactions, {model_s:.1} s ({:.2} µs each)</dd></dl>\
         <p class=\"soft\">Both are result directories next to this page: <code>kernel</code> and <code>model</code>.</p>",
        escape(&validation.kernel),
        kernel_s * 1e6 / kernel_messages.max(1.0),
        escape(&validation.model_version),
        model_s * 1e6 / model_messages.max(1.0),
    )
}

#[cfg(test)]
mod tests {
    use super::super::test_points::{compared, validation};

    #[test]
    fn page_is_self_contained_and_counts_agreeing_points() {
        let text = "transports = ['tcp']\nmessages = 2\nrepetitions = 2";
        let points = vec![compared(text, &[20, 20], &[30, 30]), compared(text, &[20, 20], &[20, 20])];
        let html = validation(points).html();
        assert!(
            html.contains("<h1>A &amp; B</h1>") && html.contains("1 of 2 points agree (50.0 %)"),
            "{html}"
        );
        for outside in ["http://", "https://", "src=", "@import", "<link"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert_eq!(html.matches("hol trace tcp").count(), 8, "two worlds, two points, twice");
    }
}
