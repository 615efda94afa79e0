//! A guest that stays: between two steps its process is stopped.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::process::Process;
use crate::KernelError;
use crate::engine::staying::{Staying, reason};
use crate::hostfs::{INTERRUPT, LETTER, SAID, STEP, TURN};

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

    /// Makes a file longer by one.
    fn count(&self, name: &str) -> Result<(), KernelError> {
        let path = self.work.path().join(name);
        let counted = File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"."));
        counted.map_err(|e| KernelError::file("write", &path, e))
    }

    /// Why it has ended, which it was not asked to.
    fn end(&mut self) -> KernelError {
        match self.process.last_mail(&mut || true) {
            Ok(mail) => KernelError::from(reason(&mail)).with_console(self.process.console()),
            Err(problem) => problem,
        }
    }
}

impl Staying for Guest {
    fn give(&mut self, step: &[u8]) -> Result<(), KernelError> {
        let path = self.work.path().join(STEP);
        fs::write(&path, step).map_err(|e| KernelError::file("write", &path, e))?;
        self.count(TURN)
    }

    fn go_on(&mut self) -> Result<(), KernelError> {
        self.process.hold(false);
        Ok(())
    }

    fn letter(&mut self) -> Result<Option<Vec<u8>>, KernelError> {
        let said = self.work.path().join(SAID);
        if fs::metadata(&said).map_err(|e| KernelError::file("read", &said, e))?.len() == self.heard {
            return if self.process.has_ended(LOOK) { Err(self.end()) } else { Ok(None) };
        }
        self.process.hold(true);
        self.heard += 1;
        let path = self.work.path().join(LETTER);
        let letter = fs::read(&path).map_err(|e| KernelError::file("read", &path, e))?;
        self.count(TURN)?;
        Ok(Some(letter))
    }

    fn interrupt(&mut self) -> Result<(), KernelError> {
        self.count(INTERRUPT)
    }
}
