//! A packet between two interfaces.

use hol_wire::Packet;

use crate::identifier::InterfaceId;

/// A packet on one hop, from one interface to another.
#[derive(Debug)]
pub struct Crossing {
    /// Where the hop begins.
    pub from: InterfaceId,
    /// Where it ends.
    pub to: InterfaceId,
    /// The packet's number among those that nodes have sent, from 0: the same on every hop.
    pub number: u32,
    /// The packet.
    pub packet: Packet,
    length: u64,
}

impl Crossing {
    pub(crate) fn new(from: InterfaceId, to: InterfaceId, number: u32, packet: Packet) -> Self {
        let length = packet.length() as u64;
        Self { from, to, number, packet, length }
    }

    /// Octets of the IP packet.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }
}
