//! PDR: blocks data, even if other agents enabled it. RFC 4540 section 8.8.

use hol_base::Time;

use super::Middlebox;
use crate::overlap_index::Sweep;
use crate::{Action, AddressTuple, AgentId, Batch, Capabilities, Lifetime, Refusal, Reply, Right, Rule};

impl Middlebox {
    /// Handles PDR, which blocks data. The returned sweep will end the enable rules that conflict with the new rule.
    pub(super) fn disable(
        &mut self,
        now: Time,
        agent: AgentId,
        (internal, external): (AddressTuple, AddressTuple),
        lifetime: Lifetime,
        batch: &mut Batch,
    ) -> Result<(Reply, Sweep), Refusal> {
        if !self.config.capabilities.includes(Capabilities::PDR) {
            return Err(Refusal::NotSupported);
        }
        self.authorize_for(agent, Right::Disable)?;
        self.check_tuples(agent, &internal, &external)?;
        let lifetime = self.grant_lifetime(lifetime)?;
        self.check_room(agent, batch)?;
        if self.sweeps.len() >= Self::MAX_SWEEPS {
            return Err(Refusal::NoResources);
        }
        let pid = self.rules.unused_pid();
        let action = Action::Disable { internal, external };
        let rule = Rule { pid, owner: agent, expires: lifetime.end(now), action };
        let reply = self.add_rule(now, rule, batch)?;
        Ok((reply, Sweep::new(pid, internal, external)))
    }
}
