//! Estimates how long a plan takes on this machine: measures short runs of some points and extrapolates by the number of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::SQRT_2;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::archive::Archive;
use crate::job::Job;
use crate::plan::Plan;
use crate::point::{Point, PointId};
use crate::repetitions::Repetitions;
use crate::run;
use crate::stopwatch::{Stopwatch, ThreadTimer};

/// The largest number of points whose runs are measured for the estimate; they are spread evenly over the plan.
const MAX_PILOTS: usize = 96;
/// The time limit of all measurements together, in seconds.
const TIME_LIMIT: f64 = 2.0;
/// The numbers of messages in the two measured runs of a point. The difference of their costs gives the cost of a
/// message; the remainder is the cost of a run.
const PILOT_MESSAGES: [u64; 2] = [100, 400];
/// The golden ratio, (1 + √5) / 2.
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;
/// Number of messages in the warm-up run that precedes the measured runs.
const WARM_UP_MESSAGES: u64 = 10;
/// The processor time that tables and report need for each point, in seconds. For experiments with 24 to 162
/// points, it was 6 to 10 ms per point.
const TABLES_OF_POINT: f64 = 0.008;
/// The maximum cost of a run in µs, not counting its messages; points with a higher cost are not measured.
const EXPENSIVE_RUN_US: u64 = 10_000;

/// The processor time of a point's runs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    run: f64,
    message: f64,
}

/// The estimated duration of a plan on an idle machine, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The duration with the smallest number of repetitions.
    pub min: f64,
    /// The duration with the largest number of repetitions that the precision may need.
    pub max: f64,
}

impl Plan {
    /// Estimates the duration with this many parallel jobs.
    pub fn estimate(&self, jobs: usize) -> Estimate {
        let measured = measure_all(pilots(self.points()));
        let overall = correction(self.points(), &measured).unwrap_or(1.0);
        // Experiments of a study have workloads of their own.
        let of_experiment: BTreeMap<&str, f64> = self
            .points()
            .chunk_by(|a, b| a.experiment == b.experiment)
            .filter_map(|points| Some((points[0].experiment.as_str(), correction(points, &measured)?)))
            .collect();
        let corrected = |point: &Point| {
            let factor = of_experiment.get(point.experiment.as_str()).copied().unwrap_or(overall);
            stated_cost(point).times(factor)
        };
        let mut seen = BTreeSet::new();
        let points: Vec<(&Point, Cost)> = (self.points().iter())
            .filter(|point| seen.insert(point.id))
            .map(|point| (point, measured.get(&point.id).copied().unwrap_or_else(|| corrected(point))))
            .collect();
        let time = |repetitions: fn(&Point) -> u32| {
            let runs =
                points.iter().map(|(point, cost)| (repetitions(point), cost.of_run(point.messages_in(0))));
            let (sum, longest) = runs.fold((0.0, 0.0), |(sum, longest): (f64, f64), (count, run)| {
                (sum + f64::from(count) * run, longest.max(run))
            });
            // The tables are written by one thread when all runs are done.
            (sum / jobs.max(1) as f64).max(longest) + TABLES_OF_POINT * points.len() as f64
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

/// Returns the cost that the point's world gives for its runs.
fn stated_cost(point: &Point) -> Cost {
    let cost = point.world.open().map(|world| world.cost());
    cost.map_or(Cost { run: 0.0, message: 0.0 }, |cost| Cost {
        run: cost.run as f64 / 1e6,
        message: cost.message as f64 / 1e6,
    })
}

/// Returns the ratio of measured cost to stated cost, over all measured points; `None` if no point was measured.
fn correction(points: &[Point], measured: &BTreeMap<PointId, Cost>) -> Option<f64> {
    let pairs = points.iter().filter_map(|point| Some((point, measured.get(&point.id)?)));
    let (took, said) = pairs.fold((0.0, 0.0), |(took, said), (point, cost)| {
        let messages = point.messages_in(0);
        (took + cost.of_run(messages), said + stated_cost(point).of_run(messages))
    });
    (said > 0.0).then_some(took / said)
}

/// Returns the points to measure: one point with cheap runs from each equal part of the plan. In case the time is too
/// short for all, even the first few of them are spread over the plan.
fn pilots(points: &[Point]) -> Vec<Point> {
    // The fractional parts of an irrational number's multiples are evenly spread and have no period. Transports repeat
    // in the plan: points at equal distances might all have the same transport.
    let spread = |part: usize, irrational: f64| (part as f64 * irrational).fract();
    let cheap = |point: &&Point| point.world.open().is_ok_and(|world| world.cost().run < EXPENSIVE_RUN_US);
    let cheap: Vec<&Point> = points.iter().filter(cheap).collect();
    let count = cheap.len().min(MAX_PILOTS);
    let mut parts: Vec<usize> = (0..count).collect();
    parts.sort_by(|a, b| spread(*a, GOLDEN_RATIO).total_cmp(&spread(*b, GOLDEN_RATIO)));
    let length = cheap.len() as f64 / count.max(1) as f64;
    let place = |part: usize| ((part as f64 + spread(part, SQRT_2)) * length) as usize;
    parts.into_iter().map(|part| cheap[place(part).min(cheap.len() - 1)].clone()).collect()
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
    // The first run of a process also loads code and fills caches, which takes as long as hundreds of messages.
    seconds(point, WARM_UP_MESSAGES.min(point.messages_in(0)))?;
    let [few, many] = PILOT_MESSAGES.map(|messages| messages.min(point.messages_in(0)));
    let [short, long] = [seconds(point, few)?, seconds(point, many)?];
    if few == many {
        return Some(Cost { run: 0.0, message: short.min(long) / few as f64 });
    }
    let message = (long - short).max(0.0) / (many - few) as f64;
    Some(Cost { run: (short - message * few as f64).max(0.0), message })
}

/// Returns the processor time of a run in seconds. Unlike wall-clock time, it does not depend on other programs of this
/// machine.
fn seconds(point: &Point, messages: u64) -> Option<f64> {
    let short = Point { messages, repetitions: Repetitions::fixed(1), ..point.clone() };
    let watch = ThreadTimer::start();
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
        assert!((correction(&points, &measured).unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(correction(&points, &BTreeMap::new()), None);
    }

    #[test]
    fn more_jobs_take_less_time_but_not_less_than_the_longest_run() {
        let plan = Plan::of_points(points("messages = 1000\nrepetitions = '2..8'\nprecision = '1%'"));
        let Estimate { min, max } = plan.estimate(1);
        assert!(0.0 < min && min < max, "{min} {max}");
    }

    /// Two transports alternate, also in a plan of twice as many points as are measured.
    #[test]
    fn pilots_are_few_and_have_all_transports_and_parts_of_the_plan() {
        for seeds in [12, 24, 36, 48, 96, 144, 480] {
            let seeds: Vec<String> = (1..=seeds).map(|seed: u32| seed.to_string()).collect();
            let points = points(&format!("[sweep]\nseed = [{}]", seeds.join(", ")));
            let pilots = pilots(&points);
            assert_eq!(pilots.len(), points.len().min(MAX_PILOTS));
            // There may be time only for a part.
            for some in [&pilots[..], &pilots[..pilots.len() / 2], &pilots[..12]] {
                let middle = some.len() / 4..=some.len() * 3 / 4;
                let tcp = some.iter().filter(|point| point.label == "tcp").count();
                assert!(middle.contains(&tcp), "{} points: {tcp} of {}", points.len(), some.len());
                let late: BTreeSet<PointId> =
                    points[points.len() / 2..].iter().map(|point| point.id).collect();
                let late = some.iter().filter(|pilot| late.contains(&pilot.id)).count();
                assert!(middle.contains(&late), "{} points: {late} of {}", points.len(), some.len());
            }
        }
    }
}
