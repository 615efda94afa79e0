//! Makes hosts, endpoints, channels and applications from a scenario.

use hol_base::{ByteCount, Rng, Seed};
use hol_network::{Network, Tap, Topology};
use hol_stack::{Protocol, TransportSpec};
use hol_transport::Reliability;
use hol_wire::{Address, Packet, tcp};
use hol_workloads::{Client, Face, Server};

use crate::channel::Channel;
use crate::connection::Connection;
use crate::demux::Demux;
use crate::flow::{Flow, Role, Side};
use crate::world::{Socket, World};
use crate::{Scenario, ScenarioError};

/// Where servers listen: SIMCO's port. RFC 4540 section 3.
const SERVER_PORT: u16 = 7626;
/// The first client port, of the dynamic range. RFC 6335 section 6.
const FIRST_CLIENT_PORT: u16 = 49152;
/// Without a delivery for so many times the longest retransmission timeout, a run has stalled.
const STALLED_TIMEOUTS: u64 = 3;

/// The world of `scenario` at the start of the run.
pub(crate) fn world<'t>(
    scenario: &Scenario,
    seed: Seed,
    tap: Option<&'t mut dyn Tap>,
) -> Result<World<'t>, ScenarioError> {
    scenario.check()?;
    let topology = Topology::new(&scenario.network)?;
    let mut builder = Builder { topology: &topology, seed, sockets: Vec::new(), hosts: Vec::new() };
    builder.hosts.resize_with(topology.nodes(), Demux::default);
    let flow = builder.flow(scenario)?;
    let network = Network::new(&topology, seed, tap);
    Ok(World::new(network, builder.hosts, builder.sockets, vec![flow]))
}

struct Builder<'a> {
    topology: &'a Topology,
    seed: Seed,
    sockets: Vec<Socket>,
    /// By node.
    hosts: Vec<Demux>,
}

impl Builder<'_> {
    fn flow(&mut self, scenario: &Scenario) -> Result<Flow, ScenarioError> {
        let Scenario { transport, workload, messages, .. } = scenario;
        let streams = transport.streams();
        let (sessions, patience) = match transport.protocol() {
            Protocol::Tcp { config, connections } => (*connections, config.rto_max),
            Protocol::Sctp { config, .. } => (1, config.rto_max),
            Protocol::Mptcp { .. } | Protocol::Udp => return Err(no_protocol(transport)),
        };
        let face = Face { streams, sessions };
        let [client, server] = match transport.protocol() {
            Protocol::Tcp { config, connections } => {
                let length_of = workload.length_of();
                self.tcp(config, *connections).map(|endpoints| Channel::tcp(endpoints, length_of))
            }
            Protocol::Sctp { config, unordered, reliability } => {
                self.sctp(config).map(|endpoint| Channel::sctp(endpoint, *unordered, *reliability))
            }
            Protocol::Mptcp { .. } | Protocol::Udp => return Err(no_protocol(transport)),
        };
        let arrivals = self.seed.derive("workload/arrivals").rng();
        Ok(Flow::new(
            Side::new(Client::new(workload, face, *messages, arrivals), client),
            Side::new(Server::new(workload, face, *messages), server),
            *messages,
            workload.has_replies(),
            patience * STALLED_TIMEOUTS,
        ))
    }

    /// Client and server endpoints of parallel TCP connections.
    fn tcp(&mut self, config: &hol_tcp::Config, connections: u16) -> [std::ops::Range<usize>; 2] {
        let mut config = config.clone();
        let headers = (Packet::IP_HEADER + tcp::Segment::HEADER) as u64;
        let most = u16::try_from(self.topology.smallest_mtu() - headers).unwrap_or(u16::MAX);
        config.mss = config.mss.min(most);
        let [client, server] = [Role::Client, Role::Server].map(|role| self.addresses(role)[0]);
        let first = self.sockets.len();
        for connection in 0..connections {
            let local = (client, FIRST_CLIENT_PORT + connection);
            let endpoint = hol_tcp::Endpoint::connect(
                config.clone(),
                local,
                (server, SERVER_PORT),
                self.rng("client", connection),
            );
            self.add(Role::Client, Connection::Tcp(endpoint), local.1);
        }
        for connection in 0..connections {
            let rng = self.rng("server", connection);
            let endpoint = hol_tcp::Endpoint::listen(config.clone(), (server, SERVER_PORT), rng);
            self.add(Role::Server, Connection::Tcp(endpoint), SERVER_PORT);
        }
        let middle = first + usize::from(connections);
        [first..middle, middle..self.sockets.len()]
    }

    /// Client and server endpoint of an SCTP association over all addresses of both.
    fn sctp(&mut self, config: &hol_sctp::Config) -> [usize; 2] {
        let mut config = config.clone();
        config.mtu = ByteCount(config.mtu.0.min(self.topology.smallest_mtu()));
        let [client, server] = [Role::Client, Role::Server].map(|role| self.addresses(role));
        let first = self.sockets.len();
        let endpoint = hol_sctp::Endpoint::connect(
            config.clone(),
            client,
            FIRST_CLIENT_PORT,
            server.clone(),
            SERVER_PORT,
            self.rng("client", 0),
        );
        self.add(Role::Client, Connection::Sctp(endpoint), FIRST_CLIENT_PORT);
        let endpoint = hol_sctp::Endpoint::listen(config, server, SERVER_PORT, self.rng("server", 0));
        self.add(Role::Server, Connection::Sctp(endpoint), SERVER_PORT);
        [first, first + 1]
    }

    fn add(&mut self, role: Role, connection: Connection, port: u16) {
        let node = self.topology.node(role.node()).expect("a topology has both ends");
        let index = self.sockets.len();
        let host = &mut self.hosts[usize::from(node.0)];
        match role {
            Role::Client => host.bind(port, SERVER_PORT, index),
            Role::Server => host.listen(port, index),
        }
        self.sockets.push(Socket { connection, node, flow: 0, role });
    }

    fn addresses(&self, role: Role) -> Vec<Address> {
        self.topology.addresses(self.topology.node(role.node()).expect("a topology has both ends"))
    }

    /// Each endpoint has its own random stream, for its initial numbers, tags and heartbeats.
    fn rng(&self, side: &str, connection: u16) -> Rng {
        self.seed.derive(side).derive_index(connection.into()).rng()
    }
}

fn no_protocol(transport: &TransportSpec) -> ScenarioError {
    ScenarioError::NoProtocol(transport.kind().name())
}

impl Role {
    /// The node on which it runs.
    const fn node(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Scenario {
    /// Whether the transport may give messages up.
    pub(crate) fn gives_up(&self) -> bool {
        matches!(self.transport.protocol(), Protocol::Sctp { reliability, .. } if *reliability != Reliability::Full)
    }
}
