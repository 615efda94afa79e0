//! The receive buffer grows with what the application reads in a round trip, so that it is the network and not the window
//! that limits a sender. Fisk and Feng, Dynamic Right-Sizing, 2001; RFC 9293 section 3.8.6 leaves it open.

use hol_base::{Duration, Time};
use hol_wire::tcp::{Segment, SeqNum};

use crate::{Config, Endpoint};

/// Segments that are expected in the first round trip. RFC 6928.
const FIRST: u32 = 10;
/// Segments of room beyond what was read, for small variations.
const CUSHION: u64 = 16;

/// The buffer, and what its size depends on.
#[derive(Debug, Default)]
pub(crate) struct RightSizing {
    /// Octets that may wait for the application; it bounds the window.
    buffer: u32,
    /// What it may grow to.
    most: u32,
    /// The receiver's own measure of the round trip.
    round_trip: Option<Duration>,
    /// The timestamp that was measured with last.
    echo: Option<u32>,
    /// Where a window of data ends, which takes a round trip to fill, and when it began.
    window: Option<(SeqNum, Time)>,
    /// The most that was read in a round trip.
    most_read: u32,
    /// Where and when the present round trip began.
    since: (SeqNum, Time),
}

impl RightSizing {
    /// The buffer as it begins.
    pub(crate) fn new(config: &Config) -> Self {
        let octets = |size: hol_base::ByteCount| u32::try_from(size.0).unwrap_or(u32::MAX);
        let (buffer, most) = (octets(config.receive_buffer), octets(config.receive_buffer_max));
        Self { buffer, most, ..Self::default() }
    }

    /// The connection is open: `nxt` is what the application reads first, out of a window of `window`.
    pub(crate) fn established(&mut self, now: Time, nxt: SeqNum, window: u32, mss: u32) {
        self.most_read = window.min(FIRST * mss);
        self.since = (nxt, now);
    }

    /// Octets that may wait for the application.
    pub(crate) fn buffer(&self) -> u32 {
        self.buffer
    }

    /// The round trip, as far as the receiver has found out.
    pub(crate) fn is_measured(&self) -> bool {
        self.round_trip.is_some()
    }

    /// A sample by timestamps; those that grow count for an eighth, lest a pause of the sender be taken for one.
    fn sample(&mut self, round_trip: Duration) {
        let smoothed = self.round_trip.filter(|old| round_trip >= *old);
        self.round_trip = Some(smoothed.map_or(round_trip, |old| old - old / 8 + round_trip / 8));
    }

    /// The application has read all that came before `nxt`.
    fn read(&mut self, now: Time, nxt: SeqNum, mss: u32) {
        let (start, began) = self.since;
        let is_over = self.round_trip.is_some_and(|round_trip| now.saturating_since(began) >= round_trip);
        // One that is woken by data and then busy was taken to have read it.
        if !is_over || nxt.before(start) {
            return;
        }
        self.since = (nxt, now);
        let read = nxt.distance_from(start);
        if read <= self.most_read {
            return;
        }
        // Twice what was read leaves room for a loss. As much again for each growth: the acknowledgment that leaves now is
        // for the round trip after the present one.
        let (wide, more) = (u64::from(read), u64::from(read - self.most_read));
        let wanted = 2 * wide + CUSHION * u64::from(mss);
        let wanted = wanted + 2 * (wanted * more / u64::from(self.most_read).max(1));
        self.buffer = self.buffer.max(u32::try_from(wanted).unwrap_or(u32::MAX).min(self.most));
        self.most_read = read;
    }
}

impl Endpoint {
    /// The receiver's own measure of the round trip: a full-sized segment that echoes a timestamp for the first time, or
    /// a window of data.
    pub(crate) fn measure_round_trip(&mut self, now: Time, segment: &Segment) {
        let (nxt, sizing) = (self.rcv.nxt(), &mut self.sizing);
        let beyond = nxt + self.rcv.offered();
        let (end, began) = *sizing.window.get_or_insert((beyond, now));
        if nxt.at_or_after(end) {
            // It may have taken the sender longer, but not less.
            let round_trip = now.saturating_since(began);
            sizing.round_trip = Some(sizing.round_trip.map_or(round_trip, |old| old.min(round_trip)));
            sizing.window = Some((beyond, now));
        }
        let full = segment.payload.len() as u32 >= self.acks.segment_size();
        let echo = self.timestamps.echo();
        if let Some(round_trip) = self.timestamps.round_trip(now).filter(|_| full && sizing.echo != echo) {
            sizing.sample(round_trip);
            sizing.echo = echo;
        }
    }

    /// The application has read all but what it lets wait: the buffer may grow.
    pub(crate) fn size_buffer(&mut self, now: Time) {
        let read = self.rcv.nxt() - self.reader.held() as u32;
        self.sizing.read(now, read, self.config.mss.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::linux_6_12;

    const MSS: u32 = 1000;

    fn open() -> RightSizing {
        let mut sizing = RightSizing::new(&linux_6_12());
        sizing.established(Time::ZERO, SeqNum(0), 65_536, MSS);
        sizing
    }

    /// Reads up to `octets` at `ms`; the buffer then.
    fn read(sizing: &mut RightSizing, ms: u64, octets: u32) -> u32 {
        sizing.read(Time::from_millis(ms), SeqNum(octets), MSS);
        sizing.buffer
    }

    #[test]
    fn it_waits_for_a_round_trip_and_grows_when_more_was_read_than_in_any_before() {
        let mut sizing = open();
        assert_eq!(read(&mut sizing, 100, 90_000), 65_536, "nobody knows how long a round trip is");
        sizing.sample(Duration::from_millis(50));
        assert_eq!(read(&mut sizing, 100, 10_000), 65_536, "as much as was expected");
        assert_eq!(read(&mut sizing, 149, 40_000), 65_536, "the round trip is not over");
        // 20,000 octets, twice what there was: 2 × 20,000 + 16 segments, and twice the same for the growth.
        assert_eq!(read(&mut sizing, 150, 30_000), 3 * 56_000);
        assert_eq!(read(&mut sizing, 200, 50_000), 3 * 56_000, "no more than the last time");
    }

    #[test]
    fn it_has_a_limit_and_one_that_is_larger_from_the_beginning_stays() {
        let mut sizing = open();
        sizing.sample(Duration::from_millis(50));
        assert_eq!(read(&mut sizing, 50, 5_000_000), linux_6_12().receive_buffer_max.0 as u32);
        let mut sizing = RightSizing { buffer: 4 << 20, ..open() };
        sizing.sample(Duration::from_millis(50));
        assert_eq!(read(&mut sizing, 50, 5_000_000), 4 << 20);
    }

    #[test]
    fn a_shorter_round_trip_counts_at_once_and_a_longer_one_for_an_eighth() {
        let mut sizing = open();
        for (sample, round_trip) in [(80, 80), (160, 90), (40, 40)] {
            sizing.sample(Duration::from_millis(sample));
            assert_eq!(sizing.round_trip, Some(Duration::from_millis(round_trip)));
        }
    }
}
