//! Makes hosts, endpoints, channels and applications from a scenario.

use std::ops::Range;
use std::sync::Arc;

use hol_base::{ByteCount, Duration, Rng, Seed};
use hol_network::{Network, NodeId, Tap, Topology};
use hol_stack::{Protocol, TransportSpec};
use hol_transport::Reliability;
use hol_udp::Sip;
use hol_wire::udp::Datagram;
use hol_wire::{Packet, tcp};
use hol_workloads::{Client, Face, Server, WorkloadSpec};

use crate::channel::Channel;
use crate::connection::Connection;
use crate::demux::Demux;
use crate::flow::{Flow, Role, Side, Terms};
use crate::scenario::BackgroundFlow;
use crate::world::{Socket, World};
use crate::{Scenario, ScenarioError};

/// Where the server of the first flow listens: SIMCO's port. RFC 4540 section 3.
const SERVER_PORT: u16 = 7626;
/// The first client port, of the dynamic range, and how many there are. RFC 6335 section 6.
const FIRST_CLIENT_PORT: u16 = 49152;
pub(crate) const CLIENT_PORTS: usize = (u16::MAX - FIRST_CLIENT_PORT) as usize + 1;
/// Without a delivery for so many times the longest retransmission timeout, a run has stalled.
const STALLED_TIMEOUTS: u64 = 3;

/// UDP has no timeout of its own; a SIP transaction gives up after 32 s (RFC 3261 table 4).
const PATIENCE_WITH_DATAGRAMS: Duration = Duration::from_secs(32);

/// Which flow of a run a packet belongs to: 0 is measured, from 1 on those of the background in the order of
/// [`Scenario::background_flows`].
pub fn flow_of(packet: &Packet) -> usize {
    // Of the two ports the server's is the lower, and each flow has its own.
    let (source, destination) = packet.ports();
    usize::from(source.min(destination) - SERVER_PORT)
}

/// The world of `scenario` at the start of the run: the flow that is measured, then the background.
pub(crate) fn world<'t>(
    scenario: &Scenario,
    seed: Seed,
    tap: Option<&'t mut dyn Tap>,
) -> Result<World<'t>, ScenarioError> {
    scenario.check()?;
    crate::check(scenario)?;
    let topology = Topology::new(&scenario.network)?;
    let mut builder = Builder { topology: &topology, sockets: Vec::new(), hosts: Vec::new(), clients: 0 };
    builder.hosts.resize_with(topology.nodes(), Demux::default);
    let Scenario { transport, workload, messages, .. } = scenario;
    let mut flows = vec![builder.flow(0, transport, workload, *messages, seed)?];
    for BackgroundFlow { transport, workload, messages, seed } in scenario.background_flows(seed) {
        flows.push(builder.flow(flows.len(), transport, &workload, messages, seed)?);
    }
    let network = Network::new(&topology, seed, tap);
    Ok(World::new(network, builder.hosts, builder.sockets, flows))
}

struct Builder<'a> {
    topology: &'a Topology,
    sockets: Vec<Socket>,
    /// By node.
    hosts: Vec<Demux>,
    /// Client ports that are taken.
    clients: u16,
}

/// What the endpoints of a flow have in common.
#[derive(Clone, Copy)]
struct Plan {
    /// The flow's index.
    flow: usize,
    seed: Seed,
    client: NodeId,
    server: NodeId,
    /// Where its server listens: each flow has a port of its own.
    port: u16,
}

impl Builder<'_> {
    fn flow(
        &mut self,
        index: usize,
        transport: &TransportSpec,
        workload: &WorkloadSpec,
        messages: u64,
        seed: Seed,
    ) -> Result<Flow, ScenarioError> {
        let [client, server] = [workload.from(), workload.to()]
            .map(|name| self.topology.node(name).expect("a scenario is checked first"));
        let plan = Plan { flow: index, seed, client, server, port: SERVER_PORT + index as u16 };
        let ([client, server], patience) = self.channels(plan, transport, workload)?;
        let face = Face { streams: transport.streams(), sessions: transport.connections() };
        Ok(Flow::new(
            Side::new(Client::new(workload, face, messages, seed), client),
            Side::new(Server::new(workload, face, messages), server),
            Terms::of(workload, messages, patience * STALLED_TIMEOUTS, nobody_repeats(transport)),
        ))
    }

    /// What client and server talk through, and the longest that the transport may be silent and yet recover.
    fn channels(
        &mut self,
        plan: Plan,
        transport: &TransportSpec,
        workload: &WorkloadSpec,
    ) -> Result<([Channel; 2], Duration), ScenarioError> {
        Ok(match transport.protocol() {
            Protocol::Tcp { config, connections, .. } => {
                let endpoints = self.tcp(plan, config, *connections);
                let length_of = workload.length_of();
                (endpoints.map(|endpoints| Channel::tcp(endpoints, length_of)), config.rto_max)
            }
            Protocol::Sctp { config, associations, single_homed, unordered, reliability } => {
                let endpoints = self.sctp(plan, config, *associations, *single_homed);
                let channel = |endpoints| Channel::messages(endpoints, *unordered, *reliability);
                (endpoints.map(channel), config.rto_max)
            }
            Protocol::Udp { config } => {
                let endpoints = self.udp(plan, config, workload)?;
                let channel = |endpoints| Channel::messages(endpoints, true, Reliability::Full);
                (endpoints.map(channel), PATIENCE_WITH_DATAGRAMS)
            }
            Protocol::Mptcp { .. } => unreachable!("a scenario is checked first"),
        })
    }

    /// Client and server endpoints of parallel TCP connections.
    fn tcp(&mut self, plan: Plan, config: &hol_tcp::Config, connections: u16) -> [Range<usize>; 2] {
        let mut config = config.clone();
        let headers = (Packet::IP_HEADER + tcp::Segment::HEADER) as u64;
        let most = u16::try_from(self.topology.smallest_mtu() - headers).unwrap_or(u16::MAX);
        config.mss = config.mss.min(most);
        let config = Arc::new(config);
        let [client, server] = [plan.client, plan.server].map(|node| self.topology.addresses(node)[0]);
        let remote = (server, plan.port);
        let connect = |port, rng| {
            Connection::Tcp(hol_tcp::Endpoint::connect(config.clone(), (client, port), remote, rng))
        };
        let listen = |rng| Connection::Tcp(hol_tcp::Endpoint::listen(config.clone(), remote, rng));
        self.pairs(plan, connections, connect, listen)
    }

    /// Client and server endpoints of parallel SCTP associations, each over all addresses of both unless single-homed.
    fn sctp(
        &mut self,
        plan: Plan,
        config: &hol_sctp::Config,
        associations: u16,
        single_homed: bool,
    ) -> [Range<usize>; 2] {
        let mut config = config.clone();
        config.mtu = ByteCount(config.mtu.0.min(self.topology.smallest_mtu()));
        let config = Arc::new(config);
        let most = if single_homed { 1 } else { usize::MAX };
        let [client, server] = [plan.client, plan.server].map(|node| {
            let mut addresses = self.topology.addresses(node);
            addresses.truncate(most);
            addresses
        });
        let connect = |port, rng| {
            let (client, server) = (client.clone(), server.clone());
            Connection::Sctp(hol_sctp::Endpoint::connect(
                config.clone(),
                client,
                port,
                server,
                plan.port,
                rng,
            ))
        };
        let listen = |rng| {
            Connection::Sctp(hol_sctp::Endpoint::listen(config.clone(), server.clone(), plan.port, rng))
        };
        self.pairs(plan, associations, connect, listen)
    }

    /// As many client endpoints, which connect from ports of their own, and as many that listen for them.
    fn pairs(
        &mut self,
        plan: Plan,
        count: u16,
        connect: impl Fn(u16, Rng) -> Connection,
        listen: impl Fn(Rng) -> Connection,
    ) -> [Range<usize>; 2] {
        let first = self.sockets.len();
        for number in 0..count {
            let port = self.client_port();
            self.add_client(plan, connect(port, plan.rng("client", number)), port);
        }
        for number in 0..count {
            self.add_server(plan, listen(plan.rng("server", number)));
        }
        let middle = first + usize::from(count);
        [first..middle, middle..self.sockets.len()]
    }

    /// Client and server endpoint of a flow of datagrams.
    fn udp(
        &mut self,
        plan: Plan,
        config: &hol_udp::Config,
        workload: &WorkloadSpec,
    ) -> Result<[Range<usize>; 2], ScenarioError> {
        let (size, mtu) = (workload.size(), self.topology.smallest_mtu());
        if size + (Packet::IP_HEADER + Datagram::HEADER) as u64 > mtu {
            return Err(ScenarioError::TooLongForDatagram { size, mtu });
        }
        let [client, server] = [plan.client, plan.server].map(|node| self.topology.addresses(node)[0]);
        let connect = |port, _| {
            Connection::Udp(hol_udp::Endpoint::connect(config.clone(), (client, port), (server, plan.port)))
        };
        let listen = |_| Connection::Udp(hol_udp::Endpoint::listen(config.clone(), (server, plan.port)));
        Ok(self.pairs(plan, 1, connect, listen))
    }

    fn client_port(&mut self) -> u16 {
        self.clients += 1;
        FIRST_CLIENT_PORT + (self.clients - 1)
    }

    fn add_client(&mut self, plan: Plan, connection: Connection, port: u16) {
        let Plan { flow, client: node, .. } = plan;
        self.hosts[usize::from(node.0)].bind(port, plan.port, self.sockets.len());
        self.sockets.push(Socket { connection, node, flow, role: Role::Client });
    }

    fn add_server(&mut self, plan: Plan, connection: Connection) {
        let Plan { flow, server: node, .. } = plan;
        self.hosts[usize::from(node.0)].listen(plan.port, self.sockets.len());
        self.sockets.push(Socket { connection, node, flow, role: Role::Server });
    }
}

/// What is lost stays lost: the run ends in silence.
fn nobody_repeats(transport: &TransportSpec) -> bool {
    matches!(transport.protocol(), Protocol::Udp { config } if config.sip == Sip::Off)
}

impl Plan {
    /// Each endpoint has its own random stream, for its initial numbers, tags and heartbeats.
    fn rng(self, side: &str, connection: u16) -> Rng {
        self.seed.derive(side).derive_index(connection.into()).rng()
    }
}
