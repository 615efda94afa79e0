//! The information in an acknowledgment.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

/// What a received acknowledgment means for the sender.
#[derive(Debug, Default)]
pub(crate) struct AckInfo {
    /// SND.UNA before the acknowledgment was processed.
    pub(crate) prior_una: SeqNum,
    /// Whether the acknowledgment has advanced SND.UNA.
    pub(crate) advanced: bool,
    /// Whether the received segment carried data, SYN or FIN.
    pub(crate) carried_data: bool,
    /// Whether the segment changes the send window.
    pub(crate) window_updated: bool,
    /// Whether data or the SYN were newly acknowledged.
    pub(crate) data_acked: bool,
    /// Whether the segment acknowledges our SYN.
    pub(crate) syn_acked: bool,
    /// Whether some of the newly acknowledged data had been retransmitted.
    pub(crate) resent_acked: bool,
    /// Whether original data, sent before the current phase of recovery began and never retransmitted, were newly
    /// delivered.
    pub(crate) original_arrived: bool,
    /// Whether the segment echoes an ECN mark. RFC 3168 section 6.1.2.
    pub(crate) echoes: bool,
    /// Number of packets newly reported as marked, with accurate ECN. RFC 9768.
    pub(crate) marked: u32,
    /// Whether segments were newly SACKed.
    pub(crate) data_sacked: bool,
    /// Whether the segment reports by D-SACK that a retransmission was unnecessary.
    pub(crate) dsack: bool,
    /// Whether the unnecessary retransmission was the tail loss probe.
    pub(crate) dsack_of_probe: bool,
    /// Whether a retransmission has been detected as lost.
    pub(crate) lost_retransmission: bool,
    /// Whether the segment at SND.UNA had been SACKed before, which means that the peer has discarded it
    /// (reneging).
    pub(crate) reneged: bool,
    /// Whether to restart the retransmission timer.
    pub(crate) restarts_timer: bool,
    /// Amount of newly delivered data, in the unit of the congestion window.
    pub(crate) delivered: u32,
    /// Number of newly delivered octets of data.
    pub(crate) delivered_octets: u32,
    /// Number of newly acknowledged segments.
    pub(crate) acked_segments: u32,
    /// Number of segments newly considered lost.
    pub(crate) newly_lost: u32,
    /// Amount of data in flight before the acknowledgment, in the unit of the congestion window; 0 if the window's
    /// growth does not depend on them.
    pub(crate) prior_in_flight: u32,
    /// The latest round-trip time sample; `None` if the acknowledgment gives none.
    pub(crate) rtt: Option<Duration>,
    /// When the oldest newly acknowledged segment was sent.
    pub(crate) first_acked: Option<Time>,
    pub(crate) last_acked: Option<Time>,
    pub(crate) first_sacked: Option<Time>,
    pub(crate) last_sacked: Option<Time>,
}

impl AckInfo {
    /// Returns whether this is a duplicate acknowledgment: it acknowledges no new data, does not change the
    /// window, and contains no data. RFC 5681 section 2.
    pub(crate) fn is_duplicate(&self) -> bool {
        !(self.carried_data || self.window_updated || self.acknowledges_data())
    }

    pub(crate) fn acknowledges_data(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    /// Returns whether the acknowledgment covers only one segment that was sent once and is smaller than `mss`.
    /// The peer may have delayed such an acknowledgment.
    pub(crate) fn may_be_delayed(&self, una: SeqNum, mss: u32) -> bool {
        let alone = self.acked_segments == 1 && self.data_acked && !self.data_sacked;
        alone && !self.resent_acked && una.distance_from(self.prior_una) < mss
    }

    pub(crate) fn is_dubious(&self) -> bool {
        self.is_duplicate() || self.data_sacked || self.dsack || self.echoes
    }
}
