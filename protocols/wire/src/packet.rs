//! An IP packet with one TCP segment, SCTP packet, or UDP or QUIC datagram. RFC 791, RFC 8200.

use std::fmt;

use bytes::Bytes;
use hol_base::Time;

use crate::{Address, Ecn, Ipv4Header, Ipv6Header, ParseError, ip_header_length, quic, sctp, tcp, udp};

/// An IP packet in the form in which nodes send it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Source address.
    pub source: Address,
    /// Destination address.
    pub destination: Address,
    /// The transport header and payload.
    pub transport: Transport,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// Whether a bit was flipped in transit. The checksum is then wrong, so a receiver drops the packet silently.
    pub corrupted: bool,
}

/// The transport header and payload of a packet. It is boxed, because a packet is moved a dozen times between
/// endpoints, queues and links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// TCP: IP protocol 6.
    Tcp(Box<tcp::Segment>),
    /// SCTP: IP protocol 132.
    Sctp(Box<sctp::Packet>),
    /// UDP: IP protocol 17.
    Udp(Box<udp::Datagram>),
    /// QUIC over UDP: IP protocol 17. Octets alone do not show that they are QUIC, so they parse to a
    /// [`Udp`](Self::Udp).
    Quic(Box<quic::Datagram>),
}

impl From<tcp::Segment> for Transport {
    fn from(segment: tcp::Segment) -> Self {
        Self::Tcp(Box::new(segment))
    }
}

impl From<sctp::Packet> for Transport {
    fn from(packet: sctp::Packet) -> Self {
        Self::Sctp(Box::new(packet))
    }
}

impl From<udp::Datagram> for Transport {
    fn from(datagram: udp::Datagram) -> Self {
        Self::Udp(Box::new(datagram))
    }
}

impl From<quic::Datagram> for Transport {
    fn from(datagram: quic::Datagram) -> Self {
        Self::Quic(Box::new(datagram))
    }
}

/// When the payload of a packet was sent. The times are for measurement only, and not on the wire.
///
/// The times travel with the data, so a receiver can decompose a message's delay without the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendTimes {
    /// When the payload was first sent.
    pub first_sent: Time,
    /// When this copy of the payload was sent.
    pub sent: Time,
    /// Whether the packet was cut from a larger packet below the transport, by segmentation offload. The receiver
    /// then counts it as a buffer of its own.
    pub cut: bool,
}

impl Packet {
    /// Creates a packet that an endpoint sends: not ECN-capable and not corrupted.
    pub fn new(source: Address, destination: Address, transport: impl Into<Transport>) -> Self {
        Self { source, destination, transport: transport.into(), ecn: Ecn::NotCapable, corrupted: false }
    }

    /// Returns the length of the IP packet in octets.
    pub fn length(&self) -> usize {
        ip_header_length(self.destination)
            + match &self.transport {
                Transport::Tcp(segment) => segment.length(),
                Transport::Sctp(packet) => packet.length(),
                Transport::Udp(datagram) => datagram.length(),
                Transport::Quic(datagram) => datagram.length(),
            }
    }

    /// Returns the source and the destination port.
    pub fn ports(&self) -> (u16, u16) {
        match &self.transport {
            Transport::Tcp(segment) => (segment.source_port, segment.destination_port),
            Transport::Sctp(packet) => (packet.source_port, packet.destination_port),
            Transport::Udp(datagram) => (datagram.source_port, datagram.destination_port),
            Transport::Quic(datagram) => (datagram.source_port, datagram.destination_port),
        }
    }

    /// Returns the secrets with which the packet is encrypted; `None` if it is not encrypted.
    pub fn secrets(&self) -> Option<quic::Secrets> {
        match &self.transport {
            Transport::Quic(datagram) => Some(datagram.secrets),
            Transport::Tcp(_) | Transport::Sctp(_) | Transport::Udp(_) => None,
        }
    }

    /// Returns the packet's octets from the IP header on, with all checksums. If the packet is corrupted, the last bit
    /// is then flipped.
    ///
    /// # Panics
    /// If the packet is longer than IPv4 allows, 65,535 octets, or its addresses are of different families.
    pub fn to_bytes(&self) -> Bytes {
        let length = self.length();
        let mut out = Vec::with_capacity(length);
        self.emit_header(u16::try_from(length).expect("an IP packet is at most 65535 octets"), &mut out);
        match &self.transport {
            Transport::Tcp(segment) => segment.emit(self.source, self.destination, &mut out),
            Transport::Sctp(packet) => packet.emit(&mut out),
            Transport::Udp(datagram) => datagram.emit(self.source, self.destination, &mut out),
            Transport::Quic(datagram) => datagram.emit(self.source, self.destination, &mut out),
        }
        debug_assert_eq!(out.len(), length, "{self}");
        if self.corrupted {
            out[length - 1] ^= 1;
        }
        out.into()
    }

    fn emit_header(&self, length: u16, out: &mut Vec<u8>) {
        let (ecn, protocol) = (self.ecn, self.transport.protocol());
        match (self.source, self.destination) {
            (Address::V4(source), Address::V4(destination)) => {
                // Never fragmented, so no identification is needed.
                let (total_length, identification, ttl) = (length, 0, Ipv4Header::TTL);
                Ipv4Header { ecn, total_length, identification, ttl, protocol, source, destination }
                    .emit(out);
            }
            (Address::V6(source), Address::V6(destination)) => {
                let (payload_length, hop_limit) = (length - Ipv6Header::LENGTH as u16, Ipv6Header::HOP_LIMIT);
                let next_header = protocol;
                Ipv6Header { ecn, payload_length, next_header, hop_limit, source, destination }.emit(out);
            }
            (source, destination) => unreachable!("{source} and {destination} have different IP versions"),
        }
    }

    /// Parses a packet from the IP header on. Its send times are zero, because they are not on the wire. For a
    /// corrupted packet, returns an error.
    pub fn parse(mut octets: Bytes) -> Result<Self, ParseError> {
        let (ecn, protocol, source, destination) = Self::parse_header(&mut octets)?;
        let transport: Transport = match protocol {
            Transport::TCP => tcp::Segment::parse(octets, source, destination)?.into(),
            Transport::SCTP => sctp::Packet::parse(octets)?.into(),
            Transport::UDP => udp::Datagram::parse(octets, source, destination)?.into(),
            other => return Err(ParseError::Protocol(other)),
        };
        Ok(Self { ecn, ..Self::new(source, destination, transport) })
    }

    fn parse_header(octets: &mut Bytes) -> Result<(Ecn, u8, Address, Address), ParseError> {
        match octets.first().ok_or(ParseError::Truncated)? >> 4 {
            6 => {
                let header = Ipv6Header::parse(octets)?;
                Ok((header.ecn, header.next_header, header.source.into(), header.destination.into()))
            }
            _ => {
                let header = Ipv4Header::parse(octets)?;
                Ok((header.ecn, header.protocol, header.source.into(), header.destination.into()))
            }
        }
    }

    /// Returns the packet with its send times set to zero, as if it had been parsed from its octets.
    pub fn without_send_times(mut self) -> Self {
        match &mut self.transport {
            Transport::Tcp(segment) => segment.stamp = SendTimes::default(),
            Transport::Udp(datagram) => datagram.stamp = SendTimes::default(),
            Transport::Quic(datagram) => datagram.carried.clear(),
            Transport::Sctp(packet) => {
                for chunk in &mut packet.chunks {
                    match chunk {
                        sctp::Chunk::Data(data) => data.stamp = SendTimes::default(),
                        sctp::Chunk::IData(data) => data.stamp = SendTimes::default(),
                        _ => {}
                    }
                }
            }
        }
        self
    }
}

impl Transport {
    /// IP protocol number of TCP.
    pub const TCP: u8 = 6;
    /// IP protocol number of SCTP.
    pub const SCTP: u8 = 132;
    /// IP protocol number of UDP.
    pub const UDP: u8 = 17;

    /// Returns the IP protocol number of the transport.
    pub fn protocol(&self) -> u8 {
        match self {
            Self::Tcp(_) => Self::TCP,
            Self::Sctp(_) => Self::SCTP,
            Self::Udp(_) | Self::Quic(_) => Self::UDP,
        }
    }
}

impl fmt::Display for Packet {
    /// Formats the packet as tcpdump does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, destination, transport, ecn, corrupted } = self;
        let (source_port, destination_port) = self.ports();
        write!(f, "IP {source}.{source_port} > {destination}.{destination_port}: ")?;
        match transport {
            Transport::Tcp(segment) => segment.fmt(f)?,
            Transport::Sctp(packet) => packet.fmt(f)?,
            Transport::Udp(datagram) => datagram.fmt(f)?,
            Transport::Quic(datagram) => datagram.fmt(f)?,
        }
        if *ecn == Ecn::Congested {
            f.write_str(" (CE)")?;
        }
        if *corrupted { f.write_str(" (corrupted)") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    #[test]
    fn a_packet_prints_as_tcpdump_prints_it() {
        let sctp = sctp::Packet {
            source_port: 40000,
            destination_port: 7626,
            verification_tag: 1,
            zero_checksum: false,
            chunks: smallvec![sctp::Chunk::CookieAck],
        };
        let (source, destination) = (crate::ipv4(10, 0, 0, 1), crate::ipv4(10, 0, 0, 2));
        let packet = Packet::new(source, destination, sctp);
        let text = "IP 10.0.0.1.40000 > 10.0.0.2.7626: sctp (1) [COOKIE ACK]";
        assert_eq!(packet.to_string(), text);
        let marked = Packet { ecn: Ecn::Congested, ..packet.clone() };
        assert_eq!(marked.to_string(), format!("{text} (CE)"));
        let corrupted = Packet { corrupted: true, ..packet };
        assert_eq!(corrupted.to_string(), format!("{text} (corrupted)"));
    }
}
