//! Options for programs that start `hol`: they get the progress as JSON, and `hol` ends with its parent.

use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use crate::failure::Failure;
use crate::progress::ProgressOutput;

/// Options for programs that start hol.
#[derive(Debug, Args)]
pub struct ProgressArgs {
    /// Report progress and intermediate results on standard error, one JSON object per line
    #[arg(long, value_name = "FORMAT")]
    progress: Option<Format>,
    #[command(flatten)]
    parent: Parent,
}

/// Option that names the process that started hol.
#[derive(Debug, Args)]
pub struct Parent {
    /// Stop when the parent process PID stops
    #[arg(long, value_name = "PID")]
    with_parent: Option<i32>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    Json,
}

impl Parent {
    /// Makes this process end with its parent.
    pub fn end_with_parent(&self) -> Result<(), Failure> {
        let Some(parent) = self.with_parent else { return Ok(()) };
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(Failure::failed)?;
        // The parent may have ended before the signal was requested.
        if getppid() == Pid::from_raw(parent) {
            return Ok(());
        }
        Err(Failure::Usage(format!("--with-parent {parent}: that is not the process that started this one")))
    }
}

impl ProgressArgs {
    /// Makes this process end with its parent.
    pub fn end_with_parent(&self) -> Result<(), Failure> {
        self.parent.end_with_parent()
    }

    /// Returns the form of progress output. Without --progress there is none if `is_quiet`, because then a program
    /// reads standard output.
    pub const fn progress_output(&self, is_quiet: bool) -> ProgressOutput {
        match (self.progress, is_quiet) {
            (Some(Format::Json), _) => ProgressOutput::Json,
            (None, true) => ProgressOutput::Quiet,
            (None, false) => ProgressOutput::Text,
        }
    }
}
