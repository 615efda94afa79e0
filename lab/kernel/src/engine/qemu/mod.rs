//! QEMU, with a clock that counts instructions and jumps over idle time. A guest boots once and is saved as a snapshot; each job is
//! restored from there.
//!
//! `machine` drives QEMU, the `program`, through `qmp`; `hardware` is its hardware. `lockstep` keeps QEMU's threads in step, `installed_qemu`
//! finds out whether that works here, `processor_speed` is the speed of the processor. `snapshot` boots, `snapshot_path` names its files,
//! `self_test_result` records the result of the self-test, `restore` continues from a snapshot. `interactive` is an interactive guest, which
//! waits for the host at `gates`.

mod gates;
mod hardware;
mod installed_qemu;
mod interactive;
mod lockstep;
mod machine;
mod processor_speed;
mod program;
mod qmp;
mod restore;
mod self_test_result;
mod snapshot;
mod snapshot_path;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hol_scenario::{Cost, Scenario};

use super::contract::{Engine, KernelInstance, Task, TaskResult};
use super::interactive::InteractiveGuest;
use super::self_test::HostDisturbance;
use crate::error::MachineFault;
use crate::image::Image;
use crate::{KernelError, Provenance, StepExactness, scratch};
use hardware::MachineHardware;
use installed_qemu::{InstalledQemu, find_qemu};
use machine::Machine;
use snapshot::Snapshot;

/// The engine that runs a distribution's kernel in QEMU.
#[derive(Debug)]
pub(super) struct Qemu;

impl Engine for Qemu {
    fn provenance(&self, _: &Image, with_programs: bool) -> Result<Provenance, KernelError> {
        provenance(with_programs)
    }

    /// Returns an error if a kernel lacks a module that the user's programs need. QEMU supports everything else that a
    /// kernel supports.
    fn check(&self, scenario: &Scenario, image: &Image) -> Result<(), KernelError> {
        match image.missing_root_module().filter(|_| !scenario.programs.is_empty()) {
            Some(module) => Err(KernelError::ModuleMissing {
                directory: image.modules(),
                module,
                cure: "programs need this module; to add it, run `hol kernel fetch` or `hol kernel use` again",
            }),
            None => Ok(()),
        }
    }

    fn memory(&self) -> u64 {
        hardware::MAX_MEMORY + machine::QEMU_OVERHEAD
    }

    fn cost(&self) -> Cost {
        Cost { run: 500_000, message: 1_000 }
    }

    fn start(&self, image: &Image, program: &Path) -> Result<Arc<dyn KernelInstance>, KernelError> {
        // First, because without QEMU nothing else matters.
        let qemu = find_qemu()?;
        let (image, program) = (image.clone(), program.to_owned());
        let guest = Guest { image, program, snapshots: Mutex::default(), qemu };
        Ok(Arc::new(guest))
    }
}

/// Returns the version and the mode of this host's QEMU.
pub(super) fn provenance(with_programs: bool) -> Result<Provenance, KernelError> {
    Ok(provenance_from(find_qemu()?, with_programs))
}

/// Derives the version and the mode from the installed QEMU and from earlier self-tests.
fn provenance_from(qemu: &InstalledQemu, with_programs: bool) -> Provenance {
    let pace = qemu.processor_speed(with_programs);
    let stepping = match &qemu.stepping {
        StepExactness::Exact if self_test_result::has_failed(qemu, pace) => {
            StepExactness::Absent(self_test_result::SELF_TEST_FAILED.to_owned())
        }
        found => found.clone(),
    };
    let pace = with_programs.then(|| pace.instructions_per_ns());
    let (engine, version) = ("qemu".to_owned(), qemu.version.clone());
    Provenance { engine, version, stepping, instructions_per_ns: pace, exposed: None }
}

/// A booted guest, with one snapshot for each hardware that a task has needed so far.
#[derive(Debug)]
struct Guest {
    image: Image,
    program: PathBuf,
    snapshots: Mutex<Vec<(MachineHardware, Snapshot)>>,
    qemu: &'static InstalledQemu,
}

impl KernelInstance for Guest {
    fn run(&self, task: &Task<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<TaskResult, KernelError> {
        let work = scratch::create_directory(&std::env::temp_dir(), "hol-run")?;
        let mut machine = self.restore(task, work.path())?;
        let mail = restore::run_to_end(&mut machine, goes_on)?;
        let mut provenance = provenance_from(self.qemu, task.root.is_some());
        if provenance.stepping == StepExactness::Exact && !lockstep::has_found_processor_thread(work.path()) {
            provenance.stepping = StepExactness::Absent(lockstep::NOT_IN_STEP.to_owned());
        }
        Ok(TaskResult { mail, console: machine.console(), provenance })
    }

    fn start_interactive(&self, task: &Task<'_>) -> Result<Box<dyn InteractiveGuest>, KernelError> {
        let work = scratch::create_directory(&std::env::temp_dir(), "hol-run")?;
        let machine = self.restore(task, work.path())?;
        Ok(Box::new(interactive::Guest::new(machine, work)))
    }
}

impl Guest {
    /// Returns a snapshot of a machine with the hardware that a task needs. The first call for a kind of hardware
    /// boots the machine.
    fn snapshot(&self, task: &Task<'_>) -> Result<Snapshot, KernelError> {
        let hardware = MachineHardware::of(task);
        let mut known = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, snapshot)) = known.iter().find(|(known, _)| *known == hardware) {
            return Ok(snapshot.clone());
        }
        let snapshot = Snapshot::find_or_create(&self.image, &self.program, task, self.qemu)?;
        known.push((hardware, snapshot.clone()));
        Ok(snapshot)
    }

    /// Returns a machine that was restored from the snapshot and has received a task. Creates the snapshot again if it cannot be restored.
    fn restore(&self, task: &Task<'_>, directory: &Path) -> Result<Machine, KernelError> {
        let snapshot = self.snapshot(task)?;
        let restore =
            || restore::restore_machine(&snapshot.state, task, directory, self.qemu, HostDisturbance::None);
        let file_version = snapshot.file_version();
        match restore() {
            Err(KernelError::Machine {
                fault: MachineFault::Ended(_) | MachineFault::Refused { .. },
                ..
            }) => {
                snapshot.discard(file_version)?;
                Snapshot::find_or_create(&self.image, &self.program, task, self.qemu)?;
                restore()
            }
            other => other,
        }
    }
}
