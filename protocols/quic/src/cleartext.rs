//! An endpoint of the model world (the simulator). Its packets are unencrypted values, so the network can see
//! which octets of which stream they carry, and when these were sent.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use hol_base::{Rng, Time};
use hol_transport::{DeliveryTimes, Input, Output, PathState, ReceivedData, Statistics};
use hol_wire::quic::{Datagram, Frame, Secrets, Side, TimedData, packets};
use hol_wire::{Address, Ecn, Packet, SendTimes, Transport};
use quinn_proto as quinn;
use smallvec::SmallVec;

use crate::arrivals::Arrivals;
use crate::first_sent::FirstSendTimes;
use crate::packet_form::{EndpointOutput, PacketForm};
use crate::socket_address::SocketAddress;
use crate::{Config, Endpoint, MessageMapping, settings};

/// The packets of the simulator (the model world), which are not encrypted.
#[derive(Debug)]
pub struct CleartextPackets {
    local: SocketAddress,
    /// Whether the endpoint uses ECN and reports marks.
    ecn: bool,
    /// The TLS secrets for captures; a server learns them from the first packet.
    secrets: Option<Secrets>,
    first_sent: FirstSendTimes,
    /// The data that have arrived on each stream of the peer.
    arrivals: BTreeMap<u64, Arrivals>,
    /// When the probe timeout (PTO) last expired. RFC 9002 section 6.2.
    last_probe: Option<Time>,
    packets: VecDeque<Packet>,
}

impl Endpoint {
    /// Creates a client endpoint, which opens the connection when it is told to.
    pub fn connect(
        config: impl Into<Arc<Config>>,
        mapping: MessageMapping,
        local: (Address, u16),
        remote: (Address, u16),
        mut rng: Rng,
    ) -> Self {
        let config = config.into();
        let origin = rng.next_u64().to_be_bytes();
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), None, false, None);
        let clear = CleartextPackets {
            secrets: Some(Secrets { origin, sender: Side::Client }),
            ..CleartextPackets::new(&config, local)
        };
        let settings = settings::client(&config, settings::sessions(&config, origin), origin);
        Self {
            remote: Some(remote),
            settings: Some(settings),
            ..Self::new(config.clone(), mapping, quinn, config.wakeup, clear)
        }
    }

    /// Creates an endpoint that waits for one connection.
    pub fn listen(
        config: impl Into<Arc<Config>>,
        mapping: MessageMapping,
        local: (Address, u16),
        rng: Rng,
    ) -> Self {
        let config = config.into();
        let server = Arc::new(settings::server(&config, settings::sessions(&config, Default::default())));
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), Some(server), false, None);
        let clear = CleartextPackets::new(&config, local);
        Self::new(config.clone(), mapping, quinn, config.wakeup, clear)
    }

    fn receive(&mut self, now: Time, source: Address, ecn: Ecn, datagram: Datagram) {
        let Datagram { source_port, payload, secrets, carried, .. } = datagram;
        self.form.secrets.get_or_insert(Secrets { sender: Side::Server, ..secrets });
        let octets = payload.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let ecn = if self.form.ecn { ecn } else { Ecn::NotCapable };
        let is_early = packets(&octets).flatten().any(|packet| packet.is_zero_rtt);
        if self.accept_datagram(now, (source, source_port), ecn, octets) {
            self.note_arrival(now, &carried, is_early);
        }
    }

    /// Records the arrival of user data. Before the end of the handshake quinn-proto accepts only early data, if
    /// the server accepts 0-RTT.
    fn note_arrival(&mut self, now: Time, carried: &[TimedData], is_early: bool) {
        let Some((_, connection)) = &mut self.connection else { return };
        let is_accepted = if is_early { connection.has_0rtt() } else { !connection.is_handshaking() };
        if !is_accepted || carried.is_empty() {
            return;
        }
        for TimedData { stream, start, end, stamp } in carried {
            let delivery_times = DeliveryTimes::new(*stamp, now);
            let Some(id) = stream else {
                if let Some(payload) = connection.datagrams().recv() {
                    self.reader.receive(now, ReceivedData::unordered(payload, delivery_times));
                }
                continue;
            };
            // A closed stream was read to its end.
            let mut is_closed = |id: u64| {
                let id = quinn_proto::VarInt::from_u64(id).expect("the id was encoded as a VarInt").into();
                connection.recv_stream(id).received_reset().is_err()
            };
            if !self.form.arrivals.contains_key(id) && is_closed(*id) {
                self.statistics.duplicates_received += 1;
                continue;
            }
            let arrivals = self.form.arrivals.entry(*id).or_default();
            let is_known = arrivals.arrive(*start, *end, delivery_times);
            self.statistics.duplicates_received += u64::from(is_known && start < end);
        }
    }
}

impl hol_transport::Endpoint for Endpoint {
    // Not inlined, because it would take registers from the loop that also runs the other transports.
    #[inline(never)]
    fn handle(&mut self, now: Time, input: Input) {
        self.has_new_input = true;
        match input {
            Input::Packet(packet) if packet.corrupted => {}
            Input::Packet(Packet { source, ecn, transport: Transport::Quic(datagram), .. }) => {
                self.receive(now, source, ecn, *datagram);
            }
            // Migration is not supported.
            Input::Packet(_) | Input::AddressAdded(_) | Input::AddressRemoved(_) => {}
            Input::Command(command) => self.command(now, command),
        }
    }

    #[inline(never)]
    fn poll(&mut self, now: Time) -> Output {
        match self.next(now) {
            EndpointOutput::Transmit(packet) => Output::Transmit(packet),
            EndpointOutput::Event(event) => Output::Event(event),
            EndpointOutput::Wait(until) => Output::Wait(until),
        }
    }

    #[inline(never)]
    fn can_send(&self, _length: usize) -> bool {
        self.has_room_or_will_report()
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        self.report_path(tell);
    }
}

impl CleartextPackets {
    fn new(config: &Config, local: SocketAddress) -> Self {
        Self {
            local,
            ecn: config.ecn,
            secrets: None,
            // Octets that precede the last one sent by more than a window have been read, so they are not sent again.
            // RFC 9000 section 4.1.
            first_sent: FirstSendTimes::new(config.stream_receive_window.0.min(config.send_window.0)),
            arrivals: BTreeMap::new(),
            last_probe: None,
            packets: VecDeque::new(),
        }
    }

    /// Returns when the user data in these packets were sent.
    fn stamp(
        &mut self,
        now: Time,
        payload: &[u8],
        is_probing: bool,
        statistics: &mut Statistics,
    ) -> SmallVec<[TimedData; 2]> {
        let frames =
            packets(payload).flat_map(|packet| packet.expect("quinn-proto wrote a valid packet").frames());
        let (mut carried, mut asks) = (SmallVec::new(), false);
        for frame in frames {
            match frame.expect("quinn-proto wrote a valid packet") {
                Frame::Stream { id, offset: start, length, .. } => {
                    let end = start + length;
                    let (first_sent, is_new) = self.first_sent.send(now, id, start, end);
                    match (is_new, self.last_probe > Some(first_sent)) {
                        (true, _) => statistics.data_sent += 1,
                        (false, true) => statistics.timeout_retransmissions += 1,
                        (false, false) => statistics.fast_retransmissions += 1,
                    }
                    let stamp = SendTimes { first_sent, sent: now, cut: false };
                    carried.push(TimedData { stream: Some(id), start, end, stamp });
                }
                Frame::Datagram(end) => {
                    statistics.data_sent += 1;
                    let stamp = SendTimes { first_sent: now, sent: now, cut: false };
                    carried.push(TimedData { stream: None, start: 0, end, stamp });
                }
                Frame::Ping | Frame::ImmediateAck | Frame::Crypto { .. } => asks = true,
                _ => {}
            }
        }
        if is_probing && asks && self.last_probe < Some(now) {
            self.last_probe = Some(now);
            statistics.timeouts += 1;
        }
        carried
    }
}

impl PacketForm for CleartextPackets {
    type Packet = Packet;

    fn queue_datagram(
        &mut self,
        now: Time,
        remote: SocketAddress,
        (payload, ecn): (&[u8], Ecn),
        is_probing: bool,
        statistics: &mut Statistics,
    ) {
        let Some(secrets) = self.secrets else { return };
        let carried = self.stamp(now, payload, is_probing, statistics);
        let ((source, source_port), (destination, destination_port)) = (self.local, remote);
        let payload = Bytes::copy_from_slice(payload);
        let datagram = Datagram { source_port, destination_port, payload, secrets, carried };
        statistics.packets_sent += 1;
        let ecn = if self.ecn { ecn } else { Ecn::NotCapable };
        self.packets.push_back(Packet { ecn, ..Packet::new(source, destination, datagram) });
    }

    fn next_packet(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    fn on_stream_acknowledged(&mut self, stream: u64) {
        self.first_sent.forget(stream);
    }

    fn read(&mut self, _: Time, stream: u64, end: u64) -> DeliveryTimes {
        let arrivals = self.arrivals.entry(stream).or_default();
        arrivals.read(end).expect("the octets that are read have arrived")
    }

    fn on_stream_ended(&mut self, stream: u64) {
        self.arrivals.remove(&stream);
    }
}
