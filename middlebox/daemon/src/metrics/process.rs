//! The resources that Linux reports for this process. proc(5).

use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// The resources of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    /// Processor time in seconds.
    pub cpu_seconds: f64,
    /// Start of the process in seconds since 1970.
    pub start_seconds: f64,
    /// Resident memory in octets.
    pub resident: u64,
    /// Virtual memory in octets.
    pub virtual_memory: u64,
    /// Number of open files.
    pub files: u64,
    /// Maximum number of open files.
    pub max_files: u64,
}

impl Process {
    /// Reads the resources of this process from /proc; `None` if that is not possible.
    pub fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let boot = fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok())?;
        let files = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
        Self::parse(&stat, boot, files)
    }

    fn parse(stat: &str, boot: f64, files: u64) -> Option<Self> {
        // The second field is the name, in parentheses, which may have spaces.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
        let ticks = clock_ticks_per_second() as f64;
        Some(Self {
            cpu_seconds: (number(14)? + number(15)?) as f64 / ticks,
            start_seconds: boot + number(22)? as f64 / ticks,
            virtual_memory: number(23)?,
            resident: number(24)? * page_size() as u64,
            files,
            max_files: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_after_the_name() {
        let stat = "7 (a ) name) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 1000 8192000 300 184467";
        let process = Process::parse(stat, 1e9, 5).unwrap();
        let ticks = clock_ticks_per_second() as f64;
        assert_eq!((process.cpu_seconds, process.start_seconds), (300.0 / ticks, 1e9 + 1000.0 / ticks));
        assert_eq!((process.virtual_memory, process.resident), (8_192_000, 300 * page_size() as u64));
        let this = Process::read().unwrap();
        assert!(this.resident > 0 && this.resident < this.virtual_memory && this.files > 2);
    }
}
