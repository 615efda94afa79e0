//! The model of the path: rounds, bandwidth, and their bounds. Draft-ietf-ccwg-bbr-05, sections 5.3.1.2 and 5.5.

use super::{Bandwidth, Bbr3, GAIN_ONE, RateSample};
use crate::delivery_rate::is_beyond;

/// Factor by which losses reduce the short-term bounds. draft-ietf-ccwg-bbr-05, section 2.7: BBR.Beta.
pub(super) const BETA: u32 = GAIN_ONE * 7 / 10;
/// Growth of the delivery rate that shows that the pipe is not full yet. draft-ietf-ccwg-bbr-05, section 5.3.1.2.
const FULL_GROWTH: u32 = GAIN_ONE * 5 / 4;
/// Number of rounds without a growth by a quarter after which the pipe counts as full. draft-ietf-ccwg-bbr-05,
/// section 5.3.1.2.
const FULL_ROUNDS: u32 = 3;

/// Round trips counted by acknowledgments of packets. draft-ietf-ccwg-bbr-05, section 5.5.1.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// Number of rounds since the start of the connection: BBR.round_count.
    pub(super) count: u32,
    /// The number of delivered units at which the next round starts: BBR.next_round_delivered.
    next: u32,
    /// BBR.round_start: whether this acknowledgment started a round.
    pub(super) began: bool,
    /// Rounds since the last probe for bandwidth: BBR.rounds_since_bw_probe.
    pub(super) since_probe: u32,
}

impl Rounds {
    /// Starts a round, which ends when data sent from now on are acknowledged: BBRStartRound.
    pub(super) fn begin(&mut self, delivered: u32) {
        self.next = delivered;
    }

    /// Checks whether an acknowledgment starts a new round: BBRUpdateRound.
    fn update(&mut self, prior_delivered: u32, delivered: u32) {
        self.began = !is_beyond(self.next, prior_delivered);
        if self.began {
            self.begin(delivered);
            self.count += 1;
            self.since_probe += 1;
        }
    }
}

/// The state of the test for a full pipe. draft-ietf-ccwg-bbr-05, section 5.3.1.2.
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    /// The delivery rate to which later rates are compared: BBR.full_bw.
    bandwidth: Bandwidth,
    rounds: u32,
    /// Whether the pipe has become full since the last reset: BBR.full_bw_now.
    pub(super) now_reached: bool,
    /// Whether the pipe has ever been full: BBR.full_bw_reached.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Restarts the search for the full bandwidth from `bandwidth`: BBRResetFullBW.
    pub(super) fn reset(&mut self, bandwidth: Bandwidth) {
        *self = Self { bandwidth, reached: self.reached, ..Self::default() };
    }

    /// Checks at the start of a round whether the delivery rate has stopped growing. The caller skips rounds that
    /// the application limited. BBRCheckFullBWReached.
    pub(super) fn check_growth(&mut self, rate: Bandwidth) {
        if self.now_reached {
            return;
        }
        if rate >= self.bandwidth.times(FULL_GROWTH) {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.now_reached = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now_reached;
    }
}

/// The model of the path: its bandwidth, and bounds of the volume in flight. draft-ietf-ccwg-bbr-05, sections 2.8
/// to 2.10 and 5.5.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// The maximum bandwidths of the previous and of this cycle: BBR.max_bw_filter.
    greatest: [Bandwidth; 2],
    /// BBR.bw: the bandwidth that determines the pacing rate.
    pub(super) bandwidth: Bandwidth,
    /// The upper bound of the bandwidth after recent losses: BBR.bw_shortterm.
    pub(super) short_term_bandwidth: Option<Bandwidth>,
    /// The upper bound of the volume in flight after recent losses: BBR.inflight_shortterm.
    pub(super) short_term_in_flight: Option<u32>,
    /// The largest volume in flight at which probes had no excessive loss: BBR.inflight_longterm.
    pub(super) long_term_in_flight: Option<u32>,
    /// The maximum bandwidth and delivered volume of the latest round: BBR.bw_latest and BBR.inflight_latest.
    pub(super) latest: (Bandwidth, u32),
}

impl Model {
    /// Returns the maximum bandwidth of the last two cycles: BBR.max_bw.
    pub(super) fn max_bandwidth(&self) -> Bandwidth {
        self.greatest[0].max(self.greatest[1])
    }

    /// Adds a delivery rate to the filter. An application-limited rate counts only if it is at least the estimate.
    /// draft-ietf-ccwg-bbr-05, section 5.5.5: BBRUpdateMaxBw.
    pub(super) fn add_sample(&mut self, rate: Bandwidth, application_limited: bool) {
        if rate >= self.max_bandwidth() || !application_limited {
            self.greatest[1] = self.greatest[1].max(rate);
        }
    }

    /// Starts the next cycle of the filter, unless this one has no sample. draft-ietf-ccwg-bbr-05, section 5.5.6:
    /// BBRAdvanceMaxBwFilter.
    pub(super) fn start_cycle(&mut self) {
        if self.greatest[1] != Bandwidth::default() {
            self.greatest = [self.greatest[1], Bandwidth::default()];
        }
    }

    /// Removes the short-term bounds: BBRResetShortTermModel.
    pub(super) fn reset_short_term_model(&mut self) {
        (self.short_term_bandwidth, self.short_term_in_flight) = (None, None);
    }

    /// Lowers the short-term bounds after a round with losses. draft-ietf-ccwg-bbr-05, section 5.5.10.3:
    /// BBRInitLowerBounds, BBRLossLowerBounds.
    pub(super) fn reduce_short_term(&mut self, cwnd: u32) {
        let bandwidth = self.short_term_bandwidth.unwrap_or_else(|| self.max_bandwidth());
        let in_flight = self.short_term_in_flight.unwrap_or(cwnd);
        self.short_term_bandwidth = Some(self.latest.0.max(bandwidth.times(BETA)));
        self.short_term_in_flight = Some(self.latest.1.max(scale_by_gain(in_flight, BETA)));
    }

    /// Sets the bandwidth to the maximum, limited by the short-term bound. That bound is reset when a state starts
    /// that accelerates. draft-ietf-ccwg-bbr-05, section 5.6.1: BBRBoundBWForModel.
    pub(super) fn bound_bandwidth(&mut self) {
        let max = self.max_bandwidth();
        self.bandwidth = self.short_term_bandwidth.map_or(max, |bound| bound.min(max));
    }
}

/// Returns `units` times `gain`.
pub(super) fn scale_by_gain(units: u32, gain: u32) -> u32 {
    (u64::from(units) * u64::from(gain) / u64::from(GAIN_ONE)) as u32
}

impl RateSample {
    /// Returns the delivery rate of the sample: RS.delivery_rate.
    pub(super) fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.delivered, self.interval)
    }
}

impl Bbr3 {
    /// Updates the largest delivery rate and delivered volume of this round. draft-ietf-ccwg-bbr-05, section
    /// 5.5.10.3: BBRUpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        let latest = &mut self.model.latest;
        *latest = (latest.0.max(sample.bandwidth()), latest.1.max(sample.delivered));
        if !is_beyond(self.losses.round_end, sample.prior_delivered) {
            self.losses.round_end = self.deliveries.delivered();
            self.losses.round_began = true;
        }
    }

    /// At the start of a round, resets the largest delivery rate and volume to those of the sample.
    /// draft-ietf-ccwg-bbr-05, section 5.5.10.3: BBRAdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &RateSample) {
        if self.losses.round_began {
            self.model.latest = (sample.bandwidth(), sample.delivered);
        }
    }

    /// Updates the round, the bandwidth and, after a round with losses, the short-term bounds.
    /// draft-ietf-ccwg-bbr-05, section 5.5.10.3: BBRUpdateCongestionSignals.
    pub(super) fn update_congestion_signals(&mut self, sample: &RateSample, cwnd: u32) {
        self.rounds.update(sample.prior_delivered, self.deliveries.delivered());
        self.model.add_sample(sample.bandwidth(), sample.application_limited);
        if !self.losses.round_began {
            return;
        }
        if self.losses.in_round && !self.state.accelerates() {
            self.model.reduce_short_term(cwnd);
        }
        self.losses.in_round = false;
    }
}
