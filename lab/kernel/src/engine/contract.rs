//! What an engine does. The world asks for nothing beyond this contract, so another engine is another implementation.
//!
//! An engine starts a kernel once; what has started takes any number of jobs, on any number of threads, and each finds the
//! kernel as it was at the start.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hol_scenario::{Cost, Scenario};

use super::staying::Staying;
use crate::error::Console;
use crate::image::Image;
use crate::mailbox::Mail;
use crate::root::Root;
use crate::{KernelError, Provenance};

/// A way to run a kernel.
pub(crate) trait Engine: Debug + Sync {
    /// What it is and in which mode when it runs `image`, and whether the user's programs on it, found out without a boot.
    fn provenance(&self, image: &Image, with_programs: bool) -> Result<Provenance, KernelError>;

    /// Refuses by name what it cannot do with `image`, beside what no kernel can.
    fn check(&self, scenario: &Scenario, image: &Image) -> Result<(), KernelError>;

    /// What a machine takes of the host's memory, in MiB.
    fn memory(&self) -> u64;

    /// About what a run takes of a processor.
    fn cost(&self) -> Cost;

    /// Gets `image` ready for jobs, with `program` as its first process.
    fn start(&self, image: &Image, program: &Path) -> Result<Arc<dyn Started>, KernelError>;
}

/// A kernel that is ready for jobs.
pub(crate) trait Started: Debug + Send + Sync {
    /// Lets a fresh guest do `task`. It asks several times in a second whether it `goes_on`,
    /// and is [`KernelError::Interrupted`] if not.
    fn run(&self, task: &Task<'_>, goes_on: &mut dyn FnMut() -> bool) -> Result<Finished, KernelError>;

    /// Starts a fresh guest with a `task` for which it stays.
    fn stay(&self, task: &Task<'_>) -> Result<Box<dyn Staying>, KernelError>;
}

/// What a fresh guest is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'t> {
    /// The job, as JSON.
    pub(crate) job: &'t [u8],
    /// Where the user's programs are, if it runs some.
    pub(crate) root: Option<&'t Root>,
    /// Whether the guest is to stay.
    pub(crate) stays: bool,
    /// How much wall-clock time it has; of one that stays, to begin.
    pub(crate) limit: Duration,
}

/// What is left of a machine that has done its job.
#[derive(Debug)]
pub(crate) struct Finished {
    /// What the guest handed over.
    pub(crate) mail: Mail,
    /// What it wrote to its console.
    pub(crate) console: Console,
    /// What this very machine was.
    pub(crate) provenance: Provenance,
}
