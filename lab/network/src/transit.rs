//! A packet between two interfaces.

use hol_wire::Packet;

use crate::identifier::InterfaceId;

/// A packet on one hop, from one interface to another.
#[derive(Debug)]
pub struct PacketInTransit {
    /// The interface where the hop starts.
    pub from: InterfaceId,
    /// The interface where the hop ends.
    pub to: InterfaceId,
    /// The packet's number among all packets sent by nodes, from 0; the same on every hop.
    pub number: u32,
    /// The packet.
    pub packet: Packet,
    length: u64,
}

impl PacketInTransit {
    /// Creates a hop of a packet.
    pub(crate) fn new(from: InterfaceId, to: InterfaceId, number: u32, packet: Packet) -> Self {
        let length = packet.length() as u64;
        Self { from, to, number, packet, length }
    }

    /// Returns the number of octets of the IP packet.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use hol_wire::{Ecn, Packet, udp};

    use super::PacketInTransit;
    use crate::identifier::InterfaceId;

    /// Returns a hop of a datagram of this many octets, with IP and UDP headers.
    pub(crate) fn transit(length: usize, ecn: Ecn) -> PacketInTransit {
        let payload = vec![0; length - 28].into();
        let datagram =
            udp::Datagram { source_port: 1, destination_port: 2, payload, stamp: Default::default() };
        let packet = Packet::new(hol_wire::ipv4(10, 0, 1, 1), hol_wire::ipv4(10, 0, 1, 2), datagram);
        PacketInTransit::new(InterfaceId(0), InterfaceId(1), 0, Packet { ecn, ..packet })
    }
}
