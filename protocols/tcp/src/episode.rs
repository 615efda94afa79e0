//! Where loss recovery stands.

use hol_wire::tcp::SeqNum;

use crate::Config;
use crate::persist::Persist;
use crate::phase::Phase;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rate_halving::Halving;
use crate::reordering::Reordering;
use crate::sack::DuplicateReports;
use crate::timeout::Timeouts;
use crate::tlp::LossProbe;
use crate::undo::Undo;

/// The state of loss recovery: a phase, and what each part of it remembers.
#[derive(Debug, Clone)]
pub(crate) struct Episode {
    phase: Phase,
    /// SND.NXT when the phase began; the phase ends when it is acknowledged. RFC 6582 section 3.2.
    recover: SeqNum,
    pub(crate) timeouts: Timeouts,
    pub(crate) persist: Persist,
    pub(crate) undo: Undo,
    pub(crate) prr: Prr,
    pub(crate) halving: Halving,
    pub(crate) rack: Rack,
    pub(crate) probe: LossProbe,
    pub(crate) reordering: Reordering,
    pub(crate) duplicates: DuplicateReports,
}

impl Episode {
    /// No trouble yet.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Open,
            recover: SeqNum::default(),
            timeouts: Timeouts::default(),
            persist: Persist::default(),
            undo: Undo::default(),
            prr: Prr::default(),
            halving: Halving::default(),
            rack: Rack::default(),
            probe: LossProbe::default(),
            reordering: Reordering::new(config.dupthresh),
            duplicates: DuplicateReports::default(),
        }
    }

    /// How much trouble there is.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// What ends the phase when it is acknowledged. RFC 6582 section 3.2.
    pub(crate) fn recover(&self) -> SeqNum {
        self.recover
    }

    /// A phase begins, and lasts until what is sent by now, up to `nxt`, is acknowledged.
    pub(crate) fn begin(&mut self, phase: Phase, nxt: SeqNum) {
        (self.phase, self.recover) = (phase, nxt);
    }

    /// The phase changes, not what ends it.
    pub(crate) fn turn(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// What is sent by now, up to `nxt`, ends the phase when it is acknowledged.
    pub(crate) fn mark(&mut self, nxt: SeqNum) {
        self.recover = nxt;
    }

    /// All is well.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }
}
