//! `hol merge`: joins the results of several machines in one result directory.

use std::path::PathBuf;

use clap::Args;
use hol_lab::merge;

use crate::failure::Failure;
use crate::run::print_results;
use crate::terminal::{group_digits, note};

const AFTER_HELP: &str = "\
The result is the same as that of `hol run FILE` on one machine: the same digests, tables and report, whatever the order of
the parts. A run that two parts contain must be the same in both.

  hol run FILE --shard 1/2 --out one              on one machine
  hol run FILE --shard 2/2 --out two              on another, or later
  hol merge one two --out results/all";

/// Join the parts of an experiment that were run with `hol run --shard`
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Merge {
    /// Result directories of the parts
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// Directory for the joined results; existing runs in it are kept, so parts may be added later
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print a JSON object for each point, one per line, in the order of the plan
    #[arg(long)]
    json: bool,
}

impl Merge {
    /// Joins the parts; returns an error if runs are missing.
    pub fn run(&self) -> Result<(), Failure> {
        let merged = merge(&self.parts, &self.out, std::env::args().collect())?;
        if merged.repeated > 0 {
            note!(
                "several parts contain the same {} runs, with equal results",
                group_digits(merged.repeated)
            );
        }
        let results = merged.store.write_tables(&merged.finished)?;
        print_results(&results, &self.out, self.json)?;
        if results.is_complete() {
            return Ok(());
        }
        let of = |(shard, missing): &(_, u64)| format!("{} of part {shard}", group_digits(*missing));
        let of: Vec<String> = merged.missing.iter().map(of).collect();
        let whose = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
        Err(Failure::Failed(format!(
            "{} of {} runs are missing{whose}: also merge the directories that contain them, or run `hol run FILE --out {}`",
            group_digits(results.missing),
            group_digits(results.needed),
            self.out.display()
        )))
    }
}
