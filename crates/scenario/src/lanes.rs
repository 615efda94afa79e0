//! What a transport offers a workload to spread its messages over: the same in every world.

use hol_stack::{Kind, TransportSpec};
use hol_workloads::Lanes;

/// The lanes of a transport.
pub fn lanes(transport: &TransportSpec) -> Lanes {
    Lanes {
        streams: transport.streams(),
        connections: transport.connections(),
        gives_up: transport.gives_up(),
        is_stream: matches!(transport.kind(), Kind::Tcp | Kind::Mptcp | Kind::Unix),
    }
}
