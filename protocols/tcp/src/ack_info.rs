//! The information in an acknowledgment.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

/// What an acknowledgment tells the sender.
#[derive(Debug, Default)]
pub(crate) struct AckInfo {
    /// SND.UNA before the acknowledgment.
    pub(crate) prior_una: SeqNum,
    /// Whether SND.UNA advanced.
    pub(crate) advanced: bool,
    /// Whether the segment carried data, SYN or FIN.
    pub(crate) carried_data: bool,
    /// Whether the segment changes the window.
    pub(crate) window_updated: bool,
    /// Whether data or the SYN were newly acknowledged.
    pub(crate) data_acked: bool,
    /// Whether the segment acknowledges our SYN.
    pub(crate) syn_acked: bool,
    /// Whether some of the newly acknowledged data had been retransmitted.
    pub(crate) resent_acked: bool,
    /// Whether data were newly delivered that were sent before the phase of recovery began and never retransmitted.
    pub(crate) original_arrived: bool,
    /// Whether the segment echoes a congestion mark. RFC 3168 section 6.1.2.
    pub(crate) echoes: bool,
    /// Number of packets newly reported as marked, if marks are counted. RFC 9768.
    pub(crate) marked: u32,
    /// Whether segments were newly SACKed.
    pub(crate) data_sacked: bool,
    /// Whether a retransmission was unnecessary (D-SACK).
    pub(crate) dsack: bool,
    /// Whether the unnecessary retransmission was the loss probe.
    pub(crate) dsack_of_probe: bool,
    /// Whether a retransmission was found lost.
    pub(crate) lost_retransmission: bool,
    /// Whether the segment at SND.UNA had been SACKed before, so that the peer has discarded it.
    pub(crate) reneged: bool,
    /// Whether the retransmission timer restarts.
    pub(crate) restarts_timer: bool,
    /// Newly delivered data, in the unit of the congestion window.
    pub(crate) delivered: u32,
    /// Newly delivered octets of data.
    pub(crate) delivered_octets: u32,
    /// Number of newly acknowledged segments.
    pub(crate) acked_segments: u32,
    /// Segments newly considered lost.
    pub(crate) newly_lost: u32,
    /// Data in flight before the acknowledgment, in the unit of the congestion window; 0 if the window's growth does
    /// not depend on them.
    pub(crate) prior_in_flight: u32,
    /// The latest round-trip sample.
    pub(crate) rtt: Option<Duration>,
    /// When the oldest newly acknowledged segment was sent.
    pub(crate) first_acked: Option<Time>,
    pub(crate) last_acked: Option<Time>,
    pub(crate) first_sacked: Option<Time>,
    pub(crate) last_sacked: Option<Time>,
}

impl AckInfo {
    /// Returns whether this is a duplicate acknowledgment: the segment acknowledges no new data, has no new window, and
    /// contains no data. RFC 5681 section 2.
    pub(crate) fn is_duplicate(&self) -> bool {
        !(self.carried_data || self.window_updated || self.acknowledges_data())
    }

    pub(crate) fn acknowledges_data(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    /// Returns whether the acknowledgment covers only one segment, smaller than `mss` and sent once, up to `una`. Such
    /// an acknowledgment may have been delayed.
    pub(crate) fn may_be_delayed(&self, una: SeqNum, mss: u32) -> bool {
        let alone = self.acked_segments == 1 && self.data_acked && !self.data_sacked;
        alone && !self.resent_acked && una.distance_from(self.prior_una) < mss
    }

    pub(crate) fn is_dubious(&self) -> bool {
        self.is_duplicate() || self.data_sacked || self.dsack || self.echoes
    }
}
