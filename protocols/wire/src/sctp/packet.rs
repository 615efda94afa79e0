//! The common header. RFC 9260 sections 3.1 and 6.8.

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use super::{Chunk, tlv};
use crate::ParseError;

/// One SCTP packet: the common header and at least one chunk.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------------------------------+-------------------------------+
/// |      Source Port Number       |    Destination Port Number    |
/// +-------------------------------+-------------------------------+
/// |                       Verification Tag                        |
/// +---------------------------------------------------------------+
/// |                           Checksum                            |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Verification tag. RFC 9260 section 8.5.
    pub verification_tag: u32,
    /// Whether the checksum is not computed, and is zero on the wire. RFC 9653 section 5.2.
    pub zero_checksum: bool,
    /// Chunks in the order in which they are bundled.
    pub chunks: SmallVec<[Chunk; 2]>,
}

/// Position of the checksum in a packet.
const CHECKSUM_RANGE: std::ops::Range<usize> = 8..12;

impl Packet {
    /// Length of the common header in octets.
    pub const HEADER_LENGTH: usize = 12;

    /// Returns the length in octets of the common header and of all chunks with their padding.
    pub fn length(&self) -> usize {
        Self::HEADER_LENGTH + self.chunks.iter().map(Chunk::length).sum::<usize>()
    }

    /// Returns the packet's octets with their checksum.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.length());
        self.emit(&mut out);
        out.into()
    }

    /// Appends the packet with its checksum.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u32(self.verification_tag);
        out.put_u32(0);
        self.chunks.iter().for_each(|chunk| chunk.emit(out));
        if !self.zero_checksum {
            let checksum = checksum(&out[start..]);
            out[start..][CHECKSUM_RANGE].copy_from_slice(&checksum);
        }
    }

    /// Parses a packet; ignores reserved bits, padding, and an incomplete chunk at the end (RFC 9260 section
    /// 6.10). The receiver decides whether a checksum of zero is acceptable: RFC 9653 section 5.3.
    pub fn parse(mut octets: Bytes) -> Result<Self, ParseError> {
        if octets.len() < Self::HEADER_LENGTH {
            return Err(ParseError::Truncated);
        }
        let is_wrong = octets[CHECKSUM_RANGE] != checksum(&octets);
        let zero_checksum = is_wrong && octets[CHECKSUM_RANGE] == [0; 4];
        if is_wrong && !zero_checksum {
            return Err(ParseError::Checksum);
        }
        let (source_port, destination_port) = (octets.get_u16(), octets.get_u16());
        let verification_tag = octets.get_u32();
        octets.advance(CHECKSUM_RANGE.len());
        let mut chunks = SmallVec::new();
        while tlv::is_whole(&octets) {
            chunks.push(Chunk::parse(&mut octets)?);
        }
        if chunks.is_empty() {
            return Err(ParseError::Truncated);
        }
        Ok(Self { source_port, destination_port, verification_tag, zero_checksum, chunks })
    }
}

/// Returns the CRC32c of the packet with its checksum set to zero. RFC 9260 appendix A transmits the lowest octet
/// of the reflected CRC first.
fn checksum(packet: &[u8]) -> [u8; 4] {
    let crc = crc32c::crc32c(&packet[..CHECKSUM_RANGE.start]);
    let crc = crc32c::crc32c_append(crc, &[0; CHECKSUM_RANGE.end - CHECKSUM_RANGE.start]);
    crc32c::crc32c_append(crc, &packet[CHECKSUM_RANGE.end..]).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    /// Returns a COOKIE ACK by hand from RFC 9260 sections 3.1 and 3.3.12. `crc32c_by_bits` computes its checksum.
    fn octets() -> Vec<u8> {
        let mut octets = vec![0x1d, 0xca, 0x9c, 0x40, 1, 2, 3, 4, 0, 0, 0, 0, 11, 0, 0, 4];
        let crc = crc32c_by_bits(&octets);
        octets[CHECKSUM_RANGE].copy_from_slice(&crc.to_le_bytes());
        octets
    }

    /// RFC 9260 appendix A: polynomial 1EDC6F41, reflected 82F63B78, all ones before and after.
    fn crc32c_by_bits(octets: &[u8]) -> u32 {
        !octets.iter().fold(u32::MAX, |crc, octet| {
            (0..8).fold(crc ^ u32::from(*octet), |crc, _| {
                (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
            })
        })
    }

    fn cookie_ack() -> Packet {
        Packet {
            source_port: 7626,
            destination_port: 40000,
            verification_tag: 0x0102_0304,
            zero_checksum: false,
            chunks: smallvec![Chunk::CookieAck],
        }
    }

    /// RFC 3720 appendix B.4, the vectors of the same CRC: 32 zeros give 8a9136aa, sent as aa 36 91 8a.
    #[test]
    fn checksum_is_crc32c_in_little_endian_order() {
        assert_eq!(crc32c_by_bits(&[0; 32]), 0x8a91_36aa);
        assert_eq!(checksum(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
    }

    #[test]
    fn a_packet_is_laid_out_as_rfc_9260_draws_it() {
        assert_eq!(cookie_ack().to_bytes(), octets());
        assert_eq!(Packet::parse(octets().into()), Ok(cookie_ack()));
    }

    /// RFC 9260 section 6.8.
    #[test]
    fn every_flipped_bit_is_noticed() {
        for bit in 0..octets().len() * 8 {
            let mut octets = octets();
            octets[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Packet::parse(octets.into()), Err(ParseError::Checksum), "bit {bit}");
        }
    }

    /// RFC 9653 section 5.2.
    #[test]
    fn omitted_checksum_is_parsed_as_zero_checksum() {
        let left_out = Packet { zero_checksum: true, ..cookie_ack() };
        assert_eq!(left_out.to_bytes()[CHECKSUM_RANGE], [0; 4]);
        assert_eq!(Packet::parse(left_out.to_bytes()), Ok(left_out));
    }

    /// RFC 9653 section 3 has an INIT whose CRC32c is zero: its checksum is valid.
    #[test]
    fn valid_checksum_of_zero_is_not_zero_checksum() {
        let octets = [
            0x13, 0x89, 0x13, 0x89, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 20, 0xfc, 0xb7, 0x5c, 0xca, 0, 0, 5,
            0xdc, 0, 1, 0, 1, 0, 0, 0, 0,
        ];
        assert_eq!(
            Packet::parse(Bytes::copy_from_slice(&octets)).map(|packet| packet.zero_checksum),
            Ok(false)
        );
    }

    /// RFC 9260 section 6.10.
    #[test]
    fn partial_last_chunk_is_dropped_and_earlier_chunks_are_kept() {
        for partial in [&[10, 0, 0, 9, 1, 2, 3, 4][..], &[10, 0], &[10, 0, 0, 3]] {
            let mut octets = [&octets(), partial].concat();
            octets[CHECKSUM_RANGE].fill(0);
            let crc = crc32c_by_bits(&octets);
            octets[CHECKSUM_RANGE].copy_from_slice(&crc.to_le_bytes());
            assert_eq!(Packet::parse(octets.into()), Ok(cookie_ack()));
        }
    }

    /// RFC 9260 section 3: a packet has at least one chunk.
    #[test]
    fn packet_without_chunks_is_refused() {
        let empty = Packet { chunks: smallvec![], ..cookie_ack() };
        assert_eq!(Packet::parse(empty.to_bytes()), Err(ParseError::Truncated));
        assert_eq!(Packet::parse(Bytes::from_static(&[0; 11])), Err(ParseError::Truncated));
    }
}
