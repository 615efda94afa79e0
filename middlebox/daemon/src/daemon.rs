//! The event loop: one thread serves all sessions, so every request is atomic (RFC 3989 section 2.1.4).

mod arrivals;
mod datagrams;
mod reload;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;

use hol_base::{Duration, Time};
use hol_filter::Corrections;
use hol_simco::{Batch, Middlebox, OperatorEvent, Output, SessionId};
use hol_system::{Events, Interest, Poller};

use crate::audit::Audit;
use crate::clock::Clock;
use crate::connection::EndReason;
use crate::connections::Connections;
use crate::event_source::Token;
use crate::limits::Limits;
use crate::listeners::Listeners;
use crate::log::{Field, Level, Log};
use crate::metrics::Metrics;
use crate::metrics_endpoint::Endpoint;
use crate::port_mapping::PortMapper;
use crate::rule_store::RuleStore;
use crate::sctp_port::SctpPort;
use crate::standby::Event;
use crate::systemd::ServiceManager;
use crate::unauthenticated_connections::UnauthenticatedConnections;
use crate::{DaemonError, ListenAddress, RuleStoreError};
use reload::Reload;

/// A middlebox daemon with its sockets.
///
/// In every turn of its event loop it reads the data that have arrived, up to limits, applies all resulting changes
/// together, and only then answers. Data that arrive during the turn belong to the next turn, so a slower disk leads to
/// larger batches.
#[derive(Debug)]
pub struct Daemon {
    clock: Clock,
    log: Log,
    limits: Limits,
    poller: Poller<Token>,
    listeners: Option<Listeners>,
    /// The UDP ports for SCTP over UDP, which serve their associations until the daemon ends.
    sctp_ports: Vec<SctpPort>,
    connections: Connections,
    /// The connections that have no session yet.
    without_session: UnauthenticatedConnections,
    /// The connections in a TLS handshake; each may need 64 KiB of memory.
    handshakes: UnauthenticatedConnections,
    middlebox: Middlebox,
    rule_store: RuleStore,
    batch: Batch,
    buffer: Box<[u8]>,
    metrics: Metrics,
    /// The endpoint for metrics until [`Self::run`] starts it; `None` without metrics.
    endpoint: Option<Endpoint>,
    supervisor: ServiceManager,
    reload: Option<Reload>,
    /// The service for port mappings; `None` if it is not enabled.
    mapper: Option<PortMapper>,
    /// Indices of the sockets of the port mapping service that have data to read.
    readable_mappers: BTreeSet<u32>,
    /// The audit log; `None` if it is not enabled.
    audit: Option<Audit>,
    /// When to update the gauges of agents; [`Time::MAX`] if nothing has changed, `None` without metrics.
    gauges_at: Option<Time>,
    /// When to check the state of the standby; [`Time::MAX`] without a standby.
    standby_at: Time,
    /// When the daemon ends even if agents have not read everything; [`Time::MAX`] until the daemon is stopped.
    shutdown_deadline: Time,
    /// The failure that stops the daemon; `None` while it runs, and if it is stopped by request.
    failure: Option<RuleStoreError>,
}

impl Daemon {
    /// Maximum number of ready sockets handled per turn.
    const MAX_READY: usize = 256;
    /// Maximum number of octets read from a connection at once.
    const READ_OCTETS: usize = 4096;
    /// Interval between updates of the gauges of agents. They are not updated in every turn, because there may be
    /// thousands of agents.
    const GAUGE_INTERVAL: Duration = Duration::from_secs(1);
    /// Maximum time for agents to receive the end of their sessions when the daemon stops.
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

    /// Serves agents until `stop` becomes readable; then ends the sessions, and waits until their agents are notified.
    /// Calls `on_ready` when agents can connect and the packet filter passes only packets that rules allow.
    pub fn run(&mut self, stop: impl AsFd, on_ready: impl FnOnce(&Self)) -> Result<(), DaemonError> {
        self.poller.add(&stop, Token::Stop, Interest::Read)?;
        self.become_ready()?;
        // The log's thread is started after privileges were dropped, so it does not have them either.
        self.log.write_in_background()?;
        on_ready(self);
        let mut ready = Events::with_capacity(Self::MAX_READY);
        while !self.is_over() {
            self.poller.wait(self.time_to_next_action(), &mut ready)?;
            self.turn(&ready, &stop)?;
        }
        self.log.write(self.clock.now(), Level::Info, "stopped", &[]);
        self.failure.take().map_or(Ok(()), |failure| Err(failure.into()))
    }

    fn is_over(&self) -> bool {
        let is_served = self.listeners.is_some() || self.connections.len() > 0;
        !is_served || self.clock.now() >= self.shutdown_deadline
    }

    /// Returns the addresses of the sockets for agents, with the actual ports.
    pub fn addresses(&self) -> impl Iterator<Item = ListenAddress> {
        let sctp_ports = self.sctp_ports.iter().map(SctpPort::address);
        self.listeners.iter().flat_map(Listeners::addresses).chain(sctp_ports)
    }

    /// Creates a daemon with open sockets. It does not change the packet filter until
    /// [`become_ready`](Self::become_ready) is called.
    #[expect(clippy::too_many_arguments, reason = "each argument is a part of the daemon")]
    pub(crate) fn new(
        clock: Clock,
        poller: Poller<Token>,
        listeners: Listeners,
        endpoint: Option<Endpoint>,
        middlebox: Middlebox,
        rule_store: RuleStore,
        limits: Limits,
        log: Log,
    ) -> Result<Self, DaemonError> {
        let gauges_at = endpoint.as_ref().map(|_| Time::ZERO);
        rule_store.metrics().lock().rules = middlebox.rules(Time::ZERO).count() as u64;
        Ok(Self {
            clock,
            log,
            metrics: rule_store.metrics().clone(),
            endpoint,
            supervisor: ServiceManager::from_environment()?,
            reload: None,
            mapper: None,
            readable_mappers: BTreeSet::new(),
            audit: None,
            listeners: Some(listeners),
            sctp_ports: Vec::new(),
            poller,
            connections: Connections::default(),
            without_session: UnauthenticatedConnections::default(),
            handshakes: UnauthenticatedConnections::default(),
            middlebox,
            rule_store,
            batch: Batch::with_room(limits.turn_octets())
                .with_work_limit(Limits::TURN_WORK, Limits::AGENT_SHARE),
            limits,
            buffer: vec![0; Self::READ_OCTETS].into(),
            gauges_at,
            standby_at: Time::MAX,
            shutdown_deadline: Time::MAX,
            failure: None,
        })
    }

    /// Makes the packet filter contain exactly the rules of the middlebox; missing rules are added gradually. Then
    /// reports that agents can connect. From now on a firewall drops packets that neither a rule nor `masquerade` lets
    /// pass.
    pub(crate) fn become_ready(&mut self) -> Result<(), DaemonError> {
        let now = self.clock.now();
        let Corrections { missing, surplus } = self.rule_store.repair(now, &self.middlebox)?;
        self.log.write(now, Level::Info, "repaired", &[("missing", &missing), ("surplus", &surplus)]);
        for at in self.addresses().collect::<Vec<_>>() {
            self.log.write(self.clock.now(), Level::Info, "listening", &[("at", &at)]);
        }
        for at in self.mapper.iter().flat_map(PortMapper::addresses) {
            self.log.write(self.clock.now(), Level::Info, "mapping-ports", &[("at", &at)]);
        }
        if let Some(endpoint) = self.endpoint.take() {
            self.log.write(self.clock.now(), Level::Info, "metrics", &[("at", &endpoint.address()?)]);
            endpoint.serve(self.metrics.clone())?;
        }
        if let Some(standby) = self.rule_store.standby()
            && let Some(at) = standby.begin()?
        {
            self.log.write(self.clock.now(), Level::Info, "awaiting-standby", &[("at", &at)]);
        }
        self.supervisor.report_ready();
        Ok(())
    }

    fn turn(&mut self, ready: &Events<Token>, stop: &impl AsFd) -> Result<(), DaemonError> {
        let now = self.clock.now();
        for one in ready.iter() {
            match one.token {
                Token::Stop => {
                    self.poller.remove(stop)?;
                    self.stop(now);
                }
                Token::Reload => self.reload(now)?,
                Token::Listener(number) => self.accept(now, number)?,
                Token::PortMapper(number) => drop(self.readable_mappers.insert(number)),
                Token::SctpQueue(number) => self.receive_datagrams(now, number),
                Token::Connection(id) => self.connections.note_ready(id),
            }
        }
        self.connections.advance(now);
        self.middlebox.advance(now, &mut self.batch);
        self.read_connections(now);
        self.read_datagrams(now)?;
        if self.batch.answers().next().is_none() {
            self.middlebox.sweep_without_share(now, &mut self.batch);
        }
        if let Some(at) = &mut self.gauges_at
            && (!ready.is_empty() || !self.batch.changes().is_empty())
        {
            *at = (*at).min(now + Self::GAUGE_INTERVAL);
        }
        self.commit(now);
        self.answer(now);
        self.close_overdue(now);
        self.supervisor.report_alive(now);
        self.retry_failed(now)?;
        self.update_gauges(now);
        let mut numbers = self.metrics.lock();
        numbers.connections = self.connections.len() as u64;
        numbers.dropped_lines = self.log.dropped_lines();
        numbers.count_turn(self.clock.now().since(now));
        Ok(())
    }

    /// Updates the gauges of agents and of port mappings if it is time.
    fn update_gauges(&mut self, now: Time) {
        let Some(at) = self.gauges_at.as_mut().filter(|at| **at <= now) else { return };
        *at = Time::MAX;
        let policy = self.middlebox.policy();
        let usage = self.middlebox.usage().map(|(agent, usage)| (policy.agent_name(agent).to_owned(), usage));
        let mut numbers = self.metrics.lock();
        numbers.usage = usage.collect();
        numbers.ports = self.middlebox.ports() as u64;
        if let Some(mapper) = &self.mapper {
            numbers.mappings = mapper.mappings() as u64;
            numbers.mapping_answers.clone_from(mapper.answers());
        }
    }

    /// Enables the audit log, with at most this number of lines per agent and second, averaged over a long time.
    pub(crate) fn enable_audit(&mut self, lines_per_second: u32) {
        self.audit = Some(Audit::new(lines_per_second));
    }

    /// Enables port mappings for hosts.
    pub(crate) fn enable_port_mapping(&mut self, mut mapper: PortMapper) -> io::Result<()> {
        mapper.begin(self.clock.now(), &self.middlebox);
        for (socket, number) in mapper.sockets().zip(0..) {
            self.poller.add(socket, Token::PortMapper(number), Interest::Read)?;
        }
        self.mapper = Some(mapper);
        Ok(())
    }

    /// Returns the time until the daemon must act; `None` if it only waits for events.
    fn time_to_next_action(&self) -> Option<Duration> {
        let listeners = self.listeners.as_ref().map_or(Time::MAX, Listeners::wake_at);
        let others = self.connections.wake_at().min(self.rule_store.wake_at()).min(self.supervisor.wake_at());
        let next = self.middlebox.wake_at().min(others).min(listeners).min(self.shutdown_deadline);
        let next = next.min(self.gauges_at.unwrap_or(Time::MAX)).min(self.standby_at);
        (next < Time::MAX).then(|| next.saturating_since(self.clock.now()))
    }

    /// Stops accepting agents, and ends all sessions. RFC 4540 section 7.5.
    fn stop(&mut self, now: Time) {
        self.supervisor.report_stopping();
        self.log.write(now, Level::Info, "stopping", &[("connections", &self.connections.len())]);
        self.listeners = None;
        self.shutdown_deadline = now + Self::SHUTDOWN_TIMEOUT;
        self.middlebox.end_sessions(&mut self.batch);
    }

    /// Applies the changes of rules that the requests of this turn cause.
    fn commit(&mut self, now: Time) {
        let failures = self.rule_store.commit(now, &mut self.middlebox, &mut self.batch);
        if let Some(worst) = failures.iter().min_by_key(|failure| failure.level()) {
            let fields: [Field<'_>; 1] = [("reason", worst)];
            self.log.write_limited(now, worst.level(), "refused", &fields);
        }
        if let Some(failure) = failures.into_iter().find(RuleStoreError::is_final)
            && self.failure.is_none()
        {
            self.failure = Some(failure);
            self.stop(now);
        }
        if self.log.is_enabled(Level::Debug) {
            for change in self.batch.changes() {
                let (event, rule) = match (&change.before, &change.after) {
                    (None, Some(rule)) => ("rule-begun", rule),
                    (Some(_), Some(rule)) => ("rule-replaced", rule),
                    (Some(rule), None) => ("rule-ended", rule),
                    (None, None) => continue,
                };
                self.log.write(now, Level::Debug, event, &[("pid", &rule.pid.0), ("until", &rule.expires)]);
            }
        }
    }

    /// Sends the answers of this turn, whose changes have been applied.
    fn answer(&mut self, now: Time) {
        self.count_answers();
        self.log_notices(now);
        for output in self.batch.release() {
            let mapper = self.mapper.as_mut();
            match output {
                Output::Send(id, message) if mapper.as_ref().is_some_and(|mapper| mapper.has_session(id)) => {
                    mapper.into_iter().for_each(|mapper| mapper.handle_reply(now, message.clone()));
                }
                Output::Close(id) if mapper.as_ref().is_some_and(|mapper| mapper.has_session(id)) => {
                    mapper.into_iter().for_each(|mapper| mapper.close(id));
                }
                Output::Send(id, message) => self.connections.push(id, &message),
                Output::Close(id) => self.connections.close(id),
            }
        }
        for (id, reason) in self.connections.flush(now, &self.limits, &self.poller) {
            self.remove(now, id, &reason);
        }
        for (id, reason) in self.connections.slowest(&self.limits) {
            self.remove(now, id, &reason);
        }
    }

    fn count_answers(&mut self) {
        let mut numbers = self.metrics.lock();
        self.batch.answers().for_each(|answered| numbers.count_answer(answered.request, answered.answer));
        numbers.sent += self.batch.octets() as u64;
        numbers.count_work(self.batch.work());
    }

    /// Logs the sessions, refusals, exhausted resources and requests of this turn.
    fn log_notices(&mut self, now: Time) {
        for notice in self.batch.operator_events() {
            match *notice {
                OperatorEvent::Opened(id, agent) => {
                    self.without_session.remove(id);
                    self.connections.set_agent(id, agent);
                }
                OperatorEvent::NotOpened(id, refusal) => {
                    self.metrics.lock().count_refused_session(refusal);
                    let Some(peer) = self.connections.get_mut(id).map(|connection| connection.peer) else {
                        continue;
                    };
                    let fields: [Field<'_>; 2] = [("peer", &peer.ip()), ("reason", &refusal)];
                    self.log.write_limited(now, Level::Warn, "session-refused", &fields);
                }
                OperatorEvent::Exhausted(agent, shortage) => {
                    self.metrics.lock().count_shortage(shortage);
                    let name = self.middlebox.policy().agent_name(agent);
                    let fields: [Field<'_>; 2] = [("agent", &name), ("what", &shortage.name())];
                    self.log.write_limited(now, Level::Warn, "quota", &fields);
                }
            }
        }
        if let Some(audit) = &mut self.audit {
            let policy = self.middlebox.policy();
            for answered in self.batch.answers() {
                let peer = self.connections.peer(answered.session);
                audit.write(now, &answered, peer, policy, &mut self.log);
            }
            audit.write_ends(now, self.batch.changes(), policy, &mut self.log);
        }
    }

    /// Closes the connections whose deadline has passed.
    fn close_overdue(&mut self, now: Time) {
        for (id, reason) in self.connections.overdue_connections(now) {
            self.remove(now, id, &reason);
        }
    }

    /// Repeats failed operations when it is time.
    fn retry_failed(&mut self, now: Time) -> io::Result<()> {
        if self.rule_store.check_foreign_changes(now) {
            self.log.write(now, Level::Warn, "changed-by-others", &[("what", &"packet filter")]);
        }
        if self.rule_store.needs_repair(now) {
            match self.rule_store.repair(now, &self.middlebox) {
                Ok(Corrections { missing, surplus }) => {
                    self.log.write(
                        now,
                        Level::Info,
                        "repaired",
                        &[("missing", &missing), ("surplus", &surplus)],
                    );
                }
                Err(failure) => {
                    self.log.write_limited(now, Level::Error, "repair-failed", &[("reason", &failure)]);
                }
            }
        }
        match self.rule_store.continue_repair(now) {
            Ok(true) => self.log.write(now, Level::Info, "in-force", &[("what", &"all rules")]),
            Ok(false) => {}
            Err(failure) => {
                self.log.write_limited(now, Level::Error, "repair-failed", &[("reason", &failure)]);
            }
        }
        if self.rule_store.save_clock(now) {
            self.log.write(now, Level::Info, "room-again", &[("what", &"clock")]);
        }
        self.log_standby_events(now);
        if let Err(failure) = self.rule_store.sync_mark(now) {
            self.log.write_limited(now, Level::Error, "mark-behind", &[("reason", &failure)]);
        }
        if let Err(failure) = self.rule_store.compact(now) {
            self.log.write_limited(now, Level::Error, "journal-grows", &[("reason", &failure)]);
        }
        match &mut self.listeners {
            Some(listeners) if listeners.wake_at() <= now => listeners.resume(&self.poller),
            _ => Ok(()),
        }
    }

    /// Logs changes in the state of the standby.
    fn log_standby_events(&mut self, now: Time) {
        let Some(standby) = self.rule_store.standby() else { return };
        self.metrics.lock().standbys = standby.is_synchronized().into();
        for event in standby.take_events() {
            // The last line of the log shows the current state, so every change is logged.
            match event {
                Event::Synchronized(at) => {
                    self.log.write(now, Level::Info, "standby-synchronized", &[("at", &at)]);
                }
                Event::Lost { reason, was_synchronized: true } => {
                    self.log.write(now, Level::Warn, "standby-lost", &[("reason", &reason)]);
                }
                Event::Lost { reason, was_synchronized: false } => {
                    self.log.write_limited(now, Level::Warn, "standby-lost", &[("reason", &reason)]);
                }
                Event::Refused { peer, reason } => {
                    self.metrics.lock().refused_handshakes += 1;
                    let fields: [Field<'_>; 2] = [("peer", &peer), ("reason", &reason)];
                    self.log.write_limited(now, Level::Warn, "standby-refused", &fields);
                }
            }
        }
        self.standby_at = now + Self::GAUGE_INTERVAL;
    }

    /// Closes a connection at once. Its session ends, but its rules stay in force. RFC 3989 section 2.2.4.
    fn remove(&mut self, now: Time, id: SessionId, reason: &EndReason) {
        self.middlebox.disconnect(id);
        self.without_session.remove(id);
        self.handshakes.remove(id);
        self.sctp_ports.iter_mut().for_each(|port| port.remove(id));
        let Some(connection) = self.connections.remove(id) else { return };
        let fields: [Field<'_>; 3] = [("session", &id.0), ("peer", &connection.peer), ("reason", reason)];
        self.log.write(now, reason.level(), "disconnected", &fields);
        if let Some(listeners) = &mut self.listeners {
            listeners.resume_soon(now);
        }
    }
}

#[cfg(test)]
mod tests;
