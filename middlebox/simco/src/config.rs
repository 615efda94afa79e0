//! What a middlebox is.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;

use crate::{Capabilities, Lifetime, Measure};

/// What a middlebox is, and how much it takes on.
#[derive(Debug, Clone)]
pub struct Config {
    /// What it tells agents of itself.
    pub capabilities: Capabilities,
    /// Addresses that a NAT gives to internal hosts, A2.
    pub outside: Vec<IpAddr>,
    /// Addresses that a twice NAT gives to external hosts, A1.
    pub inside: Vec<IpAddr>,
    /// Ports of those addresses.
    pub ports: RangeInclusive<u16>,
    /// Policy rules at a time; more are refused.
    pub most_rules: usize,
    /// Elements that the rules of all agents have in the packet filter at a time.
    pub most_elements: usize,
    /// Kinds of elements at a time. A quarter is kept for agents that have few.
    pub most_shapes: usize,
    /// What a rule takes up in the packet filter; nothing, if there is none.
    pub measure: Option<Measure>,
    /// Sessions at a time; more are refused.
    pub most_sessions: usize,
    /// Sessions hear of each other's rules, as RFC 4540 section 8.9 wants it. That costs every change as much as there
    /// are sessions, for nothing where nobody listens.
    pub announces: bool,
}

/// Why a [`Config`] contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Neither filter nor translator.
    #[error("the middlebox type is neither a packet filter nor a NAT; set PACKET_FILTER, NAT or both")]
    NoFunction,
    /// RFC 4540 section 4.3.3.
    #[error("twice NAT, protocol and port translation are kinds of NAT; set NAT as well")]
    NatKindWithoutNat,
    /// Nothing to give.
    #[error("a NAT needs outside addresses, and a twice NAT inside ones; add some")]
    NoAddresses,
    /// No host can have it.
    #[error("{0} is no address of a host; name one that is the middlebox's own, or leave it out")]
    NoHost(IpAddr),
    /// Its ports would be given twice.
    #[error("the address {0} is named twice; leave one out")]
    NamedTwice(IpAddr),
    /// No such port.
    #[error(
        "the ports {0} to {1} are none that a NAT can give; start at 1 or above and end behind the start"
    )]
    Ports(u16, u16),
}

impl Config {
    /// A pure firewall for IPv4 that takes every wildcard, a million rules and ten thousand sessions.
    pub fn firewall(max_lifetime: Lifetime) -> Self {
        Self {
            capabilities: Capabilities::firewall(max_lifetime),
            outside: Vec::new(),
            inside: Vec::new(),
            ports: 1024..=u16::MAX,
            most_rules: 1_000_000,
            most_elements: usize::MAX,
            most_shapes: usize::MAX,
            measure: None,
            most_sessions: 10_000,
            announces: true,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let has = |function| self.capabilities.include(function);
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
                Err(ConfigError::NoHost(address))
            } else if !seen.insert(address) {
                Err(ConfigError::NamedTwice(address))
            } else {
                Ok(())
            }
        })
    }
}
