//! Pace and window. Draft-ietf-ccwg-bbr-05, section 5.6.

use hol_base::Duration;

use super::{Acknowledged, Bandwidth, Bbr3, PROBE_RTT_CWND_GAIN, Recovery, STARTUP_GAIN, State};
use crate::pacing::Pacing;

/// Segments that keep a path busy if every second one is acknowledged. Draft, section 2.7: BBR.MinPipeCwnd.
const LEAST_WINDOW: u32 = 4;
/// Paced this much below the bandwidth, in per cent. Draft, section 5.6.2: BBR.PacingMarginPercent.
const MARGIN: u64 = 1;
/// The round trip taken before there is one. Draft, section 5.6.2: BBRInitPacingRate.
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// Segments of the smallest quantum. Draft, section 5.6.3: BBRSetSendQuantum.
const LEAST_TRAIN: u32 = 2;

impl Bbr3 {
    /// BBR.MinPipeCwnd in units.
    pub(super) fn least_window(&self) -> u32 {
        LEAST_WINDOW * self.quantum
    }

    /// BBRBDPMultiple. Draft, section 5.6.4.2.
    fn product(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        match self.round_trip.least {
            None => self.initial_window,
            Some(least) => bandwidth.fills(least, gain),
        }
    }

    /// BBR.bdp.
    pub(super) fn bandwidth_delay_product(&self) -> u32 {
        self.product(self.model.bandwidth, super::UNIT)
    }

    /// BBRTargetInflight. Draft, section 5.3.3.5.
    pub(super) fn target_in_flight(&self, cwnd: u32) -> u32 {
        self.bandwidth_delay_product().min(cwnd)
    }

    /// BBRQuantizationBudget: three trains at the ends of the path. Draft, sections 5.5.8 and 5.6.4.2.
    fn with_budget(&self, units: u32) -> u32 {
        let budget = 3 * self.train();
        let probes = if self.state == State::Up { 2 * self.quantum } else { 0 };
        units.max(budget).max(self.least_window()).saturating_add(probes)
    }

    fn train(&self) -> u32 {
        Pacing::train(self.pacing.rate, self.segment, LEAST_TRAIN) * self.quantum
    }

    /// BBRInflight at a bandwidth.
    pub(super) fn in_flight_at(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        self.with_budget(self.product(bandwidth, gain))
    }

    /// BBRInflight.
    pub(super) fn in_flight_of(&self, gain: u32) -> u32 {
        self.in_flight_at(self.model.bandwidth, gain)
    }

    /// BBRProbeRTTCwnd. Draft, section 5.6.4.5.
    pub(super) fn probe_rtt_window(&self) -> u32 {
        self.product(self.model.bandwidth, PROBE_RTT_CWND_GAIN).max(self.least_window())
    }

    /// BBRSaveCwnd. Draft, section 5.6.4.4.
    pub(super) fn remember(&mut self, cwnd: u32) {
        let is_good = self.recovery == Recovery::None && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// BBRSetCwnd. Draft, section 5.6.4.6.
    pub(super) fn set_window(&mut self, ack: &Acknowledged, cwnd: &mut u32) {
        let before = std::mem::replace(&mut self.recovery, ack.recovery);
        if before != Recovery::None && ack.recovery == Recovery::None {
            *cwnd = (*cwnd).max(self.prior_cwnd);
        }
        if ack.recovery == Recovery::None {
            self.losses.settle();
        }
        let product = self.product(self.model.bandwidth, self.state.cwnd_gain());
        let most = self.with_budget(product.saturating_add(self.aggregation.excess()));
        let grown = cwnd.saturating_add(ack.delivered);
        if self.full.reached {
            *cwnd = grown.min(most);
        } else if *cwnd < most || self.deliveries.delivered() < self.initial_window {
            *cwnd = grown;
        }
        *cwnd = (*cwnd).max(self.least_window());
        if self.state == State::ProbeRtt {
            *cwnd = (*cwnd).min(self.probe_rtt_window());
        }
        *cwnd = (*cwnd).min(self.bound());
    }

    /// BBRBoundCwndForModel. Draft, section 5.6.4.7.
    fn bound(&self) -> u32 {
        let long = match self.state {
            State::Down | State::Refill | State::Up => self.model.long_in_flight,
            State::Cruise | State::ProbeRtt => self.in_flight_with_headroom(),
            State::Startup | State::Drain => None,
        };
        let bounds = long.into_iter().chain(self.model.short_in_flight);
        bounds.min().unwrap_or(u32::MAX).max(self.least_window())
    }

    /// BBRSetPacingRate. Draft, section 5.6.2.
    pub(super) fn set_pace(&mut self, ack: &Acknowledged) {
        if !self.rtt_known && ack.smoothed_rtt.is_some() {
            self.pace_by_round_trip(ack.smoothed_rtt, ack.least_rtt);
        }
        self.pace(self.model.bandwidth, self.state.pacing_gain(), ack.least_rtt);
    }

    /// BBRInitPacingRate. Draft, section 5.6.2.
    pub(super) fn pace_by_round_trip(&mut self, rtt: Option<Duration>, least_rtt: Option<Duration>) {
        self.rtt_known = rtt.is_some();
        let bandwidth = Bandwidth::of(self.initial_window, rtt.unwrap_or(NOMINAL_RTT));
        self.pacing.rate = 0;
        self.pace(bandwidth, STARTUP_GAIN, least_rtt);
    }

    /// BBRSetPacingRateWithGain. Draft, section 5.6.2.
    pub(super) fn pace(&mut self, bandwidth: Bandwidth, gain: u32, least_rtt: Option<Duration>) {
        let rate = bandwidth.octets_per_second(self.octets(), gain) * (100 - MARGIN) / 100;
        if self.full.reached || rate > self.pacing.rate {
            let least_rtt = least_rtt.or(self.round_trip.least).map_or(u64::MAX, Duration::as_nanos);
            self.pacing = Pacing::new(rate, least_rtt / 1000, self.segment, LEAST_TRAIN);
        }
    }
}
