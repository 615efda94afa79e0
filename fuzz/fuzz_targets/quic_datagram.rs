//! Parses arbitrary octets as unprotected QUIC packets: they are rejected, or printed and protected, which
//! keeps their length.
#![no_main]

use hol_wire::quic::{Datagram, Secrets, Side};
use hol_wire::Packet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|octets: Vec<u8>| {
    let secrets = Secrets { origin: [7; 8], sender: Side::Client };
    let payload = octets[..octets.len().min(1472)].to_vec().into();
    let carried = Default::default();
    let datagram = Datagram { source_port: 40_000, destination_port: 4433, payload, secrets, carried };
    let [source, destination] = [1, 2].map(|host| hol_wire::ipv4(10, 0, 0, host));
    let packet = Packet::new(source, destination, datagram);
    let _ = packet.to_string();
    assert_eq!(packet.to_bytes().len(), packet.length());
});
