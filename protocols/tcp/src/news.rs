//! What an acknowledgment tells of the network.

use hol_base::{Duration, Time};
use hol_wire::tcp::SeqNum;

/// What one acknowledgment told.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// SND.UNA before it.
    pub(crate) prior_una: SeqNum,
    /// SND.UNA moved.
    pub(crate) advanced: bool,
    /// The segment carried data, SYN or FIN.
    pub(crate) carried_data: bool,
    pub(crate) window_updated: bool,
    /// Data, or the SYN, is newly acknowledged.
    pub(crate) data_acked: bool,
    pub(crate) syn_acked: bool,
    /// Some of it had been retransmitted.
    pub(crate) resent_acked: bool,
    /// Data that was never retransmitted arrived although recovery had begun.
    pub(crate) original_arrived: bool,
    /// It echoes a mark: congestion. RFC 3168 section 6.1.2.
    pub(crate) echoes: bool,
    /// Something is newly reported by SACK.
    pub(crate) data_sacked: bool,
    /// A retransmission was needless (D-SACK).
    pub(crate) dsack: bool,
    /// And it was the loss probe.
    pub(crate) dsack_of_probe: bool,
    /// A retransmission turned out to be lost.
    pub(crate) lost_retransmission: bool,
    /// The segment at SND.UNA had been reported before: the peer forgot it.
    pub(crate) reneged: bool,
    /// The retransmission timer starts over.
    pub(crate) restart_timer: bool,
    /// What left the network, in units of the window.
    pub(crate) delivered: u32,
    pub(crate) acked_segments: u32,
    /// What is newly taken for lost, in segments.
    pub(crate) newly_lost: u32,
    /// What was in flight before it, where the growth of the window depends on it.
    pub(crate) prior_in_flight: u32,
    /// The latest round trip that it gives.
    pub(crate) rtt: Option<Duration>,
    pub(crate) first_acked: Option<Time>,
    pub(crate) last_acked: Option<Time>,
    pub(crate) first_sacked: Option<Time>,
    pub(crate) last_sacked: Option<Time>,
}

impl News {
    /// Neither new data, nor a new window, nor data in it: a duplicate. RFC 5681 section 2.
    pub(crate) fn is_duplicate(&self) -> bool {
        !(self.carried_data || self.window_updated || self.acked())
    }

    pub(crate) fn acked(&self) -> bool {
        self.data_acked || self.syn_acked
    }

    /// It acknowledges up to `una` one segment below `mss`, once sent, and nothing else: it may have been delayed.
    pub(crate) fn is_runt(&self, una: SeqNum, mss: u32) -> bool {
        let alone = self.acked_segments == 1 && self.data_acked && !self.data_sacked;
        alone && !self.resent_acked && una.distance_from(self.prior_una) < mss
    }

    pub(crate) fn is_dubious(&self) -> bool {
        self.is_duplicate() || self.data_sacked || self.dsack || self.echoes
    }
}
