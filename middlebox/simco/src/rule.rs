//! Policy rules. RFC 4540 section 8.1, and 8.8.1 for disable rules.

use hol_base::{Duration, Time};

use crate::{
    AddressTuple, Addresses, AgentId, DisableRuleStatus, EnableRuleStatus, Gid, GrantedRule, IpChoice,
    IpVersion, Lifetime, Location, Owner, PerParameters, Pid, PrrParameters, Reply,
};

/// A policy rule in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Identifier of the rule.
    pub pid: Pid,
    /// The agent that established the rule.
    pub owner: AgentId,
    /// The time at which the rule ends.
    pub expires: Time,
    /// What the rule does.
    pub action: Action,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reserves addresses: the rule is in the state RESERVED.
    Reserve {
        /// Group of the rule.
        gid: Gid,
        /// Requested parameters of the reservation.
        parameters: PrrParameters,
        /// The reserved addresses.
        binding: Binding,
    },
    /// Lets data pass: the rule is in the state ENABLED.
    Enable {
        /// Group of the rule.
        gid: Gid,
        /// The parity of the port and the direction of the data.
        parameters: PerParameters,
        /// A0: the internal host.
        internal: AddressTuple,
        /// A3: the external host.
        external: AddressTuple,
        /// The addresses that replace A0 and A3 beyond the middlebox.
        binding: Binding,
    },
    /// Blocks data: a rule created by PDR, which belongs to no group. RFC 4540 calls this state ENABLED, too.
    Disable {
        /// A0: the internal host.
        internal: AddressTuple,
        /// A3: the external host.
        external: AddressTuple,
    },
}

/// The middlebox's addresses that a NAT assigns to a rule; a pure firewall assigns none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Binding {
    /// A2, which external hosts see instead of A0.
    pub outside: Option<AddressTuple>,
    /// A1, which internal hosts see instead of A3; twice NAT only.
    pub inside: Option<AddressTuple>,
}

impl Rule {
    /// Returns true until the rule's lifetime ends.
    pub fn is_in_force(&self, now: Time) -> bool {
        self.expires > now
    }

    /// Returns the remaining lifetime of the rule in seconds, rounded up.
    pub fn remaining(&self, now: Time) -> Lifetime {
        let nanos = self.expires.saturating_since(now).as_nanos();
        Lifetime(u32::try_from(nanos.div_ceil(1_000_000_000)).unwrap_or(u32::MAX))
    }

    /// Returns the group of the rule; `None` for a disable rule.
    pub fn gid(&self) -> Option<Gid> {
        match self.action {
            Action::Reserve { gid, .. } | Action::Enable { gid, .. } => Some(gid),
            Action::Disable { .. } => None,
        }
    }

    /// Returns the addresses that a NAT has assigned to the rule.
    pub fn binding(&self) -> Binding {
        match self.action {
            Action::Reserve { binding, .. } | Action::Enable { binding, .. } => binding,
            Action::Disable { .. } => Binding::default(),
        }
    }

    /// Returns A0 and A3, the internal and the external host; `None` for a reservation.
    pub fn address_tuples(&self) -> Option<(AddressTuple, AddressTuple)> {
        match self.action {
            Action::Reserve { .. } => None,
            Action::Enable { internal, external, .. } | Action::Disable { internal, external } => {
                Some((internal, external))
            }
        }
    }

    /// Returns the positive reply to the request that established the rule. RFC 4540 sections 5.3.9, 5.3.10 and
    /// 5.3.17.
    pub fn reply(&self, now: Time) -> Reply {
        let lifetime = self.remaining(now);
        match self.action {
            Action::Reserve { .. } => Reply::Prr(self.granted(lifetime)),
            Action::Enable { .. } => Reply::Per(self.granted(lifetime)),
            Action::Disable { .. } => Reply::Pdr { pid: self.pid, lifetime },
        }
    }

    /// Returns the reply to a status request (PRS) for the rule, with all its attributes. RFC 4540 section 8.6.
    pub fn status(&self, now: Time, owner: Owner) -> Reply {
        let (pid, lifetime) = (self.pid, self.remaining(now));
        match self.action {
            Action::Reserve { .. } => Reply::Prs { rule: self.granted(lifetime), owner },
            Action::Enable { gid, parameters, internal, external, binding } => {
                Reply::Pes(Box::new(EnableRuleStatus {
                    pid,
                    gid,
                    parameters,
                    internal,
                    inside: binding.inside.unwrap_or(external.seen_from(Location::Inside)),
                    outside: binding.outside.unwrap_or(internal.seen_from(Location::Outside)),
                    external,
                    lifetime,
                    owner,
                }))
            }
            Action::Disable { internal, external } => {
                Reply::Pds(Box::new(DisableRuleStatus { pid, internal, external, lifetime, owner }))
            }
        }
    }

    fn granted(&self, lifetime: Lifetime) -> GrantedRule {
        let gid = self.gid().expect("a granted rule has a group");
        let Binding { outside, inside } = self.binding();
        let (outside, inside) = match (self.action, outside) {
            (_, Some(outside)) => (outside, inside),
            (Action::Reserve { parameters, .. }, None) => (nothing_reserved(&parameters), None),
            (Action::Enable { internal, external, .. } | Action::Disable { internal, external }, None) => {
                (internal.seen_from(Location::Outside), Some(external.seen_from(Location::Inside)))
            }
        };
        GrantedRule { pid: self.pid, gid, lifetime, outside, inside }
    }
}

/// Returns the outside tuple in the reply to a reservation at a pure firewall, which has no addresses to reserve.
/// RFC 4540 section 8.2.2. Each tuple has an IP version: it is IPv4 if the agent accepts either.
fn nothing_reserved(parameters: &PrrParameters) -> AddressTuple {
    let version = if parameters.outside == IpChoice::V6 { IpVersion::V6 } else { IpVersion::V4 };
    AddressTuple {
        location: Location::Outside,
        protocol: parameters.protocol,
        prefix_length: 0,
        addresses: Addresses::ProtocolsOnly(version),
    }
}

impl Lifetime {
    /// Returns when a lifetime that starts at `now` ends.
    pub fn end(self, now: Time) -> Time {
        now + Duration::from_secs(u64::from(self.0))
    }
}
