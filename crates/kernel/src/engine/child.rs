//! A machine is a process of this one: it ends no later, and with all that it started.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};

use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// `command` gets a process group of its own, and does not outlive us, even if we are killed.
#[expect(unsafe_code, reason = "between fork and exec only prctl is called, which is async-signal-safe")]
pub(super) fn bind(command: &mut Command) {
    command.process_group(0);
    // SAFETY: the closure allocates nothing and calls nothing but prctl(2).
    unsafe {
        command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGKILL)?));
    }
}

/// Ends all that it started, and itself unless it has ended; tells how it did. Not to be called twice: its number may be
/// another's then.
pub(super) fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    child.wait()
}
