//! The results of programs: how they ended, their metrics, and the files in `/out`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use hol_base::Duration;
use hol_scenario::{MetricReader, MetricSource, Program, ProgramResult};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use tar::{Builder, HeaderMode};

use super::container::Container;
use super::process::{Process, ProgramExit};
use super::run_state::Programs;

/// The directory, in the root directory of a node, from which the user receives the files.
const OUTPUT_DIRECTORY: &str = "out";
/// The largest total size of the files that the user receives from all nodes, in octets.
const MAX_OUTPUT_OCTETS: u64 = 32 << 20;

/// The output of the programs of a run.
#[derive(Debug, Default)]
pub(in crate::guest) struct ProgramOutput {
    /// The result of each program.
    pub(in crate::guest) results: Vec<ProgramResult>,
    /// A tar archive of the files that the nodes have in [`OUTPUT_DIRECTORY`]; the files of a node are in a
    /// directory with its name.
    pub(in crate::guest) files: Vec<u8>,
    /// Why files are missing from the archive; `None` if all files are in it.
    pub(in crate::guest) caution: Option<String>,
}

impl Programs<'_> {
    /// Collects the results after all programs have ended. Times are relative to `epoch`, in ns since 1970.
    pub(super) fn collect_output(&self, epoch: u64) -> ProgramOutput {
        let results = self.scenario.programs.iter().zip(&self.processes);
        let results =
            results.map(|(program, process)| self.program_result(program, process.as_ref(), epoch)).collect();
        match self.files() {
            Ok(files) => ProgramOutput { results, files, caution: None },
            Err(problem) => {
                let caution = Some(format!("the files in /{OUTPUT_DIRECTORY} were not collected: {problem}"));
                ProgramOutput { results, files: Vec::new(), caution }
            }
        }
    }

    fn program_result(&self, program: &Program, process: Option<&Process>, epoch: u64) -> ProgramResult {
        let since = |at: u64| Duration::from_nanos(at.saturating_sub(epoch));
        let [stdout, stderr] = process.map(Process::output).unwrap_or_default();
        ProgramResult {
            node: program.node.clone(),
            command: program.command.shell_line(),
            started: process.map(|process| since(process.started_at)),
            ended: process.and_then(Process::status).map(|status| since(status.ended_at)),
            status: process.and_then(Process::status).map_or("killed".to_owned(), ProgramExit::to_string),
            processor: process.map(Process::processor_time).unwrap_or_default(),
            metrics: process.map(|process| self.metrics(program, process)).unwrap_or_default(),
            stdout,
            stderr,
        }
    }

    /// Returns the values of a program's metrics that were found in its output.
    fn metrics(&self, program: &Program, process: &Process) -> BTreeMap<String, f64> {
        let container = &self.containers[program.node.as_str()];
        let number = |(name, reading): (&String, &MetricReader)| {
            let text = match &reading.from {
                MetricSource::Stdout => process.stdout(),
                MetricSource::Stderr => process.stderr(),
                MetricSource::File(path) => read_file(container, path).ok()?,
            };
            Some((name.clone(), reading.read(&String::from_utf8_lossy(&text))?))
        };
        program.metrics.iter().filter_map(number).collect()
    }

    /// Returns a tar archive of the files in `/out`; empty if no program has written anything there.
    fn files(&self) -> Result<Vec<u8>, String> {
        let mut archive = Builder::new(Vec::new());
        archive.mode(HeaderMode::Deterministic);
        let mut left = MAX_OUTPUT_OCTETS;
        for (node, container) in &self.containers {
            add_files(
                &mut archive,
                &container.root_path().join(OUTPUT_DIRECTORY),
                Path::new(node),
                &mut left,
            )?;
        }
        if left == MAX_OUTPUT_OCTETS {
            Ok(Vec::new())
        } else {
            archive.into_inner().map_err(|e| e.to_string())
        }
    }
}

/// Adds the regular files below `directory` to the archive under `name`, in the order of their names. Links and devices
/// are skipped, because they might lead elsewhere.
fn add_files(
    archive: &mut Builder<Vec<u8>>,
    directory: &Path,
    name: &Path,
    left: &mut u64,
) -> Result<(), String> {
    let io_error = |problem: io::Error| format!("{}: {problem}", name.display());
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(io_error)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (kind, name) = (entry.file_type().map_err(io_error)?, name.join(entry.file_name()));
        if kind.is_dir() {
            add_files(archive, &entry.path(), &name, left)?;
        } else if kind.is_file() {
            let length = entry.metadata().map_err(io_error)?.len();
            let Some(rest) = left.checked_sub(length.max(1)) else {
                return Err(format!(
                    "{} and the files collected before it together exceed {} MiB",
                    name.display(),
                    MAX_OUTPUT_OCTETS >> 20
                ));
            };
            *left = rest;
            archive.append_path_with_name(entry.path(), &name).map_err(io_error)?;
        }
    }
    Ok(())
}

/// Returns the content of a node's file. Links that lead out of the node are not followed. openat2(2)
fn read_file(container: &Container, path: &str) -> io::Result<Vec<u8>> {
    let root = File::open(container.root_path())?;
    let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat2(root, path, how, Mode::empty(), ResolveFlags::IN_ROOT)?);
    let mut octets = Vec::new();
    if file.metadata()?.is_file() {
        file.read_to_end(&mut octets)?;
    }
    Ok(octets)
}
