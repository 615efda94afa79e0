//! A virtual machine: QEMU with a clock that counts instructions and jumps over idle time.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use super::gates::Gates;
use super::hardware::{self, MachineHardware};
use super::installed_qemu::InstalledQemu;
use super::lockstep;
use super::processor_speed::ProcessorSpeed;
use super::program::{self, QEMU};
use super::qmp::{self, Reply};
use crate::engine::child;
use crate::engine::contract::Task;
use crate::engine::deadline::Deadline;
use crate::engine::sandbox::{AccessRules, confine};
use crate::engine::self_test::HostDisturbance;
use crate::error::{ConsoleOutput, MachineFault};
use crate::guest::variables;
use crate::root::RootImage;
use crate::{KernelError, StepExactness, mailbox};

/// Memory that QEMU needs in addition to the guest's, in MiB; most of it is for translated code.
pub(super) const QEMU_OVERHEAD: u64 = 300;

/// The name of the event that QEMU sends when the machine is paused.
const PAUSED_EVENT: &str = "STOP";

/// A running QEMU. Dropping this value kills QEMU and its descendants.
#[derive(Debug)]
pub(super) struct Machine {
    child: Child,
    commands: ChildStdin,
    lines: Receiver<String>,
    reader: Option<JoinHandle<()>>,
    /// The directory with the console output and QEMU's messages.
    directory: PathBuf,
    deadline: Deadline,
    /// The gates of an interactive guest.
    gates: Option<Gates>,
    /// Whether [`end`](Self::end) has been called.
    is_over: bool,
}

/// Kernel options that disable features of a distribution's kernel that take time and do not affect measurements:
/// mitigations, accounting of stalls, clearing of memory before use, checks of copied memory, security modules, and
/// tests of ciphers, which would continue in the background of each run (50 million instructions). A transaction of
/// `simco` over TCP at 1 % loss executes 74,800 instructions, 8,700 of them in the protocol; without the options it
/// would execute 2,100 more for `psi`, 800 for `init_on_alloc`, and 700 each for `hardened_usercopy` and `lsm`.
const DISABLED_FEATURES: &str =
    "mitigations=off psi=0 init_on_alloc=0 hardened_usercopy=off lsm=capability cryptomgr.notests";

/// Returns the command line of the guest's kernel. It sets one console, and reserves memory for the mailbox and,
/// if the guest is interactive, for the shared memory.
pub(super) fn command_line(hardware: MachineHardware) -> String {
    format!(
        "console=ttyS0 quiet panic=-1 {DISABLED_FEATURES} nokaslr random.trust_cpu=off rdinit=/init {}={} memmap={}M${:#x}{}{}",
        variables::ENGINE_VARIABLE,
        variables::QEMU,
        hardware.reserved_octets() >> 20,
        mailbox::ADDRESS,
        if hardware.has_root() { format!(" {}=1", variables::ROOT_VARIABLE) } else { String::new() },
        // The kernel need not know that its memory consists of several parts.
        if hardware.is_interactive() { " numa=off" } else { "" }
    )
}

impl Machine {
    /// Starts QEMU with the processor speed `pace`, with `arguments` in addition to the hardware for `task`. QEMU
    /// reads `files` and writes to `directory`. The task's wall-clock limit counts from now.
    pub(super) fn start(
        arguments: &[String],
        files: &[&Path],
        task: &Task<'_>,
        directory: &Path,
        (qemu, pace): (&InstalledQemu, ProcessorSpeed),
        host: HostDisturbance,
    ) -> Result<Self, KernelError> {
        let messages = directory.join("qemu.log");
        let messages = File::create(&messages).map_err(|e| KernelError::file("create", &messages, e))?;
        let console = format!("file:{}", directory.join("console.log").display());
        let mut command = program::command(Path::new(QEMU.0));
        command.args(pace.clock_arguments()).args(MachineHardware::of(task).hardware_arguments());
        command.args(["-serial", &console]).args(arguments);
        command.args(task.root.map(hardware::root_device_arguments).into_iter().flatten());
        let gates = task.is_interactive.then(|| Gates::create(directory)).transpose()?;
        command.args(gates.iter().flat_map(|_| hardware::interactive_arguments(directory)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(messages);
        if host == HostDisturbance::Forced {
            lockstep::load_disturbance(&mut command, directory)?;
        }
        if qemu.stepping == StepExactness::Exact {
            lockstep::load(&mut command, directory)?;
            lockstep::set_speed(&mut command, pace);
            lockstep::name_threads(&mut command);
        }
        let rules = AccessRules {
            programs: program::search_directories(),
            reads: files.iter().copied().chain(task.root.map(RootImage::image)).map(Path::to_owned).collect(),
            writable: vec![directory.to_owned()],
        };
        confine(&mut command, &rules).map_err(|e| KernelError::file("confine", Path::new(QEMU.0), e))?;
        child::bind_to_parent(&mut command);
        let mut child = command
            .spawn()
            .map_err(|_| KernelError::ProgramMissing { program: QEMU.0.to_owned(), package: QEMU.1 })?;
        let commands = child.stdin.take().expect("the stream is a pipe");
        let output = BufReader::new(child.stdout.take().expect("the stream is a pipe"));
        let (sender, lines) = channel();
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let (directory, deadline) = (directory.to_owned(), Deadline::new(task.limit));
        let reader = Some(reader);
        let mut machine = Self { child, commands, lines, reader, directory, deadline, gates, is_over: false };
        machine.execute("qmp_capabilities", &Value::Null)?;
        Ok(machine)
    }

    /// Executes a command of QEMU's monitor (QMP).
    pub(super) fn execute(&mut self, command: &str, arguments: &Value) -> Result<Value, KernelError> {
        let line = qmp::command(command, arguments);
        let written = self.commands.write_all(line.as_bytes()).and_then(|()| self.commands.flush());
        if written.is_err() {
            return Err(self.crashed());
        }
        loop {
            match self.next("answering its monitor", &mut || true)? {
                Reply::Return(value) => return Ok(value),
                Reply::Error(message) => {
                    let fault = MachineFault::Refused { command: command.to_owned(), message };
                    return Err(KernelError::from(fault).with_console(self.console()));
                }
                Reply::Event(..) | Reply::Other => {}
            }
        }
    }

    /// Removes the deadline, and returns the gates of an interactive guest.
    pub(super) fn take_gates(&mut self) -> Option<Gates> {
        self.deadline = Deadline::never();
        self.gates.take()
    }

    /// Stops QEMU if `is_paused`, otherwise lets it continue.
    pub(super) fn set_paused(&self, is_paused: bool) {
        child::set_paused(&self.child, is_paused);
    }

    /// Lets the guest run again.
    pub(super) fn resume(&mut self) -> Result<(), KernelError> {
        self.execute("cont", &Value::Null).map(drop)
    }

    /// Waits for at most `moment` until the guest pauses the machine, or for a shorter time. Returns whether the
    /// guest has paused it.
    pub(super) fn pauses_within(&mut self, moment: Duration) -> Result<bool, KernelError> {
        match self.lines.recv_timeout(moment) {
            Ok(line) => Ok(matches!(qmp::parse(&line), Reply::Event(event, _) if event == PAUSED_EVENT)),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err(self.crashed()),
        }
    }

    /// Lets the guest run until it pauses the machine. Ends the run when `goes_on` returns false.
    pub(super) fn run_until_paused(
        &mut self,
        doing: &'static str,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), KernelError> {
        self.resume()?;
        self.wait(doing, |event, _| event == PAUSED_EVENT, goes_on)
    }

    /// Waits until QEMU sends an event for which `wanted` returns true, given the event's name and data. `doing`
    /// describes what the machine does, for the error if the deadline passes first.
    pub(super) fn wait_for(
        &mut self,
        doing: &'static str,
        wanted: impl FnMut(&str, &Value) -> bool,
    ) -> Result<(), KernelError> {
        self.wait(doing, wanted, &mut || true)
    }

    fn wait(
        &mut self,
        doing: &'static str,
        mut wanted: impl FnMut(&str, &Value) -> bool,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), KernelError> {
        loop {
            match self.next(doing, goes_on)? {
                Reply::Event(event, data) if wanted(&event, &data) => return Ok(()),
                _ => {}
            }
        }
    }

    /// Returns `length` octets of the guest's memory, beginning at `address`. QEMU writes them to a file.
    pub(super) fn read_memory(&mut self, address: u64, length: u64) -> Result<Vec<u8>, KernelError> {
        let path = self.directory.join("memory");
        self.execute("pmemsave", &json!({ "val": address, "size": length, "filename": path }))?;
        fs::read(&path).map_err(|e| KernelError::file("read", &path, e))
    }

    fn next(&mut self, doing: &'static str, goes_on: &mut dyn FnMut() -> bool) -> Result<Reply, KernelError> {
        loop {
            match self.lines.recv_timeout(self.deadline.wait_time()) {
                Ok(line) => return Ok(qmp::parse(&line)),
                Err(RecvTimeoutError::Timeout) => {
                    let asked = self.deadline.check(doing, goes_on);
                    asked.map_err(|problem| problem.with_console(self.console()))?;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.crashed()),
            }
        }
    }

    fn crashed(&mut self) -> KernelError {
        let status = self.end().map_or("exit status unknown".to_owned(), |status| status.to_string());
        let messages = fs::read_to_string(self.directory.join("qemu.log")).unwrap_or_default();
        let messages = match messages.trim() {
            "" => format!("QEMU printed no message ({status})"),
            messages => format!("{messages} ({status})"),
        };
        KernelError::Machine { fault: MachineFault::Ended(messages), console: self.console() }
    }

    /// Waits until QEMU has ended, and kills its descendants. QEMU must already have closed its output.
    fn end(&mut self) -> io::Result<ExitStatus> {
        if !std::mem::replace(&mut self.is_over, true) {
            child::await_end(&self.child)?;
            return child::kill_and_wait(&mut self.child);
        }
        self.child.wait()
    }

    /// Returns the guest's console output.
    pub(super) fn console(&self) -> ConsoleOutput {
        ConsoleOutput::new(&fs::read(self.directory.join("console.log")).unwrap_or_default())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = child::kill_and_wait(&mut self.child);
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
