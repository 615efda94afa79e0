//! What a host says to a packet for a port where nobody listens.

use hol_wire::{Packet, Transport};

/// A reset or an abort; nothing for a datagram, for this world has no ICMP.
pub(crate) fn answer(packet: &Packet) -> Option<Packet> {
    if packet.corrupted {
        return None;
    }
    let transport: Option<Transport> = match &packet.transport {
        Transport::Tcp(segment) => hol_tcp::reset_for(segment).map(Into::into),
        Transport::Sctp(packet) => hol_sctp::answer_to_stray(packet).map(Into::into),
        Transport::Udp(_) | Transport::Quic(_) => None,
    };
    Some(Packet::new(packet.destination, packet.source, transport?))
}
