//! `hol verify`: repeats runs and compares the results.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::Args;
use hol_lab::{Results, check_repeatable, verify};

use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::point_row::json;
use crate::run_plan::{stop_on_interrupt, thread_count};
use crate::terminal::{group_digits, print};

/// Repeat runs of a result directory and compare their digests and totals.
#[derive(Debug, Args)]
pub struct Verify {
    /// Result directory of `hol run` or `hol reproduce`
    dir: PathBuf,
    /// Repeat only this many runs, evenly spread over those of the directory [default: all]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    sample: Option<usize>,
    /// Number of runs in parallel [default: all cores]
    #[arg(long, value_name = "N", value_parser = parse_positive_number, allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Verify {
    /// Repeats the runs; returns an error that names the differences, if there are any.
    pub fn run(&self) -> Result<(), Failure> {
        let results = Results::load(&self.dir)?;
        self.check_repeatable(&results)?;
        let stop = stop_on_interrupt()?;
        let (done, differences) = verify(&results, self.sample, thread_count(self.jobs), stop)?;
        if self.json {
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            print(&json(
                &serde_json::json!({ "repeated": done, "differences": differences, "missing": results.missing, "wanted": results.needed }),
            ));
        } else {
            differences.iter().for_each(|difference| print(&format!("{difference}\n")));
        }
        if !differences.is_empty() {
            return Err(Failure::Failed(format!("{} of {done} runs differ", differences.len())));
        }
        if stop.load(Ordering::Relaxed) {
            let problem = format!("interrupted; the {done} repeated runs are equal");
            return Err(Failure::Failed(problem));
        }
        if self.json {
            return Ok(());
        }
        print(&format!("{} runs repeated, all digests are equal\n", group_digits(done as u64)));
        if results.missing > 0 {
            let (missing, wanted) = (group_digits(results.missing), group_digits(results.needed));
            print(&format!(
                "{missing} of {wanted} runs are missing; repeat the command that created the directory to perform them\n"
            ));
        }
        Ok(())
    }

    /// Returns an error if the directory contains no runs, or if this program cannot repeat them.
    fn check_repeatable(&self, results: &Results) -> Result<(), Failure> {
        check_repeatable(results)?;
        let dir = self.dir.display();
        if results.points.iter().all(|point| point.runs.is_empty()) {
            let problem =
                format!("{dir}: the directory contains no runs to verify; run the experiment first");
            return Err(Failure::Failed(problem));
        }
        match results.points.iter().find(|point| point.point.identity() != point.point.id) {
            None => Ok(()),
            Some(changed) => Err(Failure::Failed(format!(
                "{dir}: {}: this program (version {}) would use other settings for this point than the version that performed the runs \
                ({}); use that version",
                changed.point,
                env!("CARGO_PKG_VERSION"),
                results.manifest.version
            ))),
        }
    }
}
