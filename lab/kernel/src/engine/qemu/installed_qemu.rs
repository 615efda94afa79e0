//! Finds out which QEMU is installed, and whether `lockstep` can keep its threads in step: once per process, as quickly
//! as `qemu --version`.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::lockstep;
use super::processor_speed::ProcessorSpeed;
use super::program::{self, QEMU};
use crate::{KernelError, StepExactness, scratch};

/// What is known about the installed QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstalledQemu {
    /// Version of QEMU, such as `7.2.22`.
    pub(super) version: String,
    /// Version of QEMU with the distribution's suffix. QEMU may be unable to load the snapshot that another build
    /// has saved.
    pub(super) file_version: String,
    pub(super) stepping: StepExactness,
    /// Whether the virtual processor can be faster than one instruction per nanosecond, QEMU's default.
    pub(super) supports_other_speeds: bool,
}

impl InstalledQemu {
    /// Returns the speed of the virtual processor. With programs of the user it is that of current processors, if
    /// this QEMU supports it; otherwise it is QEMU's own.
    pub(super) const fn processor_speed(&self, with_programs: bool) -> ProcessorSpeed {
        if with_programs && self.supports_other_speeds {
            ProcessorSpeed::CURRENT_PROCESSORS
        } else {
            ProcessorSpeed::ONE
        }
    }
}

/// The prefix of the QEMU versions for which the lockstep library was written and tested. The types of QEMU's functions
/// cannot be checked at run time, so the library is not used with other versions.
const TESTED_VERSIONS: &str = "7.2.";

/// Finds the installed QEMU. The search is made only once per process.
pub(super) fn find_qemu() -> Result<&'static InstalledQemu, KernelError> {
    static FOUND: OnceLock<InstalledQemu> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(found);
    }
    let work = scratch::create_directory(&std::env::temp_dir(), "hol-probe")?;
    let found = examine(Path::new(QEMU.0), work.path())?;
    Ok(FOUND.get_or_init(|| found))
}

/// Examines the program `qemu`; temporary files go to `directory`.
fn examine(qemu: &Path, directory: &Path) -> Result<InstalledQemu, KernelError> {
    let mut command = program::command(qemu);
    lockstep::load(&mut command, directory)?;
    let loaded = version(&mut command)?;
    let file_version = match first_line(&loaded) {
        Some(line) => line,
        // Runs without the library, which could interfere with the answer.
        None => first_line(&version(&mut program::command(qemu))?).unwrap_or_default(),
    };
    let number = file_version.split_once("version ").and_then(|(_, rest)| rest.split_whitespace().next());
    let version = number.unwrap_or("of unknown version").to_owned();
    let stepping = if lockstep::LIBRARY.is_empty() {
        StepExactness::Absent("the library for exact stepping was not built with hol".to_owned())
    } else if !version.starts_with(TESTED_VERSIONS) {
        StepExactness::Absent(format!("exact stepping was tested only with QEMU {TESTED_VERSIONS}x"))
    } else {
        lockstep::read_report(directory, &String::from_utf8_lossy(&loaded.stderr))
    };
    let supports_other_speeds =
        stepping == StepExactness::Exact && lockstep::supports_other_speeds(directory);
    Ok(InstalledQemu { version, file_version, stepping, supports_other_speeds })
}

fn version(qemu: &mut Command) -> Result<Output, KernelError> {
    let (program, package) = QEMU;
    let missing = |_| KernelError::ProgramMissing { program: program.to_owned(), package };
    qemu.arg("--version").env("LC_ALL", "C").output().map_err(missing)
}

fn first_line(output: &Output) -> Option<String> {
    let line = output.status.success().then(|| String::from_utf8_lossy(&output.stdout))?;
    line.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of probing a script that answers like QEMU.
    fn examined(script: &str) -> InstalledQemu {
        let directory = tempfile::tempdir().unwrap();
        let qemu = directory.path().join("qemu");
        // Another process writes the script: if another thread of this one forked meanwhile, the child would have the file open for
        // writing, and a file open for writing cannot be executed (ETXTBSY).
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$0\" && chmod 755 \"$0\"";
        let written = Command::new("sh").args(["-c", write]).arg(&qemu).arg(script).status().unwrap();
        assert!(written.success());
        examine(&qemu, directory.path()).unwrap()
    }

    fn reason(qemu: &InstalledQemu) -> &str {
        match &qemu.stepping {
            StepExactness::Absent(reason) => reason,
            StepExactness::Exact => panic!("{qemu:?}"),
        }
    }

    #[test]
    fn an_untested_version_is_not_stepped() {
        let qemu = examined("echo QEMU emulator version 8.2.0 '(some distribution)'; echo more");
        assert_eq!(
            (&*qemu.version, &*qemu.file_version),
            ("8.2.0", "QEMU emulator version 8.2.0 (some distribution)")
        );
        assert_eq!(reason(&qemu), "exact stepping was tested only with QEMU 7.2.x");
        assert_eq!(reason(&examined("exit 1")), "exact stepping was tested only with QEMU 7.2.x");
    }

    #[test]
    fn the_first_missing_function_is_named() {
        let qemu = examined("echo QEMU emulator version 7.2.99");
        assert_eq!(reason(&qemu), "function qemu_get_cpu not found");
    }

    #[test]
    fn a_library_that_was_not_loaded_is_reported() {
        // Like a loader that refuses the library, or a program without a loader.
        let qemu = examined(": > \"$(dirname \"$0\")/lockstep.log\"; echo QEMU emulator version 7.2.1");
        assert_eq!(reason(&qemu), "QEMU did not load the library of hol");
    }
}
