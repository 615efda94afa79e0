//! Derives bounds of the volume in flight from losses. Draft-ietf-ccwg-bbr-05, sections 5.3.1.3, 5.5.10.2 and 5.5.11.

use hol_base::Time;

use super::{AckSample, Bandwidth, Bbr3, LostSegment, RateSample, RecoveryKind, State};
use crate::bbr3::model::{BETA, scale_by_gain};

/// The maximum tolerated share of lost data in per cent. draft-ietf-ccwg-bbr-05, section 2.7: BBR.LossThresh.
const LOSS_THRESHOLD: u64 = 2;
const LOSS_DENOMINATOR: u64 = 100;
/// Number of discontiguous ranges lost in one round that ends startup. draft-ietf-ccwg-bbr-05, section 5.3.1.3:
/// BBRStartupFullLossCnt.
const STARTUP_RANGES: u32 = 6;

/// The losses of the current round, and the state to restore if they were spurious.
#[derive(Debug, Clone, Default)]
pub(super) struct Losses {
    /// BBR.loss_round_delivered: the number of delivered units at which the round ends, when a segment sent after
    /// that delivery is acknowledged.
    pub(super) round_end: u32,
    /// Whether this acknowledgment started a round of losses: BBR.loss_round_start.
    pub(super) round_began: bool,
    /// Whether data were lost in this round: BBR.loss_in_round.
    pub(super) in_round: bool,
    /// Number of discontiguous ranges lost in this round.
    ranges: u32,
    /// The sequence number that follows the last lost range of this round.
    range_end: Option<u32>,
    /// BBR.bw_probe_samples: whether acknowledgments may still show losses of a probe for bandwidth, to which the
    /// sender has not reacted yet.
    pub(super) bw_probe_samples: bool,
    undo: Option<Undo>,
    /// Whether the last recovery has ended, so that the next loss saves a new state to restore. Until that loss, a
    /// D-SACK may still undo the last recovery.
    recovery_ended: bool,
}

/// The state that is restored if a recovery turns out to be spurious. draft-ietf-ccwg-bbr-05, section 5.5.11.1.
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

/// Returns whether the share of lost units exceeds the threshold of 2 %: IsInflightTooHigh.
pub(super) fn is_too_high(lost: u32, in_flight: u32) -> bool {
    u64::from(lost) * LOSS_DENOMINATOR > u64::from(in_flight) * LOSS_THRESHOLD
}

impl Losses {
    /// Records that recovery has ended.
    pub(super) fn end_recovery(&mut self) {
        self.recovery_ended = true;
    }

    /// Resets the losses of this round, a part of BBRResetCongestionSignals.
    pub(super) fn reset(&mut self) {
        self.in_round = false;
    }
}

impl Bbr3 {
    /// Handles a segment that was detected as lost. draft-ietf-ccwg-bbr-05, section 5.5.10.2: BBRHandleLostPacket.
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

    /// Lowers inflight_longterm after too many losses, and ends ProbeBW_UP. draft-ietf-ccwg-bbr-05, section
    /// 5.5.10.2: BBRHandleInflightTooHigh.
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

    /// Ends startup after a round in fast recovery with too many losses (2 % in six ranges).
    /// draft-ietf-ccwg-bbr-05, section 5.3.1.3: BBRCheckStartupHighLoss.
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

    /// Saves the state before the first loss of a recovery. If the recovery was spurious, restoring this state
    /// undoes all reactions, such as the end of a probe. draft-ietf-ccwg-bbr-05, section 5.5.11.1:
    /// BBRSaveStateUponLoss.
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

    /// Handles the start of fast recovery. draft-ietf-ccwg-bbr-05, section 5.6.4.4: BBROnEnterFastRecovery.
    pub(crate) fn on_congestion(&mut self, cwnd: u32) {
        self.save_window(cwnd);
        self.save_state();
    }

    /// Handles a retransmission timeout. draft-ietf-ccwg-bbr-05, section 5.6.4.4: BBROnEnterRTO.
    pub(crate) fn on_timeout(&mut self) {
        self.save_state();
        self.recovery = RecoveryKind::Timeout;
    }

    /// Handles a spurious loss detection. draft-ietf-ccwg-bbr-05, section 5.5.11.2:
    /// BBRHandleSpuriousLossDetection.
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

/// Returns the volume in flight at which the share of lost data crossed the threshold, possibly within this
/// segment. draft-ietf-ccwg-bbr-05, section 5.5.10.2: BBRInflightAtLoss.
pub(super) fn in_flight_at_loss(in_flight: u32, lost: u32, units: u32) -> u32 {
    let before = in_flight.saturating_sub(units);
    let lost_before = u64::from(lost.saturating_sub(units));
    let prefix = (u64::from(before) * LOSS_THRESHOLD).saturating_sub(lost_before * LOSS_DENOMINATOR)
        / (LOSS_DENOMINATOR - LOSS_THRESHOLD);
    before.saturating_add(prefix as u32)
}
