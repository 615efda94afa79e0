//! HyStart: leaves the first slow start before it overflows the path. Ha and Rhee 2011; RFC 9438 section 4.10
//! requires it (or HyStart++).

use hol_base::{Duration, Time};

/// Window in segments below which slow start always continues.
const LOW_WINDOW: u32 = 16;
/// Number of round-trip samples needed before their minimum is used.
const MIN_SAMPLES: u8 = 8;
/// ACKs that follow each other within this time belong to one train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Lower bound of the increase of the round-trip time that ends slow start. The increase is an eighth of the
/// minimum round-trip time.
const DELAY_MIN: Duration = Duration::from_millis(4);
/// Upper bound of the increase of the round-trip time that ends slow start.
const DELAY_MAX: Duration = Duration::from_millis(16);
/// Delay that sender and receiver may add to a train of ACKs.
const ACK_DELAY: Duration = Duration::from_millis(1);

/// A round-trip time sample, and the progress of the connection when it was taken.
#[derive(Debug, Clone, Copy)]
pub struct RoundTripSample {
    /// The time of the acknowledgment.
    pub now: Time,
    /// The measured round-trip time.
    pub rtt: Duration,
    /// Number of octets acknowledged since the start of the connection.
    pub acknowledged: u64,
    /// Number of octets sent since the start of the connection.
    pub sent: u64,
}

/// The state of HyStart in the current round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hystart {
    /// Whether the first slow start has ended.
    pub(crate) has_ended: bool,
    round_start: Time,
    last_ack: Time,
    /// Number of acknowledged octets above which the round ends.
    end: u64,
    /// The minimum round-trip time of this round.
    min: Option<Duration>,
    /// Number of round-trip samples in this round.
    samples: u8,
}

impl Hystart {
    /// Returns true if slow start should end at the current window.
    pub(crate) fn should_exit(&mut self, round: RoundTripSample, rtt_min: Duration, cwnd: u32) -> bool {
        if self.has_ended {
            return false;
        }
        if round.acknowledged > self.end {
            let RoundTripSample { now, sent, .. } = round;
            *self = Self { round_start: now, last_ack: now, end: sent, ..Self::default() };
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let long_train = self.train_is_long(round.now, rtt_min);
        self.has_ended = long_train || self.delay_grew(round.rtt, rtt_min);
        self.has_ended
    }

    /// Returns true if the train of ACKs of this round spans half a round trip, which means that the window
    /// fills the path.
    fn train_is_long(&mut self, now: Time, rtt_min: Duration) -> bool {
        if now.saturating_since(self.last_ack) > TRAIN_GAP {
            return false;
        }
        self.last_ack = now;
        now.saturating_since(self.round_start) > (rtt_min + ACK_DELAY) / 2
    }

    /// Returns true if this round's minimum round-trip time is well above the overall minimum, which means
    /// that a queue has formed.
    fn delay_grew(&mut self, rtt: Duration, rtt_min: Duration) -> bool {
        let min = self.min.map_or(rtt, |min| min.min(rtt));
        self.min = Some(min);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        min > rtt_min + (rtt_min / 8).clamp(DELAY_MIN, DELAY_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(ms: u64, rtt_ms: u64, acknowledged: u64) -> RoundTripSample {
        RoundTripSample {
            now: Time::from_millis(ms),
            rtt: Duration::from_millis(rtt_ms),
            acknowledged,
            sent: acknowledged + 100,
        }
    }

    #[test]
    fn a_growing_delay_ends_slow_start() {
        let mut hystart = Hystart::default();
        let rtt_min = Duration::from_millis(40);
        let exits: Vec<bool> =
            (0..10).map(|i| hystart.should_exit(round(100 + 5 * i, 50, 1 + i), rtt_min, 20)).collect();
        assert_eq!(exits.iter().position(|exit| *exit), Some(8));
    }

    #[test]
    fn a_long_train_of_acknowledgments_ends_slow_start() {
        let mut hystart = Hystart::default();
        let rtt_min = Duration::from_millis(40);
        let first = (0..40).find(|i| hystart.should_exit(round(100 + i, 40, 1 + i), rtt_min, 20));
        assert_eq!(first, Some(21));
    }

    #[test]
    fn a_small_window_stays_in_slow_start() {
        let mut hystart = Hystart::default();
        let rtt_min = Duration::from_millis(40);
        assert!((0..90).all(|i| !hystart.should_exit(round(100 + i, 90, 1 + i), rtt_min, 15)));
    }

    // Linux, tcp_cubic.c: hystart_update applies all of these limits.
    #[test]
    fn train_ends_slow_start_after_half_an_rtt_with_gaps_up_to_2_ms() {
        let rtt_min = Duration::from_millis(39);
        let first = |gap: u64, window| {
            let mut hystart = Hystart::default();
            (0..40)
                .map(|i| gap * i)
                .find(|ms| hystart.should_exit(round(100 + ms, 39, 1 + ms), rtt_min, window))
        };
        assert_eq!(first(1, 16), Some(21), "half of 39 ms and ACK_DELAY is 20 ms");
        assert_eq!(first(2, 16), Some(22));
        assert_eq!(first(3, 16), None, "gaps of 3 ms end each train");
        assert_eq!(first(1, 15), None);
    }

    #[test]
    fn delay_increase_of_an_eighth_is_tolerated() {
        let rtt_min = Duration::from_millis(40);
        let exits = |rtt_ms| {
            let mut hystart = Hystart::default();
            (0..20).any(|i| hystart.should_exit(round(100 + 5 * i, rtt_ms, 1 + i), rtt_min, 20))
        };
        assert!(!exits(45) && exits(46));
    }

    #[test]
    fn round_ends_when_data_sent_after_its_start_are_acknowledged() {
        let mut hystart = Hystart::default();
        let rtt_min = Duration::from_millis(40);
        hystart.should_exit(round(100, 40, 1), rtt_min, 20);
        let end = hystart.end;
        hystart.should_exit(RoundTripSample { acknowledged: end, ..round(103, 40, 1) }, rtt_min, 20);
        assert_eq!(hystart.round_start, Time::from_millis(100));
        hystart.should_exit(RoundTripSample { acknowledged: end + 1, ..round(106, 40, 1) }, rtt_min, 20);
        assert_eq!(hystart.round_start, Time::from_millis(106));
    }
}
