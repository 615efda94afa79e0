//! PLC, PRS and PRL: requests about existing rules. RFC 4540 sections 8.5 to 8.7.

use hol_base::Time;

use super::Middlebox;
use crate::{AgentId, Batch, Change, Lifetime, Pid, Refusal, Reply, Right, Rule, work};

impl Middlebox {
    /// Handles PLC, which changes the lifetime of a rule; lifetime 0 deletes the rule.
    pub(super) fn change_lifetime(
        &mut self,
        now: Time,
        agent: AgentId,
        pid: Pid,
        lifetime: Lifetime,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        self.authorize_for(agent, Right::Lifetime)?;
        let rule = *self.accessible(now, agent, pid)?;
        if lifetime == Lifetime(0) {
            self.change(Change::end(rule), batch);
            return Ok(Reply::Prd);
        }
        let lifetime = self.grant_lifetime(lifetime)?;
        self.change(Change::replace(rule, Rule { expires: lifetime.end(now), ..rule }), batch);
        Ok(Reply::Plc { lifetime })
    }

    /// Handles PRS, which returns the status of a rule.
    pub(super) fn status(&self, now: Time, agent: AgentId, pid: Pid) -> Result<Reply, Refusal> {
        self.authorize_for(agent, Right::Status)?;
        let rule = self.accessible(now, agent, pid)?;
        Ok(rule.status(now, self.policy.name(rule.owner)))
    }

    /// Handles PRL, which lists the rules that the agent may access.
    pub(super) fn list(&self, now: Time, agent: AgentId, batch: &mut Batch) -> Result<Reply, Refusal> {
        /// Maximum number of PIDs in a PRL reply: each takes eight octets of the body, whose length field has 16 bits.
        /// The whole message then has 65,536 octets.
        const MAX_PIDS: usize = u16::MAX as usize / 8;
        self.authorize_for(agent, Right::List)?;
        let held: usize = self.policy.accessible(agent).map(|owner| self.rules.count_owned_by(owner)).sum();
        if held.saturating_sub(self.rules.possibly_expired(now)) > MAX_PIDS {
            return Err(Refusal::ReplyTooBig);
        }
        batch.add_work(work::EXAMINATION * held as u64);
        let rules = self.policy.accessible(agent).flat_map(|owner| self.rules.owned_by(now, owner));
        let mut pids: Vec<Pid> = rules.map(|rule| rule.pid).take(MAX_PIDS + 1).collect();
        pids.sort_unstable();
        if pids.len() > MAX_PIDS { Err(Refusal::ReplyTooBig) } else { Ok(Reply::Prl(pids)) }
    }

    fn accessible(&self, now: Time, agent: AgentId, pid: Pid) -> Result<&Rule, Refusal> {
        let rule = self.rules.get(now, pid).ok_or(Refusal::NoSuchRule)?;
        self.check_access(agent, rule)?;
        Ok(rule)
    }

    pub(super) fn check_access(&self, agent: AgentId, rule: &Rule) -> Result<(), Refusal> {
        if self.policy.may_access(agent, rule.owner) { Ok(()) } else { Err(Refusal::RuleNotAuthorized) }
    }
}
