//! How much one agent may take of what is there for all.

use serde::Deserialize;

/// What one agent may have at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Open sessions.
    pub sessions: usize,
    /// Policy rules.
    pub rules: usize,
    /// Elements that its rules have in the packet filter.
    pub elements: usize,
    /// Combinations of wildcards and of lengths of prefixes, of which a packet filter has few.
    pub shapes: usize,
    /// Addresses of a NAT as a whole, or all their ports of a protocol.
    pub addresses: usize,
    /// Ports of a NAT.
    pub ports: usize,
}

impl Quota {
    /// What there is bounds it, nothing else.
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
    /// A third of what a middlebox has by default, or less; and no address as a whole, for there may be but one.
    fn default() -> Self {
        Self { sessions: 64, rules: 100_000, elements: 100_000, shapes: 16, addresses: 0, ports: 8192 }
    }
}

/// What a policy says of a quota; what it leaves out is as it would be without.
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
    pub fn over(&self, quota: Quota) -> Quota {
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

/// What an agent wanted more of than it may have, or than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// [`Quota::sessions`]
    Sessions,
    /// [`Quota::rules`]
    Rules,
    /// [`Quota::elements`]
    Elements,
    /// [`Quota::shapes`]
    Shapes,
    /// [`Quota::addresses`]
    Addresses,
    /// [`Quota::ports`]
    Ports,
}

impl Shortage {
    /// The key of a policy's quota.
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
