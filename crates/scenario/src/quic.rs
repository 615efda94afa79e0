//! What QUIC asks of a path and of the messages on it, in every world.

use hol_quic::{Carriage, Config};
use hol_stack::{Protocol, TransportSpec};
use hol_wire::udp::Datagram;
use hol_workloads::WorkloadSpec;

/// QUIC asks of a path that it carries 1200 octets (RFC 9000 section 14), and has no fragments of a DATAGRAM frame. Refuses what does not
/// fit, with the cure; other transports ask nothing here.
pub fn check_quic(transport: &TransportSpec, workload: &WorkloadSpec, mtu: u64) -> Result<(), String> {
    const HEADERS: u64 = (hol_wire::Packet::IP_HEADER + Datagram::HEADER) as u64;
    const LEAST: u64 = Config::LEAST_MTU + HEADERS;
    /// A short header, a tag, and the type and length of the frame.
    const AROUND: u64 = 1 + 8 + 4 + 16 + 9;
    let Protocol::Quic { config, carriage, .. } = transport.protocol() else { return Ok(()) };
    if mtu < LEAST {
        return Err(format!(
            "QUIC needs an MTU of {LEAST} octets at least (RFC 9000 section 14), and the network has {mtu}; raise `mtu`"
        ));
    }
    let room = config.mtu.0.min(mtu - HEADERS) - AROUND;
    match workload.longest() {
        Some(size) if *carriage == Carriage::Datagrams && size > room => Err(format!(
            "a message of {size} octets does not fit into a DATAGRAM frame of {room}; lower `size`, or `packet` of media, raise the \
             transport's `mtu`, or take quic without datagrams"
        )),
        _ => Ok(()),
    }
}
