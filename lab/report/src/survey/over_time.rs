//! Figures over time: response times and goodput around a disruption of the path, or over whole runs if the experiment
//! has a `timeline`.

use hol_measure::{Outage, Timeline};

use super::Survey;
use super::figures::{MAX_DISTRIBUTIONS, range_of};
use crate::data::Cell;
use crate::figures::{Curves, Figure, PanelData};
use crate::plot::{Axis, Recovery, Scale, SeriesStyle, TimeCurve, number};
use hol_lab::Metric;

/// Margins before the event and after the backlog, as a share of the time between them.
const MARGIN_SHARE: f64 = 0.25;

/// The points of all transports under the same conditions.
struct Condition<'s, 'd> {
    survey: &'s Survey<'d>,
    /// A description of the conditions; empty if there is only one set.
    description: String,
    cells: Vec<(&'d Cell, SeriesStyle)>,
}

/// Returns the figures of each condition; none if there would be too many.
pub fn figures_over_time(survey: &Survey<'_>) -> Vec<Figure> {
    let combinations = survey.combinations(0);
    if combinations.len() > MAX_DISTRIBUTIONS {
        return Vec::new();
    }
    let conditions: Vec<Condition<'_, '_>> =
        combinations.iter().map(|steps| Condition::of(survey, steps)).collect();
    // Figures of the same kind follow each other, so that readers choose among them.
    let kinds: [fn(&Condition<'_, '_>) -> Option<Figure>; 4] = [
        |condition| condition.responses_around_event(),
        |condition| condition.goodput_around_event(),
        |condition| condition.whole_runs(Metric::Throughput),
        |condition| condition.whole_runs(Metric::ResponseTime),
    ];
    let figures = kinds.into_iter().flat_map(|of| conditions.iter().filter_map(of));
    figures.filter(|figure| !figure.panels[0].curves.is_empty()).collect()
}

impl<'s, 'd> Condition<'s, 'd> {
    fn of(survey: &'s Survey<'d>, steps: &[usize]) -> Self {
        let all = (0..survey.transports.len()).zip(survey.styles());
        let cells = all.filter_map(|(transport, style)| Some((survey.at(transport, steps)?, style)));
        Self { survey, description: survey.describe_steps(0, steps), cells: cells.collect() }
    }

    fn responses_around_event(&self) -> Option<Figure> {
        let curves: Vec<TimeCurve> =
            self.cells.iter().filter_map(|(cell, style)| response_curve(cell, *style)).collect();
        let x = self.scale_around_event()?;
        let seen = curves.iter().flat_map(|curve| &curve.points).filter(|(at, _)| x.contains(*at));
        let (min, max) = range_of(seen.filter_map(|(_, took)| *took))?;
        let y =
            Axis::new(Scale::Log { min: min / 1.3, max: (max * 1.6).max(min * 2.0) }, "response time (ms)");
        Some(Figure {
            basis: "the first repetition of each transport; if there are many messages, only the slowest are drawn"
                .to_owned(),
            note: Some(format!("{RECOVERY_NOTE} A bar at the upper edge shows messages that never arrived.")),
            metric: Metric::ResponseTime,
            ..self.around_event("Response times of the messages that were due", x, y, curves)?
        })
    }

    fn goodput_around_event(&self) -> Option<Figure> {
        let (first, _) = self.first_event()?;
        let curves: Vec<TimeCurve> =
            self.cells.iter().filter_map(|(cell, style)| goodput_curve(cell, *style, first)).collect();
        let x = self.scale_around_event()?;
        let seen = curves.iter().flat_map(|curve| &curve.points).filter(|(at, _)| x.contains(*at));
        let (_, max) = range_of(seen.filter_map(|(_, kbps)| *kbps))?;
        let interval = self.cells.iter().find_map(|(cell, _)| Some(cell.timelines.first()?.interval))?;
        Some(Figure {
            basis: format!("the first repetition of each transport, in intervals of {interval}"),
            note: Some(RECOVERY_NOTE.to_owned()),
            metric: Metric::Throughput,
            ..self.around_event("Goodput", x, goodput_axis(max), curves)?
        })
    }

    /// Returns a figure of the time around the first event. Its metric determines the name (`what`), the axes and the
    /// curves.
    fn around_event(&self, what: &str, x: Scale, y: Axis, curves: Vec<TimeCurve>) -> Option<Figure> {
        let (first, event) = self.first_event()?;
        let events = &self.cells.first()?.0.conditions.disruptions;
        let events = events.iter().map(|(at, what)| (at - first, what.clone())).collect();
        let recoveries = self.cells.iter().filter_map(|(cell, style)| recovery(cell, *style)).collect();
        let caption = format!("{what} around the event at {} s: {event}", number(first));
        let x = Axis::new(
            x,
            match y.label.starts_with("response") {
                true => "time at which the message was due, in s since the event",
                false => "s since the event",
            },
        );
        Some(self.figure(caption, x, y, Curves::OverTime { curves, events, recoveries }))
    }

    /// Returns a figure of a metric over whole runs; `None` if an event disrupts the path, because there are other
    /// figures for events.
    fn whole_runs(&self, metric: Metric) -> Option<Figure> {
        if self.first_event().is_some() {
            return None;
        }
        let curves: Vec<TimeCurve> =
            self.cells.iter().map(|(cell, style)| whole_run_curve(metric, cell, *style)).collect();
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let (_, end) = range_of(points().map(|(at, _)| *at))?;
        let (_, max) = range_of(points().filter_map(|(_, value)| *value))?;
        let (what, y) = match metric {
            Metric::Throughput => ("Goodput", goodput_axis(max)),
            _ => {
                let scale = Scale::Linear { min: 0.0, max: (max * 1.06).max(1e-9) };
                ("Mean response time", Axis::new(scale, &metric.axis_title()).with_unit_for(max))
            }
        };
        let x = Axis::new(Scale::Linear { min: 0.0, max: end }, "s since the start of the run");
        let interval = self.cells.iter().find_map(|(cell, _)| Some(cell.timelines.first()?.interval))?;
        let curves = Curves::OverTime { curves, events: Vec::new(), recoveries: Vec::new() };
        Some(Figure {
            basis: format!("the mean of all repetitions, in intervals of {interval}"),
            metric,
            ..self.figure(format!("{what} over time"), x, y, curves)
        })
    }

    fn figure(&self, caption: String, x: Axis, y: Axis, curves: Curves) -> Figure {
        let at =
            if self.description.is_empty() { String::new() } else { format!(" at {}", self.description) };
        Figure {
            id: String::new(),
            name: String::new(),
            caption: caption + &at,
            basis: String::new(),
            note: None,
            experiment: self.survey.experiment.clone(),
            is_ccdf: false,
            choice_label: self.description.clone(),
            metric: Metric::ResponseTime,
            x,
            y,
            panels: vec![PanelData { title: String::new(), curves }],
        }
    }

    /// Returns the time of the first event in s since the start of the run, and its description.
    fn first_event(&self) -> Option<(f64, &'d str)> {
        let (at, what) = self.cells.first()?.0.conditions.disruptions.first()?;
        Some((*at, what))
    }

    /// Returns the time axis around the first event. It ends after the recovery of all transports that recover, or else
    /// when the last message is due.
    fn scale_around_event(&self) -> Option<Scale> {
        let (first, _) = self.first_event()?;
        let outages = self.cells.iter().filter_map(|(cell, _)| cell.outages.first()).flatten();
        let gone = outages.filter_map(|outage| Some((outage.at + outage.last?).as_secs_f64() - first));
        let due = self.cells.iter().filter_map(|(cell, _)| cell.outage_curve.as_ref()?.messages.last());
        let due = due.map(|(due, _)| *due as f64 / 1e9);
        let latest = |times: &mut dyn Iterator<Item = f64>| times.reduce(f64::max).filter(|time| *time > 0.0);
        let (gone, due) = (latest(&mut gone.into_iter()), latest(&mut due.into_iter()));
        let span = gone.or(due)?;
        Some(Scale::Linear { min: -MARGIN_SHARE * span, max: (1.0 + MARGIN_SHARE) * span })
    }
}

const RECOVERY_NOTE: &str = "The dashed line is the event. Bars at the lower edge show the recovery of each transport: the \
    delivery of the messages that were late because of the event, from the first to the last.";

fn response_curve(cell: &Cell, style: SeriesStyle) -> Option<TimeCurve> {
    let ms = |nanos: u64| (nanos as f64 / 1e6).max(1e-3);
    let messages = cell.outage_curve.as_ref()?.messages.iter();
    let points = messages.map(|(due, took)| (*due as f64 / 1e9, took.map(ms))).collect();
    Some(TimeCurve { label: cell.transport.clone(), style, points })
}

/// Returns the goodput of the first repetition, over the time since the event at `event`, in s.
fn goodput_curve(cell: &Cell, style: SeriesStyle, event: f64) -> Option<TimeCurve> {
    let run: &Timeline = cell.timelines.first()?;
    let points = (0..run.parts.len()).map(|part| (run.middle_since_start_s(part) - event, run.kbps(part)));
    Some(TimeCurve { label: cell.transport.clone(), style, points: points.collect() })
}

/// Returns the mean of all repetitions in each interval.
fn whole_run_curve(metric: Metric, cell: &Cell, style: SeriesStyle) -> TimeCurve {
    let begin = cell.timelines.first().map_or(0.0, |run| run.begin.as_secs_f64());
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let over_time = cell.over_time(metric).into_iter().filter(|(_, values)| !values.is_empty());
    let points = over_time.map(|(at, values)| (begin + at, Some(mean(&values)))).collect();
    TimeCurve { label: cell.transport.clone(), style, points }
}

/// Returns the recovery of the first repetition from the first event; `None` if no late message arrived, or if the
/// backlog was not gone when the run ended.
fn recovery(cell: &Cell, style: SeriesStyle) -> Option<Recovery> {
    let Outage { first, last, .. } = cell.outages.first()?.first()?;
    let ends = [(*first)?, (*last)?].map(|time| time.as_secs_f64());
    Some(Recovery { label: cell.transport.clone(), style, ends })
}

fn goodput_axis(max: f64) -> Axis {
    Axis::new(Scale::Linear { min: 0.0, max: (max * 1.06).max(1e-9) }, "goodput (kbit/s)").with_unit_for(max)
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::{LatencySum, OutageCurve, TimelinePart};

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
            let part = |at: u64| TimelinePart {
                messages: LatencySum::default(),
                octets: if (46..56).contains(&at) { 0 } else { 1000 },
            };
            let (begin, interval) = (ms(400), ms(100));
            cell.timelines = vec![Timeline { begin, interval, parts: (0..80).map(part).collect() }];
            cell
        };
        let data = dataset(vec![disrupted("TCP", None), disrupted("SCTP", Some(1000))]);
        let survey = swept(&data);
        let figures = figures_over_time(&survey);
        let [figure, goodput] = &figures[..] else { panic!("{figures:?}") };
        assert!(figure.caption.contains("the event at 5 s: path 1 goes down"), "{}", figure.caption);
        let svg = figure.draw().inline();
        // The messages that never arrived over TCP, and the bar of SCTP's recovery with its ends.
        assert_eq!(
            (svg.matches("class=\"event\"").count(), svg.matches("class=\"stroke\"").count()),
            (1, 1 + 3)
        );
        assert!(svg.contains(">path 1 goes down</text>"), "{svg}");
        let recovery = "SCTP: the first late message arrives 1 s after the event, the last 1 s after it";
        assert!(svg.contains(recovery), "{svg}");
        assert!(svg.contains(">SCTP</text>") && svg.contains(">TCP</text>"), "{svg}");
        let csv = figure.csv();
        assert!(csv.starts_with("panel,series,s_since_event,response_ms\n"), "{csv}");
        assert!(csv.contains(",TCP,-1.0000,40.0000\n") && csv.contains(",TCP,0.0000,\n"), "{csv}");
        assert!(goodput.caption.starts_with("Goodput around the event at 5 s"), "{}", goodput.caption);
        let svg = goodput.draw().inline();
        assert!(
            svg.contains("goodput (kbit/s)") && svg.contains(recovery) && svg.contains("class=\"event\"")
        );
        let csv = goodput.csv();
        assert!(csv.starts_with("panel,series,s_since_event,goodput_kbps\n"), "{csv}");
        // The run began 0.4 s before the first part, so the parts without a delivery are from 5 s on.
        assert!(csv.contains(",SCTP,-0.0500,80.0000\n") && csv.contains(",SCTP,0.0500,0.0000\n"), "{csv}");
        assert_eq!(figures_over_time(&swept(&dataset(vec![cell("TCP", 1.0, 100.0, &[20.0])]))).len(), 0);
    }

    #[test]
    fn a_timeline_without_events_is_drawn_over_whole_runs() {
        let mut cell = cell("TCP", 1.0, 100.0, &[20.0; 2]);
        let part = |octets| TimelinePart { messages: LatencySum { count: 2, nanos: 40_000_000 }, octets };
        let (begin, interval) = (Duration::from_secs(1), Duration::from_secs(2));
        let run = |octets: [u64; 3]| Timeline { begin, interval, parts: octets.map(part).to_vec() };
        cell.timelines = vec![run([1000, 2000, 3000]), run([3000, 2000, 1000])];
        let data = dataset(vec![cell]);
        let figures = figures_over_time(&swept(&data));
        let [goodput, response] = &figures[..] else { panic!("{figures:?}") };
        assert_eq!(
            goodput.csv(),
            "panel,series,s_since_start,goodput_kbps\n,TCP,2.0000,8.0000\n,TCP,4.0000,8.0000\n,TCP,6.0000,8.0000\n"
        );
        assert!(response.csv().contains(",TCP,2.0000,20.0000\n"), "{}", response.csv());
    }
}
