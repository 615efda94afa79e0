//! BBR version 3, draft-ietf-ccwg-bbr-05 ("draft" below). It controls congestion by bottleneck bandwidth,
//! round-trip time and the volume in flight that the path carries without excessive loss.
//!
//! The draft has no response to ECN, so there is none here. This implementation counts units of the window where the draft counts octets.

mod cycle;
mod loss;
mod model;
mod round_trip;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;
mod window;

use hol_base::{Rng, Seed, Time};

use crate::bbr::aggregation::{Aggregation, ROUNDS_PER_WINDOW};
use crate::bbr::bandwidth::{Bandwidth, GAIN_ONE};
use crate::bbr::{AckSample, ConnectionStart, RecoveryKind};
use crate::delivery_rate::{DeliveryAtSend, DeliveryState, RateSample};
use crate::pacing::Pacing;
use cycle::{AckPhase, Cycle};
use loss::Losses;
use model::{FullPipe, Model, Rounds};
use round_trip::RoundTrip;

/// 4 ln 2: the least gain with which the rate doubles each round. Draft, section 5.3.1.1: BBR.StartupPacingGain.
const STARTUP_GAIN: u32 = GAIN_ONE * 277 / 100;
/// Drains the queue of startup in one round. Draft, section 5.3.2: BBR.DrainPacingGain.
const DRAIN_GAIN: u32 = GAIN_ONE / 2;
/// The pacing gain in ProbeBW_DOWN. Draft, section 5.3.3.1.
const DOWN_GAIN: u32 = GAIN_ONE * 9 / 10;
/// The pacing gain in ProbeBW_UP. Draft, section 5.3.3.4.
const UP_GAIN: u32 = GAIN_ONE * 5 / 4;
/// The limit of the data in flight, in bandwidth-delay products. Draft, section 2.5: BBR.DefaultCwndGain.
const CWND_GAIN: u32 = 2 * GAIN_ONE;
/// The gain of the window in ProbeBW_UP. Draft, section 5.6.1.
const UP_CWND_GAIN: u32 = GAIN_ONE * 9 / 4;
/// The gain of the window in ProbeRTT. Draft, section 5.3.4.1: BBR.ProbeRTTCwndGain.
const PROBE_RTT_CWND_GAIN: u32 = GAIN_ONE / 2;
/// Number of rounds after which Drain ends even if a queue seems to remain. Draft, section 5.3.2.
const DRAIN_ROUNDS: u32 = 3;

/// The state of the state machine. Draft, section 5.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Finds the bandwidth, doubling the rate each round.
    Startup,
    /// Drains the queue of startup.
    Drain,
    /// ProbeBW_DOWN: sends more slowly than the path delivers, so that queues shrink and other flows find room.
    Down,
    /// ProbeBW_CRUISE: sends as fast as the path delivers.
    Cruise,
    /// ProbeBW_REFILL: fills the pipe for a round, so that losses in ProbeBW_UP result from probing alone.
    Refill,
    /// ProbeBW_UP: probes for more bandwidth.
    Up,
    /// Limits the data in flight for a short time, so that queues are empty and the round-trip time is minimal.
    ProbeRtt,
}

impl State {
    /// Returns whether this is a state of ProbeBW. Draft, section 5.3.3.6: IsInAProbeBWState.
    const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Returns whether this state accelerates. Draft, section 5.3.3.6: BBRIsProbingBW.
    const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Returns the pacing gain. Draft, section 5.6.1.
    const fn pacing_gain(self) -> u32 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::Down => DOWN_GAIN,
            Self::Up => UP_GAIN,
            Self::Cruise | Self::Refill | Self::ProbeRtt => GAIN_ONE,
        }
    }

    /// Returns the gain of the window. Draft, section 5.6.1.
    const fn cwnd_gain(self) -> u32 {
        match self {
            Self::Up => UP_CWND_GAIN,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => CWND_GAIN,
        }
    }
}

/// A segment that was detected as lost.
#[derive(Debug, Clone, Copy)]
pub struct LostSegment {
    /// The delivery state when the segment was sent.
    pub departure: DeliveryAtSend,
    /// Size of the segment in units of the window.
    pub units: u32,
    /// Units ever considered lost, including this segment.
    pub lost: u32,
    /// The segment's first sequence number and the one after its last, which show whether lost segments are adjacent.
    pub range: (u32, u32),
}

/// The state of a connection's BBR.
#[derive(Debug, Clone)]
pub(crate) struct Bbr3 {
    /// Units per segment.
    quantum: u32,
    /// Octets per segment.
    segment: u32,
    initial_window: u32,
    chance: Rng,
    pub(crate) deliveries: DeliveryState,
    state: State,
    rounds: Rounds,
    full: FullPipe,
    model: Model,
    losses: Losses,
    cycle: Cycle,
    round_trip: RoundTrip,
    aggregation: Aggregation,
    /// The round in which Drain began: BBR.drain_start_round.
    drain_start_round: u32,
    /// Whether the connection restarts from idle: BBR.idle_restart.
    restarts: bool,
    /// The window to restore after recovery or ProbeRTT: BBR.prior_cwnd.
    prior_cwnd: u32,
    /// The recovery state at the previous acknowledgment.
    recovery: RecoveryKind,
    pacing: Pacing,
    rtt_known: bool,
}

impl Bbr3 {
    /// Creates the state before the connection opens; [`begin`](Self::begin) must be called before any other function.
    pub(crate) fn new(quantum: u32) -> Self {
        Self {
            quantum,
            segment: quantum,
            initial_window: 10 * quantum,
            chance: Seed(0).rng(),
            deliveries: DeliveryState::default(),
            state: State::Startup,
            rounds: Rounds::default(),
            full: FullPipe::default(),
            model: Model::default(),
            losses: Losses::default(),
            cycle: Cycle::default(),
            round_trip: RoundTrip::default(),
            aggregation: Aggregation::default(),
            drain_start_round: 0,
            restarts: false,
            prior_cwnd: 0,
            recovery: RecoveryKind::None,
            pacing: Pacing { rate: 0, burst: 1 },
            rtt_known: false,
        }
    }

    /// Starts when the connection opens, with a window of `cwnd`. Draft, section 5.2.1: BBROnInit.
    pub(crate) fn begin(&mut self, beginning: ConnectionStart, cwnd: u32) {
        let ConnectionStart { now, min_rtt, smoothed_rtt, segment, seed } = beginning;
        *self = Self { segment, initial_window: cwnd, chance: seed.rng(), ..Self::new(self.quantum) };
        self.deliveries = DeliveryState::begin(now, self.quantum);
        self.rounds.begin(self.deliveries.delivered());
        self.losses.round_end = self.deliveries.delivered();
        self.round_trip = RoundTrip::begin(now, min_rtt);
        self.aggregation.begin(now);
        self.init_pacing_rate(smoothed_rtt, min_rtt);
    }

    /// Returns the pacing rate and the size of bursts.
    pub(crate) fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Records the transmission of a segment, with `in_flight` units before it and `lost` units ever
    /// considered lost. Draft, section 4.1.2.2.
    pub(crate) fn on_segment_sent(
        &mut self,
        now: Time,
        outstanding: bool,
        in_flight: u32,
        lost: u32,
    ) -> DeliveryAtSend {
        let in_flight = in_flight + self.quantum;
        self.deliveries.on_segment_sent(now, outstanding).with_counts(in_flight, lost)
    }

    /// Handles an acknowledgment. Draft, section 5.2.3: BBRUpdateOnACK.
    pub(crate) fn on_acknowledged(&mut self, ack: &AckSample, cwnd: &mut u32) {
        let min = ack.min_rtt.unwrap_or_default();
        let sample = self.deliveries.sample(ack.now, ack.delivered, ack.reneged, min);
        self.rounds.began = false;
        self.losses.round_began = false;
        if let Some(sample) = sample {
            self.update_latest_delivery_signals(&sample);
            self.update_congestion_signals(&sample, *cwnd);
        }
        self.update_aggregation(ack, *cwnd);
        if let Some(sample) = sample {
            self.check_full_bandwidth(&sample);
        }
        self.check_startup_done(ack, sample.as_ref());
        self.check_drain_done(ack);
        if ack.delivered > 0 {
            self.update_cycle(ack, sample.as_ref(), *cwnd);
        }
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack, cwnd);
        if let Some(sample) = sample {
            self.advance_latest_delivery_signals(&sample);
        }
        self.model.bound_bandwidth();
        self.set_pacing_rate(ack);
        self.set_window(ack, cwnd);
    }

    /// Handles the first transmission after an idle period. Draft, section 5.4.1: BBRHandleRestartFromIdle.
    pub(crate) fn on_restart(&mut self, now: Time, cwnd: &mut u32) {
        if !self.deliveries.is_application_limited() {
            return;
        }
        self.restarts = true;
        self.aggregation.begin(now);
        if self.state.probes_bandwidth() {
            self.set_pacing_rate_with_gain(self.model.bandwidth, GAIN_ONE, None);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now, cwnd);
        }
    }

    /// Returns the number of octets per unit of the window.
    fn octets_per_unit(&self) -> u32 {
        self.segment / self.quantum
    }

    fn update_aggregation(&mut self, ack: &AckSample, cwnd: u32) {
        if self.rounds.began {
            // Draft, section 5.5.9: in Startup the bandwidth is still underestimated, so the excess is overestimated.
            self.aggregation.on_round(if self.full.reached { ROUNDS_PER_WINDOW } else { 1 });
        }
        if ack.delivered > 0 {
            let bandwidth = self.model.bandwidth;
            self.aggregation.on_acked(ack.now, ack.delivered, bandwidth, cwnd);
        }
    }

    /// Checks whether the full bandwidth has been reached. Draft, section 5.3.1.2: BBRCheckFullBWReached.
    fn check_full_bandwidth(&mut self, sample: &RateSample) {
        if self.rounds.began && !sample.application_limited {
            self.full.check_growth(sample.bandwidth());
        }
    }

    /// Changes from Startup to Drain when the pipe is full. Draft, section 5.3.1.1: BBRCheckStartupDone.
    fn check_startup_done(&mut self, ack: &AckSample, sample: Option<&RateSample>) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_high_loss(ack, sample);
        if self.full.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// Ends Drain when the queue is empty, or after too many rounds. Draft, section 5.3.2: BBRCheckDrainDone.
    fn check_drain_done(&mut self, ack: &AckSample) {
        let lasts_long = self.rounds.count > self.drain_start_round + DRAIN_ROUNDS;
        if self.state == State::Drain && (ack.in_flight <= self.in_flight_of(GAIN_ONE) || lasts_long) {
            self.start_down(ack.now);
        }
    }
}
