//! The clock of a capture, which may be set back while it captures.

/// A packet is behind if its time is before that of an earlier packet by more than this number of ns. Smaller
/// differences also occur if different processors capture the packets.
const MIN_STEP: u64 = 1_000_000;
/// The number of successive packets that have to be behind to show that the clock was set back; fewer were only written
/// late.
const PACKETS_AFTER_STEP: u32 = 3;
/// The jump, in ns, of the time for measurements before and after a packet that is behind. The time of this packet is
/// uncertain, so no delay to or from it may count as a sample.
const GAP: u64 = 300_000_000_000;
/// The longest delay in ns between a packet and its reply that counts as a sample: twice the maximum segment lifetime
/// of RFC 9293 section 3.4.2.
const MAX_DELAY: u64 = 240_000_000_000;

/// Returns the time from a packet to its reply in ns. `None` if it is not a valid sample: negative, longer
/// than `MAX_DELAY` (as across a gap in the clock), or after the clock for measurements has reached its
/// maximum.
pub(crate) fn measured_delay(packet: u64, reply: u64) -> Option<u64> {
    reply.checked_sub(packet).filter(|delay| *delay <= MAX_DELAY && reply < u64::MAX)
}

/// Converts the times of captured packets to times that never decrease.
#[derive(Debug, Default)]
pub(crate) struct CaptureClock {
    /// The latest time so far in ns, as if the clock had never been set back.
    now: u64,
    /// The sum, in ns, of all steps by which the clock was set back.
    stepped: u64,
    /// The number of times that the clock was set back.
    pub steps: u64,
    /// The number of most recent successive packets that are more than `MIN_STEP` behind an earlier one.
    behind: u32,
    /// How far the first of the packets that `behind` counts is behind, in ns.
    lag: u64,
    /// The number of jumps of the time for measurements.
    gaps: u64,
}

impl CaptureClock {
    /// Advances the clock to a packet with this time. Returns the time since the epoch in ns, as if the clock
    /// had stopped while it was set back.
    pub fn advance(&mut self, at: u64) -> u64 {
        let mut at = at.saturating_add(self.stepped);
        let is_behind = self.now > at.saturating_add(MIN_STEP);
        self.gaps += u64::from(is_behind || self.behind > 0);
        self.behind = if is_behind { self.behind + 1 } else { 0 };
        if self.behind == 1 {
            self.lag = self.now - at;
        }
        if self.behind == PACKETS_AFTER_STEP {
            // No time passed between the latest packet and the first one behind; it did after that one.
            (self.stepped, at) = (self.stepped.saturating_add(self.lag), at.saturating_add(self.lag));
            self.steps += 1;
            self.behind = 0;
        }
        self.now = self.now.max(at);
        self.now
    }

    /// Returns the time for measurements in ns. If a packet's time is before that of an earlier packet, this
    /// time jumps, so that no delay is measured across the two.
    pub fn measurement_time(&self) -> u64 {
        self.now.saturating_add(self.gaps.saturating_mul(GAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn time_goes_on_after_a_step_and_measurements_do_not_cross_it() {
        let mut clock = CaptureClock::default();
        let times = [10, 11, 6, 7, 8, 9].map(|second| clock.advance(second * SECOND));
        assert_eq!((times, clock.steps), ([10, 11, 11, 11, 13, 14].map(|second| second * SECOND), 1));
        assert_eq!(clock.measurement_time(), 14 * SECOND + 3 * GAP);
        // Two processors.
        assert_eq!([clock.advance(10 * SECOND), clock.advance(10 * SECOND - 1000)], [15 * SECOND; 2]);
        assert_eq!((clock.steps, clock.measurement_time()), (1, 15 * SECOND + 3 * GAP));
    }

    #[test]
    fn late_packets_are_no_step_and_no_measurement() {
        let mut clock = CaptureClock::default();
        let mut step = |second| (clock.advance(second * SECOND), clock.measurement_time());
        let times = [10, 11, 6, 12, 13, 7, 7, 14].map(&mut step);
        assert_eq!(times.map(|(now, _)| now / SECOND), [10, 11, 11, 12, 13, 13, 13, 14]);
        let gaps = [0, 0, 1, 2, 2, 3, 4, 5];
        assert!(times.iter().zip(gaps).all(|((now, measured), gaps)| measured - now == gaps * GAP));
        assert_eq!((clock.steps, clock.stepped), (0, 0));
    }

    /// Delays are measured after millions of late packets. When the time for measurements has reached its maximum, they are unknown.
    #[test]
    fn late_packets_never_shorten_a_delay() {
        let start = 1_800_000_000 * SECOND;
        for (late_packets, expected) in [(0, Some(SECOND)), (10_000_000, Some(SECOND)), (100_000_000, None)] {
            let mut clock = CaptureClock { gaps: 2 * late_packets, ..CaptureClock::default() };
            let mut measure = |at| {
                clock.advance(at);
                clock.measurement_time()
            };
            let [sent, late, replied, next] =
                [start, start - SECOND, start + SECOND, start + 2 * SECOND].map(&mut measure);
            let delays = [(replied, next), (sent, late), (late, replied), (sent, replied), (next, replied)];
            let delays = delays.map(|(packet, reply)| measured_delay(packet, reply));
            assert_eq!(delays, [expected, None, None, None, None], "{late_packets}");
        }
    }
}
