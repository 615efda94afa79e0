//! The minimum round-trip time, and ProbeRTT, which measures it. Draft-ietf-ccwg-bbr-05, sections 5.3.4 and 5.5.7.

use hol_base::{Duration, Time};

use super::{AckPhase, AckSample, Bbr3, State};

/// Interval after which a new ProbeRTT is due. draft-ietf-ccwg-bbr-05, section 2.13: BBR.ProbeRTTInterval.
pub(super) const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum duration of ProbeRTT. draft-ietf-ccwg-bbr-05, section 2.13: BBR.ProbeRTTDuration.
pub(super) const PROBE_DURATION: Duration = Duration::from_millis(200);
/// Lifetime of the minimum round-trip time. draft-ietf-ccwg-bbr-05, section 2.13: BBR.MinRTTFilterLen.
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);

/// The state of the minimum round-trip time and of ProbeRTT.
#[derive(Debug, Clone, Default)]
pub(super) struct RoundTrip {
    /// The minimum round-trip time of the last ten seconds: BBR.min_rtt.
    pub(super) min: Option<Duration>,
    /// When `min` was measured: BBR.min_rtt_stamp.
    min_at: Time,
    /// The minimum round-trip time of the last five seconds: BBR.probe_rtt_min_delay.
    probed: Option<Duration>,
    /// When `probed` was measured: BBR.probe_rtt_min_stamp.
    probed_at: Time,
    /// Whether the five-second minimum `probed` has expired, so that ProbeRTT is due: BBR.probe_rtt_expired.
    expired: bool,
    /// When ProbeRTT may end: BBR.probe_rtt_done_stamp; `None` until the volume in flight is low enough.
    done_at: Option<Time>,
    /// Whether ProbeRTT has lasted a round: BBR.probe_rtt_round_done.
    round_done: bool,
}

impl RoundTrip {
    pub(super) fn begin(now: Time, min: Option<Duration>) -> Self {
        Self { min, min_at: now, probed: min, probed_at: now, ..Self::default() }
    }

    /// Updates the minimum round-trip time: BBRUpdateMinRTT.
    fn update(&mut self, now: Time, rtt: Option<Duration>) {
        self.expired = now > self.probed_at + PROBE_INTERVAL;
        if let Some(rtt) = rtt
            && (self.expired || self.probed.is_none_or(|probed| rtt < probed))
        {
            (self.probed, self.probed_at) = (Some(rtt), now);
        }
        let is_less = match (self.probed, self.min) {
            (Some(probed), Some(min)) => probed < min,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if is_less || now > self.min_at + MIN_RTT_LIFETIME {
            (self.min, self.min_at) = (self.probed, self.probed_at);
        }
    }
}

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, ack: &AckSample) {
        // The sample of a delayed acknowledgment is longer than the path.
        let rtt = ack.rtt.filter(|_| !ack.may_be_delayed || self.round_trip.min.is_none());
        self.round_trip.update(ack.now, rtt);
    }

    /// Enters ProbeRTT if its minimum round-trip time has expired, and handles acknowledgments in ProbeRTT:
    /// BBRCheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &AckSample, cwnd: &mut u32) {
        if self.state != State::ProbeRtt && self.round_trip.expired && !self.restarts {
            self.save_window(*cwnd);
            self.state = State::ProbeRtt;
            self.round_trip.done_at = None;
            self.cycle.ack_phase = AckPhase::Stopping;
            self.rounds.begin(self.deliveries.delivered());
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(ack, cwnd);
        }
        if ack.delivered > 0 {
            self.restarts = false;
        }
    }

    /// Handles an acknowledgment in ProbeRTT: BBRHandleProbeRTT.
    fn handle_probe_rtt(&mut self, ack: &AckSample, cwnd: &mut u32) {
        // Samples of data sent meanwhile do not show the bandwidth.
        self.deliveries.limit_by_application(ack.in_flight);
        if self.round_trip.done_at.is_none() {
            if ack.in_flight <= self.probe_rtt_window() {
                self.round_trip.done_at = Some(ack.now + PROBE_DURATION);
                self.round_trip.round_done = false;
                self.rounds.begin(self.deliveries.delivered());
            }
            return;
        }
        self.round_trip.round_done |= self.rounds.began;
        if self.round_trip.round_done {
            self.check_probe_rtt_done(ack.now, cwnd);
        }
    }

    /// Leaves ProbeRTT if it has lasted long enough: BBRCheckProbeRTTDone, BBRExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time, cwnd: &mut u32) {
        if self.round_trip.done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.round_trip.probed_at = now;
        *cwnd = (*cwnd).max(self.prior_cwnd);
        self.model.reset_short_term_model();
        if self.full.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}
