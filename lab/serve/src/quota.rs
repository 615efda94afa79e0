//! Quotas: the resources that the experiments of a project may use together.

use serde::Serialize;
use utoipa::ToSchema;

/// The resources that the experiments of a project have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct Usage {
    /// Octets that the project has on the disk: its files, all versions of its experiments' texts, and their
    /// results.
    pub octets: u64,
    /// Completed runs of the project's experiments.
    pub runs: u64,
    /// Core seconds: cores in use multiplied by time, including those of deleted experiments.
    pub core_seconds: u64,
}

/// The resources that a project may use. When its usage reaches a limit, its running experiments are swapped out, and
/// none of its other experiments starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Quota {
    /// Maximum number of octets on the disk.
    pub octets: u64,
    /// Maximum number of completed runs.
    pub runs: u64,
    /// Maximum number of core seconds.
    pub core_seconds: u64,
}

impl Quota {
    /// No limits, for the owner of the machine: the largest number that JSON represents exactly.
    pub const UNLIMITED: Self = Self { octets: 1 << 53, runs: 1 << 53, core_seconds: 1 << 53 };

    /// Returns why a project with this usage may not use further resources, or `None` if it may.
    pub fn excess(&self, used: &Usage) -> Option<String> {
        let runs = || format!("the project has {} runs, which is the maximum; delete experiments", used.runs);
        let time = || {
            let hours = self.core_seconds / 3600;
            format!("the project has used its {hours} core hours; ask the operator of the server for more")
        };
        if let Some(disk) = self.disk_excess(used, 0) {
            return Some(disk);
        }
        if used.runs >= self.runs {
            return Some(runs());
        }
        (used.core_seconds >= self.core_seconds).then(time)
    }

    /// Returns why a project with this usage may not occupy `more` octets of the disk, or `None` if it may.
    pub fn disk_excess(&self, used: &Usage, more: u64) -> Option<String> {
        (used.octets + more >= self.octets).then(|| {
            format!(
                "the project uses {} of {} of disk; delete experiments or files",
                format_mebibytes(used.octets),
                format_mebibytes(self.octets)
            )
        })
    }

    /// Returns a sentence about the usage of a project and its limits.
    pub fn describe(&self, used: &Usage) -> String {
        let hours = |seconds: u64| format!("{:.1}", seconds as f64 / 3600.0);
        if *self == Self::UNLIMITED {
            let (disk, hours) = (format_mebibytes(used.octets), hours(used.core_seconds));
            return format!("{disk} of disk, {} runs, {hours} core hours", used.runs);
        }
        format!(
            "{} of {} of disk, {} of {} runs, {} of {} core hours",
            format_mebibytes(used.octets),
            format_mebibytes(self.octets),
            used.runs,
            self.runs,
            hours(used.core_seconds),
            hours(self.core_seconds)
        )
    }
}

fn format_mebibytes(octets: u64) -> String {
    format!("{} MiB", octets.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_reason() {
        let quota = Quota { octets: 1 << 30, runs: 100, core_seconds: 7200 };
        let used = Usage { octets: 1 << 29, runs: 99, core_seconds: 7199 };
        assert_eq!(quota.excess(&used), None);
        let why = |used| quota.excess(&used).unwrap();
        assert!(why(Usage { octets: 1 << 30, ..used }).contains("1024 MiB of 1024 MiB of disk"));
        assert_eq!(quota.disk_excess(&used, (1 << 29) - 1), None);
        assert!(quota.disk_excess(&used, 1 << 29).unwrap().contains("512 MiB of 1024 MiB"));
        assert!(why(Usage { runs: 100, ..used }).contains("100 runs"));
        assert!(why(Usage { core_seconds: 7200, ..used }).contains("2 core hours"));
        let line = "512 MiB of 1024 MiB of disk, 99 of 100 runs, 2.0 of 2.0 core hours";
        assert_eq!((quota.describe(&used).as_str(), Quota::UNLIMITED.excess(&used)), (line, None));
    }
}
