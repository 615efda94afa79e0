//! Estimates how long a plan takes on this machine: measures short runs of some points and extrapolates by the number of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::archive::Archive;
use crate::job::Job;
use crate::plan::Plan;
use crate::point::{Point, PointId};
use crate::repetitions::Repetitions;
use crate::run;
use crate::stopwatch::Stopwatch;

/// The largest number of points to measure; they are spread evenly over the plan.
const MAX_PILOTS: usize = 24;
/// The time limit of the measurement, in seconds.
const TIME_LIMIT: f64 = 2.0;
/// The numbers of messages in the two measured runs. The difference of their costs gives the cost of a message, the remainder the cost
/// of a run.
const PILOT_MESSAGES: [u64; 2] = [100, 400];
/// The maximum cost of a run in µs, not counting its messages; points with a higher cost are not measured.
const EXPENSIVE_RUN_US: u64 = 10_000;

/// The cost of a point's runs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    run: f64,
    message: f64,
}

/// The duration of a plan, in seconds on an idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The duration with the least number of repetitions.
    pub min: f64,
    /// The duration with the largest number of repetitions that the precision may need.
    pub max: f64,
}

impl Plan {
    /// Estimates the duration with this many parallel jobs.
    pub fn estimate(&self, jobs: usize) -> Estimate {
        let measured = measure_all(pilots(self.points()));
        let correction = correction(self.points(), &measured);
        let mut seen = BTreeSet::new();
        let points: Vec<(&Point, Cost)> = (self.points().iter())
            .filter(|point| seen.insert(point.id))
            .map(|point| {
                (
                    point,
                    measured.get(&point.id).copied().unwrap_or_else(|| stated_cost(point).times(correction)),
                )
            })
            .collect();
        let time = |repetitions: fn(&Point) -> u32| {
            let runs =
                points.iter().map(|(point, cost)| (repetitions(point), cost.of_run(point.messages_in(0))));
            let (sum, longest) = runs.fold((0.0, 0.0), |(sum, longest): (f64, f64), (count, run)| {
                (sum + f64::from(count) * run, longest.max(run))
            });
            (sum / jobs.max(1) as f64).max(longest)
        };
        Estimate { min: time(|point| point.repetitions.min), max: time(Point::max_repetitions) }
    }
}

impl Cost {
    fn of_run(self, messages: u64) -> f64 {
        self.run + self.message * messages as f64
    }

    fn times(self, factor: f64) -> Self {
        Self { run: self.run * factor, message: self.message * factor }
    }
}

/// Returns the cost that the point's world states.
fn stated_cost(point: &Point) -> Cost {
    let cost = point.world.open().map(|world| world.cost());
    cost.map_or(Cost { run: 0.0, message: 0.0 }, |cost| Cost {
        run: cost.run as f64 / 1e6,
        message: cost.message as f64 / 1e6,
    })
}

/// Returns the ratio of the measured cost of the measured points to their stated cost.
fn correction(points: &[Point], measured: &BTreeMap<PointId, Cost>) -> f64 {
    let pairs = points.iter().filter_map(|point| Some((point, measured.get(&point.id)?)));
    let (took, said) = pairs.fold((0.0, 0.0), |(took, said), (point, cost)| {
        let messages = point.messages_in(0);
        (took + cost.of_run(messages), said + stated_cost(point).of_run(messages))
    });
    if said > 0.0 { took / said } else { 1.0 }
}

/// Returns the points to measure: those with a cheap run, spread evenly over the plan.
fn pilots(points: &[Point]) -> Vec<Point> {
    let cheap = |point: &&Point| point.world.open().is_ok_and(|world| world.cost().run < EXPENSIVE_RUN_US);
    let cheap: Vec<&Point> = points.iter().filter(cheap).collect();
    let count = cheap.len().min(MAX_PILOTS);
    (0..count).map(|index| cheap[index * cheap.len() / count].clone()).collect()
}

/// Measures the cost of points within the time limit. A run that takes longer continues in its thread and is ignored.
fn measure_all(pilots: Vec<Point>) -> BTreeMap<PointId, Cost> {
    let (done, measured) = mpsc::channel();
    let watch = Stopwatch::start();
    thread::spawn(move || pilots.iter().try_for_each(|point| done.send((point.id, measure(point)))));
    let next =
        || measured.recv_timeout(Duration::from_secs_f64((TIME_LIMIT - watch.seconds()).max(0.0))).ok();
    std::iter::from_fn(next).filter_map(|(id, cost)| Some((id, cost?))).collect()
}

fn measure(point: &Point) -> Option<Cost> {
    let [few, many] = PILOT_MESSAGES.map(|messages| messages.min(point.messages_in(0)));
    let [short, long] = [seconds(point, few)?, seconds(point, many)?];
    if few == many {
        return Some(Cost { run: 0.0, message: short.min(long) / few as f64 });
    }
    let message = (long - short).max(0.0) / (many - few) as f64;
    Some(Cost { run: (short - message * few as f64).max(0.0), message })
}

fn seconds(point: &Point, messages: u64) -> Option<f64> {
    let short = Point { messages, repetitions: Repetitions::fixed(1), ..point.clone() };
    let watch = Stopwatch::start();
    run::run(Job { point: &short, repetition: 0 }, &Archive::default(), &mut |_| true).ok()?;
    Some(watch.seconds())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::source::Source;

    fn points(text: &str) -> Vec<Point> {
        let text = format!("transports = ['tcp', 'sctp']\n{text}");
        Experiment::parse("a", &Source::new("a", text)).unwrap().points
    }

    #[test]
    fn measured_costs_correct_the_stated_costs_of_other_points() {
        let points = points("messages = 1000\nrepetitions = 1");
        let stated_cost = stated_cost(&points[0]);
        let measured = BTreeMap::from([(points[0].id, stated_cost.times(3.0))]);
        assert!((correction(&points, &measured) - 3.0).abs() < 1e-9);
        assert_eq!(correction(&points, &BTreeMap::new()), 1.0);
    }

    #[test]
    fn more_jobs_take_less_time_but_not_less_than_the_longest_run() {
        let plan = Plan::of_points(points("messages = 1000\nrepetitions = '2..8'\nprecision = '1%'"));
        let Estimate { min, max } = plan.estimate(1);
        assert!(0.0 < min && min < max, "{min} {max}");
    }

    #[test]
    fn pilots_are_few_and_spread_over_the_plan() {
        let points = points("[sweep]\nseed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]");
        let pilots: Vec<PointId> = pilots(&points).iter().map(|point| point.id).collect();
        assert_eq!((pilots.len(), pilots[0]), (MAX_PILOTS, points[0].id));
        assert!(pilots.contains(&points[28].id), "of both transports");
    }
}
