//! `simcod rules`: what a middlebox of this host has recorded, without a session.

use std::path::PathBuf;

use clap::Args;
use hol_daemon::recorded_rules;

use crate::failure::Failure;
use crate::rule::Rule;
use crate::table::show;

/// Show all rules that a middlebox of this host has recorded, however many, whether it runs or not.
///
/// A middlebox that runs does not notice.
#[derive(Debug, Args)]
pub struct Rules {
    /// Its directory of rules: `state` of its settings
    state: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

impl Rules {
    /// Reads the directory and shows what is in force.
    pub fn run(&self) -> Result<(), Failure> {
        let rules = recorded_rules(&self.state).map_err(Failure::failed)?;
        show(&rules.iter().map(Rule::of_status).collect::<Vec<_>>(), self.json);
        Ok(())
    }
}
