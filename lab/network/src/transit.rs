//! A packet between two interfaces.

use hol_wire::Packet;

use crate::identifier::InterfaceId;

/// A packet on one hop, from one interface to another.
#[derive(Debug)]
pub struct Transit {
    /// The interface where the hop starts.
    pub from: InterfaceId,
    /// The interface where it ends.
    pub to: InterfaceId,
    /// The packet's number among all packets sent by nodes, from 0; the same on every hop.
    pub number: u32,
    /// The packet.
    pub packet: Packet,
    length: u64,
}

impl Transit {
    pub(crate) fn new(from: InterfaceId, to: InterfaceId, number: u32, packet: Packet) -> Self {
        let length = packet.length() as u64;
        Self { from, to, number, packet, length }
    }

    /// Returns the octets of the IP packet.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}
