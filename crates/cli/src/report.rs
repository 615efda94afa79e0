//! `hol report`: draws a result directory again, from what is in it.

use std::path::{Path, PathBuf};

use clap::Args;
use hol_lab::Results;

use crate::failure::Failure;
use crate::terminal::{note, say};

/// Draw the report and the figures of a result directory again; nothing is run.
#[derive(Debug, Args)]
pub struct Report {
    /// A directory that `hol run` or `hol reproduce` filled, wholly or in part
    dir: PathBuf,
}

impl Report {
    /// Reads the directory and writes its report.
    pub fn run(&self) -> Result<(), Failure> {
        let results = Results::load(&self.dir)?;
        if !results.complete() {
            note!("warning: {} is not complete; what is missing is left out", self.dir.display());
        }
        let (page, _) = draw(&results, &self.dir)?;
        say(&format!("report: {}\n", page.display()));
        Ok(())
    }
}

/// Writes the report into `dir`: where its page is, and what it says in short.
pub fn draw(results: &Results, dir: &Path) -> Result<(PathBuf, hol_report::Report), Failure> {
    let report = hol_report::write(results, dir).map_err(Failure::failed)?;
    Ok((dir.join("report.html"), report))
}
