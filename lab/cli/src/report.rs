//! `hol report`: draws the report of a result directory again, or of two directories in comparison.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use hol_lab::{LabError, Results};
use hol_report::{OtherMeasurement, PublicationDetails, ReportError};
use time::OffsetDateTime;

use crate::decompressor;
use crate::failure::Failure;
use crate::terminal::{note, print};

/// Maximum size of a file that another tool wrote, in octets.
const MAX_FILE_SIZE: u64 = 256 << 20;

/// Write the report and the figures of a result directory again; nothing is run.
///
/// Given two directories of the same study or experiment, one from the model world and one from the kernel world, the
/// command instead writes both-worlds.html into the model's directory: the model's report with both worlds' verdicts on
/// each claim, and whether the points agree.
#[derive(Debug, Args)]
pub struct Report {
    /// Result directory of `hol run` or `hol reproduce`, complete or not
    dir: PathBuf,
    /// Result directory of the same study or experiment in another world
    #[arg(conflicts_with = "crate_metadata")]
    other: Option<PathBuf>,
    /// Add results of iperf3 (iperf3 --json) or flent (*.flent.gz) to the report, in a table beside the points
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "other")]
    beside: Vec<PathBuf>,
    /// Also write ro-crate-metadata.json for archives of research data such as Zenodo and WorkflowHub: it lists the
    /// program, its input files and each result, with their SHA-256
    #[arg(long = "crate")]
    crate_metadata: bool,
    /// With --crate: URL of the licence of your results, such as https://creativecommons.org/licenses/by/4.0/
    #[arg(long, value_name = "URL", requires = "crate_metadata")]
    license: Option<String>,
}

impl Report {
    /// Reads the directories and writes their report.
    pub fn run(&self) -> Result<(), Failure> {
        let results = load(&self.dir)?;
        let page = match &self.other {
            Some(other) => write_both_worlds((&results, &self.dir), (&load(other)?, other))?,
            None => {
                let beside =
                    self.beside.iter().map(|file| read_measurement(file)).collect::<Result<_, _>>()?;
                let (page, report) = write_report(&results, beside, &self.dir)?;
                if self.crate_metadata {
                    self.write_crate(&results, &report.claims.publication)?;
                }
                page
            }
        };
        print(&format!("report: {}\n", page.display()));
        Ok(())
    }

    /// Writes the metadata of the RO-Crate. It must be called after all other files have been written, because the
    /// metadata contain their SHA-256.
    fn write_crate(&self, results: &Results, repeats: &str) -> Result<(), Failure> {
        if self.license.is_none() {
            note!("warning: the crate names no licence, which archives require; add --license URL");
        }
        let today = OffsetDateTime::now_utc().date().to_string();
        let details = PublicationDetails { repeats, date: &today, license: self.license.as_deref() };
        let path = hol_report::write_crate(results, &self.dir, details);
        let path = path.map_err(|problem| Failure::failed(format!("{}: {problem}", self.dir.display())))?;
        print(&format!("crate: {}\n", path.display()));
        Ok(())
    }
}

fn load(dir: &Path) -> Result<Results, Failure> {
    let results = Results::load(dir)?;
    if !results.is_complete() {
        note!("warning: {} is incomplete; missing runs are left out", dir.display());
    }
    Ok(results)
}

/// Reads the measurements of another tool.
fn read_measurement(file: &Path) -> Result<OtherMeasurement, Failure> {
    let mut text = String::new();
    let read =
        decompressor::open(file).and_then(|input| input.take(MAX_FILE_SIZE + 1).read_to_string(&mut text));
    read.map_err(|problem| LabError::file("read", file, problem))?;
    if text.len() as u64 > MAX_FILE_SIZE {
        return Err(Failure::Usage(format!(
            "{}: the file is longer than {} MiB; give a shorter one",
            file.display(),
            MAX_FILE_SIZE >> 20
        )));
    }
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
    OtherMeasurement::read(&name, &text)
        .map_err(|problem| Failure::Usage(format!("{}: {problem}", file.display())))
}

/// Writes the report into `dir`, with the measurements of other tools; returns the path of its page, and a summary.
pub fn write_report(
    results: &Results,
    beside: Vec<OtherMeasurement>,
    dir: &Path,
) -> Result<(PathBuf, hol_report::Report), Failure> {
    let report = hol_report::write(results, beside, dir).map_err(Failure::failed)?;
    Ok((dir.join("report.html"), report))
}

/// Writes the page of both worlds into the model's directory; returns its path.
fn write_both_worlds(one: (&Results, &Path), other: (&Results, &Path)) -> Result<PathBuf, Failure> {
    let report = hol_report::Report::of_both(one.0, other.0).map_err(|problem| match problem {
        ReportError::Mismatch(problem) => {
            Failure::Usage(format!("{} and {}: {problem}", one.1.display(), other.1.display()))
        }
        problem => Failure::failed(problem),
    })?;
    let dir = if report.provenance.world == one.0.manifest.world { one.1 } else { other.1 };
    let page = dir.join("both-worlds.html");
    report.write_as(dir, &page).map_err(Failure::failed)?;
    Ok(page)
}
