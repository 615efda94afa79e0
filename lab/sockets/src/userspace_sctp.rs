//! Userspace SCTP: the model's endpoint, with packets in UDP datagrams. RFC 6951.
//!
//! Each association has its own socket at each end, and one path. Tags, TSNs and the cookie secret are random
//! and not derived from the run's seed, because other hosts may be on the network.

use std::sync::Arc;

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_quic::{EndpointOutput, OutgoingDatagram as Datagram};
use hol_scenario::Side;
use hol_sctp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability};
use hol_wire::sctp::Packet;
use hol_wire::{Address, Ecn, Transport};
use hol_workloads::{DeliveryOptions, Outgoing};
use socket2::Socket;

use crate::datagrams::DatagramSocket;
use crate::error::SocketsError;
use crate::flow_parameters::{EndAddresses, SocketCounters};
use crate::ip_options::unspecified;
use crate::over_udp;
use crate::transceiver::{SenderState, failed_to};

/// Opens associations of userspace SCTP.
#[derive(Debug)]
pub(crate) struct UserspaceSctp {
    config: Arc<Config>,
    /// Whether messages are sent unordered.
    unordered: bool,
    reliability: Reliability,
    /// Whether several datagrams are sent or read by one system call.
    is_batching: bool,
}

impl UserspaceSctp {
    /// Length of the UDP header in octets, by which the path MTU for SCTP packets is reduced. RFC 6951 section 5.6.
    const UDP_HEADER: u64 = 8;

    /// Creates the opener of associations.
    pub(crate) fn new(config: &Config, unordered: bool, reliability: Reliability, is_batching: bool) -> Self {
        const ETHERNET_MTU: u64 = 1500;
        let room = if config.mtu.0 == 0 { ETHERNET_MTU } else { config.mtu.0 } - Self::UDP_HEADER;
        // The kernel already adds the wake-up delay.
        let config = Config { wakeup: Duration::ZERO, ..config.with_network_mtu(room) };
        Self { config: Arc::new(config), unordered, reliability, is_batching }
    }
}

/// Returns a generator with an unpredictable seed.
fn unpredictable_rng() -> Rng {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).expect("Linux has random numbers");
    Seed(u64::from_ne_bytes(octets)).rng()
}

impl over_udp::UserspaceTransport for UserspaceSctp {
    type Endpoint = Association;

    fn open_socket(&self, site: &EndAddresses) -> Result<Socket, SocketsError> {
        let socket = DatagramSocket::open(site, self.config.ecn)?;
        // Room for the peer's whole window and the kernel's overhead, as far as the system allows.
        let room = usize::try_from(4 * self.config.receive_buffer.0).unwrap_or(usize::MAX);
        socket.set_recv_buffer_size(room.min(1 << 26)).map_err(failed_to("set SO_RCVBUF"))?;
        Ok(socket)
    }

    fn endpoint(&self, end: Side, socket: &Socket, peer: &EndAddresses) -> Association {
        let site = |address: socket2::SockAddr| address.as_socket();
        // A host without an address still opens the socket; its packets go nowhere.
        let own = socket.local_addr().ok().and_then(site);
        let (remote, remote_port) = (peer.addresses[0], peer.port);
        let (local, port) = own.map_or((unspecified(remote), 0), |own| (own.ip(), own.port()));
        let config = Arc::clone(&self.config);
        let endpoint = match end {
            Side::Client => {
                Endpoint::connect(config, vec![local], port, vec![remote], remote_port, unpredictable_rng())
            }
            Side::Server => Endpoint::listen(config, vec![local], port, unpredictable_rng()),
        };
        let default_options = DeliveryOptions { unordered: self.unordered, reliability: self.reliability };
        let linger = self.config.rto_initial;
        Association { endpoint, local, remote, default_options, linger, answers_until: None }
    }

    fn is_batching(&self) -> bool {
        self.is_batching
    }

    /// Returns true, because messages are held back until all have been offered, so that the endpoint can bundle them.
    fn defers_sending(&self) -> bool {
        true
    }
}

/// One end of an association of SCTP in userspace.
#[derive(Debug)]
pub(crate) struct Association {
    endpoint: Endpoint,
    local: Address,
    remote: Address,
    /// Delivery options for messages that have none of their own.
    default_options: DeliveryOptions,
    /// Time for which the association still answers after its end, because a peer that lost the SHUTDOWN COMPLETE
    /// repeats its SHUTDOWN ACK. RFC 9260 section 8.4, rule 5.
    linger: Duration,
    /// When the association stops answering after its end; `None` before its end and afterwards.
    answers_until: Option<Time>,
}

impl Association {
    fn retransmissions(&self) -> u64 {
        let counted = self.endpoint.statistics();
        counted.fast_retransmissions + counted.timeout_retransmissions
    }
}

impl over_udp::Endpoint for Association {
    fn poll(&mut self, now: Time) -> EndpointOutput<Datagram> {
        self.answers_until = self.answers_until.filter(|at| now < *at);
        match self.endpoint.poll(now) {
            Output::Transmit(packet) => {
                let Transport::Sctp(sctp) = &packet.transport else {
                    unreachable!("the endpoint sends only SCTP packets")
                };
                EndpointOutput::Transmit(Datagram { octets: sctp.to_bytes(), ecn: packet.ecn })
            }
            Output::Event(event) => {
                if matches!(event, Event::Closed) {
                    self.answers_until = Some(now + self.linger);
                }
                EndpointOutput::Event(event)
            }
            Output::Wait(until) => EndpointOutput::Wait(Time::earliest([until, self.answers_until])),
        }
    }

    fn receive(&mut self, now: Time, octets: &[u8], ecn: Ecn) {
        // An invalid packet is dropped silently. RFC 9260 section 6.8.
        if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(octets)) {
            let packet = hol_wire::Packet { ecn, ..hol_wire::Packet::new(self.remote, self.local, packet) };
            self.endpoint.handle(now, Input::Packet(packet));
        }
    }

    fn handle_command(&mut self, now: Time, command: Command) {
        self.endpoint.handle(now, Input::Command(command));
    }

    fn offer(&mut self, now: Time, message: &Outgoing) -> bool {
        let Outgoing { stream, payload, delivery, .. } = message;
        let has_room = self.endpoint.can_send(payload.len());
        if has_room {
            let DeliveryOptions { unordered, reliability } = delivery.unwrap_or(self.default_options);
            let (stream, payload) = (*stream, payload.clone());
            self.endpoint.queue(now, Message { stream, unordered, reliability, ppid: 0, payload });
        }
        has_room
    }

    fn send_offered(&mut self, now: Time) {
        self.endpoint.send_queued(now);
    }

    fn lingers(&self) -> bool {
        self.answers_until.is_some()
    }

    fn counts(&self) -> SocketCounters {
        let counted = self.endpoint.statistics();
        SocketCounters {
            packets_sent: counted.packets_sent,
            packets_received: counted.packets_received,
            retransmissions: self.retransmissions(),
        }
    }

    fn sending(&self) -> Option<SenderState> {
        let mut paths = Vec::new();
        hol_transport::Endpoint::paths(&self.endpoint, &mut |path| paths.push(path));
        (self.endpoint.statistics().data_sent > 0)
            .then(|| SenderState { paths, retransmissions: self.retransmissions() })
    }
}
