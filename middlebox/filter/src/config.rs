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
    /// Whether the table belongs to this process, so that no other program can change it (Linux 6.9).
    is_protected: bool,
}

/// The flows that a NAT translates although no rule covers them. Needs [`Interfaces`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Masquerade {
    /// Internal hosts that may open flows to the outside without a rule.
    pub hosts: Vec<Prefix>,
    /// True if internal hosts reach each other by their outside addresses. RFC 4787, REQ-9.
    pub hairpin: bool,
    /// The addresses that represent these hosts: the first of each IP version.
    pub addresses: Vec<IpAddr>,
    /// Source ports of these flows. They must not overlap the [pool's ports](Pool::ports), because the kernel
    /// knows which ports connections use, but not which ones rules reserve.
    pub ports: RangeInclusive<u16>,
}

/// The addresses of a NAT. New UDP datagrams to these addresses and ports that match no rule are dropped, and do
/// not reach the middlebox itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The addresses that rules get as A2 and A1.
    pub addresses: Vec<IpAddr>,
    /// The ports of each address.
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

/// The treatment of forwarded packets without a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DefaultPolicy {
    /// Packets without a rule are dropped: a firewall.
    #[default]
    Drop,
    /// Packets without a rule pass: a NAT without a firewall. Only connections translated by a rule end with
    /// the rule.
    Accept,
}

/// Why a [`Config`] is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// nftables would reject the name, or `nft` could not parse it.
    #[error(
        "`{0}` is not a valid table name; use a letter, then letters, digits and `_`, at most 64 characters"
    )]
    Table(String),
    /// The name is not valid for an interface in the kernel.
    #[error("`{0}` is not a valid interface name; `ip link` lists the interfaces")]
    Interface(String),
}

impl Config {
    /// Returns the default: table `inet simco`, all interfaces, drop without a rule.
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

    /// Sets the name of the table, of the family `inet`.
    pub fn with_table(self, table: &str) -> Result<Self, ConfigError> {
        let is_name = table.len() <= 64
            && table.starts_with(|first: char| first.is_ascii_alphabetic())
            && table.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name { Ok(Self { table: table.into(), ..self }) } else { Err(ConfigError::Table(table.into())) }
    }

    /// Limits filtering to data between these interfaces.
    pub fn with_interfaces(self, interfaces: Interfaces) -> Result<Self, ConfigError> {
        for name in [&interfaces.inside, &interfaces.outside] {
            // linux/if.h: IFNAMSIZ is 16, with the zero at the end.
            if name.is_empty() || name.len() > 15 || name.contains(['/', '"', '\0', ' ']) {
                return Err(ConfigError::Interface(name.clone()));
            }
        }
        Ok(Self { interfaces: Some(interfaces), ..self })
    }

    /// Sets the treatment of packets without a rule.
    pub fn with_default_policy(self, default_policy: DefaultPolicy) -> Self {
        Self { default_policy, ..self }
    }

    /// Sets the addresses of a NAT; a firewall has none.
    pub fn with_pool(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// Sets which flows without a rule are translated.
    pub fn with_masquerade(self, masquerade: Masquerade) -> Self {
        Self { masquerade, ..self }
    }

    /// Lets other programs change the table, which kernels before Linux 6.9 allow in any case. For tests.
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

    /// Returns the treatment of packets without a rule.
    pub fn default_policy(&self) -> DefaultPolicy {
        self.default_policy
    }

    /// Returns the addresses of a NAT.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Returns which flows without a rule are translated.
    pub fn masquerade(&self) -> &Masquerade {
        &self.masquerade
    }

    /// Returns true if the table is protected from changes by other programs, provided that the kernel can do
    /// that (Linux 6.9).
    pub fn is_protected(&self) -> bool {
        self.is_protected
    }
}

impl Pool {
    /// Returns the IP versions of the pool's addresses.
    pub(crate) fn versions(&self) -> impl Iterator<Item = IpVersion> {
        let has = |version| self.addresses.iter().any(|address| IpVersion::of(*address) == version);
        [IpVersion::V4, IpVersion::V6].into_iter().filter(move |version| has(*version))
    }
}

impl Masquerade {
    /// Returns true if any flow is translated without a rule.
    pub fn is_used(&self) -> bool {
        self.hairpin || !self.hosts.is_empty()
    }

    /// Returns the address that represents hosts of each IP version.
    pub fn sources(&self) -> impl Iterator<Item = IpAddr> {
        let first = |version| self.addresses.iter().find(move |address| IpVersion::of(**address) == version);
        [IpVersion::V4, IpVersion::V6].into_iter().filter_map(first).copied()
    }
}

impl Default for Masquerade {
    fn default() -> Self {
        Self { hosts: Vec::new(), hairpin: false, addresses: Vec::new(), ports: 1024..=16_383 }
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
