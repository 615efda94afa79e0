//! Tests that typed packets and their octets have the same content.

use bytes::Bytes;
use hol_wire::{Packet, ParseError, Transport, ip_header_length, sctp, tcp};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::arbitrary::packet;

proptest! {
    #[test]
    fn packet_round_trips_through_octets(packet in packet()) {
        let octets = packet.to_bytes();
        prop_assert_eq!(octets.len(), packet.length());
        prop_assert_eq!(Packet::parse(octets), Ok(packet.without_send_times()));
    }

    /// RFC 9293 section 3.1, RFC 9260 section 6.8: a receiver drops it silently. RFC 9653: without a checksum, the lower layer does.
    #[test]
    fn a_corrupted_packet_has_a_wrong_checksum(mut packet in packet()) {
        if let Transport::Sctp(sctp) = &mut packet.transport {
            sctp.zero_checksum = false;
        }
        let corrupted = Packet { corrupted: true, ..packet };
        prop_assert_eq!(Packet::parse(corrupted.to_bytes()), Err(ParseError::Checksum));
    }

    #[test]
    fn a_truncated_packet_is_refused(packet in packet(), cut in any::<prop::sample::Index>()) {
        let octets = packet.to_bytes();
        prop_assert!(Packet::parse(octets.slice(..cut.index(octets.len()))).is_err());
    }

    /// Octets with valid checksums, which reach the parsers: everything parsed is emitted unchanged.
    #[test]
    fn any_octets_parse_to_a_packet_or_an_error(octets in vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(octets.clone().into());
        prop_assert_ne!(segment_comes_back(octets.clone()), Some(false));
        prop_assert_ne!(chunks_come_back(octets), Some(false));
    }

    /// Random octets are hardly ever chunks; octets of a packet with a few changes often are.
    #[test]
    fn mutated_packet_parses_to_a_packet_or_an_error(
        packet in packet(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut octets = packet.to_bytes()[ip_header_length(packet.destination)..].to_vec();
        for (at, octet) in &changes {
            let at = at.index(octets.len());
            octets[at] = *octet;
        }
        let comes_back = match packet.transport {
            Transport::Tcp(_) => segment_comes_back(octets),
            Transport::Sctp(_) => chunks_come_back(octets),
            Transport::Udp(_) | Transport::Quic(_) => Some(true),
        };
        let expected = if changes.is_empty() { [Some(true); 2] } else { [Some(true), None] };
        prop_assert!(expected.contains(&comes_back), "{:?}", comes_back);
    }
}

/// Returns `None` for an error, otherwise whether the segment is emitted unchanged.
fn segment_comes_back(octets: Vec<u8>) -> Option<bool> {
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let segment = tcp::Segment::parse(tcp_checksummed(octets), source, destination).ok()?;
    let again = tcp::Segment::parse(segment.to_bytes(source, destination), source, destination);
    Some(again == Ok(segment))
}

/// Returns `None` for an error, otherwise whether the SCTP packet is emitted unchanged.
fn chunks_come_back(octets: Vec<u8>) -> Option<bool> {
    let packet = sctp::Packet::parse(sctp_checksummed(octets)).ok()?;
    Some(sctp::Packet::parse(packet.to_bytes()) == Ok(packet))
}

/// Returns the octets with their TCP checksum between 10.0.0.1 and 10.0.0.2.
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

/// Returns the octets with their SCTP checksum.
fn sctp_checksummed(mut octets: Vec<u8>) -> Bytes {
    if octets.len() >= 12 {
        octets[8..12].fill(0);
        let crc = crc32c::crc32c(&octets);
        octets[8..12].copy_from_slice(&crc.to_le_bytes());
    }
    octets.into()
}
