//! A machine is a process of this one: it ends no later, and with all that it started.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

/// `command` gets a process group of its own, and does not outlive us, even if we are killed.
#[expect(unsafe_code, reason = "between fork and exec only prctl is called, which is async-signal-safe")]
pub(super) fn bind(command: &mut Command) {
    command.process_group(0);
    // SAFETY: the closure allocates nothing and calls nothing but prctl(2).
    unsafe {
        command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
    }
}

/// Has it stand still, or go on.
pub(super) fn hold(child: &Child, is_held: bool) {
    let signal = if is_held { Signal::SIGSTOP } else { Signal::SIGCONT };
    // If it has ended, its end tells.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
}

/// Waits until it has ended, and leaves its number to it.
pub(super) fn await_end(child: &Child) -> io::Result<()> {
    let of = Id::Pid(Pid::from_raw(child.id().cast_signed()));
    waitid(of, WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    Ok(())
}

/// Ends all that it started, and itself unless it has ended; tells how it did. Not to be called twice: its number may be
/// another's then.
pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    child.wait()
}

/// A machine that ends by itself. Dropping it ends it, and all that it started.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    /// Readable when it has ended.
    ending: OwnedFd,
    /// Whether all that it started has been ended, too.
    is_over: bool,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        bind(command);
        let mut child = command.spawn()?;
        match pidfd_open(rustix::process::Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(ending) => Ok(Self { child, ending, is_over: false }),
            Err(problem) => {
                let _ = end(&mut child);
                Err(problem.into())
            }
        }
    }

    /// Whether it has, after so long at most.
    pub(crate) fn has_ended(&self, wait: Duration) -> bool {
        let wait = Timespec::try_from(wait).ok();
        let mut events = [PollFd::new(&self.ending, PollFlags::IN)];
        poll(&mut events, wait.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Has it stand still, or go on.
    pub(super) fn hold(&self, is_held: bool) {
        hold(&self.child, is_held);
    }

    /// Ends it, and tells how it did. Not to be called twice.
    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        self.is_over = true;
        end(&mut self.child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = end(&mut self.child);
        }
    }
}
