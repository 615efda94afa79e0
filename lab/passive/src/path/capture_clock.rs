//! The clock of a capture, which may be set back while it captures.

/// A step back of more than this, in ns, is one of the clock. Packets that different processors captured may have shorter ones.
const MIN_STEP: u64 = 1_000_000;
/// The time in ns that passes at a step for measurements, so that no time between packets on both sides of it is a sample.
const STEP_GAP: u64 = 3_600_000_000_000;
/// A longer time between a packet and a reply is no sample.
pub(crate) const MAX_DELAY: u64 = STEP_GAP / 2;

/// Times of packets that never decrease.
#[derive(Debug, Default)]
pub(crate) struct CaptureClock {
    /// The latest time so far, without steps.
    now: u64,
    /// The sum of all steps back, in ns.
    stepped: u64,
    /// Number of steps back.
    pub steps: u64,
}

impl CaptureClock {
    /// Advances the clock to a packet with this time; returns the time since the epoch, as if the clock had stopped while it was
    /// set back.
    pub fn advance(&mut self, at: u64) -> u64 {
        let at = at.saturating_add(self.stepped);
        if self.now > at.saturating_add(MIN_STEP) {
            self.stepped += self.now - at;
            self.steps += 1;
        }
        self.now = self.now.max(at);
        self.now
    }

    /// Returns the time for measurements, in which a step takes an hour.
    pub fn for_measurement(&self) -> u64 {
        self.now.saturating_add(self.steps.saturating_mul(STEP_GAP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_after_a_step_and_measurements_do_not_cross_it() {
        const SECOND: u64 = 1_000_000_000;
        let mut clock = CaptureClock::default();
        let times = [10, 11, 6, 7].map(|second| clock.advance(second * SECOND));
        assert_eq!((times, clock.steps), ([10, 11, 11, 12].map(|second| second * SECOND), 1));
        assert_eq!(clock.for_measurement(), 12 * SECOND + STEP_GAP);
        // Two processors.
        assert_eq!([clock.advance(8 * SECOND), clock.advance(8 * SECOND - 1000)], [13 * SECOND; 2]);
        assert_eq!(clock.steps, 1);
    }
}
