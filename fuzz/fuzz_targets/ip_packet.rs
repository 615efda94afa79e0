//! Parses arbitrary octets with a correct IPv4 header checksum. A parsed packet must survive emitting and
//! parsing again.
#![no_main]

use hol_wire::Packet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: Vec<u8>| {
    if let Ok(packet) = Packet::parse(with_header_checksum(octets).into()) {
        assert_eq!(Packet::parse(packet.to_bytes()).as_ref(), Ok(&packet));
        let _ = packet.to_string();
    }
});

/// Sets the checksum: the one's complement sum over the header, whatever its length field (RFC 791 section
/// 3.1).
fn with_header_checksum(mut octets: Vec<u8>) -> Vec<u8> {
    let length = octets.first().map_or(0, |first| usize::from(first & 0x0f) * 4);
    if (20..=octets.len()).contains(&length) {
        octets[10..12].fill(0);
        let words = octets[..length].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
        let sum: u32 = words.sum();
        let folded = (sum >> 16) + (sum & 0xffff);
        let checksum = !((folded >> 16) + folded) as u16;
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
    octets
}
