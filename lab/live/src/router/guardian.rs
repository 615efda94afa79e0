//! A process that restores the path after the router's process has ended for any reason.
//!
//! This guardian holds one end of a pipe, and the router's process the other. When the router's process ends, the
//! kernel closes its end.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::shape;

/// The process that restores the path if the router's process ends. Dropping this value ends the guardian process.
#[derive(Debug)]
pub(super) struct Guardian(Child);

impl Guardian {
    /// Starts the guardian process in its own process group, so that Ctrl-C reaches only the router's process.
    pub(super) fn start(mut program: Command) -> io::Result<Self> {
        program.stdin(Stdio::piped()).stdout(Stdio::null()).process_group(0).spawn().map(Self)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Runs as the guardian: waits for the end of the router's process, and restores the path.
pub fn guard() -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    shape::restore()
}
