//! Who listens where: the same in every world, so that captures are read alike.

use hol_wire::Packet;

/// Where the server of the first flow listens: SIMCO's port. RFC 4540 section 3.
const SERVER_PORT: u16 = 7626;
/// The first client port, of the dynamic range. RFC 6335 section 6.
pub const FIRST_CLIENT_PORT: u16 = 49152;
/// How many client ports there are.
pub const CLIENT_PORTS: usize = (u16::MAX - FIRST_CLIENT_PORT) as usize + 1;

/// Where the server of a flow listens: each has a port of its own, and all are below the clients'.
pub const fn server_port(flow: usize) -> u16 {
    SERVER_PORT + flow as u16
}

/// Which flow of a run a packet belongs to: 0 is measured, from 1 on those of the background in the order of
/// [`Scenario::background_flows`](crate::Scenario::background_flows). What programs send to ports below counts as measured.
pub fn flow_of(packet: &Packet) -> usize {
    let (source, destination) = packet.ports();
    usize::from(source.min(destination).saturating_sub(SERVER_PORT))
}
