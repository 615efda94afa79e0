//! Which host has which node of an experiment, as given by the user: `HOST`, or `server=HOST,cross=OTHER`.

use std::collections::BTreeMap;
use std::fmt;

use hol_network::Topology;
use hol_scenario::Scenario;

use crate::host_and_port::HostAndPort;

/// The number of the host with the experiment. The other hosts have numbers from 1, in the order of their nodes'
/// names.
pub(crate) const LOCAL_HOST: usize = 0;

/// The other hosts, and their nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostList {
    /// The hosts, without duplicates.
    pub(crate) hosts: Vec<HostAndPort>,
    /// The host number of each node.
    nodes: BTreeMap<String, usize>,
    /// The host number of all nodes that are not in `nodes`, except that of the measured client.
    default_host: usize,
}

impl HostList {
    /// Parses host addresses separated by commas. An address without a node name is the host of all nodes that no
    /// other address names; if there is no such address, these nodes are on this host.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        let mut places = Self { hosts: Vec::new(), nodes: BTreeMap::new(), default_host: LOCAL_HOST };
        let node_of = |entry: &'_ str| entry.split_once('=').map(|(node, _)| node.trim().to_owned());
        let mut entries: Vec<&str> = text.split(',').collect();
        // The order in which the user gave them does not matter.
        entries.sort_by_key(|entry| node_of(entry));
        for entry in entries {
            let (node, place) =
                entry.split_once('=').map_or((None, entry), |(node, place)| (Some(node.trim()), place));
            let host = places.number_of(place.trim().parse()?);
            let is_new = match node {
                Some(node) => places.nodes.insert(node.to_owned(), host).is_none(),
                None => std::mem::replace(&mut places.default_host, host) == LOCAL_HOST,
            };
            if !is_new {
                let what = node.map_or("all other nodes".to_owned(), |node| format!("{node:?}"));
                return Err(format!("{what} would be on two hosts; remove one of the hosts from {text:?}"));
            }
        }
        Ok(places)
    }

    fn number_of(&mut self, place: HostAndPort) -> usize {
        let known = self.hosts.iter().position(|host| *host == place);
        1 + known.unwrap_or_else(|| {
            self.hosts.push(place);
            self.hosts.len() - 1
        })
    }

    /// Returns the host of each of the scenario's nodes, or an error if the scenario cannot run on these hosts.
    pub(crate) fn hosts_of_nodes(&self, scenario: &Scenario) -> Result<BTreeMap<String, usize>, String> {
        let network = Topology::new(&scenario.network).map_err(|problem| problem.to_string())?;
        let names = network.node_names();
        if let Some(node) = self.nodes.keys().find(|node| !names.contains(node)) {
            let all = names.join(", ");
            return Err(format!(
                "the experiment has no node {node:?}; its nodes are {all} ([network] nodes)"
            ));
        }
        let first = scenario.workload.client_node();
        if self.nodes.contains_key(first) {
            return Err(format!(
                "{first:?}, the client of the measured workload, is always this host; run the command on the host that is to be {first:?}"
            ));
        }
        let number = |name: &String| match self.nodes.get(name) {
            Some(host) => *host,
            None if name == first => LOCAL_HOST,
            None => self.default_host,
        };
        Ok(names.iter().map(|name| (name.clone(), number(name))).collect())
    }
}

impl fmt::Display for HostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = self.nodes.iter().map(|(node, host)| format!("{node}={}", self.hosts[host - 1]));
        let others = self.default_host.checked_sub(1).map(|host| self.hosts[host].to_string());
        f.write_str(&others.into_iter().chain(named).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(network: &str) -> Scenario {
        let workload = toml::from_str("kind = 'echo'").unwrap();
        Scenario::with_single_flow(toml::from_str(network).unwrap(), "tcp".parse().unwrap(), workload, 1)
    }

    const FOUR: &str =
        "nodes = ['client', 'server', 'a', 'b']\nlans = [{ nodes = ['client', 'server', 'a', 'b'] }]";

    fn hosts(text: &str, network: &str) -> Result<[Option<usize>; 4], String> {
        let of = HostList::new(text)?.hosts_of_nodes(&scenario(network))?;
        Ok(["client", "server", "a", "b"].map(|node| of.get(node).copied()))
    }

    #[test]
    fn a_single_host_has_all_nodes_except_the_measuring_one() {
        assert_eq!(hosts("x", ""), Ok([Some(0), Some(1), None, None]));
        assert_eq!(hosts("x", FOUR), Ok([Some(0), Some(1), Some(1), Some(1)]));
        assert_eq!(HostList::new("x:99").unwrap().to_string(), "x:99");
    }

    #[test]
    fn named_nodes_are_on_their_hosts_and_others_are_local_by_default() {
        assert_eq!(hosts("server=x, a=y", FOUR), Ok([Some(0), Some(2), Some(1), Some(0)]));
        assert_eq!(hosts("a=y,server=x", FOUR), hosts("server=x, a=y", FOUR));
        assert_eq!(hosts("a=y,x,b=y", FOUR), Ok([Some(0), Some(1), Some(2), Some(2)]));
        let places = HostList::new("server=[2001:db8::7]:99,a=y,z").unwrap();
        assert_eq!(places.to_string(), "z,a=y,server=[2001:db8::7]:99");
        assert_eq!(
            HostList::new(&places.to_string()).unwrap().hosts_of_nodes(&scenario(FOUR)).unwrap()["b"],
            1
        );
    }

    #[test]
    fn invalid_places_are_refused_with_a_remedy() {
        for (text, words) in [
            ("server=x,server=y", "\"server\" would be on two hosts"),
            ("x,y", "all other nodes would be on two hosts"),
            ("server=x,cross=y", "no node \"cross\"; its nodes are client, server, a, b"),
            ("server=x,client=y", "run the command on the host that is to be \"client\""),
            ("server=", "HOST:PORT"),
            ("server=x,", "HOST:PORT"),
        ] {
            let problem = hosts(text, FOUR).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
