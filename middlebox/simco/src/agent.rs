//! The agent's side of one session. RFC 4540 sections 3, 5.2 and 7.

use std::collections::BTreeMap;

use crate::header::sub_type;
use crate::{
    Body, Capabilities, ChallengePair, Credentials, Lifetime, Message, Notification, ParseError, Pid,
    Refusal, Reply, Request, Tid, Token, Version,
};

/// The agent's end of a session: encodes requests, and decodes the middlebox's messages.
#[derive(Debug)]
pub struct Agent {
    state: State,
    credentials: Box<dyn Credentials>,
    last_tid: u32,
    /// Sub-types of the requests that have not been answered, by TID.
    pending: BTreeMap<Tid, u8>,
}

/// The state of a session from the agent's point of view. RFC 4540 figure 41.
#[derive(Debug)]
enum State {
    Closed,
    /// The session is being established: the SE or SA request has not been answered.
    Establishing(ChallengePair),
    Open,
    /// The session is being terminated: the ST request has not been answered.
    Terminating,
}

/// The content of a message from the middlebox, as the agent must handle it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// The session is open; the middlebox has these capabilities.
    Open(Capabilities),
    /// The middlebox requests authentication; the agent must send this message.
    Authenticate(Message),
    /// The middlebox has answered the request about rules with this TID.
    Answer(Tid, Result<Reply, Refusal>),
    /// The middlebox announces that a rule was established or changed, or has ended (lifetime 0), although this session
    /// did not request it. RFC 4540 section 5.3.19.
    RuleEvent(Pid, Lifetime),
    /// The middlebox could not parse a message of the agent and closes the connection. RFC 4540 section 5.1.1.
    BadlyFormed,
    /// The session has ended, because of ST or because the middlebox decided so.
    Closed,
}

/// Why a session or an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentError {
    /// The session is in the wrong state: requests about rules need an open session, SE needs a closed one.
    #[error("the session is not {0}")]
    State(&'static str),
    /// The request is SE, SA or ST, for which there are separate functions.
    #[error(
        "`ask` sends only requests about rules, not SE, SA or ST; open and close the session with its own functions"
    )]
    SessionControl,
    /// No TID is left, because a session may use each TID only once. RFC 4540 section 4.2.5.
    #[error("the session has used all transaction identifiers; open a new session")]
    NoTidLeft,
    /// The middlebox refused the session.
    #[error("the middlebox refused the session: {0}")]
    Refused(Refusal),
    /// The middlebox supports only another version of the protocol.
    #[error("the middlebox supports SIMCO {}.{}, but this agent only 3.0", .0.major, .0.minor)]
    Version(Version),
    /// The middlebox could not authenticate itself.
    #[error("the middlebox failed to authenticate; check the secret and the address of the middlebox")]
    NotAuthentic,
    /// The received octets are not a SIMCO message.
    #[error("the middlebox sent an invalid SIMCO message: {0}")]
    Malformed(#[from] ParseError),
    /// The message is not a reply that the request with this TID may have, or it is a request.
    #[error("the middlebox sent an unexpected message with transaction ID {}, which answers no pending request", .0.0)]
    Unexpected(Tid),
}

impl Agent {
    /// Creates a session that is not established yet.
    pub fn new(credentials: Box<dyn Credentials>) -> Self {
        Self { state: State::Closed, credentials, last_tid: 0, pending: BTreeMap::new() }
    }

    /// Returns the SE message that begins the session.
    pub fn establish(&mut self) -> Result<Message, AgentError> {
        let State::Closed = self.state else { return Err(AgentError::State("closed")) };
        let challenge = self.credentials.challenge();
        let exchange = ChallengePair { agent_challenge: challenge.clone(), middlebox_challenge: None };
        let se = self.send(Request::Se { version: Version::SIMCO_3_0, challenge })?;
        self.state = State::Establishing(exchange);
        Ok(se)
    }

    /// Returns the message for a request about rules. Any number of requests may be pending.
    pub fn ask(&mut self, request: Request) -> Result<Message, AgentError> {
        match (&self.state, &request) {
            (_, Request::Se { .. } | Request::Sa { .. } | Request::St) => Err(AgentError::SessionControl),
            (State::Open, _) => self.send(request),
            _ => Err(AgentError::State("open")),
        }
    }

    /// Returns the ST message that ends the session. The middlebox still answers pending requests.
    pub fn terminate(&mut self) -> Result<Message, AgentError> {
        let (State::Open | State::Establishing(_)) = self.state else {
            return Err(AgentError::State("open"));
        };
        let st = self.send(Request::St)?;
        self.state = State::Terminating;
        Ok(st)
    }

    /// Returns the number of requests that have not been answered.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Returns true if this request has not been answered.
    pub fn awaits(&self, tid: Tid) -> bool {
        self.pending.contains_key(&tid)
    }

    /// Handles a whole message from the middlebox. The caller must close the connection after an error and after
    /// [`AgentEvent::Closed`].
    pub fn receive(&mut self, octets: &[u8]) -> Result<AgentEvent, AgentError> {
        let Message { tid, body } = Message::parse(octets)?;
        let body = match body {
            Body::Notification(notification) => return Ok(self.handle_notification(notification)),
            Body::Request(_) => return Err(AgentError::Unexpected(tid)),
            body => body,
        };
        let request_type = self.pending.remove(&tid).ok_or(AgentError::Unexpected(tid))?;
        match body {
            Body::VersionMismatch(version) if request_type == sub_type::SE => {
                Err(AgentError::Version(version))
            }
            Body::Refusal(refusal) if is_session_control(request_type) => Err(AgentError::Refused(refusal)),
            Body::Refusal(refusal) => Ok(AgentEvent::Answer(tid, Err(refusal))),
            Body::Reply(reply) if is_reply_to(&reply, request_type) => self.handle_reply(tid, reply),
            _ => Err(AgentError::Unexpected(tid)),
        }
    }

    fn handle_notification(&mut self, notification: Notification) -> AgentEvent {
        match notification {
            Notification::Are { pid, lifetime } => AgentEvent::RuleEvent(pid, lifetime),
            Notification::Bfm => AgentEvent::BadlyFormed,
            Notification::Ast => {
                self.state = State::Closed;
                AgentEvent::Closed
            }
        }
    }

    fn handle_reply(&mut self, tid: Tid, reply: Reply) -> Result<AgentEvent, AgentError> {
        match reply {
            Reply::Se { capabilities } => self.finish_establishing(tid, capabilities),
            Reply::Sa { challenge, token } => {
                let State::Establishing(exchange) = &mut self.state else {
                    return Err(AgentError::Unexpected(tid));
                };
                exchange.middlebox_challenge = challenge;
                check_middlebox(&*self.credentials, exchange, token.as_ref())?;
                // The middlebox has authenticated in this reply, so the SE reply need not authenticate it
                // again.
                let challenged = exchange.middlebox_challenge.is_some();
                let token = challenged.then(|| self.credentials.prove(exchange));
                exchange.agent_challenge = None;
                self.send(Request::Sa { token }).map(AgentEvent::Authenticate)
            }
            Reply::St => {
                self.state = State::Closed;
                Ok(AgentEvent::Closed)
            }
            reply => Ok(AgentEvent::Answer(tid, Ok(reply))),
        }
    }

    /// Completes the opening of the session; returns an error if the middlebox has not answered the agent's challenge
    /// correctly.
    fn finish_establishing(
        &mut self,
        tid: Tid,
        capabilities: Capabilities,
    ) -> Result<AgentEvent, AgentError> {
        match &self.state {
            State::Establishing(exchange) if exchange.agent_challenge.is_none() => {
                self.state = State::Open;
                Ok(AgentEvent::Open(capabilities))
            }
            State::Establishing(_) => Err(AgentError::NotAuthentic),
            // The SE reply arrived after ST was sent.
            State::Terminating => Ok(AgentEvent::Open(capabilities)),
            State::Closed | State::Open => Err(AgentError::Unexpected(tid)),
        }
    }

    fn send(&mut self, request: Request) -> Result<Message, AgentError> {
        self.last_tid = self.last_tid.checked_add(1).ok_or(AgentError::NoTidLeft)?;
        let tid = Tid(self.last_tid);
        self.pending.insert(tid, request.sub_type());
        Ok(Message::request(tid, request))
    }
}

fn check_middlebox(
    credentials: &dyn Credentials,
    exchange: &ChallengePair,
    token: Option<&Token>,
) -> Result<(), AgentError> {
    let is_authentic = exchange.agent_challenge.is_none()
        || token.is_some_and(|token| credentials.recognizes(exchange, token));
    if is_authentic { Ok(()) } else { Err(AgentError::NotAuthentic) }
}

fn is_session_control(request_type: u8) -> bool {
    matches!(request_type, sub_type::SE | sub_type::SA | sub_type::ST)
}

/// Returns whether a request of this sub-type may get this reply. RFC 4540 sections 7 and 8.
fn is_reply_to(reply: &Reply, request_type: u8) -> bool {
    match request_type {
        sub_type::SE => matches!(reply, Reply::Se { .. } | Reply::Sa { .. }),
        sub_type::SA => matches!(reply, Reply::Se { .. }),
        sub_type::PEA => matches!(reply, Reply::Per(_)),
        sub_type::PLC => matches!(reply, Reply::Plc { .. } | Reply::Prd),
        sub_type::PRS => matches!(reply, Reply::Prs { .. } | Reply::Pes(_) | Reply::Pds(_)),
        same => reply.sub_type() == same,
    }
}
