//! The program, and with what of the user's environment it is started.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, and the package that has it.
pub(super) const QEMU: (&str, &str) = ("qemu-system-x86_64", "qemu-system-x86");

/// The program, without the user's environment, for whoever breaks out of a guest would read it: but where it is found, and what it loads.
/// What that is to load before all else comes in with [`lockstep::load`](super::lockstep::load).
pub(super) fn command(program: &Path) -> Command {
    let kept = ["PATH", "LD_LIBRARY_PATH", "QEMU_MODULE_DIR"];
    let mut command = Command::new(program);
    command.env_clear().envs(kept.into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
    command
}

/// Where QEMU may be. execvp(3)
pub(super) fn places() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|place| place.join(QEMU.0)).collect()
}
