//! The directory from which guests boot: an entry of the cache, named by the digest of its content. A guest reads the
//! directory through hostfs, and so loads only the quarter of this program that it needs.

use std::fs::File;
use std::path::{Path, PathBuf};

use hol_base::Digester;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, utimensat};

use crate::cache::cache_directory;
use crate::cache_lock::{lock_exclusive, lock_shared, prune};
use crate::initial_files::InitialFiles;
use crate::{KernelError, atomic_replace, scratch};

/// Maximum number of boot directories in the cache.
const MAX_ENTRIES: usize = 6;

/// A directory from which guests boot.
#[derive(Debug)]
pub(super) struct BootDirectory {
    pub(super) path: PathBuf,
    /// Holds a lock that prevents other processes from removing the directory.
    pub(super) _lock: File,
}

impl BootDirectory {
    /// Returns the boot directory with these `files`; creates it if it is missing.
    pub(super) fn of(files: &InitialFiles) -> Result<Self, KernelError> {
        let guests = cache_directory().join("guests");
        let place = guests.join(digest(files));
        // One process creates the directory while the others wait: it must not be replaced while a guest boots from it.
        let _lock = lock_exclusive(&guests)?;
        if !files.is_in(&place) {
            let work = scratch::create_directory(&guests, "fresh")?;
            let fresh = work.path().join("guest");
            files.write_to(&fresh)?;
            atomic_replace::replace_directory(&fresh, &place)?;
        }
        let lock = lock_shared(&place).map_err(|e| KernelError::file("read", &place, e))?;
        // The current time makes it the newest entry; an error is ignored.
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        let _ = utimensat(
            CWD,
            &place,
            &Timestamps { last_access: now, last_modification: now },
            AtFlags::empty(),
        );
        prune(&guests, MAX_ENTRIES, is_boot_directory);
        Ok(Self { path: place, _lock: lock })
    }
}

fn digest(files: &InitialFiles) -> String {
    let mut digester = Digester::new();
    digester.add_octets(&files.archive());
    digester.finish().to_string()
}

/// Returns whether a path has the name of a boot directory.
fn is_boot_directory(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_path_depends_on_all_inputs() {
        let files = |octets: &[u8]| InitialFiles {
            directories: vec!["dev".to_owned()],
            files: vec![("lib/loader".to_owned(), octets.to_vec())],
        };
        let (one, other) = (digest(&files(b"12345")), digest(&files(b"54321")));
        assert_ne!(one, other);
        assert!(
            is_boot_directory(Path::new(&one))
                && !is_boot_directory(Path::new("fresh-1-x"))
                && !is_boot_directory(Path::new("lock"))
        );
    }
}
