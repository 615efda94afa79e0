//! Sessions: SE, SA, ST and AST. RFC 4540 section 7.

use hol_base::Time;
use hol_transport::{Framer, FramingError};

use super::Middlebox;
use super::transaction::report_exhausted;
use crate::batch::StepCause;
use crate::{
    AgentId, Batch, Body, Challenge, ChallengePair, ExhaustedResource, Header, Message, Notification,
    OperatorEvent, Refusal, Reply, SessionId, Tid, Token, Version,
};

/// The properties of a connection that matter for its session.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// How messages are framed on the connection.
    pub framing: Framing,
    /// Whether SIMCO may run over the connection; otherwise SE is refused because of a "transport protocol problem".
    pub is_acceptable: bool,
    /// Whether TLS or IPsec protects the connection.
    pub is_secure: bool,
    /// The agent's name if lower layers have authenticated it; otherwise `None`.
    pub agent: Option<String>,
}

/// How messages are framed on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// TCP: a byte stream, split into messages by their lengths.
    Stream,
    /// SCTP: each user message of the transport is one SIMCO message.
    Messages,
}

impl ConnectionInfo {
    /// Returns the properties of a connection without any authentication.
    pub fn plain(framing: Framing) -> Self {
        Self { framing, is_acceptable: true, is_secure: false, agent: None }
    }
}

/// The state of a connection and of its session.
#[derive(Debug)]
pub(super) struct Session {
    state: State,
    connection_info: ConnectionInfo,
    /// Splits a byte stream into messages; `None` if the transport preserves message boundaries.
    pub framer: Option<Framer>,
    /// The number of notifications so far, modulo 2^32: the TID of the last one.
    notifications: u32,
    /// When the connection is closed: `Middlebox::TIMEOUT` after its start if no session is open by then, or after the
    /// last octet of an incomplete message. `None` if neither applies.
    pub deadline: Option<Time>,
}

/// The states of a session. RFC 4540 section 7.1, figure 41.
#[derive(Debug)]
enum State {
    Closed,
    /// The agent has been challenged, or lower layers have authenticated it.
    NoAuth {
        agent: Option<AgentId>,
        exchange: ChallengePair,
    },
    Open(AgentId),
}

impl Session {
    pub fn new(connection_info: ConnectionInfo) -> Self {
        let framer = match connection_info.framing {
            Framing::Stream => Some(Framer::new(length_of_request)),
            Framing::Messages => None,
        };
        Self { state: State::Closed, connection_info, framer, notifications: 0, deadline: None }
    }

    /// Sets the agent that lower layers have authenticated.
    pub fn set_agent(&mut self, agent: String) {
        self.connection_info.agent = Some(agent);
    }

    /// Returns the agent of the session; `None` if the session is not open.
    pub fn agent(&self) -> Option<AgentId> {
        match self.state {
            State::Open(agent) => Some(agent),
            State::Closed | State::NoAuth { .. } => None,
        }
    }

    /// Returns true if the session is in the state NOAUTH or OPEN.
    pub fn is_established(&self) -> bool {
        !matches!(self.state, State::Closed)
    }

    /// Returns a TID for the next notification. RFC 4540 section 4.2.5.
    pub fn next_notification(&mut self) -> Tid {
        self.notifications = self.notifications.wrapping_add(1);
        Tid(self.notifications)
    }

    fn has_partial_message(&self) -> bool {
        self.framer.as_ref().is_some_and(Framer::is_within_message)
    }
}

/// Returns the length of a request in octets; `None` if its header is incomplete. Returns an error if the header
/// announces more octets than any request has. RFC 4540 section 6, step 1.
fn length_of_request(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    match Header::parse(octets) {
        Some(header) if !header.may_be_request() => {
            Err(FramingError("the message is longer than any SIMCO request"))
        }
        header => Ok(header.map(|header| header.message_length())),
    }
}

impl Middlebox {
    /// Handles SE, with the checks in the order of RFC 4540 section 7.2.
    pub(super) fn establish(
        &mut self,
        id: SessionId,
        tid: Tid,
        version: Version,
        challenge: Option<Challenge>,
        batch: &mut Batch,
    ) {
        let session = &self.sessions[&id];
        if session.is_established() {
            return batch.send(id, Message::refusal(tid, Refusal::NotApplicable));
        }
        let refusal = if self.established >= self.config.max_sessions {
            Some(Body::Refusal(Refusal::LackOfResources))
        } else if !session.connection_info.is_acceptable {
            Some(Body::Refusal(Refusal::TransportProblem))
        } else if self.policy.is_secure_only() && !session.connection_info.is_secure {
            Some(Body::Refusal(Refusal::InsufficientSecurity))
        } else if version != Version::SIMCO_3_0 {
            Some(Body::VersionMismatch(Version::SIMCO_3_0))
        } else {
            None
        };
        if let Some(body) = refusal {
            let refusal = if let Body::Refusal(refusal) = body { refusal } else { Refusal::NotApplicable };
            batch.add_operator_event(OperatorEvent::NotOpened(id, refusal));
            batch.send(id, Message { tid, body });
            return self.close(id, batch);
        }
        match self.authenticated_agent(id) {
            Err(refusal) => self.refuse_session(id, tid, refusal, batch),
            Ok(Some(agent)) if challenge.is_none() => self.open(id, tid, agent, batch),
            Ok(agent) => self.authenticate(id, tid, agent, challenge, batch),
        }
    }

    /// Returns the agent if it need not authenticate with SIMCO; `None` if it must. Returns a refusal if the policy
    /// gives the authenticated agent no rights.
    fn authenticated_agent(&self, id: SessionId) -> Result<Option<AgentId>, Refusal> {
        let Some(name) = &self.sessions[&id].connection_info.agent else {
            return Ok(self.policy.anonymous());
        };
        self.authorize(name).map(Some)
    }

    fn authorize(&self, name: &str) -> Result<AgentId, Refusal> {
        let agent = self.policy.agent(name).filter(|agent| self.policy.admits(*agent));
        agent.ok_or(Refusal::NoAuthorization)
    }

    /// Answers SE with SA: challenges the agent if it is not known yet, and authenticates the middlebox if the agent
    /// requested that.
    fn authenticate(
        &mut self,
        id: SessionId,
        tid: Tid,
        agent: Option<AgentId>,
        agent_challenge: Option<Challenge>,
        batch: &mut Batch,
    ) {
        let middlebox_challenge = agent.is_none().then(|| self.authentication.challenge());
        let exchange = ChallengePair { agent_challenge, middlebox_challenge };
        let token = exchange.agent_challenge.is_some().then(|| self.authentication.prove(&exchange));
        let challenge = exchange.middlebox_challenge.clone();
        batch.send(id, Message::reply(tid, Reply::Sa { challenge, token }));
        self.set_state(id, State::NoAuth { agent, exchange });
    }

    /// Handles SA. RFC 4540 section 7.3.
    pub(super) fn finish_authentication(
        &mut self,
        id: SessionId,
        tid: Tid,
        token: Option<Token>,
        batch: &mut Batch,
    ) {
        let agent = match &self.sessions[&id].state {
            State::Closed | State::Open(_) => {
                return batch.send(id, Message::refusal(tid, Refusal::NotApplicable));
            }
            State::NoAuth { agent: Some(agent), .. } => Ok(*agent),
            State::NoAuth { agent: None, exchange } => {
                let name = token.and_then(|token| self.authentication.recognize(exchange, &token));
                name.ok_or(Refusal::AuthenticationFailed).and_then(|name| self.authorize(&name))
            }
        };
        match agent {
            Ok(agent) => self.open(id, tid, agent, batch),
            Err(refusal) => self.refuse_session(id, tid, refusal, batch),
        }
    }

    fn open(&mut self, id: SessionId, tid: Tid, agent: AgentId, batch: &mut Batch) {
        if !self.resource_accounts.has_room_for_session(agent, self.policy.quota(agent)) {
            let refusal = report_exhausted(agent, ExhaustedResource::Sessions, batch);
            return self.refuse_session(id, tid, refusal, batch);
        }
        self.resource_accounts.begin_session(agent);
        self.subscribe(id, agent);
        self.set_state(id, State::Open(agent));
        batch.add_operator_event(OperatorEvent::Opened(id, agent));
        batch.send(id, Message::reply(tid, Reply::Se { capabilities: self.config.capabilities }));
    }

    fn set_state(&mut self, id: SessionId, state: State) {
        let session = self.session(id);
        let is_first = !session.is_established();
        session.state = state;
        self.established += usize::from(is_first);
    }

    /// Subscribes the session to notifications about the rules that its agent may access.
    pub(super) fn subscribe(&mut self, id: SessionId, agent: AgentId) {
        if !self.config.announces {
            return;
        }
        for owner in self.policy.accessible(agent) {
            self.subscribers.entry(owner).or_default().insert(id);
        }
    }

    /// Handles ST (RFC 4540 section 7.4) and closes the connection, so that later messages are ignored.
    pub(super) fn terminate(&mut self, id: SessionId, tid: Tid, batch: &mut Batch) {
        batch.send(id, Message::reply(tid, Reply::St));
        self.close(id, batch);
    }

    /// Refuses the session and closes the connection.
    pub(super) fn refuse_session(&mut self, id: SessionId, tid: Tid, refusal: Refusal, batch: &mut Batch) {
        batch.add_operator_event(OperatorEvent::NotOpened(id, refusal));
        batch.send(id, Message::refusal(tid, refusal));
        self.close(id, batch);
    }

    /// Sends BFM (badly formed message), and AST (session termination) if the session was open. RFC 4540 section 6,
    /// steps 1 and 2.
    pub(super) fn report_malformed(&mut self, id: SessionId, batch: &mut Batch) {
        batch.begin_step(StepCause::Session);
        self.notify(id, Notification::Bfm, batch);
        if self.sessions[&id].agent().is_some() {
            self.notify(id, Notification::Ast, batch);
        }
        self.close(id, batch);
    }

    /// Handles a connection whose deadline has passed.
    pub(super) fn time_out(&mut self, id: SessionId, batch: &mut Batch) {
        if self.sessions[&id].has_partial_message() {
            return self.report_malformed(id, batch);
        }
        batch.begin_step(StepCause::Session);
        if self.sessions[&id].is_established() {
            self.notify(id, Notification::Ast, batch);
        }
        self.close(id, batch);
    }

    pub(super) fn notify(&mut self, id: SessionId, notification: Notification, batch: &mut Batch) {
        let tid = self.session(id).next_notification();
        batch.send(id, Message::notification(tid, notification));
    }

    pub(super) fn close(&mut self, id: SessionId, batch: &mut Batch) {
        self.disconnect(id);
        batch.close(id);
    }

    /// Updates the deadline of a connection. In an open session each octet extends the deadline for the rest of a
    /// message (RFC 4540 section 6, step 2). Without an open session the deadline is `TIMEOUT` after the start of the
    /// connection, however slowly octets arrive.
    pub(super) fn update_deadline(&mut self, now: Time, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let deadline = match session.agent() {
            None => session.deadline.or(Some(now + Self::TIMEOUT)),
            Some(_) => session.has_partial_message().then(|| now + Self::TIMEOUT),
        };
        if deadline != session.deadline {
            let before = std::mem::replace(&mut session.deadline, deadline);
            before.into_iter().for_each(|before| {
                self.deadlines.remove(&(before, id));
            });
            self.deadlines.extend(deadline.map(|deadline| (deadline, id)));
        }
    }

    fn session(&mut self, id: SessionId) -> &mut Session {
        self.sessions.get_mut(&id).expect("a session exists while its message is processed")
    }
}
