//! Decides when compaction is worth its cost, by the octets that it would free.

use std::path::Path;

use nix::sys::statvfs::statvfs;

/// Compaction frees this much at least, so that it is rare.
const LEAST: u64 = 64 << 10;
/// If it would free this much, it does not matter how much room there is.
const MUCH: u64 = 8 << 20;

/// The entries of a journal, as far as they matter for compaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// Number of current rules.
    pub held: u64,
    /// Number of superseded entries.
    pub superseded: u64,
    /// Octets of all entries together.
    pub octets: u64,
}

impl Usage {
    /// Returns the approximate octets of superseded entries.
    fn waste(self) -> u64 {
        let share = u128::from(self.octets) * u128::from(self.superseded);
        (share / u128::from((self.held + self.superseded).max(1))) as u64
    }

    /// Returns what remains after the compaction of what there was before.
    pub fn compacted(self, before: Self) -> Self {
        let (superseded, octets) = (self.superseded - before.superseded, self.octets - before.waste());
        Self { superseded, octets, ..self }
    }

    /// Returns true if compaction is worth its cost on a disk with this much free space, which is only looked up if it
    /// matters.
    pub fn is_worth_compaction(self, free: impl FnOnce() -> u64) -> bool {
        let waste = self.waste();
        self.superseded > self.held && waste >= LEAST && (waste >= MUCH || waste >= free() / 4)
    }
}

/// Returns the free octets of the file system of this directory; unlimited if that is unknown.
pub(crate) fn free(directory: &Path) -> u64 {
    statvfs(directory).map_or(u64::MAX, |disk| disk.blocks_available() * disk.fragment_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_disk_and_a_large_waste_are_worth_compaction() {
        let worth =
            |held, superseded, octets, free| Usage { held, superseded, octets }.is_worth_compaction(|| free);
        assert!(!worth(1000, 1000, 100 << 20, 0), "at most half of the journal is superseded");
        assert!(worth(1000, 100_000, MUCH * 2, u64::MAX));
        assert!(!worth(1000, 100_000, MUCH / 2, u64::MAX));
        assert!(worth(1000, 100_000, MUCH / 2, MUCH), "a quarter of what is free");
        assert!(!worth(0, 100, LEAST - 1, 0), "too little, on however full a disk");
    }

    #[test]
    fn what_is_superseded_is_gone_after_compaction() {
        let before = Usage { held: 10, superseded: 90, octets: 1000 };
        let Usage { held, superseded, octets } = before.compacted(before);
        assert_eq!((held, superseded, octets), (10, 0, 100));
        let after = Usage { held: 9, superseded: 92, octets: 1020 };
        let Usage { held, superseded, octets } = after.compacted(before);
        assert_eq!((held, superseded, octets), (9, 2, 120), "what has come since is there");
        let nothing = Usage { held: 0, superseded: 0, octets: 0 };
        assert_eq!(nothing.compacted(nothing).octets, 0);
    }

    #[test]
    fn the_free_space_of_a_directory_is_that_of_its_file_system() {
        assert!(free(&std::env::temp_dir()) < u64::MAX);
        assert_eq!(free(Path::new("/none/such")), u64::MAX);
    }
}
