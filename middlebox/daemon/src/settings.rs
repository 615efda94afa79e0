//! The daemon's settings: a file, and flags that override it. `docs/simco-service.md` has every setting.
//!
//! Paths in the file are relative to its directory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use hol_base::{ByteCount, Duration};
use hol_filter::{Filtering, Masquerade};
use hol_simco::{PORT, Prefix};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::setup::{SetupError, read};
use crate::{Format, Level, Limits, ListenAddress, Transport, socket_address};

/// The daemon's settings.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// TCP addresses on which the daemon listens.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// SCTP addresses on which the daemon listens.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp: Vec<SocketAddr>,
    /// UDP addresses on which the daemon listens for SCTP over UDP. RFC 6951.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp_udp: Vec<SocketAddr>,
    /// TLS addresses on which the daemon listens.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_tls: Vec<SocketAddr>,
    /// The packet filter that enforces rules.
    pub filter: FilterKind,
    /// Whether data without a rule are dropped.
    pub firewall: bool,
    /// The directory in which rules are recorded. Without it, rules end with the daemon.
    pub state: Option<PathBuf>,
    /// Whether a rule is on the disk before its reply is sent; otherwise the latest rules may be lost if the machine
    /// crashes.
    pub sync: bool,
    /// The policy file. Without it, every agent with a secret has all rights; if there are no secrets either,
    /// every agent has all rights.
    pub policy: Option<PathBuf>,
    /// The file with the agents' secrets, with which they authenticate.
    pub secrets: Option<PathBuf>,
    /// The maximum lifetime of a rule, in whole seconds.
    pub max_lifetime: Duration,
    /// The level of the log.
    pub log: Level,
    /// The format of the log.
    pub format: Format,
    /// Whether requests and ends of rules are logged.
    pub audit: bool,
    /// Maximum number of lines of the audit log per agent and second, averaged over a long time.
    pub audit_rate: u32,
    /// The HTTP address of the metrics for Prometheus.
    #[serde(deserialize_with = "maybe_socket_address")]
    pub metrics: Option<SocketAddr>,
    /// The settings of TLS.
    pub tls: TlsSettings,
    /// The settings of sockets that accept only traffic protected by WireGuard or IPsec.
    pub protected: ProtectedSettings,
    /// The settings of nftables.
    pub nftables: NftablesSettings,
    /// The settings of a NAT.
    pub nat: NatSettings,
    /// The settings of port mappings for internal hosts.
    pub pcp: PcpSettings,
    /// The settings of the standby, which has every rule.
    pub standby: StandbySettings,
    /// Limits on the resources that agents and hosts can use.
    pub limits: LimitSettings,
}

/// The kind of packet filter that enforces rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterKind {
    /// No packet filter: rules are granted but not enforced. For measurements.
    None,
    /// nftables in the Linux kernel, as packet filter.
    Nftables,
}

/// Settings of TLS. The files are in PEM format.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// The PEM file of the middlebox's certificate chain, up to an authority that agents trust.
    pub certificate: Option<PathBuf>,
    /// The PEM file of the private key, which no other user may access.
    pub key: Option<PathBuf>,
    /// The PEM file of the authorities that certify agents. With this file each agent needs a certificate with its
    /// name; without it agents authenticate with their secrets.
    pub agents: Option<PathBuf>,
}

/// Settings of the sockets that accept only traffic protected by WireGuard or IPsec.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProtectedSettings {
    /// The interface with the protected traffic. The sockets accept no traffic from other interfaces.
    pub interface: Option<String>,
    /// TCP addresses on which the daemon accepts protected traffic.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// SCTP addresses on which the daemon accepts protected traffic.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp: Vec<SocketAddr>,
    /// UDP addresses on which the daemon accepts protected traffic of SCTP over UDP.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp_udp: Vec<SocketAddr>,
}

/// Settings of nftables.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NftablesSettings {
    /// The name of a table of the family inet that only the daemon uses.
    pub table: String,
    /// The interface to internal hosts, by name.
    pub inside: Option<String>,
    /// The interface to external hosts, by name. Only data between `inside` and `outside` are filtered.
    pub outside: Option<String>,
}

/// The addresses of a NAT; without addresses the middlebox is a pure firewall.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NatSettings {
    /// Addresses that represent internal hosts to external ones.
    pub outside: Vec<IpAddr>,
    /// Addresses that represent external hosts to internal ones, for twice NAT.
    pub inside: Vec<IpAddr>,
    /// The first and the last port that rules can get at the NAT's addresses. Default: 1024 and 65535, or the ports
    /// above `masquerade_ports` if those are used.
    pub ports: Option<(u16, u16)>,
    /// Internal hosts that may open flows to the outside without a rule. The NAT replaces their source address with the
    /// first address of `outside` that has the same IP version.
    #[serde(deserialize_with = "prefixes")]
    pub masquerade: Vec<Prefix>,
    /// The first and the last source port for flows that `masquerade` or `hairpin` translates; rules never get these
    /// ports.
    pub masquerade_ports: (u16, u16),
    /// Whether internal hosts can reach each other at addresses of `outside`.
    pub hairpin: bool,
    /// Which external hosts reach the ports of UDP flows that `masquerade` or `hairpin` translates.
    #[serde(with = "FilteringName")]
    pub filtering: Filtering,
}

/// The names of [`Filtering`], which are terms of RFC 4787.
#[derive(Deserialize)]
#[serde(remote = "Filtering", rename_all = "kebab-case")]
enum FilteringName {
    AddressAndPortDependent,
    EndpointIndependent,
}

/// Port mappings with PCP (RFC 6887) and NAT-PMP (RFC 6886), for hosts that belong to an agent of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcpSettings {
    /// Addresses of the inside interface to which hosts send requests for mappings.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// Maximum number of port mappings per host.
    pub mappings: usize,
}

/// Settings of the connection to the standby, which has every rule on its disk before an agent gets the reply.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StandbySettings {
    /// The TCP address on which the daemon waits for the standby, with TLS as in `[tls]`. Without it there is no
    /// standby.
    #[serde(deserialize_with = "maybe_socket_address")]
    pub listen: Option<SocketAddr>,
    /// The DNS name that the standby's certificate must contain.
    #[serde(rename = "name")]
    pub certificate_name: String,
    /// How long a reply waits for the standby, which afterwards counts as lost.
    pub patience: Duration,
    /// Whether requests that change rules are refused unless a standby has every rule.
    pub required: bool,
}

impl Default for StandbySettings {
    fn default() -> Self {
        Self {
            listen: None,
            certificate_name: String::new(),
            patience: Duration::from_secs(1),
            required: false,
        }
    }
}

impl Default for PcpSettings {
    fn default() -> Self {
        Self { listen: Vec::new(), mappings: 128 }
    }
}

/// Limits on the resources that agents and hosts can use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum number of connections.
    pub connections: usize,
    /// Maximum number of rules.
    pub rules: usize,
    /// Maximum number of elements in the packet filter, over all rules.
    pub elements: usize,
    /// Maximum number of octets queued for an agent that does not read.
    #[serde(rename = "agent-backlog", alias = "output")]
    pub agent_backlog: ByteCount,
    /// Maximum number of octets queued for all agents together.
    pub backlog: ByteCount,
    /// Maximum time for which an agent may leave its queued octets unread.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
            listen_sctp: Vec::new(),
            listen_sctp_udp: Vec::new(),
            listen_tls: Vec::new(),
            tls: TlsSettings::default(),
            protected: ProtectedSettings::default(),
            filter: FilterKind::None,
            firewall: true,
            state: None,
            sync: true,
            policy: None,
            secrets: None,
            max_lifetime: Duration::from_secs(24 * 3600),
            log: Level::Info,
            format: Format::Logfmt,
            audit: false,
            audit_rate: 1000,
            metrics: None,
            nftables: NftablesSettings::default(),
            nat: NatSettings::default(),
            pcp: PcpSettings::default(),
            standby: StandbySettings::default(),
            limits: LimitSettings::default(),
        }
    }
}

impl Default for NftablesSettings {
    fn default() -> Self {
        Self { table: "simco".to_owned(), inside: None, outside: None }
    }
}

impl Default for NatSettings {
    fn default() -> Self {
        let Masquerade { hosts: masquerade, hairpin, ports, filtering, .. } = Masquerade::default();
        let masquerade_ports = ports.into_inner();
        let (outside, inside, ports) = Default::default();
        Self { outside, inside, ports, masquerade, masquerade_ports, hairpin, filtering }
    }
}

impl NatSettings {
    /// Returns true if the NAT translates flows of some hosts without a rule.
    pub(crate) fn masquerades(&self) -> bool {
        self.hairpin || !self.masquerade.is_empty()
    }

    /// Returns the range of ports that rules can get.
    pub(crate) fn pool_ports(&self) -> RangeInclusive<u16> {
        let first = if self.masquerades() { self.masquerade_ports.1.saturating_add(1) } else { 1024 };
        let (first, last) = self.ports.unwrap_or((first, u16::MAX));
        first..=last
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        let Limits { connections, agent_backlog, backlog, patience } = Limits::default();
        let (rules, elements) = (300_000, 300_000);
        let [agent_backlog, backlog] = [agent_backlog, backlog].map(|octets| ByteCount(octets as u64));
        Self { connections, rules, elements, agent_backlog, backlog, patience }
    }
}

impl Settings {
    /// Reads the settings from a TOML file.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let mut settings: Self =
            toml::from_str(&read(path)?).map_err(|error| SetupError::syntax_error(path, &error))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let TlsSettings { certificate, key, agents } = &mut settings.tls;
        let files =
            [&mut settings.state, &mut settings.policy, &mut settings.secrets, certificate, key, agents];
        for file in files.into_iter().flatten() {
            *file = directory.join(&*file);
        }
        Ok(settings)
    }

    /// Returns the names of the settings that differ from `other` and take effect only after a restart.
    pub fn settings_needing_restart(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            listen,
            listen_sctp,
            listen_sctp_udp,
            listen_tls,
            filter,
            firewall,
            state,
            sync,
            max_lifetime,
            audit,
            audit_rate,
            metrics,
            protected,
            nftables,
            nat,
            pcp,
            standby,
            limits,
            // A reload applies these.
            policy: _,
            secrets: _,
            log: _,
            format: _,
            tls: _,
        } = self;
        let differ = [
            ("listen", *listen != other.listen),
            ("listen-sctp", *listen_sctp != other.listen_sctp),
            ("listen-sctp-udp", *listen_sctp_udp != other.listen_sctp_udp),
            ("listen-tls", *listen_tls != other.listen_tls),
            ("filter", *filter != other.filter),
            ("firewall", *firewall != other.firewall),
            ("state", *state != other.state),
            ("sync", *sync != other.sync),
            ("max-lifetime", *max_lifetime != other.max_lifetime),
            ("audit", *audit != other.audit),
            ("audit-rate", *audit_rate != other.audit_rate),
            ("metrics", *metrics != other.metrics),
            ("[protected]", *protected != other.protected),
            ("[nftables]", *nftables != other.nftables),
            ("[nat]", *nat != other.nat),
            ("[pcp]", *pcp != other.pcp),
            ("[standby]", *standby != other.standby),
            ("[limits]", *limits != other.limits),
        ];
        differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }

    /// Returns the addresses of all sockets for agents.
    pub fn sockets(&self) -> Vec<ListenAddress> {
        let ProtectedSettings { listen, listen_sctp, listen_sctp_udp, .. } = &self.protected;
        let all = [
            (Transport::Tcp, &self.listen, false),
            (Transport::Sctp, &self.listen_sctp, false),
            (Transport::SctpOverUdp, &self.listen_sctp_udp, false),
            (Transport::Tls, &self.listen_tls, false),
            (Transport::Tcp, listen, true),
            (Transport::Sctp, listen_sctp, true),
            (Transport::SctpOverUdp, listen_sctp_udp, true),
        ];
        let over = |(transport, addresses, is_protected): (Transport, &Vec<SocketAddr>, bool)| {
            let listen = |address: &SocketAddr| ListenAddress { transport, address: *address, is_protected };
            addresses.iter().map(listen).collect::<Vec<_>>()
        };
        all.into_iter().flat_map(over).collect()
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct SocketText(SocketAddr);

impl TryFrom<String> for SocketText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        socket_address(&text).map(Self)
    }
}

fn socket_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<SocketText>::deserialize(deserializer)?;
    Ok(texts.into_iter().map(|SocketText(address)| address).collect())
}

fn prefixes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Prefix>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.into_iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn maybe_socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = Option::<SocketText>::deserialize(deserializer)?;
    Ok(text.map(|SocketText(address)| address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_settings_match_the_code() {
        let text = include_str!("../../../docs/simco-service.md");
        let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings: Settings = toml::from_str(example).unwrap();
        let documented = |setting: &str| example.contains(&format!("{setting} = "));
        for setting in [
            "listen-sctp",
            "listen-sctp-udp",
            "masquerade-ports",
            "filtering",
            "firewall",
            "sync",
            "max-lifetime",
            "metrics",
            "audit-rate",
            "inside",
            "patience",
        ] {
            assert!(documented(setting), "{setting}");
        }
        assert_eq!(settings.max_lifetime, Settings::default().max_lifetime);
        assert_eq!(settings.audit_rate, Settings::default().audit_rate);
        assert_eq!(settings.nat.filtering, Filtering::default());
        assert_eq!(settings.limits.agent_backlog, LimitSettings::default().agent_backlog);
    }
}
