//! An interactive guest in User-Mode Linux: between two steps its process is stopped.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::process::Process;
use crate::KernelError;
use crate::engine::interactive::{InteractiveGuest, exit_reason};
use crate::hostfs::{INTERRUPT_COUNT_FILE, MESSAGE_COUNT_FILE, MESSAGE_FILE, STEP_FILE, TURN_COUNT_FILE};

/// Interval at which the files are checked for a new message.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// An interactive guest. Dropping it ends the guest.
///
/// Messages are in files of the run's directory. These files exist from the start, because it takes the guest's kernel
/// a microsecond to look up a missing file.
#[derive(Debug)]
pub(super) struct Guest {
    process: Process,
    work: TempDir,
    /// Number of messages read from the guest.
    messages_read: u64,
}

impl Guest {
    /// Creates a guest from its running process and its working directory.
    pub(super) const fn new(process: Process, work: TempDir) -> Self {
        Self { process, work, messages_read: 0 }
    }

    /// Creates the files through which host and guest exchange messages.
    pub(super) fn create_files(work: &Path) -> Result<(), KernelError> {
        [MESSAGE_FILE, MESSAGE_COUNT_FILE, STEP_FILE, TURN_COUNT_FILE, INTERRUPT_COUNT_FILE]
            .into_iter()
            .try_for_each(|name| {
                let path = work.join(name);
                fs::write(&path, "").map_err(|e| KernelError::file("create", &path, e))
            })
    }

    /// Appends one octet to a file whose length is a counter.
    fn append_octet(&self, name: &str) -> Result<(), KernelError> {
        let path = self.work.path().join(name);
        let counted = File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"."));
        counted.map_err(|e| KernelError::file("write", &path, e))
    }

    /// Returns why the guest ended unexpectedly.
    fn end_reason(&mut self) -> KernelError {
        match self.process.wait_for_mail(&mut || true) {
            Ok(mail) => KernelError::from(exit_reason(&mail)).with_console(self.process.console()),
            Err(problem) => problem,
        }
    }
}

impl InteractiveGuest for Guest {
    fn write_step(&mut self, step: &[u8]) -> Result<(), KernelError> {
        let path = self.work.path().join(STEP_FILE);
        fs::write(&path, step).map_err(|e| KernelError::file("write", &path, e))?;
        self.append_octet(TURN_COUNT_FILE)
    }

    fn resume(&mut self) -> Result<(), KernelError> {
        self.process.set_paused(false);
        Ok(())
    }

    fn next_message(&mut self) -> Result<Option<Vec<u8>>, KernelError> {
        let counter = self.work.path().join(MESSAGE_COUNT_FILE);
        if fs::metadata(&counter).map_err(|e| KernelError::file("read", &counter, e))?.len()
            == self.messages_read
        {
            return if self.process.has_ended(CHECK_INTERVAL) { Err(self.end_reason()) } else { Ok(None) };
        }
        self.process.set_paused(true);
        self.messages_read += 1;
        let path = self.work.path().join(MESSAGE_FILE);
        let message = fs::read(&path).map_err(|e| KernelError::file("read", &path, e))?;
        self.append_octet(TURN_COUNT_FILE)?;
        Ok(Some(message))
    }

    fn interrupt(&mut self) -> Result<(), KernelError> {
        self.append_octet(INTERRUPT_COUNT_FILE)
    }
}
