//! QUIC: quinn with TLS, over UDP.

use std::cell::Cell;
use std::sync::Arc;

use hol_base::{Seed, Time};
use hol_quic::{
    Config, EncryptedPackets, Endpoint, EndpointOutput, KeyLog, MessageMapping, OutgoingDatagram as Datagram,
    Tls,
};
use hol_scenario::Side;
use hol_system as system;
use hol_transport::{Command, DeliveryTimes, Framer, Message, ReceivedData, Reliability};
use hol_wire::{Address, Ecn, ip_header_length, udp};
use hol_workloads::{FramingFn, Outgoing};
use socket2::Socket;

use crate::datagrams::DatagramSocket;
use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::ip_options::IpOptions;
use crate::over_udp;
use crate::transceiver::{ConnectionFault, SenderState, SocketEvent};

/// Opens QUIC connections.
pub(crate) struct Quic {
    config: Arc<Config>,
    mapping: MessageMapping,
    framing_fn: FramingFn,
    tls: Tls,
    log: KeyLog,
    seed: Seed,
    /// Number of endpoints created so far; the seed of an endpoint derives from it.
    endpoints: Cell<u64>,
    /// Whether messages that are sent together share datagrams, and one system call sends or reads several datagrams.
    is_batching: bool,
}

impl Quic {
    /// Creates an opener of connections. `shared` is the secret that both hosts know; `None` if both ends are on this
    /// host.
    pub(crate) fn new(
        config: &Config,
        mapping: MessageMapping,
        framing_fn: FramingFn,
        seed: Seed,
        shared: Option<&[u8; 32]>,
        is_batching: bool,
    ) -> Self {
        let log = KeyLog::default();
        let tls = match shared {
            Some(secret) => Tls::from_shared_secret(secret, config, log.clone()),
            None => Tls::new(config, log.clone()),
        };
        Self {
            tls,
            config: Arc::new(config.clone()),
            mapping,
            framing_fn,
            log,
            seed: seed.derive("quic"),
            endpoints: Cell::new(0),
            is_batching,
        }
    }
}

impl over_udp::UserspaceTransport for Quic {
    type Endpoint = Connection;

    fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        DatagramSocket::open(site, self.config.ecn)
    }

    fn endpoint(&self, end: Side, socket: &Socket, peer: &EndAddresses) -> Connection {
        let number = self.endpoints.replace(self.endpoints.get() + 1);
        let rng = self.seed.derive(&format!("endpoint/{number}")).rng();
        let peer = (peer.addresses[0], peer.port);
        let config = largest(socket, peer.0).map_or_else(
            || Arc::clone(&self.config),
            |largest| Arc::new(self.config.with_largest_packet(largest)),
        );
        let endpoint = match end {
            Side::Client => Endpoint::client(config, self.mapping, &self.tls, peer, rng),
            Side::Server => Endpoint::server(config, self.mapping, &self.tls, rng),
        };
        let framing = (self.mapping == MessageMapping::Streams).then(|| (self.framing_fn, Vec::new()));
        Connection { peer, endpoint, framing }
    }

    fn is_batching(&self) -> bool {
        self.is_batching
    }

    fn defers_sending(&self) -> bool {
        self.is_batching
    }

    fn secrets(&self) -> String {
        self.log.lines()
    }
}

/// Returns the size in octets of the largest UDP payload that fits into the MTU of a connected socket. ip(7), IP_MTU.
fn largest(socket: &Socket, peer: Address) -> Option<u64> {
    let (mut mtu, options) = ([0u8; 4], IpOptions::of(peer));
    system::read_option(socket, options.level, options.mtu, &mut mtu).ok()?;
    let headers = ip_header_length(peer) + udp::Datagram::HEADER_LENGTH;
    Some(u64::from(u32::from_ne_bytes(mtu)).saturating_sub(headers as u64))
}

/// One end of a QUIC connection.
pub(crate) struct Connection {
    peer: (Address, u16),
    endpoint: Endpoint<EncryptedPackets>,
    /// The framing of messages in byte streams, and a framer for each stream.
    framing: Option<(FramingFn, Vec<Framer>)>,
}

impl over_udp::Endpoint for Connection {
    fn poll(&mut self, now: Time) -> EndpointOutput<Datagram> {
        self.endpoint.poll(now)
    }

    fn receive(&mut self, now: Time, octets: &[u8], ecn: Ecn) {
        self.endpoint.receive_datagram(now, self.peer, octets, ecn);
    }

    fn handle_command(&mut self, now: Time, command: Command) {
        self.endpoint.handle_command(now, command);
    }

    fn offer(&mut self, now: Time, message: &Outgoing) -> bool {
        let Outgoing { stream, payload, .. } = message;
        let message = Message {
            stream: *stream,
            unordered: self.framing.is_none(),
            reliability: Reliability::Full,
            ppid: 0,
            payload: payload.clone(),
        };
        self.endpoint.try_send(now, message)
    }

    fn hold(&mut self, holds: bool) {
        self.endpoint.set_paused(holds);
    }

    fn deliver(
        &mut self,
        received: ReceivedData,
        take: &mut dyn FnMut(SocketEvent),
    ) -> Result<(), ConnectionFault> {
        let ReceivedData { stream, payload, .. } = received;
        let Some((framing_fn, framers)) = &mut self.framing else {
            take(SocketEvent::Message(stream, payload));
            return Ok(());
        };
        let place = usize::from(stream);
        if place >= framers.len() {
            framers.resize_with(place + 1, || Framer::new(*framing_fn));
        }
        let framer = &mut framers[place];
        framer.push(payload, DeliveryTimes::default());
        take(SocketEvent::Part);
        while let Some(framed) = framer.next()? {
            take(SocketEvent::Message(stream, framed.payload));
        }
        Ok(())
    }

    fn lingers(&self) -> bool {
        !self.endpoint.is_drained()
    }

    fn counts(&self) -> SocketCounters {
        let statistics = self.endpoint.statistics();
        SocketCounters {
            packets_sent: statistics.packets_sent,
            packets_received: statistics.packets_received,
            retransmissions: self.endpoint.packets_lost(),
        }
    }

    fn sending(&self) -> Option<SenderState> {
        let mut paths = Vec::new();
        self.endpoint.report_path(&mut |path| paths.push(path));
        self.endpoint
            .has_sent_data()
            .then(|| SenderState { paths, retransmissions: self.endpoint.packets_lost() })
    }
}
