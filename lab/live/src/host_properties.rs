//! The properties of this machine on which results depend.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use hol_network::Ip;
use hol_scenario::Scenario;
use hol_sockets::{EndAddresses, Sysctl, Unsupported, clocksource, kernel_setting, kernel_version, sysctls};
use hol_stack::{TransportSpec, stack_of_linux};

/// The kernel and the clock of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The kernel's release and version.
    pub kernel: String,
    /// Name of the clock source.
    pub clocksource: String,
}

impl Host {
    /// Returns the description of this host.
    pub fn current() -> Self {
        Self { kernel: kernel_version(), clocksource: clocksource() }
    }
}

/// Formats the properties as in `Linux 6.12.1 #1 SMP, loopback, clock tsc`.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, clocksource } = self;
        write!(f, "Linux {kernel}, loopback, clock {clocksource}")
    }
}

/// A sysctl that is left out, because each socket overrides it.
const CONGESTION_CONTROL_SYSCTL: &str = "net/ipv4/tcp_congestion_control";

/// Returns the sysctls of this machine that a transport needs.
fn needed_sysctls(transport: &TransportSpec) -> Result<Vec<Sysctl>, Unsupported> {
    let all = sysctls(transport, &kernel_version())?;
    Ok(all.into_iter().filter(|setting| setting.name != CONGESTION_CONTROL_SYSCTL).collect())
}

/// Returns the current values of this machine's sysctls that affect the measurement.
pub(crate) fn settings(scenario: &Scenario) -> BTreeMap<String, String> {
    let wanted = needed_sysctls(&scenario.transport).unwrap_or_default();
    wanted
        .into_iter()
        .filter_map(|Sysctl { name, .. }| Some((name.to_owned(), kernel_setting(name)?)))
        .collect()
}

/// Returns the sysctls that the options of a transport set explicitly.
pub(crate) fn requested_sysctls(transport: &TransportSpec) -> Result<Vec<Sysctl>, Unsupported> {
    let all = hol_sockets::requested_sysctls(transport, &kernel_version())?;
    Ok(all.into_iter().filter(|setting| setting.name != CONGESTION_CONTROL_SYSCTL).collect())
}

/// Describes which settings of this machine differ from the stack of its Linux release; `None` if none does. Settings
/// that the experiment sets explicitly are left out, because they have been checked before.
pub(crate) fn difference_from_stack(scenario: &Scenario, here: &BTreeMap<String, String>) -> Option<String> {
    let wanted = needed_sysctls(&scenario.transport).unwrap_or_default();
    let differs = wanted.iter().filter_map(|Sysctl { name, value }| {
        let own = here.get(*name)?;
        (own != value).then(|| format!("{} = {own}, not {value}", dotted_name(name)))
    });
    let differs: Vec<String> = differs.collect();
    (!differs.is_empty()).then(|| {
        format!(
            "sysctls of this machine, which hol does not change, differ from stack {}: {}; for equal conditions use --world kernel",
            stack_of_linux(&kernel_version()).name,
            differs.join(", ")
        )
    })
}

/// Returns the addresses of ends on this host. Their port is 0, so that the kernel chooses the port.
pub(crate) fn loopback(ip: Ip) -> EndAddresses {
    let address = match ip {
        Ip::V4 => Ipv4Addr::LOCALHOST.into(),
        Ip::V6 => Ipv6Addr::LOCALHOST.into(),
    };
    EndAddresses { addresses: vec![address], port: 0 }
}

/// Returns the name of a sysctl as sysctl(8) writes it: with dots instead of slashes.
pub(crate) fn dotted_name(name: &str) -> String {
    name.replace('/', ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_its_kernel_and_its_clock() {
        let host = Host { kernel: "6.12.1 #1 SMP".to_owned(), clocksource: "tsc".to_owned() };
        assert_eq!(host.to_string(), "Linux 6.12.1 #1 SMP, loopback, clock tsc");
        assert!(!Host::current().kernel.trim().is_empty());
    }

    #[test]
    fn only_explicit_options_require_settings() {
        let requested = |text: &str| requested_sysctls(&text.parse().unwrap()).unwrap();
        assert_eq!(requested("tcp"), []);
        assert_eq!(requested("udp"), []);
        // An option of a socket is not a setting of the machine.
        assert_eq!(requested("tcp:nagle=off"), []);
        assert_eq!(requested("tcp:congestion=reno"), []);
        let sack = Sysctl { name: "net/ipv4/tcp_sack", value: "0".to_owned() };
        assert_eq!(requested("tcp:sack=false,dsack=true"), [sack]);
    }

    #[test]
    fn settings_that_differ_from_the_stack_are_reported() {
        let network = hol_network::NetworkSpec::default();
        let scenario = Scenario::with_single_flow(
            network,
            "tcp".parse().unwrap(),
            toml::from_str("kind = 'echo'").unwrap(),
            1,
        );
        let here = |value: &str| BTreeMap::from([("net/ipv4/tcp_sack".to_owned(), value.to_owned())]);
        assert_eq!(difference_from_stack(&scenario, &here("1")), None);
        let told = difference_from_stack(&scenario, &here("0")).unwrap();
        assert!(told.contains("net.ipv4.tcp_sack = 0, not 1") && told.contains("--world kernel"), "{told}");
    }
}
