//! The window of BBR: a bound for the case that the pace is wrong. Draft, section 4.2.3.

use hol_base::Duration;

use super::bandwidth::{Bandwidth, UNIT};
use super::{Acknowledged, Bbr, Mode, Recovery, least_train};
use crate::pacing::Pacing;

/// Segments that keep a path busy whose receiver acknowledges every second one. Draft, section 4.2.3.3: BBRMinPipeCwnd.
const LEAST_WINDOW: u32 = 4;
/// Segments of the first window, RFC 6928: TCP_INIT_CWND.
const INITIAL_WINDOW: u32 = 10;
/// No more is allowed for acknowledgments that are gathered than comes in this time: bbr_extra_acked_max_us.
const LONGEST_AGGREGATION: Duration = Duration::from_millis(100);

/// What is remembered through losses and probes.
#[derive(Debug, Clone)]
pub(super) struct Memory {
    /// The last window that was good.
    window: u32,
    /// What the acknowledgment before told of recovery.
    recovery: Recovery,
    /// The first round of a recovery: no more leaves than arrived. Draft, section 4.2.3.4.
    conserves: bool,
}

impl Default for Memory {
    fn default() -> Self {
        Self { window: 0, recovery: Recovery::None, conserves: false }
    }
}

impl Memory {
    /// A round has passed.
    pub(super) fn end_conservation(&mut self) {
        self.conserves = false;
    }

    pub(super) fn on_timeout(&mut self) {
        self.recovery = Recovery::Timeout;
    }

    /// The window from before.
    pub(super) fn restored(&self, cwnd: u32) -> u32 {
        cwnd.max(self.window)
    }
}

impl Bbr {
    /// What is in flight at the least.
    pub(super) fn least_window(&self) -> u32 {
        LEAST_WINDOW * self.quantum
    }

    /// Loss or a probe is about to cut a window that is good. Draft, section 4.2.3.4: BBRSaveCwnd.
    pub(super) fn remember(&mut self, cwnd: u32) {
        let is_good = self.memory.recovery == Recovery::None && self.mode != Mode::ProbeRoundTrip;
        self.memory.window = if is_good { cwnd } else { self.memory.window.max(cwnd) };
    }

    /// Segments that a sender hands on at once, in units.
    fn train(&self) -> u32 {
        let rate = self.pacing().rate;
        Pacing::train(rate, self.segment, least_train(rate)) * self.quantum
    }

    /// `gain` times the product of bandwidth and delay. Draft, section 4.2.3.2: BBRInflight.
    fn product(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        match self.least_rtt.rtt {
            None => INITIAL_WINDOW * self.quantum,
            Some(least) => bandwidth.fills(least, gain),
        }
    }

    /// Room for what the ends of the path hold, three trains, and an even number for delayed ACKs: bbr_quantization_budget.
    fn with_budget(&self, units: u32) -> u32 {
        let pair = 2 * self.quantum;
        let probes = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        let even = units.saturating_add(3 * self.train()).div_ceil(pair).saturating_mul(pair);
        even + if probes { pair } else { 0 }
    }

    /// What is to be in flight.
    pub(super) fn in_flight_target(&self, bandwidth: Bandwidth, gain: u32) -> u32 {
        self.with_budget(self.product(bandwidth, gain))
    }

    /// Of what is `in_flight`, what will be in the network when the next segment leaves: bbr_packets_in_net_at_edt.
    pub(super) fn in_network(&self, in_flight: u32, ack: &Acknowledged) -> u32 {
        let wait = ack.departure.max(ack.now).saturating_since(ack.now);
        let departing = if self.pacing_gain > UNIT { self.train() } else { 0 };
        (in_flight + departing).saturating_sub(self.estimate().delivers(wait))
    }

    /// The window goes towards its target by what is acknowledged. Draft, section 4.2.3.5: BBRSetCwnd.
    pub(super) fn set_window(&mut self, ack: &Acknowledged, cwnd: &mut u32) {
        if ack.delivered > 0 {
            let (window, conserves) = self.through_recovery(ack, *cwnd);
            *cwnd = if conserves { window } else { self.towards_target(window, ack.delivered) };
        }
        if self.mode == Mode::ProbeRoundTrip {
            *cwnd = (*cwnd).min(self.least_window());
        }
    }

    fn towards_target(&self, window: u32, delivered: u32) -> u32 {
        let product = self.product(self.estimate(), self.cwnd_gain);
        let target = self.with_budget(product.saturating_add(self.allowance()));
        let grown = window.saturating_add(delivered);
        let starts = self.deliveries.delivered() < INITIAL_WINDOW * self.quantum;
        let window = if self.full.reached {
            grown.min(target)
        } else if window < target || starts {
            grown
        } else {
            window
        };
        window.max(self.least_window())
    }

    /// For acknowledgments that come at once: bbr_ack_aggregation_cwnd.
    fn allowance(&self) -> u32 {
        let most = self.estimate().delivers(LONGEST_AGGREGATION);
        if self.full.reached { self.aggregation.excess().min(most) } else { 0 }
    }

    /// The window less what is lost; in the first round of a recovery what is delivered may leave, and after it the window is
    /// that of before. `true` if the first is the case. Draft, section 4.2.3.4.
    fn through_recovery(&mut self, ack: &Acknowledged, cwnd: u32) -> (u32, bool) {
        let conserved = ack.in_flight + ack.delivered;
        let mut window = if ack.newly_lost > 0 { cwnd.saturating_sub(ack.newly_lost).max(1) } else { cwnd };
        let before = std::mem::replace(&mut self.memory.recovery, ack.recovery);
        if ack.recovery == Recovery::Fast && before != Recovery::Fast {
            self.memory.conserves = true;
            self.rounds.next = self.deliveries.delivered();
            window = conserved;
        } else if before != Recovery::None && ack.recovery == Recovery::None {
            self.memory.conserves = false;
            window = self.memory.restored(window);
        }
        (if self.memory.conserves { window.max(conserved) } else { window }, self.memory.conserves)
    }
}
