//! The contract of a world.

use std::fmt;

use hol_base::Seed;
use hol_network::Tap;
use serde_json::Value;

use crate::{Observer, PacketObserver, Run, RunSummary, Scenario};

/// Somewhere that runs take place: our endpoints on simulated links, a Linux kernel in a virtual machine, real hosts.
///
/// Nobody asks which world it is; whoever needs to know something of it finds it here.
pub trait World: fmt::Debug + Send + Sync {
    /// As experiments name it, in whole: `"model"`, `"kernel:6.12.94+deb12-amd64"`.
    fn name(&self) -> String;

    /// What it runs on, as far as results may depend on it: the identity of a point has it, so that results of two
    /// engines never mix. Empty where this program decides everything.
    fn provenance(&self) -> Result<String, RunError>;

    /// Which settings of a scenario's transport decide what is measured here, and what programs are made of.
    fn decides(&self, scenario: &Scenario) -> Value;

    /// Refuses what it cannot do. The scenario does not contradict itself.
    fn check(&self, scenario: &Scenario) -> Result<(), RunError>;

    /// Refuses more runs at the same time than there is room for.
    fn make_room(&self, runs: usize) -> Result<(), RunError> {
        let _ = runs;
        Ok(())
    }

    /// About what a run takes.
    fn cost(&self) -> Cost;

    /// Whether the same scenario and seed give the same run. Where time is real they do not.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// What lies between the hosts, in words, where it is there already and no `[network]` makes it.
    fn given_path(&self) -> Option<String> {
        None
    }

    /// Who makes the path that `[network]` says, in words, where that is another host.
    fn path_maker(&self) -> Option<String> {
        None
    }

    /// Runs a scenario. May be called from several threads.
    fn follow(
        &self,
        scenario: &Scenario,
        seed: Seed,
        observer: &mut dyn Observer,
    ) -> Result<RunSummary, RunError>;

    /// The same, with all records.
    fn run(&self, scenario: &Scenario, seed: Seed) -> Result<Run, RunError> {
        Run::collect(|observer| self.follow(scenario, seed, observer))
    }

    /// As [`run`](Self::run), in sight of a witness. Where watching takes time the digest is another one.
    fn trace(
        &self,
        scenario: &Scenario,
        seed: Seed,
        witness: &mut dyn PacketObserver,
    ) -> Result<Run, RunError>;

    /// The same hop by hop, where every hop can be seen.
    fn hops(&self) -> Option<&dyn Hops> {
        None
    }
}

/// A world that sees packets on every hop.
pub trait Hops {
    /// Runs a scenario in sight of a tap.
    fn tap(&self, scenario: &Scenario, seed: Seed, tap: &mut dyn Tap) -> Result<Run, RunError>;
}

/// About how much processor time is needed, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// For a run.
    pub run: u64,
    /// For each of its messages.
    pub message: u64,
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// This world cannot do that: what, and the cure.
    #[error("{0}")]
    Refused(String),
    /// This run failed; others may not.
    #[error("{problem}")]
    Failed {
        /// What happened, with the cure.
        problem: String,
        /// All that the machine had to say.
        log: String,
    },
    /// This world can run nothing: what is missing, and the cure.
    #[error("{0}")]
    Unusable(String),
    /// The observer did not want it to go on.
    #[error("interrupted")]
    Interrupted,
}
