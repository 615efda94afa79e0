//! The model of the path: rounds, bandwidth, and their bounds. Draft-ietf-ccwg-bbr-05, sections 5.3.1.2 and 5.5.

use super::{Bandwidth, Bbr3, GAIN_ONE, RateSample};
use crate::delivery_rate::is_beyond;

/// The multiplicative decrease of the short-term model. Draft, section 2.7: BBR.Beta.
pub(super) const BETA: u32 = GAIN_ONE * 7 / 10;
/// Growth of the delivery rate which shows that the pipe is not full yet. Draft, section 5.3.1.2.
const FULL_GROWTH: u32 = GAIN_ONE * 5 / 4;
/// Number of rounds without this growth after which the pipe counts as full. Draft, section 5.3.1.2.
const FULL_ROUNDS: u32 = 3;

/// Packet-timed round trips. Draft, section 5.5.1.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    /// Number of rounds so far: BBR.round_count.
    pub(super) count: u32,
    /// The delivered units at which the next round starts: BBR.next_round_delivered.
    next: u32,
    /// BBR.round_start: whether this acknowledgment started a round.
    pub(super) began: bool,
    /// Rounds since the last probe for bandwidth: BBR.rounds_since_bw_probe.
    pub(super) since_probe: u32,
}

impl Rounds {
    /// Starts a round; it ends when data sent from now on are acknowledged. BBRStartRound.
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

/// The state of the test whether the pipe is full. Draft, section 5.3.1.2.
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    /// The delivery rate that later rates are compared with: BBR.full_bw.
    bandwidth: Bandwidth,
    rounds: u32,
    /// Whether the pipe is full since the last reset: BBR.full_bw_now.
    pub(super) now_reached: bool,
    /// Whether the pipe was ever full: BBR.full_bw_reached.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Restarts the search for the full bandwidth from `bandwidth`: BBRResetFullBW.
    pub(super) fn reset(&mut self, bandwidth: Bandwidth) {
        *self = Self { bandwidth, reached: self.reached, ..Self::default() };
    }

    /// Checks whether the delivery rate has stopped growing, at the start of a round that the application did
    /// not limit: BBRCheckFullBWReached.
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

/// The model of the path: its bandwidth and the volume in flight. Draft, sections 2.8 to 2.10 and 5.5.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    /// BBR.max_bw_filter: the maxima of the previous and of this cycle.
    greatest: [Bandwidth; 2],
    /// BBR.bw: the bandwidth that determines the pacing rate.
    pub(super) bandwidth: Bandwidth,
    /// The bound of the bandwidth after recent losses: BBR.bw_shortterm.
    pub(super) short_term_bandwidth: Option<Bandwidth>,
    /// The bound of the volume in flight after recent losses: BBR.inflight_shortterm.
    pub(super) short_term_in_flight: Option<u32>,
    /// The largest volume in flight without too many losses, by the probes so far: BBR.inflight_longterm.
    pub(super) long_term_in_flight: Option<u32>,
    /// BBR.bw_latest and BBR.inflight_latest: the maxima of the latest round.
    pub(super) latest: (Bandwidth, u32),
}

impl Model {
    /// Returns BBR.max_bw, the maximum of two cycles.
    pub(super) fn max_bandwidth(&self) -> Bandwidth {
        self.greatest[0].max(self.greatest[1])
    }

    /// Adds a delivery rate to the filter. An application-limited rate counts only if it is not below the estimate.
    /// Draft, section 5.5.5: BBRUpdateMaxBw.
    pub(super) fn add_sample(&mut self, rate: Bandwidth, application_limited: bool) {
        if rate >= self.max_bandwidth() || !application_limited {
            self.greatest[1] = self.greatest[1].max(rate);
        }
    }

    /// Starts the next cycle of the filter, unless this one has no sample. Draft, section 5.5.6: BBRAdvanceMaxBwFilter.
    pub(super) fn start_cycle(&mut self) {
        if self.greatest[1] != Bandwidth::default() {
            self.greatest = [self.greatest[1], Bandwidth::default()];
        }
    }

    /// Removes the short-term bounds: BBRResetShortTermModel.
    pub(super) fn reset_short_term_model(&mut self) {
        (self.short_term_bandwidth, self.short_term_in_flight) = (None, None);
    }

    /// Lowers the short-term bounds after a round with losses. Draft, section 5.5.10.3: BBRInitLowerBounds, BBRLossLowerBounds.
    pub(super) fn reduce_short_term(&mut self, cwnd: u32) {
        let bandwidth = self.short_term_bandwidth.unwrap_or_else(|| self.max_bandwidth());
        let in_flight = self.short_term_in_flight.unwrap_or(cwnd);
        self.short_term_bandwidth = Some(self.latest.0.max(bandwidth.times(BETA)));
        self.short_term_in_flight = Some(self.latest.1.max(scale_by_gain(in_flight, BETA)));
    }

    /// Limits the bandwidth by the short-term bound, which is reset on entering a state that accelerates.
    /// Draft, section 5.6.1: BBRBoundBWForModel.
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
    /// Returns the delivery rate: RS.delivery_rate.
    pub(super) fn bandwidth(&self) -> Bandwidth {
        Bandwidth::of(self.delivered, self.interval)
    }
}

impl Bbr3 {
    /// Updates the largest delivery rate and volume of this round. Draft, section 5.5.10.3: BBRUpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, sample: &RateSample) {
        let latest = &mut self.model.latest;
        *latest = (latest.0.max(sample.bandwidth()), latest.1.max(sample.delivered));
        if !is_beyond(self.losses.round_end, sample.prior_delivered) {
            self.losses.round_end = self.deliveries.delivered();
            self.losses.round_began = true;
        }
    }

    /// Starts the maxima of a new round. Draft, section 5.5.10.3: BBRAdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self, sample: &RateSample) {
        if self.losses.round_began {
            self.model.latest = (sample.bandwidth(), sample.delivered);
        }
    }

    /// Updates the round, the bandwidth and, after a round with losses, the short-term bounds. Draft, section
    /// 5.5.10.3: BBRUpdateCongestionSignals.
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
