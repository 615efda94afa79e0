//! A process of a user's program.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use hol_base::Duration;
use hol_scenario::Program;
use nix::libc;
use nix::sys::signal::{Signal, killpg};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::container::{CONTAINER_DIRECTORY, Container};
use super::control_group::ControlGroup;
use crate::guest::GuestError;
use crate::guest::clock::wall_clock_ns;

/// The default environment of a program.
pub(super) const DEFAULT_ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
];
/// Numbers of the capabilities that programs do not have: `SYS_MODULE`, `SYS_RAWIO`, `SYS_PTRACE`, `SYS_ADMIN`,
/// `SYS_BOOT` and `MKNOD` (linux/capability.h).
const DROPPED_CAPABILITIES: [libc::c_ulong; 6] = [16, 17, 19, 21, 22, 27];
/// If an output is long, only its first octets and its last octets are reported, this many of each.
const EXCERPT_OCTETS: usize = 32 << 10;
/// The largest file that a program may write, in octets. The limit also applies to its output.
const MAX_FILE: u64 = 256 << 20;
/// The largest part of an output in one message to the host, in octets.
const MAX_CHUNK: usize = 1 << 20;

/// A running program, and its control group.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    handle: OwnedFd,
    control_group: ControlGroup,
    output: [PathBuf; 2],
    /// Number of octets of standard output (index 0) and standard error (1) that
    /// [`read_new_output`](Self::read_new_output) has returned.
    reported: [u64; 2],
    /// Wall-clock time of the start, in ns since 1970.
    pub(super) started_at: u64,
    status: Option<ProgramExit>,
    /// Whether the program was sent SIGTERM.
    pub(super) was_terminated: bool,
}

/// How a program ended, and when.
#[derive(Debug, Clone)]
pub(super) struct ProgramExit {
    exit: ExitStatus,
    was_terminated: bool,
    /// Wall-clock time of the end, in ns since 1970.
    pub(super) ended_at: u64,
}

impl Process {
    /// Starts the program with this number in its node's container.
    pub(super) fn start(program: &Program, number: usize, container: &Container) -> Result<Self, GuestError> {
        let control_group = ControlGroup::new(number)?;
        let output =
            ["out", "err"].map(|name| Path::new(CONTAINER_DIRECTORY).join(format!("{number}.{name}")));
        let words = program.command.argument_vector();
        let (first, rest) = words.split_first().ok_or("the program has no command")?;
        let variables: BTreeMap<String, String> = DEFAULT_ENVIRONMENT
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain(program.env.clone())
            .collect();
        let mut command = Command::new(first);
        command.args(rest).env_clear().envs(variables).stdin(Stdio::null());
        // Append mode: a process that opens its output again writes at the end of the file.
        let [stdout, stderr] =
            output.each_ref().map(|path| OpenOptions::new().append(true).create(true).open(path));
        command.stdout(stdout?).stderr(stderr?);
        let procs_file = OpenOptions::new().write(true).open(control_group.procs_file())?;
        let directory = program.directory.as_deref().unwrap_or(Path::new("/root"));
        enter_before_exec(&mut command, container, directory, &procs_file)?;
        let started = wall_clock_ns();
        let child = container.pid_namespace.spawn(&mut command).map_err(|problem| match problem.kind() {
            io::ErrorKind::NotFound => {
                format!(
                    "{first} not found: the program, or its interpreter, is missing in the root file system"
                )
            }
            _ => match problem.raw_os_error() {
                Some(libc::ENOEXEC) => {
                    format!("{first} is not a program for the architecture of this machine")
                }
                _ => format!("cannot start {first}: {problem}"),
            },
        })?;
        let handle = Pid::from_raw(child.id().cast_signed()).ok_or("the program has no process ID")?;
        let handle = pidfd_open(handle, PidfdFlags::empty())?;
        let (reported, status, was_terminated) = ([0; 2], None, false);
        Ok(Self {
            child,
            handle,
            control_group,
            output,
            reported,
            started_at: started,
            status,
            was_terminated,
        })
    }

    /// Checks whether the program has ended. If so, returns how it ended.
    pub(super) fn poll_exit(&mut self) -> io::Result<Option<&ProgramExit>> {
        if self.status.is_none()
            && let Some(exit) = self.child.try_wait()?
        {
            self.status =
                Some(ProgramExit { exit, was_terminated: self.was_terminated, ended_at: wall_clock_ns() });
        }
        Ok(self.status.as_ref())
    }

    /// Returns how the program ended. `None` if it is running, or if [`poll_exit`](Self::poll_exit) has not yet
    /// been called since its end.
    pub(super) const fn status(&self) -> Option<&ProgramExit> {
        self.status.as_ref()
    }

    /// Sends SIGTERM to the program and all processes that it has started.
    pub(super) fn terminate(&mut self) -> Result<(), GuestError> {
        self.poll_exit()?;
        self.was_terminated = true;
        self.control_group.terminate()
    }

    /// Interrupts the program and all processes that it has started, as Ctrl-C does. termios(3)
    pub(super) fn interrupt(&self) {
        // The program is the leader of its process group, and may have ended meanwhile.
        let _ = killpg(nix::unistd::Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
    }

    /// Kills the program and all processes that it has started.
    pub(super) fn kill(&mut self) -> Result<(), GuestError> {
        self.poll_exit()?;
        self.control_group.kill()
    }

    /// Returns whether the program and all processes that it has started have ended.
    pub(super) fn has_no_processes(&self) -> bool {
        self.control_group.has_no_processes()
    }

    /// Returns the processor time of the program and of all processes that it has started.
    pub(super) fn processor_time(&self) -> Duration {
        Duration::from_micros(self.control_group.processor_time())
    }

    /// Returns the standard output of the program.
    pub(super) fn stdout(&self) -> Vec<u8> {
        fs::read(&self.output[0]).unwrap_or_default()
    }

    /// Returns the standard error of the program.
    pub(super) fn stderr(&self) -> Vec<u8> {
        fs::read(&self.output[1]).unwrap_or_default()
    }

    /// Returns standard output and standard error, each shortened to its start and its end if it is long.
    pub(super) fn output(&self) -> [String; 2] {
        [self.stdout(), self.stderr()].map(|octets| excerpt(&octets))
    }

    /// Returns what the program has written to standard output (`output` is 0) or standard error (1) since the
    /// last call, at most as much as fits into one message. Returns `None` if there is nothing new.
    pub(super) fn read_new_output(&mut self, output: usize) -> io::Result<Option<Vec<u8>>> {
        let file = File::open(&self.output[output])?;
        let mut read_new_output =
            vec![0; MAX_CHUNK.min((file.metadata()?.len().saturating_sub(self.reported[output])) as usize)];
        file.read_exact_at(&mut read_new_output, self.reported[output])?;
        self.reported[output] += read_new_output.len() as u64;
        Ok((!read_new_output.is_empty()).then_some(read_new_output))
    }

    /// Removes the files with the output.
    pub(super) fn remove_output(&self) {
        self.output.iter().for_each(|path| drop(fs::remove_file(path)));
    }

    /// Returns whether the program, or a process that it has started, exceeded the memory limit.
    pub(super) fn was_out_of_memory(&self) -> bool {
        self.control_group.was_out_of_memory()
    }

    /// Returns whether the output of the program contains `text`.
    pub(super) fn has_printed(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let has = |octets: Vec<u8>| text.is_empty() || octets.windows(text.len()).any(|part| part == text);
        has(self.stdout()) || has(self.stderr())
    }

    /// Returns a text for the end of an error message: that the program exceeded the memory of its node, or the
    /// last lines of its standard error, or of its standard output if standard error is empty.
    pub(super) fn last_lines(&self) -> String {
        if self.was_out_of_memory() {
            return "; it exceeded the memory of its node".to_owned();
        }
        let [stdout, stderr] = self.output();
        let (name, output) =
            if stderr.trim().is_empty() { ("standard output", stdout) } else { ("standard error", stderr) };
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        if last.is_empty() { String::new() } else { format!("; its {name}: {last}") }
    }
}

/// Returns a descriptor that becomes readable when the process has ended.
impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl ProgramExit {
    /// Returns the exit code as a shell reports it. If a signal ended the process, it is 128 plus the number of
    /// the signal. POSIX.1-2017, 2.8.2.
    pub(super) fn code(&self) -> i32 {
        self.exit.code().unwrap_or_else(|| 128 + self.exit.signal().unwrap_or(0))
    }

    /// Returns a text for the end of a sentence that tells how the program failed; `None` if it succeeded, or if
    /// SIGTERM ended it as requested.
    pub(super) fn problem(&self) -> Option<String> {
        let asked_for = self.was_terminated && self.exit.signal() == Some(libc::SIGTERM);
        (!self.exit.success() && !asked_for).then(|| format!("ended with {self}"))
    }
}

impl fmt::Display for ProgramExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.exit.code(), self.exit.signal()) {
            (Some(code), _) => write!(f, "exit {code}"),
            (None, signal) => write!(f, "signal {}", signal.unwrap_or(0)),
        }
    }
}

/// Makes the new process enter its control group and its container before exec.
fn enter_before_exec(
    command: &mut Command,
    container: &Container,
    directory: &Path,
    procs_file: &File,
) -> Result<(), GuestError> {
    let namespaces = [
        &container.network_namespace,
        &container.uts_namespace,
        &container.ipc_namespace,
        &container.mount_namespace,
    ]
    .map(AsRawFd::as_raw_fd);
    let paths = [container.root.as_path(), directory].map(|path| CString::new(path.as_os_str().as_bytes()));
    let [root, directory] = paths;
    let (root, directory) = (root?, directory?);
    let procs_file: RawFd = procs_file.as_raw_fd();
    #[expect(unsafe_code, reason = "the child enters namespaces between fork and exec")]
    // SAFETY: the closure makes only system calls, on descriptors that stay open until the process was started, and on strings that it
    // owns; it allocates nothing.
    unsafe {
        command.pre_exec(move || enter(procs_file, &namespaces, &root, &directory));
    }
    Ok(())
}

#[expect(unsafe_code, reason = "it runs between fork and exec, with valid descriptors")]
fn enter(procs_file: RawFd, namespaces: &[RawFd], root: &CStr, directory: &CStr) -> io::Result<()> {
    let done = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let limit = |max| libc::rlimit { rlim_cur: max, rlim_max: max };
    // SAFETY: the caller guarantees that the descriptors are open.
    unsafe {
        if libc::write(procs_file, c"0".as_ptr().cast(), 1) != 1 {
            return Err(io::Error::last_os_error());
        }
        for namespace in namespaces {
            done(libc::setns(*namespace, 0))?;
        }
        done(libc::chroot(root.as_ptr()))?;
        done(libc::chdir(directory.as_ptr())).or_else(|_| done(libc::chdir(c"/".as_ptr())))?;
        // Capabilities that affect more than the node: mounts, devices, modules, other processes. capabilities(7)
        for capability in DROPPED_CAPABILITIES {
            done(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0))?;
        }
        done(libc::setrlimit(libc::RLIMIT_FSIZE, &limit(MAX_FILE)))?;
        done(libc::setrlimit(libc::RLIMIT_CORE, &limit(0)))?;
        libc::setsid();
    }
    Ok(())
}

/// Returns the octets as text. If there are more than twice [`EXCERPT_OCTETS`], returns only the first and the last
/// [`EXCERPT_OCTETS`] octets.
fn excerpt(octets: &[u8]) -> String {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    if octets.len() <= 2 * EXCERPT_OCTETS {
        return text(octets);
    }
    let left_out = octets.len() - 2 * EXCERPT_OCTETS;
    format!(
        "{}\n[{left_out} octets omitted]\n{}",
        text(&octets[..EXCERPT_OCTETS]),
        text(&octets[octets.len() - EXCERPT_OCTETS..])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let long = [vec![b'a'; 2 * EXCERPT_OCTETS], vec![b'b'; EXCERPT_OCTETS + 5]].concat();
        let text = excerpt(&long);
        assert!(
            text.starts_with("aaa") && text.ends_with("bbb") && text.contains("[32773 octets"),
            "{}",
            text.len()
        );
        assert_eq!(excerpt(b"short"), "short");
    }

    #[test]
    fn ending_by_sigterm_after_a_request_is_no_failure() {
        let status = |exit, was_terminated| ProgramExit {
            exit: ExitStatus::from_raw(exit),
            was_terminated,
            ended_at: 0,
        };
        assert_eq!(status(0, false).problem(), None);
        assert_eq!(status(libc::SIGTERM, true).problem(), None);
        assert_eq!(status(libc::SIGTERM, false).problem().as_deref(), Some("ended with signal 15"));
        assert_eq!(status(7 << 8, true).problem().as_deref(), Some("ended with exit 7"));
    }
}
