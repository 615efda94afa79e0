//! Compares transports by class of message size: short replies may be faster over a transport whose long
//! replies are slower.

use super::figures::metric_figures;
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
        let headline = Headline::of(&Survey::over(&survey.experiment, survey.axes.clone(), &data.cells));
        headline.main_sentences.iter().map(|line| prefix_with_class(name, line)).collect::<Vec<_>>()
    };
    classes(survey).iter().flat_map(of_class).collect()
}

/// Turns `sentence` into a sentence about the messages of one size class.
pub fn prefix_with_class(class: &str, sentence: &str) -> String {
    match sentence.strip_prefix("No ") {
        Some(rest) => format!("{class}: no {rest}"),
        None => format!("{class}: {sentence}"),
    }
}

/// Returns the mean and the 99th percentile of each class over the horizontal axis.
pub fn figures(survey: &Survey<'_>) -> Vec<Figure> {
    let of_class = |(name, data): &(String, Dataset)| {
        let own = Survey::over(&survey.experiment, survey.axes.clone(), &data.cells);
        let figures =
            [Metric::ResponseTime, Metric::Tail].map(|metric| metric_figures(&own, metric)).concat();
        let named = |figure: Figure| Figure { caption: format!("{name}: {}", figure.caption), ..figure };
        figures.into_iter().map(named).collect::<Vec<_>>()
    };
    classes(survey).iter().flat_map(of_class).collect()
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::Outage;

    use super::*;
    use crate::testing::{cell, set, swept};

    #[test]
    fn a_sentence_about_a_class_begins_with_its_name() {
        assert_eq!(prefix_with_class("1 kB replies", "SCTP is slower"), "1 kB replies: SCTP is slower");
        assert_eq!(prefix_with_class("1 kB replies", "No clear"), "1 kB replies: no clear");
    }

    /// Outages are known of all messages together, so classes are compared by their response times.
    #[test]
    fn classes_of_a_path_that_fails_are_compared_by_response_time() {
        let of = |transport: &str, ms: f64| {
            let mut cell = cell(transport, 0.0, 20.0, &[ms, ms + 1.0, ms + 2.0, ms + 1.0]);
            let outage = Outage {
                at: Duration::from_secs(5),
                since: Duration::from_secs(5),
                longest: Duration::from_millis(900),
                is_over: true,
                late: 20,
                lost: 0,
                first: Some(Duration::from_millis(900)),
                last: Some(Duration::from_millis(950)),
            };
            cell.outages = vec![vec![outage]; 4];
            set(&mut cell, Metric::Outage, vec![Some(900.0); 4]);
            cell.classes = vec![("1 kB replies".to_owned(), cell.runs.clone())];
            cell
        };
        let data = Dataset { cells: vec![of("TCP", 60.0), of("QUIC", 30.0)], ..Dataset::default() };
        let survey = swept(&data);
        assert_eq!(survey.main_metric(), Metric::Outage);
        let lines = describe_classes(&survey);
        assert!(lines[0].starts_with("1 kB replies: QUIC is faster than TCP"), "{lines:?}");
    }
}
