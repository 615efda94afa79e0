//! The figures of response times around a disruption of the path, one for each condition.

use super::Survey;
use super::figures::{MAX_DISTRIBUTIONS, range_of};
use crate::data::Cell;
use crate::figures::{Curves, Figure, PanelData};
use crate::plot::{Axis, OutageCurve, Scale, SeriesStyle, number};
use hol_lab::Metric;

/// Margins before the event and after the backlog, as a share of the time between them.
const MARGIN_SHARE: f64 = 0.25;

/// Returns the figures; none if the path was not disrupted, or if there would be too many.
pub fn outage_curves(survey: &Survey<'_>) -> Vec<Figure> {
    let combinations = survey.combinations(0);
    if combinations.len() > MAX_DISTRIBUTIONS {
        return Vec::new();
    }
    combinations.into_iter().filter_map(|steps| figure(survey, &steps)).collect()
}

fn figure(survey: &Survey<'_>, steps: &[usize]) -> Option<Figure> {
    let all = (0..survey.transports.len()).zip(survey.styles());
    let cells: Vec<(&Cell, SeriesStyle)> =
        all.filter_map(|(transport, style)| Some((survey.at(transport, steps)?, style))).collect();
    let curves: Vec<OutageCurve> =
        cells.iter().filter_map(|(cell, style)| outage_curve(cell, *style)).collect();
    let (first, what) = cells.first()?.0.conditions.disruptions.first()?;
    let span = span(&cells)?;
    let x = Scale::Linear { min: -MARGIN_SHARE * span, max: (1.0 + MARGIN_SHARE) * span };
    let seen = curves.iter().flat_map(|curve| &curve.points).filter(|(at, _)| x.contains(*at));
    let (min, max) = range_of(seen.filter_map(|(_, took)| *took))?;
    let choice_label = survey.describe_steps(0, steps);
    let at = if choice_label.is_empty() { String::new() } else { format!(" at {choice_label}") };
    let others = &cells.first()?.0.conditions.disruptions;
    let events = others.iter().map(|(at, what)| (at - first, what.clone())).collect();
    Some(Figure {
        id: String::new(),
        name: String::new(),
        caption: format!(
            "Response times of the messages that were due around the event at {} s: {what}{at}",
            number(*first)
        ),
        basis:
            "the first repetition of each transport; if there are many messages, only the slowest are drawn"
                .to_owned(),
        note: Some(
            "The line at 0 is the event. A bar at the upper edge shows messages that never arrived."
                .to_owned(),
        ),
        experiment: survey.experiment.clone(),
        is_ccdf: false,
        choice_label,
        metric: Metric::ResponseTime,
        x: Axis::new(x, "time at which the message was due, in s since the event"),
        y: Axis::new(Scale::Log { min: min / 1.3, max: (max * 1.6).max(min * 2.0) }, "response time (ms)"),
        panels: vec![PanelData { title: String::new(), curves: Curves::OutageCurves { curves, events } }],
    })
    .filter(|figure| !figure.panels[0].curves.is_empty())
}

fn outage_curve(cell: &Cell, style: SeriesStyle) -> Option<OutageCurve> {
    let ms = |nanos: u64| (nanos as f64 / 1e6).max(1e-3);
    let messages = cell.outage_curve.as_ref()?.messages.iter();
    let points = messages.map(|(due, took)| (*due as f64 / 1e9, took.map(ms))).collect();
    Some(OutageCurve { label: cell.transport.clone(), style, points })
}

/// Returns the time in s from the first event until the backlog of all transports is gone, or until the last message is
/// due, whichever is earlier.
fn span(cells: &[(&Cell, SeriesStyle)]) -> Option<f64> {
    let first = cells.first()?.0.conditions.disruptions.first()?.0;
    let gone = cells.iter().flat_map(|(cell, _)| cell.outages.first().into_iter().flatten());
    let gone = gone.filter_map(|outage| Some((outage.at + outage.last?).as_secs_f64() - first));
    let due = cells.iter().filter_map(|(cell, _)| cell.outage_curve.as_ref()?.messages.last());
    let due = due.map(|(due, _)| *due as f64 / 1e9);
    let latest = |times: &mut dyn Iterator<Item = f64>| times.reduce(f64::max).filter(|time| *time > 0.0);
    let (gone, due) = (latest(&mut gone.into_iter()), latest(&mut due.into_iter()));
    // Messages that were due later are beyond the axis.
    gone.into_iter().chain(due).reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::{Outage, OutageCurve};

    use super::*;
    use crate::testing::{cell, dataset, swept};

    #[test]
    fn a_figure_shows_the_messages_around_the_event_and_marks_it() {
        let disrupted = |name: &str, last: Option<u64>| {
            let mut cell = cell(name, 0.0, 20.0, &[60.0; 3]);
            cell.conditions.disruptions = vec![(5.0, "path 1 goes down".to_owned())];
            let ms = Duration::from_millis;
            let outage = Outage {
                at: ms(5000),
                since: ms(4990),
                longest: ms(1070),
                is_over: last.is_some(),
                late: 20,
                lost: 0,
                first: last.map(ms),
                last: last.map(ms),
            };
            cell.outages = vec![vec![outage]; 3];
            let took = |due: i64| if due < 0 { Some(40_000_000) } else { last.map(|last| last * 1_000_000) };
            let messages = (-20..40).map(|count| (count * 50_000_000, took(count))).collect();
            cell.outage_curve = Some(OutageCurve { messages });
            cell
        };
        let data = dataset(vec![disrupted("TCP", None), disrupted("SCTP", Some(1000))]);
        let survey = swept(&data);
        let figures = outage_curves(&survey);
        let [figure] = &figures[..] else { panic!("{figures:?}") };
        assert!(figure.caption.contains("the event at 5 s: path 1 goes down"), "{}", figure.caption);
        let svg = figure.draw().inline();
        assert_eq!((svg.matches("class=\"event\"").count(), svg.matches("class=\"stroke\"").count()), (1, 1));
        assert!(svg.contains(">SCTP</text>") && svg.contains(">TCP</text>"), "{svg}");
        let csv = figure.csv();
        assert!(csv.starts_with("panel,series,s_since_event,response_ms\n"), "{csv}");
        assert!(csv.contains(",TCP,-1.0000,40.0000\n") && csv.contains(",TCP,0.0000,\n"), "{csv}");
        assert_eq!(outage_curves(&swept(&dataset(vec![cell("TCP", 1.0, 100.0, &[20.0])]))).len(), 0);
    }
}
