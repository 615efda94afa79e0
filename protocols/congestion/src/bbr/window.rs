//! The window of BBR: an upper bound in case the pacing rate is wrong. Draft, section 4.2.3.

use hol_base::Duration;

use super::bandwidth::{Bandwidth, GAIN_ONE};
use super::{AckSample, Bbr, Mode, RecoveryKind, min_burst_segments};
use crate::pacing::Pacing;

/// Number of segments in flight that keep a path busy if the receiver acknowledges every second one.
/// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.3: BBRMinPipeCwnd.
const MIN_WINDOW: u32 = 4;
/// Initial window in segments, RFC 6928: TCP_INIT_CWND.
const INITIAL_WINDOW: u32 = 10;
/// The allowance for aggregated ACKs is at most the amount that arrives in this time: bbr_extra_acked_max_us.
const MAX_AGGREGATION: Duration = Duration::from_millis(100);

/// The state that BBR saves when it reduces the window for a recovery or a probe.
#[derive(Debug, Clone)]
pub(super) struct SavedState {
    /// The window before a recovery or a probe reduced it.
    window: u32,
    /// The state of loss recovery at the previous acknowledgment.
    recovery: RecoveryKind,
    /// Whether packets are conserved (the sender sends only as much as was delivered): true in the first round of
    /// a recovery. draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.4.
    conserves_packets: bool,
}

impl Default for SavedState {
    fn default() -> Self {
        Self { window: 0, recovery: RecoveryKind::None, conserves_packets: false }
    }
}

impl SavedState {
    /// Ends packet conservation, a round after recovery started.
    pub(super) fn end_conservation(&mut self) {
        self.conserves_packets = false;
    }

    pub(super) fn on_timeout(&mut self) {
        self.recovery = RecoveryKind::Timeout;
    }

    /// Returns the saved window, or `cwnd` if that is larger.
    pub(super) fn restored_window(&self, cwnd: u32) -> u32 {
        cwnd.max(self.window)
    }
}

impl Bbr {
    /// Returns the minimum window in units.
    pub(super) fn min_window(&self) -> u32 {
        MIN_WINDOW * self.quantum
    }

    /// Saves the window before a loss or a probe reduces it. draft-cardwell-iccrg-bbr-congestion-control-00,
    /// section 4.2.3.4: BBRSaveCwnd.
    pub(super) fn save_window(&mut self, cwnd: u32) {
        let is_good = self.memory.recovery == RecoveryKind::None && self.mode != Mode::ProbeRoundTrip;
        self.memory.window = if is_good { cwnd } else { self.memory.window.max(cwnd) };
    }

    /// Returns the size of a burst of the sender, in units.
    fn burst_units(&self) -> u32 {
        let rate = self.pacing().rate;
        Pacing::burst_segments(rate, self.segment, min_burst_segments(rate)) * self.quantum
    }

    /// Returns `gain` times the bandwidth-delay product. draft-cardwell-iccrg-bbr-congestion-control-00, section
    /// 4.2.3.2: BBRInflight.
    fn bdp_with_gain(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        match self.min_rtt.rtt {
            None => INITIAL_WINDOW * self.quantum,
            Some(min) => bandwidth.bdp(min, gain),
        }
    }

    /// Adds three bursts for the end hosts' queues and rounds up to an even number for delayed ACKs:
    /// bbr_quantization_budget.
    fn with_quantization_budget(&self, units: u32) -> u32 {
        let pair = 2 * self.quantum;
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        let even = units.saturating_add(3 * self.burst_units()).div_ceil(pair).saturating_mul(pair);
        even + if probes { pair } else { 0 }
    }

    /// Returns the target for the number of units in flight.
    pub(super) fn in_flight_target(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        self.with_quantization_budget(self.bdp_with_gain(bandwidth, gain))
    }

    /// Returns how many of the `in_flight` units will be in the network when the next segment is sent:
    /// bbr_packets_in_net_at_edt.
    pub(super) fn in_network(&self, in_flight: u32, ack: &AckSample) -> u32 {
        let wait = ack.departure.max(ack.now).saturating_since(ack.now);
        let departing = if self.pacing_gain > GAIN_ONE { self.burst_units() } else { 0 };
        (in_flight + departing).saturating_sub(self.estimate().units_in(wait))
    }

    /// Moves the window towards its target by the acknowledged amount.
    /// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.5: BBRSetCwnd.
    pub(super) fn set_window(&mut self, ack: &AckSample, cwnd: &mut u32) {
        if ack.delivered > 0 {
            let (window, conserves_packets) = self.window_in_recovery(ack, *cwnd);
            *cwnd = if conserves_packets { window } else { self.grown_towards_target(window, ack.delivered) };
        }
        if self.mode == Mode::ProbeRoundTrip {
            *cwnd = (*cwnd).min(self.min_window());
        }
    }

    fn grown_towards_target(&self, window: u32, delivered: u32) -> u32 {
        let product = self.bdp_with_gain(self.estimate(), self.cwnd_gain);
        let target = self.with_quantization_budget(product.saturating_add(self.aggregation_allowance()));
        let grown = window.saturating_add(delivered);
        let starts = self.deliveries.delivered() < INITIAL_WINDOW * self.quantum;
        let window = if self.full.reached {
            grown.min(target)
        } else if window < target || starts {
            grown
        } else {
            window
        };
        window.max(self.min_window())
    }

    /// Returns the allowance for aggregated ACKs, in units: bbr_ack_aggregation_cwnd.
    fn aggregation_allowance(&self) -> u32 {
        let max = self.estimate().units_in(MAX_AGGREGATION);
        if self.full.reached { self.aggregation.excess().min(max) } else { 0 }
    }

    /// Returns the window during recovery, and `true` in the recovery's first round. Losses reduce the window; in
    /// the first round only what was delivered may be sent; afterwards the saved window is restored.
    /// draft-cardwell-iccrg-bbr-congestion-control-00, section 4.2.3.4.
    fn window_in_recovery(&mut self, ack: &AckSample, cwnd: u32) -> (u32, bool) {
        let conserved = ack.in_flight + ack.delivered;
        let mut window = if ack.newly_lost > 0 { cwnd.saturating_sub(ack.newly_lost).max(1) } else { cwnd };
        let before = std::mem::replace(&mut self.memory.recovery, ack.recovery);
        if ack.recovery == RecoveryKind::Fast && before != RecoveryKind::Fast {
            self.memory.conserves_packets = true;
            self.rounds.next = self.deliveries.delivered();
            window = conserved;
        } else if before != RecoveryKind::None && ack.recovery == RecoveryKind::None {
            self.memory.conserves_packets = false;
            window = self.memory.restored_window(window);
        }
        (
            if self.memory.conserves_packets { window.max(conserved) } else { window },
            self.memory.conserves_packets,
        )
    }
}
