//! The ports of clients and servers, the same in every world so that captures can be compared.

use hol_wire::Packet;

/// The server port of the first flow, which is the port of SIMCO (RFC 4540 section 3).
const SERVER_PORT: u16 = 7626;
/// The first client port, in the dynamic range. RFC 6335 section 6.
pub const FIRST_CLIENT_PORT: u16 = 49152;
/// How many ports clients can use.
pub const CLIENT_PORTS: usize = (u16::MAX - FIRST_CLIENT_PORT) as usize + 1;

/// Returns the server port of a flow. Each flow has its own, below all client ports.
pub const fn server_port(flow: usize) -> u16 {
    SERVER_PORT + flow as u16
}

/// Returns the flow of a packet. 0 is the measured flow; background flows follow, in the order of
/// [`Scenario::background_flows`](crate::Scenario::background_flows). Packets between programs on lower ports count as
/// packets of the measured flow.
pub fn flow_of(packet: &Packet) -> usize {
    let (source, destination) = packet.ports();
    usize::from(source.min(destination).saturating_sub(SERVER_PORT))
}
