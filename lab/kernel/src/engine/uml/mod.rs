//! User-Mode Linux: a kernel that was built to run as a process of the host (`build` does that), with a clock that stands
//! still while anything computes and jumps when all are idle. It boots in a tenth of a second, so each job has a boot of its
//! own.
//!
//! `system` is what guests begin with, `process` runs the kernel, `processor` says on which processor, `beside` what it has of the host; `staying` is a guest that takes one step after the other.

mod beside;
#[cfg(test)]
mod escape;
mod process;
mod processor;
mod staying;
mod system;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use hol_scenario::{Cost, Scenario};
use tempfile::TempDir;

use super::contract::{Engine, Finished, Started, Task};
use super::staying::Staying;
use crate::beginning::Beginning;
use crate::hostfs::JOB;
use crate::image::Image;
use crate::{KernelError, Provenance, Stepping, scratch};
use beside::PROCESSORS;
use process::Process;
use staying::Guest;
use system::System;

/// The engine.
#[derive(Debug)]
pub(super) struct Uml;

impl Engine for Uml {
    /// The kernel is the machine, and no time passes while it computes.
    fn provenance(&self, image: &Image, with_programs: bool) -> Result<Provenance, KernelError> {
        Ok(of(image, with_programs))
    }

    /// Whatever a kernel can do.
    fn check(&self, _: &Scenario, _: &Image) -> Result<(), KernelError> {
        Ok(())
    }

    fn memory(&self) -> u64 {
        process::WITH_PROGRAMS
    }

    fn cost(&self) -> Cost {
        Cost { run: 80_000, message: 120 }
    }

    fn start(&self, image: &Image, program: &Path) -> Result<Arc<dyn Started>, KernelError> {
        let system = System::of(&Beginning::of(image, &[("init", program)])?)?;
        Ok(Arc::new(Bootable { image: image.clone(), system }))
    }
}

fn of(image: &Image, with_programs: bool) -> Provenance {
    Provenance {
        engine: "uml".to_owned(),
        version: image.version().to_owned(),
        stepping: Stepping::Exact,
        instructions_per_ns: None,
        exposed: with_programs
            .then(|| fs::read_to_string(PROCESSORS).unwrap_or_default())
            .and_then(|text| exposed(&text)),
    }
}

/// What programs see of a host that cannot have `cpuid` fault, as one with this /proc/cpuinfo: which of its processors they are on,
/// and random numbers of the processor's own.
fn exposed(processors: &str) -> Option<String> {
    let can_hide = processors.split_whitespace().any(|flag| flag == "cpuid_fault");
    (!can_hide).then(|| "cpuid of the host".to_owned())
}

/// All that a boot takes.
#[derive(Debug)]
struct Bootable {
    image: Image,
    /// What guests begin with.
    system: System,
}

impl Started for Bootable {
    fn run(&self, task: &Task<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<Finished, KernelError> {
        let work = self.furnished(task)?;
        let mut process = self.boot(work.path(), task)?;
        let mail = process.last_mail(goes_on)?;
        let provenance = of(&self.image, task.root.is_some());
        Ok(Finished { mail, console: process.console(), provenance })
    }

    fn stay(&self, task: &Task<'_>) -> Result<Box<dyn Staying>, KernelError> {
        let work = self.furnished(task)?;
        Guest::lay(work.path())?;
        let process = self.boot(work.path(), task)?;
        Ok(Box::new(Guest::new(process, work)))
    }
}

impl Bootable {
    /// A directory with all that a run takes.
    fn furnished(&self, task: &Task<'_>) -> Result<TempDir, KernelError> {
        let work = scratch::directory(&std::env::temp_dir(), "hol-run")?;
        let path = work.path().join(JOB);
        fs::write(&path, task.job).map_err(|e| KernelError::file("write", &path, e))?;
        let link = work.path().join(process::SYSTEM);
        symlink(&self.system.place, &link).map_err(|e| KernelError::file("create", &link, e))?;
        Ok(work)
    }

    fn boot(&self, directory: &Path, task: &Task<'_>) -> Result<Process, KernelError> {
        Process::start(&self.image.file(), &self.system.place, directory, task)
    }
}

#[cfg(test)]
mod tests {
    use super::exposed;

    #[test]
    fn what_a_host_cannot_hide_is_told() {
        assert_eq!(exposed("flags\t\t: fpu tsc cpuid_fault avx2\n"), None);
        assert_eq!(exposed("flags\t\t: fpu cpuid avx2\n").as_deref(), Some("cpuid of the host"));
    }
}
