//! The state of a connection as TCP_INFO reports it. Linux: net/ipv4/tcp.c tcp_get_info.

use crate::recovery_phase::Phase;
use crate::{Endpoint, State};

/// The state of a connection's sender. Amounts are in segments where Linux counts segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Number of segments that were sent and are not cumulatively acknowledged.
    pub unacked: u32,
    /// Number of unacknowledged segments that the peer has SACKed.
    pub sacked: u32,
    /// Number of unacknowledged segments that are considered lost.
    pub lost: u32,
    /// Number of unacknowledged segments of which a retransmission is in flight.
    pub retransmitted: u32,
    /// Number of segments delivered out of order that indicates a loss (DupThresh).
    pub reordering: u32,
    /// Linux's number of the phase of loss recovery: 0 open, 1 disorder, 2 CWR (reduced), 3 recovery, 4 loss.
    pub phase: u8,
    /// Payload of a full-sized segment in octets.
    pub mss: u32,
    /// Whether both endpoints support SACK.
    pub sack: bool,
    /// Number of segments that the peer has reported as marked, with accurate ECN. RFC 9768.
    pub marked: u32,
    /// Numbers of octets that the peer has reported as delivered with ECT(1), ECT(0) and CE, in the AccECN
    /// option.
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
