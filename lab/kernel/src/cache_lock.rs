//! Locks of cache entries. An entry is not removed while a process holds its lock or while it is among the newest.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::KernelError;

/// Waits for the exclusive right to create entries in the directory `place`. The process has this right until it drops
/// the returned file.
pub(crate) fn lock_exclusive(place: &Path) -> Result<File, KernelError> {
    fs::create_dir_all(place).map_err(|e| KernelError::file("create", place, e))?;
    let path = place.join("lock");
    let file = File::create(&path).map_err(|e| KernelError::file("create", &path, e))?;
    file.lock().map_err(|e| KernelError::file("lock", &path, e))?;
    Ok(file)
}

/// Opens a file or directory, and prevents [`prune`] from removing it until the returned file is dropped.
pub(crate) fn lock_shared(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    file.lock_shared()?;
    Ok(file)
}

/// Removes the entries of `place` that satisfy `is_of_kind`, except for the newest ones, whose number is `kept`,
/// and locked ones.
pub(crate) fn prune(place: &Path, kept: usize, is_of_kind: impl Fn(&Path) -> bool) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| is_of_kind(&entry.path()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    for (_, path) in &found[..found.len().saturating_sub(kept)] {
        if File::open(path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

    use super::*;

    #[test]
    fn the_newest_locked_and_other_entries_are_not_removed() {
        let place = tempfile::tempdir().unwrap();
        for (name, second) in [("b.x", 4), ("a.x", 1), ("held.x", 2), ("c.x", 3), ("lock", 0)] {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            let at = Timespec { tv_sec: second, tv_nsec: 0 };
            utimensat(CWD, &path, &Timestamps { last_access: at, last_modification: at }, AtFlags::empty())
                .unwrap();
        }
        let _held = lock_shared(&place.path().join("held.x")).unwrap();
        prune(place.path(), 2, |path| path.extension().is_some());
        let left = ["a.x", "b.x", "c.x", "held.x", "lock"].map(|name| place.path().join(name).exists());
        assert_eq!(left, [false, true, true, true, true]);
    }

    #[test]
    fn one_process_holds_the_lock_at_a_time() {
        let place = tempfile::tempdir().unwrap();
        let first = lock_exclusive(place.path()).unwrap();
        let other = File::open(place.path().join("lock")).unwrap();
        assert!(other.try_lock().is_err());
        drop(first);
        assert!(other.try_lock().is_ok());
    }
}
