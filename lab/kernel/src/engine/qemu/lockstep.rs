//! The library that keeps QEMU's threads in step; `lockstep/lockstep.rs` explains why.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::processor_speed::ProcessorSpeed;
use crate::{KernelError, StepExactness};

/// The lockstep library, which makes QEMU reproducible; empty where it could not be built.
pub(super) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lockstep.so"));

/// The library (`lockstep/pause.rs`) that disturbs QEMU's threads during the self-test.
const PAUSE_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pause.so"));

/// The environment variable that names the libraries that ld.so(8) preloads.
const PRELOAD_VARIABLE: &str = "LD_PRELOAD";

/// The environment variable that names the file of the library's report, and the prefix of the lines in it; see
/// `lockstep/report.rs`.
const REPORT_VARIABLE: (&str, &str) = ("HOL_LOCKSTEP", "hol lockstep: ");

/// The environment variable that requests another processor speed than QEMU's; see `lockstep/pace.rs`.
const PACE_VARIABLE: &str = "HOL_LOCKSTEP_PACE";

/// The error if the library was loaded but did not find QEMU's processor thread.
pub(super) const NOT_IN_STEP: &str = "QEMU's processor thread was not found";

/// Makes `qemu` load the lockstep library from a copy in `directory`, and write its report there. If the loader cannot
/// load the library, it adds a message to QEMU's and continues without the library.
pub(super) fn load(qemu: &mut Command, directory: &Path) -> Result<(), KernelError> {
    if LIBRARY.is_empty() {
        return Ok(());
    }
    let report = report(directory);
    fs::write(&report, "").map_err(|e| KernelError::file("write", &report, e))?;
    preload(qemu, &directory.join("lockstep.so"), LIBRARY)?;
    qemu.env(REPORT_VARIABLE.0, report);
    Ok(())
}

/// Makes `qemu` load the library that disturbs its threads from a copy in `directory`.
pub(super) fn load_disturbance(qemu: &mut Command, directory: &Path) -> Result<(), KernelError> {
    if PAUSE_LIBRARY.is_empty() { Ok(()) } else { preload(qemu, &directory.join("pause.so"), PAUSE_LIBRARY) }
}

/// Makes `qemu` preload `library`, which is written to `path`, before the other preloaded libraries.
fn preload(qemu: &mut Command, path: &Path, library: &[u8]) -> Result<(), KernelError> {
    fs::write(path, library).map_err(|e| KernelError::file("write", path, e))?;
    let set = qemu.get_envs().find(|(name, _)| *name == PRELOAD_VARIABLE).and_then(|(_, value)| value);
    let others = set.map(OsStr::to_owned).or_else(|| env::var_os(PRELOAD_VARIABLE));
    let mut libraries = path.as_os_str().to_owned();
    if let Some(others) = others {
        libraries.push(":");
        libraries.push(others);
    }
    qemu.env(PRELOAD_VARIABLE, libraries);
    Ok(())
}

/// Sets the speed of the virtual processor of `qemu`.
pub(super) fn set_speed(qemu: &mut Command, pace: ProcessorSpeed) {
    if pace != ProcessorSpeed::ONE {
        qemu.env(PACE_VARIABLE, pace.shift().to_string());
    }
}

/// Makes `qemu` name its threads, so that the lockstep library recognises them.
pub(super) fn name_threads(qemu: &mut Command) {
    qemu.args(["-name", "hol,debug-threads=on"]);
}

fn report(directory: &Path) -> PathBuf {
    directory.join("lockstep.log")
}

/// Returns the lines that the lockstep library has written to its report in `directory`.
fn report_lines(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(report(directory)).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix(REPORT_VARIABLE.1)).map(str::to_owned).collect()
}

/// Returns whether the lockstep library runs QEMU's threads in a fixed order, according to the first lines of its
/// report. `messages` are the messages of QEMU and of the loader.
pub(super) fn read_report(directory: &Path, messages: &str) -> StepExactness {
    let lines = report_lines(directory);
    // If a script starts QEMU, the script's process reports first.
    if lines.iter().any(|line| line == "exact") {
        return StepExactness::Exact;
    }
    StepExactness::Absent(lines.into_iter().next().unwrap_or_else(|| loader_problem(messages)))
}

/// Returns whether the QEMU whose report is in `directory` supports other processor speeds than its own.
pub(super) fn supports_other_speeds(directory: &Path) -> bool {
    report_lines(directory).iter().any(|line| line == "any pace")
}

/// Returns whether the report in `directory` says that the lockstep library has found QEMU's processor thread.
pub(super) fn has_found_processor_thread(directory: &Path) -> bool {
    report_lines(directory).iter().any(|line| line == "in step")
}

/// Returns why the loader did not load the lockstep library, without the library's path, which differs each time.
/// ld.so(8).
fn loader_problem(messages: &str) -> String {
    let ours =
        messages.lines().find(|line| line.contains("lockstep.so") && line.contains("cannot be preloaded"));
    let why = ours.and_then(|line| line.split_once("cannot be preloaded (")?.1.split_once(')'));
    match why {
        Some((why, _)) => {
            format!(
                "the dynamic loader rejected the library of hol: {why}; set TMPDIR to a directory from which libraries may be loaded"
            )
        }
        None => "QEMU did not load the library of hol".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_loads_the_library_and_knows_the_report_file() {
        let directory = tempfile::tempdir().unwrap();
        let mut qemu = Command::new("qemu");
        load_disturbance(&mut qemu, directory.path()).unwrap();
        load(&mut qemu, directory.path()).unwrap();
        let value = |name: &str| {
            let set = qemu.get_envs().find(|(known, _)| *known == name).and_then(|(_, value)| value);
            set.expect("the variable is set").to_string_lossy().into_owned()
        };
        let path = directory.path().join("lockstep.so");
        let both = format!("{}:{}", path.display(), directory.path().join("pause.so").display());
        assert!(value(PRELOAD_VARIABLE).starts_with(&both), "{}", value(PRELOAD_VARIABLE));
        assert_eq!(value(REPORT_VARIABLE.0), report(directory.path()).to_str().unwrap());
        assert!(fs::read(path).unwrap().starts_with(b"\x7fELF"));
    }

    #[test]
    fn the_report_is_read_even_if_a_script_starts_qemu() {
        let directory = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh");
        load(shell.args(["-c", "true"]), directory.path()).unwrap();
        assert!(shell.status().unwrap().success());
        let missing = "function qemu_get_cpu not found";
        assert_eq!(report_lines(directory.path()), [missing]);
        assert_eq!(read_report(directory.path(), ""), StepExactness::Absent(missing.to_owned()));
        assert!(!has_found_processor_thread(directory.path()));
        let lines = format!("{0}{missing}\n{0}exact\n{0}in step\n", REPORT_VARIABLE.1);
        fs::write(report(directory.path()), lines).unwrap();
        assert_eq!(read_report(directory.path(), ""), StepExactness::Exact);
        assert!(has_found_processor_thread(directory.path()));
    }

    #[test]
    fn the_loaders_error_is_reported_without_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let messages = "ERROR: ld.so: object '/tmp/x1/lockstep.so' from LD_PRELOAD cannot be preloaded (failed to map \
                    segment from shared object): ignored.\n";
        let StepExactness::Absent(reason) = read_report(directory.path(), messages) else {
            panic!("the loader's error is not reported")
        };
        assert!(reason.contains("failed to map segment") && reason.contains("TMPDIR"), "{reason}");
        assert!(!reason.contains("x1"), "{reason}");
    }
}
