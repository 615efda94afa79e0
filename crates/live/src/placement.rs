//! Which ends of a scenario's flows are on which of two hosts.
//!
//! The node that the measured workload comes from is the host with the experiment, all others are the one that serves: a path that nobody
//! describes has two nodes.

use std::net::IpAddr;

use hol_base::{Duration, Seed};
use hol_scenario::Scenario;
use hol_sockets::{Assignment, End, Site, assignments};
use hol_stack::Kind;

/// Who does not get through to an open port in this time has something in its way. By themselves TCP would try for two minutes and
/// SCTP for four; QUIC gives up after its idle timeout.
const CONNECTING: Duration = Duration::from_secs(20);

/// The addresses of both hosts, and which this one is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    pub(crate) client: IpAddr,
    pub(crate) server: IpAddr,
    /// This host serves.
    pub(crate) serves: bool,
}

impl Placement {
    /// All flows. The kernel chooses the ports.
    pub(crate) fn assignments(&self, scenario: &Scenario, seed: Seed) -> Vec<Assignment> {
        let first = scenario.workload.from();
        let site = |node: &str, _| {
            let address = if node == first { self.client } else { self.server };
            Site { addresses: vec![address], port: 0 }
        };
        let mut all = assignments(scenario, seed, site);
        for Assignment { transport, workload, gathers, stamps, .. } in &mut all {
            (*gathers, *stamps) = (true, true);
            if matches!(transport.kind(), Kind::Tcp | Kind::Mptcp | Kind::Sctp) {
                workload.connect_timeout.get_or_insert(CONNECTING);
            }
        }
        all
    }

    /// Which end of each is on this host.
    pub(crate) fn here(&self, scenario: &Scenario, assignments: &[Assignment]) -> Vec<End> {
        let first = scenario.workload.from();
        let end = |Assignment { workload, .. }: &Assignment| {
            if (workload.from() == first) == self.serves { End::Server } else { End::Client }
        };
        assignments.iter().map(end).collect()
    }
}
