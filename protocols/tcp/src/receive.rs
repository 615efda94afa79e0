//! Processes segments. RFC 9293 section 3.10.7, with the protection of RFC 5961 against blind attacks.

use hol_base::{Duration, Time};
use hol_transport::{DeliveryTimes, Event, Failure, ReceivedData};
use hol_wire::tcp::{Flags, SackBlock, Segment};
use hol_wire::{Address, Ecn};

use crate::delayed_ack::SegmentData;
use crate::reassembly::Piece;
use crate::{Endpoint, State};

/// Minimum interval between answers to unacceptable segments without data. It prevents two endpoints from
/// answering each other forever.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);

impl Endpoint {
    /// Processes a segment addressed to this endpoint.
    pub(crate) fn segment_arrives(&mut self, now: Time, source: Address, ecn: Ecn, segment: &mut Segment) {
        self.statistics.packets_received += 1;
        self.end_turn();
        match self.machine.state() {
            State::Closed => self.reject(source, segment),
            State::Listen => self.segment_arrives_in_listen(now, source, ecn, segment),
            _ if self.remote != Some((source, segment.source_port)) => self.reject(source, segment),
            State::SynSent => self.segment_arrives_in_syn_sent(now, source, ecn, segment),
            _ => self.synchronized_arrives(now, source, ecn, segment),
        }
    }

    /// Processes a segment in any state but CLOSED, LISTEN and SYN-SENT. RFC 9293 section 3.10.7.4.
    fn synchronized_arrives(&mut self, now: Time, source: Address, ecn: Ecn, segment: &mut Segment) {
        let flags = segment.flags;
        let has = |flag| flags.contains(flag);
        self.timestamps.on_segment(segment.options.timestamps);
        if !self.is_acceptable(segment) {
            let is_dropped = !self.config.answer_old_ack && self.is_overtaken_ack(segment);
            if !has(Flags::RST) && !is_dropped {
                self.answer_unacceptable(now, segment);
            }
            return;
        }
        if has(Flags::RST) {
            return self.reset_arrives(now, segment);
        }
        let known_syn = self.machine.state() == State::SynReceived && segment.seq.next() == self.rcv.nxt();
        // In a simultaneous open the peer retransmits its SYN, with the ACK of ours. RFC 9293 section 3.5, figure 7.
        if has(Flags::SYN) && !(known_syn && has(Flags::ACK)) {
            if has(Flags::ACK) {
                self.marks.on_retransmitted_syn_ack(segment, ecn);
            }
            return self.syn_arrives(now, known_syn, flags, ecn);
        }
        if !has(Flags::ACK) {
            return;
        }
        let (is_only_data, is_pure_ack) = (self.is_only_data(segment), self.is_pure_ack(segment));
        let opening = self.machine.state() == State::SynReceived;
        if opening {
            let expected = segment.ack.after(self.snd.una()) && segment.ack.at_or_before(self.snd.nxt());
            if !expected {
                return self.reject(source, segment);
            }
        }
        if self.marks.on_packet(ecn, segment.payload.len() as u32) {
            self.acks.make_immediate_if(true);
        }
        if !self.acknowledgment_arrives(now, segment) {
            return;
        }
        if !opening {
            self.measure_round_trip(now, segment);
        }
        if has(Flags::SYN) {
            self.acks.schedule();
            self.acks.make_immediate_if(true);
        } else {
            self.text_arrives(now, ecn, segment);
        }
        if !is_only_data {
            self.push_pending(now);
            self.check_space();
        }
        if !is_pure_ack {
            self.acknowledge(now);
        }
    }

    /// Processes a SYN on an existing connection. RFC 9293 section 3.10.7.4, fourth.
    fn syn_arrives(&mut self, now: Time, known: bool, flags: Flags, ecn: Ecn) {
        if known {
            self.answer_retransmitted_syn(now, flags, ecn);
        } else if self.is_embryonic() {
            self.listen_again();
        } else {
            // RFC 5961 section 4.2: a SYN never resets a connection.
            self.send_ack(now);
        }
    }

    /// Processes the ACK field of a segment; returns false if the segment must be dropped.
    fn acknowledgment_arrives(&mut self, now: Time, segment: &Segment) -> bool {
        if !self.is_acknowledgment_acceptable(segment) {
            if self.config.answer_unsent_ack || segment.ack.at_or_before(self.snd.nxt()) {
                self.send_ack(now);
            }
            return false;
        }
        let echoes = segment.options.timestamps.filter(|_| segment.seq.at_or_before(self.rcv.acknowledged()));
        if let Some(stamps) = echoes {
            self.timestamps.update_ts_recent(stamps);
        }
        let opening = self.machine.state() == State::SynReceived;
        if opening {
            self.snd.accept_window_of_handshake_ack(segment);
        }
        self.keepalive.on_segment(now);
        self.process_ack(now, segment);
        if opening {
            let accurate = self.marks.accurate();
            accurate.on_first_option(segment.options.accurate_ecn.as_deref());
            accurate.on_handshake_acknowledged(segment.flags, !segment.payload.is_empty());
            self.establish(now);
            self.close_if_requested();
        }
        self.on_fin_acknowledged(now);
        self.machine.state() != State::Closed
    }

    /// Returns whether the ACK field acknowledges only data that were sent, and is at most a window old. Otherwise
    /// the segment may be forged. RFC 5961 section 5.2.
    fn is_acknowledgment_acceptable(&self, segment: &Segment) -> bool {
        let age = self.snd.una() - self.snd.max_window().max(1);
        segment.ack.at_or_before(self.snd.nxt()) && segment.ack.at_or_after(age)
    }

    /// Returns whether the segment is in the receive window and, by its timestamp, not older than earlier ones.
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let end = segment.seq + segment.sequence_length();
        let behind = end.before(self.rcv.acknowledged());
        let beyond = segment.seq.after(self.rcv.window_end());
        if behind || beyond {
            return false;
        }
        // RFC 7323 section 5.3. An overtaken bare ACK does no harm.
        let bare = segment.sequence_length() == 0 && segment.seq == self.rcv.nxt();
        let old = segment.options.timestamps.is_some_and(|stamps| self.timestamps.is_old(&stamps));
        !old || bare || segment.flags.contains(Flags::RST)
    }

    /// Returns whether the segment is a pure acknowledgment that a later segment has overtaken. Linux 7.3:
    /// tcp_disordered_ack_check.
    fn is_overtaken_ack(&self, segment: &Segment) -> bool {
        segment.sequence_length() == 0
            && segment.flags.contains(Flags::ACK)
            && segment.seq.before(self.rcv.nxt())
            && segment.options.timestamps.is_some_and(|stamps| self.timestamps.is_old(&stamps))
    }

    /// Answers an unacceptable segment with an acknowledgment. If the segment has no data, SYN or FIN, it is
    /// answered only if none was answered recently. RFC 9293 section 3.10.7.4, first.
    fn answer_unacceptable(&mut self, now: Time, segment: &Segment) {
        let end = segment.seq + segment.sequence_length();
        if segment.sequence_length() > 0 && segment.seq.before(self.rcv.nxt()) {
            let right = if end.after(self.rcv.nxt()) { self.rcv.nxt() } else { end };
            if !segment.payload.is_empty() {
                self.statistics.duplicates_received += 1;
            }
            self.acks.on_anomaly(self.rcv.offered());
            self.note_duplicate(SackBlock { left: segment.seq, right });
            self.on_fin_retransmitted(now, segment);
        } else if segment.sequence_length() == 0 {
            let recent = |last| self.timers.ticks_between(last, now) < CHALLENGE_INTERVAL;
            if self.last_challenge.is_some_and(recent) {
                return;
            }
            self.last_challenge = Some(now);
        }
        self.send_ack(now);
    }

    /// Processes a reset, which is valid only if its sequence number is exactly RCV.NXT. RFC 5961 section 3.2.
    fn reset_arrives(&mut self, now: Time, segment: &Segment) {
        if segment.seq != self.rcv.nxt() {
            return self.send_ack(now);
        }
        match self.machine.state() {
            State::TimeWait => self.machine.end(),
            State::SynReceived if self.is_embryonic() => self.listen_again(),
            State::SynReceived => self.end(Event::Failed { reason: Failure::Refused }),
            _ => self.end(Event::Failed { reason: Failure::Reset }),
        }
    }

    /// Processes the segment's data and FIN. RFC 9293 section 3.10.7.4, seventh and eighth.
    fn text_arrives(&mut self, now: Time, ecn: Ecn, segment: &mut Segment) {
        if segment.sequence_length() == 0 {
            return;
        }
        let text = SegmentData::of(segment);
        let piece = Piece {
            seq: segment.seq,
            payload: std::mem::take(&mut segment.payload),
            fin: segment.flags.contains(Flags::FIN),
            delivery_times: DeliveryTimes::new(segment.stamp, now),
            packet_octets: text.octets(),
            memory: self.buffer.memory_of(text.octets(), segment.stamp.cut),
            tailroom: self.buffer.tailroom_after(text.octets(), segment.stamp.cut),
        };
        let (memory, cut) = (piece.memory, segment.stamp.cut);
        let (start, end, nxt) = (piece.seq, piece.end(), self.rcv.nxt());
        self.reassembly.forget_duplicate();
        if end.at_or_before(nxt) {
            self.statistics.duplicates_received += u64::from(!piece.payload.is_empty());
            self.note_duplicate(SackBlock { left: start, right: end });
            self.on_fin_retransmitted(now, segment);
            return self.answer_at_once();
        }
        if !self.machine.state().is_receiving() {
            // There are no data after the peer's FIN.
            return self.answer_at_once();
        }
        if start.before(nxt) {
            self.note_duplicate(SackBlock { left: start, right: nxt });
        }
        // No data are acceptable while the window is closed, wherever the segment begins. RFC 9293 section 3.10.7.4, first.
        if self.rcv.window() == 0 || start.at_or_after(self.rcv.window_end()) {
            return self.answer_at_once();
        }
        if start.after(nxt) {
            self.acknowledge_before_marks(now, ecn, nxt);
            self.on_data_ecn(ecn);
            return self.queue_out_of_order(text, piece, cut);
        }
        let waiting = !self.reassembly.is_empty();
        self.make_room();
        self.deliver(now, if start == nxt { piece } else { piece.slice(nxt, end) });
        self.on_data_received(now, text, memory);
        if !text.is_empty() {
            self.acknowledge_before_marks(now, ecn, nxt);
            self.on_data_ecn(ecn);
        }
        if waiting {
            if let Some(duplicate) = self.reassembly.unreported_below(self.rcv.nxt()) {
                self.note_duplicate(duplicate);
            }
            while let Some(next) = self.reassembly.pop(self.rcv.nxt()) {
                self.deliver(now, next);
            }
            self.reassembly.forget(self.rcv.nxt());
            // RFC 5681 section 4.2: a segment that fills a gap is acknowledged at once.
            self.acks.make_immediate_if(self.reassembly.is_empty());
        }
    }

    /// Queues data that arrived out of order.
    fn queue_out_of_order(&mut self, text: SegmentData, mut piece: Piece, cut: bool) {
        self.make_room();
        if !text.is_empty() {
            self.measure_segment(text, piece.memory);
        }
        self.acks.schedule();
        // Without SACK, an acknowledgment with another window is no duplicate, so the window stays. Linux: tcp_data_queue_ofo.
        if self.negotiated.uses_sack() {
            self.earn_window(text.octets(), piece.memory);
        }
        piece.memory = self.buffer.out_of_order_memory_of(text.octets(), cut);
        if let Some(duplicate) = self.reassembly.insert(&piece) {
            self.statistics.duplicates_received += 1;
            self.note_duplicate(duplicate);
        }
        self.enlarge_buffer_for_out_of_order_data();
    }

    /// If the receive buffer's memory exceeds its limit, enlarges the buffer or, if that is not possible, reduces
    /// the window.
    fn make_room(&mut self) {
        if self.buffer.handle_excess(self.reassembly.memory(), self.advertised_mss()) {
            self.acks.slow_down();
        }
    }

    /// Delivers the next piece of the stream to the application.
    fn deliver(&mut self, now: Time, piece: Piece) {
        self.rcv.advance(piece.end());
        if !piece.payload.is_empty() {
            self.buffer.queue(&piece);
            let Piece { payload, delivery_times, .. } = piece;
            let received = ReceivedData { stream: 0, unordered: false, ppid: 0, payload, delivery_times };
            self.reader.receive(now, received);
        }
        if piece.fin {
            self.on_fin_received(now);
        }
    }

    /// Stores a duplicate range, which the next acknowledgment reports (D-SACK). RFC 2883.
    fn note_duplicate(&mut self, block: SackBlock) {
        self.marks.on_duplicate(block.left);
        if self.config.dsack && self.negotiated.uses_sack() {
            self.reassembly.note_duplicate(block);
        }
    }

    fn answer_at_once(&mut self) {
        self.acks.on_anomaly(self.rcv.offered());
        self.acks.schedule();
        self.acks.make_immediate_if(self.config.quickack_segments == 0);
    }
}
