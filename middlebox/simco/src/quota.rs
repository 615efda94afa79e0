//! The limits of one agent.

use serde::Deserialize;

/// The limits of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of open sessions.
    pub sessions: usize,
    /// Maximum number of policy rules.
    pub rules: usize,
    /// Maximum number of elements of the agent's rules in the packet filter.
    pub elements: usize,
    /// Maximum number of combinations of wildcards and prefix lengths (shapes) among these elements. A packet
    /// filter supports few shapes.
    pub shapes: usize,
    /// Maximum number of NAT addresses that are taken as a whole, or with all ports of one protocol.
    pub addresses: usize,
    /// Maximum number of ports of a NAT, apart from those addresses.
    pub ports: usize,
}

impl Quota {
    /// No limits other than the available resources.
    pub const UNLIMITED: Self = Self {
        sessions: usize::MAX,
        rules: usize::MAX,
        elements: usize::MAX,
        shapes: usize::MAX,
        addresses: usize::MAX,
        ports: usize::MAX,
    };
}

impl Default for Quota {
    /// Returns the default quota: at most a third of the default limits of `simcod`, and no whole address, since there
    /// may be only one.
    fn default() -> Self {
        Self { sessions: 64, rules: 100_000, elements: 100_000, shapes: 16, addresses: 0, ports: 8192 }
    }
}

/// The quota in a policy file; missing values keep their default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct QuotaTable {
    sessions: Option<usize>,
    rules: Option<usize>,
    elements: Option<usize>,
    shapes: Option<usize>,
    addresses: Option<usize>,
    ports: Option<usize>,
}

impl QuotaTable {
    /// Returns `quota`, but with the values that this table sets.
    pub fn override_defaults(&self, quota: Quota) -> Quota {
        Quota {
            sessions: self.sessions.unwrap_or(quota.sessions),
            rules: self.rules.unwrap_or(quota.rules),
            elements: self.elements.unwrap_or(quota.elements),
            shapes: self.shapes.unwrap_or(quota.shapes),
            addresses: self.addresses.unwrap_or(quota.addresses),
            ports: self.ports.unwrap_or(quota.ports),
        }
    }
}

/// The resource that was exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExhaustedResource {
    /// The agent's open sessions.
    Sessions,
    /// The agent's policy rules.
    Rules,
    /// Elements of the agent's rules in the packet filter.
    Elements,
    /// Shapes of these elements.
    Shapes,
    /// Whole addresses of a NAT.
    Addresses,
    /// Ports of a NAT.
    Ports,
}

impl ExhaustedResource {
    /// Returns the key of this resource in the quota of a policy file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Rules => "rules",
            Self::Elements => "elements",
            Self::Shapes => "shapes",
            Self::Addresses => "addresses",
            Self::Ports => "ports",
        }
    }
}
