//! Decides when to send an acknowledgment: at once, with the next data, or after a delay. RFC 9293 section 3.8.6.3, RFC 5681
//! section 4.2, and the modes of Linux: quick at first, then with an adaptive delay, then piggybacked ("pingpong").

use hol_base::{Duration, Time};
use hol_wire::tcp::{Flags, Segment, SeqNum};

use crate::sack_compression::AckCompression;
use crate::{Config, Endpoint};

/// Assumed size in octets of the peer's full-sized segments before any has arrived. RFC 9293 section 3.7.1.
const DEFAULT_SEGMENT: u32 = 536;
/// Minimum size in octets of a segment that counts as full-sized.
const MIN_SEGMENT: u32 = 88;

/// The state of delayed acknowledgments: what must be acknowledged, and how the connection has behaved so far.
#[derive(Debug, Clone)]
pub(crate) struct DelayedAckState {
    /// The minimum delay of an acknowledgment.
    min: Duration,
    /// The maximum delay of an acknowledgment.
    max: Duration,
    /// Length of a tick of the clock; all times are whole ticks. Linux: jiffies.
    tick: Duration,
    quick_segments: u32,
    interactive_after: u32,
    /// Whether an acknowledgment has been scheduled, at once or delayed.
    scheduled: bool,
    /// Whether the scheduled acknowledgment must be sent at once.
    at_once: bool,
    /// Whether a segment with PSH has arrived that the application has not read.
    pushed: bool,
    /// Whether more than one segment with PSH has arrived that the application has not read.
    pushed_twice: bool,
    /// Number of further segments to acknowledge at once (quick acknowledgments).
    quick: u32,
    /// The current delay, which adapts to the gaps between segments; `None` before the first segment.
    delay: Option<Duration>,
    /// Number of replies that were sent soon after data arrived.
    replies: u32,
    last_received: Time,
    /// Estimated size in octets of the peer's full-sized segments.
    segment_size: u32,
    last_size: u32,
    compression: AckCompression,
}

/// The properties of a data segment that determine its acknowledgment, without the data, which may already have
/// been delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentData {
    /// Number of octets of data.
    length: u32,
    /// Number of octets of options.
    options: u32,
    /// Whether the segment has PSH set.
    pushed: bool,
    /// Whether the segment has PSH or FIN set.
    ends: bool,
}

impl SegmentData {
    /// Returns the properties of a received segment.
    pub(crate) fn of(segment: &Segment) -> Self {
        let (length, options) = (segment.payload.len() as u32, segment.options.length() as u32);
        let (pushed, fin) = (segment.flags.contains(Flags::PSH), segment.flags.contains(Flags::FIN));
        Self { length, options, pushed, ends: pushed || fin }
    }

    /// Returns whether the segment has no data.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Returns the number of octets of data in the segment.
    pub(crate) fn octets(self) -> u32 {
        self.length
    }

    /// Returns whether the segment has more data than any earlier one.
    pub(crate) fn is_longer_than_known(self, acks: &DelayedAckState) -> bool {
        self.length > acks.segment_size
    }
}

impl DelayedAckState {
    /// Creates the state before any segment has arrived.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            min: config.delayed_ack_min,
            max: config.delayed_ack_max,
            tick: config.clock_granularity,
            quick_segments: config.quickack_segments,
            interactive_after: config.interactive_after,
            scheduled: false,
            at_once: false,
            pushed: false,
            pushed_twice: false,
            quick: 0,
            delay: None,
            replies: 0,
            last_received: Time::ZERO,
            segment_size: DEFAULT_SEGMENT.min(config.mss.into()),
            last_size: 0,
            compression: AckCompression::default(),
        }
    }

    /// Initialises the state when the connection is established.
    pub(crate) fn on_established(&mut self, now: Time) {
        self.last_received = now;
    }

    /// Returns whether the connection is interactive, so that acknowledgments wait to be piggybacked on data.
    fn is_interactive(&self) -> bool {
        self.replies >= self.interactive_after
    }

    fn is_quick(&self) -> bool {
        self.quick > 0 && !self.is_interactive()
    }

    /// Returns whether no data have arrived yet (at most a FIN), so that the delay has not been estimated.
    fn is_new(&self) -> bool {
        self.delay.is_none()
    }

    fn go_quick(&mut self, window: u32, max: u32) {
        let segments = (window / (2 * self.segment_size)).max(2).min(max);
        self.quick = self.quick.max(segments);
    }

    /// Makes the receiver acknowledge at once, because the window has grown. Linux: tcp_grow_window.
    pub(crate) fn announce_window(&mut self) {
        self.quick |= 1;
    }

    /// Ends quick acknowledgments, because the receive buffer is filling. Linux: __tcp_select_window.
    pub(crate) fn slow_down(&mut self) {
        self.quick = 0;
    }

    /// Schedules an acknowledgment, because a segment with data, SYN or FIN has arrived.
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }

    /// Makes the receiver send the scheduled acknowledgment at once if `soon` is true.
    pub(crate) fn make_immediate_if(&mut self, soon: bool) {
        self.at_once |= soon;
    }

    /// Counts an out-of-order segment that arrives while `nxt` (RCV.NXT) is missing. Returns whether it must be
    /// acknowledged at once, instead of together with up to `max` others.
    pub(crate) fn on_segment_out_of_order(&mut self, nxt: SeqNum, max: u32) -> bool {
        self.compression.on_segment(nxt, max)
    }

    /// Returns the estimated size of the peer's full-sized segments, in octets.
    pub(crate) fn segment_size(&self) -> u32 {
        self.segment_size
    }

    /// Makes the receiver acknowledge the next segments at once, because a duplicate or data outside the window
    /// arrived.
    pub(crate) fn on_anomaly(&mut self, window: u32) {
        self.go_quick(window, self.quick_segments);
        self.end_interaction();
    }

    /// Acknowledges data with an ECN mark at once, because a sender with a small window waits for every
    /// acknowledgment.
    pub(crate) fn on_mark(&mut self, window: u32) {
        self.go_quick(window, self.quick_segments.min(2));
        self.end_interaction();
    }

    fn end_interaction(&mut self) {
        self.replies = 0;
        self.delay = Some(self.min);
    }

    /// Rounds a time to whole clock ticks.
    fn round_to_ticks(&self, time: Duration) -> Duration {
        let tick = self.tick.as_nanos().max(1);
        Duration::from_nanos(time.as_nanos() / tick * tick)
    }

    /// Returns the time since data last arrived, in whole clock ticks.
    fn since_received(&self, now: Time) -> Duration {
        let tick = self.tick.as_nanos().max(1);
        self.tick.max(Duration::from_nanos(1))
            * (now.as_nanos() / tick - self.last_received.as_nanos() / tick)
    }

    /// Adapts the delay to the time between the in-order data that have arrived and the previous data.
    fn on_data(&mut self, now: Time, rto: Duration, window: u32) {
        self.scheduled = true;
        let gap = self.since_received(now);
        self.last_received = now;
        let Some(delay) = self.delay else {
            self.go_quick(window, self.quick_segments);
            self.delay = Some(self.min);
            return;
        };
        if gap <= self.min / 2 {
            self.delay = Some(self.round_to_ticks(delay / 2) + self.min / 2);
        } else if gap < delay {
            self.delay = Some((self.round_to_ticks(delay / 2) + gap).min(rto).min(self.max));
        } else if gap > rto {
            // The peer should have restarted from a small window: let that window grow quickly.
            self.go_quick(window, self.quick_segments);
        }
    }

    /// Estimates the size of the peer's full-sized segments, so that every second one can be acknowledged. SACK
    /// blocks shorten the data; `always` is the number of option octets in every segment. Linux:
    /// tcp_measure_rcv_mss.
    pub(crate) fn measure(
        &mut self,
        SegmentData { length, options, pushed, ends }: SegmentData,
        mss: u32,
        always: u32,
    ) {
        let previous = std::mem::take(&mut self.last_size);
        if length >= self.segment_size {
            self.segment_size = length.min(mss);
            self.pushed |= pushed;
            return;
        }
        let with_options = length + options;
        if with_options >= DEFAULT_SEGMENT || (with_options >= MIN_SEGMENT && !ends) {
            self.last_size = with_options.saturating_sub(always);
            if self.last_size == previous {
                self.segment_size = previous;
                return;
            }
        }
        self.pushed_twice |= self.pushed;
        self.pushed = true;
    }

    /// Records that an acknowledgment was sent, alone or in a data segment.
    pub(crate) fn on_ack_sent(&mut self) {
        let owed = u32::from(self.scheduled);
        if self.quick > 0 {
            self.quick = self.quick.saturating_sub(owed);
            if self.quick == 0 {
                self.delay = Some(self.min);
            }
        }
        (self.scheduled, self.at_once, self.pushed, self.pushed_twice) = (false, false, false, false);
        self.compression.on_ack_sent();
    }

    /// Records that data were sent. Data that are sent soon after data have arrived make the connection
    /// interactive.
    pub(crate) fn on_data_sent(&mut self, now: Time) {
        if self.since_received(now) < self.delay.unwrap_or_default() {
            self.replies = self.replies.saturating_add(1);
        }
    }

    /// Returns the current delay of acknowledgments, at most a round trip or the configured maximum.
    fn current_delay(&self, srtt: Option<Duration>, tick: Duration) -> Duration {
        let delay = self.delay.unwrap_or(self.min);
        if delay <= self.min {
            return delay.min(self.max);
        }
        let round_trip = srtt.map_or(self.max, |srtt| srtt.round_up_to(tick).max(self.min));
        delay.min(round_trip).min(self.max)
    }

    /// Makes acknowledgments wait to be piggybacked on the remaining data, because the peer has closed.
    pub(crate) fn enter_pingpong_mode(&mut self) {
        self.replies = self.replies.max(self.interactive_after);
    }

    /// Handles the expiry of the delay, which means that its estimate was wrong. The next delay is longer, or
    /// acknowledgments no longer wait for data.
    fn on_delay_expired(&mut self, rto: Duration) {
        if self.is_interactive() && self.interactive_after > 0 {
            self.replies = 0;
            self.delay = Some(self.min);
        } else {
            let delay = self.delay.unwrap_or(self.min);
            self.delay = Some((delay * 2).min(rto));
        }
    }
}

impl Endpoint {
    /// Handles in-order data in a packet that uses `memory` octets of memory.
    pub(crate) fn on_data_received(&mut self, now: Time, text: SegmentData, memory: u32) {
        if text.is_empty() {
            return self.acks.schedule();
        }
        self.measure_segment(text, memory);
        self.acks.on_data(now, self.rtt.rto(), self.rcv.offered());
        self.account_data(now, text.octets(), memory);
    }

    /// Sends or schedules an acknowledgment after a segment has been processed.
    pub(crate) fn acknowledge(&mut self, now: Time) {
        if !self.acks.scheduled {
            return;
        }
        let is_due = self.has_more_than_a_segment() && self.has_window_for_more();
        if is_due || self.acks.is_quick() || self.acks.at_once {
            self.send_ack(now);
        } else if !self.reassembly.is_empty() {
            self.acknowledge_out_of_order(now);
        } else if self.acks.is_new() {
            self.send_ack(now);
        } else {
            let delay = self.acks.current_delay(self.rtt.srtt(), self.config.clock_granularity);
            if self.timers.delay_ack(now, delay) {
                self.send_ack(now);
            }
        }
    }

    /// Returns whether more than one full-sized segment is unacknowledged. RFC 5681 section 4.2.
    fn has_more_than_a_segment(&self) -> bool {
        self.rcv.unacknowledged() > self.acks.segment_size
    }

    /// Returns whether an acknowledgment sent now would advance the right edge of the window. If not, the
    /// acknowledgment waits until the application has read. Linux: __tcp_ack_snd_check.
    fn has_window_for_more(&mut self) -> bool {
        self.buffer.is_read() || self.select_window() >= self.rcv.offered()
    }

    /// Returns the window to advertise, for which the receive buffer has room, in octets.
    pub(crate) fn select_window(&mut self) -> u32 {
        let (early, segment) = (self.reassembly.memory(), self.acks.segment_size);
        let offer = self.buffer.offer(early, segment, self.rcv.scale(), self.rcv.offered());
        if offer.is_pressed {
            self.acks.slow_down();
        }
        offer.window
    }

    /// Handles a read after which no data are left. As in Linux (tcp_cleanup_rbuf), data with PSH are then
    /// acknowledged unless the connection is interactive, and a window that has doubled is announced.
    pub(crate) fn on_data_read(&mut self, now: Time) {
        self.on_application_poll();
        self.adjust_receive_buffer(now);
        self.reader.set_reads_whole_buffer();
        let acks = &self.acks;
        let pushed = acks.pushed_twice || (acks.pushed && !acks.is_interactive());
        let pushed = pushed && (self.reassembly.is_empty() || !self.buffer.is_counted());
        let due = self.has_more_than_a_segment() || (self.config.acknowledge_on_read && pushed);
        if (acks.scheduled && due) || (self.buffer.is_counted() && self.window_doubles()) {
            self.send_ack(now);
        }
    }

    fn window_doubles(&mut self) -> bool {
        let window = self.rcv.window();
        if !self.machine.state().is_receiving() || 2 * window > self.buffer.clamp() {
            return false;
        }
        let next = self.select_window();
        next > 0 && next >= 2 * window
    }

    /// Handles the first read after a pause: announces the window at once if it has doubled and is at least as
    /// large as RFC 9293 section 3.8.6.2.2 requires.
    pub(crate) fn on_buffer_space_freed(&mut self, now: Time) {
        self.on_data_read(now);
        if self.buffer.is_counted() {
            return;
        }
        let worthwhile = (self.buffer.limit() / 2).min(self.config.mss.into());
        let offer = self.rcv.limited_to_field(self.free_buffer());
        if self.machine.state().is_receiving() && offer >= worthwhile.max(2 * self.rcv.window()) {
            self.send_ack(now);
        }
    }

    /// Sends the delayed acknowledgment when its timer expires.
    pub(crate) fn on_delayed_ack_expired(&mut self, now: Time) {
        if self.acks.scheduled {
            self.acks.on_delay_expired(self.rtt.rto());
            self.send_ack(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_shortened_by_sack_blocks_count_as_full_sized() {
        // net/ipv4/tcp_input.c tcp_measure_rcv_mss: "len" does not vary with SACK blocks.
        let mut acks = DelayedAckState::new(&Config::linux_6_12());
        let text = |length, options| SegmentData { length, options, pushed: false, ends: false };
        for (length, options, size) in
            [(1448, 12, 1448), (1436, 24, 1448), (1436, 24, 1448), (1400, 12, 1448), (1400, 12, 1400)]
        {
            acks.measure(text(length, options), 1448, 12);
            assert_eq!(acks.segment_size(), size, "{length} octets behind {options}");
        }
    }
}
