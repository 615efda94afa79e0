//! What can be made again stays in the cache while it is among the newest.

use std::fs;
use std::path::Path;

/// Removes all in `place` but the newest `kept` of those that are of a kind.
pub(crate) fn prune(place: &Path, kept: usize, is_of_kind: impl Fn(&Path) -> bool) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter(|entry| is_of_kind(&entry.path()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    found.sort();
    for (_, path) in &found[..found.len().saturating_sub(kept)] {
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};

    use super::*;

    #[test]
    fn the_newest_stay_and_so_does_what_is_of_another_kind() {
        let place = tempfile::tempdir().unwrap();
        for (name, second) in [("b.x", 3), ("a.x", 1), ("c.x", 2), ("lock", 0)] {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            let at = Timespec { tv_sec: second, tv_nsec: 0 };
            utimensat(CWD, &path, &Timestamps { last_access: at, last_modification: at }, AtFlags::empty())
                .unwrap();
        }
        prune(place.path(), 2, |path| path.extension().is_some());
        let left = ["a.x", "b.x", "c.x", "lock"].map(|name| place.path().join(name).exists());
        assert_eq!(left, [false, true, true, true]);
    }
}
