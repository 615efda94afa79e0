//! `report.html`: a single file that needs no network.

mod claims;
mod fidelity;
mod figures;
mod flows;
mod other_measurements;
mod over_time;
mod points;
mod provenance;
mod regions;
mod selected_points;
mod split;
mod summary;
mod survey;
mod tables;
mod theory;
mod variants;
mod waterfall;
mod worlds;

use std::fmt::Write;

use crate::plot::{escape, theme};
use crate::report::Report;

const STYLE: &str = include_str!("style.css");

/// The script of the page: it opens collapsed parts that are the target of a link or are printed, shows one of several
/// choices, and sorts and filters points. The page is usable without it.
const SCRIPT: &str = concat!(include_str!("open.js"), include_str!("choose.js"));

pub(crate) use survey::map_id;

/// A section of a report's page.
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) body: String,
}

/// Returns the page as HTML.
pub fn html(report: &Report) -> String {
    let sections: Vec<Section> = [
        ("summary", "Summary", summary::html(report)),
        ("map", "Which transport is best where", survey::maps(report)),
        ("claims", "Claims", claims::html(report)),
        ("worlds", "Both worlds", worlds::html(report)),
        ("figures", "Figures", figures::html(report)),
        ("over-time", "Over time", over_time::html(report)),
        ("regions", "Where the requirement is met", regions::html(report)),
        ("points", "All points", points::html(report)),
        ("beside", "Comparison with other tools", other_measurements::html(report)),
        ("flows", "Throughput", flows::html(report)),
        ("variants", "Recovery variants", variants::html(report)),
        ("theory", "Closed form", theory::html(report)),
        ("waterfall", "A page, file by file", waterfall::html(report)),
        ("split", "Components of the delay", split::html(report)),
        ("sensitivity", "Sensitivity", tables::html(report)),
        ("sequence", "One lost message", figures::diagrams(report)),
        ("fidelity", "Fidelity", fidelity::html(report)),
        ("provenance", "Provenance", provenance::html(report)),
    ]
    .into_iter()
    .filter(|(_, _, body)| !body.is_empty())
    .map(|(id, title, body)| Section { id, title, body })
    .collect();
    let of = report.kernel.as_ref().map_or(String::new(), |kernel| format!(": model and {}", kernel.name));
    document(&report.title, &format!("headofline report{of}"), &navigation(report, &sections), &sections)
}

/// Returns several drawings, of which a reader chooses one by its label; without scripts all drawings are visible.
fn choices(parts: &[(String, String)]) -> String {
    match parts {
        [] => String::new(),
        [(_, only)] => only.clone(),
        several => {
            let one = |(choice, html): &(String, String)| {
                format!("<div data-choice=\"{}\">{html}</div>", escape(choice))
            };
            format!("<div class=\"choices\">{}</div>", several.iter().map(one).collect::<String>())
        }
    }
}

/// Returns a whole page with its style; `eyebrow` is the line above the title.
pub(crate) fn document(title: &str, eyebrow: &str, navigation: &str, sections: &[Section]) -> String {
    let title = escape(title);
    let css = theme::CSS;
    let body: String = sections
        .iter()
        .map(|Section { id, title, body }| {
            format!("<section id=\"{id}\"><h2>{title}</h2>\n{body}</section>\n")
        })
        .collect();
    format!(
        "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">
<title>{title}</title><style>{css}{STYLE}</style></head>
<body><nav>{navigation}</nav><main><header><p class=\"eyebrow\">{eyebrow}</p><h1>{title}</h1></header>
{body}</main><script>{SCRIPT}</script></body></html>
"
    )
}

fn navigation(report: &Report, sections: &[Section]) -> String {
    let mut text = String::new();
    for Section { id, title, .. } in sections {
        let _ = write!(text, "<a href=\"#{id}\">{title}</a>");
        if *id == "figures" {
            // Distributions in a choice are not listed individually.
            let listed =
                report.figures.iter().filter(|figure| figure.choice_label.is_empty() || !figure.is_ccdf);
            let links = listed.map(|figure| {
                let number = figure.name.trim_start_matches("Figure ");
                format!("<a href=\"#{}\" title=\"{}\">{number}</a>", figure.id, escape(&figure.caption))
            });
            let _ = write!(text, "<div class=\"numbers-nav\">{}</div>", links.collect::<String>());
        }
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::claims::{StudyClaims, judge};
    use crate::figures::{StackView, StudyFigures};
    use crate::other_measurement::OtherMeasurement;
    use crate::report::Report;
    use crate::survey::Survey;
    use crate::testing::{cell, dataset, provenance};

    const CLAIMS: &str = r#"
        question = "Is SCTP < TCP?"
        [[answer]]
        when = "At 1 % loss"
        transport = "SCTP-8"
        than = "TCP"
        at = { loss = [1, 1] }
        [[claim]]
        id = "x-1"
        quote = "SCTP is faster"
        kind = "finding"
        refuted_by = "SCTP is not faster"
        [[claim.check]]
        kind = "faster"
        transports = ["SCTP-8"]
        than = "TCP"
        [[claim]]
        id = "x-2"
        quote = "two and two are five"
        kind = "arithmetic"
        refuted_by = "they are four"
        [[claim.check]]
        kind = "product"
        of = { "two" = 2, "and two" = 2 }
        is = 5
    "#;

    /// Returns the page of a report.
    pub(crate) fn report() -> Report {
        let data = dataset(vec![
            cell("TCP", 1.0, 100.0, &[23.0, 23.2, 23.1]),
            cell("TCP", 5.0, 100.0, &[33.0, 33.2, 33.1]),
            cell("SCTP-8", 1.0, 100.0, &[21.0, 21.1, 21.2]),
            cell("SCTP-8", 5.0, 100.0, &[25.0, 25.1, 25.2]),
        ]);
        let view = StackView { title: "today".into(), suffix: String::new() };
        let study_figures = StudyFigures { views: vec![view], ..StudyFigures::default() };
        let claims = toml::from_str::<StudyClaims>(CLAIMS).unwrap();
        let axes = ["1%", "5%"].map(|loss| vec![("network.loss".to_owned(), loss.to_owned())]);
        let survey = Survey::new("exp1", &axes.each_ref().map(Vec::as_slice), &data);
        Report {
            title: "A & B".into(),
            figures: survey.figures(&[], &data, 1),
            over_time: Vec::new(),
            regions: Vec::new(),
            surveys: vec![survey.results()],
            judged_claims: judge(&claims, &study_figures.views, &[], &data),
            kernel: None,
            diagrams: Vec::new(),
            other_measurements: vec![
                OtherMeasurement::read(
                    "a<b.json",
                    r#"{"end": {"streams": [{}], "sum_received": {"bits_per_second": 9.4e6}}}"#,
                )
                .unwrap(),
            ],
            provenance: provenance(),
            planned_share: 1.0,
            data,
            study_figures,
            absent_stacks: Vec::new(),
            claims,
        }
    }

    #[test]
    fn measurements_of_other_tools_are_listed_with_the_points() {
        let html = report().html();
        assert!(html.contains(
            "iperf3: a&lt;b.json</th></tr><tr><td class=\"text\">received, 1 stream</td><td>9400</td><td>–</td>"
        ));
        assert!(html.contains("<td class=\"text\">TCP, 1%</td>"), "a point with its axes");
    }

    #[test]
    fn page_is_self_contained() {
        let html = report().html();
        for outside in ["http://", "https://", "src=", "@import", "<link"] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("<h1>A &amp; B</h1>") && html.contains("Is SCTP &lt; TCP?"));
    }

    #[test]
    fn live_report_omits_remarks_on_virtual_time() {
        let mut report = report();
        let of_virtual_time = [
            "the random losses are the same for all transports",
            "same digest on any machine",
            "hol verify",
            "Endpoints and links are simulated",
        ];
        let html = report.html();
        assert!(of_virtual_time.iter().all(|said| html.contains(said)));
        report.provenance.repeatable = false;
        report.provenance.world = "live".into();
        report.provenance.fidelity = None;
        let html = report.html();
        assert!(!of_virtual_time.iter().any(|said| html.contains(said)));
        assert!(html.contains("the transports ran one after another"));
    }

    #[test]
    fn internal_links_have_targets() {
        let html = report().html();
        let targets = html.match_indices("href=\"#").map(|(at, _)| &html[at + 7..]);
        let targets: Vec<&str> = targets.map(|rest| rest.split('"').next().unwrap_or(rest)).collect();
        assert!(targets.len() > 3);
        for target in targets {
            assert!(html.contains(&format!("id=\"{target}\"")), "{target}");
        }
    }

    #[test]
    fn summary_names_the_faster_transport_and_the_verdict() {
        let html = report().html();
        assert!(html.contains("ms faster</span> than TCP"));
        assert!(html.contains("yes in 1 of the 1 comparisons below"));
        assert!(html.contains("<details class=\"claim\" id=\"x-1\"><summary><span class=\"chip v-good\""));
    }

    #[test]
    fn first_figure_is_in_the_summary_only() {
        let report = report();
        let html = report.html();
        let figure = format!("<figure id=\"{}\">", report.figures[0].id);
        assert_eq!(html.matches(&figure).count(), 1);
        assert!(html.find(&figure) < html.find("<section id=\"claims\">"));
    }

    #[test]
    fn quick_run_has_a_warning_that_names_undecided_claims() {
        let mut report = report();
        assert!(!report.html().contains("quick run"));
        report.planned_share = 0.05;
        report.judged_claims[0].findings[0].1.holds = None;
        let html = report.html();
        let quick = html.find("A quick run with a twentieth of the study").expect("it is said");
        assert!(quick < html.find("class=\"question\"").unwrap());
        assert!(html.contains("undecided in this run: <a href=\"#x-1\">x-1</a>."), "{html}");
    }

    #[test]
    fn only_findings_are_counted() {
        let html = report().html();
        assert!(html.contains("Of the paper's 1 finding, 1 holds today; 0 do not, and 0 are undecided."));
        assert!(html.contains("1 further claim is"));
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(place("Findings of the paper") < place("id=\"x-1\""));
        assert!(place("id=\"x-1\"") < place("Arithmetic and texts"));
        assert!(place("Arithmetic and texts") < place("id=\"x-2\""));
        assert!(html.contains("Refuted if SCTP is not faster."));
    }
}
