//! The fidelity of the model's results: known differences that affect the points, and conditions that were never compared.

use hol_lab::fidelity::KnownDifference;

use crate::plot::escape;
use crate::report::Report;

/// Returns this section of the page as HTML; empty if it has no content.
pub fn html(report: &Report) -> String {
    let Some(fidelity) = &report.provenance.fidelity else { return String::new() };
    let known = fidelity.known.iter().map(|KnownDifference { description, size, condition, .. }| {
        format!("<li>{}: {} ({}).</li>", escape(description), escape(size), escape(condition))
    });
    let known = match known.collect::<String>() {
        none if none.is_empty() => {
            "<p>No known difference between the model and Linux 6.12 affects these points.</p>".to_owned()
        }
        some => format!(
            "<p>Known differences between the model and Linux 6.12 that affect these points:</p><ul>{some}</ul>"
        ),
    };
    let outside = fidelity.outside.iter().map(|thing| format!("<li>{}</li>", escape(thing)));
    let outside = match outside.collect::<String>() {
        none if none.is_empty() => String::new(),
        some => format!("<p>Not compared with Linux 6.12:</p><ul>{some}</ul>"),
    };
    format!(
        "<p class=\"soft\">Endpoints and links are simulated, and processors take no time for packets. The endpoints were compared with \
         Linux 6.12 over scenarios drawn at random, packet by packet (<code>hol validate --random 200</code>).</p>{known}{outside}"
    )
}

#[cfg(test)]
mod tests {
    use hol_lab::fidelity::{Fidelity, KNOWN_DIFFERENCES};

    use crate::page::tests::report;

    #[test]
    fn only_differences_that_affect_the_points_are_listed() {
        let mut report = report();
        report.provenance.fidelity =
            Some(Fidelity { known: vec![&KNOWN_DIFFERENCES[0]], outside: vec!["loss of 20 %".to_owned()] });
        let html = super::html(&report);
        assert!(
            html.contains(KNOWN_DIFFERENCES[0].description)
                && !html.contains(KNOWN_DIFFERENCES[1].description),
            "{html}"
        );
        assert!(html.contains("<li>loss of 20 %</li>"), "{html}");
    }

    #[test]
    fn kernel_report_omits_the_fidelity_of_the_model() {
        let mut report = report();
        report.provenance.fidelity = None;
        assert_eq!(super::html(&report), "");
    }
}
