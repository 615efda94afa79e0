//! A session with a middlebox.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};

use hol_base::Duration;
use hol_simco::{Agent, AgentEvent, Capabilities, Credentials, Lifetime, Pid, Refusal, Reply, Request, Tid};

use crate::connection::Connection;
use crate::deadline::Deadline;
use crate::{Server, SessionError};

/// The middlebox's answer to one request.
pub type Answer = Result<Reply, Refusal>;

/// A change of a rule that the middlebox announces although this session did not request it. RFC 4540 section 5.3.19.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleEvent {
    /// The identifier of the rule.
    pub pid: Pid,
    /// The remaining lifetime of the rule; zero if it has ended.
    pub lifetime: Lifetime,
}

/// An open session with a middlebox. Dropping it closes the connection; the rules stay in force.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    agent: Agent,
    capabilities: Capabilities,
    timeout: Duration,
    /// Answers that have arrived but that the program has not requested yet.
    answers: BTreeMap<Tid, Answer>,
    events: VecDeque<RuleEvent>,
}

impl Session {
    /// Maximum number of pending requests. It is so low that neither end stops reading because it cannot send.
    pub const WINDOW: usize = 256;
    /// Maximum number of events that wait for [`next_event`](Self::next_event). If there are more, the oldest are
    /// dropped.
    pub const MAX_EVENTS: usize = 1 << 16;

    /// Connects to a middlebox and establishes a session: with SE, and with SA if either end authenticates the other.
    pub fn open(server: &Server, credentials: Box<dyn Credentials>) -> Result<Self, SessionError> {
        let mut connection = Connection::open(server)?;
        let mut agent = Agent::new(credentials);
        let capabilities = establish(&mut connection, &mut agent, server.timeout)?;
        let (answers, events) = (BTreeMap::new(), VecDeque::new());
        Ok(Self { connection, agent, capabilities, timeout: server.timeout, answers, events })
    }

    /// Returns the capabilities of the middlebox.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// Sends a request about rules, and returns its answer.
    pub fn ask(&mut self, request: Request) -> Result<Reply, SessionError> {
        let tid = self.send(request)?;
        self.answer(tid)?.map_err(SessionError::Refused)
    }

    /// Sends a request about rules. Waits only if [`WINDOW`](Self::WINDOW) requests are pending.
    pub fn send(&mut self, request: Request) -> Result<Tid, SessionError> {
        while self.agent.pending() >= Self::WINDOW {
            self.receive_in_time()?;
        }
        let message = self.agent.ask(request)?;
        self.connection.send(&message)?;
        Ok(message.tid)
    }

    /// Waits for the answer to a request that was [sent](Self::send) before.
    ///
    /// # Panics If there was no such request, or its answer was taken before.
    pub fn answer(&mut self, tid: Tid) -> Result<Answer, SessionError> {
        loop {
            if let Some(answer) = self.answers.remove(&tid) {
                return Ok(answer);
            }
            assert!(self.agent.awaits(tid), "the answer to request {} is still expected", tid.0);
            self.receive_in_time()?;
        }
    }

    /// Returns the next event about a rule; `None` if no event arrives within `timeout`. Without a timeout, waits until
    /// an event arrives.
    pub fn next_event(&mut self, timeout: Option<Duration>) -> Result<Option<RuleEvent>, SessionError> {
        let deadline = timeout.map_or(Deadline::never(), Deadline::after);
        while self.events.is_empty() {
            if !self.receive_next(deadline)? {
                return Ok(None);
            }
        }
        Ok(self.events.pop_front())
    }

    /// Ends the session with an ST request and waits for the reply. Pending answers are lost.
    pub fn close(mut self) -> Result<(), SessionError> {
        let message = self.agent.terminate()?;
        self.connection.send(&message)?;
        loop {
            match self.receive_in_time() {
                Ok(()) => {}
                Err(SessionError::Ended) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive_in_time(&mut self) -> Result<(), SessionError> {
        let was_received = self.receive_next(Deadline::after(self.timeout))?;
        if was_received { Ok(()) } else { Err(SessionError::Timeout(self.timeout)) }
    }

    /// Waits for a message from the middlebox and processes it; returns false at the deadline.
    fn receive_next(&mut self, deadline: Deadline) -> Result<bool, SessionError> {
        let Some(message) = self.connection.receive(deadline)? else { return Ok(false) };
        match self.agent.receive(&message)? {
            AgentEvent::Answer(tid, answer) => {
                self.answers.insert(tid, answer);
            }
            AgentEvent::RuleEvent(pid, lifetime) => self.queue_event(RuleEvent { pid, lifetime }),
            AgentEvent::BadlyFormed => return Err(SessionError::BadlyFormed),
            AgentEvent::Closed => return Err(SessionError::Ended),
            AgentEvent::Open(_) | AgentEvent::Authenticate(_) => {
                unreachable!("the session was established before")
            }
        }
        Ok(true)
    }

    fn queue_event(&mut self, event: RuleEvent) {
        if self.events.len() == Self::MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}

impl AsFd for Session {
    /// Returns a file descriptor that is readable when data from the middlebox have arrived. Events that arrived
    /// earlier may already wait for [`next_event`](Self::next_event).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.socket().as_fd()
    }
}

fn establish(
    connection: &mut Connection,
    agent: &mut Agent,
    timeout: Duration,
) -> Result<Capabilities, SessionError> {
    connection.send(&agent.establish()?)?;
    let deadline = Deadline::after(timeout);
    loop {
        let message = connection.receive(deadline)?.ok_or(SessionError::Timeout(timeout))?;
        match agent.receive(&message)? {
            AgentEvent::Open(capabilities) => return Ok(capabilities),
            AgentEvent::Authenticate(message) => connection.send(&message)?,
            AgentEvent::BadlyFormed => return Err(SessionError::BadlyFormed),
            AgentEvent::Closed => return Err(SessionError::Ended),
            AgentEvent::RuleEvent(..) => {}
            AgentEvent::Answer(..) => unreachable!("no request about rules has been sent"),
        }
    }
}
