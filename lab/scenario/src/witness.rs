//! Whoever wants to see the packets of a run, in whatever world.

use std::borrow::Cow;
use std::fmt;

use hol_base::Time;
use hol_network::{Fate, TapPoint};

/// Sees every packet of a run at the ends of its hops.
pub trait Witness {
    /// A packet passes an interface, or ends there.
    fn see(&mut self, sighting: &Sighting<'_>);

    /// What decrypts the packets that follow, in the lines of a TLS key log; packets that are values bring their own.
    fn learn(&mut self, _secrets: &str) {}
}

/// A packet at an interface.
#[derive(Debug)]
pub struct Sighting<'p> {
    /// When.
    pub time: Time,
    /// Where.
    pub point: TapPoint<'p>,
    /// What happened to it.
    pub fate: Fate,
    /// The packet.
    pub packet: Packet<'p>,
}

/// A packet, as a value or as its octets.
#[derive(Debug)]
pub enum Packet<'p> {
    /// As our endpoints have it.
    Value(&'p hol_wire::Packet),
    /// As it was on the wire, from the IP header on.
    Octets(&'p [u8]),
}

impl Packet<'_> {
    /// As it is on the wire.
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
