//! A host's reply to a packet for a port without a listener.

use hol_wire::{Packet, Transport};

/// Returns the reply of a closed port to a packet: an RST for TCP, an ABORT for SCTP. `None` for a UDP datagram,
/// because the model has no ICMP.
pub(crate) fn answer(packet: &Packet) -> Option<Packet> {
    if packet.corrupted {
        return None;
    }
    let transport: Option<Transport> = match &packet.transport {
        Transport::Tcp(segment) => hol_tcp::reset_for(segment).map(Into::into),
        Transport::Sctp(packet) => hol_sctp::response_to_out_of_the_blue(packet).map(Into::into),
        Transport::Udp(_) | Transport::Quic(_) => None,
    };
    Some(Packet::new(packet.destination, packet.source, transport?))
}
