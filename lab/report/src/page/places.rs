//! Drawings of one point of every transport: of the points that a study names, or of each condition of a survey.

use super::choices;
use crate::data::Filter;
use crate::plot::number;
use crate::report::Report;

/// The points of more conditions than this are left to the tables.
const MOST: usize = 60;

/// Those that the study has `chosen`, then those of the surveys, each in words.
pub fn places<'r>(report: &'r Report, chosen: &'r [Filter]) -> Vec<(String, &'r Filter)> {
    let conditions = report.surveys.iter().flat_map(|survey| &survey.conditions).take(MOST);
    let conditions = conditions.map(|(place, filter)| (place.clone(), filter));
    chosen.iter().map(|filter| (in_words(filter), filter)).chain(conditions).collect()
}

/// The drawings of a study below each other, of those of a survey one to choose.
pub fn side_by_side(report: &Report, figures: &[(String, String)]) -> String {
    if report.surveys.is_empty() {
        figures.iter().map(|(_, figure)| figure.as_str()).collect()
    } else {
        choices(figures)
    }
}

fn in_words(filter: &Filter) -> String {
    let loss = filter.loss.map(|[loss, _]| format!("{} % loss", number(loss)));
    let rate = filter.rate.map(|[rate, _]| format!("{}/s", number(rate)));
    let axes = filter.axes.iter().map(|(key, values)| format!("{key} = {}", values.join(", ")));
    [Some(filter.experiments.join(", ")), loss, rate]
        .into_iter()
        .flatten()
        .chain(axes)
        .collect::<Vec<_>>()
        .join(", ")
}
