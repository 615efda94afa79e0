//! ProbeBW: down, cruise, refill, up. Draft-ietf-ccwg-bbr-05, section 5.3.3.

use hol_base::{Duration, Time};

use super::loss::is_too_high;
use super::model::scale_by_gain;
use super::{AckSample, Bandwidth, Bbr3, GAIN_ONE, RateSample, State};

/// Maximum number of rounds between two probes for bandwidth, so that Reno flows get their share.
/// draft-ietf-ccwg-bbr-05, section 5.3.3.5.
const RENO_ROUNDS: u32 = 63;
/// Minimum time between two probes. draft-ietf-ccwg-bbr-05, section 5.3.3.5.
const MIN_WAIT: Duration = Duration::from_secs(2);
/// Maximum random time that is added to [`MIN_WAIT`]. draft-ietf-ccwg-bbr-05, section 5.3.3.5.
const RANDOM_WAIT: Duration = Duration::from_secs(1);
/// The share of the volume in flight that is left to other flows. draft-ietf-ccwg-bbr-05, section 2.7:
/// BBR.Headroom.
const HEADROOM: u32 = GAIN_ONE * 15 / 100;
/// Maximum number of times that a probe doubles the growth per round of inflight_longterm. draft-ietf-ccwg-bbr-05,
/// section 5.3.3.6.
const MAX_DOUBLINGS: u32 = 30;

/// The phase in which the acknowledged data were sent. draft-ietf-ccwg-bbr-05, section 5.3.3.6: BBR.ack_phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AckPhase {
    #[default]
    None,
    Starting,
    Feedback,
    Stopping,
    Refilling,
}

/// The progress of the cycle of ProbeBW.
#[derive(Debug, Clone, Default)]
pub(super) struct Cycle {
    /// When the current wait or probe began: BBR.cycle_stamp.
    since: Time,
    /// Time from `since` to the next probe: BBR.bw_probe_wait.
    wait: Duration,
    pub(super) ack_phase: AckPhase,
    /// Acknowledged units per unit of growth of inflight_longterm: BBR.probe_up_cnt. With `None` the bound does
    /// not grow.
    up_count: Option<u32>,
    /// Acknowledged units that have not raised inflight_longterm yet: BBR.bw_probe_up_acks.
    up_acked: u32,
    /// Number of times that this probe has doubled the growth of inflight_longterm: BBR.bw_probe_up_rounds.
    up_rounds: u32,
}

impl Cycle {
    /// Starts to wait at `since` for the next probe.
    pub(super) fn wait_for(&mut self, wait: Duration, since: Time) {
        (self.wait, self.since) = (wait, since);
    }
}

impl Bbr3 {
    /// Enters the phase ProbeBW_DOWN: BBRStartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time) {
        self.losses.reset();
        self.model.latest = (Bandwidth::default(), 0);
        self.rounds.since_probe = self.chance.below(2) as u32;
        let random = Duration::from_nanos(self.chance.below(RANDOM_WAIT.as_nanos()));
        self.cycle.wait_for(MIN_WAIT + random, now);
        self.cycle.up_count = None;
        self.cycle.ack_phase = AckPhase::Stopping;
        self.rounds.begin(self.deliveries.delivered());
        self.state = State::Down;
    }

    /// Enters ProbeBW_REFILL: BBRStartProbeBW_REFILL.
    fn start_refill(&mut self) {
        self.model.reset_short_term_model();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.ack_phase = AckPhase::Refilling;
        self.rounds.begin(self.deliveries.delivered());
        self.state = State::Refill;
    }

    /// Enters the phase ProbeBW_UP: BBRStartProbeBW_UP.
    pub(super) fn start_up(&mut self, now: Time, rate: Bandwidth, cwnd: u32) {
        self.cycle.ack_phase = AckPhase::Starting;
        self.cycle.since = now;
        self.rounds.begin(self.deliveries.delivered());
        self.full.reset(rate);
        self.state = State::Up;
        self.raise_slope(cwnd);
    }

    /// Advances the cycle after an acknowledgment of new data: BBRUpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, ack: &AckSample, sample: Option<&RateSample>, cwnd: u32) {
        if !self.full.reached {
            return;
        }
        self.adapt_long_term_model(ack, sample, cwnd);
        let goes_down = self.state == State::Up && self.is_time_to_go_down(ack, sample, cwnd);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now, cwnd) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.rounds.began => {
                self.losses.bw_probe_samples = true;
                self.start_up(ack.now, sample.map(RateSample::bandwidth).unwrap_or_default(), cwnd);
            }
            State::Up if goes_down => self.start_down(ack.now),
            _ => {}
        }
    }

    /// Returns whether to probe for bandwidth: when the wait is over, or when the number of rounds reaches the
    /// number of segments in the target volume in flight (at most 63), as often as Reno would need.
    /// BBRIsTimeToProbeBW, BBRHasElapsedInPhase, BBRIsRenoCoexistenceProbeTime.
    fn is_time_to_probe(&self, now: Time, cwnd: u32) -> bool {
        let reno_rounds = (self.target_in_flight(cwnd) / self.quantum).min(RENO_ROUNDS);
        now > self.cycle.since + self.cycle.wait || self.rounds.since_probe >= reno_rounds
    }

    /// Returns whether so little is in flight that cruising may start: BBRIsTimeToCruise.
    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        let headroom = self.in_flight_with_headroom().is_none_or(|max| ack.in_flight <= max);
        headroom && ack.in_flight <= self.in_flight_at(self.model.max_bandwidth(), GAIN_ONE)
    }

    /// Returns whether probing has found no more bandwidth: BBRIsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &AckSample, sample: Option<&RateSample>, cwnd: u32) -> bool {
        let is_bound = self.model.long_term_in_flight.is_some_and(|max| cwnd >= max);
        if ack.is_cwnd_limited && is_bound {
            self.full.reset(sample.map(RateSample::bandwidth).unwrap_or_default());
            return false;
        }
        self.full.now_reached
    }

    /// Returns inflight_longterm minus the headroom, in units; `None` if inflight_longterm is unlimited.
    /// draft-ietf-ccwg-bbr-05: BBRInflightWithHeadroom.
    pub(super) fn in_flight_with_headroom(&self) -> Option<u32> {
        let max = self.model.long_term_in_flight?;
        let headroom = scale_by_gain(max, HEADROOM).max(self.quantum);
        Some(max.saturating_sub(headroom).max(self.min_window()))
    }

    /// Doubles the growth per round of inflight_longterm: BBRRaiseInflightLongtermSlope.
    fn raise_slope(&mut self, cwnd: u32) {
        let growth = u64::from(self.quantum) << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_DOUBLINGS);
        self.cycle.up_count = Some((u64::from(cwnd) / growth).max(1) as u32);
    }

    /// Raises inflight_longterm by one unit for each `up_count` acknowledged units: BBRProbeInflightLongtermUpward.
    fn grow_long_term(&mut self, ack: &AckSample, max: u32, cwnd: u32) {
        if !ack.is_cwnd_limited || cwnd < max {
            return;
        }
        let Some(count) = self.cycle.up_count else { return };
        self.cycle.up_acked += ack.delivered;
        let grown = self.cycle.up_acked / count;
        self.cycle.up_acked -= grown * count;
        self.model.long_term_in_flight = Some(max.saturating_add(grown));
        if self.rounds.began {
            self.raise_slope(cwnd);
        }
    }

    /// Adapts inflight_longterm and the bandwidth filter to an acknowledgment: BBRAdaptLongTermModel.
    fn adapt_long_term_model(&mut self, ack: &AckSample, sample: Option<&RateSample>, cwnd: u32) {
        if self.cycle.ack_phase == AckPhase::Starting && self.rounds.began {
            self.cycle.ack_phase = AckPhase::Feedback;
        }
        let Some(sample) = sample else { return };
        if self.cycle.ack_phase == AckPhase::Stopping && self.rounds.began {
            // One round after UP no sample belongs to it any more. Draft, section 5.5.6.
            self.losses.bw_probe_samples = false;
            self.cycle.ack_phase = AckPhase::None;
            if self.state.probes_bandwidth() && !sample.application_limited {
                self.model.start_cycle();
            }
        }
        let lost = ack.lost.wrapping_sub(sample.prior_lost);
        if is_too_high(lost, sample.in_flight) {
            return;
        }
        let Some(max) = self.model.long_term_in_flight else { return };
        let max = max.max(sample.in_flight);
        self.model.long_term_in_flight = Some(max);
        if self.state == State::Up {
            self.grow_long_term(ack, max, cwnd);
        }
    }
}
