//! Compares transports by class of message size: short replies may be faster over a transport whose long
//! replies are slower.

use super::figures::of_metric;
use super::{Headline, Survey};
use crate::data::{Cell, Dataset};
use crate::figures::Figure;
use hol_lab::Metric;

/// Returns, for each class of message sizes that all points have, the points of this class, by the name of the class.
fn classes(survey: &Survey<'_>) -> Vec<(String, Dataset)> {
    let points: Vec<_> = survey.cells().map(Cell::by_class).collect();
    let names = points.first().into_iter().flatten().map(|(name, _)| (*name).to_owned());
    let of_class = |name: String| {
        let of_point = |classes: &Vec<(&str, Cell)>| {
            classes.iter().find(|(known, _)| *known == name).map(|(_, cell)| cell.clone())
        };
        let cells: Option<Vec<Cell>> = points.iter().map(of_point).collect();
        Some((name, Dataset { cells: cells?, ..Dataset::default() }))
    };
    names.filter_map(of_class).collect()
}

/// Returns the answer for each class: `200 kB replies: quic is faster …`.
pub fn describe_classes(survey: &Survey<'_>) -> Vec<String> {
    let of_class = |(name, data): &(String, Dataset)| {
        let headline = Headline::of(&Survey::over(&survey.experiment, survey.axes.clone(), data));
        headline.main_sentences.into_iter().map(|line| format!("{name}: {line}")).collect::<Vec<_>>()
    };
    classes(survey).iter().flat_map(of_class).collect()
}

/// Returns the mean and the 99th percentile of each class over the horizontal axis.
pub fn figures(survey: &Survey<'_>) -> Vec<Figure> {
    let of_class = |(name, data): &(String, Dataset)| {
        let own = Survey::over(&survey.experiment, survey.axes.clone(), data);
        let figures = [Metric::ResponseTime, Metric::Tail].map(|metric| of_metric(&own, metric)).concat();
        let named = |figure: Figure| Figure { caption: format!("{name}: {}", figure.caption), ..figure };
        figures.into_iter().map(named).collect::<Vec<_>>()
    };
    classes(survey).iter().flat_map(of_class).collect()
}
