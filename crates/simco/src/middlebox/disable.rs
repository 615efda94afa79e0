//! PDR: data is blocked, whoever enabled it. RFC 4540 section 8.8.

use hol_base::Time;

use super::Middlebox;
use crate::{
    Action, AddressTuple, AgentId, Batch, Capabilities, Change, Lifetime, Refusal, Reply, Right, Rule,
};

impl Middlebox {
    /// PDR. Enable rules that it conflicts with end at once.
    pub(super) fn disable(
        &mut self,
        now: Time,
        agent: AgentId,
        internal: AddressTuple,
        external: AddressTuple,
        lifetime: Lifetime,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        if !self.config.capabilities.include(Capabilities::PDR) {
            return Err(Refusal::NotSupported);
        }
        self.authorize_for(agent, Right::Disable)?;
        self.check_tuples(agent, &internal, &external)?;
        let lifetime = self.grant(lifetime)?;
        self.make_room()?;
        let overruled = self.rules.enabled(now, &internal, &external);
        let pid = self.rules.unused_pid();
        let action = Action::Disable { internal, external };
        let reply = self.begin(now, Rule { pid, owner: agent, expires: lifetime.end(now), action }, batch);
        overruled.into_iter().for_each(|rule| self.change(Change::end(rule), batch));
        Ok(reply)
    }
}
