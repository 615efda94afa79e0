//! `simcod manual`: the pages for `man`, made of the commands themselves.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory};

use crate::Simcod;
use crate::failure::Failure;

/// Write the manual, one page for each command: simcod manual ~/.local/share/man/man1
#[derive(Debug, Args)]
pub struct Manual {
    /// Directory of the pages; created if missing
    directory: PathBuf,
}

impl Manual {
    /// Writes a page for `man` for each command to the directory.
    pub fn run(&self) -> Result<(), Failure> {
        let directory = self.directory.as_path();
        let failed = |error| Failure::failed(format!("{}: {error}", directory.display()));
        fs::create_dir_all(directory).map_err(failed)?;
        clap_mangen::generate_to(Simcod::command(), directory).map_err(failed)
    }
}
