//! Builds one curve of means or of a distribution from points.

use hol_base::Duration;
use hol_measure::{CONFIDENCE, ConfidenceInterval, Interval};

use crate::closed_form;
use crate::data::{Cell, record_noun};
use crate::plot::{Ccdf, Gap, Point, Series, SeriesStyle, number};
use hol_lab::Metric;

/// The value that represents zero on a logarithmic axis, far below its lower end.
const LOGARITHMIC_ZERO: f64 = 1e-9;

/// Returns a curve of means, ascending on the horizontal axis; `None` marks a planned point that was not measured.
pub fn means(metric: Metric, label: &str, style: SeriesStyle, cells: &[(f64, Option<&Cell>)]) -> Series {
    let mut placed = cells.to_vec();
    placed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut series = Series::new(label, style, Vec::new());
    for (x, cell) in placed {
        match cell.map(|cell| (cell, cell.mean_with_bounds(metric))) {
            Some((cell, Some(value))) => series.points.push(point(metric, x, cell, value)),
            Some((cell, None)) => series.gaps.push(Gap { x, why: Some(cell.describe_missing_mean()) }),
            None => series.gaps.push(Gap { x, why: None }),
        }
        series.theory.extend(cell.and_then(|cell| Some((x, cell.closed_form(metric)?))));
    }
    series
}

fn point(metric: Metric, x: f64, cell: &Cell, value: ConfidenceInterval) -> Point {
    let (n, missing) = (cell.values_by_run(metric).iter().flatten().count(), cell.runs_without_value(metric));
    Point { x, value, n, missing, collapsed: cell.collapsed_runs_of(metric) }
}

/// Returns the curve of a metric over the time since the start of a run, for one point.
pub fn over_time(metric: Metric, label: &str, style: SeriesStyle, cell: &Cell) -> Series {
    let point = |(x, values): (f64, Vec<f64>)| {
        let (n, missing) = (values.len(), cell.timelines.len() - values.len());
        let value = metric.limit(ConfidenceInterval::of_mean(&values, CONFIDENCE)?);
        Some(Point { x, value, n, missing, collapsed: 0 })
    };
    Series::new(label, style, cell.over_time(metric).into_iter().filter_map(point).collect())
}

/// Returns a distribution with an interval at each of its steps.
pub fn ccdf(metric: Metric, label: &str, style: SeriesStyle, cell: &Cell, with_theory: bool) -> Ccdf {
    const POINTS_PER_DECADE: u32 = 24;
    let distribution = cell.distribution(metric);
    let corners = distribution.ccdf(POINTS_PER_DECADE, CONFIDENCE);
    let mut points: Vec<(f64, f64)> = corners.iter().map(|c| (c.latency.as_millis_f64(), c.share)).collect();
    // If every message took the same time, the curve has one step, down to zero.
    if let (true, Some(max)) = (points.is_empty(), distribution.max()) {
        points.push((max.as_millis_f64(), LOGARITHMIC_ZERO));
    }
    let step = |share: f64| points.iter().find(|point| point.1 == share).map_or(0.0, |point| point.0);
    let band = match metric {
        // Messages of one repetition are correlated, so the interval is computed over repetitions. The last share is
        // that of the step before.
        Metric::ResponseTime => {
            points.iter().map(|&(ms, share)| band(cell, ms, step(share), share)).collect()
        }
        _ => {
            corners.iter().map(|c| (c.latency.as_millis_f64(), c.low.max(LOGARITHMIC_ZERO), c.high)).collect()
        }
    };
    let theory = if with_theory { closed_form::ccdf(cell) } else { Vec::new() };
    Ccdf { label: label.to_owned(), style, points, band, theory }
}

/// Returns the 95 % limits, for `ms`, of the share of messages that took longer than `step_ms`, from the variance of the repetitions.
fn band(cell: &Cell, ms: f64, step_ms: f64, share: f64) -> (f64, f64, f64) {
    let at = Duration::from_secs_f64(step_ms / 1000.0);
    let shares: Vec<f64> = cell.runs.iter().filter_map(|run| run.latency.share_above(at)).collect();
    let half = Interval::of(&shares, CONFIDENCE)
        .filter(|interval| interval.half_width.is_finite())
        .map_or(0.0, |interval| interval.half_width);
    (ms, (share - half).max(LOGARITHMIC_ZERO), (share + half).min(1.0))
}

/// Describes how much was measured for a figure, and how many repetitions have no value and are not in the means.
pub fn basis<'c>(metric: Metric, is_ccdf: bool, cells: impl Iterator<Item = &'c Cell>) -> String {
    let cells: Vec<&Cell> = cells.collect();
    let messages: u64 = cells.iter().map(|cell| cell.latency.offered()).sum();
    let repetitions = cells.iter().map(|cell| cell.runs.len());
    let (min, max) = (repetitions.clone().min().unwrap_or(0), repetitions.max().unwrap_or(0));
    let repetitions = match (min, max) {
        (1, 1) => "1 repetition".to_owned(),
        _ if min == max => format!("{max} repetitions"),
        _ => format!("{min} to {max} repetitions"),
    };
    let missing: usize = cells.iter().map(|cell| cell.runs_without_value(metric)).sum();
    let left_out = match missing {
        // A distribution covers all messages.
        _ if is_ccdf => String::new(),
        0 => String::new(),
        _ => format!("; {} repetitions have no value and are not in the means", number(missing as f64)),
    };
    format!(
        "{} points, {} {}, {repetitions} per point{left_out}",
        number(cells.len() as f64),
        number(messages as f64),
        record_noun(cells.iter().copied())
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell_with;

    /// Fewer than ten of the 20 late messages are later than the others, so the curve has one corner at 20 ms, and
    /// nearly 2 % take 70 ms.
    #[test]
    fn distribution_curve_extends_into_the_tail() {
        let run: Vec<f64> = (0..1000)
            .map(|message| match message {
                ..980 => 20.0,
                980 => 60.0,
                _ => 70.0,
            })
            .collect();
        let cell = cell_with("SCTP", 1.0, 100.0, &[run]);
        let curve = ccdf(Metric::ResponseTime, "SCTP", SeriesStyle::of_transport("SCTP"), &cell, false);
        let rounded: Vec<(f64, f64)> = curve.points.iter().map(|(ms, share)| (ms.round(), *share)).collect();
        assert_eq!(rounded, [(20.0, 0.02), (70.0, 0.02)]);
        assert_eq!(curve.band.len(), 2);
    }
}
