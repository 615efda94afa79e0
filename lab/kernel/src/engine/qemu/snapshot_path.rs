//! The paths of snapshots and of self-test results, and the values that determine them.

use std::path::{Path, PathBuf};

use hol_base::Digester;

use crate::KernelError;
use crate::cache::cache_directory;

/// Returns the directory where snapshots are stored.
pub(super) fn snapshot_directory() -> PathBuf {
    cache_directory().join("snapshots")
}

/// Adds the length of `octets` and then the octets to a digest, so that two sequences with the same concatenation
/// have different digests.
pub(super) fn digest_with_length(digester: &mut Digester, octets: &[u8]) {
    digester.add(octets.len() as u64);
    digester.add_octets(octets);
}

/// Returns a path as text, for an argument of QEMU.
pub(super) fn path_as_text(path: &Path) -> Result<String, KernelError> {
    let problem = || {
        KernelError::image(path, "the name is not UTF-8; set XDG_CACHE_HOME to a directory with a UTF-8 name")
    };
    path.to_str().map(str::to_owned).ok_or_else(problem)
}

/// Quotes a path for the shell.
pub(super) fn quote_path(path: &Path) -> Result<String, KernelError> {
    Ok(format!("'{}'", path_as_text(path)?.replace('\'', r"'\''")))
}
