//! The limits of one agent.

use serde::Deserialize;

/// The limits on the resources of one agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of open sessions.
    pub sessions: usize,
    /// Maximum number of policy rules.
    pub rules: usize,
    /// Maximum number of elements in the packet filter, over all rules of the agent.
    pub elements: usize,
    /// Maximum number of shapes (combinations of wildcards and prefix lengths) among the elements of the agent's rules.
    /// A packet filter supports only few shapes.
    pub shapes: usize,
    /// Maximum number of NAT addresses that the agent's rules may use as a whole, or with all ports of a protocol.
    pub addresses: usize,
    /// Maximum number of NAT ports that the agent's rules may use, not counting those of whole addresses.
    pub ports: usize,
}

impl Quota {
    /// The quota that sets no limits, so that only the available resources count.
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
    /// Returns the default quota: at most a third of the default limits of `simcod`, and no whole address, because
    /// there may be only one.
    fn default() -> Self {
        Self { sessions: 64, rules: 100_000, elements: 100_000, shapes: 16, addresses: 0, ports: 8192 }
    }
}

/// The quota in a policy file; values that it does not set keep their defaults.
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
    /// Returns `quota` with the values that this table sets.
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

/// A resource that can be exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExhaustedResource {
    /// The number of the agent's open sessions.
    Sessions,
    /// The number of the agent's policy rules.
    Rules,
    /// The number of elements of the agent's rules in the packet filter.
    Elements,
    /// The number of shapes of the elements of the agent's rules in the packet filter.
    Shapes,
    /// The whole addresses of a NAT.
    Addresses,
    /// The ports of a NAT.
    Ports,
}

impl ExhaustedResource {
    /// Returns the key of this resource in the quotas of a policy file.
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
