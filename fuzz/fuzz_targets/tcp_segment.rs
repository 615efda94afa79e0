//! Parses arbitrary octets with a correct TCP checksum. A parsed segment must survive emitting and parsing
//! again.
#![no_main]

use hol_wire::tcp::Segment;
use hol_wire::{Address, ipv4};
use libfuzzer_sys::fuzz_target;

const SOURCE: Address = ipv4(10, 0, 0, 1);
const DESTINATION: Address = ipv4(10, 0, 0, 2);

fuzz_target!(|octets: Vec<u8>| {
    if let Ok(segment) = Segment::parse(with_checksum(octets).into(), SOURCE, DESTINATION) {
        let again = Segment::parse(segment.to_bytes(SOURCE, DESTINATION), SOURCE, DESTINATION);
        assert_eq!(again.as_ref(), Ok(&segment));
        let _ = segment.to_string();
    }
});

/// Sets the checksum: the one's complement sum over pseudo header and segment (RFC 9293 section 3.1).
fn with_checksum(mut octets: Vec<u8>) -> Vec<u8> {
    if octets.len() >= 18 {
        octets[16..18].fill(0);
        let pseudo_header = [0x0a00, 0x0001, 0x0a00, 0x0002, 6, octets.len() as u32];
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
        let sum: u32 = pseudo_header.into_iter().chain(octets.chunks(2).map(word)).sum();
        let folded = (sum >> 16) + (sum & 0xffff);
        let checksum = !((folded >> 16) + folded) as u16;
        octets[16..18].copy_from_slice(&checksum.to_be_bytes());
    }
    octets
}
