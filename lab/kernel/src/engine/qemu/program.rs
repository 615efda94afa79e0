//! The QEMU program and its environment.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the QEMU program, and of its Debian package.
pub(super) const QEMU: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");

/// Returns a command that runs `program` with few environment variables, because a guest that escapes could read
/// them. They are the user's variables that `program` needs to find its parts.
/// [`lockstep::load`](super::lockstep::load) adds the libraries that the user preloads.
pub(super) fn command(program: &Path) -> Command {
    let kept = ["PATH", "LD_LIBRARY_PATH", "QEMU_MODULE_DIR"];
    let mut command = Command::new(program);
    command.env_clear().envs(kept.into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

/// Returns the directories in which QEMU may be installed. execvp(3)
pub(super) fn search_directories() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|place| place.join(QEMU.0)).collect()
}
