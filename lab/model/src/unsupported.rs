//! Features that the model world does not support.

use hol_network::Topology;
use hol_scenario::Scenario;
use hol_stack::{MetricsCache, Protocol, ProtocolKind, TransportSpec};
use hol_wire::udp::Datagram;
use hol_workloads::WorkloadSpec;

/// Returns an error if the model does not support a feature of the scenario. The error names the feature and an
/// alternative.
pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
    if scenario.filtered_node().is_some() {
        return Err("the model world has no packet filter; use the kernel world (--world kernel), or filter = \"none\""
            .to_owned());
    }
    if !scenario.programs.is_empty() {
        return Err(
            "the model world cannot run programs; use the kernel world (world = \"kernel\", or --world kernel)"
                .to_owned(),
        );
    }
    if scenario.network.client_moves() && scenario.transport.kind() == ProtocolKind::Quic {
        return Err("QUIC connection migration is not supported; use tcp or sctp, or network.handover.changes = \"route\", with which the client keeps its address"
            .to_owned());
    }
    let has_backup = scenario.network.paths.iter().any(|path| path.backup);
    if has_backup && matches!(scenario.transport.protocol(), Protocol::Sctp { config, .. } if config.cmt) {
        return Err("`cmt` sends over all of network.paths; remove `backup`, or remove `cmt` to use one path at a time".to_owned());
    }
    let topology = Topology::new(&scenario.network).map_err(|problem| problem.to_string())?;
    for flow in scenario.flow_specs() {
        possible(flow.transport, flow.workload, &topology).map_err(|problem| {
            match flow.position.table() {
                Some(table) => format!("in {table}: {problem}"),
                None => problem,
            }
        })?;
    }
    Ok(())
}

fn possible(transport: &TransportSpec, workload: &WorkloadSpec, network: &Topology) -> Result<(), String> {
    let absent =
        |what| Err(format!("the model world does not support {what}; use the kernel world (--world kernel)"));
    match transport.protocol() {
        Protocol::Mptcp { .. } => absent("mptcp"),
        Protocol::Unix { .. } => absent("unix sockets, which use no network"),
        Protocol::Tcp { metrics_cache, .. } if *metrics_cache != MetricsCache::Off => absent("metrics_cache"),
        Protocol::Sctp { no_checksums: true, .. } => absent("`no_checksums`"),
        Protocol::Udp { .. } => {
            let (mtu, headers) =
                (network.smallest_mtu(), (network.ip().header_length() + Datagram::HEADER_LENGTH) as u64);
            match workload.longest_message().filter(|size| size + headers > mtu) {
                Some(size) => Err(format!(
                    "a message of {size} octets and its headers do not fit into {mtu} octets, and the model world has no \
                     fragmentation; lower `size`, or `packet` of media"
                )),
                None => Ok(()),
            }
        }
        Protocol::Quic { .. } => hol_scenario::check_quic(transport, workload, network),
        _ => Ok(()),
    }
}
