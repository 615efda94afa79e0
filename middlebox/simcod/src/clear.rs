//! `simcod clear`: removes everything that a middlebox left in the packet filter.

use std::path::PathBuf;

use clap::Args;
use hol_daemon::{DaemonError, Settings};

use crate::failure::Failure;

/// Remove a middlebox's table from the packet filter, with all effects of its rules.
///
/// Use it for a middlebox that will not run again: its table would continue to drop all packets that no rule
/// allows. The middlebox must not be running.
#[derive(Debug, Args)]
pub struct Clear {
    /// Settings file of the middlebox, which names the table
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Clear {
    /// Removes the table, if there is one.
    pub fn run(&self) -> Result<(), Failure> {
        let settings = self.config.as_deref().map_or_else(|| Ok(Settings::default()), Settings::read);
        Ok(settings.map_err(DaemonError::from)?.clear()?)
    }
}
