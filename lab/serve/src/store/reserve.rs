//! Disk that is given back when the disk is full, so that deletions and the ends of experiments can be recorded: to
//! delete a row, SQLite writes its log first.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// More than the pages that a few transactions change.
const OCTETS: usize = 1 << 20;

/// A file of the state directory that holds disk.
#[derive(Debug)]
pub struct Reserve(PathBuf);

impl Reserve {
    /// Makes the reserve at `path`, if there is room.
    pub fn new(path: PathBuf) -> Self {
        let reserve = Self(path);
        // Without room there may be some later.
        let _ = reserve.fill();
        reserve
    }

    /// Fills the reserve again.
    pub fn fill(&self) -> io::Result<()> {
        if fs::metadata(&self.0).is_ok_and(|file| file.len() == OCTETS as u64) {
            return Ok(());
        }
        let filled = File::create(&self.0).and_then(|mut file| {
            file.write_all(&vec![0; OCTETS])?;
            file.sync_all()
        });
        // A file cut short would take room and be of no use.
        filled.inspect_err(|_| drop(fs::remove_file(&self.0)))
    }

    /// Gives it back; returns whether there was any.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}
