//! SCTP packets in received datagrams.

use bytes::Bytes;
use hol_sctp::wire::sctp::{Chunk, Packet, Parameter};

/// The common header of an SCTP packet, which is read before the checksum is verified. RFC 9260 section 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub source_port: u16,
    pub verification_tag: u32,
    /// Whether the packet contains its sender's own verification tag, as an ABORT or SHUTDOWN COMPLETE with the T bit
    /// does. RFC 9260 section 8.5.1.
    pub is_reflected: bool,
}

impl Header {
    const ABORT: u8 = 6;
    const SHUTDOWN_COMPLETE: u8 = 14;

    /// Parses the header; `None` if the datagram is too short for a packet with a chunk.
    pub fn of(octets: &[u8]) -> Option<Self> {
        let [p0, p1, _, _, t0, t1, t2, t3, _, _, _, _, kind, flags, _, _] = *octets.first_chunk()?;
        Some(Self {
            source_port: u16::from_be_bytes([p0, p1]),
            verification_tag: u32::from_be_bytes([t0, t1, t2, t3]),
            is_reflected: matches!(kind, Self::ABORT | Self::SHUTDOWN_COMPLETE) && flags & 1 == 1,
        })
    }
}

/// Parses the packet in a datagram; `None` if it is invalid. The checksum must be present (RFC 9260 section 6.8, RFC
/// 9653 section 3).
///
/// Addresses in an INIT or INIT ACK are removed (RFC 6951 section 5.7), and so is the request for a longer cookie
/// lifetime, which a server may ignore (RFC 9260 section 3.3.2.1.3). User data are copied, so that a small piece does
/// not keep a whole datagram in memory.
pub fn parse(octets: &[u8]) -> Option<Packet> {
    let mut packet = Packet::parse(Bytes::copy_from_slice(octets)).ok()?;
    let is_ignored = |parameter: &Parameter| {
        parameter.address().is_some() || matches!(parameter, Parameter::CookiePreservative(_))
    };
    for chunk in &mut packet.chunks {
        match chunk {
            Chunk::Init(init) | Chunk::InitAck(init) => {
                init.parameters.retain(|parameter| !is_ignored(parameter));
            }
            Chunk::Data(data) => data.payload = Bytes::copy_from_slice(&data.payload),
            _ => {}
        }
    }
    (!packet.zero_checksum).then_some(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_sctp::wire::ipv4;
    use hol_sctp::wire::sctp::{Init, Tsn};

    fn packet(chunk: Chunk) -> Packet {
        Packet {
            source_port: 5000,
            destination_port: 7626,
            verification_tag: 0x0102_0304,
            zero_checksum: false,
            chunks: vec![chunk].into(),
        }
    }

    /// RFC 9260 sections 3.1 and 8.5.1.
    #[test]
    fn the_header_is_read_before_the_packet_is_parsed() {
        for (chunk, is_reflected) in [
            (Chunk::CookieAck, false),
            (Chunk::Abort { reflected: false, causes: Vec::new() }, false),
            (Chunk::Abort { reflected: true, causes: Vec::new() }, true),
            (Chunk::ShutdownComplete { reflected: true }, true),
        ] {
            let expected = Header { source_port: 5000, verification_tag: 0x0102_0304, is_reflected };
            assert_eq!(Header::of(&packet(chunk).to_bytes()), Some(expected));
        }
        assert_eq!(Header::of(&[0; 15]), None);
    }

    /// RFC 6951 section 5.7, RFC 9260 section 3.3.2.1.3.
    #[test]
    fn addresses_and_longer_lives_of_cookies_are_ignored() {
        let parameters = vec![
            Parameter::of_address(ipv4(192, 0, 2, 1)),
            Parameter::CookiePreservative(1_000_000),
            Parameter::ForwardTsnSupported,
        ];
        let init = Init {
            initiate_tag: 1,
            a_rwnd: 1500,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(1),
            parameters,
        };
        let parsed = parse(&packet(Chunk::Init(Box::new(init))).to_bytes()).unwrap();
        let [Chunk::Init(init)] = &parsed.chunks[..] else { panic!("{parsed:?}") };
        assert_eq!(init.parameters, [Parameter::ForwardTsnSupported]);
    }

    /// A wrong checksum is invalid (RFC 9260 section 6.8), and so is a checksum of zero, which is only for SCTP over
    /// DTLS (RFC 9653 section 3).
    #[test]
    fn a_wrong_or_omitted_checksum_is_invalid() {
        let octets = packet(Chunk::CookieAck).to_bytes();
        assert!(parse(&octets).is_some());
        let mut wrong = octets.to_vec();
        wrong[8] ^= 1;
        assert!(parse(&wrong).is_none());
        let omitted = Packet { zero_checksum: true, ..packet(Chunk::CookieAck) };
        assert!(parse(&omitted.to_bytes()).is_none());
        assert!(parse(&octets[..11]).is_none() && parse(&[]).is_none());
    }
}
