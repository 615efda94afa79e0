//! Parses captured packets, even if truncated or with checksums left to hardware.
//!
//! `hol_wire::Packet` rejects such packets, as a receiver must; captures at a sender contain many of them.

use std::net::IpAddr;

use smallvec::SmallVec;

use super::captured_ip::{CapturedIp, IpHeader};

/// A parsed packet of TCP, SCTP or another protocol over IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParsedPacket {
    /// The addresses of sender and receiver.
    pub hosts: [IpAddr; 2],
    /// The ports of sender and receiver.
    pub ports: [u16; 2],
    /// Octets of the whole IP packet.
    pub length: u32,
    pub content: TransportContent,
    /// Whether the capture contains too few octets of the transport header.
    pub is_cut: bool,
    /// The header of QUIC that the packet may have.
    pub quic: Option<QuicHeader>,
    /// The verification tag in an SCTP header, and the tag that the packet's sender announces.
    pub tags: Option<(u32, Option<u32>)>,
}

/// The first header of QUIC in a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuicHeader {
    /// A long header, as packets of the handshake have it.
    Long,
    /// A short header, as later packets have it, with its spin bit.
    Short(bool),
}

/// The content of a transport header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TransportContent {
    /// TCP or SCTP, which number and acknowledge their data.
    Numbered(SequenceFields),
    /// A UDP datagram of this many octets, which is not acknowledged.
    Datagram(u32),
    /// The packet belongs to another protocol.
    Nothing,
}

/// The sequence numbers in a packet: octets of TCP, chunks of SCTP.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SequenceFields {
    pub is_sctp: bool,
    pub handshake: Option<HandshakePacket>,
    /// The first number of the sender's data, which a SYN, INIT or INIT ACK announces.
    pub initial_number: Option<u32>,
    /// The data in the packet, as ranges: first number and count. The receiver may reject data in a SYN.
    pub data: SmallVec<[(u32, u32); 2]>,
    /// For each range of `data`: its octets, and whether a message may end with it.
    pub carries: SmallVec<[(u32, bool); 2]>,
    /// Next number that the packet's sender expects.
    pub acknowledged: Option<u32>,
    /// Data beyond a gap that the packet's sender has received (SACK): first number and the number after the last.
    pub blocks: SmallVec<[(u32, u32); 4]>,
    /// Data that the packet's sender has received twice: first number and the number after the last.
    pub duplicates: SmallVec<[(u32, u32); 2]>,
    /// The sender's timestamp and the echo of the peer's. RFC 7323 section 3.2.
    pub timestamps: Option<(u32, u32)>,
    /// Whether the packet resets the connection: RST, ABORT. RFC 9293 section 3.10.7, RFC 9260 section 3.3.7.
    pub is_reset: bool,
    /// Longest segment that the packet's sender accepts, in octets of payload. RFC 9293 section 3.7.1.
    pub mss: Option<u16>,
}

/// A packet that starts a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandshakePacket {
    /// A request to open a connection or association: SYN or INIT.
    Request,
    /// The reply to a request for a connection or association: SYN with ACK, or INIT ACK.
    Reply,
}

impl ParsedPacket {
    /// Parses a packet from its IP header on; `None` without an IP header, or for a fragment.
    pub fn parse(packet: CapturedIp<'_>) -> Option<Self> {
        let IpHeader { hosts, protocol, length, octets, fragment } = IpHeader::parse(packet)?;
        if fragment.is_some() {
            return None;
        }
        let rest = packet.octets.get(octets..).unwrap_or_default();
        let payload = (length as usize).checked_sub(octets)?;
        let rest = &rest[..payload.min(rest.len())];
        let ports = read_u16(rest, 0).zip(read_u16(rest, 2)).map(|(from, to)| [from, to]);
        let content = match protocol {
            17 => ports.map(|_| TransportContent::Datagram(payload.saturating_sub(8) as u32)),
            6 => parse_tcp(rest, payload).map(TransportContent::Numbered),
            132 => parse_sctp(rest).map(TransportContent::Numbered),
            _ => None,
        };
        let is_cut = matches!(protocol, 6 | 17 | 132) && content.is_none() && rest.len() < payload;
        let (content, ports) = (content.unwrap_or(TransportContent::Nothing), ports.unwrap_or_default());
        let quic = rest.get(8..).filter(|_| protocol == 17).and_then(quic_header);
        let tags = if protocol == 132 { tags(rest) } else { None };
        Some(Self { hosts, ports, length, content, is_cut, quic, tags })
    }
}

/// Returns the header of QUIC that a datagram may begin with. RFC 9000 section 17.3.1: the highest bit of a short
/// header is 0, and the third bit spins; the second bit may be random (RFC 9287 section 3).
fn quic_header(datagram: &[u8]) -> Option<QuicHeader> {
    const SPIN_BIT: u8 = 0x20;
    match datagram.first()? {
        first if first & 0x80 == 0 => Some(QuicHeader::Short(first & SPIN_BIT != 0)),
        _ => is_long_quic(datagram).then_some(QuicHeader::Long),
    }
}

/// Returns whether a datagram may have a long header of QUIC: the two highest bits are set, and there is a version; identifiers have at
/// most 20 octets. RFC 8999 section 5.1, RFC 9000 section 17.2
fn is_long_quic(datagram: &[u8]) -> bool {
    const MAX_CONNECTION_ID_OCTETS: usize = 20;
    let Some((version, own)) = read_u32(datagram, 1).zip(datagram.get(5)) else { return false };
    let own = usize::from(*own);
    let other = datagram.get(6 + own).map(|length| usize::from(*length));
    datagram[0] & 0xc0 == 0xc0
        && version != 0
        && own <= MAX_CONNECTION_ID_OCTETS
        && other.is_some_and(|other| other <= MAX_CONNECTION_ID_OCTETS)
}

/// Returns the verification tag of an SCTP packet, and the one that an INIT or INIT ACK announces for all packets to its sender. RFC 9260
/// sections 3.1, 3.3.2 and 3.3.3.
fn tags(packet: &[u8]) -> Option<(u32, Option<u32>)> {
    let kind = packet.get(12);
    let announced = read_u32(packet, 16).filter(|_| matches!(kind, Some(1 | 2)));
    Some((read_u32(packet, 4)?, announced))
}

/// Parses a TCP header. RFC 9293 section 3.1.
fn parse_tcp(segment: &[u8], length: usize) -> Option<SequenceFields> {
    const SYN: u8 = 0x02;
    const RST: u8 = 0x04;
    const PSH: u8 = 0x08;
    const ACK: u8 = 0x10;
    let (seq, ack) = (read_u32(segment, 4)?, read_u32(segment, 8)?);
    let (header, flags) = (usize::from(*segment.get(12)? >> 4) * 4, *segment.get(13)?);
    let mut fields = SequenceFields::default();
    let payload = length.checked_sub(header.max(20))? as u32;
    fields.is_reset = flags & RST != 0;
    let first = seq.wrapping_add(u32::from(flags & SYN != 0));
    if flags & SYN != 0 {
        fields.handshake =
            Some(if flags & ACK == 0 { HandshakePacket::Request } else { HandshakePacket::Reply });
        fields.initial_number = Some(first);
    }
    // A SYN may carry data: RFC 7413 section 2.
    if payload > 0 {
        fields.data.push((first, payload));
        fields.carries.push((payload, flags & PSH != 0));
    }
    fields.acknowledged = (flags & ACK != 0).then_some(ack);
    parse_options(segment.get(20..header.min(segment.len())).unwrap_or_default(), &mut fields);
    // RFC 2883 section 4: the first block is a duplicate if it lies below the acknowledgement or in the second block.
    if let Some(&(left, right)) = fields.blocks.first() {
        let below = ack.wrapping_sub(right) as i32 >= 0;
        let inside = fields.blocks.get(1).is_some_and(|&(low, high)| {
            left.wrapping_sub(low) as i32 >= 0 && high.wrapping_sub(right) as i32 >= 0
        });
        if below || inside {
            fields.duplicates.push(fields.blocks.remove(0));
        }
    }
    Some(fields)
}

/// Parses complete options. RFC 9293 section 3.2, RFC 2018 section 3, RFC 7323 section 3.2.
fn parse_options(mut options: &[u8], fields: &mut SequenceFields) {
    while let Some((&kind, rest)) = options.split_first() {
        let length = match kind {
            0 => return,
            1 => 1,
            _ => rest.first().map_or(0, |length| usize::from(*length)),
        };
        let Some(option) = options.get(..length).filter(|option| !option.is_empty()) else { return };
        options = &options[length..];
        match (kind, length) {
            (2, 4) => fields.mss = read_u16(option, 2),
            (5, 10..) => {
                let blocks = option[2..].chunks_exact(8);
                fields.blocks =
                    blocks.filter_map(|block| Some((read_u32(block, 0)?, read_u32(block, 4)?))).collect();
            }
            (8, 10) => fields.timestamps = read_u32(option, 2).zip(read_u32(option, 6)),
            _ => {}
        }
    }
}

/// Parses the chunks of an SCTP packet. RFC 9260 sections 3.1 to 3.3.4.
fn parse_sctp(packet: &[u8]) -> Option<SequenceFields> {
    let mut fields = SequenceFields { is_sctp: true, ..SequenceFields::default() };
    let mut chunks = packet.get(12..)?;
    while let Some(length) = read_u16(chunks, 2) {
        match chunks[0] {
            0 => {
                const END: u8 = 0x01;
                fields.data.extend(read_u32(chunks, 4).map(|tsn| (tsn, 1)));
                fields.carries.push((u32::from(length).saturating_sub(16), chunks[1] & END != 0));
            }
            1 => {
                fields.handshake = Some(HandshakePacket::Request);
                fields.initial_number = read_u32(chunks, 16);
            }
            // Each INIT gets its own INIT ACK, of which the association uses only one: the first number here may be unused.
            2 => fields.handshake = Some(HandshakePacket::Reply),
            6 => fields.is_reset = true,
            3 => sack(&chunks[..usize::from(length).min(chunks.len())], &mut fields),
            _ => {}
        }
        let next = usize::from(length).max(4).next_multiple_of(4);
        chunks = chunks.get(next..).unwrap_or_default();
    }
    Some(fields)
}

fn sack(chunk: &[u8], fields: &mut SequenceFields) {
    let Some(next) = read_u32(chunk, 4).map(|tsn| tsn.wrapping_add(1)) else { return };
    fields.acknowledged = Some(next);
    let [gaps, duplicates] = [12, 14].map(|at| usize::from(read_u16(chunk, at).unwrap_or(0)));
    let lists = chunk.get(16..).unwrap_or_default();
    let (blocks, rest) = lists.split_at((gaps * 4).min(lists.len()));
    // Offsets from the cumulative number, both ends inclusive.
    fields.blocks = blocks
        .chunks_exact(4)
        .filter_map(|block| Some([read_u16(block, 0)?, read_u16(block, 2)?].map(u32::from)))
        .map(|[start, end]| (next.wrapping_add(start).wrapping_sub(1), next.wrapping_add(end)))
        .collect();
    let tsns = rest.chunks_exact(4).take(duplicates).filter_map(|tsn| read_u32(tsn, 0));
    fields.duplicates = tsns.map(|tsn| (tsn, tsn.wrapping_add(1))).collect();
}

pub(super) fn read_u16(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn read_u32(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}
