//! Which ends of a scenario's flows are on which host, and the addresses between hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hol_base::{Duration, Seed};
use hol_scenario::{Scenario, Side};
use hol_sockets::{EndAddresses, FlowParameters, flow_parameters};
use hol_stack::{Protocol, ProtocolKind, TransportSpec};
use serde::{Deserialize, Serialize};

use crate::host_list::LOCAL_HOST;

/// The time after which a connection attempt is considered blocked, for example by a firewall. By default TCP would try
/// for two minutes, and SCTP for four; QUIC gives up after its idle timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The addresses that two hosts use with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AddressPair {
    /// The address of the host with the experiment.
    pub(crate) first: IpAddr,
    /// The address of the other host, which is also used by all further hosts.
    pub(crate) other: IpAddr,
}

/// The placement of all nodes on hosts, as seen from one of the hosts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Placement {
    /// The host number of each node.
    pub(crate) nodes: BTreeMap<String, usize>,
    /// The addresses that the first host and each of the others use with each other, by host number.
    #[serde(rename = "meetings")]
    pub(crate) address_pairs: Vec<AddressPair>,
    /// The number of the host from which this placement is seen.
    pub(crate) own: usize,
}

impl Placement {
    /// Returns the placement as seen by the host `own`. `address_pair` contains the address of the first host and
    /// the host's own address. Returns `None` if the placement lacks this host, or the host of a node.
    pub(crate) fn seen_by(mut self, address_pair: AddressPair) -> Option<Self> {
        let own = self.own.checked_sub(1)?;
        *self.address_pairs.get_mut(own)? = address_pair;
        let exists = |host: &usize| *host <= self.address_pairs.len();
        self.nodes.values().all(exists).then_some(self)
    }

    /// Returns the host numbers of a flow's client and server.
    pub(crate) fn hosts(&self, parameters: &FlowParameters) -> [usize; 2] {
        let ends = [parameters.workload.client_node(), parameters.workload.server_node()];
        ends.map(|node| self.nodes.get(node).copied().unwrap_or(LOCAL_HOST))
    }

    /// Returns the address that a host uses for its flows with the host `other`.
    fn address(&self, host: usize, other: usize) -> IpAddr {
        if host == LOCAL_HOST {
            self.address_pairs[other - 1].first
        } else {
            self.address_pairs[host - 1].other
        }
    }

    /// Returns an error if both ends of a flow are on the same host.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), String> {
        flows(scenario, Seed(0)).iter().try_for_each(|flow| match self.hosts(flow) {
            [client, server] if client == server => Err(same_host_error(flow)),
            _ if needs_ticket(&flow.transport) => Err(format!(
                "{}: a server on another host does not know the client's ticket; omit zero_rtt, or use --world model, kernel or live:namespaces",
                flow.transport
            )),
            _ => Ok(()),
        })
    }

    /// Returns all flows with their addresses. The kernel chooses the ports.
    pub(crate) fn flow_parameters(
        &self,
        scenario: &Scenario,
        seed: Seed,
    ) -> Result<Vec<FlowParameters>, String> {
        self.check(scenario)?;
        let mut all = flows(scenario, seed);
        for parameters in &mut all {
            let [client, server] = self.hosts(parameters);
            let [near, far] = [self.address(client, server), self.address(server, client)];
            check_reachable(parameters, [near, far])?;
            (parameters.client.addresses, parameters.server.addresses) = (vec![near], vec![far]);
            (parameters.is_batching, parameters.reports_receive_time) = (true, true);
            if matches!(
                parameters.transport.kind(),
                ProtocolKind::Tcp | ProtocolKind::Mptcp | ProtocolKind::Sctp
            ) {
                parameters.workload.connect_timeout.get_or_insert(CONNECT_TIMEOUT);
            }
        }
        Ok(all)
    }

    /// Returns for each flow which of its ends is on this host; `None` if neither is.
    pub(crate) fn local_ends(&self, flow_parameters: &[FlowParameters]) -> Vec<Option<Side>> {
        let end = |parameters: &FlowParameters| match self.hosts(parameters) {
            [client, _] if client == self.own => Some(Side::Client),
            [_, server] if server == self.own => Some(Side::Server),
            _ => None,
        };
        flow_parameters.iter().map(end).collect()
    }
}

/// Returns all flows without addresses, because the address of an end depends on the host of the other end.
fn flows(scenario: &Scenario, seed: Seed) -> Vec<FlowParameters> {
    flow_parameters(scenario, seed, |_, _| EndAddresses { addresses: Vec::new(), port: 0 })
}

/// Returns whether clients need tickets that earlier connections received.
const fn needs_ticket(transport: &TransportSpec) -> bool {
    matches!(transport.protocol(), Protocol::Quic { config, .. } if config.zero_rtt)
}

fn same_host_error(FlowParameters { workload, .. }: &FlowParameters) -> String {
    let (from, to) = (workload.client_node(), workload.server_node());
    format!(
        "both ends of the flow from {from:?} to {to:?} would be on one host; assign one of the nodes to another host (--peer NODE=HOST)"
    )
}

/// Returns an error for a flow between addresses that cannot reach each other: their IP versions differ, or only one
/// of them is a loopback address.
fn check_reachable(
    FlowParameters { workload, .. }: &FlowParameters,
    [near, far]: [IpAddr; 2],
) -> Result<(), String> {
    if near.is_ipv4() == far.is_ipv4() && near.is_loopback() == far.is_loopback() {
        return Ok(());
    }
    let (from, to) = (workload.client_node(), workload.server_node());
    Err(format!(
        "{from:?} at {near} cannot reach {to:?} at {far}; use addresses of one IP version, and either loopback addresses for all hosts or \
        for none"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    /// Returns a placement in which the first host has another address towards each of the others.
    fn placement(nodes: &[(&str, usize)]) -> Placement {
        let address_pair = |host| AddressPair { first: address(100 + host), other: address(host) };
        let nodes = nodes.iter().map(|(node, host)| ((*node).to_owned(), *host)).collect();
        Placement { nodes, address_pairs: vec![address_pair(1), address_pair(2)], own: LOCAL_HOST }
    }

    /// Returns a scenario in which `client` measures `server`, and `a` sends to `b`.
    fn scenario() -> Scenario {
        let network =
            "nodes = ['client', 'server', 'a', 'b']\nlans = [{ nodes = ['client', 'server', 'a', 'b'] }]";
        let workload = |text: &str| toml::from_str(text).unwrap();
        let transport = || "tcp".parse().unwrap();
        let mut scenario = Scenario::with_single_flow(
            toml::from_str(network).unwrap(),
            transport(),
            workload("kind = 'echo'"),
            1,
        );
        scenario.background = vec![hol_scenario::Background {
            transport: transport(),
            workload: workload("kind = 'oneway'\nfrom = 'a'\nto = 'b'"),
            messages: None,
            count: 1,
            spread: Duration::ZERO,
        }];
        scenario
    }

    fn sites(placement: &Placement) -> Result<Vec<[IpAddr; 2]>, String> {
        let all = placement.flow_parameters(&scenario(), Seed(1))?;
        Ok(all.iter().map(|flow| [flow.client.addresses[0], flow.server.addresses[0]]).collect())
    }

    #[test]
    fn hosts_use_the_addresses_at_which_the_first_host_reaches_them() {
        let all = placement(&[("client", 0), ("server", 1), ("a", 1), ("b", 2)]);
        assert_eq!(sites(&all).unwrap(), [[address(101), address(1)], [address(1), address(2)]]);
        let all = placement(&[("client", 0), ("server", 2), ("a", 2), ("b", 0)]);
        assert_eq!(sites(&all).unwrap(), [[address(102), address(2)], [address(2), address(102)]]);
    }

    #[test]
    fn each_end_is_on_exactly_one_host() {
        let all = placement(&[("client", 0), ("server", 1), ("a", 1), ("b", 2)]);
        let flow_parameters = all.flow_parameters(&scenario(), Seed(1)).unwrap();
        let here = |own| Placement { own, ..all.clone() }.local_ends(&flow_parameters);
        assert_eq!(here(0), [Some(Side::Client), None]);
        assert_eq!(here(1), [Some(Side::Server), Some(Side::Client)]);
        assert_eq!(here(2), [None, Some(Side::Server)]);
    }

    #[test]
    fn a_flow_within_one_host_is_refused() {
        let problem = sites(&placement(&[("client", 0), ("server", 1), ("a", 2), ("b", 2)])).unwrap_err();
        assert!(problem.contains("from \"a\" to \"b\"") && problem.contains("--peer NODE=HOST"), "{problem}");
    }

    #[test]
    fn hosts_that_cannot_reach_each_other_are_refused() {
        let mut all = placement(&[("client", 0), ("server", 1), ("a", 1), ("b", 2)]);
        for strange in ["127.0.0.1", "2001:db8::7"] {
            all.address_pairs[1].other = strange.parse().unwrap();
            let problem = sites(&all).unwrap_err();
            assert!(problem.contains(&format!("\"b\" at {strange}")), "{problem}");
        }
    }

    #[test]
    fn a_host_uses_the_addresses_that_it_sees_and_refuses_invalid_views() {
        let address_pair = AddressPair { first: address(200), other: address(201) };
        let of = |own, nodes: &[(&str, usize)]| Placement { own, ..placement(nodes) }.seen_by(address_pair);
        let seen = of(2, &[("client", 0), ("server", 2), ("a", 1), ("b", 2)]).unwrap();
        assert_eq!(sites(&seen).unwrap(), [[address(200), address(201)], [address(1), address(201)]]);
        assert!(of(0, &[]).is_none() && of(3, &[]).is_none() && of(1, &[("server", 3)]).is_none());
    }
}
