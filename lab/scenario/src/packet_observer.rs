//! The interface to which a run passes its packets, the same in every world.

use std::borrow::Cow;
use std::fmt;

use hol_base::Time;
use hol_network::{TapEvent, TapPoint};

/// Observes every packet of a run at both ends of each hop.
pub trait PacketObserver {
    /// Called when a packet passes an interface, or is dropped there.
    fn observe(&mut self, event: &PacketEvent<'_>);

    /// Called with the TLS secrets of the packets that follow, in the format of a TLS key log. Packets of the model are not encrypted.
    fn add_secrets(&mut self, _secrets: &str) {}
}

/// An event of a packet at an interface.
#[derive(Debug)]
pub struct PacketEvent<'p> {
    /// Time of the event.
    pub time: Time,
    /// The interface of the event.
    pub point: TapPoint<'p>,
    /// What happened to the packet.
    pub event: TapEvent,
    /// The packet.
    pub packet: Packet<'p>,
}

/// A packet, decoded or as octets.
#[derive(Debug)]
pub enum Packet<'p> {
    /// A decoded packet, as this project's endpoints represent it.
    Value(&'p hol_wire::Packet),
    /// A captured packet: its octets, starting with its IP header.
    Octets(&'p [u8]),
}

impl Packet<'_> {
    /// Returns the packet as octets, starting with its IP header.
    pub fn octets(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Value(packet) => packet.to_bytes().to_vec().into(),
            Self::Octets(octets) => Cow::Borrowed(octets),
        }
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(packet) => packet.fmt(f),
            Self::Octets(octets) => match hol_wire::Packet::parse(octets.to_vec().into()) {
                Ok(packet) => packet.fmt(f),
                Err(problem) => write!(f, "{} octets: {problem}", octets.len()),
            },
        }
    }
}
