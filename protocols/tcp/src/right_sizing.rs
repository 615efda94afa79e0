//! Dynamic right-sizing: the receive buffer grows with the octets that the application reads per round trip.
//! The network and not the window then limits the sender. Fisk and Feng, Dynamic Right-Sizing, 2001; RFC 9293
//! section 3.8.6 does not specify it.

use hol_base::{Duration, Time};
use hol_wire::tcp::{Segment, SeqNum};

use crate::Endpoint;
use crate::delayed_ack::SegmentData;

/// Minimum size in octets of a segment that lets the window grow. Linux: tcp_event_data_recv.
const MIN_SEGMENT: u32 = 128;

/// The parameters from which the required receive window is computed. Linux 6.12: tcp_rcv_space_adjust; 7.3:
/// tcp_rcvbuf_grow.
#[derive(Debug, Clone, Copy)]
struct WindowNeed {
    /// Number of octets of room for small variations.
    cushion: u64,
    /// Number of octets from RCV.NXT to the end of the out-of-order data; 0 if out-of-order data do not count.
    out_of_order_octets: u64,
    /// Round-trip time in microseconds below which the growth of the window is proportional to the round-trip
    /// time.
    low_rtt: u64,
}

/// The measurements by which the receiver chooses the size of its buffer.
#[derive(Debug, Default)]
pub(crate) struct RightSizing {
    /// The receiver's estimate of the round-trip time, in eighths of a microsecond. Linux: rcv_rtt_est.rtt_us.
    round_trip: Option<u64>,
    /// The timestamp from which the last round-trip sample was taken.
    echo: Option<u32>,
    /// The current measurement of the round-trip time by the arrival of a full window of data: the end of that
    /// window, and the start time.
    window: Option<(SeqNum, Time)>,
    /// Maximum number of octets that the application has read in a round trip.
    max_read: u32,
    /// The start of the current round trip: sequence number and time.
    since: (SeqNum, Time),
}

impl RightSizing {
    /// Starts the measurements when the connection is established. `nxt` is the first sequence number to be read,
    /// and `expected` the number of octets to expect per round trip.
    pub(crate) fn on_established(&mut self, now: Time, nxt: SeqNum, expected: u32) {
        self.max_read = expected;
        self.since = (nxt, now);
    }

    /// Returns the receiver's estimate of the round-trip time.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.round_trip.map(|eighths| Duration::from_nanos(eighths * 1000 / 8))
    }

    /// Limits the maximum number of octets read per round trip to the maximum window `clamp`. Linux:
    /// tcp_measure_rcv_mss.
    fn limit_maximum_read(&mut self, clamp: u32) {
        self.max_read = self.max_read.min(clamp);
    }

    /// Processes a round-trip sample from timestamps. A sample above the estimate has a weight of 1/8, because a
    /// pause of the sender may have caused it. Linux: tcp_rcv_rtt_update.
    fn sample(&mut self, round_trip: Duration, may_rise: bool) {
        let micros = round_trip.as_nanos() / 1000;
        let smoothed = self.round_trip.filter(|old| 8 * micros >= *old);
        if smoothed.is_some() && !may_rise {
            return;
        }
        self.round_trip = Some(smoothed.map_or(8 * micros, |old| old - old / 8 + micros));
    }

    /// Processes a round-trip sample from the arrival of a window of data, which is an upper bound of the
    /// round-trip time.
    fn sample_window(&mut self, round_trip: Duration) {
        let eighths = 8 * (round_trip.as_nanos() / 1000).max(1);
        self.round_trip = Some(self.round_trip.map_or(eighths, |old| old.min(eighths)));
    }

    /// Handles a read up to `nxt`, after which `waiting` octets remain. Returns the required window, or `None`
    /// unless a round trip has ended in which the application read more than in any before. Linux:
    /// tcp_rcv_space_adjust.
    fn on_read(&mut self, now: Time, nxt: SeqNum, waiting: u32, need: WindowNeed) -> Option<u64> {
        let (start, began) = self.since;
        let micros = now.as_nanos() / 1000 - began.as_nanos() / 1000;
        let is_over = self.round_trip.is_some_and(|eighths| micros >= eighths / 8);
        // A busy application counted as having read the data that woke it, so `nxt` may precede `start`.
        if !is_over || nxt.before(start) {
            return None;
        }
        self.since = (nxt, now);
        let read = nxt.distance_from(start).saturating_sub(waiting);
        if read <= self.max_read {
            return None;
        }
        let wanted = self.window_for(read, need);
        self.max_read = read;
        Some(wanted)
    }

    /// Returns the required window in octets if the application reads `read` octets per round trip. `read` is at
    /// least `max_read`.
    fn window_for(&self, read: u32, need: WindowNeed) -> u64 {
        // Twice the octets read leaves room for a loss. The growth is doubled, because the acknowledgment
        // sent now applies to the round trip after the current one.
        let wide = 2 * u64::from(read) + need.cushion;
        let growth = match self.round_trip.unwrap_or_default() / 8 {
            low if low < need.low_rtt => wide * low / need.low_rtt,
            _ => 2 * (wide * u64::from(read - self.max_read) / u64::from(self.max_read).max(1)),
        };
        wide + growth + need.out_of_order_octets
    }
}

impl Endpoint {
    /// Takes a round-trip sample from a full-sized segment that echoes a timestamp for the first time. Linux:
    /// tcp_rcv_rtt_measure_ts.
    pub(crate) fn measure_round_trip(&mut self, now: Time, segment: &Segment) {
        let sizing = &mut self.sizing;
        let echo = self.timestamps.echo();
        if sizing.echo == echo {
            return;
        }
        sizing.echo = echo;
        let full = segment.sequence_length() >= self.acks.segment_size();
        if let Some(round_trip) = self.timestamps.round_trip_if_any(now).filter(|_| full) {
            sizing.sample(round_trip, self.buffer.is_read() || !self.config.receive_rtt_if_read);
        }
    }

    /// Takes a round-trip sample from the arrival of a window of data, if there are no timestamps. Linux:
    /// tcp_rcv_rtt_measure.
    fn measure_window(&mut self, now: Time) {
        let nxt = self.rcv.nxt();
        let beyond = nxt + self.rcv.offered();
        let sizing = &mut self.sizing;
        let (end, began) = *sizing.window.get_or_insert((beyond, now));
        if nxt.at_or_after(end) {
            sizing.sample_window(now.saturating_since(began));
            sizing.window = Some((beyond, now));
        }
    }

    /// Handles in-order data: takes a round-trip sample, and lets the window grow if the segment is large enough.
    pub(crate) fn account_data(&mut self, now: Time, octets: u32, memory: u32) {
        self.measure_window(now);
        if octets >= MIN_SEGMENT {
            self.earn_window(octets, memory);
        }
    }

    /// Increases the earned window for a segment, if the memory that the segment uses permits this. The larger
    /// window is announced soon.
    pub(crate) fn earn_window(&mut self, octets: u32, memory: u32) {
        let (early, segment) = (self.reassembly.memory(), self.acks.segment_size());
        if self.buffer.grow_earned_window((octets, memory), early, self.advertised_mss(), segment) {
            self.acks.announce_window();
        }
    }

    /// Estimates the size of the peer's segments, each of which uses `memory` octets of memory. Linux:
    /// tcp_measure_rcv_mss.
    pub(crate) fn measure_segment(&mut self, text: SegmentData, memory: u32) {
        if text.is_longer_than_known(&self.acks) {
            self.buffer.measure(text.octets(), memory);
            self.sizing.limit_maximum_read(self.buffer.clamp());
        }
        self.acks.measure(text, self.config.mss.into(), self.timestamps.length());
    }

    /// Enlarges the receive buffer if necessary after the application has read all data. Data that arrived
    /// together are read packet by packet; only the first read counts.
    pub(crate) fn adjust_receive_buffer(&mut self, now: Time) {
        let nxt = self.rcv.nxt() - self.reader.held_octets() as u32;
        let waiting = self.buffer.octets_after_first();
        let need = self.need();
        if let Some(window) = self.sizing.on_read(now, nxt - waiting, waiting, need) {
            self.buffer.enlarge(window);
        }
        self.buffer.read(self.reader.held_octets() as u32);
    }

    /// Enlarges the receive buffer if out-of-order data need it. Linux: tcp_data_queue_ofo.
    pub(crate) fn enlarge_buffer_for_out_of_order_data(&mut self) {
        if self.config.receive_buffer_for_early {
            self.buffer.enlarge(self.sizing.window_for(self.sizing.max_read, self.need()));
        }
    }

    fn need(&self) -> WindowNeed {
        let config = &self.config;
        WindowNeed {
            cushion: u64::from(config.receive_buffer_cushion) * u64::from(self.advertised_mss()),
            out_of_order_octets: if config.receive_buffer_for_early {
                self.reassembly.span(self.rcv.nxt()).into()
            } else {
                0
            },
            low_rtt: config.receive_buffer_low_rtt.as_nanos() / 1000,
        }
    }

    /// Returns the maximum segment size that we have advertised, without options. Linux: advmss.
    pub(crate) fn advertised_mss(&self) -> u32 {
        u32::from(self.config.mss) - self.timestamps.length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn open() -> RightSizing {
        let mut sizing = RightSizing::default();
        sizing.on_established(Time::ZERO, SeqNum(0), 10 * MSS);
        sizing
    }

    const CUSHIONED: WindowNeed = WindowNeed { cushion: 16 * MSS as u64, out_of_order_octets: 0, low_rtt: 0 };

    /// Reads up to `octets` at `ms`; returns the required window.
    fn read(sizing: &mut RightSizing, ms: u64, octets: u32) -> Option<u64> {
        sizing.on_read(Time::from_millis(ms), SeqNum(octets), 0, CUSHIONED)
    }

    fn sample(sizing: &mut RightSizing, ms: u64) {
        sizing.sample(Duration::from_millis(ms), true);
    }

    #[test]
    fn buffer_without_cushion_has_room_for_out_of_order_data() {
        // tcp_rcvbuf_grow of Linux 7.3: twice the 20,000 octets read, twice that for the growth, and the queue.
        let mut sizing = open();
        sample(&mut sizing, 50);
        let need = WindowNeed { cushion: 0, out_of_order_octets: 7000, low_rtt: 1000 };
        assert_eq!(sizing.window_for(20_000, need), 3 * 40_000 + 7000);
        assert_eq!(sizing.window_for(10_000, need), 20_000 + 7000, "no more than before");
    }

    #[test]
    fn buffer_grows_less_on_a_short_round_trip() {
        // tcp_rcvbuf_grow: a quarter of tcp_rcvbuf_low_rtt, so a quarter more, regardless of the octets read.
        let mut sizing = open();
        sizing.sample(Duration::from_micros(250), true);
        let need = WindowNeed { cushion: 0, out_of_order_octets: 0, low_rtt: 1000 };
        assert_eq!(sizing.window_for(20_000, need), 50_000);
        assert_eq!(sizing.window_for(40_000, need), 100_000);
    }

    #[test]
    fn estimate_that_may_not_rise_only_falls() {
        // tcp_rcv_rtt_update of Linux 7.3, while data wait for the application.
        let mut sizing = open();
        for (ms, round_trip) in [(80, 80), (160, 80), (40, 40)] {
            sizing.sample(Duration::from_millis(ms), false);
            assert_eq!(sizing.round_trip(), Some(Duration::from_millis(round_trip)));
        }
    }

    #[test]
    fn buffer_grows_when_a_round_trip_reads_more_than_any_before() {
        let mut sizing = open();
        assert_eq!(read(&mut sizing, 100, 90_000), None, "the round-trip time is unknown");
        sample(&mut sizing, 50);
        assert_eq!(read(&mut sizing, 100, 10_000), None, "as much as was expected");
        assert_eq!(read(&mut sizing, 149, 40_000), None, "the round trip is not over");
        // 20,000 octets, twice the previous maximum: 2 × 20,000 + 16 segments, and twice that for the growth.
        assert_eq!(read(&mut sizing, 150, 30_000), Some(3 * 56_000));
        assert_eq!(read(&mut sizing, 200, 50_000), None, "not more than in the previous round trip");
    }

    #[test]
    fn data_behind_the_first_packet_do_not_count_as_read() {
        // tcp_rcv_space_adjust: a burst after a gap that closes did not arrive in one round trip.
        let mut sizing = open();
        sample(&mut sizing, 50);
        assert_eq!(sizing.on_read(Time::from_millis(50), SeqNum(30_000), 25_000, CUSHIONED), None);
    }

    #[test]
    fn shorter_rtt_replaces_the_estimate_and_longer_counts_an_eighth() {
        let mut sizing = open();
        for (ms, round_trip) in [(80, 80), (160, 90), (40, 40)] {
            sample(&mut sizing, ms);
            assert_eq!(sizing.round_trip(), Some(Duration::from_millis(round_trip)));
        }
    }
}
