//! Processes packets: verification, a handler for each chunk, and DATA. RFC 9260 sections 3.2, 6.2, 8.4 and 8.5.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Event, Failure, ReceivingApplication, Violation};
use hol_wire::sctp::{self, Cause, Chunk, Data, DataFlags, IData, Tsn};
use hol_wire::{Address, Ecn, Packet, Transport};

use crate::acknowledge::SackRequest;
use crate::cookie::is_unicast;
use crate::inbound_streams::InboundStreams;
use crate::state::State;
use crate::tsn_map::Arrival;
use crate::{Endpoint, interleaved, reassembly};

/// The source and the destination address of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketAddresses {
    pub(crate) source: Address,
    /// Our address, to which the packet was sent.
    pub(crate) destination: Address,
    pub(crate) port: u16,
    pub(crate) verification_tag: u32,
}

/// A received chunk with user data: DATA or I-DATA.
#[derive(Debug, Clone, Copy)]
struct ArrivingData {
    tsn: Tsn,
    flags: DataFlags,
    stream: u16,
    /// Number of octets of user data.
    length: usize,
}

impl ArrivingData {
    const fn new(tsn: Tsn, flags: DataFlags, stream: u16, length: usize) -> Self {
        Self { tsn, flags, stream, length }
    }
}

/// How to handle a received chunk of user data.
enum Admission {
    Deliver,
    /// Ignore the chunk and continue with the next one.
    Ignore,
    /// The chunk has ended the association, so process no more chunks.
    Stop,
}

impl PacketAddresses {
    /// Returns whether both addresses are unicast. RFC 9260 section 8.4.
    pub(crate) fn is_unicast(self) -> bool {
        is_unicast(self.source) && is_unicast(self.destination)
    }
}

impl Endpoint {
    pub(crate) fn on_packet(&mut self, now: Time, packet: Packet) {
        let Packet { source, destination, transport: Transport::Sctp(mut sctp), ecn, corrupted: false } =
            packet
        else {
            return;
        };
        if sctp.zero_checksum && !self.config.zero_checksum {
            // RFC 9653 section 5.3: a checksum of zero is wrong unless we have accepted it.
            return;
        }
        let known_port = self.peer_port == 0 || self.peer_port == sctp.source_port;
        if sctp.destination_port != self.local_port || !known_port {
            return;
        }
        let tag = sctp.verification_tag;
        let origin = PacketAddresses { source, destination, port: sctp.source_port, verification_tag: tag };
        if self.paths.is_deleted(source) {
            // RFC 5061 section 5.3 F13.
            return self.on_out_of_the_blue(origin, &sctp);
        }
        let admitted = match sctp.chunks.first() {
            Some(Chunk::Init(init)) if tag == 0 && sctp.chunks.len() == 1 => {
                self.on_init(now, origin, init);
                false
            }
            Some(Chunk::CookieEcho(cookie)) => self.on_cookie_echo(now, origin, cookie),
            _ if self.is_out_of_the_blue(&sctp) => {
                self.on_out_of_the_blue(origin, &sctp);
                false
            }
            first => first.is_some_and(|first| self.is_tag_valid(tag, first)),
        };
        if admitted {
            self.statistics.packets_received += 1;
            self.on_chunks(now, origin, ecn, &mut sctp);
        }
    }

    /// Returns whether the tag is ours or, for a chunk with the T bit, the peer's; before the INIT ACK arrives,
    /// the peer's tag is unknown. RFC 9260 section 8.5.
    fn is_tag_valid(&self, tag: u32, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true } => {
                tag == self.peer_tag && tag != 0
            }
            _ => tag == self.local_tag,
        }
    }

    fn on_chunks(&mut self, now: Time, origin: PacketAddresses, ecn: Ecn, packet: &mut sctp::Packet) {
        let path = self.paths.index_of(origin.source).unwrap_or(self.paths.active);
        let mut seen = SackRequest::default();
        let had_gap = self.tsn_map.has_gap();
        let (mut vouched, alone) = (false, packet.chunks.len() == 1);
        self.authenticate(packet);
        for chunk in packet.chunks.drain(..) {
            if self.ended {
                return;
            }
            let goes_on = match chunk {
                Chunk::Data(data) => {
                    if !seen.has_data {
                        self.marks.on_data(ecn, data.tsn);
                    }
                    self.on_data(now, path, data, &mut seen)
                }
                Chunk::IData(data) => {
                    if !seen.has_data {
                        self.marks.on_data(ecn, data.tsn);
                    }
                    self.on_i_data(now, path, *data, &mut seen)
                }
                Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_) if self.has_unnegotiated_format(&chunk) => {
                    self.abort_for_kind();
                    false
                }
                Chunk::Ecne(_) | Chunk::Cwr(_) if !self.marks.is_negotiated() => {
                    self.on_foreign_chunk(&chunk)
                }
                Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_) if !self.accepts_forward_tsn => {
                    self.on_foreign_chunk(&chunk)
                }
                Chunk::ForwardTsn(forward) => {
                    self.on_forward_tsn(now, &forward, &mut seen);
                    true
                }
                Chunk::IForwardTsn(forward) => {
                    self.on_i_forward_tsn(now, &forward, &mut seen);
                    true
                }
                Chunk::Unknown { kind, flags, value } => self.on_unknown_chunk(kind, flags, &value),
                Chunk::Auth(_) => {
                    vouched = true;
                    true
                }
                Chunk::Reconfig(_) if !self.reconfig => self.on_foreign_chunk(&chunk),
                Chunk::Reconfig(parameters) => {
                    self.on_reconfig(now, &parameters);
                    true
                }
                Chunk::Asconf(_) | Chunk::AsconfAck(_) => self.on_address_chunk(now, origin, chunk, vouched),
                chunk => {
                    self.on_control_chunk(now, origin, path, alone, chunk);
                    true
                }
            };
            if !goes_on {
                break;
            }
        }
        if self.peer_reconfig_requests.is_deferring() {
            self.finish_deferred_reset(now, &mut seen);
        }
        if !self.ended {
            seen.gap_closed = had_gap && !self.tsn_map.has_gap();
            self.acknowledge_packet(now, seen);
        }
    }

    /// Removes an AUTH chunk with an invalid HMAC, and everything after it. RFC 4895 section 6.3. If
    /// authentication is not in use, AUTH is an unknown chunk, and its type also requires to drop what follows
    /// (RFC 9260 section 5).
    fn authenticate(&mut self, packet: &mut sctp::Packet) {
        let auth = packet.chunks.iter().position(|chunk| matches!(chunk, Chunk::Auth(_)));
        let Some(auth) = auth else { return };
        let verdict = self.authentication.as_ref().map(|own| own.verify(&packet.chunks[auth..]));
        if let Some(Err(cause)) = &verdict {
            self.control.push_back((None, Chunk::Error(vec![cause.clone()])));
        }
        if verdict != Some(Ok(true)) {
            packet.chunks.truncate(auth);
        }
    }

    /// Processes ASCONF and ASCONF-ACK; returns false if the rest of the packet must be dropped.
    fn on_address_chunk(&mut self, now: Time, origin: PacketAddresses, chunk: Chunk, vouched: bool) -> bool {
        match chunk {
            _ if !self.addip => return self.on_foreign_chunk(&chunk),
            // RFC 5061 section 5.2 D5: without a valid AUTH the chunk is dropped silently, with the rest of the
            // packet.
            _ if !vouched => return false,
            Chunk::Asconf(asconf) => self.on_asconf(now, origin, &asconf),
            Chunk::AsconfAck(ack) => self.on_asconf_ack(now, &ack),
            _ => unreachable!("{chunk:?} is about no address"),
        }
        true
    }

    fn on_control_chunk(
        &mut self,
        now: Time,
        origin: PacketAddresses,
        path: usize,
        alone: bool,
        chunk: Chunk,
    ) {
        match chunk {
            Chunk::Sack(sack) => self.on_sack(now, &sack, path),
            // Section 6.10: these chunks are invalid if they are bundled with other chunks.
            Chunk::InitAck(_) | Chunk::ShutdownComplete { .. } if !alone => self.on_bundled(&chunk),
            Chunk::InitAck(init) => self.on_init_ack(now, origin, &init),
            Chunk::CookieAck => self.on_cookie_ack(now, path),
            Chunk::Heartbeat(info) => self.on_heartbeat(path, info),
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(now, &info),
            // RFC 5061 section 5.3.1: the peer considered a packet from a deleted address out of the blue.
            Chunk::Abort { .. } if self.own_addresses.is_lost(origin.destination) => {}
            Chunk::Abort { .. } | Chunk::ShutdownComplete { .. }
                if !self.is_tag_valid(origin.verification_tag, &chunk) => {}
            Chunk::Abort { reflected, .. } => self.on_abort(reflected),
            Chunk::Error(causes) => self.on_error(now, &causes),
            Chunk::Shutdown { cumulative_tsn } => self.on_shutdown(now, cumulative_tsn, path),
            Chunk::ShutdownAck => self.on_shutdown_ack(path),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            Chunk::Ecne(tsn) => self.on_ecne(now, tsn, path),
            Chunk::Cwr(tsn) => self.marks.on_cwr(tsn),
            // COOKIE ECHO was handled as the first chunk; an INIT with a verification tag is invalid.
            Chunk::CookieEcho(_) | Chunk::Init(_) => {}
            Chunk::Data(_)
            | Chunk::IData(_)
            | Chunk::ForwardTsn(_)
            | Chunk::IForwardTsn(_)
            | Chunk::Auth(_)
            | Chunk::Asconf(_)
            | Chunk::AsconfAck(_)
            | Chunk::Reconfig(_)
            | Chunk::Unknown { .. } => {
                unreachable!("{chunk:?} has a handler of its own")
            }
        }
    }

    /// Handles a chunk that arrived bundled with others, although it must not be (`net/sctp/sm_statefuns.c`
    /// sctp_sf_do_5_1C_ack, sctp_sf_do_4_C).
    fn on_bundled(&mut self, chunk: &Chunk) {
        let awaited = match chunk {
            Chunk::InitAck(_) => State::CookieWait,
            _ => State::ShutdownAckSent,
        };
        if self.config.bundled_handshake_aborts && self.state == awaited {
            let violation =
                Cause::ProtocolViolation(Bytes::from_static(b"a chunk that has to be alone is not"));
            self.abort(violation, Failure::Violation(Violation::Bundled));
        }
    }

    /// Processes an ABORT. In SHUTDOWN-ACK-SENT a reflected tag means that the peer has received our SHUTDOWN ACK.
    /// RFC 9260 section 9.1.
    fn on_abort(&mut self, reflected: bool) {
        self.end(match self.state {
            State::ShutdownAckSent if reflected => Event::Closed,
            State::CookieWait | State::CookieEchoed => Event::Failed { reason: Failure::Refused },
            _ => Event::Failed { reason: Failure::AbortedByPeer },
        });
    }

    /// Handles a chunk of an extension that was not negotiated, in the same way as a chunk of an unknown type.
    fn on_foreign_chunk(&mut self, chunk: &Chunk) -> bool {
        let mut whole = Vec::new();
        chunk.emit(&mut whole);
        self.on_unknown_chunk(chunk.kind(), 0, &Bytes::from(whole).slice(Chunk::HEADER_LENGTH..))
    }

    /// Handles an unknown chunk: the top two bits of its type determine whether to process the chunks that follow,
    /// and whether to report the chunk. RFC 9260 section 3.2.
    fn on_unknown_chunk(&mut self, kind: u8, flags: u8, value: &Bytes) -> bool {
        if kind & 0x40 != 0 && self.peer_tag != 0 {
            let length = (Chunk::HEADER_LENGTH + value.len()) as u16;
            let mut whole = vec![kind, flags, (length >> 8) as u8, length as u8];
            whole.extend_from_slice(value);
            // If the chunk filled its packet, the end of the chunk does not fit into the report.
            whole.truncate(self.max_chunk_size() - 2 * Chunk::HEADER_LENGTH);
            self.control.push_back((None, Chunk::Error(vec![Cause::UnrecognizedChunk(whole.into())])));
        }
        kind & 0x80 != 0
    }

    /// Returns whether a chunk belongs to the format of user data (DATA or I-DATA) that was not negotiated. RFC
    /// 8260 sections 2.2.3 and 2.3.1.
    fn has_unnegotiated_format(&self, chunk: &Chunk) -> bool {
        let interleaved = matches!(chunk, Chunk::IData(_) | Chunk::IForwardTsn(_));
        interleaved != self.interleaving && self.state.receives_data()
    }

    fn abort_for_kind(&mut self) {
        let (text, violation): (&'static [u8], _) = if self.interleaving {
            (b"I-DATA was agreed upon", Violation::Data)
        } else {
            (b"I-DATA was not agreed upon", Violation::InterleavedData)
        };
        self.abort(Cause::ProtocolViolation(Bytes::from_static(text)), Failure::Violation(violation));
    }

    /// Processes DATA; returns false if the rest of the packet must be dropped. RFC 9260 section 6.2.
    fn on_data(&mut self, now: Time, path: usize, data: Data, seen: &mut SackRequest) -> bool {
        if self.interleaving && self.state.receives_data() {
            self.abort_for_kind();
            return false;
        }
        let arrives = ArrivingData::new(data.tsn, data.flags, data.stream, data.payload.len());
        match self.admit_data(now, path, arrives, seen) {
            Admission::Deliver if self.peer_reconfig_requests.defers(data.stream, data.tsn) => {
                self.peer_reconfig_requests.hold(Chunk::Data(data));
            }
            Admission::Deliver => self.deliver(now, data),
            Admission::Ignore => {}
            Admission::Stop => return false,
        }
        true
    }

    /// Processes I-DATA; returns false if the rest of the packet must be dropped. RFC 8260 section 2.2.3.
    fn on_i_data(&mut self, now: Time, path: usize, mut data: IData, seen: &mut SackRequest) -> bool {
        if self.config.second_fsn_is_zero && !data.flags.contains(DataFlags::BEGIN) {
            data.fsn = data.fsn.next();
        }
        if !self.interleaving && self.state.receives_data() {
            self.abort_for_kind();
            return false;
        }
        let arrives = ArrivingData::new(data.tsn, data.flags, data.stream, data.payload.len());
        match self.admit_data(now, path, arrives, seen) {
            Admission::Deliver if self.peer_reconfig_requests.defers(data.stream, data.tsn) => {
                self.peer_reconfig_requests.hold(Chunk::IData(Box::new(data)));
            }
            Admission::Deliver => self.deliver_interleaved(now, data),
            Admission::Ignore => {}
            Admission::Stop => return false,
        }
        true
    }

    /// Records a chunk of user data, and decides how to handle it. RFC 9260 section 6.2.
    #[inline]
    fn admit_data(
        &mut self,
        now: Time,
        path: usize,
        arrives: ArrivingData,
        seen: &mut SackRequest,
    ) -> Admission {
        let ArrivingData { tsn, flags, stream, length } = arrives;
        if !self.state.receives_data() {
            return Admission::Ignore;
        }
        if length == 0 {
            // Section 6.2: a DATA chunk without user data ends the association.
            self.abort(Cause::NoUserData(tsn), Failure::Violation(Violation::NoUserData));
            return Admission::Stop;
        }
        seen.has_data = true;
        if self.paths.list[path].may_be_answered() {
            self.acknowledgements.note_data(path);
        }
        seen.at_once &= !self.config.sack_as_last_chunk_asks;
        match self.tsn_map.classify(tsn) {
            Arrival::TooFar => return Admission::Ignore,
            Arrival::Duplicate => {
                self.statistics.duplicates_received += 1;
                self.tsn_map.note_duplicate(tsn);
                seen.at_once = true;
                return Admission::Ignore;
            }
            Arrival::New => {}
        }
        if length >= self.receive_window() {
            // Section 6.9: whether this chunk is accepted or not, there is no room for the next one.
            self.start_partial_delivery(now);
        }
        let is_next = tsn == self.tsn_map.cumulative().next();
        // The chunk that fills the first gap is accepted even without room, because the chunks after the gap wait for it;
        // not while received data wait for the application (`net/sctp/ulpqueue.c` sctp_ulpq_renege).
        let makes_room = is_next && self.tsn_map.has_gap() && self.reader.unread() == 0;
        if !makes_room && !self.has_room_for(length) {
            seen.at_once = true;
            return Admission::Ignore;
        }
        let in_order = is_next && !self.tsn_map.has_gap();
        self.tsn_map.insert(tsn);
        if in_order {
            self.acknowledgements.note_in_order(path);
        }
        seen.at_once |= flags.contains(DataFlags::IMMEDIATE);
        if self.streams_in.has_stream(stream) {
            return Admission::Deliver;
        }
        // Section 6.5: a chunk with an invalid stream identifier is acknowledged, reported and dropped.
        let cause = Cause::InvalidStreamIdentifier(stream);
        let path = Some(path).filter(|path| self.paths.list[*path].may_be_answered());
        self.control.push_back((path, Chunk::Error(vec![cause])));
        Admission::Ignore
    }

    fn start_partial_delivery(&mut self, now: Time) {
        let Self { interleaved, reassembly, streams_in, reader, .. } = self;
        interleaved
            .start_partial_delivery(&mut |delivery| deliver_interleaved_message(reader, now, delivery));
        reassembly.start_partial_delivery(self.tsn_map.cumulative(), |delivery| {
            deliver_in_order(streams_in, reader, now, delivery);
        });
    }

    /// Returns whether the receive buffer has room for a chunk of `length` octets. Slightly more than the
    /// advertised window is accepted, because the peer's last chunk may exceed the window. RFC 9260 section 6.2.
    fn has_room_for(&self, length: usize) -> bool {
        let room = self.receive_window();
        room > 0 && length <= room + self.max_fragment_size()
    }

    pub(crate) fn deliver_interleaved(&mut self, now: Time, data: IData) {
        let Self { interleaved, reader, .. } = self;
        interleaved.push(now, data, &mut |delivery| deliver_interleaved_message(reader, now, delivery));
    }

    pub(crate) fn deliver(&mut self, now: Time, data: Data) {
        let Self { reassembly, streams_in, reader, .. } = self;
        reassembly.push(now, data, |delivery| deliver_in_order(streams_in, reader, now, delivery));
    }
}

/// Passes a message, or a part of one, that arrived as I-DATA to the application.
pub(crate) fn deliver_interleaved_message(
    reader: &mut ReceivingApplication,
    now: Time,
    delivery: interleaved::Delivery,
) {
    match delivery {
        interleaved::Delivery::Whole(message, in_part) => reader.receive_rest(now, message, in_part),
        interleaved::Delivery::Part(octets) => reader.receive_part(now, octets),
    }
}

/// Passes a message, or a part of one, to the application in the order of its stream. A partially delivered
/// message need not wait for earlier ones.
pub(crate) fn deliver_in_order(
    streams_in: &mut InboundStreams,
    reader: &mut ReceivingApplication,
    now: Time,
    delivery: reassembly::Delivery,
) {
    match delivery {
        reassembly::Delivery::Whole(ssn, message, mut in_part) => streams_in.push(ssn, message, |message| {
            reader.receive_rest(now, message, std::mem::take(&mut in_part));
        }),
        reassembly::Delivery::Part(octets) => reader.receive_part(now, octets),
    }
}
