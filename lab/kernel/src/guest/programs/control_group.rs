//! The control group of a program and of all processes that it starts. cgroups(7), version 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::MsFlags;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::container::mount_at;
use crate::guest::GuestError;

/// The mount point of the control groups.
pub(super) const CONTROL_GROUPS: &str = "/cells";
/// The memory limit of a program, which is killed if it uses more memory; the virtual machine has 1 GiB.
const MEMORY_LIMIT: &str = "640M";

/// Mounts the tree of control groups.
pub(super) fn mount_tree() -> Result<(), GuestError> {
    fs::create_dir_all(CONTROL_GROUPS)?;
    mount_at(Some("cells"), CONTROL_GROUPS, "cgroup2", MsFlags::empty(), None)?;
    let control = Path::new(CONTROL_GROUPS).join("cgroup.subtree_control");
    fs::write(&control, "+memory +pids").map_err(|e| format!("{}: {e}", control.display()).into())
}

/// A control group for one program.
#[derive(Debug)]
pub(super) struct ControlGroup(PathBuf);

impl ControlGroup {
    /// Creates an empty control group.
    pub(super) fn new(number: usize) -> Result<Self, GuestError> {
        let path = Path::new(CONTROL_GROUPS).join(number.to_string());
        fs::create_dir(&path)?;
        fs::write(path.join("memory.max"), MEMORY_LIMIT)?;
        fs::write(path.join("pids.max"), "4096")?;
        Ok(Self(path))
    }

    /// Returns the path of the file through which processes join the group: a process that writes 0 to it is
    /// added.
    pub(super) fn procs_file(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Sends SIGTERM to all processes of the group.
    pub(super) fn terminate(&self) -> Result<(), GuestError> {
        self.signal(Signal::SIGTERM).map(drop)
    }

    /// Kills the processes of the group. Linux 5.14 and later kill all of them at once; with an older kernel the
    /// call is repeated, because processes may have started new ones.
    pub(super) fn kill(&self) -> Result<(), GuestError> {
        const MAX_ATTEMPTS: u32 = 1000;
        const RETRY_INTERVAL: Duration = Duration::from_millis(1);
        let at_once = self.0.join("cgroup.kill");
        if at_once.exists() {
            return Ok(fs::write(at_once, "1")?);
        }
        for _ in 0..MAX_ATTEMPTS {
            if !self.signal(Signal::SIGKILL)? {
                return Ok(());
            }
            std::thread::park_timeout(RETRY_INTERVAL);
        }
        Err("the programs start processes faster than hol can kill them; use Linux 5.14 or later".into())
    }

    /// Sends a signal to all processes of the group; returns whether the group has any.
    fn signal(&self, signal: Signal) -> Result<bool, GuestError> {
        let processes = fs::read_to_string(self.procs_file())?;
        for process in processes.lines() {
            // The process may have ended meanwhile.
            let _ = process.parse().map(|process| kill(Pid::from_raw(process), signal));
        }
        Ok(!processes.is_empty())
    }

    /// Returns whether the group has no processes.
    pub(super) fn has_no_processes(&self) -> bool {
        self.read_number("cgroup.events", "populated").is_none_or(|populated| populated == 0)
    }

    /// Returns whether a process was killed because of the memory limit.
    pub(super) fn was_out_of_memory(&self) -> bool {
        self.read_number("memory.events", "oom_kill").is_some_and(|killed| killed > 0)
    }

    /// Returns the processor time that the group has used, in µs.
    pub(super) fn processor_time(&self) -> u64 {
        self.read_number("cpu.stat", "usage_usec").unwrap_or(0)
    }

    /// Returns the number that follows `key` in `file`, one of the group's files.
    fn read_number(&self, file: &str, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.0.join(file)).ok()?;
        let (_, number) =
            text.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == key)?;
        number.trim().parse().ok()
    }
}
