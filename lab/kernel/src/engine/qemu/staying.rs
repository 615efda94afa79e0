//! A guest that stays: between two steps it stands before a gate, and QEMU is stopped, which would look for room in it without end.

use std::io;
use std::time::Duration;

use tempfile::TempDir;

use super::machine::Machine;
use super::restore;
use super::turns::{Turns, memory};
use crate::engine::staying::{Staying, reason};
use crate::error::MachineFault;
use crate::exchange::{self, Kind};
use crate::{KernelError, mailbox};

/// So often it is looked whether it has said something.
const LOOK: Duration = Duration::from_millis(1);

/// It ends when this is dropped, and its directory after it.
#[derive(Debug)]
pub(super) struct Guest {
    machine: Machine,
    turns: Turns,
    /// Whether it has gone on from its snapshot.
    is_under_way: bool,
    /// The parts of a letter that have come.
    letter: Vec<u8>,
    work: TempDir,
}

impl Guest {
    /// Whoever types may think as long as he likes, and ends what takes too long.
    pub(super) fn new(mut machine: Machine, work: TempDir) -> Self {
        let turns = machine.take_turns().expect("it was started to stay");
        Self { machine, turns, is_under_way: false, letter: Vec::new(), work }
    }

    /// Why it has paused its machine.
    fn end(&mut self) -> KernelError {
        let mail = restore::mail(&mut self.machine);
        mail.map_or_else(|problem| problem, |mail| reason(&mail).into()).with_console(self.machine.console())
    }

    /// What to say of a problem with its exchange.
    fn unable(&self, action: &'static str) -> impl FnOnce(io::Error) -> KernelError + use<> {
        let path = memory(self.work.path());
        move |problem| KernelError::file(action, &path, problem)
    }
}

impl Staying for Guest {
    fn give(&mut self, step: &[u8]) -> Result<(), KernelError> {
        if step.len() > exchange::ROOM {
            let what = format!("a line that takes {} octets with its variables", step.len());
            let why = format!("{} are the most; have it read a file", exchange::ROOM);
            return Err(KernelError::Unsupported { what, why });
        }
        self.turns.exchange.say(Kind::Step, step).map_err(self.unable("write"))
    }

    fn go_on(&mut self) -> Result<(), KernelError> {
        if !self.is_under_way {
            self.is_under_way = true;
            return self.machine.go_on();
        }
        self.turns.give().map_err(self.unable("open a gate beside"))?;
        self.machine.hold(false);
        Ok(())
    }

    fn letter(&mut self) -> Result<Option<Vec<u8>>, KernelError> {
        let Some((kind, part)) = self.turns.exchange.heard(&exchange::LETTER).map_err(self.unable("read"))?
        else {
            return if self.machine.pauses_within(LOOK)? { Err(self.end()) } else { Ok(None) };
        };
        if (self.letter.len() + part.len()) as u64 > mailbox::SIZE {
            return Err(MachineFault::Guest("it says more than anybody hears".to_owned()).into());
        }
        self.letter.extend(part);
        if kind == Kind::Part {
            self.go_on()?;
            return Ok(None);
        }
        self.machine.hold(true);
        Ok(Some(std::mem::take(&mut self.letter)))
    }

    fn interrupt(&mut self) -> Result<(), KernelError> {
        self.turns.exchange.interrupt().map_err(self.unable("write"))
    }
}
