//! What holds a program and all that it starts: a control group. cgroups(7), version 2.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::MsFlags;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::place::put;
use crate::guest::Trouble;

/// Where they are.
pub(super) const CELLS: &str = "/cells";
/// A program that takes more memory than this is killed; the machine has 1 GiB.
const MEMORY: &str = "640M";

/// Mounts the tree of control groups.
pub(super) fn open() -> Result<(), Trouble> {
    fs::create_dir_all(CELLS)?;
    put(Some("cells"), CELLS, "cgroup2", MsFlags::empty(), None)?;
    let control = Path::new(CELLS).join("cgroup.subtree_control");
    fs::write(&control, "+memory +pids").map_err(|e| format!("{}: {e}", control.display()).into())
}

/// A control group.
#[derive(Debug)]
pub(super) struct Cell(PathBuf);

impl Cell {
    /// An empty one.
    pub(super) fn new(number: usize) -> Result<Self, Trouble> {
        let place = Path::new(CELLS).join(number.to_string());
        fs::create_dir(&place)?;
        fs::write(place.join("memory.max"), MEMORY)?;
        fs::write(place.join("pids.max"), "4096")?;
        Ok(Self(place))
    }

    /// The file to which a process writes 0 to be in it.
    pub(super) fn entrance(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Asks all processes in it to end.
    pub(super) fn ask_to_end(&self) -> Result<(), Trouble> {
        self.signal(Signal::SIGTERM).map(drop)
    }

    /// Ends them: all at once, or before Linux 5.14 those that there are, and who was started meanwhile.
    pub(super) fn kill(&self) -> Result<(), Trouble> {
        const ROUNDS: u32 = 1000;
        const ROUND: Duration = Duration::from_millis(1);
        let at_once = self.0.join("cgroup.kill");
        if at_once.exists() {
            return Ok(fs::write(at_once, "1")?);
        }
        for _ in 0..ROUNDS {
            if !self.signal(Signal::SIGKILL)? {
                return Ok(());
            }
            std::thread::park_timeout(ROUND);
        }
        Err("they start others faster than they are ended; take Linux 5.14 or later".into())
    }

    /// Sends a signal to all processes in it; says whether there are any.
    fn signal(&self, signal: Signal) -> Result<bool, Trouble> {
        let processes = fs::read_to_string(self.entrance())?;
        for process in processes.lines() {
            // It may have ended meanwhile.
            let _ = process.parse().map(|process| kill(Pid::from_raw(process), signal));
        }
        Ok(!processes.is_empty())
    }

    /// Whether nothing lives in it.
    pub(super) fn is_deserted(&self) -> bool {
        self.tells("cgroup.events", "populated").is_none_or(|populated| populated == 0)
    }

    /// Whether something in it was killed for its memory.
    pub(super) fn was_out_of_memory(&self) -> bool {
        self.tells("memory.events", "oom_kill").is_some_and(|killed| killed > 0)
    }

    /// Processor time that it has used, in µs.
    pub(super) fn processor(&self) -> u64 {
        self.tells("cpu.stat", "usage_usec").unwrap_or(0)
    }

    /// The number behind `key` in one of its files.
    fn tells(&self, file: &str, key: &str) -> Option<u64> {
        let text = fs::read_to_string(self.0.join(file)).ok()?;
        let (_, number) =
            text.lines().filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == key)?;
        number.trim().parse().ok()
    }
}
