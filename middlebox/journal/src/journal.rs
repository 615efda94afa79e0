//! Opens, appends to and compacts a journal.

use std::fs::{DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use hol_simco::{AgentId, Change, Owner, Pid, RecordedRule};

use crate::appender::Appender;
use crate::current_entries::SegmentEnd;
use crate::frame::{Format, FramePosition};
use crate::mark::{HighWaterMark, Position};
use crate::recovery::{RecoveredState, recover};
use crate::segment::{self, SegmentStart};
use crate::usage::{self, JournalUsage};
use crate::{JournalError, TruncatedTail, compaction, entry, frame};

/// When a change counts as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on the disk: the record survives a crash of the machine.
    Synced,
    /// Once the kernel has it: the record survives any end of the process.
    Buffered,
}

/// The journal of a middlebox, in a directory of its own.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    /// The directory, which is locked so that no other process opens the journal.
    _lock: File,
    durability: Durability,
    /// Numbers of the segments. Frames are appended to the last one, if there is an appender.
    segments: Vec<u64>,
    /// The segment to which frames are appended; `None` if the disk had no space for another segment.
    appender: Option<Appender>,
    /// The high-water mark; `None` if it could not be written.
    mark: Option<HighWaterMark>,
    usage: JournalUsage,
    /// The compaction that is running, and the usage when it began; `None` if none is running.
    compaction: Option<(JoinHandle<Result<(), JournalError>>, JournalUsage)>,
    truncated_tail: Option<TruncatedTail>,
    /// PIDs of rules that had ended when the journal was opened, unless a compaction had removed them.
    ended_pids: Vec<Pid>,
    /// The frame that is being written; the buffer is reused.
    frame: Vec<u8>,
}

impl Journal {
    /// Opens the journal in this directory, and creates it if necessary. Returns the current rules, including expired
    /// ones, in the order of their latest change. Only one process at a time can have the journal open. If the disk has
    /// no space for the first segment, the journal is opened nevertheless, and refuses records until there is space.
    pub fn open(dir: &Path) -> Result<(Self, Vec<RecordedRule>), JournalError> {
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(JournalError::io("create", dir))?;
        let lock = lock(dir)?;
        let recovered = recover(dir)?;
        let appender = match recovered.segments.last() {
            Some(last) => {
                let (last, end) = (*last, recovered.end.expect("a segment has an end"));
                let appender =
                    resume_segment(segment::path(dir, last), &end, recovered.truncated_tail.is_some())?;
                // Segments of an earlier version stay unchanged.
                Some(appender).filter(|_| end.format == Format::Chained)
            }
            None => None,
        };
        let RecoveredState { rules, ended, entries, segments, truncated_tail, .. } = recovered;
        let current = rules.len() as u64;
        let octets = octets_of(dir, &segments)?;
        let mut journal = Self {
            dir: dir.to_owned(),
            _lock: lock,
            durability: Durability::Synced,
            segments,
            appender,
            mark: None,
            usage: JournalUsage { current, superseded: entries - current, octets },
            compaction: None,
            truncated_tail,
            ended_pids: ended,
            frame: Vec::new(),
        };
        // The records may not be on the disk yet.
        match journal.appender().and_then(Appender::sync) {
            Err(error) if !error.is_disk_full() => return Err(error),
            _ => {}
        }
        // An error is ignored: if the disk has no space for the mark, it has none for records either, and the
        // first record creates the mark.
        let _ = journal.sync_mark();
        Ok((journal, rules))
    }

    /// Returns the journal with the given durability; the default is [`Durability::Synced`].
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self.mark_position();
        let _ = self.sync_mark();
        self
    }

    /// Returns the incomplete frame that was cut off at the end of the journal when it was opened; `None` if there was
    /// none.
    pub fn truncated_tail(&self) -> Option<&TruncatedTail> {
        self.truncated_tail.as_ref()
    }

    /// Returns the PIDs of rules that had ended when the journal was opened, in the order of their ends, except those
    /// that a compaction had removed. A second call returns none.
    pub fn take_ended_pids(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.ended_pids)
    }

    /// Records the changes of a batch: all of them or, in case of an error, none. On return they are durable.
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
        self.append()?;
        changes.iter().for_each(|change| self.count_change(change));
        Ok(())
    }

    /// Returns the last segment. If the disk had no space for it before, tries to begin it now.
    fn appender(&mut self) -> Result<&mut Appender, JournalError> {
        if self.appender.is_none() {
            let (number, start) = match self.segments.last() {
                Some(last) => (last + 1, SegmentStart::Continued),
                None => (1, SegmentStart::Empty),
            };
            let appender = begin_segment(&self.dir, number, start).map_err(JournalError::into_refused)?;
            self.segments.push(number);
            self.usage.octets += segment::HEADER_LENGTH as u64;
            self.appender = Some(appender);
        }
        Ok(self.appender.as_mut().expect("the segment has begun"))
    }

    /// Appends the frame that has been built, and moves the high-water mark.
    fn append(&mut self) -> Result<(), JournalError> {
        let (mut frame, durability) = (std::mem::take(&mut self.frame), self.durability);
        let appended = self.appender().and_then(|appender| appender.append(&mut frame, durability));
        self.frame = frame;
        appended?;
        if self.durability == Durability::Synced {
            self.mark_position();
        }
        self.usage.octets += self.frame.len() as u64;
        Ok(())
    }

    /// Returns the entries of the batch recorded last, for a [`Replica`](crate::Replica).
    pub fn last_entries(&self) -> &[u8] {
        frame::entries(&self.frame)
    }

    /// Records entries. `usage` is the number of current rules and of superseded entries after this record.
    pub(crate) fn record_entries(&mut self, entries: &[u8], usage: JournalUsage) -> Result<(), JournalError> {
        frame::begin(&mut self.frame);
        self.frame.extend_from_slice(entries);
        self.append()?;
        let JournalUsage { current, superseded, .. } = usage;
        self.usage = JournalUsage { current, superseded, ..self.usage };
        Ok(())
    }

    pub(crate) fn usage(&self) -> JournalUsage {
        self.usage
    }

    /// Returns the path of the journal's directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.dir
    }

    /// Replaces the content of the journal with these entries, one per rule; in case of an error nothing changes.
    pub(crate) fn replace(&mut self, entries: &[&[u8]]) -> Result<(), JournalError> {
        // A failure is irrelevant, because it leaves only segments that are replaced now.
        let _ = self.finish_compaction();
        let number = self.segments.last().map_or(1, |last| last + 1);
        let (mut frame_position, mut end) =
            (FramePosition::first_of_segment(number), segment::HEADER_LENGTH as u64);
        let path = segment::path(&self.dir, number);
        let file = segment::create(&self.dir, number, SegmentStart::Empty, |file| {
            (frame_position, end) = compaction::write(entries.iter().copied(), frame_position, file)
                .map_err(JournalError::io("write", &path))?;
            Ok(())
        })?;
        self.appender = Some(Appender::new(file, path, end, frame_position));
        let superseded = std::mem::replace(&mut self.segments, vec![number]);
        self.usage = JournalUsage { current: entries.len() as u64, superseded: 0, octets: end };
        self.mark_position();
        superseded.iter().try_for_each(|number| segment::remove(&segment::path(&self.dir, *number)))
    }

    /// Moves the high-water mark to the end of the journal, which must be completely on the disk. If that fails, the
    /// records are safe nevertheless; [`sync_mark`](Self::sync_mark) reports the error.
    fn mark_position(&mut self) {
        let Some(position) = self.position() else { return };
        if self.mark.as_mut().is_some_and(|mark| mark.advance(position).is_err()) {
            self.mark = None;
        }
    }

    /// Returns the end of the journal; `None` if its last segment has not been created.
    fn position(&self) -> Option<Position> {
        let (segment, appender) = (self.segments.last()?, self.appender.as_ref()?);
        Some(Position::new(*segment, appender.frame_position(), self.durability))
    }

    /// Returns true if [`sync_mark`](Self::sync_mark) is needed. Until it is called, a crash of the machine may set the
    /// mark back, so that the loss of the last records would not be noticed. It need not be called after each batch.
    pub fn needs_mark_sync(&self) -> bool {
        self.mark.as_ref().is_none_or(|mark| !mark.is_synced())
    }

    /// Waits until the high-water mark is on the disk. In case of an error no record is lost; try again later.
    pub fn sync_mark(&mut self) -> Result<(), JournalError> {
        match &mut self.mark {
            Some(mark) => mark.sync(),
            None => self.sync(),
        }
    }

    fn count_change(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (None, Some(_)) => self.usage.current += 1,
            (Some(_), Some(_)) => self.usage.superseded += 1,
            (Some(_), None) => {
                self.usage.current -= 1;
                self.usage.superseded += 2;
            }
            (None, None) => {}
        }
    }

    /// Waits until all recorded changes are on the disk. This is needed only with [`Durability::Buffered`].
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.appender()?.sync()?;
        match (&self.mark, self.position()) {
            (None, Some(position)) => self.mark = Some(HighWaterMark::open(&self.dir, position)?),
            _ => self.mark_position(),
        }
        Ok(())
    }

    /// Starts to compact the segments if most of their entries are superseded and occupy 8 MiB or a quarter of the free
    /// space. A thread compacts while recording continues. Call this function regularly. An error means that the last
    /// compaction failed, which costs space and time when the journal is next opened, but loses no record. The next
    /// call tries again, so do not call at once.
    pub fn compact_if_due(&mut self) -> Result<(), JournalError> {
        if self.compaction.as_ref().is_some_and(|(thread, _)| !thread.is_finished()) {
            return Ok(());
        }
        self.finish_compaction()?;
        if !self.usage.is_worth_compaction(|| usage::free_space(&self.dir)) {
            return Ok(());
        }
        self.begin_compaction()
    }

    /// Passes the segments to a thread for compaction, and starts another segment.
    fn begin_compaction(&mut self) -> Result<(), JournalError> {
        // A segment is followed by another only if it is complete.
        self.appender()?.close()?;
        let next = self.segments[self.segments.len() - 1] + 1;
        self.appender = Some(begin_segment(&self.dir, next, SegmentStart::Continued)?);
        let (dir, finished) = (self.dir.clone(), self.segments.clone());
        self.segments.push(next);
        self.mark_position();
        let thread = thread::spawn(move || compaction::compact(&dir, &finished));
        self.compaction = Some((thread, self.usage));
        Ok(())
    }

    /// Waits for the end of the compaction, if one is running.
    fn finish_compaction(&mut self) -> Result<(), JournalError> {
        if let Some((thread, before)) = self.compaction.take() {
            thread.join().expect("compaction does not panic")?;
            self.segments.drain(..self.segments.len() - 2);
            self.usage = self.usage.compacted(before);
        }
        Ok(())
    }
}

impl Drop for Journal {
    /// Waits for the end of the compaction, because nothing may use the directory after the lock has been released.
    fn drop(&mut self) {
        // The next compaction cleans up after this one.
        let _ = self.finish_compaction();
    }
}

/// Locks the directory, because two processes would overwrite each other's records. The kernel releases the lock when
/// the process ends for any reason.
fn lock(dir: &Path) -> Result<File, JournalError> {
    let lock = File::open(dir).map_err(JournalError::io("open", dir))?;
    lock.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => JournalError::Locked(dir.to_owned()),
        TryLockError::Error(source) => JournalError::io("lock", dir)(source),
    })?;
    Ok(lock)
}

/// Returns the sum of the sizes of these segments, in octets.
fn octets_of(dir: &Path, segments: &[u64]) -> Result<u64, JournalError> {
    let length = |number: &u64| {
        let path = segment::path(dir, *number);
        path.metadata().map(|metadata| metadata.len()).map_err(JournalError::io("read", &path))
    };
    segments.iter().map(length).sum()
}

/// Continues a segment after its complete frames, and cuts off the octets after these.
fn resume_segment(path: PathBuf, end: &SegmentEnd, is_truncated: bool) -> Result<Appender, JournalError> {
    let file = File::options().write(true).open(&path).map_err(JournalError::io("open", &path))?;
    if is_truncated {
        file.set_len(end.offset).and_then(|()| file.sync_all()).map_err(JournalError::io("cut", &path))?;
    }
    Ok(Appender::new(file, path, end.offset, end.frame_position))
}

fn begin_segment(dir: &Path, number: u64, start: SegmentStart) -> Result<Appender, JournalError> {
    let file = segment::create(dir, number, start, |_| Ok(()))?;
    Ok(Appender::new(
        file,
        segment::path(dir, number),
        segment::HEADER_LENGTH as u64,
        FramePosition::first_of_segment(number),
    ))
}
