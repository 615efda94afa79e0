//! Parses arbitrary octets with a correct SCTP checksum. A parsed packet must survive emitting and parsing
//! again.
#![no_main]

use hol_wire::sctp::Packet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: Vec<u8>| {
    if let Ok(packet) = Packet::parse(with_checksum(octets).into()) {
        assert_eq!(Packet::parse(packet.to_bytes()).as_ref(), Ok(&packet));
        let _ = packet.to_string();
    }
});

/// Sets the checksum: CRC32c over the packet with zeros in the checksum field (RFC 9260 section 6.8).
fn with_checksum(mut octets: Vec<u8>) -> Vec<u8> {
    if octets.len() >= 12 {
        octets[8..12].fill(0);
        let crc = crc32c::crc32c(&octets);
        octets[8..12].copy_from_slice(&crc.to_le_bytes());
    }
    octets
}
