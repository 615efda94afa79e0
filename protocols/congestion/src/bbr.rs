//! BBR version 1, congestion control by bottleneck bandwidth and round-trip time: Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00 ("draft" below); and the additions of Linux 6.12's
//! tcp_bbr.c.

pub(crate) mod aggregation;
pub(crate) mod bandwidth;
mod policer;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;
mod window;

use hol_base::{Duration, Rng, Seed, Time};

use crate::delivery_rate::{DeliveryState, RateSample, is_beyond};
use crate::pacing::Pacing;
use crate::ticks;
use aggregation::{Aggregation, ROUNDS_PER_WINDOW};
use bandwidth::{Bandwidth, GAIN_ONE, MaxFilter};
use policer::{DeliveryTotals, Policer, PolicerUpdate};
use window::SavedState;

/// 2/ln 2: the least gain with which the rate doubles each round. Draft, section 4.1.1.2: BBRHighGain.
const HIGH_GAIN: u32 = GAIN_ONE * 2885 / 1000 + 1;
/// The inverse of the startup gain, which drains startup's queue in one round. Draft, section 4.3.3.
const DRAIN_GAIN: u32 = GAIN_ONE * 1000 / 2885;
/// The limit of the data in flight, in bandwidth-delay products, with room for delayed ACKs. Draft, section 4.2.3.2.
const CWND_GAIN: u32 = 2 * GAIN_ONE;
/// The gains of a cycle: one phase probes, the next drains the probe's queue, six cruise. Draft, section 4.3.4.1.
const CYCLE_GAINS: [u32; 8] =
    [GAIN_ONE * 5 / 4, GAIN_ONE * 3 / 4, GAIN_ONE, GAIN_ONE, GAIN_ONE, GAIN_ONE, GAIN_ONE, GAIN_ONE];
/// Number of phases among which the first phase is drawn at random: all but the one that drains. Draft, section
/// 4.3.4.2; bbr_cycle_rand.
const START_PHASE_CHOICES: u64 = 7;
/// Length of the window of the maximum bandwidth, in rounds. Draft, section 4.1.2.3: BtlBwFilterLen.
const BANDWIDTH_ROUNDS: u32 = 10;
/// Lifetime of the minimum round-trip time. Draft, section 4.1.2.4: RTpropFilterLen.
const RTT_LIFETIME: Duration = Duration::from_secs(10);
/// Minimum duration of ProbeRTT. Draft, section 4.3.5: ProbeRTTDuration.
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Growth of the bandwidth which shows that the pipe is not full yet. Draft, section 4.3.2.2.
const FULL_GROWTH: u32 = GAIN_ONE * 5 / 4;
/// Number of rounds without this growth after which the pipe counts as full. Draft, section 4.3.2.2.
const FULL_ROUNDS: u32 = 3;
/// Percentage by which the pacing rate stays below the bandwidth, so that queues shrink: bbr_pacing_margin_percent (Linux 5.1).
const PACING_MARGIN: u64 = 1;
/// Rate in octets per second below which segments are sent one by one: 1.2 Mbit/s, bbr_min_tso_rate.
const SLOW_RATE: u64 = 1_200_000 / 8;
/// The round-trip time assumed before the first sample: bbr_init_pacing_rate_from_rtt.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The kind of loss recovery in progress, in ascending order of severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryKind {
    /// No recovery.
    None,
    /// Fast recovery.
    Fast,
    /// Recovery after a retransmission timeout.
    Timeout,
}

/// The state of a connection when it opens.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionStart {
    /// The time at which the connection opens.
    pub now: Time,
    /// The shortest round-trip time of the handshake.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// Octets of a full-sized segment.
    pub segment: u32,
    /// Seed of the controller's random choices.
    pub seed: Seed,
}

/// The effect of an acknowledgment, in units of the window: [`crate::CongestionWindow`].
#[derive(Debug, Clone, Copy)]
pub struct AckSample {
    /// The time of the acknowledgment.
    pub now: Time,
    /// Units newly delivered.
    pub delivered: u32,
    /// Units newly reported as CE-marked, if marks are counted.
    pub marked: u32,
    /// Whether the congestion window limited the sender. Linux: tcp_is_cwnd_limited.
    pub is_cwnd_limited: bool,
    /// SND.UNA and SND.NXT.
    pub progress: (u32, u32),
    /// Units newly considered lost.
    pub newly_lost: u32,
    /// Units ever considered lost.
    pub lost: u32,
    /// Whether the peer has discarded data that it had SACKed (RFC 2018 section 8).
    pub reneged: bool,
    /// Whether the peer may have delayed the acknowledgment, because it covers only one short segment.
    pub may_be_delayed: bool,
    /// The latest round-trip sample of this acknowledgment.
    pub rtt: Option<Duration>,
    /// The shortest round-trip time of the connection.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// Units in flight before the acknowledgment.
    pub prior_in_flight: u32,
    /// Units in flight after the acknowledgment.
    pub in_flight: u32,
    /// The loss recovery in progress.
    pub recovery: RecoveryKind,
    /// When the pacer allows the next segment; it may be in the past.
    pub departure: Time,
}

#[cfg(test)]
impl AckSample {
    /// Returns the acknowledgment of a segment that was the only one in flight and took `rtt`.
    pub(crate) fn one_segment(now: Time, rtt: Duration) -> Self {
        Self {
            now,
            delivered: 1,
            marked: 0,
            is_cwnd_limited: true,
            progress: (0, 0),
            newly_lost: 0,
            lost: 0,
            reneged: false,
            may_be_delayed: false,
            rtt: Some(rtt),
            min_rtt: Some(rtt),
            smoothed_rtt: Some(rtt),
            prior_in_flight: 1,
            in_flight: 0,
            recovery: RecoveryKind::None,
            departure: now,
        }
    }
}

/// The state of the state machine. Draft, section 4.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Finds the bandwidth, doubling the rate each round.
    Startup,
    /// Empties the queue that startup filled.
    Drain,
    /// Probes for more bandwidth from time to time, and shares it.
    ProbeBandwidth,
    /// Limits the data in flight for a short time, so that queues are empty and the round-trip time is minimal.
    ProbeRoundTrip,
}

/// Round trips, counted by delivered units. Draft, section 4.1.1.3.
#[derive(Debug, Clone, Default)]
struct Rounds {
    count: u32,
    /// BBR.next_round_delivered: the next round starts when a segment is acknowledged that was sent after this many
    /// units had been delivered.
    next: u32,
    /// Whether this acknowledgment started a round.
    began: bool,
}

/// The state of the test whether the pipe is full: the bandwidth when it last grew enough, and the number of rounds
/// since then. Draft, section 4.3.2.2.
#[derive(Debug, Clone, Default)]
struct FullPipe {
    bandwidth: Bandwidth,
    rounds: u32,
    reached: bool,
}

/// The minimum round-trip time of the last ten seconds. Draft, sections 4.1.2.4 and 4.3.5.
#[derive(Debug, Clone, Default)]
struct MinRtt {
    rtt: Option<Duration>,
    at: Time,
    /// In ProbeRTT: the time at which the data in flight fell to the minimum window.
    low_flight_since: Option<Time>,
    /// In ProbeRTT: whether a round has passed since then.
    round_passed: bool,
}

/// The state of a connection's BBR.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    /// Units per segment.
    quantum: u32,
    /// Octets per segment.
    segment: u32,
    chance: Rng,
    pub(crate) deliveries: DeliveryState,
    mode: Mode,
    bandwidth: MaxFilter,
    rounds: Rounds,
    full: FullPipe,
    min_rtt: MinRtt,
    policer: Policer,
    aggregation: Aggregation,
    /// The index of the current phase in `CYCLE_GAINS`.
    phase: usize,
    /// When this phase began.
    phase_since: Time,
    /// Whether the connection restarts from idle.
    restarts: bool,
    memory: SavedState,
    pacing_gain: u32,
    cwnd_gain: u32,
    pacing: Pacing,
    /// Whether the pacing rate is based on a measured round-trip time.
    rtt_known: bool,
}

impl Bbr {
    /// Creates the state before the connection opens; [`begin`](Self::begin) must be called before any other function.
    pub(crate) fn new(quantum: u32) -> Self {
        Self {
            quantum,
            segment: quantum,
            chance: Seed(0).rng(),
            deliveries: DeliveryState::default(),
            mode: Mode::Startup,
            bandwidth: MaxFilter::default(),
            rounds: Rounds::default(),
            full: FullPipe::default(),
            min_rtt: MinRtt::default(),
            policer: Policer::default(),
            aggregation: Aggregation::default(),
            phase: 0,
            phase_since: Time::ZERO,
            restarts: false,
            memory: SavedState::default(),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing: Pacing { rate: 0, burst: 1 },
            rtt_known: false,
        }
    }

    /// Starts the controller when the connection opens, with a window of `cwnd`. Draft, section 4.3.1.
    pub(crate) fn begin(&mut self, beginning: ConnectionStart, cwnd: u32) {
        let ConnectionStart { now, min_rtt, smoothed_rtt, segment, seed } = beginning;
        *self = Self { segment, chance: seed.rng(), ..Self::new(self.quantum) };
        self.deliveries = DeliveryState::begin(now, self.quantum);
        self.rounds.next = self.deliveries.delivered();
        self.min_rtt = MinRtt { rtt: min_rtt, at: now, ..MinRtt::default() };
        self.aggregation.begin(now);
        self.policer.reset(self.tally(0));
        self.init_pacing_rate(cwnd, smoothed_rtt, min_rtt);
    }

    /// Returns the pacing rate and the size of bursts.
    pub(crate) fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Handles an acknowledgment: updates the model of the path, then the pacing rate and the window. Draft, section 3.5.
    pub(crate) fn on_acknowledged(&mut self, ack: &AckSample, cwnd: &mut u32, ssthresh: &mut u32) {
        let min = ack.min_rtt.unwrap_or_default();
        let sample = self.deliveries.sample(ack.now, ack.delivered, ack.reneged, min);
        self.update_bandwidth(ack, sample);
        if sample.is_some() && ack.delivered > 0 {
            self.update_aggregation(ack, *cwnd);
        }
        if self.mode == Mode::ProbeBandwidth && self.phase_is_over(ack) {
            self.next_phase();
        }
        self.check_full_pipe(sample);
        self.drain(ack, ssthresh);
        self.update_round_trip(ack, sample, cwnd);
        self.set_gains();
        self.set_pacing_rate(ack, *cwnd);
        self.set_window(ack, cwnd);
    }

    /// Handles the first transmission after an idle period. Draft, section 4.3.4.4.
    pub(crate) fn on_restart(&mut self, now: Time, cwnd: &mut u32) {
        if !self.deliveries.is_application_limited() {
            return;
        }
        self.restarts = true;
        self.aggregation.begin(now);
        match self.mode {
            Mode::ProbeBandwidth => self.set_pacing_rate_with_gain(self.estimate(), GAIN_ONE, None),
            Mode::ProbeRoundTrip => self.end_probe(now, cwnd),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Handles a retransmission timeout, which counts as the end of a round; `lost` is the number of units
    /// ever considered lost. Linux: bbr_set_state.
    pub(crate) fn on_timeout(&mut self, lost: u32) {
        self.memory.on_timeout();
        self.full.bandwidth = Bandwidth::default();
        self.rounds.began = true;
        self.look_for_policer(true, false, lost);
    }

    /// Handles a spurious loss detection. Linux: bbr_undo_cwnd.
    pub(crate) fn on_undo(&mut self, lost: u32) {
        (self.full.bandwidth, self.full.rounds) = (Bandwidth::default(), 0);
        self.policer.reset(self.tally(lost));
    }

    /// Handles the start of recovery. Linux: bbr_ssthresh.
    pub(crate) fn on_congestion(&mut self, cwnd: u32) {
        self.save_window(cwnd);
    }

    /// Returns the bandwidth to use: that of a policer if one was detected, otherwise the filtered maximum.
    fn estimate(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or_else(|| self.bandwidth.greatest())
    }

    fn tally(&self, lost: u32) -> DeliveryTotals {
        DeliveryTotals { at: self.deliveries.delivered_at(), delivered: self.deliveries.delivered(), lost }
    }

    /// Returns the number of octets per unit of the window.
    fn octets_per_unit(&self) -> u32 {
        self.segment / self.quantum
    }

    /// Updates the round and the maximum bandwidth of ten rounds; an application-limited sample counts only if it is
    /// not below this maximum. Draft, section 4.1.2.
    fn update_bandwidth(&mut self, ack: &AckSample, sample: Option<RateSample>) {
        self.rounds.began = false;
        let Some(sample) = sample else { return };
        if !is_beyond(self.rounds.next, sample.prior_delivered) {
            self.rounds =
                Rounds { count: self.rounds.count + 1, next: self.deliveries.delivered(), began: true };
            self.memory.end_conservation();
        }
        self.look_for_policer(ack.newly_lost > 0, sample.application_limited, ack.lost);
        let bandwidth = Bandwidth::of(sample.delivered, sample.interval);
        if !sample.application_limited || bandwidth >= self.bandwidth.greatest() {
            self.bandwidth.add(BANDWIDTH_ROUNDS, self.rounds.count, bandwidth);
        }
    }

    fn look_for_policer(&mut self, losses: bool, application_limited: bool, lost: u32) {
        let turn = PolicerUpdate {
            tally: self.tally(lost),
            losses,
            application_limited,
            round_began: self.rounds.began,
            octets_per_unit: self.octets_per_unit(),
        };
        if self.policer.observe(turn, self.mode == Mode::ProbeBandwidth) {
            self.begin_cycle();
        }
    }

    fn update_aggregation(&mut self, ack: &AckSample, cwnd: u32) {
        if self.rounds.began {
            self.aggregation.on_round(ROUNDS_PER_WINDOW);
        }
        self.aggregation.on_acked(self.deliveries.delivered_at(), ack.delivered, self.estimate(), cwnd);
    }

    /// Returns whether the phase of the cycle is over. A phase lasts a round trip; a probe lasts longer until it causes
    /// a loss or has filled its target in flight, and a drain ends early if the queue is gone. Draft, section 4.3.4.3.
    fn phase_is_over(&self, ack: &AckSample) -> bool {
        let lasted = self.deliveries.delivered_at().saturating_since(self.phase_since);
        let full_length = self.min_rtt.rtt.is_some_and(|min| lasted > min);
        let in_network = || self.in_network(ack.prior_in_flight, ack);
        let target = |gain| self.in_flight_target(self.bandwidth.greatest(), gain);
        match self.pacing_gain {
            GAIN_ONE => full_length,
            probing if probing > GAIN_ONE => {
                full_length && (ack.newly_lost > 0 || in_network() >= target(probing))
            }
            _ => full_length || in_network() <= target(GAIN_ONE),
        }
    }

    fn next_phase(&mut self) {
        self.phase = (self.phase + 1) % CYCLE_GAINS.len();
        self.phase_since = self.deliveries.delivered_at();
    }

    fn begin_cycle(&mut self) {
        self.mode = Mode::ProbeBandwidth;
        self.phase = CYCLE_GAINS.len() - 1 - self.chance.below(START_PHASE_CHOICES) as usize;
        self.next_phase();
    }

    /// Checks whether the pipe is full: the bandwidth has grown by less than a quarter in three rounds. Draft, section 4.3.2.2.
    fn check_full_pipe(&mut self, sample: Option<RateSample>) {
        let limited = sample.is_some_and(|sample| sample.application_limited);
        if self.full.reached || !self.rounds.began || limited {
            return;
        }
        let bandwidth = self.bandwidth.greatest();
        if bandwidth >= self.full.bandwidth.times(FULL_GROWTH) {
            self.full = FullPipe { bandwidth, ..FullPipe::default() };
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    /// Drains the queue of startup when the pipe is full. Draft, section 4.3.3.
    fn drain(&mut self, ack: &AckSample, ssthresh: &mut u32) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            *ssthresh = self.in_flight_target(self.bandwidth.greatest(), GAIN_ONE);
        }
        if self.mode == Mode::Drain {
            let target = self.in_flight_target(self.bandwidth.greatest(), GAIN_ONE);
            if self.in_network(ack.in_flight, ack) <= target {
                self.begin_cycle();
            }
        }
    }

    /// Updates the least round-trip time of ten seconds, and probes for it when it has expired. Draft, sections 4.1.2.4 and 4.3.5.
    fn update_round_trip(&mut self, ack: &AckSample, sample: Option<RateSample>, cwnd: &mut u32) {
        let expired = ticks(ack.now) > ticks(self.min_rtt.at + RTT_LIFETIME);
        let alone = sample.is_some_and(|sample| sample.delivered <= self.quantum);
        let delayed = ack.may_be_delayed && alone;
        if let Some(rtt) = ack.rtt
            && (self.min_rtt.rtt.is_none_or(|min| rtt < min) || (expired && !delayed))
        {
            (self.min_rtt.rtt, self.min_rtt.at) = (Some(rtt), ack.now);
        }
        if expired && !self.restarts && self.mode != Mode::ProbeRoundTrip {
            self.mode = Mode::ProbeRoundTrip;
            self.save_window(*cwnd);
            self.min_rtt.low_flight_since = None;
        }
        if self.mode == Mode::ProbeRoundTrip {
            self.probe_round_trip(ack, cwnd);
        }
        if ack.delivered > 0 {
            self.restarts = false;
        }
    }

    /// Keeps little in flight for at least 200 ms and a round. Draft, section 4.3.5.
    fn probe_round_trip(&mut self, ack: &AckSample, cwnd: &mut u32) {
        // Samples of data sent meanwhile do not show the bandwidth.
        self.deliveries.limit_by_application(ack.in_flight);
        if self.min_rtt.low_flight_since.is_none() {
            if ack.in_flight <= self.min_window() {
                self.min_rtt.low_flight_since = Some(ack.now);
                self.min_rtt.round_passed = false;
                self.rounds.next = self.deliveries.delivered();
            }
            return;
        }
        self.min_rtt.round_passed |= self.rounds.began;
        if self.min_rtt.round_passed {
            self.end_probe(ack.now, cwnd);
        }
    }

    /// Ends the probe if it has lasted long enough.
    fn end_probe(&mut self, now: Time, cwnd: &mut u32) {
        let since = self.min_rtt.low_flight_since;
        if since.is_none_or(|since| ticks(now) <= ticks(since) + ticks(Time::ZERO + PROBE_RTT)) {
            return;
        }
        self.min_rtt.at = now;
        *cwnd = self.memory.restored_window(*cwnd);
        if self.full.reached { self.begin_cycle() } else { self.mode = Mode::Startup }
    }

    fn set_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBandwidth if self.policer.bandwidth().is_some() => (GAIN_ONE, CWND_GAIN),
            Mode::ProbeBandwidth => (CYCLE_GAINS[self.phase], CWND_GAIN),
            Mode::ProbeRoundTrip => (GAIN_ONE, GAIN_ONE),
        };
    }

    /// Sets the pacing rate from the bandwidth; until the pipe is full the rate never falls. Draft, section 4.2.1.
    fn set_pacing_rate(&mut self, ack: &AckSample, cwnd: u32) {
        if !self.rtt_known && ack.smoothed_rtt.is_some() {
            self.init_pacing_rate(cwnd, ack.smoothed_rtt, ack.min_rtt);
        }
        self.set_pacing_rate_with_gain(self.estimate(), self.pacing_gain, ack.min_rtt);
    }

    /// Sets the first pacing rate: a window per round trip, times the gain of startup. Draft, section 4.2.1.
    fn init_pacing_rate(&mut self, cwnd: u32, rtt: Option<Duration>, min_rtt: Option<Duration>) {
        self.rtt_known = rtt.is_some();
        let bandwidth = Bandwidth::of(cwnd, rtt.unwrap_or(NOMINAL_RTT));
        self.pacing.rate = 0;
        self.set_pacing_rate_with_gain(bandwidth, HIGH_GAIN, min_rtt);
    }

    fn set_pacing_rate_with_gain(&mut self, bandwidth: Bandwidth, gain: u32, min_rtt: Option<Duration>) {
        let rate = bandwidth.octets_per_second(self.octets_per_unit(), gain) * (100 - PACING_MARGIN) / 100;
        if self.full.reached || rate > self.pacing.rate {
            let min_rtt = min_rtt.or(self.min_rtt.rtt).map_or(u64::MAX, Duration::as_nanos);
            self.pacing = Pacing::new(rate, min_rtt / 1000, self.segment, min_burst_segments(rate));
        }
    }
}

/// Returns the minimum number of segments in a burst: bbr_min_tso_segs.
fn min_burst_segments(rate: u64) -> u32 {
    if rate < SLOW_RATE { 1 } else { 2 }
}
