//! Checks before a run that this machine can do what the scenario requires.

use hol_base::Seed;
use hol_network::{Ip, NetworkSpec};
use hol_scenario::{RunError, Scenario};
use hol_sockets::{FlowParameters, Sysctl, flow_parameters, kernel_setting};
use hol_stack::ProtocolKind;
use hol_traffic::Unsupported;
use hol_workloads::Filter;

use crate::bottleneck::Bottleneck;
use crate::host_properties::{self, loopback};
use crate::plain_network::{first_difference, names_only};
use crate::router::shaped_links;

/// The path between the two ends of the flows in a live world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// The path is this machine's loopback interface.
    Loopback,
    /// The path is the unmodified network between two hosts.
    Between,
    /// The path leads through a router, which emulates delay, loss and rate.
    Routed,
}

/// Returns an error that names the first unsupported feature. A feature is unsupported if this machine lacks
/// it, or if hol would have to change this machine for it.
pub(crate) fn check_supported(scenario: &Scenario, path: Path) -> Result<(), RunError> {
    scenario.check().map_err(|problem| unsupported_error("scenario", problem))?;
    network(scenario, path)?;
    if let Some(program) = scenario.programs.first() {
        let what = format!("[[program]] on {:?}", program.node);
        return Err(unsupported_error(
            &what,
            "the live world would run programs without confinement on this machine; use --world kernel",
        ));
    }
    if let Some((name, _)) = scenario.hosts.iter().find(|(_, host)| host.filter != Filter::None) {
        let what = format!("hosts.{name}.filter");
        return Err(unsupported_error(
            &what,
            "the live world would change the packet filter of this machine; use --world kernel",
        ));
    }
    flows(scenario, path)
}

/// Checks that the path needs no emulation, or that a router emulates it.
fn network(scenario: &Scenario, path: Path) -> Result<(), RunError> {
    let spec = &scenario.network;
    if path == Path::Routed {
        let both = Bottleneck::of(scenario).and_then(|path| shaped_links(&path.network));
        return both.map(drop).map_err(|Unsupported { what, why }| unsupported_error(&what, why));
    }
    // The loopback interface has addresses of both IP versions.
    let ip = if path == Path::Loopback { spec.ip } else { Ip::V4 };
    let Some(key) = first_difference(spec, &NetworkSpec { ip, ..names_only(spec) }) else { return Ok(()) };
    let (what, who) = match path {
        Path::Loopback => {
            ("this machine's loopback", "emulate the path with namespaces (--world live:namespaces)")
        }
        Path::Between | Path::Routed => {
            ("the network between the hosts", "emulate it with a router (--router HOST)")
        }
    };
    let why = format!(
        "the path is {what}, whose properties hol does not change; remove the key, {who}, or use --world model or kernel"
    );
    Err(unsupported_error(&format!("network.{key}"), why))
}

/// Checks that every flow's protocol is available, with the options of the flow.
fn flows(scenario: &Scenario, path: Path) -> Result<(), RunError> {
    let flow_parameters = flow_parameters(scenario, Seed(0), |_, _| loopback(scenario.network.ip));
    for parameters in &flow_parameters {
        let transport = &parameters.transport;
        if transport.kind() == ProtocolKind::Unix && path != Path::Loopback {
            let why = "both ends of a UNIX socket are on one host; use tcp, or omit --peer";
            return Err(unsupported_error(&transport.to_string(), why));
        }
        let asked = host_properties::requested_sysctls(transport)
            .map_err(|problem| unsupported_error(&transport.to_string(), problem))?;
        for Sysctl { name, value } in asked {
            let here = kernel_setting(name).unwrap_or_else(|| "none".to_owned());
            if here != value {
                let name = host_properties::dotted_name(name);
                let why = format!(
                    "this transport needs {name} = {value}, but this machine has {here}; set the sysctl (`sysctl -w {name}='{value}'`), \
                    or use --world kernel"
                );
                return Err(unsupported_error(&transport.to_string(), why));
            }
        }
        parameters
            .check()
            .and_then(|()| parameters.probe())
            .map_err(|problem| unsupported_error(&transport.to_string(), problem))?;
    }
    Ok(())
}

/// Checks that every flow's protocol is available.
pub(crate) fn check_protocols(scenario: &Scenario) -> Result<(), RunError> {
    let all = flow_parameters(scenario, Seed(0), |_, _| loopback(scenario.network.ip));
    let probe = |flow: &FlowParameters| {
        flow.probe().map_err(|problem| unsupported_error(&flow.transport.to_string(), problem))
    };
    all.iter().try_for_each(probe)
}

/// Creates the error of an unsupported feature.
pub(crate) fn unsupported_error(what: &str, why: impl std::fmt::Display) -> RunError {
    RunError::Refused(format!("the live world does not support `{what}`: {why}"))
}

#[cfg(test)]
mod tests {
    use hol_stack::TransportSpec;

    use super::*;

    fn scenario(transport: &str, network: &str) -> Scenario {
        let transport: TransportSpec = transport.parse().unwrap();
        let workload = toml::from_str("kind = 'echo'").unwrap();
        Scenario::with_single_flow(toml::from_str(network).unwrap(), transport, workload, 10)
    }

    fn refusal(scenario: &Scenario) -> String {
        check_supported(scenario, Path::Loopback).unwrap_err().to_string()
    }

    #[test]
    fn a_network_that_only_names_nodes_does_not_shape_the_path() {
        for transport in ["tcp", "tcp:connections=3,nagle=off", "udp", "quic:streams=8,cc=newreno"] {
            check_supported(&scenario(transport, ""), Path::Loopback).unwrap();
        }
        // Naming nodes does not shape the path.
        let named = "nodes = ['client', 'server', 'a']\nlans = [{ nodes = ['a', 'client'], name = 'b' }]\nlinks = [{ from = 'client', to = 'server' }]";
        check_supported(&scenario("tcp", named), Path::Between).unwrap();
    }

    #[test]
    fn keys_that_shape_the_path_are_refused() {
        for (network, key) in [
            ("rate = '1Mbit'", "network.rate"),
            ("delay = '0s'", "network.delay"),
            ("loss = '1%'", "network.loss"),
            ("queue = '10p'", "network.queue"),
            ("up = { delay = '1ms' }", "network.up"),
            ("paths = [{}, {}]", "network.paths"),
            (
                "nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server', loss = '1%' }]",
                "network.links",
            ),
            (
                "nodes = ['client', 'server']\nlans = [{ nodes = ['client', 'server'], rate = '1Mbit' }]",
                "network.lans",
            ),
            ("events = [{ at = '1s', down = true }]", "network.events"),
        ] {
            let problem = refusal(&scenario("tcp", network));
            assert!(problem.contains(&format!("`{key}`")) && problem.contains("--world model"), "{problem}");
        }
    }

    #[test]
    fn options_that_the_kernel_lacks_are_refused() {
        for (transport, words) in [
            ("quic:wakeup=1ms", "wakeup=1ms"),
            ("quic:handshake_flight=300B", "at least 600 octets"),
            ("tcp:hystart=false", "hystart=false"),
            ("tcp:stack=rfc", "stack=rfc"),
            ("tcp:max_retries=7", "sysctl -w net.ipv4.tcp_retries2='7'"),
        ] {
            let problem = refusal(&scenario(transport, ""));
            assert!(problem.contains(words) && problem.contains(transport), "{problem}");
        }
    }

    #[test]
    fn scenarios_that_would_change_the_machine_are_refused() {
        let mut filtered = scenario("tcp", "");
        filtered.workload = toml::from_str("kind = 'simco'").unwrap();
        filtered.hosts.insert("server".to_owned(), toml::from_str("filter = 'nftables'").unwrap());
        assert!(refusal(&filtered).contains("`hosts.server.filter`"));
    }

    #[test]
    fn features_that_need_one_host_are_refused() {
        let between = |scenario: &Scenario| check_supported(scenario, Path::Between).unwrap_err().to_string();
        let problem = between(&scenario("tcp", "loss = '1%'"));
        assert!(problem.contains("`network.loss`") && problem.contains("--router HOST"), "{problem}");
        let mut local = scenario("unix", "");
        local.workload = toml::from_str("kind = 'echo'\nfrom = 'server'\nto = 'server'").unwrap();
        check_supported(&local, Path::Loopback).unwrap();
        let problem = between(&local);
        assert!(problem.contains("`unix`") && problem.contains("on one host"), "{problem}");
    }

    #[test]
    fn a_router_permits_the_path_settings_that_it_supports() {
        let routed = |network: &str| check_supported(&scenario("tcp", network), Path::Routed);
        routed("delay = '20ms'\nloss = '3%'\ndown = { rate = '1Mbit' }").unwrap();
        let problem = routed("paths = [{}, {}]").unwrap_err().to_string();
        assert!(problem.contains("live world does not support `network.paths`"), "{problem}");
    }

    /// The transport's error, not this module's, names protocols that this machine's kernel lacks.
    #[test]
    fn a_missing_protocol_is_reported_by_the_transport() {
        check_protocols(&scenario("udp", "")).unwrap();
        for (transport, words) in [("sctp", "no SCTP"), ("mptcp", "no MPTCP")] {
            let refused =
                check_protocols(&scenario(transport, "")).map_err(|problem| problem.to_string()).err();
            assert!(refused.is_none_or(|why| why.contains(words) && why.contains(&format!("`{transport}`"))));
        }
    }

    #[test]
    fn a_scenario_that_contradicts_itself_is_refused() {
        let none = Scenario { messages: 0, ..scenario("tcp", "") };
        assert!(refusal(&none).contains("`scenario`"), "{}", refusal(&none));
    }
}
