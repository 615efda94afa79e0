//! `[network.handover]`: the client moves from the first of two paths to the second.
//!
//! The cells of two access routers overlap. When the client enters the overlap, the second path comes up;
//! when it leaves, the first goes down, and packets on it are lost. Either the client's address changes,
//! which transports must handle, or only the route to it, which they do not see: mobility below the
//! transport, as in Mobile IP (RFC 5944) and GTP.
//!
//! Comparison with Linux: with a changed route, the time without data agrees within 5 %. With a changed
//! address, the time from the last octet over the old path to the first over the new one agrees within 3 %
//! (or one packet's time if it is shorter than 0.1 s), unless the client leaves within two round trips of
//! getting the new address: if the peer has not acknowledged the address by then, Linux repeats its ASCONF
//! from the lost address until the association fails after a minute, while the model continues from the new
//! one. After the path to the peer's first address has gone down, an association of the model uses the peer's
//! other address; in the kernel world it uses the same address over the new link. There SCTP is moved by
//! `bindx` and `SCTP_PEER_PRIMARY_ADDR`, because Linux's SCTP_AUTO_ASCONF waits half a second; TCP with
//! `address_loss_aborts` is closed with RST; MPTCP, which the model does not have, is moved by its path
//! manager.

use hol_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::NetworkError;
use crate::event::{EventSpec, LinkDirection};
use crate::identifier::{InterfaceId, LinkId};
use crate::topology::{AddressChange, Medium, Route, RouteChange, Topology};

/// The client's move between paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HandoverSpec {
    /// Speed of the client in m/s. Default 10.
    #[serde(deserialize_with = "deserialize_positive")]
    pub speed: f64,
    /// Length of the overlap, in which both paths work, in m. Default 5.
    #[serde(deserialize_with = "deserialize_positive")]
    pub overlap: f64,
    /// Time at which the client comes within reach of the second path: the start of `overlap`. Default 1 s.
    pub at: Duration,
    /// Time from `at` until the client is reachable over the second path. Default none.
    pub attach: Duration,
    /// `"address"`: the client gets a new address on the second path, and loses its old one when it leaves the first path. `"route"`: it keeps its
    /// address, and both ends send over the second path, as with Mobile IP. Default `"address"`.
    #[serde(skip_serializing_if = "HandoverChange::is_default")]
    pub changes: HandoverChange,
}

/// What changes when the client moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HandoverChange {
    /// The address of the client, and with it the route.
    #[default]
    Address,
    /// The route to and from the client's address.
    Route,
}

impl HandoverChange {
    /// Returns whether this is the default. Files omit the default, so that the points of older experiments keep
    /// their identifiers.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for HandoverSpec {
    fn default() -> Self {
        let (at, attach, changes) = (Duration::from_secs(1), Duration::ZERO, HandoverChange::Address);
        Self { speed: 10.0, overlap: 5.0, at, attach, changes }
    }
}

/// Number of the path that the client leaves. Paths are counted from 1, as in events.
const OLD_PATH: usize = 1;
const NEW_PATH: usize = 2;

impl HandoverSpec {
    /// Returns when the client leaves the overlap.
    pub fn leaves_at(&self) -> Duration {
        self.at + Duration::from_secs_f64(self.overlap / self.speed)
    }

    /// Returns when the client becomes reachable over the second path.
    pub fn attached_at(&self) -> Duration {
        self.at + self.attach
    }

    /// Checks that the network has two paths.
    pub(crate) fn check(&self, paths: usize) -> Result<(), NetworkError> {
        if paths == NEW_PATH { Ok(()) } else { Err(NetworkError::HandoverPaths { paths }) }
    }

    /// Returns the events at which the two paths go down and come up.
    pub(crate) fn events(&self) -> [EventSpec; 3] {
        let event = |at, path, down| EventSpec {
            at,
            direction: LinkDirection::Both,
            path: Some(path),
            link: None,
            down: Some(down),
            rate: None,
            loss: None,
            delay: None,
        };
        [
            event(Duration::ZERO, NEW_PATH, true),
            event(self.at, NEW_PATH, false),
            event(self.leaves_at(), OLD_PATH, true),
        ]
    }

    /// Returns when the client's address on each path is added and removed, in order of time.
    pub(crate) fn address_changes(&self, topology: &Topology) -> Vec<AddressChange> {
        let change = |at, path, is_added| {
            let interface = topology.interfaces[usize::from(ends(topology, path)[0].0)];
            AddressChange { at: Time::ZERO + at, node: interface.node, address: interface.address, is_added }
        };
        let mut changes =
            vec![change(self.attached_at(), NEW_PATH, true), change(self.leaves_at(), OLD_PATH, false)];
        changes.sort_by_key(|change| change.at);
        changes
    }

    /// Returns the routes that apply when the client has attached to the second path. With them, each end sends packets
    /// for the other's address on the first path over the second path.
    pub(crate) fn route_changes(&self, topology: &Topology) -> Vec<RouteChange> {
        let [old, new] = [OLD_PATH, NEW_PATH].map(|path| ends(topology, path));
        let Medium::Link { up, down } = topology.segments[NEW_PATH - 1].medium else {
            unreachable!("a path is a link")
        };
        let change = |(link, own, peer): (LinkId, usize, usize)| {
            let destination = topology.interfaces[usize::from(old[peer].0)].address;
            let node = topology.interfaces[usize::from(new[own].0)].node;
            let route = Route { destination, link, from: new[own], to: new[peer] };
            RouteChange { at: Time::ZERO + self.attached_at(), node, route }
        };
        [(up, 0, 1), (down, 1, 0)].map(change).to_vec()
    }
}

/// Returns the interfaces of the client and of the server on a path.
fn ends(topology: &Topology, path: usize) -> [InterfaceId; 2] {
    topology.segments[path - 1].interfaces[..].try_into().expect("a path has two ends")
}

/// Parses a speed or a length. Rejects zero, and values that would lead to times that are out of range.
fn deserialize_positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if (0.001..=1e6).contains(&value) {
        return Ok(value);
    }
    Err(serde::de::Error::custom(format_args!(
        "{value} is not a valid speed or length of a handover; use a number from 0.001 to 1000000, such as 12.5"
    )))
}

#[cfg(test)]
mod tests {
    use crate::{NetworkSpec, Topology};

    fn topology(handover: &str) -> Result<Topology, String> {
        let table = format!("paths = [{{}}, {{}}]\n[handover]\n{handover}");
        let spec: NetworkSpec = toml::from_str(&table).map_err(|problem| problem.to_string())?;
        Topology::new(&spec).map_err(|problem| problem.to_string())
    }

    /// 5 m at 12.5 m/s are 0.4 s.
    #[test]
    fn both_paths_work_for_the_overlap_divided_by_the_speed() {
        let topology = topology("speed = 12.5\noverlap = 5\nat = '600ms'\nattach = '50ms'").unwrap();
        let times: Vec<u64> = topology.link_changes().iter().map(|change| change.at.as_millis()).collect();
        assert_eq!(times, [0, 0, 600, 600, 1000, 1000]);
        let changes = topology.address_changes();
        let seen: Vec<_> = changes
            .iter()
            .map(|change| (change.at.as_millis(), change.address.to_string(), change.is_added))
            .collect();
        assert_eq!(seen, [(650, "10.0.2.1".to_owned(), true), (1000, "10.0.1.1".to_owned(), false)]);
        assert!(changes.iter().all(|change| change.node == topology.node("client").unwrap()));
    }

    #[test]
    fn a_client_that_attaches_late_has_no_address_for_a_while() {
        let topology = topology("speed = 20\noverlap = 1\nat = '1s'\nattach = '100ms'").unwrap();
        let seen: Vec<_> = topology
            .address_changes()
            .iter()
            .map(|change| (change.at.as_millis(), change.is_added))
            .collect();
        assert_eq!(seen, [(1050, false), (1100, true)]);
    }

    /// RFC 5944: the address stays, wherever the node is attached.
    #[test]
    fn route_handover_keeps_the_addresses_and_changes_both_routes() {
        let topology = topology("at = '1s'\nattach = '100ms'\nchanges = 'route'").unwrap();
        assert!(topology.address_changes().is_empty());
        let nodes = ["client", "server"].map(|name| topology.node(name).unwrap());
        let addresses = nodes.map(|node| topology.addresses(node));
        assert_eq!(addresses.clone().map(|own| own.len()), [1, 1]);
        let names = topology.interface_names();
        let seen = topology.route_changes().iter().map(|change| {
            let [from, to] = [change.route.from, change.route.to].map(|id| &*names[usize::from(id.0)]);
            (change.at.as_millis(), change.node, change.route.destination, from, to)
        });
        let due = [
            (1100, nodes[0], addresses[1][0], "client:2", "server:2"),
            (1100, nodes[1], addresses[0][0], "server:2", "client:2"),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), due);
    }

    #[test]
    fn invalid_handovers_are_refused_with_their_line_and_a_remedy() {
        for (table, line) in [
            ("speed = 0\noverlap = 5\nat = '1s'", "line 3"),
            ("speed = 5\noverlap = -1\nat = '1s'", "line 4"),
        ] {
            let problem = topology(table).unwrap_err();
            assert!(problem.contains(line) && problem.contains("such as 12.5"), "{problem}");
        }
        let spec: NetworkSpec = toml::from_str("[handover]\nspeed = 1\noverlap = 1\nat = '1s'").unwrap();
        let problem = Topology::new(&spec).unwrap_err().to_string();
        assert!(problem.contains("paths = [{}, {}]"), "{problem}");
        let problem = topology("changes = 'way'").unwrap_err();
        assert!(problem.contains("line 3") && problem.contains("`address` or `route`"), "{problem}");
        let long = "nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server' }]\n[handover]";
        let problem = Topology::new(&toml::from_str(long).unwrap()).unwrap_err().to_string();
        assert!(
            problem.contains("`handover`") && problem.contains("use paths = [{}, {}] instead of `nodes`"),
            "{problem}"
        );
    }
}
