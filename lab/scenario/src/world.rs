//! The interface of a world.

use std::fmt;

use hol_base::Seed;
use hol_network::Tap;
use serde_json::Value;

use crate::{Observer, PacketObserver, Run, RunSummary, Scenario};

/// A place in which runs are performed: our endpoints on simulated links, a Linux kernel in a virtual machine, or real hosts.
///
/// Code that uses a world does not depend on which one it is; every difference that matters is a method here.
pub trait World: fmt::Debug + Send + Sync {
    /// Returns its full name: `"model"`, `"kernel:6.12.94+deb12-amd64"`.
    fn name(&self) -> String;

    /// Returns what it runs on, as far as results may depend on it. It is part of a point's identity, so that results of two engines
    /// are never mixed. Empty if this program's version decides everything.
    fn provenance(&self) -> Result<String, RunError>;

    /// Returns the settings of a scenario's transport that affect this world's results, and what its programs are built from.
    fn recorded_settings(&self, scenario: &Scenario) -> Value;

    /// Refuses scenarios that it cannot run. The caller has checked that the scenario does not contradict itself.
    fn check(&self, scenario: &Scenario) -> Result<(), RunError>;

    /// Refuses more runs at the same time than the machine has memory for.
    fn make_room(&self, runs: usize) -> Result<(), RunError> {
        let _ = runs;
        Ok(())
    }

    /// Returns the approximate cost of a run.
    fn cost(&self) -> Cost;

    /// Returns whether the same scenario and seed give the same run. False where time is real.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// Returns a description of the path between the hosts if it exists already and `[network]` does not define it.
    fn given_path(&self) -> Option<String> {
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

    /// As [`run`](Self::run), but passes every packet to an observer. In a world in which that takes time the digest changes.
    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        witness: &mut dyn PacketObserver,
    ) -> Result<Run, RunError>;

    /// Returns the interface that observes packets on every hop, if the world has one.
    fn hops(&self) -> Option<&dyn Hops> {
        None
    }
}

/// A world that observes packets on every hop.
pub trait Hops {
    /// Runs a scenario and passes the packets of every hop to `tap`.
    fn tap(&self, scenario: &Scenario, seed: Seed, tap: &mut dyn Tap) -> Result<Run, RunError>;
}

/// The approximate processor time of a run, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Processor time of the run, without messages.
    pub run: u64,
    /// Processor time of each message.
    pub message: u64,
}

/// Why a run was not performed.
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
