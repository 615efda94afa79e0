//! An interactive guest in QEMU: between two steps the guest waits at a gate, and QEMU is stopped, because
//! it would poll the gate.

use std::io;
use std::time::Duration;

use tempfile::TempDir;

use super::gates::{Gates, memory_path};
use super::machine::Machine;
use super::restore;
use crate::engine::interactive::{InteractiveGuest, exit_reason};
use crate::error::MachineFault;
use crate::shared_memory::{self, FragmentKind};
use crate::{KernelError, mailbox};

/// Interval at which the shared memory is checked for a new message.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// An interactive guest. Dropping it ends the guest, then removes its directory.
#[derive(Debug)]
pub(super) struct Guest {
    machine: Machine,
    gates: Gates,
    /// Whether the guest has been resumed from its snapshot.
    has_started: bool,
    /// The fragments of the current message that have been received so far.
    message: Vec<u8>,
    work: TempDir,
}

impl Guest {
    /// Creates a guest without a deadline, because the user may take any time, and can interrupt a step.
    pub(super) fn new(mut machine: Machine, work: TempDir) -> Self {
        let gates = machine.take_gates().expect("an interactive machine is started with gates");
        Self { machine, gates, has_started: false, message: Vec::new(), work }
    }

    /// Returns why the guest ended unexpectedly.
    fn end_reason(&mut self) -> KernelError {
        let mail = restore::read_mail(&mut self.machine);
        mail.map_or_else(|problem| problem, |mail| exit_reason(&mail).into())
            .with_console(self.machine.console())
    }

    /// Returns a function that converts an error of the shared memory; `action` is what failed.
    fn memory_error(&self, action: &'static str) -> impl FnOnce(io::Error) -> KernelError + use<> {
        let path = memory_path(self.work.path());
        move |problem| KernelError::file(action, &path, problem)
    }
}

impl InteractiveGuest for Guest {
    fn write_step(&mut self, step: &[u8]) -> Result<(), KernelError> {
        if step.len() > shared_memory::MAX_FRAGMENT {
            let what = format!("a command of {} octets including its variables", step.len());
            let why = format!(
                "the maximum is {}; let the command read its input from a file",
                shared_memory::MAX_FRAGMENT
            );
            return Err(KernelError::Unsupported { what, why });
        }
        self.gates.shared_memory.write(FragmentKind::Step, step).map_err(self.memory_error("write"))
    }

    fn resume(&mut self) -> Result<(), KernelError> {
        if !self.has_started {
            self.has_started = true;
            return self.machine.resume();
        }
        self.gates.open_next().map_err(self.memory_error("open the gate next to"))?;
        self.machine.set_paused(false);
        Ok(())
    }

    fn next_message(&mut self) -> Result<Option<Vec<u8>>, KernelError> {
        let Some((kind, part)) = self
            .gates
            .shared_memory
            .take(&shared_memory::MESSAGE_FRAGMENTS)
            .map_err(self.memory_error("read"))?
        else {
            return if self.machine.pauses_within(CHECK_INTERVAL)? {
                Err(self.end_reason())
            } else {
                Ok(None)
            };
        };
        if (self.message.len() + part.len()) as u64 > mailbox::SIZE {
            return Err(MachineFault::Guest(
                "the guest sends messages faster than hol reads them".to_owned(),
            )
            .into());
        }
        self.message.extend(part);
        if kind == FragmentKind::Part {
            self.resume()?;
            return Ok(None);
        }
        self.machine.set_paused(true);
        Ok(Some(std::mem::take(&mut self.message)))
    }

    fn interrupt(&mut self) -> Result<(), KernelError> {
        self.gates.shared_memory.interrupt().map_err(self.memory_error("write"))
    }
}
