//! Reserved disk space that is freed when the disk is full. Deletions and the ends of experiments can then
//! still be recorded: to delete a row, SQLite first writes to its log.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

/// Size of the reserve in octets: more than a few transactions write.
const RESERVE_SIZE: usize = 1 << 20;

/// A file of the state directory that occupies disk space, which is freed when the disk is full.
#[derive(Debug)]
pub struct Reserve(PathBuf);

impl Reserve {
    /// Creates the reserve at `path`, if the disk has room for it.
    pub fn new(path: PathBuf) -> Self {
        let reserve = Self(path);
        // Without room, `fill` is called again later.
        let _ = reserve.fill();
        reserve
    }

    /// Creates the file, unless it has its full size.
    pub fn fill(&self) -> io::Result<()> {
        if fs::metadata(&self.0).is_ok_and(|file| file.len() == RESERVE_SIZE as u64) {
            return Ok(());
        }
        let filled = File::create(&self.0).and_then(|mut file| {
            file.write_all(&vec![0; RESERVE_SIZE])?;
            file.sync_all()
        });
        // A file of less than its full size would occupy space in vain.
        filled.inspect_err(|_| drop(fs::remove_file(&self.0)))
    }

    /// Deletes the file, which frees its space; returns whether the file existed.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}
