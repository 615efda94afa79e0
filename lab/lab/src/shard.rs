//! Shards: parts of a plan for several machines that do not communicate.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::job::Job;
use crate::point::{Point, PointId, RunKey};

/// A shard such as `2/4`: the second of four parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Shard {
    /// The number of parts.
    part_count: usize,
    /// The number of this part, from 1.
    part_number: usize,
}

/// The largest number of parts; a larger number is considered a mistake.
const MAX_PARTS: usize = 100_000;

/// The runs that belong to one part of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShardRuns {
    /// The points of which this part contains all repetitions. The number of their repetitions depends on the first
    /// results, so that they cannot be divided.
    points: BTreeSet<PointId>,
    runs: BTreeSet<RunKey>,
    /// The approximate processor time of the runs, in µs, with the smallest number of repetitions.
    work: u64,
}

/// The smallest unit that is assigned to one machine.
enum Unit {
    Point(PointId),
    Run(RunKey),
}

impl Shard {
    /// Returns all shards of a plan that is divided into this many parts.
    pub fn all(part_count: usize) -> impl Iterator<Item = Self> {
        (1..=part_count.min(MAX_PARTS)).map(move |part_number| Self { part_count, part_number })
    }

    /// Returns the number of parts.
    pub const fn part_count(self) -> usize {
        self.part_count
    }

    /// Returns the runs of this part.
    pub(crate) fn runs_of_part(self, points: &[Point]) -> ShardRuns {
        divide_runs(points, self.part_count).swap_remove(self.part_number - 1)
    }
}

impl ShardRuns {
    /// Returns whether a run belongs to this part.
    pub(crate) fn includes(&self, key: RunKey) -> bool {
        self.points.contains(&key.point) || self.runs.contains(&key)
    }

    /// Returns the approximate processor time of the runs, in µs.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }
}

/// Divides the runs into parts of about equal processor time: takes the longest run first, and adds each run to the
/// part with the smallest sum so far. The division depends only on the points, so that each machine computes the same
/// one.
pub(crate) fn divide_runs(points: &[Point], part_count: usize) -> Vec<ShardRuns> {
    let mut units = units(points);
    units.sort_by_key(|(work, _)| Reverse(*work));
    let mut shares = vec![ShardRuns::default(); part_count];
    let mut min: BinaryHeap<Reverse<(u64, usize)>> =
        (0..part_count).map(|place| Reverse((0, place))).collect();
    for (work, unit) in units {
        let Some(Reverse((_, place))) = min.pop() else { break };
        let share = &mut shares[place];
        match unit {
            Unit::Point(id) => drop(share.points.insert(id)),
            Unit::Run(key) => drop(share.runs.insert(key)),
        }
        // A run without a known cost counts as 1 µs.
        share.work += work.max(1);
        min.push(Reverse((share.work, place)));
    }
    shares
}

fn units(points: &[Point]) -> Vec<(u64, Unit)> {
    // Experiments may share a point and need different numbers of repetitions.
    let mut by_id: BTreeMap<PointId, Vec<&Point>> = BTreeMap::new();
    points.iter().for_each(|point| by_id.entry(point.id).or_default().push(point));
    let mut units = Vec::new();
    for (id, points) in by_id {
        let Some(max) = points.iter().max_by_key(|point| point.repetitions.min) else { continue };
        let runs = (0..max.repetitions.min).map(|repetition| Job { point: max, repetition });
        if points.iter().any(|point| point.precision.is_some()) {
            units.push((runs.map(|run| run.work()).fold(0, u64::saturating_add), Unit::Point(id)));
        } else {
            units.extend(runs.map(|run| (run.work(), Unit::Run(run.key()))));
        }
    }
    units
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        parts
            .filter(|(number, of)| (1..=*of).contains(number) && *of <= MAX_PARTS)
            .map(|(number, of)| Self { part_count: of, part_number: number })
            .ok_or_else(|| {
                format!(
                    "{text:?} is not a shard; write 1/4 to 4/4 for the parts of four (maximum {MAX_PARTS} parts)"
                )
            })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part_number, self.part_count)
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::plan::Plan;
    use crate::run_results::RunResults;
    use crate::source::Source;

    fn points(text: &str) -> Vec<Point> {
        let text = format!("transports = ['tcp', 'sctp']\n{text}");
        Experiment::parse("a", &Source::new("a", text)).unwrap().points
    }

    #[test]
    fn shards_are_parsed_and_out_of_range_ones_refused() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        assert_eq!(Shard::all(3).map(|shard| shard.to_string()).collect::<Vec<_>>(), ["1/3", "2/3", "3/3"]);
        for wrong in ["0/4", "5/4", "1/0", "1", "1/", "/4", "a/b", "-1/4", "1/100001", "1/4/4"] {
            assert!(wrong.parse::<Shard>().unwrap_err().contains("1/4 to 4/4"), "{wrong}");
        }
    }

    #[test]
    fn every_run_is_in_one_part_and_the_parts_take_about_the_same_time() {
        let points = points("repetitions = 7\n[sweep]\nmessages = [100, 1000, 7000]");
        let plan = Plan::of_points(points.clone());
        let all = plan.next_runs(&RunResults::default());
        let longest = all.iter().map(Job::work).max().unwrap();
        for of in [1, 2, 3, 5, 13, 14, 40] {
            let shares = divide_runs(&points, of);
            for run in &all {
                assert_eq!(shares.iter().filter(|share| share.includes(run.key())).count(), 1, "{of}");
            }
            let work = || shares.iter().map(ShardRuns::work);
            assert!(work().max().unwrap() - work().min().unwrap() <= longest, "{of}");
        }
    }

    #[test]
    fn a_point_with_a_precision_is_in_one_shard() {
        let points = points("messages = 900\nrepetitions = '3..9'\nprecision = '1%'\n[sweep]\nseed = [1, 2]");
        let shares = divide_runs(&points, 3);
        for point in &points {
            let has = |share: &&ShardRuns| {
                (0..9).all(|repetition| share.includes(RunKey { point: point.id, repetition }))
            };
            assert_eq!(shares.iter().filter(has).count(), 1);
        }
    }
}
