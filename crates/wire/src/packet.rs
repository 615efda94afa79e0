//! An IPv4 packet that carries one TCP segment or one SCTP packet. RFC 791.

use std::net::Ipv4Addr;

use hol_base::Time;

use crate::{sctp, tcp};

/// A network address.
pub type Address = Ipv4Addr;

/// What a node sends and a link carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Who sent it.
    pub source: Address,
    /// Who is to get it.
    pub destination: Address,
    /// The transport header and payload.
    pub transport: Transport,
    /// A bit was flipped on the way: every checksum below fails, so a receiver drops it silently.
    pub corrupted: bool,
}

/// The transport protocol's part of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// IP protocol 6.
    Tcp(tcp::Segment),
    /// IP protocol 132.
    Sctp(sctp::Packet),
}

/// When the payload that this packet carries was sent: measurement only, never on the wire.
///
/// It rides with the data, so a receiver can split a message's delay without asking the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// When this payload left the sender for the first time.
    pub first_sent: Time,
    /// When this copy of it left the sender.
    pub sent: Time,
}

impl Packet {
    /// Octets of the IPv4 header; we send no IP options.
    pub const IP_HEADER: usize = 20;

    /// A packet as an endpoint sends it.
    pub fn new(source: Address, destination: Address, transport: Transport) -> Self {
        Self { source, destination, transport, corrupted: false }
    }

    /// The length of the IP packet in octets.
    pub fn length(&self) -> usize {
        Self::IP_HEADER
            + match &self.transport {
                Transport::Tcp(segment) => segment.length(),
                Transport::Sctp(packet) => packet.length(),
            }
    }
}
