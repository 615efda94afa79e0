//! A network namespace of the benchmark, with its own packet filter.

use std::io;
use std::process::Command;

use nix::sched::{CloneFlags, unshare};

/// Moves this process to a new network namespace with a loopback interface.
pub fn enter_new_namespace() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let status = Command::new("ip").args(["link", "set", "lo", "up"]).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("ip link set lo up")) }
}
