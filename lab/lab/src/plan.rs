//! The list of runs to be performed, which is deterministic.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use hol_measure::Precision;
use hol_scenario::World;

use crate::experiment::Experiment;
use crate::job::Job;
use crate::manifest::Manifest;
use crate::point::{Point, RunKey};
use crate::repetitions::Repetitions;
use crate::run_result::RunResult;
use crate::run_results::RunResults;
use crate::shard::{ShardRuns, divide_runs};
use crate::worlds::WorldName;

/// All points of one or several experiments, in order.
#[derive(Debug, Clone)]
pub struct Plan {
    points: Vec<Point>,
    /// The runs that this machine has to perform; `None` if it performs all runs.
    share: Option<ShardRuns>,
}

impl Plan {
    /// Creates a plan of all points of `experiments`.
    pub fn new<'e>(experiments: impl IntoIterator<Item = &'e Experiment>) -> Self {
        Self::of_points(experiments.into_iter().flat_map(|e| e.points.clone()).collect())
    }

    /// Creates a plan of points whose settings are complete.
    pub const fn of_points(points: Vec<Point>) -> Self {
        Self { points, share: None }
    }

    /// Returns the points of the plan.
    pub fn into_points(self) -> Vec<Point> {
        self.points
    }

    /// Creates the plan of a manifest: all of its points, or the part that belongs to its directory.
    pub fn of_manifest(manifest: &Manifest) -> Self {
        let points = manifest.points.clone();
        let share = manifest.shard.map(|shard| shard.runs_of_part(&points));
        Self { points, share }
    }

    /// Divides the plan into `part_count` parts. Returns the approximate processor time of each part, in µs, with
    /// the smallest number of repetitions.
    pub fn work_of_parts(&self, part_count: usize) -> Vec<u64> {
        divide_runs(&self.points, part_count).iter().map(ShardRuns::work).collect()
    }

    /// Returns whether a run has to be performed on this machine.
    pub(crate) fn includes(&self, key: RunKey) -> bool {
        self.share.as_ref().is_none_or(|share| share.includes(key))
    }

    /// Returns all points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns how many messages all points send with the smallest number of repetitions.
    pub fn message_count(&self) -> u64 {
        self.next_runs(&RunResults::default()).iter().map(Job::message_count).fold(0, u64::saturating_add)
    }

    /// Returns the number of messages with the largest number of repetitions that `precision` may require.
    pub fn max_messages(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let of = |point: &Point| {
            let each = point.messages / u64::from(point.repetitions.min);
            each.saturating_mul(point.max_repetitions().into())
        };
        let points = self.points.iter().filter(|point| seen.insert(point.id));
        points.map(of).fold(0, u64::saturating_add).max(self.message_count())
    }

    /// Returns the runs to perform next, the longest first; empty if every point is precise enough. Among
    /// equally long runs the first repetitions come first, so that an interrupted sweep has results of every
    /// point.
    pub fn next_runs(&self, finished: &RunResults) -> Vec<Job<'_>> {
        let mut seen = BTreeSet::new();
        let mut jobs = Vec::new();
        for point in &self.points {
            for repetition in 0..repetitions_needed(point, finished) {
                let key = RunKey { point: point.id, repetition };
                // Two experiments may share a point; it is run once.
                if self.includes(key) && !finished.contains(key) && seen.insert(key) {
                    jobs.push(Job { point, repetition });
                }
            }
        }
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.message_count()), job.repetition));
        jobs
    }
}

/// Returns each world in which `jobs` run, with the number of its jobs.
pub(crate) fn count_by_world(jobs: &[Job<'_>]) -> Vec<(Arc<dyn World>, usize)> {
    let mut counts: BTreeMap<&WorldName, usize> = BTreeMap::new();
    for job in jobs {
        *counts.entry(&job.point.world).or_default() += 1;
    }
    counts.into_iter().filter_map(|(name, count)| Some((name.open().ok()?, count))).collect()
}

/// Returns how many repetitions a point needs. Results are considered in the order of the repetitions, so it does not
/// matter in which order runs finish.
pub(crate) fn repetitions_needed(point: &Point, finished: &RunResults) -> u32 {
    let Repetitions { min, max } = point.repetitions;
    let Some(precision) = point.precision else { return min };
    let rule = Precision { min: min.into(), max: max.into(), relative: precision.value() };
    let runs: Vec<&RunResult> = finished.runs_of(point.id).map(Arc::as_ref).collect();
    if let Some(enough) = (1..=runs.len()).find(|n| is_enough(rule, &runs[..*n])) {
        return enough as u32;
    }
    let mut needed = min;
    while needed as usize <= runs.len() {
        needed = point.repetitions.next_target(needed);
    }
    needed
}

/// Returns whether a point needs no more repetitions: the mean is precise, or more than half of the maximum number of
/// repetitions have already ended early. In the second case the point has no mean, and further repetitions cannot change
/// that.
fn is_enough(rule: Precision, runs: &[&RunResult]) -> bool {
    let ended_early = runs.iter().filter(|run| run.stop_reason.is_some()).count() as u64;
    let means: Vec<f64> = runs.iter().filter_map(|run| run.summary.latency.mean_ms()).collect();
    let is_precise = means.len() == runs.len() && rule.is_reached(&means);
    is_precise
        || runs.len() as u64 >= rule.max
        || (runs.len() as u64 >= rule.min && 2 * ended_early > rule.max)
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, point) in self.points.iter().enumerate() {
            let Point { id, messages, repetitions, .. } = point;
            writeln!(f, "{index:>5}  {id}  {point}  ({messages} messages in {repetitions} repetitions)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn plan() -> Plan {
        let text = "transports = ['tcp']\nrepetitions = '3..20'\nprecision = '1%'";
        Plan::new([&Experiment::parse("test", &Source::new("test", text)).unwrap()])
    }

    fn finish(plan: &Plan, finished: &mut RunResults, means_ms: impl Fn(u32) -> u64) {
        for job in plan.next_runs(finished) {
            finished.insert(RunResult::with_mean(job.key(), means_ms(job.repetition)));
        }
    }

    #[test]
    fn repetitions_end_when_the_mean_is_precise() {
        let (plan, mut finished) = (plan(), RunResults::default());
        finish(&plan, &mut finished, |_| 20);
        assert_eq!((finished.runs().count(), plan.next_runs(&finished).len()), (3, 0));
    }

    #[test]
    fn repetitions_continue_to_their_limit_while_the_mean_is_uncertain() {
        let (plan, mut finished) = (plan(), RunResults::default());
        let mut counts = Vec::new();
        while !plan.next_runs(&finished).is_empty() {
            finish(&plan, &mut finished, |repetition| 20 + u64::from(repetition % 2) * 20);
            counts.push(finished.runs().count());
        }
        assert_eq!(counts, [3, 5, 8, 12, 18, 20]);
    }

    #[test]
    fn without_a_precision_the_minimum_number_is_enough() {
        let mut point = plan().points[0].clone();
        assert!(Plan::of_points(vec![point.clone()]).max_messages() > 6 * plan().message_count());
        point.precision = None;
        let plan = Plan::of_points(vec![point]);
        let mut finished = RunResults::default();
        finish(&plan, &mut finished, |repetition| 20 + u64::from(repetition));
        assert_eq!((finished.runs().count(), plan.next_runs(&finished).len()), (3, 0));
        assert_eq!(plan.max_messages(), plan.message_count());
    }

    #[test]
    fn repetitions_end_when_most_of_them_have_collapsed() {
        let (plan, mut finished) = (plan(), RunResults::default());
        let mut counts = Vec::new();
        while !plan.next_runs(&finished).is_empty() {
            for job in plan.next_runs(&finished) {
                let mut run = RunResult::with_mean(job.key(), 20 + u64::from(job.repetition % 2) * 20);
                // Of 20 repetitions, the eleventh that collapses is number 14 of all.
                run.stop_reason = (job.repetition >= 3).then(|| "behind schedule".to_owned());
                finished.insert(run);
            }
            counts.push(finished.runs().count());
        }
        assert_eq!(counts, [3, 5, 8, 12, 18]);
        assert_eq!(repetitions_needed(&plan.points[0], &finished), 14);
    }

    #[test]
    fn a_run_without_a_mean_leaves_the_precision_open() {
        let (plan, mut finished) = (plan(), RunResults::default());
        while !plan.next_runs(&finished).is_empty() {
            for job in plan.next_runs(&finished) {
                let mut run = RunResult::with_mean(job.key(), 20);
                if job.repetition == 1 {
                    run.summary = hol_measure::summarize(&[]);
                }
                finished.insert(run);
            }
        }
        assert_eq!(repetitions_needed(&plan.points[0], &finished), 20);
    }

    #[test]
    fn the_stop_depends_only_on_the_repetitions_in_their_order() {
        let (plan, point) = (plan(), plan().points[0].id);
        let mut finished = RunResults::default();
        for repetition in (0..8).rev() {
            // The mean is precise after four repetitions; the later ones must not count.
            let mean = [20_000, 20_300, 20_150, 20_150, 90_000, 1, 5, 7][repetition as usize];
            finished.insert(RunResult::with_mean(RunKey { point, repetition }, mean));
        }
        assert_eq!(repetitions_needed(&plan.points[0], &finished), 4);
        assert_eq!(plan.point_results(&finished)[0].runs.len(), 4);
    }
}
