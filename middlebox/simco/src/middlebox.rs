//! The middlebox: processes sessions and requests; returns changes and messages. RFC 4540 sections 6 to 8.
//!
//! One [`Middlebox`] serves all sessions, one request after the other, so requests are atomic (RFC 3989
//! section 2.1.4). It has no socket, packet filter or disk; its outputs go into a [`Batch`].

mod disable;
mod enable;
mod existing_rules;
mod message_checks;
mod overruled_rules;
mod reserve;
mod session;
mod transaction;
mod tuple_checks;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::Framer;

pub use session::{ConnectionInfo, Framing};

use crate::batch::StepCause;
use crate::nat::{Nat, Pool};
use crate::overlap_index::Sweep;
use crate::resource_accounts::{ResourceAccounts, ResourceLimits};
use crate::rules::Rules;
use crate::{
    AgentId, Authentication, Batch, Capabilities, Change, Config, ConfigError, Gid, Lifetime, Location,
    Notification, Pid, Policy, PolicyError, Right, Rule, SessionId, Unauthenticated, Usage, work,
};
use session::Session;

/// A middlebox with its sessions and rules.
#[derive(Debug)]
pub struct Middlebox {
    config: Config,
    policy: Policy,
    authentication: Box<dyn Authentication>,
    sessions: BTreeMap<SessionId, Session>,
    /// Number of sessions in the states NOAUTH and OPEN of RFC 4540 figure 41.
    established: usize,
    last_session: u32,
    /// The sessions with a deadline, in order of the deadline.
    deadlines: BTreeSet<(Time, SessionId)>,
    /// The open sessions whose agents may access the rules of an owner, by owner.
    subscribers: BTreeMap<AgentId, BTreeSet<SessionId>>,
    rules: Rules,
    nat: Nat,
    resource_accounts: ResourceAccounts,
    /// The sweeps in progress, each with the session that requested it. A sweep ends the rules that a disable rule
    /// overrules.
    sweeps: VecDeque<(SessionId, Sweep)>,
    /// Whether the ends of rules have filled the previous batch, so that the next one is for requests. The end of a
    /// single rule with many elements fills a batch.
    requests_are_next: bool,
    /// Expired rules whose end has not been announced to sessions yet, and their owners.
    unannounced: VecDeque<(Pid, AgentId)>,
}

/// Why a recorded rule cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Another rule has the same PID.
    #[error("policy rule {}: another rule has this identifier", .0.0)]
    PidInUse(Pid),
    /// The rule's group has another owner. RFC 3989 section 2.1.5.
    #[error("policy rule {}: its group {} belongs to another agent", .0.0, .1.0)]
    GroupOfAnother(Pid, Gid),
    /// The rule's addresses are already in use, or invalid.
    #[error("policy rule {}: its addresses or ports at the middlebox are in use or invalid", .0.0)]
    AddressesInUse(Pid),
}

impl Middlebox {
    /// Maximum time until a new connection opens a session, and until the rest of an incomplete message arrives. RFC
    /// 4540 section 6, step 2.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
    /// Maximum number of overruled rules that a step of a sweep ends, so that other sessions need not wait long.
    const MAX_ENDS: usize = 64;
    /// Maximum number of notifications that a step of a sweep causes. They take 2.5 ms, so that the turn of the daemon
    /// still has time for requests.
    const MAX_NOTIFICATIONS: usize = 4096;
    /// Maximum number of ended rules that have not been announced to sessions. Once it is reached, ends are announced
    /// before more rules end.
    const MAX_UNANNOUNCED: usize = 1 << 18;

    /// Creates a middlebox without sessions and rules.
    pub fn new(
        config: Config,
        policy: Policy,
        authentication: Box<dyn Authentication>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let pool = |location, addresses: &[_]| Pool::new(location, addresses, config.ports.clone());
        let outside = pool(Location::Outside, &config.outside).with_shared(&config.shared);
        let nat = Nat { outside, inside: pool(Location::Inside, &config.inside) };
        let Config { max_sessions: sessions, max_elements: elements, max_shapes: shapes, .. } = config;
        let max = ResourceLimits { sessions, elements, shapes };
        let resource_accounts = ResourceAccounts::new(config.footprint, max);
        let mut middlebox = Self {
            config,
            policy,
            authentication,
            sessions: BTreeMap::new(),
            established: 0,
            last_session: 0,
            deadlines: BTreeSet::new(),
            subscribers: BTreeMap::new(),
            rules: Rules::new(),
            nat,
            resource_accounts,
            sweeps: VecDeque::new(),
            requests_are_next: false,
            unannounced: VecDeque::new(),
        };
        middlebox.prepare_for_disable_rules();
        Ok(middlebox)
    }

    /// Replaces the policy and the authentication. Sessions and rules stay. An agent that the new policy does not
    /// contain has no rights any more, but its rules stay until they expire.
    pub fn replace_policy(
        &mut self,
        policy: Policy,
        authentication: Box<dyn Authentication>,
    ) -> Result<(), PolicyError> {
        self.policy = policy.as_successor_of(&self.policy)?;
        self.authentication = authentication;
        self.prepare_for_disable_rules();
        self.subscribers.clear();
        let open = self.sessions.iter().filter_map(|(id, session)| Some((*id, session.agent()?)));
        for (id, agent) in open.collect::<Vec<_>>() {
            self.subscribe(id, agent);
        }
        Ok(())
    }

    fn prepare_for_disable_rules(&mut self) {
        let has_pdr = self.config.capabilities.includes(Capabilities::PDR);
        self.rules.prepare_for_disable_rules(has_pdr && self.policy.permitted_to_any(Right::Disable));
    }

    /// Creates a pure firewall in which agents need not authenticate, for measurements.
    pub fn firewall(max_lifetime: Lifetime) -> Self {
        let config = Config::firewall(max_lifetime);
        Self::new(config, Policy::permissive(), Box::new(Unauthenticated))
            .expect("a pure firewall is consistent")
    }

    /// Adds an agent's connection, and returns its session.
    pub fn connect(&mut self, now: Time, connection_info: ConnectionInfo) -> SessionId {
        let id = self.unused_session();
        self.sessions.insert(id, Session::new(connection_info));
        self.update_deadline(now, id);
        id
    }

    fn unused_session(&mut self) -> SessionId {
        loop {
            self.last_session = self.last_session.wrapping_add(1);
            let id = SessionId(self.last_session);
            if !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    /// Sets the agent that lower layers have authenticated, for example TLS after the connection was opened. Must be
    /// called before the first message.
    pub fn set_agent(&mut self, id: SessionId, agent: String) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.set_agent(agent);
        }
    }

    /// Removes a connection that was lost. Its session ends, but its rules stay in force. RFC 3989 sections 2.2.3 and
    /// 2.2.4.
    pub fn disconnect(&mut self, id: SessionId) {
        let Some(session) = self.sessions.remove(&id) else { return };
        if let Some(deadline) = session.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        self.established -= usize::from(session.is_established());
        if let Some(agent) = session.agent() {
            self.resource_accounts.end_session(agent);
            for owner in self.policy.accessible(agent) {
                if let Some(subscribers) = self.subscribers.get_mut(&owner) {
                    subscribers.remove(&id);
                }
            }
        }
    }

    /// Processes received octets: any part of a stream, or one whole message, depending on the connection's
    /// [`Framing`].
    ///
    /// Messages of a stream wait while the batch is [full](Batch::is_full); call [`resume`](Self::resume) before
    /// passing more octets.
    pub fn receive(&mut self, now: Time, id: SessionId, octets: Bytes, batch: &mut Batch) {
        self.end_rules(now, batch);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        match &mut session.framer {
            None => self.process_message(now, id, &octets, batch),
            Some(framer) => {
                framer.push(octets, Default::default());
                self.take_messages(now, id, batch);
            }
        }
        self.update_deadline(now, id);
    }

    /// Processes the messages of a connection that [waited](Self::has_waiting_messages).
    pub fn resume(&mut self, now: Time, id: SessionId, batch: &mut Batch) {
        self.end_rules(now, batch);
        self.take_messages(now, id, batch);
        self.update_deadline(now, id);
    }

    /// Returns true if messages of the connection wait because a batch was full.
    pub fn has_waiting_messages(&self, id: SessionId) -> bool {
        let framer = self.sessions.get(&id).and_then(|session| session.framer.as_ref());
        framer.is_some_and(Framer::has_unparsed_octets)
    }

    /// Processes whole messages while the session exists, the batch has room, and no sweep for the last message is in
    /// progress.
    fn take_messages(&mut self, now: Time, id: SessionId, batch: &mut Batch) {
        while batch.has_room()
            && !self.is_sweeping_for(id)
            && let Some(framer) = self.sessions.get_mut(&id).and_then(|session| session.framer.as_mut())
        {
            match framer.next() {
                Ok(Some(framed)) => self.process_message(now, id, &framed.payload, batch),
                Ok(None) => return,
                Err(_) => self.report_malformed(id, batch),
            }
        }
    }

    /// Ends expired rules, and handles deadlines of connections. Must be called at [`wake_at`](Self::wake_at).
    pub fn advance(&mut self, now: Time, batch: &mut Batch) {
        if std::mem::take(&mut self.requests_are_next) {
            batch.forbid_expiry();
        } else {
            self.end_rules(now, batch);
            batch.begin_share();
            self.sweep(now, batch);
            self.requests_are_next = batch.is_full();
        }
        while let Some(&(deadline, id)) = self.deadlines.first()
            && deadline <= now
        {
            self.time_out(id, batch);
        }
    }

    /// Returns when to call [`advance`](Self::advance) next; [`Time::MAX`] if nothing changes without input.
    pub fn wake_at(&self) -> Time {
        if !self.sweeps.is_empty() || !self.unannounced.is_empty() {
            return Time::ZERO;
        }
        let ends = self.rules.first_to_end().map(|(end, _)| end);
        let timeout = self.deadlines.first().map(|(deadline, _)| *deadline);
        ends.into_iter().chain(timeout).min().unwrap_or(Time::MAX)
    }

    /// Returns the resources that each agent uses, for all agents that have used any.
    pub fn usage(&self) -> impl Iterator<Item = (AgentId, Usage)> {
        self.resource_accounts.usage()
    }

    /// Returns the number of ports that the NAT can assign for each protocol, over all outside and inside addresses.
    pub fn ports(&self) -> usize {
        let ports = usize::from(*self.config.ports.end() - *self.config.ports.start()) + 1;
        (self.config.outside.len() + self.config.inside.len()) * ports
    }

    /// Returns the agent of a session; `None` if the session is not open.
    pub fn agent(&self, id: SessionId) -> Option<AgentId> {
        self.sessions.get(&id)?.agent()
    }

    /// Ends a rule although no agent requested it; returns false if the rule is not in force. RFC 4540 section 8.9.
    pub fn end_rule(&mut self, now: Time, pid: Pid, batch: &mut Batch) -> bool {
        let is_in_force = self.rules.get(now, pid).is_some();
        if is_in_force {
            self.end(pid, batch);
        }
        is_in_force
    }

    /// Ends all sessions, as before a shutdown; rules stay in force. RFC 4540 section 7.5.
    pub fn end_sessions(&mut self, batch: &mut Batch) {
        while let Some((&id, session)) = self.sessions.first_key_value() {
            batch.begin_step(StepCause::Session);
            if session.is_established() {
                self.notify(id, Notification::Ast, batch);
            }
            self.close(id, batch);
        }
    }

    /// Restores a rule that was recorded before a restart. Must be called before agents connect. If the rule has
    /// expired, [`advance`](Self::advance) ends it. `owner` replaces [`Rule::owner`], which is not valid after a
    /// restart.
    ///
    /// The remaining lifetime is limited to the maximum, because another clock may have recorded the end of the rule.
    pub fn restore(&mut self, now: Time, rule: Rule, owner: &str) -> Result<(), RestoreError> {
        let latest = self.config.capabilities.max_lifetime.end(now);
        let rule = Rule { owner: self.policy.owner(owner), expires: rule.expires.min(latest), ..rule };
        if !self.rules.has_room_for(rule.pid) {
            return Err(RestoreError::PidInUse(rule.pid));
        }
        if let Some(gid) = rule.gid()
            && self.rules.owner_of_group(gid).is_some_and(|owner| owner != rule.owner)
        {
            return Err(RestoreError::GroupOfAnother(rule.pid, gid));
        }
        if !self.nat.is_free(&rule.binding()) {
            return Err(RestoreError::AddressesInUse(rule.pid));
        }
        self.apply(&Change::begin(rule));
        Ok(())
    }

    /// Delays the reuse of the PID of a rule that ended before a restart, as if the rule had ended now.
    pub fn delay_pid_reuse(&mut self, pid: Pid) {
        self.rules.delay_pid_reuse(pid);
    }

    /// Returns all rules in force, in no particular order.
    pub fn rules(&self, now: Time) -> impl Iterator<Item = &Rule> {
        self.rules.in_force(now)
    }

    /// Returns the current policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the capabilities that the middlebox sends to agents.
    pub fn capabilities(&self) -> Capabilities {
        self.config.capabilities
    }

    /// Ends expired rules and announces their ends to sessions, as far as the batch has room. Rules end first and are
    /// announced later, so that no rule outlives its lifetime while many sessions are notified.
    fn end_rules(&mut self, now: Time, batch: &mut Batch) {
        while batch.may_expire_rules() {
            let before = batch.work();
            let must_announce = self.unannounced.len() >= Self::MAX_UNANNOUNCED;
            if (must_announce || !self.end_next(now, batch)) && !self.announce_next(now, batch) {
                return;
            }
            batch.count_expiry_work(before);
        }
    }

    /// Ends the next rule that has expired; returns false if there is none.
    fn end_next(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some((_, pid)) = self.rules.first_to_end().filter(|(end, _)| *end <= now) else { return false };
        if let Some(owner) = self.expire(pid, batch) {
            self.unannounced.push_back((pid, owner));
        }
        true
    }

    /// Removes an expired rule; returns its owner.
    fn expire(&mut self, pid: Pid, batch: &mut Batch) -> Option<AgentId> {
        batch.begin_step(StepCause::Expired(pid));
        let rule = *self.rules.get_or_expired(pid)?;
        batch.add_work(work::MESSAGE);
        self.change(Change::end(rule), batch);
        Some(rule.owner)
    }

    /// Announces the end of the next expired rule to sessions; returns false if there is none.
    fn announce_next(&mut self, now: Time, batch: &mut Batch) -> bool {
        let Some((pid, owner)) = self.unannounced.pop_front() else { return false };
        self.announce_end(now, pid, owner, batch);
        true
    }

    /// Announces the end of an expired rule to all sessions that may access the rule, unless its lifetime has been
    /// extended meanwhile.
    fn announce_end(&mut self, now: Time, pid: Pid, owner: AgentId, batch: &mut Batch) {
        batch.begin_step(StepCause::Announced(pid, owner));
        if self.rules.get(now, pid).is_none() {
            self.announce(pid, owner, Lifetime(0), None, batch);
        }
    }

    /// Returns the maximum number of rules that a step of a sweep may end. It is smaller if there are many sessions,
    /// because each is notified of every ended rule.
    fn max_ends(&self) -> usize {
        (Self::MAX_NOTIFICATIONS / self.established.max(1)).clamp(1, Self::MAX_ENDS)
    }

    /// Ends a rule although no agent requested it, and notifies all sessions that may access the rule. RFC 4540 section
    /// 8.9.
    fn end(&mut self, pid: Pid, batch: &mut Batch) {
        batch.begin_step(StepCause::Ended(pid));
        if let Some(&rule) = self.rules.get_or_expired(pid) {
            batch.add_work(work::MESSAGE);
            self.change(Change::end(rule), batch);
            self.announce(pid, rule.owner, Lifetime(0), None, batch);
        }
    }

    #[inline]
    fn change(&mut self, change: Change, batch: &mut Batch) {
        let elements = self.apply(&change);
        batch.add_work(work::ELEMENT * elements as u64);
        if self.config.audits && change.after.is_none() {
            batch.add_work(work::AUDIT_LINE);
        }
        batch.changes.push(change);
    }

    /// Applies a change to the tables of the middlebox; returns the number of elements that must change in a packet
    /// filter.
    fn apply(&mut self, change: &Change) -> usize {
        self.rules.apply(change);
        self.nat.apply(change);
        self.resource_accounts.apply(change)
    }
}
