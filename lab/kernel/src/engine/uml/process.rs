//! Runs a kernel as a process of the host.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::sched::sched_setaffinity;
use nix::sys::personality::{self, Persona};
use nix::unistd::Pid;

use super::host_resources::HostResources;
use super::processor::Processor;
use crate::KernelError;
use crate::engine::child::ChildProcess;
use crate::engine::contract::Task;
use crate::engine::deadline::Deadline;
use crate::engine::sandbox::confine;
use crate::error::{ConsoleOutput, MachineFault};
use crate::guest::variables;
use crate::hostfs::MAIL_FILE;
use crate::mailbox::MailboxContent;

/// The memory of the guest in MiB, as much as with QEMU. The host provides it on demand.
const MEMORY_MIB: u64 = 512;
/// The memory of a guest that runs programs, in MiB.
pub(super) const MEMORY_WITH_PROGRAMS_MIB: u64 = 1024;

/// The name of the link in the run's directory that leads to the guest's initial file system.
pub(super) const SYSTEM_LINK: &str = "system";

/// The file in the run's directory with the guest's console output.
const CONSOLE_FILE: &str = "console.log";
/// The file in the run's directory with the messages that the kernel prints before it has a console.
const MESSAGES_FILE: &str = "uml.log";

/// A message that the kernel writes to the console file if the host gives it no terminal. It needs none, so the
/// message is no error.
const NO_TERMINAL: &str = "check_one_sigio failed";

/// 2020-01-01, in ns since 1970. The clock of guests in QEMU starts at the same date.
const BOOT_DATE: u64 = 1_577_836_800_000_000_000;

/// A running User-Mode Linux kernel. Dropping this value kills the kernel and its descendants.
#[derive(Debug)]
pub(super) struct Process {
    child: ChildProcess,
    directory: PathBuf,
    deadline: Deadline,
    _processor: Processor,
    _host_resources: HostResources,
}

/// Returns the kernel's command line. With it, computing takes no virtual time, the date is fixed, and there is one
/// console. The kernel mixes the command line into its random numbers, so that the line must be the same for all runs:
/// paths are relative to the run's directory, and the absolute path that hostfs needs is /proc/self/cwd.
fn command_line(memory: u64) -> [String; 15] {
    [
        format!("mem={memory}M"),
        "root=none".to_owned(),
        "rootfstype=hostfs".to_owned(),
        format!("rootflags={SYSTEM_LINK}"),
        "init=/init".to_owned(),
        format!("{}={}", variables::ENGINE_VARIABLE, variables::UML),
        "time-travel=inf-cpu".to_owned(),
        format!("time-travel-start={BOOT_DATE}"),
        "hostfs=/proc/self/cwd".to_owned(),
        "uml_dir=./".to_owned(),
        "umid=uml".to_owned(),
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        "quiet".to_owned(),
        "panic=-1".to_owned(),
    ]
}

impl Process {
    /// Starts the kernel `linux` in `directory` for a task, with `system` as its initial file system.
    pub(super) fn start(
        linux: &Path,
        system: &Path,
        directory: &Path,
        task: &Task<'_>,
    ) -> Result<Self, KernelError> {
        let file = |name: &str| {
            let path = directory.join(name);
            File::create(&path).map_err(|e| KernelError::file("create", &path, e))
        };
        let processor = Processor::reserve();
        let mut command = Command::new(linux);
        let size = task.root.map_or(MEMORY_MIB, |_| MEMORY_WITH_PROGRAMS_MIB);
        command.args(command_line(size)).current_dir(directory);
        let run = |problem| KernelError::file("run", linux, problem);
        command.stdin(Stdio::null()).stdout(file(CONSOLE_FILE)?).stderr(file(MESSAGES_FILE)?);
        let host_resources = HostResources::prepare(directory, size, task)?;
        command.env_clear().env("TMPDIR", host_resources.memory_directory(directory));
        pin(&mut command, &processor);
        let rules = host_resources.access_rules(linux, system, directory);
        confine(&mut command, &rules).map_err(|e| KernelError::file("confine", linux, e))?;
        let child = ChildProcess::start(&mut command).map_err(run)?;
        let deadline = Deadline::new(task.limit);
        let directory = directory.to_owned();
        Ok(Self { child, directory, deadline, _processor: processor, _host_resources: host_resources })
    }

    /// Waits until the process has ended. Stops waiting with an error when `goes_on` returns false.
    pub(super) fn wait(&mut self, goes_on: &mut dyn FnMut() -> bool) -> Result<ExitStatus, KernelError> {
        while !self.has_ended(self.deadline.wait_time()) {
            let asked = self.deadline.check("running", goes_on);
            asked.map_err(|problem| problem.with_console(self.console()))?;
        }
        self.child
            .kill_and_wait()
            .map_err(|e| KernelError::file("wait for the process in", &self.directory, e))
    }

    /// Waits until the guest has ended, and returns the content of its mailbox. Stops waiting with an error when
    /// `goes_on` returns false.
    pub(super) fn wait_for_mail(
        &mut self,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<MailboxContent, KernelError> {
        let status = self.wait(goes_on)?;
        read_mail(&self.directory.join(MAIL_FILE)).map_err(|problem| {
            let reason = format!("User-Mode Linux ended with {status} and {problem}{}", self.messages());
            KernelError::from(MachineFault::Ended(reason)).with_console(self.console())
        })
    }

    /// Waits for at most `wait`; returns whether the process has ended.
    pub(super) fn has_ended(&self, wait: Duration) -> bool {
        self.child.has_ended(wait)
    }

    /// Stops the process if `is_paused`, otherwise lets it continue.
    pub(super) fn set_paused(&self, is_paused: bool) {
        self.child.set_paused(is_paused);
    }

    /// Returns the guest's console output.
    pub(super) fn console(&self) -> ConsoleOutput {
        let output = fs::read(self.directory.join(CONSOLE_FILE)).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let lines = output.split_inclusive('\n').filter(|line| !line.contains(NO_TERMINAL));
        ConsoleOutput::new(lines.collect::<String>().as_bytes())
    }

    /// Returns the last message that the kernel printed before it had a console.
    fn messages(&self) -> String {
        let messages = fs::read_to_string(self.directory.join(MESSAGES_FILE)).unwrap_or_default();
        messages.lines().last().map(|line| format!(" ({line})")).unwrap_or_default()
    }
}

/// Reads the content of the guest's mailbox from a file. An error is worded as the end of a sentence about the
/// guest.
fn read_mail(path: &Path) -> Result<MailboxContent, String> {
    let octets = fs::read(path).map_err(|_| "wrote no result".to_owned())?;
    MailboxContent::from_octets(&octets)
        .map_err(|_| format!("wrote a result that is truncated after {} octets", octets.len()))
}

/// Pins the process to its processor, and disables address space randomisation, because the addresses affect the size
/// of the kernel's memory.
#[expect(
    unsafe_code,
    reason = "between fork and exec only system calls are made, which are async-signal-safe"
)]
fn pin(command: &mut Command, processor: &Processor) {
    let processor = processor.cpu_set();
    // SAFETY: the closure allocates nothing and calls nothing but sched_setaffinity(2) and personality(2).
    unsafe {
        command.pre_exec(move || {
            sched_setaffinity(Pid::from_raw(0), &processor?)?;
            personality::set(Persona::ADDR_NO_RANDOMIZE)?;
            Ok(())
        });
    }
}
