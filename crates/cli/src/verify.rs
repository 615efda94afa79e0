//! `hol verify`: same settings, same seed, same digest.

use std::path::PathBuf;

use clap::Args;
use hol_lab::{Results, verify};

use crate::failure::Failure;
use crate::fill::{stop_on_interrupt, threads};
use crate::terminal::{grouped, say};

/// Repeat runs of a result directory and compare their digests.
#[derive(Debug, Args)]
pub struct Verify {
    /// A directory that `hol run` or `hol reproduce` filled
    dir: PathBuf,
    /// Repeat only this many runs, spread over the directory [default: all]
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Runs at the same time [default: all cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

impl Verify {
    /// Repeats the runs; a difference is a failure that names it.
    pub fn run(&self) -> Result<(), Failure> {
        let results = Results::load(&self.dir)?;
        let changed = results.points.iter().find(|point| point.point.identity() != point.point.id);
        if let Some(changed) = changed {
            return Err(Failure::Failed(format!(
                "{}: {}: this program (version {}) has other settings behind these names than the one that ran it \
                 (version {}); verify with that one",
                self.dir.display(),
                changed.point,
                env!("CARGO_PKG_VERSION"),
                results.manifest.version
            )));
        }
        let stop = stop_on_interrupt()?;
        let (done, differences) = verify(&results, self.sample, threads(self.jobs), stop)?;
        if differences.is_empty() {
            say(&format!("{} runs repeated, all digests are the same\n", grouped(done as u64)));
            return Ok(());
        }
        for difference in &differences {
            let (point, repetition) = (&difference.point, difference.repetition);
            say(&format!(
                "{point}, repetition {repetition}: {} is now {}\n",
                difference.stored, difference.now
            ));
        }
        Err(Failure::Failed(format!("{} of {done} runs differ", differences.len())))
    }
}
