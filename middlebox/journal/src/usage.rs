//! Decides when compaction is worth its cost, by the octets that it would free.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// A compaction runs only if it frees at least this many octets, so that compactions are rare.
const MIN_FREED_OCTETS: u64 = 64 << 10;
/// A compaction that frees this many octets runs no matter how much space is free.
const LARGE_WASTE: u64 = 8 << 20;

/// The number and size of a journal's entries, which determine when it is compacted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalUsage {
    /// Number of current rules.
    pub current: u64,
    /// Number of superseded entries.
    pub superseded: u64,
    /// Size of all segments in octets.
    pub octets: u64,
}

impl JournalUsage {
    /// Returns the approximate size of the superseded entries, in octets.
    fn waste(self) -> u64 {
        let share = u128::from(self.octets) * u128::from(self.superseded);
        (share / u128::from((self.current + self.superseded).max(1))) as u64
    }

    /// Returns the usage after a compaction; `before` is the usage when it began.
    pub fn compacted(self, before: Self) -> Self {
        let (superseded, octets) = (self.superseded - before.superseded, self.octets - before.waste());
        Self { superseded, octets, ..self }
    }

    /// Returns true if a compaction is worth its cost. `free` returns the free space of the disk in octets; it is
    /// called only if the answer depends on it.
    pub fn is_worth_compaction(self, free: impl FnOnce() -> u64) -> bool {
        let waste = self.waste();
        self.superseded > self.current
            && waste >= MIN_FREED_OCTETS
            && (waste >= LARGE_WASTE || waste >= free() / 4)
    }
}

/// Returns the number of free octets in the file system of `directory`; `u64::MAX` if that is unknown.
pub(crate) fn free_space(directory: &Path) -> u64 {
    statvfs(directory).map_or(u64::MAX, |disk| disk.blocks_available() * disk.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_and_a_large_waste_are_worth_compaction() {
        let worth = |current, superseded, octets, free| {
            JournalUsage { current, superseded, octets }.is_worth_compaction(|| free)
        };
        assert!(!worth(1000, 1000, 100 << 20, 0), "no more than half of the journal is superseded");
        assert!(worth(1000, 100_000, LARGE_WASTE * 2, u64::MAX));
        assert!(!worth(1000, 100_000, LARGE_WASTE / 2, u64::MAX));
        assert!(worth(1000, 100_000, LARGE_WASTE / 2, LARGE_WASTE), "a quarter of the free space");
        assert!(!worth(0, 100, MIN_FREED_OCTETS - 1, 0), "too little even for a full disk");
    }

    #[test]
    fn compaction_removes_superseded_entries_from_the_usage() {
        let before = JournalUsage { current: 10, superseded: 90, octets: 1000 };
        let JournalUsage { current, superseded, octets } = before.compacted(before);
        assert_eq!((current, superseded, octets), (10, 0, 100));
        let after = JournalUsage { current: 9, superseded: 92, octets: 1020 };
        let JournalUsage { current, superseded, octets } = after.compacted(before);
        assert_eq!((current, superseded, octets), (9, 2, 120), "newer entries remain");
        let nothing = JournalUsage { current: 0, superseded: 0, octets: 0 };
        assert_eq!(nothing.compacted(nothing).octets, 0);
    }

    #[test]
    fn the_free_space_of_a_directory_is_that_of_its_file_system() {
        assert!(free_space(&std::env::temp_dir()) < u64::MAX);
        assert_eq!(free_space(Path::new("/none/such")), u64::MAX);
    }
}
