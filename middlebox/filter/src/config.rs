//! The configuration of a filter, apart from rules.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use hol_simco::{IpVersion, Prefix};

/// The configuration of [`Nftables`](crate::Nftables): the table, the interfaces and the NAT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    table: String,
    interfaces: Option<Interfaces>,
    default_policy: DefaultPolicy,
    pool: Pool,
    masquerade: Masquerade,
    /// Whether the table belongs to this process, so that no other program can change it (since Linux 6.9).
    is_protected: bool,
}

/// The flows that a NAT translates although no rule covers them. [`Interfaces`] must be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masquerade {
    /// Internal hosts that may open flows to the outside without a rule.
    pub hosts: Vec<Prefix>,
    /// Whether internal hosts can reach each other at their outside addresses. RFC 4787, REQ-9.
    pub hairpin: bool,
    /// The addresses that represent the hosts to the outside: the first one of each IP version.
    pub addresses: Vec<IpAddr>,
    /// Source ports for these flows. They must not overlap the [pool's ports](Pool::ports), because the kernel knows
    /// which ports connections use, but not which ports rules reserve.
    pub ports: RangeInclusive<u16>,
    /// Which external hosts reach the outside endpoint of such a flow.
    pub filtering: Filtering,
}

/// The external hosts whose UDP datagrams to a mapped endpoint pass. RFC 4787 section 5, REQ-8 recommends endpoint-independent
/// filtering for transparency to applications, and filtering by endpoints for more stringent filtering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filtering {
    /// Those to whose address and port the internal host has sent.
    #[default]
    AddressAndPortDependent,
    /// All.
    EndpointIndependent,
}

/// The addresses of a NAT. The first UDP datagrams of flows to these addresses and ports are dropped if they match no
/// rule; they do not reach the middlebox itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The addresses that rules can get: the address of the middlebox for external hosts (A2) and for internal hosts
    /// (A1).
    pub addresses: Vec<IpAddr>,
    /// The range of ports at each address.
    pub ports: RangeInclusive<u16>,
}

/// The interfaces of the middlebox, by name. Packets over other interfaces are not filtered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces {
    /// The interface to internal hosts.
    pub inside: String,
    /// The interface to external hosts.
    pub outside: String,
}

/// What happens to forwarded packets without a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultPolicy {
    /// Packets without a rule are dropped, as a firewall does.
    #[default]
    Drop,
    /// Packets without a rule pass, as in a NAT without a firewall. Connections end with their rule only if the rule
    /// translates them.
    Accept,
}

/// Why a [`Config`] is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The name is not valid for a table: nftables would reject it, or `nft` could not parse it.
    #[error(
        "`{0}` is not a valid table name; use a letter, then letters, digits and `_`, at most 64 characters"
    )]
    Table(String),
    /// The name is not valid for an interface.
    #[error("`{0}` is not a valid interface name; `ip link` lists the interfaces")]
    Interface(String),
}

impl Config {
    /// Returns the default configuration: table `inet simco`, all interfaces, and packets without a rule are dropped.
    pub fn new() -> Self {
        Self {
            table: "simco".into(),
            interfaces: None,
            default_policy: DefaultPolicy::Drop,
            pool: Pool::default(),
            masquerade: Masquerade::default(),
            is_protected: true,
        }
    }

    /// Sets the name of the table; its family is `inet`.
    pub fn with_table(self, table: &str) -> Result<Self, ConfigError> {
        let is_name = table.len() <= 64
            && table.starts_with(|first: char| first.is_ascii_alphabetic())
            && table.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name { Ok(Self { table: table.into(), ..self }) } else { Err(ConfigError::Table(table.into())) }
    }

    /// Filters only data between these interfaces.
    pub fn with_interfaces(self, interfaces: Interfaces) -> Result<Self, ConfigError> {
        for name in [&interfaces.inside, &interfaces.outside] {
            // linux/if.h: IFNAMSIZ is 16, with the zero at the end.
            if name.is_empty() || name.len() > 15 || name.contains(['/', '"', '\0', ' ']) {
                return Err(ConfigError::Interface(name.clone()));
            }
        }
        Ok(Self { interfaces: Some(interfaces), ..self })
    }

    /// Sets what happens to packets without a rule.
    pub fn with_default_policy(self, default_policy: DefaultPolicy) -> Self {
        Self { default_policy, ..self }
    }

    /// Sets the addresses of the NAT; a firewall has none.
    pub fn with_pool(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// Sets which flows the NAT translates without a rule.
    pub fn with_masquerade(self, masquerade: Masquerade) -> Self {
        Self { masquerade, ..self }
    }

    /// Lets other programs change the table, which they can in any case before Linux 6.9. For tests.
    pub fn without_protection(self) -> Self {
        Self { is_protected: false, ..self }
    }

    /// Returns the name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Returns the interfaces; `None` if all forwarded packets are filtered.
    pub fn interfaces(&self) -> Option<&Interfaces> {
        self.interfaces.as_ref()
    }

    /// Returns what happens to packets without a rule.
    pub fn default_policy(&self) -> DefaultPolicy {
        self.default_policy
    }

    /// Returns the addresses of the NAT.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns which flows the NAT translates without a rule.
    pub fn masquerade(&self) -> &Masquerade {
        &self.masquerade
    }

    /// Returns true if other programs cannot change the table, provided that the kernel supports this (since Linux
    /// 6.9).
    pub fn is_protected(&self) -> bool {
        self.is_protected
    }
}

impl Pool {
    /// Returns the IP versions of the addresses in the pool.
    pub(crate) fn versions(&self) -> impl Iterator<Item = IpVersion> {
        let has = |version| self.addresses.iter().any(|address| IpVersion::of(*address) == version);
        [IpVersion::V4, IpVersion::V6].into_iter().filter(move |version| has(*version))
    }
}

impl Masquerade {
    /// Returns true if the NAT translates any flows without a rule.
    pub fn is_used(&self) -> bool {
        self.hairpin || !self.hosts.is_empty()
    }

    /// Returns the addresses that represent the hosts, one of each IP version.
    pub fn sources(&self) -> impl Iterator<Item = IpAddr> {
        let first = |version| self.addresses.iter().find(move |address| IpVersion::of(**address) == version);
        [IpVersion::V4, IpVersion::V6].into_iter().filter_map(first).copied()
    }
}

impl Default for Masquerade {
    fn default() -> Self {
        let filtering = Filtering::default();
        Self { hosts: Vec::new(), hairpin: false, addresses: Vec::new(), ports: 1024..=16_383, filtering }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self { addresses: Vec::new(), ports: 1024..=u16::MAX }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}
