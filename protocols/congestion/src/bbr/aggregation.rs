//! ACK aggregation: the amount that is acknowledged at once beyond the amount that the estimated bandwidth explains.
//! tcp_bbr.c, bbr_update_ack_aggregation (Linux 5.1).

use hol_base::Time;

use super::bandwidth::Bandwidth;

/// Number of round trips that each of the max filter's two windows lasts: bbr_extra_acked_win_rtts.
pub(crate) const ROUNDS_PER_WINDOW: u32 = 5;
/// An epoch ends after this many acknowledged segments: bbr_ack_epoch_acked_reset_thresh.
const MAX_EPOCH: u32 = 1 << 20;

/// Tracks the largest ACK aggregation of the last five to ten rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aggregation {
    epoch: Time,
    acked: u32,
    /// The maximum excess in the current and in the previous window of the max filter.
    maxima: [u32; 2],
    rounds: u32,
}

impl Aggregation {
    /// Returns the maximum excess of the last windows: the number of units acknowledged beyond those that the
    /// bandwidth explains.
    pub(crate) fn excess(&self) -> u32 {
        self.maxima[0].max(self.maxima[1])
    }

    /// Starts an epoch at `now`.
    pub(crate) fn begin(&mut self, now: Time) {
        (self.epoch, self.acked) = (now, 0);
    }

    /// Handles the start of a round trip; each window of the max filter lasts `window` round trips.
    pub(crate) fn on_round(&mut self, window: u32) {
        self.rounds += 1;
        if self.rounds >= window {
            self.rounds = 0;
            self.maxima = [0, self.maxima[0]];
        }
    }

    /// Counts `acked` newly acknowledged units. The excess is the number of units acknowledged since the
    /// epoch began beyond those that `bandwidth` explains; it is at most `cwnd`.
    pub(crate) fn on_acked(&mut self, now: Time, acked: u32, bandwidth: Bandwidth, cwnd: u32) {
        let mut expected = bandwidth.units_in(now.saturating_since(self.epoch));
        if self.acked <= expected || self.acked + acked >= MAX_EPOCH {
            self.begin(now);
            expected = 0;
        }
        self.acked += acked;
        self.maxima[0] = self.maxima[0].max((self.acked - expected).min(cwnd));
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;

    use super::*;

    /// Bandwidths are kept in 2⁻²⁴ units a µs: that of one unit in this time has no remainder.
    const STEP: Duration = Duration::from_micros(1024);

    #[test]
    fn aggregated_acknowledgments_raise_the_excess_for_ten_rounds() {
        let bandwidth = Bandwidth::of(1, STEP);
        let mut aggregation = Aggregation::default();
        for burst in 1..=10 {
            aggregation.on_acked(Time::ZERO + STEP * (20 * burst), 20, bandwidth, 100);
        }
        assert_eq!(aggregation.excess(), 20);
        for _ in 0..9 {
            aggregation.on_round(ROUNDS_PER_WINDOW);
        }
        assert_eq!(aggregation.excess(), 20);
        aggregation.on_round(ROUNDS_PER_WINDOW);
        assert_eq!(aggregation.excess(), 0);
    }

    #[test]
    fn separate_acknowledgments_give_an_excess_of_at_most_one() {
        let bandwidth = Bandwidth::of(1, STEP);
        let mut aggregation = Aggregation::default();
        for at in 1..=100 {
            aggregation.on_acked(Time::ZERO + STEP * at, 1, bandwidth, 100);
        }
        assert!(aggregation.excess() <= 1, "{}", aggregation.excess());
    }

    /// bbr_update_ack_aggregation: an epoch continues while more is acknowledged than expected.
    #[test]
    fn excess_of_an_epoch_is_acknowledged_minus_expected() {
        let bandwidth = Bandwidth::of(1, STEP);
        let mut aggregation = Aggregation::default();
        for (step, excess) in [(40, 20), (40, 40), (50, 50), (150, 50)] {
            aggregation.on_acked(Time::ZERO + STEP * step, 20, bandwidth, 100);
            assert_eq!(aggregation.excess(), excess, "{step}");
        }
    }
}
