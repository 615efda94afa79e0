//! The model world: endpoints and workloads on simulated links under a virtual clock.
//!
//! [`run`] puts a [`Scenario`] together and lets it run to its end: hosts with endpoints, one flow between
//! `client` and `server`, and the network between them. Applications answer as soon as they have read
//! (`wakeup` after the arrival), and a host takes no time to handle a packet; both are limits of the model.

mod build;
mod channel;
mod connection;
mod demux;
mod flow;
mod scenario;
mod world;

use hol_base::{Digester, Duration, Seed};
pub use hol_network::{Drops, Fate, Tap, TapPoint};
pub use scenario::{Run, Scenario, ScenarioError, Stopped};

use crate::flow::Role;

/// How long a run goes on after the last message was scheduled.
pub const GRACE: Duration = Duration::from_secs(120);

/// Runs `scenario` in the model world; the same scenario and seed give the same run.
pub fn run(scenario: &Scenario, seed: Seed, tap: Option<&mut dyn Tap>) -> Result<Run, ScenarioError> {
    let mut world = build::world(scenario, seed, tap)?;
    let ended = world.run();
    let stopped = world.flow().stopped.expect("a run ends when its flow has");
    let closed = if stopped == Stopped::Finished { world.close() } else { None };

    let flow = world.flow();
    flow.client.application.give_up(ended);
    let (client, server) = (&flow.client.application, &flow.server.application);
    let records = hol_workloads::records(&scenario.workload, client, server, scenario.gives_up());
    let connected = flow.connected;
    let mut digester = Digester::new();
    records.iter().for_each(|record| record.digest(&mut digester));
    Ok(Run {
        records,
        digest: digester.finish(),
        packets: world.packets(),
        drops: world.drops(),
        client: world.statistics(Role::Client),
        server: world.statistics(Role::Server),
        connected,
        ended,
        closed,
        stopped,
    })
}

impl Scenario {
    /// Refuses a scenario that contradicts itself.
    pub fn check(&self) -> Result<(), ScenarioError> {
        self.workload.check()?;
        self.interfaces()?;
        if self.messages == 0 {
            return Err(ScenarioError::NoMessages);
        }
        if self.workload.waits_for_replies() && self.gives_up() {
            return Err(ScenarioError::PingpongWithoutReliability);
        }
        Ok(())
    }

    /// The names of all interfaces, in the order of [`TapPoint::interface`].
    pub fn interfaces(&self) -> Result<Vec<String>, ScenarioError> {
        Ok(hol_network::Topology::new(&self.network)?.interface_names())
    }
}
