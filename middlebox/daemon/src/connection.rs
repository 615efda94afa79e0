//! One connection: read while nothing waits to be sent, closed after the last message is sent.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use hol_base::{Duration, Time};
use hol_simco::Message;
use hol_system::Interest;

use crate::limits::Limits;
use crate::line::{Heard, Line};
use crate::log::Level;
use crate::turns::Party;

/// A connection to an agent.
#[derive(Debug)]
pub(crate) struct Connection {
    line: Box<dyn Line>,
    pub peer: SocketAddr,
    /// The agent at the other end.
    pub party: Party,
    stage: Stage,
    /// The events it is watched for.
    pub interest: Interest,
    /// It waits for its turn to be read.
    pub is_queued: bool,
    /// Its data exceeded a turn: it must be processed again even without new data.
    pub is_behind: bool,
    /// It gets others' notifications in its next turn.
    pub is_told: bool,
    /// When it is closed for inactivity.
    pub deadline: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Messages are exchanged.
    Open,
    /// Queued messages are still sent.
    Closing,
    /// Everything is sent and our side is shut down. Closing the socket before the other side has read it
    /// might lose the last messages: TCP resets a connection with unread data (RFC 1122 section 4.2.2.13).
    Lingering,
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Over {
    #[error("closed")]
    Closed,
    #[error("lost: {0}")]
    Lost(#[from] io::Error),
    #[error("{0} octets that it has not read exceed `output` of [limits]")]
    Flooded(usize),
    #[error(
        "the octets that all agents have not read exceed `backlog` of [limits], and its {0} are among the most"
    )]
    Slowest(usize),
    #[error("it did not read in time")]
    Overdue,
    #[error("it had opened no session, and another wanted its place")]
    Displaced,
    #[error("no handshake: {0}")]
    Unproved(io::Error),
}

impl Over {
    /// Returns its log level.
    pub fn level(&self) -> Level {
        match self {
            Self::Closed | Self::Lost(_) | Self::Displaced | Self::Unproved(_) => Level::Debug,
            Self::Flooded(_) | Self::Slowest(_) | Self::Overdue => Level::Warn,
        }
    }
}

impl Connection {
    /// How long to wait for the other side to close.
    const LINGER: Duration = Duration::from_secs(2);

    pub fn new(line: Box<dyn Line>, peer: SocketAddr) -> Self {
        Self {
            line,
            peer,
            party: None,
            stage: Stage::Open,
            interest: Interest::Read,
            is_queued: false,
            is_behind: false,
            is_told: false,
            deadline: None,
        }
    }

    /// Reads data for the middlebox.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard> {
        match (self.stage, self.line.read(buffer)?) {
            (Stage::Open, heard) => Ok(heard),
            (_, Heard::End) => Ok(Heard::End),
            // Requests now come too late.
            (_, _) => Ok(Heard::Nothing),
        }
    }

    pub fn push(&mut self, message: &Message) {
        self.line.push(message);
    }

    /// Stops reading; queued messages are still sent.
    pub fn close(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Closing;
        }
    }

    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// Returns true if buffered data remain that no socket event will report.
    pub fn has_rest(&self) -> bool {
        self.is_open() && self.line.has_rest()
    }

    /// Returns true if the transport itself has data to send.
    pub fn is_to_write(&self) -> bool {
        self.line.is_to_write()
    }

    /// Returns the octets queued for it.
    pub fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// Returns why it is closed at its deadline.
    pub fn overdue(&self) -> Over {
        if self.stage == Stage::Lingering { Over::Closed } else { Over::Overdue }
    }

    /// Sends what it can, and sets the events and the deadline to wait for.
    pub fn settle(&mut self, now: Time, limits: &Limits) -> Result<(), Over> {
        if self.stage == Stage::Lingering {
            return Ok(());
        }
        let flushed = self.line.flush()?;
        let waiting = self.waiting();
        if waiting > limits.output {
            return Err(Over::Flooded(waiting));
        }
        self.interest = if self.line.is_to_write() { Interest::Write } else { Interest::Read };
        if waiting == 0 {
            self.deadline = None;
        } else if flushed > 0 || self.deadline.is_none() {
            self.deadline = Some(now + limits.patience);
        }
        if waiting == 0 && self.stage == Stage::Closing {
            self.line.finish()?;
            self.stage = Stage::Lingering;
            self.deadline = Some(now + Self::LINGER);
        }
        Ok(())
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}
