//! `simcod rules`: the recorded rules of a middlebox of this host, without a session.

use std::path::PathBuf;

use clap::Args;
use hol_daemon::recorded_rules;

use crate::failure::Failure;
use crate::rule::Rule;
use crate::table::show;

/// Show all rules recorded by a middlebox of this host, running or not.
///
/// It only reads the records, so it does not disturb a running middlebox.
#[derive(Debug, Args)]
pub struct Rules {
    /// Directory in which the middlebox records rules: `state` in its settings
    state: PathBuf,
    /// Print a JSON object for each rule, one per line
    #[arg(long)]
    json: bool,
}

impl Rules {
    /// Reads the directory and shows the rules in force.
    pub fn run(&self) -> Result<(), Failure> {
        let rules = recorded_rules(&self.state).map_err(Failure::failed)?;
        show(&rules.iter().map(Rule::of_status).collect::<Vec<_>>(), self.json);
        Ok(())
    }
}
