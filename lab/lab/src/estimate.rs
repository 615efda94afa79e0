//! How long a plan takes on this machine: short runs of its own points are measured, and what they took goes on with their messages.

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

/// So many points are measured, spread over the plan.
const MOST_PILOTS: usize = 24;
/// Measuring ends after so many seconds, done or not.
const PATIENCE: f64 = 2.0;
/// Messages of the two runs that are measured: from one to the other the cost of a message is read, before the first that of a run.
const PILOT_MESSAGES: [u64; 2] = [100, 400];
/// A run that costs as many µs before its first message is not for trying.
const DEAR: u64 = 10_000;

/// Seconds that runs of a point take.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    run: f64,
    message: f64,
}

/// How long a plan takes, in seconds of a machine that does nothing else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// With the least number of repetitions.
    pub least: f64,
    /// With all that a precision may ask for.
    pub most: f64,
}

impl Plan {
    /// About how long it takes with so many jobs at a time.
    pub fn estimate(&self, jobs: usize) -> Estimate {
        let measured = measured(pilots(self.points()));
        let correction = correction(self.points(), &measured);
        let mut seen = BTreeSet::new();
        let points: Vec<(&Point, Cost)> = (self.points().iter())
            .filter(|point| seen.insert(point.id))
            .map(|point| {
                (point, measured.get(&point.id).copied().unwrap_or_else(|| stated(point).times(correction)))
            })
            .collect();
        let time = |repetitions: fn(&Point) -> u32| {
            let runs = points.iter().map(|(point, cost)| (repetitions(point), cost.of(point.messages_in(0))));
            let (sum, longest) = runs.fold((0.0, 0.0), |(sum, longest): (f64, f64), (count, run)| {
                (sum + f64::from(count) * run, longest.max(run))
            });
            (sum / jobs.max(1) as f64).max(longest)
        };
        Estimate { least: time(|point| point.repetitions.least), most: time(Point::most_repetitions) }
    }
}

impl Cost {
    fn of(self, messages: u64) -> f64 {
        self.run + self.message * messages as f64
    }

    fn times(self, factor: f64) -> Self {
        Self { run: self.run * factor, message: self.message * factor }
    }
}

/// What the world of a point says of itself.
fn stated(point: &Point) -> Cost {
    let cost = point.world.open().map(|world| world.cost());
    cost.map_or(Cost { run: 0.0, message: 0.0 }, |cost| Cost {
        run: cost.run as f64 / 1e6,
        message: cost.message as f64 / 1e6,
    })
}

/// How many times longer than stated the measured points take together.
fn correction(points: &[Point], measured: &BTreeMap<PointId, Cost>) -> f64 {
    let pairs = points.iter().filter_map(|point| Some((point, measured.get(&point.id)?)));
    let (took, said) = pairs.fold((0.0, 0.0), |(took, said), (point, cost)| {
        let messages = point.messages_in(0);
        (took + cost.of(messages), said + stated(point).of(messages))
    });
    if said > 0.0 { took / said } else { 1.0 }
}

/// The points to measure: where a run is cheap, and evenly over the plan.
fn pilots(points: &[Point]) -> Vec<Point> {
    let cheap = |point: &&Point| point.world.open().is_ok_and(|world| world.cost().run < DEAR);
    let cheap: Vec<&Point> = points.iter().filter(cheap).collect();
    let count = cheap.len().min(MOST_PILOTS);
    (0..count).map(|index| cheap[index * cheap.len() / count].clone()).collect()
}

/// What the points cost, as far as patience lasts; what still runs then is left to itself.
fn measured(pilots: Vec<Point>) -> BTreeMap<PointId, Cost> {
    let (done, measured) = mpsc::channel();
    let watch = Stopwatch::start();
    thread::spawn(move || pilots.iter().try_for_each(|point| done.send((point.id, measure(point)))));
    let next = || measured.recv_timeout(Duration::from_secs_f64((PATIENCE - watch.seconds()).max(0.0))).ok();
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
    fn what_was_measured_corrects_what_is_stated_of_the_others() {
        let points = points("messages = 1000\nrepetitions = 1");
        let stated = stated(&points[0]);
        let measured = BTreeMap::from([(points[0].id, stated.times(3.0))]);
        assert!((correction(&points, &measured) - 3.0).abs() < 1e-9);
        assert_eq!(correction(&points, &BTreeMap::new()), 1.0);
    }

    #[test]
    fn more_jobs_take_less_time_but_not_less_than_the_longest_run() {
        let plan = Plan::of_points(points("messages = 1000\nrepetitions = '2..8'\nprecision = '1%'"));
        let Estimate { least, most } = plan.estimate(1);
        assert!(0.0 < least && least < most, "{least} {most}");
    }

    #[test]
    fn pilots_are_few_and_spread_over_the_plan() {
        let points = points("[sweep]\nseed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]");
        let pilots: Vec<PointId> = pilots(&points).iter().map(|point| point.id).collect();
        assert_eq!((pilots.len(), pilots[0]), (MOST_PILOTS, points[0].id));
        assert!(pilots.contains(&points[28].id), "of both transports");
    }
}
