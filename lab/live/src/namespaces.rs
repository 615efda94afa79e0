//! Runs both ends on this machine in network namespaces, with a path built by its kernel. Time is real, as
//! everywhere in the live world, and any network that the kernel world can build is possible.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use hol_base::Seed;
use hol_kernel::local_kernel;
use hol_scenario::{Cost, Observer, PacketObserver, Run, RunError, RunSummary, Scenario, World};
use serde_json::Value;

use crate::check;
use crate::host_properties::Host;
use crate::router;
use crate::warnings::{warn_of_host_load, warn_of_socket_waits};
use crate::world::COST;

/// The part after the colon in the name of the world: `live:namespaces`.
pub const NAMESPACES: &str = "namespaces";

/// The live world whose hosts are network namespaces of this machine. Only one run is performed at a time, because
/// concurrent runs would disturb each other.
#[derive(Debug)]
pub struct Namespaces {
    /// The program that runs in the namespaces.
    program: PathBuf,
    /// A lock that the current run holds, because concurrent runs would disturb each other.
    turn: Mutex<()>,
    /// Why this machine cannot run the world (`None` if it can); empty until that has been checked.
    missing: OnceLock<Option<String>>,
}

impl Namespaces {
    /// Creates the world of this machine.
    pub fn new() -> Self {
        Self::with_program("/proc/self/exe".into())
    }

    /// Creates the world; `program`, which must be `hol`, runs in the namespaces.
    pub fn with_program(program: PathBuf) -> Self {
        Self { program, turn: Mutex::default(), missing: OnceLock::new() }
    }

    /// Returns why this machine cannot run the world, with the remedy; `None` if it can.
    pub fn missing_prerequisites(&self) -> Option<&str> {
        self.missing.get_or_init(|| local_kernel::in_namespace(router::check_emulators).err()).as_deref()
    }

    fn check_possible(&self, scenario: &Scenario) -> Result<(), RunError> {
        local_kernel::check_supported(scenario)?;
        check::check_protocols(scenario)?;
        match self.missing_prerequisites() {
            None => Ok(()),
            Some(what) => Err(RunError::Unusable(format!("the world live:{NAMESPACES}: {what}"))),
        }
    }

    fn measured(&self, mut run: Run) -> Run {
        if let Some(world_report) = &mut run.summary.world_report {
            world_report.provenance = provenance();
            world_report.add_caution(warn_of_host_load(&run.records));
            world_report.add_caution(warn_of_socket_waits(&run.records, &world_report.waited));
        }
        run
    }

    fn perform(
        &self,
        scenario: &Scenario,
        work: impl FnOnce() -> Result<Run, hol_kernel::KernelError>,
    ) -> Result<Run, RunError> {
        self.check_possible(scenario)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(self.measured(work()?))
    }
}

fn provenance() -> String {
    let Host { kernel, clocksource } = Host::current();
    format!("Linux {kernel}, namespaces, clock {clocksource}")
}

impl Default for Namespaces {
    fn default() -> Self {
        Self::new()
    }
}

impl World for Namespaces {
    fn name(&self) -> String {
        format!("live:{NAMESPACES}")
    }

    fn provenance(&self) -> Result<String, RunError> {
        Ok(provenance())
    }

    fn recorded_settings(&self, scenario: &Scenario) -> Value {
        local_kernel::recorded_settings(scenario)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        self.check_possible(scenario)
    }

    fn cost(&self) -> Cost {
        COST
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError> {
        let run = self.perform(scenario, || local_kernel::run(&self.program, scenario, seed, observer))?;
        Ok(run.replay_to(observer))
    }

    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn PacketObserver,
    ) -> Result<Run, RunError> {
        self.perform(scenario, || local_kernel::trace(&self.program, scenario, seed, observer))
    }
}
