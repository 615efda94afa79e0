//! Sending: decides which octets may be sent now, and in which segments. RFC 9293 section 3.10.2 and 3.8.6.2.1.

use bytes::Bytes;
use hol_base::Time;
use hol_wire::tcp::{EcnCounters, Flags, Options, Segment, SeqNum};
use hol_wire::{Ecn, Packet, SendTimes};

use crate::scoreboard::SentSegment;
use crate::timers::TimerPurpose;
use crate::{CongestionUnit, Endpoint, State};

/// Which rules new data may ignore when they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    /// All rules apply to the data.
    Normal,
    /// Data do not wait until they fill a segment (Nagle's algorithm).
    Undelayed,
    /// Like `Undelayed`, but sends at most two blocks or what the rate allows in 1/1024 s, whichever is more; lost
    /// data are retransmitted after them. F-RTO, RFC 5682.
    FRto,
    /// Like `Undelayed`, but sends only the first block.
    FirstBlock,
    /// Sends the first block regardless of the congestion window, as a tail loss probe.
    Probe,
}

/// A segment that may be sent now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NextSegment {
    /// Number of octets of data.
    pub(crate) size: usize,
    /// Whether the segment contains a FIN.
    pub(crate) fin: bool,
    /// Whether the segment is smaller than a full-sized one.
    pub(crate) is_small: bool,
    /// Whether the segment has PSH set.
    pub(crate) pushed: bool,
    /// Whether the segment is cut from a block of several; PSH is then set at the end of the block.
    pub(crate) is_part_of_block: bool,
    /// Whether the segment is the last of its block.
    pub(crate) ends_block: bool,
    /// Memory in octets that the segment uses in the send buffer in addition to its own octets.
    pub(crate) overhead: u32,
}

impl NextSegment {
    fn size_in(self, unit: CongestionUnit) -> u32 {
        match unit {
            CongestionUnit::Packets => 1,
            CongestionUnit::Bytes => self.size as u32 + u32::from(self.fin),
        }
    }
}

impl Endpoint {
    /// Appends data of the application to the byte stream, and sends what may be sent.
    pub(crate) fn write(&mut self, now: Time, octets: Bytes) {
        if octets.is_empty() || !self.machine.state().may_send() || !self.queue.is_open() {
            return;
        }
        self.end_turn_before(now);
        if self.cwnd.is_rate_based() {
            self.check_application_limit();
        }
        self.restart_after_idle(now);
        if !self.uses_segmentation_offload() {
            self.queue.push(octets);
            return self.push_pending(now);
        }
        // Data that continue an earlier write take over its PSH.
        let goes_on = std::mem::take(&mut self.continues_write);
        if !goes_on && self.queue.blocks() > 0 && self.queue.room(self.block_size()) > 0 {
            self.queue.set_pushed(false);
        }
        let is_partial = self.take_is_partial_write();
        self.fill_blocks(now, octets, is_partial);
        self.continues_write = is_partial && self.has_room();
        if self.continues_write {
            return;
        }
        self.mark_pushed();
        // The rest of a partial write waits for room; the accepted part is sent without delay.
        self.push(now, if is_partial { Push::Undelayed } else { Push::Normal });
    }

    /// Appends data to the last block and to new blocks. A full block may be sent before all data of the write are
    /// appended. `is_partial` says whether the write continues later. Linux: tcp_sendmsg_locked.
    fn fill_blocks(&mut self, now: Time, mut octets: Bytes, is_partial: bool) {
        if self.queue.blocks() == 0 && octets.len() <= self.guaranteed_block_size() && !is_partial {
            self.snd.on_written(octets.len() as u32);
            return self.queue.append(octets, true);
        }
        let size = self.block_size();
        while !octets.is_empty() {
            let room = self.queue.room(size);
            let part = octets.split_to(octets.len().min(if room > 0 { room } else { size }));
            self.snd.on_written(part.len() as u32);
            self.queue.append(part, room == 0);
            let is_end = octets.is_empty() && !is_partial;
            if is_end || self.queue.room(size) > 0 {
                continue;
            }
            if self.snd.push_is_forced() {
                self.mark_pushed();
                self.push(now, Push::Undelayed);
            } else if self.queue.blocks() == 1 && self.machine.state().is_sending() {
                self.send_new(now, Push::FirstBlock);
            }
        }
    }

    /// Sets PSH on the last block, because a write ends there. Linux: tcp_mark_push.
    fn mark_pushed(&mut self) {
        self.queue.set_pushed(true);
        self.snd.on_pushed();
    }

    /// Sends the data that may be sent. If only the peer's window prevents sending, starts the persist timer.
    pub(crate) fn push_pending(&mut self, now: Time) {
        self.push(now, Push::Normal);
    }

    fn push(&mut self, now: Time, push: Push) {
        if !self.machine.state().is_sending() || !self.queue.has_unsent() {
            return;
        }
        self.send_new(now, push);
        if self.board.len() == 0 && self.queue.has_unsent() && self.timers.is_disarmed() {
            self.timers.arm(now, TimerPurpose::Persist, self.rtt.rto());
        }
    }

    /// Sends new segments while the windows allow it.
    pub(crate) fn send_new(&mut self, now: Time, push: Push) {
        let (sent, limited) = if self.uses_segmentation_offload() {
            self.send_blocks(now, push)
        } else {
            self.send_segments(now, push)
        };
        if sent > 0 || limited {
            self.validate_window(now, limited);
        }
        if sent > 0 {
            self.episode.count_reduction_sent(sent);
            if push != Push::Probe {
                self.schedule_loss_probe(now, false);
            }
        }
    }

    /// Sends new data segment by segment. Returns the amount sent, in the unit of the congestion window, and
    /// whether this window prevents more.
    fn send_segments(&mut self, now: Time, push: Push) -> (u32, bool) {
        let mut sent = 0;
        let mut train = self.sendable_segments(now, push);
        while train > 0
            && let Some(next) = self.next_segment(push)
        {
            sent += next.size_in(self.config.congestion_unit);
            self.send_segment(now, next);
            if push == Push::Probe {
                break;
            }
            train -= 1;
            if train == 0 {
                train = self.sendable_segments(now, push);
            }
        }
        (sent, self.usable_cwnd() == 0)
    }

    /// Returns the free part of the congestion window, in its unit; 0 if it is less than a segment in octets.
    pub(crate) fn usable_cwnd(&self) -> u32 {
        let left = self.cwnd.cwnd().saturating_sub(self.in_flight());
        if left < self.cwnd.quantum() { 0 } else { left }
    }

    /// Returns the next new segment; `None` if a rule forbids to send it now.
    fn next_segment(&self, push: Push) -> Option<NextSegment> {
        let usable = self.snd.usable_window() as usize;
        let size = self.next_size(usable)?;
        let fin = self.queue.fin_follows(size) && size < usable;
        if size == 0 && !fin {
            return None;
        }
        let pushed = size > 0 && (size < self.negotiated.mss() as usize || size == self.queue.length());
        let is_small = size < self.payload_limit();
        let next = NextSegment {
            size,
            fin,
            is_small,
            pushed,
            is_part_of_block: false,
            ends_block: false,
            overhead: 0,
        };
        let in_flight = self.in_flight();
        let fits = in_flight + next.size_in(self.config.congestion_unit) <= self.cwnd.cwnd();
        if !fits && in_flight > 0 && push != Push::Probe {
            return None;
        }
        let small = is_small && !fin;
        (push != Push::Normal
            || !small
            || !self.small.must_wait(self.config.nagle, self.board.len() > 0, &self.snd))
        .then_some(next)
    }

    /// Returns the size of the next segment. Returns `None` to avoid the silly window syndrome: if the peer's
    /// window does not allow the whole segment, and less than half of the peer's largest window is open. RFC 9293
    /// section 3.8.6.2.1.
    fn next_size(&self, usable: usize) -> Option<usize> {
        let full = self.queue.length().min(self.payload_limit());
        let worthwhile = 2 * usable >= self.snd.max_window() as usize;
        if full <= usable { Some(full) } else { worthwhile.then_some(usable) }
    }

    /// Returns the maximum payload of a segment sent now; options such as SACK blocks reduce it. RFC 9293 section
    /// 3.7.1.
    pub(crate) fn payload_limit(&self) -> usize {
        let (blocks, counters) = self.variable_options_due();
        let padding = if blocks > 0 { 2 } else { 0 };
        let options = if blocks == 0 { 0 } else { 4 + 8 * blocks }
            + counters.map_or(0, |fields| EcnCounters::padded_length(fields, padding));
        // Linux: tcp_bound_to_half_wnd. RFC 9293 section 3.8.6.2.1 permits a segment as large as the window.
        let mss = self.negotiated.mss();
        let max = if self.uses_segmentation_offload() { self.snd.bound_to_half_window(mss) } else { mss };
        max as usize - options
    }

    /// Sends as many octets as the peer's window allows, even if they are few. RFC 9293 section 3.8.6.2.1.
    pub(crate) fn send_partial(&mut self, now: Time) {
        let open = self.snd.usable_window() as usize;
        let first = self.queue.first_block().map_or(self.queue.length(), |block| block.length);
        let full = self.payload_limit();
        let size = first.min(full).min(open);
        if size > 0 {
            let overhead = self.memory.without_data();
            let is_small = size < full;
            let next = NextSegment {
                size,
                fin: false,
                is_small,
                pushed: true,
                is_part_of_block: false,
                ends_block: false,
                overhead,
            };
            let leaves_rest =
                self.uses_segmentation_offload() && (size < first || self.queue.fin_follows(size));
            self.send_segment(now, next);
            if leaves_rest {
                self.queue.set_psh_on_rest();
            }
        }
    }

    /// Sends the next segment.
    pub(crate) fn send_segment(&mut self, now: Time, next: NextSegment) {
        let NextSegment { size, fin, is_small, pushed, is_part_of_block: cut, ends_block, overhead } = next;
        let payload = self.queue.take(size, fin);
        let mut flags = Flags::ACK;
        if pushed {
            flags = flags | Flags::PSH;
        }
        if fin {
            flags = flags | Flags::FIN;
        }
        if self.in_flight() == 0 {
            self.cwnd.on_idle(self.idle(now), now);
        }
        let seq = self.snd.nxt();
        self.statistics.data_sent += u64::from(size > 0);
        let push = if ends_block { Flags::PSH } else { Flags(0) };
        self.transmit(now, seq, flags | push, payload.clone(), (now, cut));
        let first = self.board.len() == 0;
        let departure = self.delivery_state_at_send(now, !first);
        self.board.push(SentSegment { departure, overhead, ..SentSegment::new(now, seq, flags, payload) });
        self.snd.on_sent(size as u32 + u32::from(fin));
        if is_small {
            self.small.on_sent(self.snd.nxt());
        }
        if first || self.timers.is_armed_for(TimerPurpose::LossProbe) {
            self.rearm_retransmission(now);
        }
    }

    /// Retransmits the segment at `index` of the scoreboard, without the part beyond the peer's window, which may
    /// have shrunk (RFC 9293 section 3.8.6). Returns false if the whole segment is beyond it.
    pub(crate) fn resend(&mut self, now: Time, index: usize, probe: bool) -> bool {
        if index == 0 {
            self.board.trim_front(self.snd.una());
        }
        let open = match self.snd.window_from(self.board.get(index).seq) as usize {
            // The segment that the peer waits for is sent regardless of the peer's window; it probes that window.
            0 if index == 0 => usize::MAX,
            0 => return false,
            open => open,
        };
        // There may be more SACK blocks than before: the segment is cut to the room that they leave. RFC 9293 section 3.7.1.
        let limit = self.payload_limit().min(open);
        let length = self.board.get(index).payload.len();
        if length > limit {
            self.board.split(index, limit, self.memory.without_data());
            if self.uses_segmentation_offload() {
                self.board.divide(index + 1, self.payload_limit());
            }
        } else if self.config.collapse_on_retransmit && length < limit {
            let edge = if self.snd.window_is_closed() { self.snd.nxt() } else { self.snd.window_end() };
            self.board.collapse(index, self.config.collapse_limit, limit, edge);
        }
        let departure = self.delivery_state_at_send(now, true);
        self.board.note_retransmission(index, now, probe, departure);
        let segment = self.board.get(index);
        let (seq, flags, first_sent) =
            (segment.seq, self.marks.retransmitted_syn_flags(segment.flags, true), segment.first_sent);
        let flags = if self.board.is_end_of_resent_block(index) { flags | Flags::PSH } else { flags };
        let payload = segment.payload.clone();
        self.transmit(now, seq, flags, payload, (first_sent, false));
        true
    }

    /// Sends an acknowledgment without data.
    pub(crate) fn send_ack(&mut self, now: Time) {
        self.transmit(now, self.snd.nxt(), Flags::ACK, Bytes::new(), (now, false));
    }

    /// Sends an acknowledgment of the data before `ack`, although more data have arrived. Linux: `__tcp_send_ack`.
    pub(crate) fn send_ack_of(&mut self, now: Time, ack: SeqNum) {
        self.transmit_with_ack(now, self.snd.nxt(), Flags::ACK, Bytes::new(), (now, false), ack);
    }

    /// Builds a segment and queues it for transmission.
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        seq: SeqNum,
        flags: Flags,
        payload: Bytes,
        sent: (Time, bool),
    ) {
        self.transmit_with_ack(now, seq, flags, payload, sent, self.rcv.nxt());
    }

    fn transmit_with_ack(
        &mut self,
        now: Time,
        seq: SeqNum,
        flags: Flags,
        payload: Bytes,
        (first_sent, cut): (Time, bool),
        ack: SeqNum,
    ) {
        let syn = flags.contains(Flags::SYN);
        let options = if syn { self.syn_options(now, flags) } else { self.options() };
        let window = self.advertise_window(syn);
        let is_connected = self.machine.state() != State::TimeWait;
        let (flags, ecn) =
            self.marks.on_send(flags, !payload.is_empty() && seq.at_or_after(self.snd.nxt()), is_connected);
        if flags.contains(Flags::ACK) && ack == self.rcv.nxt() {
            self.acks.on_ack_sent();
            self.timers.on_ack_sent();
        }
        self.usage.on_departure(now);
        let mut stamp = SendTimes::default();
        if !payload.is_empty() {
            self.acks.on_data_sent(now);
            self.usage.on_data_sent(now);
            self.charge_pacing(now, payload.len());
            stamp = SendTimes { first_sent, sent: now, cut };
        }
        let ack = if flags.contains(Flags::ACK) { ack } else { SeqNum::default() };
        self.send_to_peer(ecn, |source_port, destination_port| Segment {
            source_port,
            destination_port,
            seq,
            ack,
            flags,
            window,
            options,
            payload,
            stamp,
        });
    }

    /// Queues a segment to the peer for transmission; does nothing if there is no peer.
    pub(crate) fn send_to_peer(&mut self, ecn: Ecn, segment: impl FnOnce(u16, u16) -> Segment) {
        let Some((address, port)) = self.remote else { return };
        let segment = segment(self.local.1, port);
        self.statistics.packets_sent += 1;
        self.packets.push_back(Packet { ecn, ..Packet::new(self.local.0, address, segment) });
    }

    /// Returns the options of a segment without SYN.
    fn options(&mut self) -> Options {
        let (blocks, counters) = self.variable_options_due();
        let accurate_ecn = counters.map(|fields| {
            let duplicate = self.reassembly.duplicate().map(|block| block.left);
            self.marks.accurate().option(fields, duplicate)
        });
        Options {
            timestamps: self.timestamps.are_enabled().then(|| self.timestamps.option(self.clock_reading)),
            sack: self.reassembly.take_sack_blocks(blocks),
            accurate_ecn,
            ..Options::default()
        }
    }

    /// Returns the number of SACK blocks in the next segment, and the number of counters in its AccECN option;
    /// `None` without that option.
    fn variable_options_due(&self) -> (usize, Option<usize>) {
        let blocks = self.sack_blocks_due();
        if !self.marks.counts_marks() || self.machine.state() == State::TimeWait {
            return (blocks, None);
        }
        let used = self.timestamps.length() as usize + if blocks == 0 { 0 } else { 4 + 8 * blocks };
        match self.marks.fit_counters(Options::MAX_OCTETS - used, blocks) {
            Some((fields, blocks)) => (blocks, Some(fields)),
            None => (blocks, None),
        }
    }

    /// Returns the number of SACK blocks in the next segment: up to three with timestamps, four otherwise. RFC
    /// 2018 section 3.
    fn sack_blocks_due(&self) -> usize {
        if !self.negotiated.uses_sack() {
            return 0;
        }
        let max = if self.timestamps.are_enabled() { 3 } else { 4 };
        self.reassembly.sack_block_count().min(max)
    }

    /// Returns the window field of a segment that is sent now.
    fn advertise_window(&mut self, syn: bool) -> u16 {
        if self.buffer.is_counted() {
            let window =
                if syn { self.buffer.window_in_syn(self.advertised_mss()) } else { self.select_window() };
            return if syn { self.rcv.advertise_in_syn(window) } else { self.rcv.advertise_selected(window) };
        }
        let buffer = self.buffer.limit();
        if syn {
            return self.rcv.advertise_in_syn(buffer.min(u16::MAX.into()));
        }
        let unread = self.reader.held_octets() as u32;
        self.rcv.advertise(buffer, unread, self.free_buffer(), self.config.mss.into())
    }

    /// Returns the number of free octets in the receive buffer.
    pub(crate) fn free_buffer(&self) -> u32 {
        let held = self.reassembly.octets() + self.reader.held_octets();
        self.buffer.limit().saturating_sub(held as u32)
    }
}
