//! Directories of a run in addition to the run's own directory: one for the guest's memory, and a read-only one for the
//! root image.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::{FsFlags, Statvfs, statvfs};
use tempfile::TempDir;

use crate::cache::cache_directory;
use crate::engine::contract::Task;
use crate::engine::sandbox::AccessRules;
use crate::hostfs::{READ_ONLY_LINK, ROOT_IMAGE};
use crate::root::RootImage;
use crate::{KernelError, scratch};

/// The directory of a file system in memory. It contains the guest's memory if there is enough space.
const SHARED_MEMORY_DIRECTORY: &str = "/dev/shm";

/// The file in which the host describes its processors. proc(5).
pub(super) const PROCESSORS: &str = "/proc/cpuinfo";

/// The directories of a run. Dropping it removes them.
#[derive(Debug)]
pub(super) struct HostResources {
    memory: Option<TempDir>,
    root_directory: Option<TempDir>,
}

impl HostResources {
    /// Creates the directories of a run in `directory`; `size` is the guest's memory in MiB.
    pub(super) fn prepare(directory: &Path, size: u64, task: &Task<'_>) -> Result<Self, KernelError> {
        let root_directory = task.root.map(|root| link_root(root, directory)).transpose()?;
        Ok(Self { memory: memory(size), root_directory })
    }

    /// Returns the directory for the file that holds the guest's memory: one in [`SHARED_MEMORY_DIRECTORY`] if it could
    /// be created there, otherwise `directory`.
    pub(super) fn memory_directory<'d>(&'d self, directory: &'d Path) -> &'d Path {
        self.memory.as_ref().map_or(directory, TempDir::path)
    }

    /// Returns the access rules of a run in `directory`.
    pub(super) fn access_rules(&self, linux: &Path, system: &Path, directory: &Path) -> AccessRules {
        let mut reads = vec![system.to_owned(), PathBuf::from(PROCESSORS)];
        reads.extend(self.root_directory.iter().map(|root_directory| root_directory.path().to_owned()));
        let writable = vec![directory.to_owned(), self.memory_directory(directory).to_owned()];
        AccessRules { programs: vec![linux.to_owned()], reads, writable }
    }
}

/// Creates a directory in memory. Returns `None` if there is too little space, or if files there must not be executed,
/// which containers often forbid. Each run has its own directory, so that it does not see the memory of other runs.
fn memory(size: u64) -> Option<TempDir> {
    let shared = Path::new(SHARED_MEMORY_DIRECTORY);
    let fits = |system: Statvfs| {
        let free = system.blocks_available() * system.fragment_size();
        free >> 20 >= size && !system.flags().contains(FsFlags::ST_NOEXEC)
    };
    statvfs(shared).is_ok_and(fits).then(|| scratch::create_directory(shared, "hol-memory").ok())?
}

/// Creates a link to the root image in a directory to which the process of the run cannot write.
fn link_root(root: &RootImage, directory: &Path) -> Result<TempDir, KernelError> {
    // A hard link has to be on the same file system as the file.
    let root_directory = scratch::create_directory(&cache_directory().join("runs"), "hol-run")?;
    let (image, link) = (root_directory.path().join(ROOT_IMAGE), directory.join(READ_ONLY_LINK));
    fs::hard_link(root.image(), &image).map_err(|e| KernelError::file("create", &image, e))?;
    symlink(root_directory.path(), &link).map_err(|e| KernelError::file("create", &link, e))?;
    Ok(root_directory)
}
