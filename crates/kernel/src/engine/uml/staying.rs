//! A guest that stays: it takes one step after the other, and stands still between them, for its process is stopped.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::process::Process;
use super::{INTERRUPT, LETTER, SAID, STEP, TURN, last_mail};
use crate::KernelError;
use crate::dialogue::{Letter, Listener, Reply, Step, Wish};
use crate::engine::Staying;
use crate::error::MachineFault;
use crate::job::Answer;

/// So often it is looked whether it has said something.
const LOOK: Duration = Duration::from_millis(1);

/// It ends when this is dropped.
///
/// What is said lies in files of the run's directory that are there from the start: to look for one that is not takes the
/// guest's kernel a microsecond.
#[derive(Debug)]
pub(super) struct Guest {
    process: Process,
    work: TempDir,
    /// Letters that were heard.
    heard: u64,
}

impl Guest {
    pub(super) const fn new(process: Process, work: TempDir) -> Self {
        Self { process, work, heard: 0 }
    }

    /// Lays the files there.
    pub(super) fn lay(work: &Path) -> Result<(), KernelError> {
        [LETTER, SAID, STEP, TURN, INTERRUPT].into_iter().try_for_each(|name| {
            let path = work.join(name);
            fs::write(&path, "").map_err(|e| KernelError::file("create", &path, e))
        })
    }

    /// What it has said, if anything; it stands still from then on.
    fn letter(&mut self) -> Result<Option<Letter>, KernelError> {
        let said = self.work.path().join(SAID);
        if fs::metadata(&said).map_err(|e| KernelError::file("read", &said, e))?.len() == self.heard {
            return Ok(None);
        }
        self.process.hold(true);
        self.heard += 1;
        let path = self.work.path().join(LETTER);
        let letter = fs::read(&path).map_err(|e| KernelError::file("read", &path, e))?;
        self.count(TURN)?;
        let nonsense = || KernelError::from(MachineFault::Guest("what it said makes no sense".to_owned()));
        Letter::parse(&letter).ok_or_else(nonsense).map(Some)
    }

    /// Gives it a step.
    fn give(&self, step: &Step) -> Result<(), KernelError> {
        let path = self.work.path().join(STEP);
        let written = fs::write(&path, serde_json::to_vec(step).expect("a step is plain data"));
        written.map_err(|e| KernelError::file("write", &path, e))?;
        self.count(TURN)
    }

    /// Makes a file longer by one.
    fn count(&self, name: &str) -> Result<(), KernelError> {
        let path = self.work.path().join(name);
        let counted = File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"."));
        counted.map_err(|e| KernelError::file("write", &path, e))
    }

    /// Why it has ended, which it was not asked to.
    fn end(&mut self) -> KernelError {
        let mail = last_mail(&mut self.process, self.work.path(), &mut || true);
        let said = mail.map(|mail| match serde_json::from_slice(&mail.text) {
            Ok(Answer::Failed(problem)) => MachineFault::Guest(problem),
            _ => MachineFault::Ended("it left the shell".to_owned()),
        });
        said.map_or_else(
            |problem| problem,
            |fault| KernelError::from(fault).with_console(self.process.console()),
        )
    }
}

impl Staying for Guest {
    fn take(&mut self, step: Option<&Step>, listener: &mut dyn Listener) -> Result<Reply, KernelError> {
        step.map_or(Ok(()), |step| self.give(step))?;
        self.process.hold(false);
        loop {
            match self.letter()? {
                Some(Letter::Reply(reply)) => return Ok(reply),
                Some(letter) => {
                    listener.hear(&letter);
                    self.process.hold(false);
                }
                None if self.process.has_ended(LOOK) => return Err(self.end()),
                None => match listener.wish() {
                    Wish::GoOn => {}
                    Wish::Interrupt => self.count(INTERRUPT)?,
                    Wish::End => return Err(KernelError::Interrupted),
                },
            }
        }
    }
}
