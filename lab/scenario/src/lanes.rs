//! The streams and connections over which a workload spreads its messages, the same in every world.

use hol_quic::Carriage;
use hol_stack::{Protocol, TransportSpec};
use hol_workloads::Lanes;

/// Returns the lanes of a transport.
pub fn lanes(transport: &TransportSpec) -> Lanes {
    Lanes {
        streams: transport.streams(),
        connections: transport.connections(),
        gives_up: transport.gives_up(),
        is_stream: match transport.protocol() {
            Protocol::Tcp { .. } | Protocol::Mptcp { .. } | Protocol::Unix { .. } => true,
            Protocol::Quic { carriage, .. } => *carriage == Carriage::Streams,
            Protocol::Sctp { .. } | Protocol::Udp { .. } => false,
        },
    }
}
