//! Creates the endpoints of a flow: clients that connect, and servers for each peer that connects.

use std::sync::Arc;

use hol_base::{Rng, Seed};
use hol_network::{NodeId, Topology};
use hol_quic::MessageMapping;
use hol_stack::{Protocol, TransportSpec};
use hol_transport::Reliability;
use hol_wire::udp::Datagram;
use hol_wire::{Address, tcp};
use hol_workloads::FramingFn;

use crate::connection::Connection;
use crate::flow_side::Framing;
use crate::host_addresses::HostAddresses;

/// The configuration that all endpoints of a flow share.
#[derive(Debug)]
pub(crate) struct Endpoints {
    kind: Kind,
    seed: Seed,
    pub(crate) client: NodeId,
    pub(crate) server: NodeId,
    addresses: [Vec<Address>; 2],
    /// The port on which the server listens.
    pub(crate) port: u16,
    /// The range of client ports that is reserved for the flow: its first port, and the number of ports.
    pub(crate) own_ports: (u16, u16),
}

#[derive(Debug)]
enum Kind {
    Tcp(Arc<hol_tcp::Config>),
    Sctp { config: Arc<hol_sctp::Config>, unordered: bool, reliability: Reliability },
    Udp(hol_udp::Config),
    Quic { config: Arc<hol_quic::Config>, mapping: MessageMapping },
}

/// The nodes of a flow's client and server, and their ports.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowEnds {
    pub(crate) client: NodeId,
    pub(crate) server: NodeId,
    pub(crate) port: u16,
    pub(crate) first_client_port: u16,
}

impl Endpoints {
    /// Creates the configuration of `transport`, with the MSS limited by the smallest MTU of the network.
    pub(crate) fn new(transport: &TransportSpec, topology: &Topology, ends: FlowEnds, seed: Seed) -> Self {
        let (mtu, ip_header) = (topology.smallest_mtu(), topology.ip().header_length());
        let mut max = usize::MAX;
        let kind = match transport.protocol() {
            Protocol::Tcp { config, .. } => {
                let headers = (ip_header + tcp::Segment::HEADER_LENGTH) as u64;
                let largest = u16::try_from(mtu - headers).unwrap_or(u16::MAX);
                // Only the default for Ethernet is adapted to the MTU; any other value was set by the user.
                let follows = config.mss == hol_tcp::ETHERNET_MSS;
                let mss = if follows { largest } else { config.mss.min(largest) };
                Kind::Tcp(Arc::new(hol_tcp::Config { mss, ..config.clone() }))
            }
            Protocol::Sctp { config, single_homed, unordered, reliability, .. } => {
                if *single_homed {
                    max = 1;
                }
                let config = Arc::new(config.with_network_mtu(mtu));
                Kind::Sctp { config, unordered: *unordered, reliability: *reliability }
            }
            Protocol::Udp { config } => Kind::Udp(config.clone()),
            Protocol::Quic { config, mapping, .. } => {
                let largest = mtu - (ip_header + Datagram::HEADER_LENGTH) as u64;
                let config = Arc::new(config.with_largest_packet(largest));
                Kind::Quic { config, mapping: *mapping }
            }
            Protocol::Mptcp { .. } | Protocol::Unix { .. } => unreachable!("the scenario was checked"),
        };
        let FlowEnds { client, server, port, first_client_port } = ends;
        let addresses = [client, server].map(|node| {
            let mut addresses = topology.addresses(node);
            addresses.truncate(max);
            addresses
        });
        let own_ports = (first_client_port, transport.connections());
        Self { kind, seed, client, server, addresses, port, own_ports }
    }

    /// Returns how messages are mapped to the connections of the flow.
    pub(crate) fn framing(&self, framing_fn: FramingFn) -> Framing {
        match self.kind {
            Kind::Tcp(_) | Kind::Quic { mapping: MessageMapping::Streams, .. } => Framing::octets(framing_fn),
            Kind::Sctp { unordered, reliability, .. } => Framing::Messages { unordered, reliability },
            Kind::Udp(_) | Kind::Quic { .. } => {
                Framing::Messages { unordered: true, reliability: Reliability::Full }
            }
        }
    }

    /// Returns the addresses of the client and of the server for a connection; the first address of each is on the
    /// same path. If the client's host has no address at present, the address that it gets next is used.
    pub(crate) fn ends(&self, host_addresses: &HostAddresses) -> [Vec<Address>; 2] {
        let [client, server] = &self.addresses;
        let is_chosen = |address| match self.lacks_address(host_addresses) {
            false => host_addresses.has(address),
            true => host_addresses.next_address().is_none_or(|next| next == address),
        };
        hol_scenario::connection_addresses(client, server, is_chosen)
    }

    /// Returns whether the client's host has no address at the moment.
    pub(crate) fn lacks_address(&self, host_addresses: &HostAddresses) -> bool {
        !self.addresses[0].iter().any(|address| host_addresses.has(*address))
    }

    /// Creates the client's end of connection `number`, with port `port`.
    pub(crate) fn connect(
        &self,
        number: usize,
        port: u16,
        [client, server]: [Vec<Address>; 2],
    ) -> Connection {
        let rng = self.rng("client", number);
        let (local, remote) = ((client[0], port), (server[0], self.port));
        match &self.kind {
            Kind::Tcp(config) => {
                Connection::Tcp(hol_tcp::Endpoint::connect(config.clone(), local, remote, rng))
            }
            Kind::Sctp { config, .. } => {
                let config = config.clone();
                Connection::Sctp(hol_sctp::Endpoint::connect(config, client, port, server, self.port, rng))
            }
            Kind::Udp(config) => Connection::Udp(hol_udp::Endpoint::connect(config.clone(), local, remote)),
            Kind::Quic { config, mapping } => {
                let endpoint = hol_quic::Endpoint::connect(config.clone(), *mapping, local, remote, rng);
                Connection::Quic(Box::new(endpoint))
            }
        }
    }

    /// Creates the server's end of connection `number` at `address`, which is one of the server's addresses.
    pub(crate) fn listen(&self, number: usize, address: Address) -> Connection {
        let [_, server] = &self.addresses;
        let rng = self.rng("server", number);
        let local = (address, self.port);
        match &self.kind {
            Kind::Tcp(config) => Connection::Tcp(hol_tcp::Endpoint::listen(config.clone(), local, rng)),
            Kind::Sctp { config, .. } => {
                let (config, server) = (config.clone(), server.clone());
                Connection::Sctp(hol_sctp::Endpoint::listen(config, server, self.port, rng))
            }
            Kind::Udp(config) => Connection::Udp(hol_udp::Endpoint::listen(config.clone(), local)),
            Kind::Quic { config, mapping } => {
                let endpoint = hol_quic::Endpoint::listen(config.clone(), *mapping, local, rng);
                Connection::Quic(Box::new(endpoint))
            }
        }
    }

    /// Returns the random number generator of an endpoint, from which it draws initial sequence numbers, tags and
    /// times of heartbeats.
    fn rng(&self, side: &str, number: usize) -> Rng {
        self.seed.derive(side).derive_for_index(number as u64).rng()
    }
}
