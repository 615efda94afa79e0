//! The end of a growing segment: a frame is appended completely, or not at all.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use crate::frame::{self, FramePosition};
use crate::{Durability, JournalError};

/// The last segment of a journal, to which frames are appended.
#[derive(Debug)]
pub(crate) struct Appender {
    file: File,
    path: PathBuf,
    /// The offset at which the complete frames end, in octets.
    end: u64,
    /// The position of the next frame.
    frame_position: FramePosition,
    /// Why it is unknown which content is on the disk; `None` if it is known.
    broken: Option<String>,
}

impl Appender {
    /// Continues a segment file with a length of `end` octets.
    pub fn new(file: File, path: PathBuf, end: u64, frame_position: FramePosition) -> Self {
        Self { file, path, end, frame_position, broken: None }
    }

    /// Completes a frame with its header and writes it; on return it is as safe as `durability` says.
    pub fn append(&mut self, frame: &mut [u8], durability: Durability) -> Result<(), JournalError> {
        self.check()?;
        let next = frame::seal(frame, self.frame_position);
        if let Err(source) = self.file.write_all_at(frame, self.end) {
            self.remove_partial_frame()?;
            return Err(JournalError::Refused { path: self.path.clone(), source });
        }
        if durability == Durability::Synced {
            self.sync()?;
        }
        self.end += frame.len() as u64;
        self.frame_position = next;
        Ok(())
    }

    /// Returns the position of the next frame.
    pub fn frame_position(&self) -> FramePosition {
        self.frame_position
    }

    /// Marks the segment as complete, and waits until it is on the disk. Frames may still be appended if no other
    /// segment follows.
    pub fn close(&mut self) -> Result<(), JournalError> {
        self.append(&mut frame::closing_frame(self.frame_position), Durability::Synced)
    }

    /// Waits until the appended frames are on the disk (`fdatasync`).
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.check()?;
        self.file.sync_data().map_err(|error| self.mark_broken("fdatasync", &error))
    }

    /// Removes the incomplete frame that a failed write has left.
    fn remove_partial_frame(&mut self) -> Result<(), JournalError> {
        self.file.set_len(self.end).map_err(|error| self.mark_broken("ftruncate", &error))
    }

    fn check(&self) -> Result<(), JournalError> {
        let broken =
            |reason: &String| JournalError::Broken { path: self.path.clone(), reason: reason.clone() };
        self.broken.as_ref().map_or(Ok(()), |reason| Err(broken(reason)))
    }

    fn mark_broken(&mut self, failed: &str, error: &io::Error) -> JournalError {
        let reason = format!("{failed} failed: {error}");
        self.broken = Some(reason.clone());
        JournalError::Broken { path: self.path.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn appender(path: &str) -> Appender {
        let file = File::options().read(true).write(true).open(path).unwrap();
        Appender::new(file, path.into(), 0, FramePosition::first_of_segment(1))
    }

    /// The file is /dev/null, which accepts writes but cannot be synced.
    #[test]
    fn a_failed_sync_prevents_all_further_records() {
        let mut appender = appender("/dev/null");
        appender.append(&mut [0; 24], Durability::Buffered).unwrap();
        let error = appender.append(&mut [0; 24], Durability::Synced).unwrap_err();
        assert!(
            error.to_string().contains(
                "/dev/null: it is unknown whether the last changes are on the disk because fdatasync"
            ),
            "{error}"
        );
        let again = appender.append(&mut [0; 24], Durability::Buffered).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(appender.end, 24);
    }

    /// The file is /dev/full, which has no space and cannot be truncated.
    #[test]
    fn a_partial_frame_that_cannot_be_removed_breaks_the_journal() {
        let mut appender = appender("/dev/full");
        let error = appender.append(&mut [0; 24], Durability::Buffered).unwrap_err();
        assert!(matches!(error, JournalError::Broken { .. }), "{error}");
    }
}
