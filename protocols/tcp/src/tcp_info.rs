//! The state of a connection as TCP_INFO reports it. Linux: net/ipv4/tcp.c tcp_get_info.

use crate::recovery_phase::Phase;
use crate::{Endpoint, State};

/// The state of a connection's sender, in segments where Linux counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Segments sent and not cumulatively acknowledged.
    pub unacked: u32,
    /// Unacknowledged segments that the peer has SACKed.
    pub sacked: u32,
    /// Unacknowledged segments that are considered lost.
    pub lost: u32,
    /// Unacknowledged segments with a retransmission in flight.
    pub retransmitted: u32,
    /// The number of segments delivered out of order that indicates a loss.
    pub reordering: u32,
    /// Linux's number of the sender's phase: 0 to 4 for open, disorder, reduced, recovery, loss.
    pub phase: u8,
    /// Octets of payload in a full-sized segment.
    pub mss: u32,
    /// Whether both sides support SACK.
    pub sack: bool,
    /// Segments that the peer has reported as marked, if marks are counted. RFC 9768.
    pub marked: u32,
    /// Octets that the peer has reported as delivered with ECT(1), ECT(0) and CE, in the option of accurate ECN.
    pub delivered_octets: [u32; 3],
}

impl Endpoint {
    /// Returns the state of the sender.
    pub fn info(&self) -> Info {
        let is_open = !matches!(self.machine.state(), State::Closed | State::Listen);
        let count = |segments: u32| if is_open { segments } else { 0 };
        Info {
            unacked: count(self.board.packets_out().segments),
            sacked: count(self.board.sacked().segments),
            lost: count(self.board.lost().segments),
            retransmitted: count(self.board.retrans_out().segments),
            reordering: self.episode.reordering.dupthresh(),
            phase: match self.episode.phase() {
                Phase::Open => 0,
                Phase::Disorder => 1,
                Phase::Reduced => 2,
                Phase::Recovery => 3,
                Phase::Loss => 4,
            },
            mss: self.negotiated.mss(),
            sack: self.negotiated.uses_sack(),
            marked: self.marks.reported_marks(),
            delivered_octets: self.marks.reported_octets(),
        }
    }
}
