//! Who puts the path back when the router's process has ended, however it did.
//!
//! It is a process of its own, and holds the end of a pipe whose other end the router's process has: the kernel closes that with the process.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::shape;

/// The process, ended with this.
#[derive(Debug)]
pub(super) struct Guardian(Child);

impl Guardian {
    /// In a process group of its own: Ctrl-C is for the router's process alone.
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

/// Waits for the router's process to end, and puts back what it had in force.
pub fn guard() -> io::Result<()> {
    io::copy(&mut io::stdin(), &mut io::sink())?;
    shape::put_back()
}
