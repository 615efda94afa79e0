//! Pacing rate and window. Draft-ietf-ccwg-bbr-05, section 5.6.

use hol_base::Duration;

use super::{AckSample, Bandwidth, Bbr3, PROBE_RTT_CWND_GAIN, RecoveryKind, STARTUP_GAIN, State};
use crate::pacing::Pacing;

/// Number of segments in flight that keep a path busy if the receiver acknowledges every second one.
/// draft-ietf-ccwg-bbr-05, section 2.7: BBR.MinPipeCwnd.
const MIN_WINDOW: u32 = 4;
/// Percentage by which the pacing rate stays below the bandwidth. draft-ietf-ccwg-bbr-05, section 5.6.2:
/// BBR.PacingMarginPercent.
const PACING_MARGIN: u64 = 1;
/// The round-trip time assumed before the first sample. draft-ietf-ccwg-bbr-05, section 5.6.2: BBRInitPacingRate.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Minimum number of segments in a burst. draft-ietf-ccwg-bbr-05, section 5.6.3: BBRSetSendQuantum.
const MIN_BURST: u32 = 2;

impl Bbr3 {
    /// Returns the minimum window in units: BBR.MinPipeCwnd.
    pub(super) fn min_window(&self) -> u32 {
        MIN_WINDOW * self.quantum
    }

    /// Returns the bandwidth-delay product times `gain`. draft-ietf-ccwg-bbr-05, section 5.6.4.2: BBRBDPMultiple.
    fn bdp_with_gain(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        match self.round_trip.min {
            None => self.initial_window,
            Some(min) => bandwidth.bdp(min, gain),
        }
    }

    /// Returns the bandwidth-delay product: BBR.bdp.
    pub(super) fn bandwidth_delay_product(&self) -> u32 {
        self.bdp_with_gain(self.model.bandwidth, super::GAIN_ONE)
    }

    /// Returns the bandwidth-delay product, limited by the window. draft-ietf-ccwg-bbr-05, section 5.3.3.5:
    /// BBRTargetInflight.
    pub(super) fn target_in_flight(&self, cwnd: u32) -> u32 {
        self.bandwidth_delay_product().min(cwnd)
    }

    /// Raises `units` to at least three bursts and the minimum window, and by two segments in ProbeBW_UP.
    /// draft-ietf-ccwg-bbr-05, sections 5.5.8 and 5.6.4.2: BBRQuantizationBudget.
    fn with_quantization_budget(&self, units: u32) -> u32 {
        let budget = 3 * self.burst_units();
        let probes = if self.state == State::Up { 2 * self.quantum } else { 0 };
        units.max(budget).max(self.min_window()).saturating_add(probes)
    }

    fn burst_units(&self) -> u32 {
        Pacing::burst_segments(self.pacing.rate, self.segment, MIN_BURST) * self.quantum
    }

    /// Returns the volume in flight that `bandwidth` times `gain` needs: BBRInflight.
    pub(super) fn in_flight_at(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        self.with_quantization_budget(self.bdp_with_gain(bandwidth, gain))
    }

    /// Returns the volume in flight that the current bandwidth times `gain` needs: BBRInflight.
    pub(super) fn in_flight_of(&self, gain: u32) -> u32 {
        self.in_flight_at(self.model.bandwidth, gain)
    }

    /// Returns the window of ProbeRTT. draft-ietf-ccwg-bbr-05, section 5.6.4.5: BBRProbeRTTCwnd.
    pub(super) fn probe_rtt_window(&self) -> u32 {
        self.bdp_with_gain(self.model.bandwidth, PROBE_RTT_CWND_GAIN).max(self.min_window())
    }

    /// Saves the window, to be restored after recovery or ProbeRTT. draft-ietf-ccwg-bbr-05, section 5.6.4.4:
    /// BBRSaveCwnd.
    pub(super) fn save_window(&mut self, cwnd: u32) {
        let is_good = self.recovery == RecoveryKind::None && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// Sets the window after an acknowledgment. draft-ietf-ccwg-bbr-05, section 5.6.4.6: BBRSetCwnd.
    pub(super) fn set_window(&mut self, ack: &AckSample, cwnd: &mut u32) {
        let before = std::mem::replace(&mut self.recovery, ack.recovery);
        if before != RecoveryKind::None && ack.recovery == RecoveryKind::None {
            *cwnd = (*cwnd).max(self.prior_cwnd);
        }
        if ack.recovery == RecoveryKind::None {
            self.losses.end_recovery();
        }
        let product = self.bdp_with_gain(self.model.bandwidth, self.state.cwnd_gain());
        let max = self.with_quantization_budget(product.saturating_add(self.aggregation.excess()));
        let grown = cwnd.saturating_add(ack.delivered);
        if self.full.reached {
            *cwnd = grown.min(max);
        } else if *cwnd < max || self.deliveries.delivered() < self.initial_window {
            *cwnd = grown;
        }
        *cwnd = (*cwnd).max(self.min_window());
        if self.state == State::ProbeRtt {
            *cwnd = (*cwnd).min(self.probe_rtt_window());
        }
        *cwnd = (*cwnd).min(self.bound());
    }

    /// Returns the largest window that the model allows. draft-ietf-ccwg-bbr-05, section 5.6.4.7:
    /// BBRBoundCwndForModel.
    fn bound(&self) -> u32 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.model.long_term_in_flight,
            State::Cruise | State::ProbeRtt => self.in_flight_with_headroom(),
            State::Startup | State::Drain => None,
        };
        let bounds = long.into_iter().chain(self.model.short_term_in_flight);
        bounds.min().unwrap_or(u32::MAX).max(self.min_window())
    }

    /// Sets the pacing rate after an acknowledgment. draft-ietf-ccwg-bbr-05, section 5.6.2: BBRSetPacingRate.
    pub(super) fn set_pacing_rate(&mut self, ack: &AckSample) {
        if !self.rtt_known && ack.smoothed_rtt.is_some() {
            self.init_pacing_rate(ack.smoothed_rtt, ack.min_rtt);
        }
        self.set_pacing_rate_with_gain(self.model.bandwidth, self.state.pacing_gain(), ack.min_rtt);
    }

    /// Sets the initial pacing rate from the initial window and the round-trip time. draft-ietf-ccwg-bbr-05,
    /// section 5.6.2: BBRInitPacingRate.
    pub(super) fn init_pacing_rate(&mut self, rtt: Option<Duration>, min_rtt: Option<Duration>) {
        self.rtt_known = rtt.is_some();
        let bandwidth = Bandwidth::of(self.initial_window, rtt.unwrap_or(NOMINAL_RTT));
        self.pacing.rate = 0;
        self.set_pacing_rate_with_gain(bandwidth, STARTUP_GAIN, min_rtt);
    }

    /// Sets the pacing rate to `bandwidth` times `gain`; the rate never falls until the pipe is full.
    /// draft-ietf-ccwg-bbr-05, section 5.6.2: BBRSetPacingRateWithGain.
    pub(super) fn set_pacing_rate_with_gain(
        &mut self,
        bandwidth: Bandwidth,
        gain: u32,
        min_rtt: Option<Duration>,
    ) {
        let rate = bandwidth.octets_per_second(self.octets_per_unit(), gain) * (100 - PACING_MARGIN) / 100;
        if self.full.reached || rate > self.pacing.rate {
            let min_rtt = min_rtt.or(self.round_trip.min).map_or(u64::MAX, Duration::as_nanos);
            self.pacing = Pacing::new(rate, min_rtt / 1000, self.segment, MIN_BURST);
        }
    }
}
