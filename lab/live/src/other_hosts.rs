//! The other hosts of a live world, and the router between them, if there is one. This file finds out their
//! identity, and whether they can run a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use hol_base::{Duration, Seed};
use hol_scenario::{Run, RunError, Scenario};

use crate::check::unsupported_error;
use crate::control::HostDescription;
use crate::host_and_port::{HostAndPort, HostRole};
use crate::host_list::{HostList, LOCAL_HOST};
use crate::host_properties::{self, Host};
use crate::multi_host_run::MultiHostRun;
use crate::path_router::PathRouter;
use crate::peer::{Peer, PeerIdentity};
use crate::placement::{AddressPair, Placement};
use crate::plain_network::without_link_settings;
use crate::relay::Relay;
use crate::session::ControlConnection;

/// The other hosts of a live world.
#[derive(Debug)]
pub(crate) struct OtherHosts {
    pub(crate) places: HostList,
    /// The hosts by number.
    pub(crate) peers: Vec<Peer>,
    pub(crate) via: Option<PathRouter>,
    /// The sets of address pairs that are known to communicate through the router.
    routed_pairs: Mutex<BTreeSet<Vec<[IpAddr; 2]>>>,
    pub(crate) relay: Relay,
}

/// The sysctls of a host that affect the measurement, by name.
type Sysctls = BTreeMap<String, String>;

impl OtherHosts {
    /// Creates the hosts, without contacting them.
    pub(crate) fn new(places: HostList, via: Option<PathRouter>) -> Self {
        let relay = Relay::default();
        let peer = |(host, place): (usize, &HostAndPort)| {
            Peer::new(HostRole::Serves, place.clone(), relay.for_host(host))
        };
        Self {
            peers: (LOCAL_HOST + 1..).zip(&places.hosts).map(peer).collect(),
            places,
            via,
            routed_pairs: Mutex::default(),
            relay,
        }
    }

    /// Describes all hosts and the paths between them.
    pub(crate) fn provenance(&self) -> Result<String, RunError> {
        let Host { kernel, clocksource } = Host::current();
        let mut all = vec![format!("Linux {kernel}, clock {clocksource}")];
        let mut ends = Vec::new();
        for peer in &self.peers {
            let PeerIdentity { host: HostDescription { kernel, clocksource }, own, address } =
                peer.identity()?;
            all.push(format!("from {own} to {address}: Linux {kernel}, clock {clocksource}"));
            ends.push([own, address]);
        }
        let all = all.join(", ");
        Ok(match &self.via {
            None => all,
            Some(via) => {
                // Hosts on the client's side of the router are not behind it.
                let known = ends.into_iter().map(|ends| via.description(ends)).reduce(Result::or);
                format!(
                    "{all}; over {}: {}",
                    via.host_and_port(),
                    known.expect("the world has another host")?
                )
            }
        })
    }

    /// Returns the sysctls of each host that affect the measurement, or an error that names what a host cannot do.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<Vec<Sysctls>, RunError> {
        let plain = without_link_settings(scenario);
        self.placement(scenario, Vec::new())?.check(scenario).map_err(|why| self.refusal_error(&why))?;
        let settings = self.peers.iter().map(|peer| peer.check(&plain)).collect::<Result<_, _>>()?;
        if let Some(via) = &self.via {
            with_all(&self.peers, &[], &mut |sessions| {
                let ways = MultiHostRun::new(self, sessions, scenario, (Seed(0), None))?.address_pairs();
                let mut passed = self.routed_pairs.lock().unwrap_or_else(PoisonError::into_inner);
                if !passed.contains(&ways) {
                    via.with_router(&ways, |_| Ok(()))?;
                    passed.insert(ways);
                }
                Ok(())
            })?;
        }
        Ok(settings)
    }

    /// Returns the sysctls of each host that affect the measurement; `None` for a host that has not been
    /// contacted.
    pub(crate) fn settings(&self, scenario: &Scenario) -> Vec<Option<Sysctls>> {
        let plain = without_link_settings(scenario);
        self.peers.iter().map(|peer| peer.settings(&plain)).collect()
    }

    /// Returns on which host each end of a scenario runs.
    pub(crate) fn placement(
        &self,
        scenario: &Scenario,
        address_pairs: Vec<AddressPair>,
    ) -> Result<Placement, RunError> {
        let nodes = self.places.hosts_of_nodes(scenario).map_err(|why| self.refusal_error(&why))?;
        Ok(Placement { nodes, address_pairs, own: LOCAL_HOST })
    }

    /// Creates the error of a host that refuses a scenario.
    pub(crate) fn refusal_error(&self, why: &str) -> RunError {
        unsupported_error(&format!("--peer {}", self.places), why)
    }

    /// Performs a run; stops it when `goes_on` returns false.
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        seed: Seed,
        interval: Option<Duration>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Run, RunError> {
        let settings = self.check(scenario)?;
        let provenance = self.provenance()?;
        let mut run = with_all(&self.peers, &[], &mut |sessions| {
            let asked = MultiHostRun::new(self, sessions, scenario, (seed, interval))?;
            match &self.via {
                None => asked.perform(None, goes_on),
                Some(via) => via.with_router(&asked.address_pairs(), |way| asked.perform(Some(way), goes_on)),
            }
        })?;
        let world_report = run.summary.world_report.as_deref_mut().expect("a live run has a report");
        world_report.provenance = provenance;
        for (peer, settings) in self.peers.iter().zip(settings) {
            let place = peer.address.to_string();
            let caution = host_properties::difference_from_stack(scenario, &settings);
            world_report.add_caution(caution.map(|caution| format!("on {place}: {caution}")));
            let of_host = world_report.others.get_mut(&place).or(world_report.peer.as_mut());
            of_host.expect("each host has a report").sysctls = settings;
        }
        Ok(run)
    }
}

/// Calls `work` with the sessions of all hosts: the sessions that are already `opened`, and one for each of
/// `peers`.
fn with_all<T>(
    peers: &[Peer],
    opened: &[&ControlConnection],
    work: &mut dyn FnMut(&[&ControlConnection]) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let Some((peer, rest)) = peers.split_first() else { return work(opened) };
    peer.with_session(|session| with_all(rest, &[opened, &[session]].concat(), work))
}
