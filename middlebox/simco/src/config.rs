//! The configuration of a middlebox.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::{Capabilities, FootprintFn, Lifetime};

/// The functions and limits of a middlebox.
#[derive(Debug, Clone)]
pub struct Config {
    /// The capabilities that the middlebox sends to agents.
    pub capabilities: Capabilities,
    /// Addresses of a NAT that represent internal hosts to external ones (A2 in RFC 4540).
    pub outside: Vec<IpAddr>,
    /// Addresses of a twice NAT that represent external hosts to internal ones (A1 in RFC 4540).
    pub inside: Vec<IpAddr>,
    /// The ports that rules can get at the addresses of a NAT.
    pub ports: RangeInclusive<u16>,
    /// Outside addresses that also serve flows without a rule, with ports outside the range `ports`. No rule gets such
    /// an address as a whole.
    pub shared: Vec<IpAddr>,
    /// Maximum number of policy rules; requests for more are refused.
    pub max_rules: usize,
    /// Maximum number of elements in the packet filter, over all rules.
    pub max_elements: usize,
    /// Maximum number of shapes of elements; each shape has its own set in the packet filter. A quarter of the shapes
    /// is reserved for agents that use few.
    pub max_shapes: usize,
    /// A function that computes the footprint of a rule in the packet filter; `None` without a packet filter.
    pub footprint: Option<FootprintFn>,
    /// Maximum number of sessions; further ones are refused. A quarter of the sessions is reserved for agents that have
    /// few.
    pub max_sessions: usize,
    /// Whether sessions are notified of each other's rules, as RFC 4540 section 8.9 requires. Each change then causes
    /// work for every session, which is wasted if no agent needs notifications.
    pub announces: bool,
    /// Whether requests and ends of rules are logged; logging then counts as work.
    pub audits: bool,
}

/// Why a [`Config`] contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The middlebox is neither a packet filter nor a NAT.
    #[error("the middlebox type is neither a packet filter nor a NAT; set PACKET_FILTER, NAT or both")]
    NoFunction,
    /// A property of a NAT is set although the middlebox is not a NAT. RFC 4540 section 4.3.3.
    #[error("twice NAT, protocol and port translation are kinds of NAT; set NAT as well")]
    NatKindWithoutNat,
    /// The NAT has no addresses to assign.
    #[error("a NAT needs outside addresses, and a twice NAT also inside addresses; add some")]
    NoAddresses,
    /// This address is not that of a single host.
    #[error("{0} is not a host address; use one of the middlebox's own addresses, or remove it")]
    NotAHost(IpAddr),
    /// This address is listed twice, so its ports would be assigned twice.
    #[error("the address {0} is listed twice; remove one")]
    DuplicateAddress(IpAddr),
    /// The range of ports is not valid for a NAT.
    #[error(
        "a NAT cannot assign the ports {0} to {1}; the range must start at 1 or above, and end at or above its start"
    )]
    Ports(u16, u16),
}

impl Config {
    /// Returns the configuration of a pure IPv4 firewall that supports all wildcards, with at most a million rules and
    /// ten thousand sessions.
    pub fn firewall(max_lifetime: Lifetime) -> Self {
        Self {
            capabilities: Capabilities::firewall(max_lifetime),
            outside: Vec::new(),
            inside: Vec::new(),
            ports: 1024..=u16::MAX,
            shared: Vec::new(),
            max_rules: 1_000_000,
            max_elements: usize::MAX,
            max_shapes: usize::MAX,
            footprint: None,
            max_sessions: 10_000,
            announces: true,
            audits: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let has = |function| self.capabilities.includes(function);
        let (nat, twice) = (has(Capabilities::NAT), has(Capabilities::TWICE_NAT));
        let kind_of_nat =
            twice || has(Capabilities::PROTOCOL_TRANSLATION) || has(Capabilities::PORT_TRANSLATION);
        let (first, last) = (*self.ports.start(), *self.ports.end());
        if !nat && kind_of_nat {
            Err(ConfigError::NatKindWithoutNat)
        } else if !nat && !has(Capabilities::PACKET_FILTER) {
            Err(ConfigError::NoFunction)
        } else if nat && self.outside.is_empty() || twice && self.inside.is_empty() {
            Err(ConfigError::NoAddresses)
        } else if first == 0 || first > last {
            Err(ConfigError::Ports(first, last))
        } else {
            self.check_addresses()
        }
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        self.outside.iter().chain(&self.inside).try_for_each(|&address| {
            if address.is_unspecified() || address.is_multicast() || address == Ipv4Addr::BROADCAST {
                Err(ConfigError::NotAHost(address))
            } else if !seen.insert(address) {
                Err(ConfigError::DuplicateAddress(address))
            } else {
                Ok(())
            }
        })
    }
}
