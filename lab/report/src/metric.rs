//! The values of a metric at a point.

use hol_base::Duration;
use hol_lab::Metric;
use hol_lab::metric::MetricSource;
use hol_measure::{Allowance, CONFIDENCE, ConfidenceInterval, Distribution, Interval, Recorder, Timeline};

use crate::closed_form;
use crate::data::Cell;

impl Cell {
    /// Returns the value of each repetition; `None` for a repetition without a meaningful value. Empty if the point has
    /// no representative value.
    pub fn values_by_run(&self, metric: Metric) -> Vec<Option<f64>> {
        let needs_end = matches!(metric, Metric::ResponseTime | Metric::Tail);
        match metric.info().extract {
            // If longer runs would have another mean, or most runs did not carry the load, no time is representative.
            _ if needs_end && (!self.is_steady || !self.is_mostly_completed()) => Vec::new(),
            MetricSource::Summary(of) if needs_end => self.of_completed_runs(of),
            MetricSource::Summary(of) if self.has_playout_times() || metric.info().needs.is_none() => {
                self.runs.iter().map(of).collect()
            }
            MetricSource::Summary(_) => Vec::new(),
            MetricSource::Run(_) => {
                let known = self.values.iter().find(|(known, _)| *known == metric);
                known.map(|(_, values)| values.clone()).unwrap_or_default()
            }
        }
    }

    /// Returns the mean over the repetitions; `None` if no repetition has a value.
    pub fn mean_of(&self, metric: Metric) -> Option<Interval> {
        Interval::of(&self.values_by_run(metric).into_iter().flatten().collect::<Vec<_>>(), CONFIDENCE)
    }

    /// Returns the mean over the repetitions; `None` if none has a value. Its interval accounts for skewed
    /// repetitions, and for timeouts that are too rare to have occurred.
    pub fn mean_with_bounds(&self, metric: Metric) -> Option<ConfidenceInterval> {
        let values: Vec<f64> = self.values_by_run(metric).into_iter().flatten().collect();
        let bounds = metric.limit(ConfidenceInterval::of_mean(&values, CONFIDENCE)?);
        Some(bounds.with_allowance(self.timeout_allowance(metric)))
    }

    /// Returns by how much the mean would be higher with timeouts that are too rare to have occurred in these runs.
    pub fn timeout_allowance(&self, metric: Metric) -> Allowance {
        let stalls = self.timeouts.filter(|_| metric == Metric::ResponseTime);
        stalls.map_or(Allowance::default(), |stalls| stalls.allowance())
    }

    /// Returns the mean response time over the repetitions, in ms; `None` without a steady state, or if too few runs
    /// were completed.
    pub fn mean(&self) -> Option<Interval> {
        self.mean_of(Metric::ResponseTime)
    }

    /// Returns, for each interval of the timeline, its middle in s and the value of each repetition. Ends with the
    /// shortest repetition; empty if no timeline was recorded.
    pub fn over_time(&self, metric: Metric) -> Vec<(f64, Vec<f64>)> {
        let value = match metric {
            Metric::ResponseTime => Timeline::mean_ms,
            Metric::Throughput => Timeline::kbps,
            _ => return Vec::new(),
        };
        let Some(first) = self.timelines.first() else { return Vec::new() };
        let parts = self.timelines.iter().map(|timeline| timeline.parts.len()).min().unwrap_or(0);
        let at = |part| self.timelines.iter().filter_map(|timeline| value(timeline, part)).collect();
        (0..parts).map(|part| (first.middle_s(part), at(part))).collect()
    }

    /// Returns the median over the repetitions; a repetition without a value counts as the worst.
    pub fn median(&self, metric: Metric) -> Option<ConfidenceInterval> {
        let values: Vec<f64> = self
            .values_by_run(metric)
            .into_iter()
            .map(|value| value.unwrap_or(metric.worst_value()))
            .collect();
        ConfidenceInterval::of_median(&values, CONFIDENCE).filter(|median| median.value.is_finite())
    }

    /// Returns the number of repetitions without a value, which are not in the mean.
    pub fn runs_without_value(&self, metric: Metric) -> usize {
        self.values_by_run(metric).iter().filter(|value| value.is_none()).count()
    }

    /// Returns the number of repetitions without a meaningful value. These are repetitions that did not carry
    /// their load, or, if the metric is meaningful nevertheless, repetitions without any value.
    pub fn collapsed_runs_of(&self, metric: Metric) -> usize {
        if metric.info().needs_load { self.collapsed_runs() } else { self.runs_without_value(metric) }
    }

    /// Explains in a few words why the metric has no mean.
    pub fn describe_missing_mean(&self) -> &'static str {
        if !self.is_mostly_completed() {
            "most runs ended early"
        } else if self.is_steady {
            "no run has a value"
        } else {
            "no steady state"
        }
    }

    /// Returns the distribution of a time: over all messages, or over the repetitions if each has one value.
    pub fn distribution(&self, metric: Metric) -> Distribution {
        match metric {
            Metric::ResponseTime | Metric::Tail => self.latency.clone(),
            _ if metric.info().is_time_of_run => {
                let mut recorder = Recorder::new();
                for value in self.values_by_run(metric) {
                    match value {
                        Some(ms) => recorder.count_completed(Duration::from_secs_f64(ms / 1000.0)),
                        None => recorder.count_failure(),
                    }
                }
                recorder.finish()
            }
            _ => Distribution::default(),
        }
    }

    /// Returns the value of the closed form; `None` if it does not apply.
    pub fn closed_form(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::ResponseTime => closed_form::mean(self),
            Metric::Throughput => self.flows.as_ref()?.ceiling_kbps,
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, flow, set};

    #[test]
    fn unfinished_run_is_counted_but_not_in_the_mean() {
        let mut cell = flow("TCP", &[], &[100.0, 110.0, 120.0], 385.0);
        set(&mut cell, Metric::Throughput, vec![Some(100.0), Some(110.0), None]);
        let mean = cell.mean_of(Metric::Throughput).unwrap();
        assert_eq!((mean.mean, mean.n, cell.runs_without_value(Metric::Throughput)), (105.0, 2, 1));
    }

    #[test]
    fn runs_that_end_early_are_not_in_the_mean() {
        let mut cell = cell("SCTP-8", 1.0, 100.0, &[21.0, 21.2, 900.0]);
        (cell.stop_reason, cell.ended_early) = (Some("behind schedule".to_owned()), vec![false, false, true]);
        let mean = cell.mean_of(Metric::ResponseTime).unwrap();
        assert!((mean.mean - 21.1).abs() < 1e-9 && mean.n == 2, "{mean:?}");
        assert_eq!((cell.runs_without_value(Metric::ResponseTime), cell.collapsed_runs()), (1, 1));
        assert_eq!(cell.median(Metric::ResponseTime).unwrap().value, 21.2);
        cell.ended_early = vec![false, true, true];
        assert_eq!(cell.mean_of(Metric::ResponseTime), None);
    }

    #[test]
    fn mean_and_tail_need_a_steady_state() {
        let mut cell = cell("SCTP-8", 0.0, 10_000.0, &[56.9; 10]);
        cell.is_steady = false;
        assert_eq!([Metric::ResponseTime, Metric::Tail].map(|metric| cell.mean_of(metric)), [None; 2]);
        assert_eq!((cell.means(), cell.why_no_mean().is_some()), (None, true));
    }

    #[test]
    fn run_that_never_connects_exceeds_every_time() {
        let mut cell = flow("TCP", &[], &[100.0, 110.0], 385.0);
        set(&mut cell, Metric::ConnectTime, vec![Some(50.0), None]);
        let connects = cell.distribution(Metric::ConnectTime);
        assert_eq!((connects.offered(), connects.share_above(Duration::from_secs(60))), (2, Some(0.5)));
    }
}
