//! Requests about rules: one reply, and ARE to everybody else. RFC 4540 sections 8 and 8.9.

use hol_base::Time;

use super::Middlebox;
use crate::batch::{Asked, Cause};
use crate::rules::Rules;
use crate::{
    AgentId, Batch, Body, Change, Lifetime, Message, Notification, Output, Pid, Refusal, Reply, Request,
    Right, Rule, SessionId,
};

impl Middlebox {
    /// Carries out a request of an open session.
    pub(super) fn transact(&mut self, now: Time, asked: Asked, batch: &mut Batch) {
        let here = batch.here();
        let outcome = self.carry_out(now, asked.agent, &asked.request, batch);
        let body = outcome.map_or_else(Body::Refusal, Body::Reply);
        batch.send(asked.session, Message { tid: asked.tid, body });
        self.announce_changes(now, here.0, asked.session, batch);
        batch.end_step(here, Cause::Asked(asked));
    }

    fn carry_out(
        &mut self,
        now: Time,
        agent: AgentId,
        request: &Request,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        match *request {
            Request::Prr { parameters, lifetime, gid } => {
                self.reserve(now, agent, parameters, lifetime, gid, batch)
            }
            Request::Per { enable, gid } => self.enable(now, agent, enable, gid, batch),
            Request::Pea { enable, pid } => self.enable_reserved(now, agent, enable, pid, batch),
            Request::Pdr { internal, external, lifetime } => {
                self.disable(now, agent, internal, external, lifetime, batch)
            }
            Request::Plc { pid, lifetime } => self.change_lifetime(now, agent, pid, lifetime, batch),
            Request::Prs { pid } => self.status(now, agent, pid),
            Request::Prl => self.list(now, agent),
            Request::Se { .. } | Request::Sa { .. } | Request::St => Err(Refusal::NotApplicable),
        }
    }

    pub(super) fn authorize_for(&self, agent: AgentId, right: Right) -> Result<(), Refusal> {
        if self.policy.permits(agent, right) { Ok(()) } else { Err(Refusal::NotAuthorized) }
    }

    /// No longer than asked for, no longer than the maximum; zero establishes no rule. RFC 4540 section 8.3.1.
    pub(super) fn grant(&self, requested: Lifetime) -> Result<Lifetime, Refusal> {
        let granted = requested.min(self.config.capabilities.max_lifetime);
        if granted == Lifetime(0) { Err(Refusal::ConfigurationFailed) } else { Ok(granted) }
    }

    /// RFC 4540 lists "no resources available for this transaction" without saying when: if the table is full.
    pub(super) fn make_room(&self) -> Result<(), Refusal> {
        if self.rules.len() < self.config.most_rules.min(Rules::MOST) {
            Ok(())
        } else {
            Err(Refusal::NoResources)
        }
    }

    /// A rule begins; the reply says so.
    pub(super) fn begin(&mut self, now: Time, rule: Rule, batch: &mut Batch) -> Reply {
        self.change(Change::begin(rule), batch);
        rule.reply(now)
    }

    /// The asking session has its reply; of rules that ended because another one began it is told as well.
    fn announce_changes(&mut self, now: Time, first: usize, asking: SessionId, batch: &mut Batch) {
        for at in first..batch.changes.len() {
            let change = &batch.changes[at];
            let Rule { pid, owner, .. } = *change.rule();
            let lifetime = change.after.as_ref().map_or(Lifetime(0), |rule| rule.remaining(now));
            let except = (at == first).then_some(asking);
            self.announce(pid, owner, lifetime, except, batch);
        }
    }

    /// ARE to open sessions whose agent may access the rule. RFC 4540 sections 5.3.19 and 8.9.
    pub(super) fn announce(
        &mut self,
        pid: Pid,
        owner: AgentId,
        lifetime: Lifetime,
        except: Option<SessionId>,
        batch: &mut Batch,
    ) {
        let Some(listeners) = self.listeners.get(&owner) else { return };
        for id in listeners {
            if Some(*id) != except
                && let Some(session) = self.sessions.get_mut(id)
            {
                let tid = session.next_notification();
                batch.send(*id, Message::notification(tid, Notification::Are { pid, lifetime }));
            }
        }
    }

    /// A step's changes could not be made: the request that wanted them is refused, and what came behind it is done
    /// anew, as if the refusal had come at once. What the steps before it changed stands, this step is settled, and
    /// the changes of those behind it are to be made as they now are.
    ///
    /// A rule that the middlebox itself ended stays ended.
    ///
    /// # Panics
    /// If there are fewer steps.
    pub fn refuse(&mut self, now: Time, step: usize, batch: &mut Batch) {
        for change in batch.changes[batch.steps[step].first_change..].iter().rev() {
            self.apply(&change.inverse());
        }
        let mut undone = batch.split_off(step).into_iter();
        match undone.next() {
            Some((Cause::Asked(asked), _)) => {
                let refusal = Message::refusal(asked.tid, Refusal::ConfigurationFailed);
                let session = asked.session;
                batch.begin(Cause::Asked(asked));
                batch.send(session, refusal);
            }
            first => first.into_iter().for_each(|(cause, said)| self.do_anew(now, cause, said, batch)),
        }
        for (cause, said) in undone {
            if !matches!(cause, Cause::Expired(_)) {
                self.do_anew(now, cause, said, batch);
            }
        }
        // Other rules may be due now than before.
        self.end_rules(now, batch);
    }

    fn do_anew(&mut self, now: Time, cause: Cause, said: Vec<Output>, batch: &mut Batch) {
        match cause {
            Cause::Asked(asked) => self.transact(now, asked, batch),
            Cause::Expired(pid) | Cause::Ended(pid) => self.end(pid, cause, batch),
            Cause::Session => {
                batch.begin(Cause::Session);
                said.into_iter().for_each(|output| batch.say(output));
            }
        }
    }
}
