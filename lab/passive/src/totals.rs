//! Totals over all connections.

/// Sums over all connections of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Sums over TCP connections without MPTCP.
    pub tcp: TransportTotals,
    /// Sums over MPTCP connections, all subflows together.
    pub mptcp: TransportTotals,
    /// Sums over SCTP associations.
    pub sctp: TransportTotals,
    /// Sums over pairs of UDP sockets.
    pub udp: TransportTotals,
    /// Packets of other protocols, packets that cannot be parsed, and drops of packets that were not captured when sent.
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
    /// Payload octets without retransmissions: sent by the hosts that opened the connections, and by their peers.
    pub octets: [u64; 2],
}

impl TransportTotals {
    /// Adds the counts of `other`.
    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.packets += other.packets;
        self.lost += other.lost;
        self.retransmitted += other.retransmitted;
        (0..2).for_each(|direction| self.octets[direction] += other.octets[direction]);
    }
}
