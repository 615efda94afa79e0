//! User-Mode Linux: a kernel that was built to run as a process of the host (`build` builds it). Its clock stands still
//! while anything computes, and jumps when everything is idle. It boots in a tenth of a second, so each job boots its
//! own kernel.
//!
//! `boot_directory` is where guests boot from, `process` runs the kernel on one `processor`,
//! `host_resources` are its directories on the host, `interactive` is an interactive guest.

mod boot_directory;
mod host_resources;
#[cfg(test)]
mod hostfs_confinement;
mod interactive;
mod process;
mod processor;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use hol_scenario::{Cost, Scenario};
use tempfile::TempDir;

use super::contract::{Engine, KernelInstance, Task, TaskResult};
use super::interactive::InteractiveGuest;
use crate::hostfs::JOB_FILE;
use crate::image::Image;
use crate::initial_files::InitialFiles;
use crate::{KernelError, Provenance, StepExactness, scratch};
use boot_directory::BootDirectory;
use host_resources::PROCESSORS;
use interactive::Guest;
use process::Process;

/// The engine that runs User-Mode Linux.
#[derive(Debug)]
pub(super) struct Uml;

impl Engine for Uml {
    /// Returns the version and the mode of User-Mode Linux. Virtual time is always exact: no machine is emulated, and
    /// computing takes no virtual time.
    fn provenance(&self, image: &Image, with_programs: bool) -> Result<Provenance, KernelError> {
        Ok(provenance(image, with_programs))
    }

    /// Accepts every scenario: User-Mode Linux supports everything that a kernel supports.
    fn check(&self, _: &Scenario, _: &Image) -> Result<(), KernelError> {
        Ok(())
    }

    fn memory(&self) -> u64 {
        process::MEMORY_WITH_PROGRAMS_MIB
    }

    fn cost(&self) -> Cost {
        Cost { run: 80_000, message: 120 }
    }

    fn start(&self, image: &Image, program: &Path) -> Result<Arc<dyn KernelInstance>, KernelError> {
        let boot_directory = BootDirectory::of(&InitialFiles::of(image, &[("init", program)])?)?;
        Ok(Arc::new(Bootable { image: image.clone(), boot_directory }))
    }
}

fn provenance(image: &Image, with_programs: bool) -> Provenance {
    Provenance {
        engine: "uml".to_owned(),
        version: image.version().to_owned(),
        stepping: StepExactness::Exact,
        instructions_per_ns: None,
        exposed: with_programs
            .then(|| fs::read_to_string(PROCESSORS).unwrap_or_default())
            .and_then(|text| exposed(&text)),
    }
}

/// Returns which properties of a host with this /proc/cpuinfo programs can see: the model of the processor and
/// random numbers from the processor. `None` if the host can make the instruction `cpuid` fault, which hides both.
fn exposed(processors: &str) -> Option<String> {
    let can_hide = processors.split_whitespace().any(|flag| flag == "cpuid_fault");
    (!can_hide).then(|| "cpuid of the host".to_owned())
}

/// A kernel image and the directory from which it boots.
#[derive(Debug)]
struct Bootable {
    image: Image,
    boot_directory: BootDirectory,
}

impl KernelInstance for Bootable {
    fn run(&self, task: &Task<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<TaskResult, KernelError> {
        let work = self.make_run_directory(task)?;
        let mut process = self.boot(work.path(), task)?;
        let mail = process.wait_for_mail(goes_on)?;
        let provenance = provenance(&self.image, task.root.is_some());
        Ok(TaskResult { mail, console: process.console(), provenance })
    }

    fn start_interactive(&self, task: &Task<'_>) -> Result<Box<dyn InteractiveGuest>, KernelError> {
        let work = self.make_run_directory(task)?;
        Guest::create_files(work.path())?;
        let process = self.boot(work.path(), task)?;
        Ok(Box::new(Guest::new(process, work)))
    }
}

impl Bootable {
    /// Creates the directory of a run.
    fn make_run_directory(&self, task: &Task<'_>) -> Result<TempDir, KernelError> {
        let work = scratch::create_directory(&std::env::temp_dir(), "hol-run")?;
        let path = work.path().join(JOB_FILE);
        fs::write(&path, task.job).map_err(|e| KernelError::file("write", &path, e))?;
        let link = work.path().join(process::SYSTEM_LINK);
        symlink(&self.boot_directory.path, &link).map_err(|e| KernelError::file("create", &link, e))?;
        Ok(work)
    }

    fn boot(&self, directory: &Path, task: &Task<'_>) -> Result<Process, KernelError> {
        Process::start(&self.image.file(), &self.boot_directory.path, directory, task)
    }
}

#[cfg(test)]
mod tests {
    use super::exposed;

    #[test]
    fn visible_processor_properties_are_reported() {
        assert_eq!(exposed("flags\t\t: fpu tsc cpuid_fault avx2\n"), None);
        assert_eq!(exposed("flags\t\t: fpu cpuid avx2\n").as_deref(), Some("cpuid of the host"));
    }
}
