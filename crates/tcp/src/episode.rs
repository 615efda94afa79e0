//! Where loss recovery stands.

use hol_wire::tcp::SeqNum;

use crate::Config;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::tlp::Probe;
use crate::undo::Undo;

/// How much trouble there is; later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All is well.
    Open,
    /// Something was delivered out of order, or sent twice.
    Disorder,
    /// The window is being reduced without a retransmission.
    Reduced,
    /// Fast recovery. RFC 5681 section 3.2.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// The state of loss recovery.
#[derive(Debug, Clone)]
pub(crate) struct Episode {
    pub(crate) phase: Phase,
    /// SND.NXT when the phase began; the phase ends when it is acknowledged. RFC 6582 calls it "recover".
    pub(crate) high_seq: SeqNum,
    /// Timeouts in a row for the same SND.UNA.
    pub(crate) retransmissions: u32,
    /// Zero-window probes in a row.
    pub(crate) probes: u32,
    /// The timeout may have been spurious: RFC 5682 is at work.
    pub(crate) frto: bool,
    pub(crate) undo: Undo,
    pub(crate) prr: Prr,
    pub(crate) rack: Rack,
    pub(crate) probe: Option<Probe>,
    /// DupThresh; it grows when the path reorders.
    pub(crate) dupthresh: u32,
    /// The path has reordered.
    pub(crate) reordering: bool,
    /// Segments that the peer got twice.
    pub(crate) duplicates: u64,
    /// Segments ever taken for lost.
    pub(crate) lost_total: u32,
}

impl Phase {
    /// cwnd is on its way down to ssthresh.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, Self::Reduced | Self::Recovery)
    }
}

impl Episode {
    /// No trouble yet.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Open,
            high_seq: SeqNum::default(),
            retransmissions: 0,
            probes: 0,
            frto: false,
            undo: Undo::default(),
            prr: Prr::default(),
            rack: Rack::default(),
            probe: None,
            dupthresh: config.dupthresh,
            reordering: false,
            duplicates: 0,
            lost_total: 0,
        }
    }

    /// All is well.
    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }
}
