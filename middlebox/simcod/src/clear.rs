//! `simcod clear`: the packet filter is as if there had been no middlebox.

use std::path::PathBuf;

use clap::Args;
use hol_daemon::{DaemonError, Settings};

use crate::failure::Failure;

/// Remove the table that a middlebox has left in the packet filter, and with it all that its rules have done.
///
/// For a middlebox that is not to start again: what it has left drops all that no rule allows. It is not to run meanwhile.
#[derive(Debug, Args)]
pub struct Clear {
    /// Its settings, which name the table
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Clear {
    /// Removes the table; there may be none.
    pub fn run(&self) -> Result<(), Failure> {
        let settings = self.config.as_deref().map_or_else(|| Ok(Settings::default()), Settings::read);
        Ok(settings.map_err(DaemonError::from)?.clear()?)
    }
}
