//! Describes the effect of a disruption of the path on each transport.

use hol_measure::{CONFIDENCE, Interval};

use super::Survey;
use crate::data::Cell;
use crate::plot::number;
use hol_lab::Metric;

/// Describes the outage of each transport in a sentence if nothing is swept. With more points the numbers are
/// in the table.
pub fn describe_outages(survey: &Survey<'_>) -> Vec<String> {
    if !survey.axes.is_empty() {
        return Vec::new();
    }
    survey.cells().filter_map(describe_outage).collect()
}

/// Describes how long nothing was delivered, how many messages were late, and when those arrived.
pub fn describe_outage(cell: &Cell) -> Option<String> {
    let (recovered, runs) = (cell.recovered_runs()?, cell.runs.len());
    let disruptions: Vec<String> =
        cell.conditions.disruptions.iter().map(|(at, what)| format!("{what} at {} s", number(*at))).collect();
    let when = match disruptions.as_slice() {
        [] => return None,
        [one] => format!("{}: when {one}", cell.transport),
        [first, ..] => {
            format!("{}: when {first} (the first of {} events)", cell.transport, disruptions.len())
        }
    };
    let mut text = match (recovered, runs - recovered) {
        (0, _) => format!("{when}, {}", describe_missing_recovery(cell)),
        (_, 0) => {
            format!(
                "{when}, nothing is delivered for {}{}",
                format_time(cell, Metric::Outage)?,
                describe_backlog(cell)
            )
        }
        (_, missing) => {
            let rest = format!("in {missing} of {runs} runs {}", describe_missing_recovery(cell));
            format!(
                "{when}, nothing is delivered for {}{}; {rest}",
                format_time(cell, Metric::Outage)?,
                describe_backlog(cell)
            )
        }
    };
    if let Some(noticed) = format_time(cell, Metric::Noticed) {
        text += &format!("; the application gets an error {noticed} after the event");
    }
    Some(text + ".")
}

/// Describes the runs in which nothing more was delivered.
fn describe_missing_recovery(cell: &Cell) -> String {
    let open = cell.outages.iter().flatten().find(|outage| !outage.is_over);
    open.map_or(String::new(), |outage| {
        let end = (outage.since + outage.longest).as_secs_f64();
        format!(
            "nothing more is delivered until the run ends at {} s: {} messages are lost",
            number(rounded(end)),
            number(outage.lost as f64)
        )
    })
}

/// Describes the late messages, and when the first and the last of them arrived.
fn describe_backlog(cell: &Cell) -> String {
    let late = mean_of_repetitions(cell, Metric::LateMessages).map_or(0.0, |late| late.mean);
    if late <= 0.0 {
        return ", and no message is late".to_owned();
    }
    let lost: u64 = cell.outages.iter().flatten().map(|outage| outage.lost).sum();
    let verb = if lost == 0 { "are late" } else { "are late or lost" };
    let mut text = format!("; {} messages {verb}", number(rounded(late)));
    if let (Some(first), Some(last)) =
        (format_time(cell, Metric::BacklogFirst), format_time(cell, Metric::BacklogLast))
    {
        text += &match first == last {
            true if lost == 0 => format!(", and arrive {first} after the event"),
            true => format!("; those that are delivered arrive {first} after the event"),
            false => format!("; the first arrives {first} after the event, the last {last} after it"),
        };
    }
    text
}

fn mean_of_repetitions(cell: &Cell, metric: Metric) -> Option<Interval> {
    Interval::of(&cell.values_by_run(metric).into_iter().flatten().collect::<Vec<_>>(), CONFIDENCE)
}

/// Formats a mean in ms or s, with its interval in the same digits if the repetitions differ.
fn format_time(cell: &Cell, metric: Metric) -> Option<String> {
    let Interval { mean, half_width, .. } = mean_of_repetitions(cell, metric)?;
    let (unit, one) = if mean >= 1000.0 { ("s", 1000.0) } else { ("ms", 1.0) };
    let (mean, half) = (mean / one, half_width / one);
    if !half.is_finite() || half <= 0.005 * mean {
        return Some(format!("{} {unit}", number(rounded(mean))));
    }
    // Three significant digits of the mean.
    let decimals = (2.0 - mean.log10().floor()).clamp(0.0, 3.0) as usize;
    // No time is negative.
    if half > mean {
        return Some(format!("{mean:.decimals$} {unit} (0 to {:.decimals$})", mean + half));
    }
    Some(format!("{mean:.decimals$} ± {half:.decimals$} {unit}"))
}

/// Rounds to three significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::Outage;

    use super::super::main_metric;
    use super::*;
    use crate::testing::{cell, set};

    fn disrupted(outages: Vec<Outage>) -> Cell {
        let mut cell = cell("SCTP", 0.0, 20.0, &vec![60.0; outages.len()]);
        cell.conditions.disruptions = vec![(5.0, "path 1 goes down".to_owned())];
        let ms = |time: Option<Duration>| time.map(|time| time.as_millis_f64());
        let over = |outage: &Outage| outage.is_over.then(|| outage.longest.as_millis_f64());
        set(&mut cell, Metric::Outage, outages.iter().map(over).collect());
        set(&mut cell, Metric::LateMessages, outages.iter().map(|o| Some(o.late as f64)).collect());
        set(&mut cell, Metric::BacklogFirst, outages.iter().map(|o| ms(o.first)).collect());
        set(&mut cell, Metric::BacklogLast, outages.iter().map(|o| ms(o.last)).collect());
        cell.outages = outages.into_iter().map(|outage| vec![outage]).collect();
        cell
    }

    fn outage(is_over: bool) -> Outage {
        let ms = Duration::from_millis;
        Outage {
            at: ms(5000),
            since: ms(4990),
            longest: ms(1070),
            is_over,
            late: 20,
            lost: if is_over { 0 } else { 20 },
            first: is_over.then_some(ms(1060)),
            last: is_over.then_some(ms(1080)),
        }
    }

    #[test]
    fn outage_is_described_with_its_backlog() {
        assert_eq!(
            describe_outage(&disrupted(vec![outage(true); 3])).unwrap(),
            "SCTP: when path 1 goes down at 5 s, nothing is delivered for 1.07 s; 20 messages are late; \
             the first arrives 1.06 s after the event, the last 1.08 s after it."
        );
        assert_eq!(describe_outage(&cell("SCTP", 0.0, 20.0, &[60.0; 3])), None);
    }

    #[test]
    fn interval_has_the_digits_of_its_mean() {
        let time_of = |ms: [f64; 3]| {
            let mut cell = disrupted(vec![outage(true); 3]);
            set(&mut cell, Metric::Outage, ms.map(Some).to_vec());
            format_time(&cell, Metric::Outage).unwrap()
        };
        // The half width of three values a, a ± d is 2.48 d.
        assert_eq!(time_of([2300.0, 2470.0, 2640.0]), "2.47 ± 0.42 s");
        assert_eq!(time_of([590.0, 600.0, 610.0]), "600 ± 25 ms");
        assert_eq!(time_of([20.0, 21.25, 22.5]), "21.2 ± 3.1 ms");
        assert_eq!(time_of([600.0, 600.1, 600.2]), "600 ms");
    }

    #[test]
    fn outage_that_does_not_end_is_reported() {
        assert_eq!(
            describe_outage(&disrupted(vec![outage(false); 3])).unwrap(),
            "SCTP: when path 1 goes down at 5 s, nothing more is delivered until the run ends at 6.06 s: \
             20 messages are lost."
        );
        let some = describe_outage(&disrupted(vec![outage(true), outage(false)])).unwrap();
        assert!(some.contains("; in 1 of 2 runs nothing more is delivered"), "{some}");
    }

    #[test]
    fn outages_are_compared_only_if_every_run_has_one() {
        let mut cell = disrupted(vec![outage(true); 3]);
        assert_eq!(main_metric([&cell].into_iter()), Metric::Outage);
        // A run that began elsewhere in its trace.
        cell.outages[1].clear();
        assert_eq!(main_metric([&cell].into_iter()), Metric::ResponseTime);
    }
}
