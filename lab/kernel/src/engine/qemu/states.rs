//! Where snapshots are, and what the self-test says of them; what their names are made of.

use std::path::{Path, PathBuf};

use hol_base::Digester;

use crate::KernelError;
use crate::cache::cache;

/// Where snapshots are.
pub(super) fn states() -> PathBuf {
    cache().join("snapshots")
}

/// Adds `octets` so that they cannot be taken for the end of what came before.
pub(super) fn add(digester: &mut Digester, octets: &[u8]) {
    digester.add(octets.len() as u64);
    digester.add_octets(octets);
}

/// A path as QEMU takes it.
pub(super) fn text(path: &Path) -> Result<String, KernelError> {
    let problem = || KernelError::image(path, "the name is not UTF-8; set XDG_CACHE_HOME to a plain one");
    path.to_str().map(str::to_owned).ok_or_else(problem)
}

/// A path as a word for the shell.
pub(super) fn quoted(path: &Path) -> Result<String, KernelError> {
    Ok(format!("'{}'", text(path)?.replace('\'', r"'\''")))
}
