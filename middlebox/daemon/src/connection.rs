//! One connection: not read while messages wait to be sent, and closed after the last message is sent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use hol_base::{Duration, Time};
use hol_sctp_udp::{Packet, UdpPath};
use hol_simco::Message;
use hol_system::Interest;

use crate::limits::Limits;
use crate::log::Level;
use crate::message_transport::{MessageTransport, ReadOutcome};
use crate::read_queue::AgentOrAnonymous;

/// A connection to an agent.
#[derive(Debug)]
pub(crate) struct Connection {
    line: Box<dyn MessageTransport>,
    pub peer: SocketAddr,
    /// The agent of the connection. Agents take turns, no matter how many connections each has.
    pub agent: AgentOrAnonymous,
    stage: Stage,
    /// The events for which the poller watches the connection.
    pub interest: Interest,
    /// Whether the connection waits for its turn to be read.
    pub is_queued: bool,
    /// Whether more data have been received than are processed in a turn, so that the connection must be processed
    /// again even without new data.
    pub has_waiting_messages: bool,
    /// Whether notifications about other sessions' changes wait. They are sent in the connection's next turn.
    pub has_notifications: bool,
    /// When the connection is closed for inactivity; `None`: never.
    pub deadline: Option<Time>,
    /// The connection's octets that are included in the sum over all connections, and the time of its entry in the
    /// timers of transports.
    pub accounted: (usize, Time),
}

/// The stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Messages are exchanged in both directions.
    Open,
    /// Queued messages are still sent, but no more messages are read.
    Closing,
    /// Everything has been sent and the sending direction is shut down. The socket stays open until the agent has read
    /// everything; closing it earlier might lose the last messages, because TCP resets a connection with unread data
    /// (RFC 1122 section 4.2.2.13).
    Lingering,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndReason {
    #[error("closed")]
    Closed,
    #[error("lost: {0}")]
    Lost(#[from] io::Error),
    #[error("the agent has not read {0} octets, more than `agent-backlog` of [limits]")]
    Flooded(usize),
    #[error(
        "the unread octets of all agents exceed `backlog` of [limits]; {0} of them were for this agent, one of the slowest"
    )]
    Slowest(usize),
    #[error("the agent did not read its messages in time")]
    Overdue,
    #[error("the connection had no session, and a new connection needed its place")]
    Displaced,
    #[error("the agent has opened another association from the same port")]
    Restarted,
    #[error("the TLS handshake failed: {0}")]
    HandshakeFailed(io::Error),
}

impl EndReason {
    /// Returns the level at which the end of the connection is logged.
    pub fn level(&self) -> Level {
        match self {
            Self::Closed | Self::Lost(_) | Self::Displaced | Self::Restarted | Self::HandshakeFailed(_) => {
                Level::Debug
            }
            Self::Flooded(_) | Self::Slowest(_) | Self::Overdue => Level::Warn,
        }
    }
}

impl Connection {
    /// Maximum time to wait for the agent to close the connection.
    const LINGER_TIME: Duration = Duration::from_secs(2);

    pub fn new(line: Box<dyn MessageTransport>, peer: SocketAddr) -> Self {
        Self {
            line,
            peer,
            agent: None,
            stage: Stage::Open,
            interest: Interest::Read,
            is_queued: false,
            has_waiting_messages: false,
            has_notifications: false,
            deadline: None,
            accounted: (0, Time::MAX),
        }
    }

    /// Reads data from the socket and returns those for the middlebox.
    pub fn read(&mut self, now: Time, buffer: &mut [u8]) -> io::Result<ReadOutcome> {
        self.line.advance(now);
        match (self.stage, self.line.read(buffer)?) {
            (Stage::Open, outcome) => Ok(outcome),
            (_, ReadOutcome::End) => Ok(ReadOutcome::End),
            // Requests are ignored while the connection closes.
            (_, _) => Ok(ReadOutcome::Nothing),
        }
    }

    pub fn push(&mut self, message: &Message) {
        self.line.push(message);
    }

    /// Stops reading from the connection; queued messages are still sent.
    pub fn close(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Closing;
        }
    }

    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Returns true if data are buffered for which the socket will not become readable.
    pub fn has_buffered_data(&self) -> bool {
        self.is_open() && self.line.has_buffered_data()
    }

    /// Returns true if there is something to send: messages, or data of the transport such as those of a handshake.
    pub fn needs_write(&self) -> bool {
        self.line.needs_write()
    }

    /// Returns the number of octets that are queued for the agent.
    pub fn unsent_octets(&self) -> usize {
        self.line.unsent_octets()
    }

    /// Returns the number of octets in memory for the connection, and the time at which its transport must act next.
    pub fn held_octets_and_wake_at(&self) -> (usize, Time) {
        (self.line.held(), self.line.wake_at())
    }

    /// Returns true if other connections use the same socket; the poller then does not watch each of them.
    pub fn shares_socket(&self) -> bool {
        self.line.shares_socket()
    }

    /// Handles a packet for this connection that has arrived at a shared socket.
    pub fn receive(&mut self, now: Time, path: UdpPath, packet: Packet) {
        self.peer = path.peer;
        self.line.receive(now, path, packet);
    }

    /// Lets the transport act on timers that have expired.
    pub fn advance(&mut self, now: Time) {
        self.line.advance(now);
    }

    /// Returns why the connection is closed at its deadline.
    pub fn overdue_reason(&self) -> EndReason {
        if self.stage == Stage::Lingering { EndReason::Closed } else { EndReason::Overdue }
    }

    /// Sends what the kernel accepts, and updates the watched events and the deadline.
    pub fn flush(&mut self, now: Time, limits: &Limits) -> Result<(), EndReason> {
        if self.stage == Stage::Lingering {
            return Ok(());
        }
        self.line.advance(now);
        let flushed = self.line.flush()?;
        let waiting = self.unsent_octets();
        if waiting > limits.agent_backlog {
            return Err(EndReason::Flooded(waiting));
        }
        self.interest = if self.line.needs_write() { Interest::Write } else { Interest::Read };
        if waiting == 0 {
            self.deadline = None;
        } else if flushed > 0 || self.deadline.is_none() {
            self.deadline = Some(now + limits.patience);
        }
        if waiting == 0 && self.stage == Stage::Closing {
            self.line.finish()?;
            self.stage = Stage::Lingering;
            self.deadline = Some(now + Self::LINGER_TIME);
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
