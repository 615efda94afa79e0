//! One connection: read from while it owes us nothing, closed behind what was sent last.

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
    /// Who is there.
    pub party: Party,
    stage: Stage,
    /// What the poller watches it for.
    pub interest: Interest,
    /// It waits for its turn to be heard.
    pub is_queued: bool,
    /// It has said more than a turn had room for: it is to be heard again, even if it says no more.
    pub is_behind: bool,
    /// It is to be told of others' rules, when it is its turn.
    pub is_told: bool,
    /// When it is given up.
    pub deadline: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Messages come and go.
    Open,
    /// What waits is still sent.
    Closing,
    /// We have sent all and said so. A socket that is closed before the other side has read it might lose the last
    /// messages: TCP resets a connection on which something unread has arrived (RFC 1122 section 4.2.2.13).
    Lingering,
}

/// Why a connection is at its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Over {
    #[error("closed")]
    Closed,
    #[error("lost: {0}")]
    Lost(#[from] io::Error),
    #[error("{0} octets wait for it, more than `output` of [limits]")]
    Flooded(usize),
    #[error(
        "{0} octets wait for it, more than for others, and for all together more than `backlog` of [limits]"
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
    /// How much that matters.
    pub fn level(&self) -> Level {
        match self {
            Self::Closed | Self::Lost(_) | Self::Displaced | Self::Unproved(_) => Level::Debug,
            Self::Flooded(_) | Self::Slowest(_) | Self::Overdue => Level::Warn,
        }
    }
}

impl Connection {
    /// How long the other side may take to close as well.
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

    /// Reads what the middlebox is to hear.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Heard> {
        match (self.stage, self.line.read(buffer)?) {
            (Stage::Open, heard) => Ok(heard),
            (_, Heard::End) => Ok(Heard::End),
            // It is too late for requests.
            (_, _) => Ok(Heard::Nothing),
        }
    }

    pub fn push(&mut self, message: &Message) {
        self.line.push(message);
    }

    /// No more is heard; what waits is still sent.
    pub fn close(&mut self) {
        if self.stage == Stage::Open {
            self.stage = Stage::Closing;
        }
    }

    pub fn is_open(&self) -> bool {
        self.stage == Stage::Open
    }

    /// True if it has said something that no socket will tell of again.
    pub fn has_rest(&self) -> bool {
        self.is_open() && self.line.has_rest()
    }

    /// True if the line itself has something to send.
    pub fn is_to_write(&self) -> bool {
        self.line.is_to_write()
    }

    /// Octets that wait for it.
    pub fn waiting(&self) -> usize {
        self.line.waiting()
    }

    /// Why it is given up at its deadline.
    pub fn overdue(&self) -> Over {
        if self.stage == Stage::Lingering { Over::Closed } else { Over::Overdue }
    }

    /// Sends what can be sent, and sets what is waited for next, and until when.
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
