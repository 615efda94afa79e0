//! The journal: opened, appended to, compacted.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use hol_simco::{AgentId, Change, Owner, Pid, Recorded};

use crate::append::Appender;
use crate::frame::{Format, Place};
use crate::lasting::SegmentEnd;
use crate::recovery::{Recovered, recover};
use crate::segment::{self, Start};
use crate::{JournalError, Torn, compaction, entry, frame};

/// When a record is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk: it survives a crash of the machine.
    Synced,
    /// The kernel has it: it survives the end of the process, however violent.
    Buffered,
}

/// The record of one middlebox, in a directory that it has for itself.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    /// The directory again: as long as it is open here, no other process opens the journal.
    _lock: File,
    durability: Durability,
    /// Numbers of the segments; the last is the one that grows.
    segments: Vec<u64>,
    appender: Appender,
    /// Rules that hold.
    held: u64,
    /// Entries that mean nothing any more.
    superseded: u64,
    compaction: Option<JoinHandle<Result<(), JournalError>>>,
    torn: Option<Torn>,
    /// PIDs of rules that had ended when it was opened, as far as it says.
    ended: Vec<Pid>,
    /// The frame that is being written, kept for its memory.
    frame: Vec<u8>,
}

/// So many entries may be superseded before segments are compacted, beside as many as there are rules.
const SLACK: u64 = 100_000;

impl Journal {
    /// Opens the journal in this directory, which is made if there is none, and says which rules hold, in the
    /// order in which they became what they are; also those whose lifetime has ended meanwhile. One process at a time can have it open.
    pub fn open(dir: &Path) -> Result<(Self, Vec<Recorded>), JournalError> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(JournalError::io("create", dir))?;
        let lock = lock(dir)?;
        let mut recovered = recover(dir)?;
        let appender = match recovered.segments.last() {
            Some(last) => {
                let (last, end) = (*last, recovered.end.expect("a segment has an end"));
                let appender = resume(segment::path(dir, last), &end, recovered.torn.is_some())?;
                match end.format {
                    Format::Chained => appender,
                    // What an earlier version has written stays as it is.
                    Format::Loose => {
                        recovered.segments.push(last + 1);
                        begin(dir, last + 1, Start::Before)?
                    }
                }
            }
            None => {
                recovered.segments.push(1);
                begin(dir, 1, Start::Nothing)?
            }
        };
        let Recovered { rules, ended, entries, segments, torn, .. } = recovered;
        let held = rules.len() as u64;
        let journal = Self {
            dir: dir.to_owned(),
            _lock: lock,
            durability: Durability::Synced,
            segments,
            appender,
            held,
            superseded: entries - held,
            compaction: None,
            torn,
            ended,
            frame: Vec::new(),
        };
        Ok((journal, rules))
    }

    /// The same journal with records that are safe at another time than [`Durability::Synced`].
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What was cut off at the end when the journal was opened.
    pub fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The PIDs of rules that had ended when the journal was opened, the latest last; those of long ago are forgotten. Empty
    /// when asked again.
    pub fn take_ended(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.ended)
    }

    /// Records the changes of a batch: all or, on an error, none. They are durable on return.
    pub fn record(
        &mut self,
        changes: &[Change],
        owner: impl Fn(AgentId) -> Owner,
    ) -> Result<(), JournalError> {
        frame::begin(&mut self.frame);
        changes.iter().for_each(|change| entry::write(change, &owner, &mut self.frame));
        if frame::is_empty(&self.frame) {
            return Ok(());
        }
        self.appender.append(&mut self.frame, self.durability)?;
        changes.iter().for_each(|change| self.count(change));
        Ok(())
    }

    fn count(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (None, Some(_)) => self.held += 1,
            (Some(_), Some(_)) => self.superseded += 1,
            (Some(_), None) => {
                self.held -= 1;
                self.superseded += 2;
            }
            (None, None) => {}
        }
    }

    /// Has the disk keep what was recorded; only [`Durability::Buffered`] leaves anything to do.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.appender.sync()
    }

    /// Compacts the segments if most of what they say is superseded. A thread does the work while records go on; call
    /// this now and then. An error is that of the last compaction: it costs room and time at the next opening, but no
    /// record, and it is tried again.
    pub fn tidy(&mut self) -> Result<(), JournalError> {
        if self.compaction.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.finish_compaction()?;
        if self.superseded <= self.held + SLACK {
            return Ok(());
        }
        self.superseded = 0;
        self.begin_compaction()
    }

    /// Leaves the segments to a thread, and begins another.
    fn begin_compaction(&mut self) -> Result<(), JournalError> {
        // A segment is followed by another only if it is whole.
        self.appender.close()?;
        let next = self.segments[self.segments.len() - 1] + 1;
        self.appender = begin(&self.dir, next, Start::Before)?;
        let (dir, finished) = (self.dir.clone(), self.segments.clone());
        self.segments.push(next);
        self.compaction = Some(thread::spawn(move || compaction::compact(&dir, &finished)));
        Ok(())
    }

    /// Waits for the thread, if there is one.
    fn finish_compaction(&mut self) -> Result<(), JournalError> {
        if let Some(thread) = self.compaction.take() {
            thread.join().expect("compaction does not panic")?;
            self.segments.drain(..self.segments.len() - 2);
        }
        Ok(())
    }
}

impl Drop for Journal {
    /// Nothing works on the directory when the lock is gone.
    fn drop(&mut self) {
        // The next compaction finds what this one has left.
        let _ = self.finish_compaction();
    }
}

/// Two processes would overwrite each other's records. The kernel lifts the lock when its holder ends, however it does.
fn lock(dir: &Path) -> Result<File, JournalError> {
    let lock = File::open(dir).map_err(JournalError::io("open", dir))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => JournalError::Locked(dir.to_owned()),
        TryLockError::Error(source) => JournalError::io("lock", dir)(source),
    })?;
    Ok(lock)
}

/// Goes on behind the whole frames of a segment, and cuts off the rest.
fn resume(path: PathBuf, end: &SegmentEnd, is_torn: bool) -> Result<Appender, JournalError> {
    let file = File::options().write(true).open(&path).map_err(JournalError::io("open", &path))?;
    if is_torn {
        file.set_len(end.offset).and_then(|()| file.sync_all()).map_err(JournalError::io("cut", &path))?;
    }
    Ok(Appender::new(file, path, end.offset, end.place))
}

fn begin(dir: &Path, number: u64, start: Start) -> Result<Appender, JournalError> {
    let file = segment::create(dir, number, start, |_| Ok(()))?;
    Ok(Appender::new(file, segment::path(dir, number), segment::HEADER as u64, Place::first(number)))
}
