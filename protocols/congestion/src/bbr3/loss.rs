//! Derives bounds of the volume in flight from losses. Draft-ietf-ccwg-bbr-05, sections 5.3.1.3, 5.5.10.2 and 5.5.11.

use hol_base::Time;

use super::{AckSample, Bandwidth, Bbr3, LostSegment, RateSample, RecoveryKind, State};
use crate::bbr3::model::{BETA, scale_by_gain};

/// The tolerated share of losses is 2 %. Draft, section 2.7: BBR.LossThresh.
const LOSS_THRESHOLD: u64 = 2;
const LOSS_DENOMINATOR: u64 = 100;
/// Number of lost ranges in a round that ends startup. Draft, section 5.3.1.3: BBRStartupFullLossCnt.
const STARTUP_RANGES: u32 = 6;

/// What the bounds need to know of recent losses.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// BBR.loss_round_delivered: the round ends when a segment is acknowledged that was sent after this many units had
    /// been delivered.
    pub(super) round_end: u32,
    /// Whether this acknowledgment started a round of losses: BBR.loss_round_start.
    pub(super) round_began: bool,
    /// Whether data were lost in this round: BBR.loss_in_round.
    pub(super) in_round: bool,
    /// Number of discontiguous ranges lost in this round.
    ranges: u32,
    /// The sequence number after the last of these ranges.
    range_end: Option<u32>,
    /// BBR.bw_probe_samples: whether acknowledgments still reflect a probe for bandwidth that has not been reacted to.
    pub(super) bw_probe_samples: bool,
    undo: Option<Undo>,
    /// Whether no recovery is in progress, so that the next loss saves a new state. Until then a D-SACK may still undo the last recovery.
    recovery_ended: bool,
}

/// The state that a spurious recovery restores. Draft, section 5.5.11.1.
#[derive(Debug, Clone, Copy)]
struct Undo {
    state: State,
    short_term_bandwidth: Option<Bandwidth>,
    short_term_in_flight: Option<u32>,
    long_term_in_flight: Option<u32>,
}

/// Returns the greater of two bounds; `None` means unlimited.
fn greater_bound<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    Some(one?.max(other?))
}

/// Returns whether the share of lost units exceeds the threshold: IsInflightTooHigh.
pub(super) fn is_too_high(lost: u32, in_flight: u32) -> bool {
    u64::from(lost) * LOSS_DENOMINATOR > u64::from(in_flight) * LOSS_THRESHOLD
}

impl Losses {
    /// Notes that no recovery is in progress.
    pub(super) fn end_recovery(&mut self) {
        self.recovery_ended = true;
    }

    /// Forgets the losses of this round: the part of BBRResetCongestionSignals that is not in the model.
    pub(super) fn reset(&mut self) {
        self.in_round = false;
    }
}

impl Bbr3 {
    /// Handles a segment that was detected as lost. Draft, section 5.5.10.2: BBRHandleLostPacket.
    pub(crate) fn on_lost(&mut self, now: Time, segment: &LostSegment, cwnd: u32) {
        if !self.losses.in_round {
            self.losses.round_end = self.deliveries.delivered();
            self.save_state();
        }
        self.losses.in_round = true;
        let (start, end) = segment.range;
        self.losses.ranges += u32::from(self.losses.range_end != Some(start));
        self.losses.range_end = Some(end);
        if !self.losses.bw_probe_samples {
            return;
        }
        let departure = segment.departure;
        let lost_since = segment.lost.wrapping_sub(departure.lost);
        if is_too_high(lost_since, departure.in_flight) {
            let at_loss = in_flight_at_loss(departure.in_flight, lost_since, segment.units);
            self.handle_too_high(now, at_loss, departure.application_limited, cwnd);
        }
    }

    /// Lowers inflight_longterm after too many losses, and ends ProbeBW_UP. Draft, section 5.5.10.2: BBRHandleInflightTooHigh.
    fn handle_too_high(&mut self, now: Time, in_flight: u32, application_limited: bool, cwnd: u32) {
        self.losses.bw_probe_samples = false;
        if !application_limited {
            self.model.long_term_in_flight =
                Some(in_flight.max(scale_by_gain(self.target_in_flight(cwnd), BETA)));
        }
        if self.state == State::Up {
            self.start_down(now);
        }
    }

    /// Ends startup after a round in fast recovery with too many losses. Draft, section 5.3.1.3: BBRCheckStartupHighLoss.
    pub(super) fn check_startup_high_loss(&mut self, ack: &AckSample, sample: Option<&RateSample>) {
        if !self.losses.round_began {
            return;
        }
        let ranges = std::mem::take(&mut self.losses.ranges);
        self.losses.range_end = None;
        let Some(sample) = sample else { return };
        let lost = ack.lost.wrapping_sub(sample.prior_lost);
        if ack.recovery == RecoveryKind::Fast
            && ranges >= STARTUP_RANGES
            && is_too_high(lost, sample.in_flight)
        {
            self.full.reached = true;
            self.model.long_term_in_flight = Some(self.bandwidth_delay_product().max(self.model.latest.1));
        }
    }

    /// Saves the state before the first loss. If the recovery was spurious, restoring this state undoes all responses,
    /// such as the end of a probe. Draft, section 5.5.11.1: BBRSaveStateUponLoss.
    fn save_state(&mut self) {
        if self.losses.undo.is_some() && !self.losses.recovery_ended {
            return;
        }
        self.losses.recovery_ended = false;
        let model = &self.model;
        self.losses.undo = Some(Undo {
            state: self.state,
            short_term_bandwidth: model.short_term_bandwidth,
            short_term_in_flight: model.short_term_in_flight,
            long_term_in_flight: model.long_term_in_flight,
        });
    }

    /// Handles the start of fast recovery. Draft, section 5.6.4.4: BBROnEnterFastRecovery.
    pub(crate) fn on_congestion(&mut self, cwnd: u32) {
        self.save_window(cwnd);
        self.save_state();
    }

    /// Handles a retransmission timeout. Draft, section 5.6.4.4: BBROnEnterRTO.
    pub(crate) fn on_timeout(&mut self) {
        self.save_state();
        self.recovery = RecoveryKind::Timeout;
    }

    /// Handles a spurious loss detection. Draft, section 5.5.11.2: BBRHandleSpuriousLossDetection.
    pub(crate) fn on_undo(&mut self, cwnd: u32) {
        self.losses.in_round = false;
        self.full.reset(Bandwidth::default());
        let Some(undo) = self.losses.undo.take() else { return };
        let model = &mut self.model;
        model.short_term_bandwidth = greater_bound(model.short_term_bandwidth, undo.short_term_bandwidth);
        model.short_term_in_flight = greater_bound(model.short_term_in_flight, undo.short_term_in_flight);
        model.long_term_in_flight = greater_bound(model.long_term_in_flight, undo.long_term_in_flight);
        if self.state == State::ProbeRtt || self.state == undo.state {
            return;
        }
        match undo.state {
            State::Startup => self.state = State::Startup,
            State::Up => self.start_up(self.deliveries.delivered_at(), Bandwidth::default(), cwnd),
            _ => {}
        }
    }
}

/// Returns the volume in flight that crossed the loss threshold, possibly within this segment. Draft, section
/// 5.5.10.2: BBRInflightAtLoss.
pub(super) fn in_flight_at_loss(in_flight: u32, lost: u32, units: u32) -> u32 {
    let before = in_flight.saturating_sub(units);
    let lost_before = u64::from(lost.saturating_sub(units));
    let prefix = (u64::from(before) * LOSS_THRESHOLD).saturating_sub(lost_before * LOSS_DENOMINATOR)
        / (LOSS_DENOMINATOR - LOSS_THRESHOLD);
    before.saturating_add(prefix as u32)
}
