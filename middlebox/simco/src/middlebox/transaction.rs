//! Processes requests about rules: one reply, and ARE to all other sessions. RFC 4540 sections 8 and 8.9.

use hol_base::Time;

use super::Middlebox;
use crate::batch::{SessionRequest, Step, StepCause};
use crate::resource_accounts::RuleResources;
use crate::rules::Rules;
use crate::{
    AgentId, Batch, Body, Change, ExhaustedResource, Lifetime, Message, Notification, OperatorEvent, Output,
    Pid, PortMapping, Refusal, Reply, Request, Right, Rule, SessionId, Tid, work,
};

impl Middlebox {
    /// Processes a request in an open session as if it had been received. This is for agents in this process, whose PER
    /// requests may have a [`PortMapping`].
    pub fn handle_request(
        &mut self,
        now: Time,
        session: SessionId,
        tid: Tid,
        request: Request,
        mapping: Option<PortMapping>,
        batch: &mut Batch,
    ) {
        self.end_rules(now, batch);
        if let Some(agent) = self.agent(session) {
            self.transact(now, SessionRequest { session, agent, tid, request, mapping }, batch);
        }
    }

    /// Processes a request in an open session.
    pub(super) fn transact(&mut self, now: Time, request: SessionRequest, batch: &mut Batch) {
        let positions = batch.positions();
        batch.add_work(if self.config.audits { work::MESSAGE + work::AUDIT_LINE } else { work::MESSAGE });
        let outcome = self.execute(now, &request, batch);
        let body = outcome.map_or_else(Body::Refusal, Body::Reply);
        batch.send(request.session, Message { tid: request.tid, body });
        self.announce_changes(now, positions.0, request.session, batch);
        batch.end_step(positions, StepCause::Request(request));
    }

    fn execute(
        &mut self,
        now: Time,
        &SessionRequest { session, agent, ref request, mapping, .. }: &SessionRequest,
        batch: &mut Batch,
    ) -> Result<Reply, Refusal> {
        match *request {
            Request::Prr { parameters, lifetime, gid } => {
                self.reserve(now, agent, parameters, lifetime, gid, batch)
            }
            Request::Per { enable, gid } => self.enable(now, agent, enable, gid, mapping, batch),
            Request::Pea { enable, pid } => self.enable_reserved(now, agent, enable, pid, batch),
            Request::Pdr { internal, external, lifetime } => {
                let (reply, sweep) = self.disable(now, agent, (internal, external), lifetime, batch)?;
                self.begin_sweep(now, session, sweep, batch);
                Ok(reply)
            }
            Request::Plc { pid, lifetime } => self.change_lifetime(now, agent, pid, lifetime, batch),
            Request::Prs { pid } => self.status(now, agent, pid),
            Request::Prl => self.list(now, agent, batch),
            Request::Se { .. } | Request::Sa { .. } | Request::St => Err(Refusal::NotApplicable),
        }
    }

    pub(super) fn authorize_for(&self, agent: AgentId, right: Right) -> Result<(), Refusal> {
        if self.policy.permits(agent, right) { Ok(()) } else { Err(Refusal::NotAuthorized) }
    }

    /// Returns the lifetime to be granted: the requested one, but at most the maximum; zero is refused. RFC 4540
    /// section 8.3.1.
    pub(super) fn grant_lifetime(&self, requested: Lifetime) -> Result<Lifetime, Refusal> {
        let granted = requested.min(self.config.capabilities.max_lifetime);
        if granted == Lifetime(0) { Err(Refusal::ConfigurationFailed) } else { Ok(granted) }
    }

    /// Checks that the middlebox has room for another rule of this agent. RFC 4540 names the refusal "no resources
    /// available for this transaction", but not when it applies.
    pub(super) fn check_room(&self, agent: AgentId, batch: &mut Batch) -> Result<(), Refusal> {
        let has_room = self.rules.len() < self.config.max_rules.min(Rules::MAX_RULES);
        if has_room && self.resource_accounts.has_room_for_rule(agent, self.policy.quota(agent)) {
            Ok(())
        } else {
            Err(report_exhausted(agent, ExhaustedResource::Rules, batch))
        }
    }

    /// Adds a rule and returns the reply; refuses if the rule would exceed its owner's quota.
    pub(super) fn add_rule(&mut self, now: Time, rule: Rule, batch: &mut Batch) -> Result<Reply, Refusal> {
        if let Err(refusal) = self.check_quota(None, &rule, batch) {
            self.rules.return_pid(rule.pid);
            return Err(refusal);
        }
        self.change(Change::begin(rule), batch);
        Ok(rule.reply(now))
    }

    /// Checks that the owner's quota and the limits allow `rule`; if `before` is given, in place of this rule.
    pub(super) fn check_quota(
        &self,
        before: Option<&Rule>,
        rule: &Rule,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        // The work is counted first, because a refusal is work too.
        batch.add_work(work::FOOTPRINT);
        let claim = |rule| self.resource_accounts.rule_resources(rule);
        let (more, less) = (claim(rule)?, before.map_or(Ok(RuleResources::default()), claim)?);
        let checked = self.resource_accounts.check(rule.owner, self.policy.quota(rule.owner), &more, &less);
        checked.map_err(|shortage| report_exhausted(rule.owner, shortage, batch))
    }

    /// Notifies other sessions of changes; notifies the requesting session only of rules that ended because of its
    /// request.
    fn announce_changes(&mut self, now: Time, first: usize, asking: SessionId, batch: &mut Batch) {
        for at in first..batch.changes.len() {
            let change = &batch.changes[at];
            let Rule { pid, owner, .. } = *change.rule();
            let lifetime = change.after.as_ref().map_or(Lifetime(0), |rule| rule.remaining(now));
            let except = (at == first).then_some(asking);
            self.announce(pid, owner, lifetime, except, batch);
        }
    }

    /// Sends ARE (policy rule event) to open sessions whose agents may access the rule. RFC 4540 sections 5.3.19 and
    /// 8.9.
    pub(super) fn announce(
        &mut self,
        pid: Pid,
        owner: AgentId,
        lifetime: Lifetime,
        except: Option<SessionId>,
        batch: &mut Batch,
    ) {
        let Some(subscribers) = self.subscribers.get(&owner) else { return };
        batch.add_work(work::NOTIFICATION * subscribers.len() as u64);
        for id in subscribers {
            if Some(*id) != except
                && let Some(session) = self.sessions.get_mut(id)
            {
                let tid = session.next_notification();
                batch.send(*id, Message::notification(tid, Notification::Are { pid, lifetime }));
            }
        }
    }

    /// Undoes a batch whose changes could not be applied all together. The caller then repeats its steps [one after the
    /// other](Self::redo).
    pub fn undo(&mut self, batch: &mut Batch) {
        while let Some(step) = self.undo_step(batch) {
            batch.undone.push_front(step);
        }
    }

    /// Repeats the next step that was [undone](Self::undo); returns false if there is none. The changes of the step
    /// must be applied, or the step [refused](Self::refuse), before the next step is repeated.
    pub fn redo(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some((cause, outputs)) = batch.undone.pop_front() else { return false };
        match cause {
            StepCause::Request(request) => self.transact(now, request, batch),
            // Because an earlier step was refused, the rule has another lifetime and has not expired.
            StepCause::Expired(pid) if self.rules.get(now, pid).is_some() => batch.begin_step(cause),
            StepCause::Expired(pid) => drop(self.expire(pid, batch)),
            StepCause::Ended(pid) => self.end(pid, batch),
            StepCause::Announced(pid, owner) => self.announce_end(now, pid, owner, batch),
            StepCause::Session => {
                batch.begin_step(cause);
                outputs.into_iter().for_each(|output| batch.push_output(output));
            }
        }
        true
    }

    /// Undoes the last step, whose changes could not be applied, and refuses its request. If the middlebox itself ended
    /// a rule in that step, the rule stays ended, and the function returns false.
    ///
    /// Other rules may have expired meanwhile; [`advance`](Self::advance) ends them.
    pub fn refuse(&mut self, refusal: Refusal, batch: &mut Batch) -> bool {
        if let Some(Step { cause: StepCause::Request(_), .. }) = batch.steps.last()
            && let Some((StepCause::Request(request), _)) = self.undo_step(batch)
        {
            let refusal = Message::refusal(request.tid, refusal);
            let session = request.session;
            batch.begin_step(StepCause::Request(request));
            batch.send(session, refusal);
            return true;
        }
        false
    }

    fn undo_step(&mut self, batch: &mut Batch) -> Option<(StepCause, Vec<Output>)> {
        for change in batch.last_step().iter().rev() {
            self.apply(&change.inverse());
            self.cancel_sweep(change);
        }
        batch.pop_step()
    }
}

/// Reports to the operator that a quota or a resource is exhausted; returns the refusal. RFC 4540 names refusals for a
/// lack of resources, but not when they apply.
pub(super) fn report_exhausted(agent: AgentId, shortage: ExhaustedResource, batch: &mut Batch) -> Refusal {
    batch.add_operator_event(OperatorEvent::Exhausted(agent, shortage));
    match shortage {
        ExhaustedResource::Addresses => Refusal::LackOfAddresses,
        ExhaustedResource::Ports => Refusal::LackOfPorts,
        ExhaustedResource::Sessions => Refusal::LackOfResources,
        ExhaustedResource::Rules | ExhaustedResource::Elements | ExhaustedResource::Shapes => {
            Refusal::NoResources
        }
    }
}
