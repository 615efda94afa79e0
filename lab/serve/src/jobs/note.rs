//! Messages to the scheduler.

use std::io;
use std::process::ExitStatus;

/// Something that has happened, or is to.
#[derive(Debug)]
pub enum Note {
    /// Something changed: check what to start and to end.
    Look,
    /// A process wrote a line.
    Line(i64, String),
    /// A process has ended.
    Exit(i64, io::Result<ExitStatus>),
    /// Stop all processes.
    Stop,
}
