//! The state of loss recovery.

use hol_wire::tcp::SeqNum;

use crate::Config;
use crate::persist::Persist;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rate_halving::RateReduction;
use crate::recovery_phase::Phase;
use crate::reordering::Reordering;
use crate::sack::DuplicateReports;
use crate::timeout::Timeouts;
use crate::tlp::LossProbe;
use crate::undo::Undo;

/// The state of loss recovery: its phase, and the state of its algorithms.
#[derive(Debug, Clone)]
pub(crate) struct LossRecovery {
    phase: Phase,
    /// SND.NXT when the phase began. The acknowledgment of all data before it ends the phase. RFC
    /// 6582 section 3.2.
    recover: SeqNum,
    pub(crate) timeouts: Timeouts,
    pub(crate) persist: Persist,
    pub(crate) undo: Undo,
    pub(crate) prr: Prr,
    pub(crate) halving: RateReduction,
    pub(crate) rack: Rack,
    pub(crate) probe: LossProbe,
    pub(crate) reordering: Reordering,
    pub(crate) duplicates: DuplicateReports,
}

impl LossRecovery {
    /// Creates the state of a connection without losses.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Open,
            recover: SeqNum::default(),
            timeouts: Timeouts::default(),
            persist: Persist::default(),
            undo: Undo::default(),
            prr: Prr::default(),
            halving: RateReduction::default(),
            rack: Rack::default(),
            probe: LossProbe::default(),
            reordering: Reordering::new(config.dupthresh),
            duplicates: DuplicateReports::default(),
        }
    }

    /// Returns the phase of loss recovery.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the sequence number up to which data must be acknowledged to end the phase. RFC 6582
    /// section 3.2.
    pub(crate) fn recover(&self) -> SeqNum {
        self.recover
    }

    /// Starts a phase of recovery. It lasts until the data sent so far, up to `nxt`, are
    /// acknowledged.
    pub(crate) fn begin(&mut self, phase: Phase, nxt: SeqNum) {
        (self.phase, self.recover) = (phase, nxt);
    }

    /// Changes the phase, but not the sequence number that ends it.
    pub(crate) fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Sets the end of the phase: the acknowledgment of all data sent so far, up to `nxt`.
    pub(crate) fn end_phase_at(&mut self, nxt: SeqNum) {
        self.recover = nxt;
    }

    /// Returns whether the phase is Open, so that no loss is suspected.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }
}
