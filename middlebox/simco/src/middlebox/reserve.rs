//! PRR: reserves addresses. RFC 4540 section 8.2.

use hol_base::Time;

use super::Middlebox;
use super::enable::check_translatable;
use crate::nat::{PoolRequest, RequestedPorts};
use crate::{
    Action, AgentId, Batch, Binding, Capabilities, Gid, IpChoice, IpVersion, Lifetime, NatMode,
    PrrParameters, Refusal, Reply, Right, Rule, work,
};

impl Middlebox {
    /// Handles PRR, which reserves addresses of the NAT.
    pub(super) fn reserve(
        &mut self,
        now: Time,
        agent: AgentId,
        parameters: PrrParameters,
        lifetime: Lifetime,
        gid: Option<Gid>,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        self.authorize_for(agent, Right::Reserve)?;
        self.check_group(agent, gid)?;
        let (inside, outside) = self.choose_versions(&parameters)?;
        let is_nat = self.translates(outside);
        if is_nat {
            check_translatable(parameters.protocol)?;
            self.check_nat_mode(parameters.nat_mode)?;
        }
        let lifetime = self.grant_lifetime(lifetime)?;
        self.check_room(agent, batch)?;
        let binding = if is_nat {
            batch.add_work(work::SEARCH * self.nat.len() as u64);
            self.reserve_addresses(&parameters, inside, outside)?
        } else {
            Binding::default()
        };
        let pid = self.rules.unused_pid();
        let gid = gid.unwrap_or(Gid(pid.0));
        let action = Action::Reserve { gid, parameters, binding };
        self.add_rule(now, Rule { pid, owner: agent, expires: lifetime.end(now), action }, batch)
    }

    /// Returns the inside and outside IP versions that are both requested and supported; IPv4 is preferred. They are
    /// the same unless the NAT translates protocols. RFC 3989 section 2.3.6.
    fn choose_versions(&self, parameters: &PrrParameters) -> Result<(IpVersion, IpVersion), Refusal> {
        let capabilities = self.config.capabilities;
        let are_served = |&(inside, outside): &(IpVersion, IpVersion)| {
            capabilities.supports_internal(inside)
                && capabilities.supports_external(outside)
                && (inside == outside || capabilities.includes(Capabilities::PROTOCOL_TRANSLATION))
        };
        let with_outside =
            |inside| versions(parameters.outside).iter().map(move |outside| (inside, *outside));
        let mut pairs = versions(parameters.inside).iter().copied().flat_map(with_outside);
        pairs.find(are_served).ok_or(Refusal::IpVersionMismatch)
    }

    /// Checks the requested NAT mode; a twice NAT supports both modes. RFC 3989 section 2.3.8.
    fn check_nat_mode(&self, mode: NatMode) -> Result<(), Refusal> {
        let is_twice = self.config.capabilities.includes(Capabilities::TWICE_NAT);
        if mode == NatMode::Traditional || is_twice { Ok(()) } else { Err(Refusal::NatModeNotSupported) }
    }

    /// Returns free addresses for a reservation: an outside address (A2), and for twice NAT an inside address (A1). RFC
    /// 4540 section 8.2.3.
    fn reserve_addresses(
        &self,
        parameters: &PrrParameters,
        inside: IpVersion,
        outside: IpVersion,
    ) -> Result<Binding, Refusal> {
        let protocol = parameters.protocol;
        let ports = match parameters.port_range {
            PrrParameters::ALL_PORTS => RequestedPorts::All,
            count => RequestedPorts::Range(count, parameters.parity),
        };
        let is_twice = parameters.nat_mode == NatMode::Twice;
        let request = |version| PoolRequest { version, protocol, ports };
        Ok(Binding {
            outside: Some(self.nat.outside.find(request(outside))?),
            inside: if is_twice { Some(self.nat.inside.find(request(inside))?) } else { None },
        })
    }
}

fn versions(choice: IpChoice) -> &'static [IpVersion] {
    match choice {
        IpChoice::Any => &[IpVersion::V4, IpVersion::V6],
        IpChoice::V4 => &[IpVersion::V4],
        IpChoice::V6 => &[IpVersion::V6],
    }
}
