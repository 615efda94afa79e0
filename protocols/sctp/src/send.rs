//! Sending: control chunks, then retransmissions, then new data. RFC 9260 sections 6.1 and 6.10.

use hol_base::Time;
use hol_transport::PathStatus;
use hol_wire::sctp::{self, Chunk, DataFlags};
use smallvec::SmallVec;

use crate::authentication::Authentication;
use crate::flight::{ChunkState, FastRetransmit, SentChunk, chunk_of};
use crate::state::State;
use crate::{Endpoint, Scheduler};

/// Maximum length in octets of a train of packets (Linux: GSO_LEGACY_MAX_SIZE).
const MAX_TRAIN: u64 = 65536;

/// Maximum number of outstanding chunks beyond the cumulative TSN. Gap ack blocks and stream sequence numbers
/// cannot identify more. RFC 9260 sections 3.3.4 and 6.1.
const MAX_OUTSTANDING: usize = u16::MAX as usize;

/// A packet under construction or, with segmentation offload, a train of packets.
#[derive(Debug)]
pub(crate) struct Bundle {
    path: usize,
    chunks: SmallVec<[Chunk; 2]>,
    /// Length in octets of the headers of one IP packet and of the chunks so far.
    length: usize,
    headers: usize,
    has_data: bool,
    has_sack: bool,
    has_cookie_echo: bool,
    has_auth: bool,
    /// Whether the transmission is a tail loss probe, which consists of one packet.
    pub(crate) is_probe: bool,
    /// Whether to send the packet even if an ECNE chunk is its only chunk.
    may_be_echo_alone: bool,
}

impl Bundle {
    /// Creates an empty packet; `headers` is the length in octets of the headers before its chunks.
    pub(crate) fn new(path: usize, headers: usize) -> Self {
        Self {
            path,
            chunks: SmallVec::new(),
            length: headers,
            headers,
            has_data: false,
            has_sack: false,
            has_cookie_echo: false,
            has_auth: false,
            is_probe: false,
            may_be_echo_alone: false,
        }
    }

    /// Starts another packet on the same path.
    fn begin(&mut self) {
        self.chunks.clear();
        self.length = self.headers;
        (self.has_data, self.has_sack, self.has_cookie_echo, self.has_auth) = (false, false, false, false);
    }

    fn push(&mut self, chunk: Chunk) {
        self.length += chunk.length();
        match chunk {
            Chunk::Data(_) | Chunk::IData(_) => self.has_data = true,
            Chunk::Sack(_) => self.has_sack = true,
            Chunk::CookieEcho(_) => self.has_cookie_echo = true,
            Chunk::Auth(_) => self.has_auth = true,
            _ => {}
        }
        self.chunks.push(chunk);
    }
}

/// Returns whether a packet with this chunk must have a checksum. RFC 9653 section 5.2, restrictions 2 and 3.
const fn needs_checksum(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::CookieEcho(_) | Chunk::Asconf(_))
}

impl Endpoint {
    /// Sends all chunks that may be sent now. After a timeout, retransmissions fill only one packet. RFC 9260
    /// section 6.3.3 E3.
    pub(crate) fn flush(&mut self, now: Time, timeout: bool) {
        self.send_due_packets(now, timeout);
        if !self.own_reconfig_requests.is_idle() && self.continue_reconfiguration(now) {
            self.send_due_packets(now, timeout);
        }
        if self.shutdown_if_delivered(now) {
            self.send_due_packets(now, timeout);
        }
    }

    fn send_due_packets(&mut self, now: Time, timeout: bool) {
        let nothing_to_send =
            self.control.is_empty() && self.streams_out.is_empty() && self.flight.lost() == 0;
        if nothing_to_send || self.paths.list.is_empty() {
            return;
        }
        let mut bundle = Bundle::new(self.paths.active, self.headers);
        self.echo_mark(&mut bundle);
        self.send_control(now, &mut bundle);
        let echoes = self.state == State::CookieEchoed && bundle.has_cookie_echo;
        if (self.state.sends_data() || echoes) && self.may_send_data() {
            // As in Linux, where sctp_packet_config adds the ECNE before it is known whether the window allows data.
            bundle.may_be_echo_alone = self.flight.lost() > 0 || !self.streams_out.is_empty();
            let may_send_new =
                self.flight.lost() == 0 || self.send_retransmissions(now, &mut bundle, timeout);
            if may_send_new {
                self.send_new(now, &mut bundle);
            }
        }
        self.transmit(&mut bundle);
    }

    /// Returns whether the host has a source address, and the peer a destination address, for data. RFC 5061
    /// section 5.3 F1.
    pub(crate) fn may_send_data(&self) -> bool {
        !self.local.is_empty() && self.paths.list[self.paths.active].may_carry_data()
    }

    /// Returns whether a control chunk may be sent on a path now. By RFC 5061 section 5.3 F1, from an address that
    /// the peer has not accepted, only ASCONF may be sent; to an unconfirmed address, only ASCONF-ACK and chunks
    /// that confirm the address.
    fn may_take(&self, bundle: &Bundle, path: usize, chunk: &Chunk) -> bool {
        match chunk {
            // RFC 9260 section 3.2.2: an ERROR is bundled with the COOKIE ECHO, or waits for the COOKIE ACK.
            Chunk::Error(_) if self.state == State::CookieEchoed => {
                bundle.has_cookie_echo && bundle.length + chunk.length() <= self.config.mtu.0 as usize
            }
            Chunk::Asconf(_) => true,
            Chunk::AsconfAck(_) | Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) => !self.local.is_empty(),
            _ => !self.local.is_empty() && self.paths.list[path].may_carry_data(),
        }
    }

    /// Returns whether a chunk for `path` is really sent on it. If not, it is sent on the active path, because
    /// `path` may have failed. RFC 9260 section 6.4.
    fn may_reply_to(&self, path: usize, chunk: &Chunk) -> bool {
        let tests_path = matches!(chunk, Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) | Chunk::AsconfAck(_));
        tests_path
            || !self.config.replies_avoid_failed_path
            || self.paths.list[path].status == PathStatus::Active
    }

    fn send_control(&mut self, now: Time, bundle: &mut Bundle) {
        // Chunks that must not be sent now move behind the others.
        for _ in 0..self.control.len() {
            let Some((path, chunk)) = self.control.pop_front() else { return };
            let path = path.filter(|path| self.may_reply_to(*path, &chunk)).unwrap_or(self.paths.active);
            if !self.may_take(bundle, path, &chunk) {
                self.control.push_back((None, chunk));
                continue;
            }
            self.switch_path(bundle, path);
            let auth = self.auth_for(&chunk);
            let auth_length = auth.as_ref().map_or(0, Chunk::length);
            if bundle.length + auth_length + chunk.length() > self.config.mtu.0 as usize {
                self.transmit(bundle);
            }
            if !bundle.has_auth
                && let Some(auth) = auth
            {
                bundle.push(auth);
            }
            if matches!(chunk, Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_)) {
                // RFC 3758 section 3.5 C5.
                self.start_t3(now, bundle.path);
            }
            bundle.push(chunk);
        }
    }

    /// Returns the AUTH chunk that must precede this chunk; `None` if it needs none. RFC 5061 sections 4.1.1 and
    /// 4.1.2.
    fn auth_for(&self, chunk: &Chunk) -> Option<Chunk> {
        let needs = matches!(chunk, Chunk::Asconf(_) | Chunk::AsconfAck(_));
        self.authentication.as_ref().filter(|_| needs).map(Authentication::empty_auth_chunk)
    }

    /// Retransmits lost chunks, the earliest first; returns false if new data must wait. RFC 9260 section 6.1 C.
    fn send_retransmissions(&mut self, now: Time, bundle: &mut Bundle, timeout: bool) -> bool {
        self.switch_path(bundle, self.retransmission_path());
        let fast = std::mem::take(&mut self.fast_retransmit_due);
        // With RACK, retransmissions fill cwnd after the one packet that ignores it.
        let one_packet = timeout || (fast && !self.config.rack);
        // With RACK, chunks that were sent recently are still in flight when T3-rtx expires, and may fill cwnd.
        let mut ignores_cwnd = fast || (timeout && self.config.rack);
        let mut from = 0;
        while let Some(index) = self.flight.next_lost(from) {
            from = index + 1;
            if self.abandon_if_due(now, index) {
                // The next SACK or timeout triggers the FORWARD TSN; one of them must follow. RFC 3758 section 3.5 C5.
                if self.paths.list.iter().all(|path| path.t3_rtx.is_none()) {
                    self.start_t3(now, bundle.path);
                }
                continue;
            }
            let chunk = self.flight.get(index);
            if fast && one_packet && chunk.fast_retransmit == FastRetransmit::Eligible {
                continue;
            }
            let marked = chunk.fast_retransmit == FastRetransmit::Marked;
            let (size, length) = (chunk.size(), self.chunk_length(chunk.data.payload.len()));
            let cwnd = if (marked || timeout) && ignores_cwnd {
                u64::MAX
            } else {
                self.paths.list[bundle.path].cwnd()
            };
            let nagle = !(timeout && self.config.rack) && self.nagle_holds_back_lost(bundle, size as usize);
            if nagle || !self.window_allows(bundle, size, cwnd) {
                if self.config.lost_data_delay_heartbeats {
                    self.note_data_attempted(now, bundle.path);
                }
                break;
            }
            self.bundle_sack(bundle);
            if self.is_full_for(bundle, length) {
                let full = bundle.has_data;
                self.transmit(bundle);
                ignores_cwnd &= !full;
                if full && one_packet {
                    break;
                }
            }
            self.retransmit(now, bundle, index, fast);
        }
        if one_packet && !self.config.rack {
            self.end_fast_retransmit();
        }
        !bundle.has_cookie_echo && self.flight.lost() == 0
    }

    fn nagle_holds_back_lost(&self, bundle: &Bundle, size: usize) -> bool {
        let applies = self.config.nagle_delays_retransmissions && size < self.max_fragment_size();
        applies && self.nagle_holds_back(bundle, self.streams_out.queued() + self.data_header_length() + size)
    }

    /// Ends a fast retransmit. Marked chunks that did not fit into its packet wait until cwnd allows them. RFC
    /// 9260 section 7.2.4 step 5.
    fn end_fast_retransmit(&mut self) {
        let mut from = 0;
        while let Some(index) = self.flight.next_lost(from) {
            let chunk = self.flight.get_mut(index);
            if chunk.fast_retransmit == FastRetransmit::Marked {
                chunk.fast_retransmit = FastRetransmit::Done;
            }
            from = index + 1;
        }
    }

    pub(crate) fn retransmit(&mut self, now: Time, bundle: &mut Bundle, index: usize, fast: bool) {
        let size = self.flight.set_state(index, ChunkState::InFlight);
        let next_tsn = self.flight.next_tsn();
        let chunk = self.flight.get_mut(index);
        chunk.path = bundle.path;
        chunk.transmissions += 1;
        chunk.recover = next_tsn;
        chunk.data.stamp.sent = now;
        if chunk.fast_retransmit == FastRetransmit::Marked {
            let again = self.config.fast_retransmit_again || self.config.rack;
            chunk.fast_retransmit = if again { FastRetransmit::Eligible } else { FastRetransmit::Done };
            self.statistics.fast_retransmissions += 1;
        } else {
            self.statistics.timeout_retransmissions += 1;
        }
        bundle.push(chunk.to_chunk(self.interleaving));
        self.note_data_sent(now, bundle.path, size);
        if fast && index == 0 && self.config.fast_retransmit_restarts_t3 {
            self.restart_t3(now, bundle.path);
        }
    }

    fn send_new(&mut self, now: Time, bundle: &mut Bundle) {
        if self.streams_out.is_empty() {
            return;
        }
        if self.config.cmt {
            return self.send_new_over_all(now, bundle);
        }
        let path = self.paths.active;
        let cwnd = self.burst_limited_cwnd(now, path);
        self.send_new_to(now, bundle, (path, cwnd), usize::MAX);
    }

    /// Sends new data on a path, at most `cwnd` and a number of packets; returns false if nothing more can be sent
    /// now.
    pub(crate) fn send_new_to(
        &mut self,
        now: Time,
        bundle: &mut Bundle,
        (path, cwnd): (usize, u64),
        mut packets: usize,
    ) -> bool {
        self.switch_path(bundle, path);
        while let Some(unsent) = self.streams_out.front() {
            if self.partial_reliability && unsent.begins() && unsent.limit.is_reached(0, now) {
                self.abandon_unsent();
                continue;
            }
            let (size, can_delay) = (unsent.payload.len(), unsent.can_delay);
            let nagle =
                can_delay && !bundle.is_probe && self.nagle_holds_back(bundle, self.streams_out.queued());
            let can_be_named = self.flight.len() < MAX_OUTSTANDING;
            if nagle || !can_be_named || !self.window_allows(bundle, size as u64, cwnd) {
                return false;
            }
            self.bundle_sack(bundle);
            let of_another = bundle.has_data && self.streams_out.wants_another_packet();
            if of_another || self.is_full_for(bundle, self.chunk_length(size)) {
                if bundle.has_cookie_echo {
                    return false;
                }
                self.transmit(bundle);
                packets -= 1;
                if packets == 0 {
                    return true;
                }
                continue;
            }
            self.send_next(now, bundle);
            if bundle.has_cookie_echo {
                // One DATA chunk is bundled with COOKIE ECHO; the rest waits for COOKIE ACK. Section 5.1.
                return false;
            }
        }
        false
    }

    /// Returns the length in octets of a chunk with `size` octets of user data, including padding.
    const fn chunk_length(&self, size: usize) -> usize {
        self.data_header_length() + size.next_multiple_of(4)
    }

    /// Returns the cwnd that applies to new data, after idle decay and Max.Burst. RFC 9260 sections 7.2.1 and 6.1
    /// D.
    pub(crate) fn burst_limited_cwnd(&mut self, now: Time, path: usize) -> u64 {
        self.decay_if_idle(now, path);
        let path = &mut self.paths.list[path];
        if self.config.max_burst_lowers_window {
            path.window.lower_for_burst(path.flight_size, self.config.max_burst);
        }
        path.window.burst_limited(path.flight_size, self.config.max_burst)
    }

    /// Returns whether the peer's receive window (rule A) and `cwnd` (rule B) allow a chunk. RFC 9260 section 6.1.
    fn window_allows(&self, bundle: &Bundle, size: u64, cwnd: u64) -> bool {
        let peer_has_room = size <= self.peer_rwnd || self.flight.outstanding() == 0;
        let own = if self.config.last_chunk_exceeds_window { 1 } else { size };
        peer_has_room && self.paths.list[bundle.path].flight_size.saturating_add(own) <= cwnd
    }

    /// Returns whether Nagle's algorithm delays the packet: only if the `waiting` octets do not fill it. RFC 9260
    /// section 6.1.
    fn nagle_holds_back(&self, bundle: &Bundle, waiting: usize) -> bool {
        let applies = self.config.nagle && self.flight.outstanding() > 0 && self.state == State::Established;
        applies && bundle.chunks.is_empty() && waiting <= self.max_fragment_size() - 4
    }

    /// Assigns a TSN to the next fragment and adds it to the packet.
    fn send_next(&mut self, now: Time, bundle: &mut Bundle) {
        let Some((unsent, ssn, place)) = self.streams_out.pop() else { return };
        let limit = unsent.limit;
        let mut data = unsent.into_chunk(self.flight.next_tsn(), ssn, now);
        let hastens = self.config.immediate_sack_below > 0
            && self.paths.list[bundle.path].cwnd()
                < u64::from(self.config.immediate_sack_below) * self.config.mtu.0;
        if self.state == State::ShutdownPending || hastens {
            data.flags = data.flags | DataFlags::IMMEDIATE;
        }
        bundle.push(chunk_of(&data, place, self.interleaving));
        let path = &mut self.paths.list[bundle.path];
        let measures_rtt = !std::mem::replace(&mut path.rtt_pending, true);
        let size = data.payload.len() as u64;
        self.flight.push(SentChunk::new(data, place, bundle.path, measures_rtt, limit));
        self.statistics.data_sent += 1;
        self.note_data_sent(now, bundle.path, size);
    }

    fn note_data_sent(&mut self, now: Time, path: usize, size: u64) {
        self.peer_rwnd = self.peer_rwnd.saturating_sub(size);
        self.paths.list[path].flight_size += size;
        self.note_data_attempted(now, path);
        if self.config.rack {
            self.schedule_probe(now, path, true);
        }
    }

    /// Postpones the HEARTBEAT of a path that carries data (RFC 9260 section 8.3), and starts its T3-rtx.
    fn note_data_attempted(&mut self, now: Time, path: usize) {
        self.paths.list[path].last_sent = now;
        self.start_t3(now, path);
    }

    /// Bundles a delayed SACK with DATA if the packet takes the path on which the data to acknowledge arrived. RFC
    /// 9260 section 6.1.
    fn bundle_sack(&mut self, bundle: &mut Bundle) {
        let waits = self.config.bundle_sack_with_data && self.timers.sack.is_some();
        let free = !bundle.has_data && !bundle.has_sack && !bundle.has_cookie_echo;
        if waits && free && self.acknowledgements.may_bundle_to(bundle.path) {
            let sack = self.make_sack();
            bundle.push(Chunk::Sack(sack));
        }
    }

    /// Starts T3-rtx of a path unless it already runs. RFC 9260 section 6.3.2, rule R1.
    pub(crate) fn start_t3(&mut self, now: Time, path: usize) {
        if self.paths.list[path].t3_rtx.is_none() {
            self.restart_t3(now, path);
        }
    }

    pub(crate) fn restart_t3(&mut self, now: Time, path: usize) {
        let path = &mut self.paths.list[path];
        path.t3_rtx = Some(self.clock.expiry(now, path.rtt.rto()));
    }

    /// Returns whether the packet has no room for a chunk of `length` octets.
    fn is_full_for(&self, bundle: &Bundle, length: usize) -> bool {
        let mut room = self.config.mtu.0;
        // A train is cut into packets only later, when it is no longer known which stream a packet is for.
        if self.config.segmentation_offload
            && !bundle.is_probe
            && self.config.scheduler != Scheduler::RrPacket
        {
            room = room.max(MAX_TRAIN.min(self.paths.list[bundle.path].cwnd() / 2));
        }
        bundle.length + length > room as usize
    }

    /// Makes sure that the packet takes `path`: if it takes another path, sends it and starts a new one.
    fn switch_path(&mut self, bundle: &mut Bundle, path: usize) {
        if bundle.path != path {
            self.transmit(bundle);
            *bundle = Bundle::new(path, self.headers);
            self.echo_mark(bundle);
        }
    }

    /// Puts an ECNE chunk, which reports an ECN mark, in front of the other chunks. Of several consecutive packets
    /// only the first contains it, as in Linux.
    fn echo_mark(&self, bundle: &mut Bundle) {
        if let Some(echo) = self.marks.echo() {
            bundle.push(echo);
        }
    }

    /// Sends the chunks in as few packets as possible, and starts a new packet on the same path.
    pub(crate) fn transmit(&mut self, bundle: &mut Bundle) {
        self.streams_out.begin_packet();
        if bundle.length <= self.config.mtu.0 as usize {
            return self.transmit_one(bundle);
        }
        let mut packet = Bundle::new(bundle.path, self.headers);
        // An ECNE before full DATA chunks has a packet of its own (sctp_packet_pack).
        packet.may_be_echo_alone = bundle.may_be_echo_alone;
        for chunk in std::mem::take(&mut bundle.chunks) {
            if packet.length + chunk.length() > self.config.mtu.0 as usize {
                self.transmit_one(&mut packet);
            }
            packet.push(chunk);
        }
        self.transmit_one(&mut packet);
        bundle.begin();
    }

    /// Sends chunks that fit into one packet, and starts a new packet.
    fn transmit_one(&mut self, bundle: &mut Bundle) {
        // Without data to send, an ECNE chunk waits for a chunk with which it can be bundled.
        let is_empty = match bundle.chunks[..] {
            [] => true,
            [Chunk::Ecne(_)] => !bundle.may_be_echo_alone,
            _ => false,
        };
        if !is_empty {
            if bundle.has_auth
                && let Some(authentication) = &self.authentication
            {
                authentication.sign(&mut bundle.chunks);
            }
            let path = &self.paths.list[bundle.path];
            let (source, destination) = (path.source, path.address);
            let packet = sctp::Packet {
                source_port: self.local_port,
                destination_port: self.peer_port,
                verification_tag: self.peer_tag,
                zero_checksum: self.zero_checksum && !bundle.chunks.iter().any(needs_checksum),
                chunks: std::mem::take(&mut bundle.chunks),
            };
            self.transmit_packet(source, destination, packet);
        }
        bundle.begin();
    }
}
