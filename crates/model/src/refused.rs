//! What the model world does not have.

use hol_network::Topology;
use hol_quic::Carriage;
use hol_scenario::Scenario;
use hol_stack::{MetricsCache, Protocol, TransportSpec};
use hol_wire::udp::Datagram;
use hol_workloads::WorkloadSpec;

/// Refuses it by name, with the cure.
pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
    if scenario.filtered().is_some() {
        return Err("the model world has no packet filter; the kernel world has (--world kernel), or take \
                    filter = \"none\""
            .to_owned());
    }
    if !scenario.programs.is_empty() {
        return Err(
            "the model world runs no programs; the kernel world does (world = \"kernel\", or --world kernel)"
                .to_owned(),
        );
    }
    let speaks_quic = |transport: &TransportSpec| matches!(transport.protocol(), Protocol::Quic { .. });
    if scenario.network.handover.is_some() && speaks_quic(&scenario.transport) {
        return Err("the model world's QUIC does not migrate; remove network.handover, or take tcp or sctp"
            .to_owned());
    }
    let topology = Topology::new(&scenario.network).map_err(|problem| problem.to_string())?;
    let mtu = topology.smallest_mtu();
    possible(&scenario.transport, &scenario.workload, mtu)?;
    for (number, entry) in (1..).zip(&scenario.background) {
        possible(&entry.transport, &entry.workload, mtu)
            .map_err(|problem| format!("in [[background]] number {number}: {problem}"))?;
    }
    for (number, entry) in (1..).zip(&scenario.onward) {
        possible(&entry.transport, &entry.workload, mtu)
            .map_err(|problem| format!("in [[onward]] number {number}: {problem}"))?;
    }
    Ok(())
}

fn possible(transport: &TransportSpec, workload: &WorkloadSpec, mtu: u64) -> Result<(), String> {
    let absent = |what| Err(format!("the model world has no {what}; the kernel world has (--world kernel)"));
    match transport.protocol() {
        Protocol::Mptcp { .. } => absent("mptcp"),
        Protocol::Unix { .. } => absent("unix, which has no network under it that could be modelled"),
        Protocol::Tcp { metrics_cache, .. } if *metrics_cache != MetricsCache::Off => absent("metrics_cache"),
        Protocol::Sctp { no_checksums: true, .. } => absent("checksums to leave out"),
        Protocol::Udp { .. } => match workload.longest() {
            Some(size) if size + (hol_wire::Packet::IP_HEADER + Datagram::HEADER) as u64 > mtu => {
                Err(format!(
                    "a message of {size} octets and its headers do not fit into {mtu} octets, and the model world has no \
                 fragmentation; lower `size`, or `packet` of media"
                ))
            }
            _ => Ok(()),
        },
        Protocol::Quic { config, carriage, .. } => quic(config, *carriage, workload, mtu),
        _ => Ok(()),
    }
}

/// QUIC asks of a path that it carries 1200 octets (RFC 9000 section 14), and has no fragments of a DATAGRAM frame.
fn quic(
    config: &hol_quic::Config,
    carriage: Carriage,
    workload: &WorkloadSpec,
    mtu: u64,
) -> Result<(), String> {
    const HEADERS: u64 = (hol_wire::Packet::IP_HEADER + Datagram::HEADER) as u64;
    const LEAST: u64 = hol_quic::Config::LEAST_MTU + HEADERS;
    /// A short header, a tag, and the type and length of the frame.
    const AROUND: u64 = 1 + 8 + 4 + 16 + 9;
    if mtu < LEAST {
        return Err(format!(
            "QUIC needs an MTU of {LEAST} octets at least (RFC 9000 section 14), and the network has {mtu}; raise `mtu`"
        ));
    }
    let room = config.mtu.0.min(mtu - HEADERS) - AROUND;
    match workload.longest() {
        Some(size) if carriage == Carriage::Datagrams && size > room => Err(format!(
            "a message of {size} octets does not fit into a DATAGRAM frame of {room}; lower `size`, or `packet` of media, raise the \
             transport's `mtu`, or take quic without datagrams"
        )),
        _ => Ok(()),
    }
}
