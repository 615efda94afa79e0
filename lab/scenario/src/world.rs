//! The interface of a world.

use std::fmt;

use hol_base::Seed;
use hol_network::Tap;
use serde_json::Value;

use crate::{Observer, PacketObserver, Run, RunSummary, Scenario};

/// An environment in which runs are performed: this project's endpoints on simulated links, a Linux kernel in a virtual machine, or real
/// hosts.
///
/// Code that uses a world does not depend on its kind; every difference that matters is a method here.
pub trait World: fmt::Debug + Send + Sync {
    /// Returns the full name of the world: `"model"`, `"kernel:6.12.94+deb12-amd64"`.
    fn name(&self) -> String;

    /// Returns the engine or machine of the world, if results may depend on it; otherwise an empty text. It
    /// is part of a point's identity, so that results of two engines are never mixed.
    fn provenance(&self) -> Result<String, RunError>;

    /// Returns the settings of the scenario's transport that affect results in this world, and the digest of the
    /// scenario's programs.
    fn recorded_settings(&self, scenario: &Scenario) -> Value;

    /// Checks that the world can run a scenario. The caller has checked that the scenario does not contradict itself.
    fn check(&self, scenario: &Scenario) -> Result<(), RunError>;

    /// Checks that the machine has memory for this many simultaneous runs.
    fn make_room(&self, runs: usize) -> Result<(), RunError> {
        let _ = runs;
        Ok(())
    }

    /// Returns the approximate cost of a run.
    fn cost(&self) -> Cost;

    /// Returns whether the same scenario and seed give the same run, which is not the case in real time.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// Returns a description of the path between the hosts if it exists already and `[network]` does not define it.
    fn existing_path(&self) -> Option<String> {
        None
    }

    /// Returns a description of the host that emulates the path of `[network]`, if that is another host.
    fn path_maker(&self) -> Option<String> {
        None
    }

    /// Runs a scenario and passes its records to the observer. May be called from several threads.
    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError>;

    /// Runs a scenario and returns all its records.
    fn run(&self, scenario: &Scenario, seed: Seed) -> Result<Run, RunError> {
        Run::collect(|observer| self.follow(scenario, seed, observer))
    }

    /// Runs a scenario like [`run`](Self::run), and passes every packet to an observer. If observing takes
    /// time in a world, the digest changes.
    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn PacketObserver,
    ) -> Result<Run, RunError>;

    /// Returns the interface that observes packets on every hop, if the world has one.
    fn hops(&self) -> Option<&dyn HopObserver> {
        None
    }
}

/// A world that observes packets on every hop.
pub trait HopObserver {
    /// Runs a scenario and passes the packets of every hop to `tap`.
    fn tap(&self, scenario: &Scenario, seed: Seed, tap: &mut dyn Tap) -> Result<Run, RunError>;
}

/// The approximate processor time of a run, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of the run in µs, without messages.
    pub run: u64,
    /// Processor time of each message in µs.
    pub message: u64,
}

/// The reason why a run was not performed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The world cannot run this scenario: the reason, and how to avoid it.
    #[error("{0}")]
    Refused(String),
    /// This run failed; other runs may succeed.
    #[error("{problem}")]
    Failed {
        /// What happened, and how to correct it.
        problem: String,
        /// The output of the machine.
        log: String,
    },
    /// The world cannot run any scenario: what is missing, and how to install it.
    #[error("{0}")]
    Unusable(String),
    /// The observer stopped the run.
    #[error("interrupted")]
    Interrupted,
}
