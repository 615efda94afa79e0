//! What the conductor is told.

use std::io;
use std::process::ExitStatus;

/// Something that has happened, or is to.
#[derive(Debug)]
pub enum Note {
    /// Something has changed: look who may start and who has to end.
    Look,
    /// A process wrote a line.
    Line(i64, String),
    /// A process has ended.
    Exit(i64, io::Result<ExitStatus>),
    /// End all that runs.
    Stop,
}
