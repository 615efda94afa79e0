//! PER and PEA: let data pass. RFC 4540 sections 8.3 and 8.4.

use hol_base::Time;

use super::Middlebox;
use super::tuple_checks::has_wildcard_but_protocol;
use crate::nat::{PoolRequest, RequestedPorts};
use crate::{
    Action, AddressTuple, Addresses, AgentId, Batch, Binding, Capabilities, Change, Direction, Enable, Gid,
    IpVersion, Pid, PortMapping, PortParity, Refusal, Reply, ReservedParity, Right, Rule, work,
};

impl Middlebox {
    /// Handles PER, which lets data pass.
    pub(super) fn enable(
        &mut self,
        now: Time,
        agent: AgentId,
        enable: Enable,
        gid: Option<Gid>,
        mapping: Option<PortMapping>,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        self.authorize_for(agent, Right::Enable)?;
        self.check_group(agent, gid)?;
        if mapping.is_none() {
            check_direction(&enable)?;
        }
        self.check_enable(now, agent, &enable, batch)?;
        let lifetime = self.grant_lifetime(enable.lifetime)?;
        self.check_room(agent, batch)?;
        let binding = self.bind(&enable, mapping, batch)?;
        let pid = self.rules.unused_pid();
        let gid = gid.unwrap_or(Gid(pid.0));
        let action = enable_with(&enable, gid, binding);
        self.add_rule(now, Rule { pid, owner: agent, expires: lifetime.end(now), action }, batch)
    }

    /// Handles PEA, which turns a reservation into an enable rule. The rule keeps its PID and its group, and thus its
    /// owner.
    pub(super) fn enable_reserved(
        &mut self,
        now: Time,
        agent: AgentId,
        enable: Enable,
        pid: Pid,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        self.authorize_for(agent, Right::Enable)?;
        let reserved = *self.rules.get(now, pid).ok_or(Refusal::NoSuchRule)?;
        let Action::Reserve { gid, binding, parameters } = reserved.action else {
            return Err(Refusal::Inconsistent);
        };
        self.check_access(agent, &reserved)?;
        check_direction(&enable)?;
        self.check_enable(now, agent, &enable, batch)?;
        if let Some(outside) = binding.outside {
            check_hosts(&enable, binding.inside.is_some())?;
            check_reservation(&enable, &outside, parameters.protocol)?;
        }
        let expires = self.grant_lifetime(enable.lifetime)?.end(now);
        let rule = Rule { expires, action: enable_with(&enable, gid, binding), ..reserved };
        self.check_quota(Some(&reserved), &rule, batch)?;
        self.change(Change::replace(reserved, rule), batch);
        Ok(rule.reply(now))
    }

    /// Checks that the group exists and that this agent may add rules to it (RFC 4540 section 8.3.1). All members of a
    /// group have the same owner (RFC 3989 section 2.1.5).
    pub(super) fn check_group(&self, agent: AgentId, gid: Option<Gid>) -> Result<(), Refusal> {
        let Some(gid) = gid else { return Ok(()) };
        let owner = self.rules.owner_of_group(gid).ok_or(Refusal::NoSuchGroup)?;
        if owner == agent { Ok(()) } else { Err(Refusal::GroupNotAuthorized) }
    }

    /// Performs the checks common to PER and PEA. RFC 4540 sections 8.3.1 and 8.4.1.
    fn check_enable(
        &self,
        now: Time,
        agent: AgentId,
        enable: &Enable,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let Enable { internal, external, .. } = enable;
        self.check_tuples(agent, internal, external)?;
        let (is_disabled, examined) = self.rules.are_disabled(now, internal, external);
        batch.add_work(work::COMPARISON * examined);
        let is_swept = self.sweeps.iter().any(|(_, sweep)| sweep.may_find(internal, external));
        if is_disabled || is_swept { Err(Refusal::Conflict) } else { Ok(()) }
    }

    /// Returns true if rules whose external hosts have this IP version need NAT addresses. If the NAT has no addresses
    /// of this version, the middlebox is a pure firewall for it: for example it may translate IPv4, but not IPv6.
    pub(super) fn translates(&self, version: IpVersion) -> bool {
        let capabilities = self.config.capabilities;
        let is_filter = capabilities.includes(Capabilities::PACKET_FILTER);
        capabilities.includes(Capabilities::NAT) && (!is_filter || self.nat.outside.has_version(version))
    }

    /// Assigns NAT addresses for a rule; none if the middlebox is a pure firewall for it. RFC 4540 section 8.3.3.
    fn bind(
        &self,
        enable: &Enable,
        mapping: Option<PortMapping>,
        batch: &mut Batch,
    ) -> Result<Binding, Refusal> {
        let Enable { parameters, internal, external, lifetime: _ } = enable;
        let capabilities = self.config.capabilities;
        if !self.translates(external.ip_version()) {
            let is_possible = mapping.is_none_or(|mapping| mapping.admits(internal));
            return if is_possible { Ok(Binding::default()) } else { Err(Refusal::LackOfAddresses) };
        }
        let is_twice = capabilities.includes(Capabilities::TWICE_NAT);
        check_hosts(enable, is_twice)?;
        check_translatable(internal.protocol)?;
        // A2 replaces A0 for external hosts, A1 replaces A3 for internal ones; each keeps the parity of its
        // own port.
        let outside = pool_request(external.ip_version(), internal, parameters.parity);
        let inside = pool_request(internal.ip_version(), external, parameters.parity);
        batch.add_work(work::SEARCH * self.nat.len() as u64);
        Ok(Binding {
            outside: Some(self.nat.outside.find_for_mapping(mapping, outside)?),
            inside: if is_twice { Some(self.nat.inside.find(inside)?) } else { None },
        })
    }
}

/// Checks the direction: bidirectional rules need single hosts and ports. RFC 4540 section 8.3.1.
fn check_direction(Enable { parameters, internal, external, .. }: &Enable) -> Result<(), Refusal> {
    let is_wide =
        parameters.direction == Direction::BiDirectional && has_wildcard_but_protocol(internal, external);
    if is_wide { Err(Refusal::Inconsistent) } else { Ok(()) }
}

fn enable_with(enable: &Enable, gid: Gid, binding: Binding) -> Action {
    let Enable { parameters, internal, external, lifetime: _ } = *enable;
    Action::Enable { gid, parameters, internal, external, binding }
}

fn pool_request(version: IpVersion, tuple: &AddressTuple, parity: PortParity) -> PoolRequest {
    let ports = match tuple.addresses {
        Addresses::Full { port, port_range, .. } if port != 0 => {
            let parity = match parity {
                PortParity::Any => ReservedParity::Any,
                PortParity::Same if port % 2 == 1 => ReservedParity::Odd,
                PortParity::Same => ReservedParity::Even,
            };
            RequestedPorts::Range(port_range, parity)
        }
        _ => RequestedPorts::All,
    };
    PoolRequest { version, protocol: tuple.protocol, ports }
}

/// Checks that the NAT has to translate only single hosts. A NAT may support wildcards, but only for PDR.
fn check_hosts(enable: &Enable, is_twice: bool) -> Result<(), Refusal> {
    let has_wildcard =
        enable.internal.has_address_wildcard() || is_twice && enable.external.has_address_wildcard();
    if has_wildcard { Err(Refusal::WildcardNotSupported) } else { Ok(()) }
}

/// Checks that a NAT can translate the protocol: TCP, UDP, DCCP, SCTP or UDP-Lite, which have ports, or 0, for which
/// whole addresses are assigned.
pub(super) fn check_translatable(protocol: u8) -> Result<(), Refusal> {
    if matches!(protocol, 0 | 6 | 17 | 33 | 132 | 136) { Ok(()) } else { Err(Refusal::ProtocolNotSupported) }
}

/// Checks that the reservation is suitable for the request. RFC 4540 names these refusals, but not when they apply.
fn check_reservation(enable: &Enable, outside: &AddressTuple, protocol: u8) -> Result<(), Refusal> {
    let Enable { parameters, internal, external, lifetime: _ } = enable;
    if external.ip_version() != outside.ip_version() {
        return Err(Refusal::IpVersionMismatch);
    }
    if protocol == 0 {
        return Ok(());
    }
    if internal.protocol != protocol {
        return Err(Refusal::ProtocolMismatch);
    }
    let ((first, last), (reserved_first, reserved_last)) = (internal.ports(), outside.ports());
    if last - first > reserved_last - reserved_first {
        return Err(Refusal::IllegalPortCount);
    }
    if parameters.parity == PortParity::Same
        && !outside.has_port_wildcard()
        && first % 2 != reserved_first % 2
    {
        return Err(Refusal::ParityMismatch);
    }
    Ok(())
}
