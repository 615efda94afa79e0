//! A disk that becomes full while the daemon runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::daemon::Daemon;

/// The disk with the state of the daemon.
pub struct Disk {
    directory: TempDir,
    /// Whether the directory is a file system of its own, in memory.
    is_own: bool,
}

impl Disk {
    /// Returns a directory on the disk of this machine. A limit on the size of the daemon's files simulates a full
    /// disk.
    pub fn shared() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), is_own: false }
    }

    /// Returns a tmpfs of 4 MB, which needs root and a mount namespace.
    pub fn own() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=4m", "none"]).arg(directory.path()).status();
        assert!(mounted.unwrap().success());
        fs::create_dir(directory.path().join("state")).unwrap();
        Self { directory, is_own: true }
    }

    pub fn state(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    fn filler(&self) -> PathBuf {
        self.directory.path().join("filler")
    }

    /// Leaves about this many octets to the daemon, until the disk is [emptied](Self::empty).
    pub fn fill(&self, daemon: &Daemon, octets: u64) {
        if self.is_own {
            let free = rustix::fs::statvfs(self.directory.path()).unwrap();
            let filler = (free.f_bavail * free.f_frsize).saturating_sub(octets);
            fs::write(self.filler(), vec![0; filler as usize]).unwrap();
        } else {
            daemon.limit_files(longest_file(&self.state()) + octets);
        }
    }

    /// Removes everything except the state.
    pub fn empty(&self) {
        let _ = fs::remove_file(self.filler());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_own {
            let _ = Command::new("umount").arg(self.directory.path()).status();
        }
    }
}

/// Returns the number of octets of the longest file.
fn longest_file(state: &Path) -> u64 {
    let files = fs::read_dir(state).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).max().unwrap_or_default()
}
