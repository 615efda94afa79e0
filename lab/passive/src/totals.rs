//! What all connections together carried.

/// Sums over a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// TCP that is no MPTCP.
    pub tcp: Carried,
    /// MPTCP, all subflows together.
    pub mptcp: Carried,
    /// SCTP.
    pub sctp: Carried,
    /// UDP.
    pub udp: Carried,
    /// Packets of none of these, or that cannot be read; drops of packets that nobody saw sent too.
    pub unread: u64,
}

/// Sums over the connections of one transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carried {
    /// Connections, associations, or pairs of sockets.
    pub connections: u64,
    /// Packets that were sent.
    pub packets: u64,
    /// Of these, how many ended on the way or arrived corrupted.
    pub lost: u64,
    /// Segments or DATA chunks that carried something once more, SYN and FIN counted.
    pub retransmitted: u64,
    /// Octets of payload without repetitions: from those who opened the connections, and to them.
    pub octets: [u64; 2],
}

impl Carried {
    pub(crate) fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.packets += other.packets;
        self.lost += other.lost;
        self.retransmitted += other.retransmitted;
        (0..2).for_each(|direction| self.octets[direction] += other.octets[direction]);
    }
}
