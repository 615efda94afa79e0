//! Totals over all connections.

/// Sums over a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// TCP without MPTCP.
    pub tcp: TransportTotals,
    /// MPTCP, all subflows together.
    pub mptcp: TransportTotals,
    /// SCTP.
    pub sctp: TransportTotals,
    /// UDP.
    pub udp: TransportTotals,
    /// Packets of other protocols, or that cannot be parsed, and drops of packets not seen being sent.
    pub unread: u64,
}

/// Sums over the connections of one transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransportTotals {
    /// Connections, associations, or pairs of sockets.
    pub connections: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Packets lost on the way or corrupted.
    pub lost: u64,
    /// Retransmitted segments or DATA chunks, including SYN and FIN.
    pub retransmitted: u64,
    /// Octets of payload without repetitions, from and to the openers of the connections.
    pub octets: [u64; 2],
}

impl TransportTotals {
    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.packets += other.packets;
        self.lost += other.lost;
        self.retransmitted += other.retransmitted;
        (0..2).for_each(|direction| self.octets[direction] += other.octets[direction]);
    }
}
