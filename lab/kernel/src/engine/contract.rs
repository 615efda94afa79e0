//! The interface of an engine. The kernel world uses nothing else, so a new engine is one more implementation.
//!
//! An engine starts a kernel once. The instance runs any number of jobs, on any number of threads, and each job finds the
//! kernel as it was after the start.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hol_scenario::{Cost, Scenario};

use super::interactive::InteractiveGuest;
use crate::error::ConsoleOutput;
use crate::image::Image;
use crate::mailbox::MailboxContent;
use crate::root::RootImage;
use crate::{KernelError, Provenance};

/// A way to run a kernel: QEMU or User-Mode Linux.
pub(crate) trait Engine: Debug + Sync {
    /// Returns the engine with which `image` runs, its version and its mode. `with_programs`: whether the run has
    /// programs of the user. Does not boot a guest.
    fn provenance(&self, image: &Image, with_programs: bool) -> Result<Provenance, KernelError>;

    /// Returns an error that names the first feature of the scenario that the engine cannot run with `image`.
    /// Features that no kernel supports are checked before.
    fn check(&self, scenario: &Scenario, image: &Image) -> Result<(), KernelError>;

    /// Returns the host memory that a virtual machine needs, in MiB.
    fn memory(&self) -> u64;

    /// Returns how much processor time a run takes, approximately.
    fn cost(&self) -> Cost;

    /// Prepares `image` for jobs; its first process is `program`.
    fn start(&self, image: &Image, program: &Path) -> Result<Arc<dyn KernelInstance>, KernelError>;
}

/// A started kernel that is ready for jobs.
pub(crate) trait KernelInstance: Debug + Send + Sync {
    /// Runs `task` in a fresh guest. Calls `goes_on` several times per second. When `goes_on` returns false, stops the
    /// guest and returns [`KernelError::Interrupted`].
    fn run(&self, task: &Task<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<TaskResult, KernelError>;

    /// Starts a fresh interactive guest with a `task`.
    fn start_interactive(&self, task: &Task<'_>) -> Result<Box<dyn InteractiveGuest>, KernelError>;
}

/// A job, and the conditions under which a guest runs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'t> {
    /// The job for the guest, as JSON.
    pub(crate) job: &'t [u8],
    /// The root file system of the user's programs, if there are any.
    pub(crate) root: Option<&'t RootImage>,
    /// Whether the guest is interactive, so that it performs steps on request.
    pub(crate) is_interactive: bool,
    /// Maximum wall-clock time of the run; for an interactive guest, of its start.
    pub(crate) limit: Duration,
}

/// What an engine returns after a task.
#[derive(Debug)]
pub(crate) struct TaskResult {
    /// The result that the guest left in its mailbox.
    pub(crate) mail: MailboxContent,
    /// Console output of the guest.
    pub(crate) console: ConsoleOutput,
    /// The engine that ran the task, its version and its mode.
    pub(crate) provenance: Provenance,
}
