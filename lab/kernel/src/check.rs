//! Checks whether a kernel supports a scenario before the run, and whether the run was valid after it.

use hol_base::Ratio;
use hol_network::{Ip, Topology};
use hol_scenario::{BaselineDelay, FilterReport, LinkDirectionCounters, Scenario, WorldReport, check_quic};
use hol_sockets::Sysctl;
use hol_stack::{ProtocolKind, TransportSpec, linux_version};
use hol_workloads::WorkloadSpec;

use crate::error::MachineFault;
use crate::image::Image;
use crate::root::RootImage;
use crate::{KernelError, engine, modules, netem};

/// The largest time in ns by which namespaces and interfaces may delay a datagram in addition to the expected
/// delay.
const DELAY_SLACK: u64 = 250_000;
/// The largest time in ns by which a datagram may arrive early, because of rounding.
const MAX_ROUNDING_ERROR: u64 = 1000;
/// The largest deviation of the spacing of datagrams in a train from the expected spacing, in ns. There is a deviation
/// because sending takes time. For a large spacing, [`SPACING_DIVISOR`] allows more.
const SPACING_SLACK: u64 = 30_000;
/// The spacing of datagrams in a train may deviate by the expected spacing divided by this number.
const SPACING_DIVISOR: u64 = 50;
/// The largest deviation of the number of losses from the expected number, in standard deviations.
const MAX_DEVIATIONS: f64 = 6.0;

/// Returns an error that names the first feature that the kernel of `image` does not support.
pub fn check_supported(scenario: &Scenario, image: &Image) -> Result<(), KernelError> {
    if scenario.transport.kind() == ProtocolKind::Sctp
        && !scenario.transport.is_userspace()
        && !image.has_sctp()
    {
        return Err(KernelError::ModuleMissing {
            directory: image.modules(),
            module: modules::SCTP,
            cure: "SCTP needs this module, other transports do not; use a distribution's standard kernel, which `hol kernel fetch` \
                downloads",
        });
    }
    if let Some(module) = image.missing_nftables_module().filter(|_| scenario.filtered_node().is_some()) {
        return Err(KernelError::ModuleMissing {
            directory: image.modules(),
            module,
            cure: "the packet filter (nftables) needs this module; to add it, run `hol kernel fetch` or `hol kernel use` again",
        });
    }
    check_any_kernel(scenario, image.version())?;
    if netem::plan(&scenario.network)?.has_dualpi2() && !image.has_module(modules::DUALPI2) {
        return Err(KernelError::ModuleMissing {
            directory: image.modules(),
            module: modules::DUALPI2,
            cure: "Debian's kernels do not contain this module; `hol kernel fetch 7.3 --dualpi2` builds it",
        });
    }
    engine::engine_for(image).check(scenario, image)?;
    check_programs(scenario)
}

/// Returns an error that names the first feature that no kernel of release `kernel` supports, whatever modules it
/// has.
pub(crate) fn check_any_kernel(scenario: &Scenario, kernel: &str) -> Result<(), KernelError> {
    scenario.check().map_err(|problem| unsupported("scenario", problem.to_string()))?;
    if scenario.network.client_moves() && scenario.transport.kind() == ProtocolKind::Udp {
        let why = "Linux sends no datagrams from a removed address, and the client does not open another socket; use the model world, or changes = \"route\", with which the client keeps its address";
        return Err(unsupported("network.handover", why.to_owned()));
    }
    if scenario.network.client_moves() && scenario.transport.is_userspace() {
        let why = "hol's own transports over UDP (QUIC and sctp:socket=own) do not support migration; use tcp or sctp, or changes = \
            \"route\", with which the client keeps its address";
        return Err(unsupported("network.handover", why.to_owned()));
    }
    let plan = netem::plan(&scenario.network)?;
    if plan.has_dualpi2() && linux_version(kernel) < DUALPI2_VERSION {
        let why = "Linux has DualPI2 since 6.17; run `hol kernel fetch 7.3 --dualpi2`, then use --world kernel:7.3, or use the model world";
        return Err(unsupported("network.discipline", why.to_owned()));
    }
    let network = plan.network;
    if scenario.network.client_moves() && network.ip() == Ip::V6 {
        let why = "address changes are only supported over IPv4; remove `ip`, or use changes = \"route\" or the model world";
        return Err(unsupported("network.handover", why.to_owned()));
    }
    let mut flows = Flows { kernel, network: &network, sysctls: Vec::new() };
    flows.add("transport", &scenario.transport, &scenario.workload)?;
    for (number, entry) in (1..).zip(&scenario.background).filter(|(_, entry)| entry.count > 0) {
        let what = format!("[[background]] number {number}");
        if scenario.filtered_node() == Some(entry.workload.server_node()) {
            let why = "the packet filter of its server node belongs to the middlebox of the workload; use another node as the server";
            return Err(unsupported(&what, why.to_owned()));
        }
        flows.add(&what, &entry.transport, &entry.workload)?;
    }
    for (number, entry) in (1..).zip(&scenario.onward) {
        flows.add(&format!("[[onward]] number {number}"), &entry.transport, &entry.workload)?;
    }
    Ok(())
}

/// The first version of Linux that has DualPI2 (`net/sched/sch_dualpi2.c`).
pub(crate) const DUALPI2_VERSION: [u32; 2] = [6, 17];

/// Congestion controls of the model that no released Linux has.
const NOT_IN_LINUX: [(&str, &str); 2] = [
    ("prague", "Linux has no Prague (https://github.com/L4STeam/linux has); use the model world"),
    (
        "bbr3",
        "Linux has BBR version 1, cc=bbr (https://github.com/google/bbr has version 3); use the model world",
    ),
];

fn unsupported(what: &str, why: String) -> KernelError {
    KernelError::Unsupported { what: what.to_owned(), why }
}

/// The flows that have to run on one kernel at the same time.
struct Flows<'s> {
    /// The release of the kernel.
    kernel: &'s str,
    network: &'s Topology,
    /// The sysctls that each flow needs, with the flow's workload.
    sysctls: Vec<(&'s WorkloadSpec, Vec<Sysctl>)>,
}

impl<'s> Flows<'s> {
    /// Adds a flow. If the kernel does not support the flow, `what` names it at the start of the error.
    fn add(
        &mut self,
        what: &str,
        transport: &TransportSpec,
        workload: &'s WorkloadSpec,
    ) -> Result<(), KernelError> {
        let congestion = transport.option_values().get("congestion").and_then(|name| name.as_str());
        if let Some((_, why)) = NOT_IN_LINUX.iter().find(|(name, _)| congestion == Some(*name)) {
            return Err(unsupported(what, (*why).to_owned()));
        }
        check_quic(transport, workload, self.network).map_err(|problem| unsupported(what, problem))?;
        hol_sockets::check_workload(transport, workload)
            .map_err(|problem| unsupported(what, problem.to_string()))?;
        let own = hol_sockets::sysctls(transport, self.kernel)
            .map_err(|problem| unsupported(what, problem.to_string()))?;
        if let Some(problem) = self.sysctls.iter().find_map(|other| conflict((workload, &own), other)) {
            return Err(unsupported(what, problem));
        }
        self.sysctls.push((workload, own));
        Ok(())
    }
}

/// Checks that the programs' transport can be replaced as requested, and that the programs' root file system can be
/// created.
fn check_programs(scenario: &Scenario) -> Result<(), KernelError> {
    let kind = scenario.transport.kind();
    if scenario.runs_programs() && (kind == ProtocolKind::Udp || scenario.transport.is_userspace()) {
        return Err(KernelError::Unsupported {
            what: kind.name().to_owned(),
            why: "only the TCP sockets of programs can use another transport; choose tcp, sctp or mptcp"
                .to_owned(),
        });
    }
    RootImage::of(scenario).map(drop)
}

/// Returns why two flows cannot run at once, if they cannot: they need different values of a sysctl on the same node,
/// or of a module parameter.
fn conflict(
    (workload, settings): (&WorkloadSpec, &[Sysctl]),
    (other, others): &(&WorkloadSpec, Vec<Sysctl>),
) -> Option<String> {
    let node = [workload.client_node(), workload.server_node()]
        .into_iter()
        .find(|n| [other.client_node(), other.server_node()].contains(n));
    settings.iter().find_map(|Sysctl { name, value }| {
        let theirs = &others.iter().find(|their| their.name == *name && their.value != *value)?.value;
        if name.starts_with("module/") {
            return Some(format!(
                "this flow needs {name} = {value}, which applies to all nodes, but another flow needs {theirs}; use the same value for both"
            ));
        }
        let node = node?;
        Some(format!(
            "this flow needs {name} = {value} on node {node:?}, but another flow needs {theirs} there; move one of the flows to other nodes"
        ))
    })
}

/// Returns an error if a run's own measurements show that the path was not as configured.
pub(crate) fn check_valid(scenario: &Scenario, world_report: &WorldReport) -> Result<(), KernelError> {
    world_report.floor.iter().try_for_each(check_baseline)?;
    world_report.filter.iter().try_for_each(check_filter)?;
    let plan = netem::plan(&scenario.network)?;
    for (link, counted) in plan.links.iter().zip(&world_report.link_counters) {
        check_losses(counted, link.expected_loss().unwrap_or(Ratio::ZERO))?;
    }
    Ok(())
}

/// Checks that a link's measured delay and spacing match its configured delay and rate.
fn check_baseline(floor: &BaselineDelay) -> Result<(), KernelError> {
    let BaselineDelay { name, delay, expected_delay, spacing, expected_spacing } = floor;
    let slack = SPACING_SLACK.max(expected_spacing / SPACING_DIVISOR);
    for (what, measured, within) in [
        (
            "the delay of a datagram was",
            delay,
            expected_delay.saturating_sub(MAX_ROUNDING_ERROR)..=expected_delay + DELAY_SLACK,
        ),
        (
            "the time between the arrivals of two datagrams sent back to back was",
            spacing,
            expected_spacing.saturating_sub(slack)..=expected_spacing + slack,
        ),
    ] {
        if !within.contains(measured) {
            let (min, max) = within.into_inner();
            return Err(MachineFault::Invalid(format!(
                "{name}: in a check before the run, {what} {measured} ns; expected {min} to {max} ns"
            ))
            .into());
        }
    }
    Ok(())
}

/// Checks that the packet filter contains exactly the rules that the middlebox granted, except that rules may have
/// expired in the meantime.
fn check_filter(filter: &FilterReport) -> Result<(), KernelError> {
    /// Number of elements in the filter's sets for each rule: one for each direction of the data.
    const ELEMENTS_OF_A_RULE: usize = 2;
    let FilterReport { rules, ending, missing, surplus } = filter;
    if *missing <= ending * ELEMENTS_OF_A_RULE && *surplus == 0 {
        return Ok(());
    }
    Err(MachineFault::Invalid(format!(
        "{missing} elements of the {rules} rules in force were missing in the packet filter, and {surplus} of its elements belong to no rule"
    ))
    .into())
}

/// Checks that a link lost at least about as many packets as configured. More losses are accepted, because a full
/// queue may have dropped packets.
fn check_losses(link: &LinkDirectionCounters, loss: Ratio) -> Result<(), KernelError> {
    let (sent, loss) = (link.sent as f64, loss.value());
    let (expected, deviation) = (sent * loss, (sent * loss * (1.0 - loss)).sqrt());
    if (link.dropped as f64) < expected - MAX_DEVIATIONS * deviation - 1.0 {
        let LinkDirectionCounters { name, sent, dropped } = link;
        return Err(MachineFault::Invalid(format!(
            "{name} lost {dropped} of {sent} packets; expected about {expected:.0}"
        ))
        .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(sent: u64, dropped: u64) -> LinkDirectionCounters {
        LinkDirectionCounters { name: "link/1/up".to_owned(), sent, dropped }
    }

    #[test]
    fn a_lossy_link_without_losses_is_invalid() {
        let loss = Ratio::new(0.01).unwrap();
        assert!(check_losses(&link(20_000, 190), loss).is_ok());
        let error = check_losses(&link(20_000, 0), loss).unwrap_err().to_string();
        assert!(error.contains("link/1/up lost 0 of 20000"), "{error}");
        assert!(check_losses(&link(100, 0), loss).is_ok());
    }

    #[test]
    fn a_packet_filter_without_the_granted_rules_is_invalid() {
        let filter = |missing, surplus| FilterReport { rules: 1000, ending: 3, missing, surplus };
        assert!(check_filter(&filter(6, 0)).is_ok());
        for wrong in [filter(7, 0), filter(0, 1)] {
            assert!(check_filter(&wrong).unwrap_err().to_string().contains("of the 1000 rules"));
        }
    }

    #[test]
    fn a_link_outside_its_limits_is_reported_with_both_values() {
        let floor = BaselineDelay {
            name: "link/1/up".to_owned(),
            delay: 10_150_000,
            expected_delay: 10_121_120,
            spacing: 121_000,
            expected_spacing: 121_120,
        };
        assert!(check_baseline(&floor).is_ok());
        let late =
            check_baseline(&BaselineDelay { delay: 10_400_000, ..floor.clone() }).unwrap_err().to_string();
        assert!(
            late.contains("link/1/up: in a check before the run, the delay of a datagram was 10400000 ns"),
            "{late}"
        );
        let fast = check_baseline(&BaselineDelay { spacing: 80_000, ..floor }).unwrap_err().to_string();
        assert!(fast.contains("back to back was 80000 ns") && fast.contains("91120 to 151120"), "{fast}");
    }
}
