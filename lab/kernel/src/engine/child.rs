//! Child processes, which end with this process, together with their descendants.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid, getppid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

/// Puts `command` into its own process group, and makes it end when this process ends or is killed.
#[expect(
    unsafe_code,
    reason = "between fork and exec only prctl and getppid are called, which are async-signal-safe"
)]
pub(super) fn bind_to_parent(command: &mut Command) {
    command.process_group(0);
    let parent = getpid();
    // SAFETY: the closure allocates nothing and calls nothing but prctl(2) and getppid(2).
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // A parent that died before this call sends no signal.
            if getppid() == parent { Ok(()) } else { Err(nix::Error::ESRCH.into()) }
        });
    }
}

/// Stops the process if `is_paused`, otherwise lets it continue.
pub(super) fn set_paused(child: &Child, is_paused: bool) {
    let signal = if is_paused { Signal::SIGSTOP } else { Signal::SIGCONT };
    // An error means that the process has ended, which its exit status shows.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
}

/// Waits until the process has ended, without reaping it, so that its process ID is not reused.
pub(super) fn await_end(child: &Child) -> io::Result<()> {
    let of = Id::Pid(Pid::from_raw(child.id().cast_signed()));
    waitid(of, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    Ok(())
}

/// Kills the process and its descendants, and returns its exit status. Must not be called twice, because another
/// process may then have the process ID.
pub(super) fn kill_and_wait(child: &mut Child) -> io::Result<ExitStatus> {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    child.wait()
}

/// A process of the host. Dropping it kills the process and its descendants.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    child: Child,
    /// A descriptor that becomes readable when the process has ended.
    ending: OwnedFd,
    /// Whether [`kill_and_wait`](Self::kill_and_wait) has been called.
    is_over: bool,
}

impl ChildProcess {
    /// Starts a process of the host that ends when this process ends.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        bind_to_parent(command);
        let mut child = command.spawn()?;
        match pidfd_open(rustix::process::Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ending) => Ok(Self { child, ending, is_over: false }),
            Err(problem) => {
                let _ = kill_and_wait(&mut child);
                Err(problem.into())
            }
        }
    }

    /// Waits for at most `wait`; returns whether the process has ended.
    pub(crate) fn has_ended(&self, wait: Duration) -> bool {
        let wait = Timespec::try_from(wait).ok();
        let mut events = [PollFd::new(&self.ending, PollFlags::IN)];
        poll(&mut events, wait.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Stops the process if `is_paused`, otherwise lets it continue.
    pub(super) fn set_paused(&self, is_paused: bool) {
        set_paused(&self.child, is_paused);
    }

    /// Kills the process and returns its exit status. Must not be called twice.
    pub(crate) fn kill_and_wait(&mut self) -> io::Result<ExitStatus> {
        self.is_over = true;
        kill_and_wait(&mut self.child)
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill_and_wait(&mut self.child);
        }
    }
}
