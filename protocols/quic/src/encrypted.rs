//! An endpoint with TLS, for sockets: datagrams are encrypted octets.
//!
//! Their content is not visible: only quinn-proto knows which octets were sent, and when they arrived.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hol_base::{Duration, Rng, Time};
use hol_transport::{Command, DeliveryTimes, Message, ReceivedData, Statistics};
use hol_wire::{Address, Ecn};
use quinn_proto as quinn;

use crate::packet_form::{EndpointOutput, PacketForm};
use crate::socket_address::SocketAddress;
use crate::{Config, Endpoint, MessageMapping, Tls, settings};

/// The packets of connections over real sockets, which are encrypted.
#[derive(Debug)]
pub struct EncryptedPackets {
    datagrams: VecDeque<OutgoingDatagram>,
    /// Whether the endpoint uses ECN and reports marks.
    ecn: bool,
    /// Whether the socket's send buffer is full.
    is_blocked: bool,
}

/// A datagram to send, and its ECN codepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingDatagram {
    /// The payload of the UDP datagram.
    pub octets: Bytes,
    /// The ECN codepoint of the IP header.
    pub ecn: Ecn,
}

impl EncryptedPackets {
    fn new(config: &Config) -> Self {
        Self { datagrams: VecDeque::new(), ecn: config.ecn, is_blocked: false }
    }
}

impl Endpoint<EncryptedPackets> {
    /// Creates a client endpoint, which opens the connection when it is told to.
    pub fn client(
        config: Arc<Config>,
        mapping: MessageMapping,
        tls: &Tls,
        remote: (Address, u16),
        mut rng: Rng,
    ) -> Self {
        let origin = rng.next_u64().to_be_bytes();
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), None, false, None);
        let settings = settings::client(&config, tls.client(&config), origin);
        let sealed = EncryptedPackets::new(&config);
        let sealed = Self::new(config, mapping, quinn, Duration::ZERO, sealed);
        Self { remote: Some(remote), settings: Some(settings), ..sealed }
    }

    /// Creates an endpoint that waits for one connection.
    pub fn server(config: Arc<Config>, mapping: MessageMapping, tls: &Tls, rng: Rng) -> Self {
        let server = Arc::new(settings::server(&config, tls.server()));
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), Some(server), false, None);
        let sealed = EncryptedPackets::new(&config);
        Self::new(config, mapping, quinn, Duration::ZERO, sealed)
    }

    /// Handles a datagram that arrived from `remote`.
    pub fn receive_datagram(&mut self, now: Time, remote: (Address, u16), octets: &[u8], ecn: Ecn) {
        self.has_new_input = true;
        let ecn = if self.form.ecn { ecn } else { Ecn::NotCapable };
        if !self.accept_datagram(now, remote, ecn, BytesMut::from(octets)) {
            return;
        }
        let delivery_times = DeliveryTimes { first_sent: now, sent: now, arrived: now };
        let Some((_, connection)) = &mut self.connection else { return };
        while let Some(payload) = connection.datagrams().recv() {
            self.reader.receive(now, ReceivedData::unordered(payload, delivery_times));
        }
    }

    /// Handles a command of the application.
    pub fn handle_command(&mut self, now: Time, command: Command) {
        self.has_new_input = true;
        self.command(now, command);
    }

    /// Sends a message if the endpoint has room for it; otherwise the endpoint reports later when it has.
    pub fn try_send(&mut self, now: Time, message: Message) -> bool {
        let has_room = self.has_room_or_will_report();
        if has_room {
            self.handle_command(now, Command::Send(message));
        }
        has_room
    }

    /// Pauses sending while the socket's send buffer is full, or resumes it. Paused data are sent at the
    /// next [`poll`](Self::poll).
    pub fn set_paused(&mut self, holds: bool) {
        self.has_new_input |= self.form.is_blocked && !holds;
        self.form.is_blocked = holds;
    }

    /// Returns the next output of the endpoint. After `Wait`, call this function again at the next input or
    /// at the given time.
    pub fn poll(&mut self, now: Time) -> EndpointOutput<OutgoingDatagram> {
        self.next(now)
    }

    /// Returns the counters of the endpoint.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Returns the number of packets considered lost, whose content was sent again. RFC 9002 section 6.1.
    pub fn packets_lost(&self) -> u64 {
        self.connection.as_ref().map_or(0, |(_, connection)| connection.stats().path.lost_packets)
    }

    /// Returns whether the endpoint has sent user data.
    pub fn has_sent_data(&self) -> bool {
        self.connection.as_ref().is_some_and(|(_, connection)| {
            let sent = connection.stats().frame_tx;
            sent.stream + sent.datagram > 0
        })
    }

    /// Returns whether the endpoint has nothing more to send, not even to a peer that does not know yet that
    /// the connection has ended. RFC 9000 section 10.2.
    pub fn is_drained(&self) -> bool {
        self.connection.as_ref().is_none_or(|(_, connection)| connection.is_drained())
    }
}

impl PacketForm for EncryptedPackets {
    type Packet = OutgoingDatagram;

    fn queue_datagram(
        &mut self,
        _: Time,
        _: SocketAddress,
        (payload, ecn): (&[u8], Ecn),
        _: bool,
        statistics: &mut Statistics,
    ) {
        statistics.packets_sent += 1;
        let ecn = if self.ecn { ecn } else { Ecn::NotCapable };
        self.datagrams.push_back(OutgoingDatagram { octets: Bytes::copy_from_slice(payload), ecn });
    }

    fn has_room(&self) -> bool {
        !self.is_blocked
    }

    fn next_packet(&mut self) -> Option<OutgoingDatagram> {
        self.datagrams.pop_front()
    }

    fn on_stream_acknowledged(&mut self, _: u64) {}

    fn read(&mut self, now: Time, _: u64, _: u64) -> DeliveryTimes {
        DeliveryTimes { first_sent: now, sent: now, arrived: now }
    }

    fn on_stream_ended(&mut self, _: u64) {}
}
