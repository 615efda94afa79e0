//! What the daemon is told: a file, and the flags that override it. `docs/simco-service.md` has every setting.
//!
//! Files are named from where this one is.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use hol_base::{ByteCount, Duration};
use hol_simco::PORT;
use serde::{Deserialize, Deserializer};

use crate::setup::{SetupError, read};
use crate::{Level, Limits, Listen, Transport, socket_address};

/// What the daemon is told.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Settings {
    /// Where it listens for TCP.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// Where it listens for SCTP.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp: Vec<SocketAddr>,
    /// Where it listens for TLS.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_tls: Vec<SocketAddr>,
    /// What puts rules in force.
    pub filter: FilterKind,
    /// True if data that no rule is about is dropped.
    pub firewall: bool,
    /// The directory where rules are recorded; without it, they end with the daemon.
    pub state: Option<PathBuf>,
    /// True if the disk has a rule before its reply goes out; else a crash of the machine may lose some.
    pub sync: bool,
    /// The file that says who may do what; without it, whoever has a secret may do anything, and anybody if there are no
    /// secrets either.
    pub policy: Option<PathBuf>,
    /// The file of the agents' secrets, with which they prove who they are.
    pub secrets: Option<PathBuf>,
    /// The longest lifetime that a rule is granted, in whole seconds.
    pub max_lifetime: Duration,
    /// How much is logged.
    pub log: Level,
    /// True if it is logged who asked for what.
    pub audit: bool,
    /// Where Prometheus reads metrics, by HTTP.
    #[serde(deserialize_with = "maybe_socket_address")]
    pub metrics: Option<SocketAddr>,
    /// How TLS is spoken.
    pub tls: TlsSettings,
    /// Where it listens to what is protected below IP.
    pub protected: ProtectedSettings,
    /// How nftables are used.
    pub nftables: NftablesSettings,
    /// The addresses of a translator.
    pub nat: NatSettings,
    /// Port mappings for hosts inside.
    pub pcp: PcpSettings,
    /// How much others may make the daemon hold.
    pub limits: LimitSettings,
}

/// What puts rules in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FilterKind {
    /// Nothing does: rules are promised, and what passes is the affair of others. For measurements.
    None,
    /// Linux' own filter.
    Nftables,
}

/// How TLS is spoken. The files are PEM.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// The middlebox' certificate, and those between it and the authority that agents believe.
    pub certificate: Option<PathBuf>,
    /// Its key, which nobody else may access.
    pub key: Option<PathBuf>,
    /// Who certifies agents: each then has to show a certificate with its name. Without it agents prove who they are by
    /// their secrets.
    pub agents: Option<PathBuf>,
}

/// Where it listens to what is protected below IP, by WireGuard or IPsec.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProtectedSettings {
    /// The interface: what another one brings does not reach these sockets.
    pub interface: Option<String>,
    /// Where for TCP.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// Where for SCTP.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen_sctp: Vec<SocketAddr>,
}

/// How nftables are used.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NftablesSettings {
    /// The table of the family inet that is ours alone.
    pub table: String,
    /// The interface towards internal hosts.
    pub inside: Option<String>,
    /// The interface towards external hosts. Data that does not pass between the two is not filtered.
    pub outside: Option<String>,
}

/// The addresses of a translator: without any, the middlebox is a pure firewall.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatSettings {
    /// Addresses that stand for internal hosts.
    pub outside: Vec<IpAddr>,
    /// Addresses that stand for external hosts, of a twice NAT.
    pub inside: Vec<IpAddr>,
    /// The first and the last port of those addresses.
    pub ports: (u16, u16),
}

/// Port mappings by PCP (RFC 6887) and NAT-PMP (RFC 6886), for hosts that the policy takes for an agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PcpSettings {
    /// Where hosts ask: addresses of the inside interface.
    #[serde(deserialize_with = "socket_addresses")]
    pub listen: Vec<SocketAddr>,
    /// Mappings of one host at a time.
    pub mappings: usize,
}

impl Default for PcpSettings {
    fn default() -> Self {
        Self { listen: Vec::new(), mappings: 128 }
    }
}

/// How much others may make the daemon hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections at a time.
    pub connections: usize,
    /// Rules at a time.
    pub rules: usize,
    /// Elements of all rules in the packet filter at a time.
    pub elements: usize,
    /// Octets that may wait for an agent that does not read.
    pub output: ByteCount,
    /// Octets that may wait for all agents together.
    pub backlog: ByteCount,
    /// How long such an agent may take none of them.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, PORT))],
            listen_sctp: Vec::new(),
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
            audit: false,
            metrics: None,
            nftables: NftablesSettings::default(),
            nat: NatSettings::default(),
            pcp: PcpSettings::default(),
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
        Self { outside: Vec::new(), inside: Vec::new(), ports: (1024, u16::MAX) }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        let Limits { connections, output, backlog, patience } = Limits::default();
        let (rules, elements) = (300_000, 300_000);
        let [output, backlog] = [output, backlog].map(|octets| ByteCount(octets as u64));
        Self { connections, rules, elements, output, backlog, patience }
    }
}

impl Settings {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, SetupError> {
        let mut settings: Self =
            toml::from_str(&read(path)?).map_err(|error| SetupError::syntax(path, &error))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let TlsSettings { certificate, key, agents } = &mut settings.tls;
        let files =
            [&mut settings.state, &mut settings.policy, &mut settings.secrets, certificate, key, agents];
        for file in files.into_iter().flatten() {
            *file = directory.join(&*file);
        }
        Ok(settings)
    }

    /// Every socket that is to be opened.
    pub fn sockets(&self) -> Vec<Listen> {
        let ProtectedSettings { listen, listen_sctp, .. } = &self.protected;
        let all = [
            (Transport::Tcp, &self.listen, false),
            (Transport::Sctp, &self.listen_sctp, false),
            (Transport::Tls, &self.listen_tls, false),
            (Transport::Tcp, listen, true),
            (Transport::Sctp, listen_sctp, true),
        ];
        let over = |(transport, addresses, is_protected): (Transport, &Vec<SocketAddr>, bool)| {
            let listen = |address: &SocketAddr| Listen { transport, address: *address, is_protected };
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

fn maybe_socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = Option::<SocketText>::deserialize(deserializer)?;
    Ok(text.map(|SocketText(address)| address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_settings_are_settings() {
        let text = include_str!("../../../docs/simco-service.md");
        let example = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let settings: Settings = toml::from_str(example).unwrap();
        let documented = |setting: &str| example.contains(&format!("{setting} = "));
        for setting in ["listen-sctp", "firewall", "sync", "max-lifetime", "metrics", "inside", "patience"] {
            assert!(documented(setting), "{setting}");
        }
        assert_eq!(settings.max_lifetime, Settings::default().max_lifetime);
        assert_eq!(settings.limits.output, LimitSettings::default().output);
    }
}
