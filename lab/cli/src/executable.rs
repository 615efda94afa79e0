//! Programs of this machine.

use std::env;
use std::path::PathBuf;

/// Returns the path of a program that is in a directory of `PATH`; `None` if there is none.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}
