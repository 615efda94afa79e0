//! A program that runs, or has.

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

use super::cell::Cell;
use super::place::{PLACES, Place};
use crate::guest::Trouble;
use crate::guest::clock::wall;

/// What a program has of its environment unless the experiment says otherwise.
pub(super) const ENVIRONMENT: [(&str, &str); 3] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/root"),
    ("LANG", "C.UTF-8"),
];
/// linux/capability.h: `SYS_MODULE`, `SYS_RAWIO`, `SYS_PTRACE`, `SYS_ADMIN`, `SYS_BOOT`, `MKNOD`.
const BEYOND: [libc::c_ulong; 6] = [16, 17, 19, 21, 22, 27];
/// Octets of an output that are told: so many of its beginning, and of its end.
const TOLD: usize = 32 << 10;
/// A file that a program writes, its output among them, may have so many octets.
const LARGEST: u64 = 256 << 20;
/// So many octets of an output are told at a time.
const LETTER: usize = 1 << 20;

/// A program, and what holds it.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    handle: OwnedFd,
    cell: Cell,
    output: [PathBuf; 2],
    /// Octets of these that were news once.
    known: [u64; 2],
    /// By the wall clock, in ns since 1970.
    pub(super) started: u64,
    status: Option<Status>,
    /// It was asked to end.
    pub(super) was_asked: bool,
}

/// How a program ended, and when.
#[derive(Debug, Clone)]
pub(super) struct Status {
    exit: ExitStatus,
    was_asked: bool,
    /// By the wall clock, in ns since 1970.
    pub(super) at: u64,
}

impl Process {
    /// Starts the program with this number in its place.
    pub(super) fn start(program: &Program, number: usize, place: &Place) -> Result<Self, Trouble> {
        let cell = Cell::new(number)?;
        let output = ["out", "err"].map(|name| Path::new(PLACES).join(format!("{number}.{name}")));
        let words = program.command.words();
        let (first, rest) = words.split_first().ok_or("it has no command")?;
        let variables: BTreeMap<String, String> = ENVIRONMENT
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .chain(program.env.clone())
            .collect();
        let mut command = Command::new(first);
        command.args(rest).env_clear().envs(variables).stdin(Stdio::null());
        // Who opens its output anew goes on where it ends.
        let [stdout, stderr] =
            output.each_ref().map(|path| OpenOptions::new().append(true).create(true).open(path));
        command.stdout(stdout?).stderr(stderr?);
        let entrance = OpenOptions::new().write(true).open(cell.entrance())?;
        let directory = program.directory.as_deref().unwrap_or(Path::new("/root"));
        move_into(&mut command, place, directory, &entrance)?;
        let started = wall();
        let child = place.processes.bear(&mut command).map_err(|problem| match problem.kind() {
            io::ErrorKind::NotFound => {
                format!("{first} is not there; it, or its interpreter, is missing in the root")
            }
            _ => match problem.raw_os_error() {
                Some(libc::ENOEXEC) => format!("{first} is no program for this machine's architecture"),
                _ => format!("cannot start {first}: {problem}"),
            },
        })?;
        let handle = Pid::from_raw(child.id().cast_signed()).ok_or("it has no number")?;
        let handle = pidfd_open(handle, PidfdFlags::empty())?;
        let (known, status, was_asked) = ([0; 2], None, false);
        Ok(Self { child, handle, cell, output, known, started, status, was_asked })
    }

    /// Looks whether it has ended.
    pub(super) fn look(&mut self) -> io::Result<Option<&Status>> {
        if self.status.is_none()
            && let Some(exit) = self.child.try_wait()?
        {
            self.status = Some(Status { exit, was_asked: self.was_asked, at: wall() });
        }
        Ok(self.status.as_ref())
    }

    /// How it ended, if it had when somebody looked.
    pub(super) const fn status(&self) -> Option<&Status> {
        self.status.as_ref()
    }

    /// Asks it, and all that it has started, to end.
    pub(super) fn ask_to_end(&mut self) -> Result<(), Trouble> {
        self.look()?;
        self.was_asked = true;
        self.cell.ask_to_end()
    }

    /// Interrupts it and what it has started, as Ctrl-C does. termios(3)
    pub(super) fn interrupt(&self) {
        // It is the leader of its group, and may have ended meanwhile.
        let _ = killpg(nix::unistd::Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT);
    }

    /// Ends it, and all that it has started.
    pub(super) fn kill(&mut self) -> Result<(), Trouble> {
        self.look()?;
        self.cell.kill()
    }

    /// Whether it has ended, with all that it has started.
    pub(super) fn is_deserted(&self) -> bool {
        self.cell.is_deserted()
    }

    /// Processor time that it and all that it has started used.
    pub(super) fn processor(&self) -> Duration {
        Duration::from_micros(self.cell.processor())
    }

    /// All that it has printed.
    pub(super) fn printed(&self) -> Vec<u8> {
        fs::read(&self.output[0]).unwrap_or_default()
    }

    /// All that it has complained.
    pub(super) fn complained(&self) -> Vec<u8> {
        fs::read(&self.output[1]).unwrap_or_default()
    }

    /// What it wrote to its outputs: of a long one the beginning and the end.
    pub(super) fn output(&self) -> [String; 2] {
        [self.printed(), self.complained()].map(|octets| shortened(&octets))
    }

    /// What it has written to its first or second output since this was asked before, as far as it fits into a letter.
    pub(super) fn news(&mut self, output: usize) -> io::Result<Option<Vec<u8>>> {
        let file = File::open(&self.output[output])?;
        let mut news =
            vec![0; LETTER.min((file.metadata()?.len().saturating_sub(self.known[output])) as usize)];
        file.read_exact_at(&mut news, self.known[output])?;
        self.known[output] += news.len() as u64;
        Ok((!news.is_empty()).then_some(news))
    }

    /// Forgets what it has written.
    pub(super) fn forget(&self) {
        self.output.iter().for_each(|path| drop(fs::remove_file(path)));
    }

    /// Whether it, or what it has started, took more memory than a program has.
    pub(super) fn was_out_of_memory(&self) -> bool {
        self.cell.was_out_of_memory()
    }

    /// Whether it has written `text`.
    pub(super) fn has_printed(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let has = |octets: Vec<u8>| text.is_empty() || octets.windows(text.len()).any(|part| part == text);
        has(self.printed()) || has(self.complained())
    }

    /// The last that it said, in a clause.
    pub(super) fn last_words(&self) -> String {
        if self.was_out_of_memory() {
            return "; it took more memory than the node has".to_owned();
        }
        let [stdout, stderr] = self.output();
        let said = if stderr.trim().is_empty() { stdout } else { stderr };
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" / ");
        if last.is_empty() { String::new() } else { format!("; it said: {last}") }
    }
}

/// Readable when it has ended.
impl AsFd for Process {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Status {
    /// As a shell tells it: 128 and the number of the signal, if it was one. POSIX.1-2017, 2.8.2.
    pub(super) fn code(&self) -> i32 {
        self.exit.code().unwrap_or_else(|| 128 + self.exit.signal().unwrap_or(0))
    }

    /// What was wrong with it, if anything was.
    pub(super) fn problem(&self) -> Option<String> {
        let asked_for = self.was_asked && self.exit.signal() == Some(libc::SIGTERM);
        (!self.exit.success() && !asked_for).then(|| format!("ended with {self}"))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.exit.code(), self.exit.signal()) {
            (Some(code), _) => write!(f, "exit {code}"),
            (None, signal) => write!(f, "signal {}", signal.unwrap_or(0)),
        }
    }
}

/// Has the new process enter its cell and its place before it becomes the program.
fn move_into(command: &mut Command, place: &Place, directory: &Path, entrance: &File) -> Result<(), Trouble> {
    let namespaces = [&place.network, &place.names, &place.messages, &place.mounts].map(AsRawFd::as_raw_fd);
    let paths = [place.root.as_path(), directory].map(|path| CString::new(path.as_os_str().as_bytes()));
    let [root, directory] = paths;
    let (root, directory) = (root?, directory?);
    let entrance: RawFd = entrance.as_raw_fd();
    #[expect(unsafe_code, reason = "a process enters namespaces between fork and exec")]
    // SAFETY: only system calls are made, on descriptors that are open until the process was started, and on strings that the
    // closure owns; nothing is allocated.
    unsafe {
        command.pre_exec(move || enter(entrance, &namespaces, &root, &directory));
    }
    Ok(())
}

#[expect(unsafe_code, reason = "see its only caller")]
fn enter(entrance: RawFd, namespaces: &[RawFd], root: &CStr, directory: &CStr) -> io::Result<()> {
    let done = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
    let limit = |most| libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: see the caller.
    unsafe {
        if libc::write(entrance, c"0".as_ptr().cast(), 1) != 1 {
            return Err(io::Error::last_os_error());
        }
        for namespace in namespaces {
            done(libc::setns(*namespace, 0))?;
        }
        done(libc::chroot(root.as_ptr()))?;
        done(libc::chdir(directory.as_ptr())).or_else(|_| done(libc::chdir(c"/".as_ptr())))?;
        // Capabilities that reach beyond the node: mounts, devices, modules, other processes. capabilities(7)
        for capability in BEYOND {
            done(libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0))?;
        }
        done(libc::setrlimit(libc::RLIMIT_FSIZE, &limit(LARGEST)))?;
        done(libc::setrlimit(libc::RLIMIT_CORE, &limit(0)))?;
        libc::setsid();
    }
    Ok(())
}

/// Of more than twice [`TOLD`] octets the first and the last.
fn shortened(octets: &[u8]) -> String {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    if octets.len() <= 2 * TOLD {
        return text(octets);
    }
    let left_out = octets.len() - 2 * TOLD;
    format!(
        "{}\n[{left_out} octets are left out here]\n{}",
        text(&octets[..TOLD]),
        text(&octets[octets.len() - TOLD..])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let long = [vec![b'a'; 2 * TOLD], vec![b'b'; TOLD + 5]].concat();
        let text = shortened(&long);
        assert!(
            text.starts_with("aaa") && text.ends_with("bbb") && text.contains("[32773 octets"),
            "{}",
            text.len()
        );
        assert_eq!(shortened(b"short"), "short");
    }

    #[test]
    fn what_was_asked_to_end_may_end_by_that() {
        let status = |exit, was_asked| Status { exit: ExitStatus::from_raw(exit), was_asked, at: 0 };
        assert_eq!(status(0, false).problem(), None);
        assert_eq!(status(libc::SIGTERM, true).problem(), None);
        assert_eq!(status(libc::SIGTERM, false).problem().as_deref(), Some("ended with signal 15"));
        assert_eq!(status(7 << 8, true).problem().as_deref(), Some("ended with exit 7"));
    }
}
