//! Drawings that show one point of each transport: at the points that a study selects, or under each set of conditions
//! of a survey.

use super::choices;
use crate::data::Filter;
use crate::plot::number;
use crate::report::Report;

/// The largest number of conditions with drawings.
const MAX_CONDITIONS: usize = 60;

/// Returns the filters of the study's `chosen` points, then the filters of the surveys. Each has a
/// description.
pub fn selected_points<'r>(report: &'r Report, chosen: &'r [Filter]) -> Vec<(String, &'r Filter)> {
    let conditions = report.surveys.iter().flat_map(|survey| &survey.conditions).take(MAX_CONDITIONS);
    let conditions = conditions.map(|(description, filter)| (description.clone(), filter));
    chosen.iter().map(|filter| (describe_filter(filter), filter)).chain(conditions).collect()
}

/// Returns the drawings of a study one below the other. The drawings of a survey are shown one at a time, as
/// a choice.
pub fn side_by_side(report: &Report, figures: &[(String, String)]) -> String {
    if report.surveys.is_empty() {
        figures.iter().map(|(_, figure)| figure.as_str()).collect()
    } else {
        choices(figures)
    }
}

fn describe_filter(filter: &Filter) -> String {
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
