//! The answer of an experiment that is not a study: the headline, and maps of the best transport.

use std::fmt::Write;

use super::choices;
use crate::plot::escape;
use crate::report::Report;
use crate::survey::SurveyResults;

/// The largest number of sentences in a list that is not collapsed.
const SENTENCES_SHOWN: usize = 8;

/// Returns the sentences of the answer.
pub fn headlines(report: &Report) -> String {
    report.surveys.iter().map(headline).collect()
}

fn headline(survey: &SurveyResults) -> String {
    let first = survey.headline.outages.iter().chain(&survey.headline.main_sentences);
    let lead: String = first.map(|text| format!("<p class=\"lead\">{}</p>", sentence(text))).collect();
    let lines: String =
        survey.headline.lines.iter().map(|line| format!("<li>{}</li>", sentence(line))).collect();
    if lines.is_empty() {
        return lead;
    }
    let open = if survey.headline.lines.len() > SENTENCES_SHOWN { "" } else { " open" };
    format!("{lead}<details{open}><summary>line by line</summary><ul class=\"lines\">{lines}</ul></details>")
}

/// Returns a sentence as HTML; commands in it are between backticks.
fn sentence(text: &str) -> String {
    let escaped = escape(text);
    let parts = escaped.split('`').enumerate();
    parts
        .map(|(place, part)| if place % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() })
        .collect()
}

/// Returns the maps of the best transport as HTML.
pub fn maps(report: &Report) -> String {
    let mut text = String::new();
    for survey in &report.surveys {
        let maps: Vec<(String, String)> = (survey.maps.iter().enumerate())
            .map(|(index, map)| {
                let id = map_id(&survey.experiment, index);
                let svg = map.draw(&id).inline();
                let caption = escape(&map.caption);
                let html = format!(
                    "<figure id=\"{id}\">{svg}<figcaption>{caption}. <span class=\"soft\"><a href=\"figures/{id}.svg\">SVG</a>\
                     </span></figcaption></figure>"
                );
                (map.choice_label.clone(), html)
            })
            .collect();
        let _ = write!(text, "{}", choices(&maps));
    }
    text
}

/// Returns the file name and anchor of a map.
pub fn map_id(experiment: &str, index: usize) -> String {
    let plain = experiment.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("map-{}-{}", plain.collect::<String>(), index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_in_a_sentence_becomes_code() {
        assert_eq!(sentence("a < b; `hol advise` finds"), "a &lt; b; <code>hol advise</code> finds");
        assert_eq!(sentence("none"), "none");
    }
}
