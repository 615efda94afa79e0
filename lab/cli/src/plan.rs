//! `hol plan`: shows the points of an experiment, and how long they take on this machine and on several.

use clap::Args;
use hol_lab::{Estimate, Plan as Runs};

use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::progress::format_seconds;
use crate::run::{ExperimentArgs, describe_cost, describe_jobs};
use crate::run_plan::thread_count;
use crate::terminal::{note, print};

/// Show the points of an experiment file and the time that they need, without running them
#[derive(Debug, Args)]
pub struct Plan {
    #[command(flatten)]
    experiment_args: ExperimentArgs,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Also show the cost of each of N parts for `hol run --shard`
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    shards: Option<usize>,
    /// Print a JSON object for each point, one per line, in the order of the plan
    #[arg(long)]
    json: bool,
}

impl Plan {
    /// Prints the points and the estimate.
    pub fn run(&self) -> Result<(), Failure> {
        self.experiment_args.set_secret()?;
        let experiment = self.experiment_args.experiment()?;
        experiment.ignored.iter().for_each(|what| note!("ignored: {what}"));
        let runs = Runs::new([&experiment]);
        print(&describe_cost(&runs, self.jobs, self.json));
        if let Some(shards) = self.shards.filter(|_| !self.json) {
            print(&describe_parts(&runs, shards, thread_count(self.jobs)));
        }
        Ok(())
    }
}

/// Describes the parts of a plan in one line: their number, and the times that the shortest and the longest part
/// take.
fn describe_parts(runs: &Runs, of: usize, jobs: usize) -> String {
    let work = runs.work_of_parts(of);
    let all = work.iter().sum::<u64>().max(1);
    let Estimate { min, .. } = runs.estimate(1);
    let time = |work: u64| format_seconds(min * work as f64 / all as f64 / jobs as f64);
    let (min, max) = (work.iter().min().copied().unwrap_or(0), work.iter().max().copied().unwrap_or(0));
    let idle = work.iter().filter(|work| **work == 0).count();
    let idle = if idle > 0 { format!("; {idle} of them are empty") } else { String::new() };
    format!("{of} parts of {} to {} each, with {}{idle}\n", time(min), time(max), describe_jobs(jobs))
}
