//! What a run has beside its own directory: room for its memory, and what it may only read.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use tempfile::TempDir;

use crate::cache::cache;
use crate::engine::confined::Reach;
use crate::engine::contract::Task;
use crate::hostfs::{GIVEN, ROOT};
use crate::root::Root;
use crate::{KernelError, scratch};

/// The file system in memory where the guest's memory is best.
const SHARED: &str = "/dev/shm";

/// What the host says of its processors. proc(5).
pub(super) const PROCESSORS: &str = "/proc/cpuinfo";

/// Directories, which are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Beside {
    memory: Option<TempDir>,
    given: Option<TempDir>,
}

impl Beside {
    /// What a run in `directory` has, with so many MiB of memory.
    pub(super) fn lay(directory: &Path, size: u64, task: &Task<'_>) -> Result<Self, KernelError> {
        let given = task.root.map(|root| give(root, directory)).transpose()?;
        Ok(Self { memory: memory(size), given })
    }

    /// Where the guest's memory is: a file that nobody else sees.
    pub(super) fn memory<'d>(&'d self, directory: &'d Path) -> &'d Path {
        self.memory.as_ref().map_or(directory, TempDir::path)
    }

    /// All that a run in `directory` reaches.
    pub(super) fn reach(&self, linux: &Path, system: &Path, directory: &Path) -> Reach {
        let mut reads = vec![system.to_owned(), PathBuf::from(PROCESSORS)];
        reads.extend(self.given.iter().map(|given| given.path().to_owned()));
        let own = vec![directory.to_owned(), self.memory(directory).to_owned()];
        Reach { programs: vec![linux.to_owned()], reads, own }
    }
}

/// A directory in memory where there is room for the guest's, and where that may be executed; in containers it often may not. Its
/// own, for a run is not to see what others have there.
fn memory(size: u64) -> Option<TempDir> {
    let shared = Path::new(SHARED);
    let fits = |system: Statvfs| {
        let free = system.blocks_available() * system.fragment_size();
        free >> 20 >= size && !system.flags().contains(FsFlags::ST_NOEXEC)
    };
    statvfs(shared).is_ok_and(fits).then(|| scratch::directory(shared, "hol-memory").ok())?
}

/// Gives the run in `directory` a root. It lies elsewhere, for what is in the run's own directory may be written.
fn give(root: &Root, directory: &Path) -> Result<TempDir, KernelError> {
    // A second name has to be where the first is.
    let given = scratch::directory(&cache().join("runs"), "hol-run")?;
    let (image, link) = (given.path().join(ROOT), directory.join(GIVEN));
    fs::hard_link(root.image(), &image).map_err(|e| KernelError::file("create", &image, e))?;
    symlink(given.path(), &link).map_err(|e| KernelError::file("create", &link, e))?;
    Ok(given)
}
