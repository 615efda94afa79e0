//! The transfer that the models describe: requests in one direction, replies in the other, over a path with loss.

use hol_base::{Duration, Frequency, Ratio};

/// Requests and replies, one message per packet, on a path that delays all packets by the same time and loses them
/// independently.
///
/// Both directions have the same properties; every reply is sent when its request is delivered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfer {
    /// Requests per second.
    pub rate: Frequency,
    /// Delay from one end to the other; the round-trip time is twice this delay.
    pub one_way_delay: Duration,
    /// The probability that a packet is lost, in each direction.
    pub loss: Ratio,
    /// Number of streams of the association; with a recovery of TCP, the number of parallel connections. Messages use
    /// them in turn.
    pub streams: u32,
    /// The process by which requests are sent.
    pub arrivals: Arrivals,
    /// How a lost packet is detected and retransmitted.
    pub recovery: Recovery,
}

/// The process by which requests are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Requests are sent at equal intervals.
    Periodic,
    /// Requests are sent at exponentially distributed intervals. The closed form then treats the messages of each
    /// stream as a Poisson process, too, as if streams were drawn at random. In fact streams are used in turn, so their
    /// messages are more regular and wait less.
    Poisson,
}

/// How a lost packet is detected and retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// A packet is retransmitted once `reports` later packets have been acknowledged; retransmissions and
    /// acknowledgments are never lost.
    Ideal {
        /// Number of missing reports after which a packet is retransmitted.
        reports: u32,
    },
    /// SCTP's fast retransmit after three missing reports (RFC 9260 section 7.2.4).
    Sctp {
        /// The minimum of the retransmission timeout.
        rto_min: Duration,
        /// Whether a chunk may be fast-retransmitted again if its retransmission is lost.
        again: bool,
    },
    /// TCP with SACK and a threshold of three duplicate ACKs (RFC 6675), as in Linux in 2006.
    TcpDupThresh {
        /// The minimum difference between the retransmission timeout and the round-trip time (Linux: 200 ms).
        rto_min: Duration,
    },
    /// TCP with RACK-TLP (RFC 8985), as in Linux today.
    TcpRack {
        /// The minimum difference between the retransmission timeout and the round-trip time (Linux: 200 ms).
        rto_min: Duration,
    },
}

impl Transfer {
    /// Returns the round-trip time in ns.
    pub(crate) fn round_trip(&self) -> u64 {
        self.one_way_delay.as_nanos().saturating_mul(2)
    }

    /// Returns the mean time between two requests in ns.
    pub(crate) fn period(&self) -> u64 {
        self.rate.period().as_nanos()
    }

    /// Returns the minimum of the retransmission timeout in ns.
    pub(crate) fn rto_min(&self) -> u64 {
        match self.recovery {
            Recovery::Ideal { .. } => 0,
            Recovery::Sctp { rto_min, .. }
            | Recovery::TcpDupThresh { rto_min }
            | Recovery::TcpRack { rto_min } => rto_min.as_nanos(),
        }
    }

    /// Returns the number of connections; each has its own acknowledgments.
    pub(crate) fn connections(&self) -> u64 {
        match self.recovery {
            Recovery::Ideal { .. } | Recovery::Sctp { .. } => 1,
            Recovery::TcpDupThresh { .. } | Recovery::TcpRack { .. } => self.streams.into(),
        }
    }
}
