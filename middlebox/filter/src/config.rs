//! What a filter is told beside the rules.

use std::net::IpAddr;
use std::ops::RangeInclusive;

/// How nftables are to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    table: String,
    interfaces: Option<Interfaces>,
    unmatched: Unmatched,
    pool: Pool,
    is_guarded: bool,
}

/// What a NAT has to give away. Datagrams to it are nobody else's, not even the middlebox' own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// A2 and A1.
    pub addresses: Vec<IpAddr>,
    /// Ports of all of them.
    pub ports: RangeInclusive<u16>,
}

/// The interfaces of the middlebox, by name. Data that comes or goes by another one is none of its business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces {
    /// Towards internal hosts.
    pub inside: String,
    /// Towards external hosts.
    pub outside: String,
}

/// What becomes of forwarded data that no rule is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unmatched {
    /// It is dropped: a firewall.
    #[default]
    Drop,
    /// It passes: a NAT and nothing else. Only connections that a rule translates end with the rule.
    Accept,
}

/// Why a [`Config`] is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// nftables would not take it, or `nft` could not read it.
    #[error("`{0}` is no name for a table; use a letter, then letters, digits and `_`, 64 at most")]
    Table(String),
    /// The kernel has no such interface names.
    #[error("`{0}` is no name of an interface; `ip link` lists those that there are")]
    Interface(String),
}

impl Config {
    /// The table `inet simco`, all interfaces, what no rule allows is dropped.
    pub fn new() -> Self {
        Self {
            table: "simco".into(),
            interfaces: None,
            unmatched: Unmatched::Drop,
            pool: Pool::default(),
            is_guarded: true,
        }
    }

    /// Another name for the table, of the family `inet`.
    pub fn with_table(self, table: &str) -> Result<Self, ConfigError> {
        let is_name = table.len() <= 64
            && table.starts_with(|first: char| first.is_ascii_alphabetic())
            && table.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name { Ok(Self { table: table.into(), ..self }) } else { Err(ConfigError::Table(table.into())) }
    }

    /// Only data that passes between these interfaces.
    pub fn with_interfaces(self, interfaces: Interfaces) -> Result<Self, ConfigError> {
        for name in [&interfaces.inside, &interfaces.outside] {
            // linux/if.h: IFNAMSIZ is 16, with the zero at the end.
            if name.is_empty() || name.len() > 15 || name.contains(['/', '"', '\0', ' ']) {
                return Err(ConfigError::Interface(name.clone()));
            }
        }
        Ok(Self { interfaces: Some(interfaces), ..self })
    }

    /// What becomes of data that no rule is about.
    pub fn with_unmatched(self, unmatched: Unmatched) -> Self {
        Self { unmatched, ..self }
    }

    /// What a NAT has to give away; a firewall has nothing.
    pub fn with_pool(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// Lets others change the table, as kernels before Linux 6.9 do in any case. For tests.
    pub fn unguarded(self) -> Self {
        Self { is_guarded: false, ..self }
    }

    /// The name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The interfaces, if they matter.
    pub fn interfaces(&self) -> Option<&Interfaces> {
        self.interfaces.as_ref()
    }

    /// What becomes of data that no rule is about.
    pub fn unmatched(&self) -> Unmatched {
        self.unmatched
    }

    /// What a NAT has to give away.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// True if nobody else is to change the table, where the kernel can see to that.
    pub fn is_guarded(&self) -> bool {
        self.is_guarded
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
