//! The init process of a node's PID namespace. It reaps the node's processes whose parents have ended.
//! pid_namespaces(7)

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;

use nix::errno::Errno;
use nix::libc;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::wait;

use crate::guest::GuestError;
use crate::guest::variables::{ENGINE_VARIABLE, INIT_PROCESS};

/// The PID namespace of a node. Its processes end with its init process.
#[derive(Debug)]
pub(super) struct PidNamespace {
    /// The init process of the namespace.
    first: Child,
    namespace: File,
}

impl PidNamespace {
    /// Starts the init process of a node, which runs this program. Afterwards this thread can start processes only in
    /// the node's PID namespace. `proc` is the mount point of the node's proc(5).
    pub(super) fn start(proc: &str) -> Result<Self, GuestError> {
        unshare(CloneFlags::CLONE_NEWPID)?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("init").env_clear().env(ENGINE_VARIABLE, INIT_PROCESS).stdin(Stdio::null());
        mount_proc(&mut command, CString::new(proc)?);
        let first = command.spawn().map_err(|e| format!("cannot start a node's first process: {e}"))?;
        let namespace = File::open(format!("/proc/{}/ns/pid", first.id()))?;
        Ok(Self { first, namespace })
    }

    /// Converts a path as the node's processes see it to a path as this process sees it. proc(5), `/proc/pid/root`
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix("/").unwrap_or(path);
        Path::new("/proc").join(self.first.id().to_string()).join("root").join(inside)
    }

    /// Starts a process in the PID namespace.
    pub(super) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // The work is done in a thread that ends afterwards, because all further children of a thread that enters a PID namespace are in that
        // namespace.
        thread::scope(|scope| {
            let spawned = scope.spawn(|| {
                setns(&self.namespace, CloneFlags::CLONE_NEWPID)?;
                command.spawn()
            });
            spawned.join().map_err(|_| io::Error::other("the thread that starts a process has panicked"))?
        })
    }
}

impl Drop for PidNamespace {
    /// Kills the init process, and thereby all other processes of the namespace. Does not wait for its end: it ends
    /// only after all others have, which may never happen.
    fn drop(&mut self) {
        let _ = self.first.kill();
    }
}

/// Makes the child mount proc(5). A mount of proc(5) shows the processes of the PID namespace in which it was
/// made.
fn mount_proc(command: &mut Command, path: CString) {
    #[expect(unsafe_code, reason = "the child mounts proc between fork and exec")]
    // SAFETY: the closure makes one system call, on strings that it owns, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            let kind = c"proc".as_ptr();
            match libc::mount(kind, path.as_ptr(), kind, 0, std::ptr::null()) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        });
    }
}

/// Runs as the init process of a node: reaps all other processes until it is killed.
pub(crate) fn main() -> ExitCode {
    let mut child = SigSet::empty();
    child.add(Signal::SIGCHLD);
    // The signal is blocked before the check for ended children, so that none is missed.
    if child.thread_block().is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        match wait() {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => drop(child.wait()),
        }
    }
}
