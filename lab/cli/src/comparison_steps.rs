//! Chooses the number of messages of a comparison if the user does not: it needs enough messages for clear conclusions,
//! within a budget.
//!
//! The budget is counted in packets, not by the clock, so that the same command gives the same answer on every machine.

use hol_base::Duration;
use hol_lab::{Experiment, Point, PointResult, Repetitions};
use hol_report::data::Cell;
use hol_report::survey::{TransportComparison, main_metric};

/// Packets simulated per second of processor time, approximately.
const PACKETS_PER_SECOND: f64 = 1.4e6;
/// Seconds of processor time that the first step may take.
const FIRST_STEP_SECONDS: f64 = 2.0;
/// Possible numbers of messages in the first step. hol chooses the largest number that it can simulate within
/// `FIRST_STEP_SECONDS`, or the smallest one if all take longer.
const FIRST_MESSAGES: [u64; 5] = [200_000, 100_000, 50_000, 20_000, 10_000];
/// Number of repetitions in the first step of a comparison.
const FIRST_REPETITIONS: u32 = 10;
/// Number of messages in each of the two pilot runs, which show how many packets a message takes and whether runs
/// differ.
const PILOT_MESSAGES: u64 = 100;

/// The steps of a comparison. Each step has twice as many repetitions as the one before.
#[derive(Debug, Clone, Copy)]
pub struct ComparisonSteps {
    packets: f64,
}

impl ComparisonSteps {
    /// Creates steps that together use at most about `budget` of processor time.
    pub fn with_budget(budget: Duration) -> Self {
        Self { packets: budget.as_secs_f64() * PACKETS_PER_SECOND }
    }

    /// Returns an experiment with two short runs of each point.
    pub fn pilot_experiment(experiment: &Experiment) -> Experiment {
        with_repetitions(experiment, PILOT_MESSAGES, 2)
    }

    /// Returns the first step, whose size depends on the number of packets in the pilot runs. It is the only step
    /// if nothing in the pilot runs was random.
    pub fn first_step(experiment: &Experiment, pilot: &[PointResult]) -> Experiment {
        let min = FIRST_MESSAGES[FIRST_MESSAGES.len() - 1];
        if pilot.iter().all(is_deterministic) {
            return with_repetitions(experiment, min / u64::from(FIRST_REPETITIONS), 2);
        }
        let each: f64 = pilot.iter().map(|result| packet_count(result) / (2 * PILOT_MESSAGES) as f64).sum();
        let fits = |messages: &&u64| **messages as f64 * each <= FIRST_STEP_SECONDS * PACKETS_PER_SECOND;
        let messages = FIRST_MESSAGES.iter().find(fits).copied().unwrap_or(min);
        with_repetitions(experiment, messages / u64::from(FIRST_REPETITIONS), FIRST_REPETITIONS)
    }

    /// Returns the next step; `None` if each conclusion is clear, or if the budget is exhausted.
    pub fn next_step(self, experiment: &Experiment, results: &[PointResult]) -> Option<Experiment> {
        let cells: Vec<Cell> = results.iter().map(Cell::from).collect();
        let metric = main_metric(cells.iter());
        let is_decisive =
            cells.iter().skip(1).all(|cell| TransportComparison::new(metric, cell, &cells[0]).is_decisive());
        let taken: f64 = results.iter().map(packet_count).sum();
        let point = experiment.points.first()?;
        let repetitions = 2 * point.repetitions.min;
        (!is_decisive && 2.0 * taken <= self.packets)
            .then(|| with_repetitions(experiment, point.messages_in(0), repetitions))
    }
}

/// Returns the experiment with `repetitions` runs of `each` messages at every point.
pub fn with_repetitions(experiment: &Experiment, each: u64, repetitions: u32) -> Experiment {
    let sized = |point: &Point| {
        let messages = each * u64::from(repetitions);
        let repetitions = Repetitions::fixed(repetitions);
        let mut point = Point { messages, repetitions, ..point.clone() };
        point.id = point.identity();
        point
    };
    Experiment { points: experiment.points.iter().map(sized).collect(), ..experiment.clone() }
}

fn packet_count(result: &PointResult) -> f64 {
    result.packets() as f64
}

/// Returns whether nothing in the pilot runs was random: only full queues dropped packets, and both runs are equal
/// message by message.
fn is_deterministic(result: &PointResult) -> bool {
    let digests: Vec<_> = result.runs.iter().map(|run| run.summary.digest).collect();
    result.point.has_only_queue_loss() && digests.windows(2).all(|pair| pair[0] == pair[1])
}
