//! The typed packet and its octets say the same.

use bytes::Bytes;
use hol_wire::{Packet, ParseError, sctp, tcp};
use proptest::prelude::*;

use crate::arbitrary::packet;

proptest! {
    #[test]
    fn a_packet_comes_back_from_its_octets(packet in packet()) {
        let octets = packet.to_bytes();
        prop_assert_eq!(octets.len(), packet.length());
        prop_assert_eq!(Packet::parse(octets), Ok(packet.without_stamps()));
    }

    /// RFC 9293 section 3.1, RFC 9260 section 6.8: a receiver drops it silently.
    #[test]
    fn a_corrupted_packet_has_a_wrong_checksum(packet in packet()) {
        let corrupted = Packet { corrupted: true, ..packet };
        prop_assert_eq!(Packet::parse(corrupted.to_bytes()), Err(ParseError::Checksum));
    }

    #[test]
    fn a_truncated_packet_is_refused(packet in packet(), cut in any::<prop::sample::Index>()) {
        let octets = packet.to_bytes();
        prop_assert!(Packet::parse(octets.slice(..cut.index(octets.len()))).is_err());
    }

    /// Octets behind valid checksums, so that the parsers see them: whatever is understood comes back.
    #[test]
    fn any_octets_parse_to_a_packet_or_an_error(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let _ = Packet::parse(octets.clone().into());
        let segment = tcp_checksummed(octets.clone());
        if let Ok(segment) = tcp::Segment::parse(segment, source, destination) {
            let again = tcp::Segment::parse(segment.to_bytes(source, destination), source, destination);
            prop_assert_eq!(again, Ok(segment));
        }
        if let Ok(packet) = sctp::Packet::parse(sctp_checksummed(octets)) {
            prop_assert_eq!(sctp::Packet::parse(packet.to_bytes()), Ok(packet));
        }
    }
}

/// Octets with the TCP checksum that they need between 10.0.0.1 and 10.0.0.2.
fn tcp_checksummed(mut octets: Vec<u8>) -> Bytes {
    if octets.len() >= 18 {
        octets[16..18].fill(0);
        let pseudo_header = [0x0a00, 0x0001, 0x0a00, 0x0002, 6, octets.len() as u32];
        let words = octets
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
        let sum: u32 = pseudo_header.into_iter().chain(words).sum();
        let folded = (sum >> 16) + (sum & 0xffff);
        let checksum = !((folded >> 16) + folded) as u16;
        octets[16..18].copy_from_slice(&checksum.to_be_bytes());
    }
    octets.into()
}

/// Octets with the SCTP checksum that they need.
fn sctp_checksummed(mut octets: Vec<u8>) -> Bytes {
    if octets.len() >= 12 {
        octets[8..12].fill(0);
        let crc = crc32c::crc32c(&octets);
        octets[8..12].copy_from_slice(&crc.to_le_bytes());
    }
    octets.into()
}
