//! Pairs of UDP sockets as connections, from the first datagram to the last. RFC 768.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hol_base::Time;
use hol_wire::udp::Datagram;
use smallvec::smallvec;

use crate::connection::{Connection, Protocol};
use crate::packets_in_flight::PacketContent;

/// The pairs of sockets that exchange datagrams.
#[derive(Debug, Default)]
pub(crate) struct UdpPairs(BTreeMap<(SocketAddr, SocketAddr), usize>);

impl UdpPairs {
    /// Handles a datagram sent from one socket to another.
    pub fn handle_sent(
        &mut self,
        [from, to]: [SocketAddr; 2],
        datagram: &Datagram,
        now: Time,
        connections: &mut Vec<Connection>,
    ) -> PacketContent {
        let (connection, direction) = match (self.0.get(&(from, to)), self.0.get(&(to, from))) {
            (Some(pair), _) => (*pair, 0),
            (None, Some(pair)) => (*pair, 1),
            (None, None) => {
                self.0.insert((from, to), connections.len());
                connections.push(Connection::new(Protocol::Udp, now));
                (connections.len() - 1, 0)
            }
        };
        connections[connection].carried.octets[direction] += datagram.payload.len() as u64;
        PacketContent { connection, direction, ranges: smallvec![], closes: false, repeated: 0 }
    }
}
