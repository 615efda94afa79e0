//! Messages to the scheduler.

use std::io;
use std::process::ExitStatus;

/// A message to the scheduler.
#[derive(Debug)]
pub enum SchedulerMessage {
    /// A state changed: check which processes to start and to end.
    Check,
    /// The process of an experiment wrote a line.
    Line(i64, String),
    /// The process of an experiment has ended.
    Exit(i64, io::Result<ExitStatus>),
    /// The server stops: end all processes.
    Stop,
}
