//! What an application is told and what it answers.
//!
//! Sans-IO, like an endpoint: `handle` an input, then `poll` until [`Output::Wait`] (or [`Output::Stop`]); again at the
//! next input or the named time. It opens and closes connections when it wants, sends on (connection, stream), wakes
//! itself, and notes in its [`Ledger`] what is to be measured. Closed loops, think times and what depends on what
//! are its own affair.

use std::fmt;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Passage, Reliability};
use serde::{Deserialize, Serialize};

use crate::ledger::{EntryId, Ledger};

/// A connection, or association, of one application, numbered from 0 in the order in which it opens or accepts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// What an application is told.
#[derive(Debug)]
pub enum Input {
    /// A connection that it asked for is open for sending.
    Opened(ConnectionId),
    /// The other side has opened a connection.
    Accepted(ConnectionId),
    /// A whole message has been delivered.
    Message(Delivery),
    /// The transport did not take this message, for its send buffer is full; `Writable` follows.
    Full(Outgoing),
    /// The connection takes messages again.
    Writable(ConnectionId),
    /// The other side sends no more on it.
    PeerClosed(ConnectionId),
    /// It has ended in an orderly way.
    Closed(ConnectionId),
    /// It was refused or reset, or it timed out: why, in RFC words.
    Failed(ConnectionId, &'static str),
}

/// A message that was delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The connection that it came on.
    pub connection: ConnectionId,
    /// Its stream there.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// How it came here.
    pub passage: Passage,
}

/// A message for the transport. The application notes it as written now, unless it comes back as
/// [`Input::Full`].
#[derive(Debug)]
pub struct Outgoing {
    /// The connection that it takes.
    pub connection: ConnectionId,
    /// Its stream there; TCP has but one.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// How hard the transport tries; `None`: as its own options say.
    pub terms: Option<Terms>,
    /// The entry of the application's ledger that it belongs to.
    pub(crate) entry: Option<EntryId>,
}

impl Outgoing {
    /// Whether it is a message of the workload; a greeting that is said again is no sign that a run goes on.
    pub const fn is_message(&self) -> bool {
        self.entry.is_some()
    }
}

/// What one message asks of a transport that can give messages up or let them overtake each other. RFC 3758, RFC 7496.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Deliver on arrival, whatever came before.
    pub unordered: bool,
    /// When to give up; of a deadline the time that is left is the lifetime.
    pub reliability: Reliability,
}

/// What an application answers.
#[derive(Debug)]
pub enum Output {
    /// Open a connection, which has the next number. Only the side that connects does.
    Open(ConnectionId),
    /// Send this.
    Send(Outgoing),
    /// Deliver what is queued on a connection, then close it.
    Close(ConnectionId),
    /// Nothing to do: it has come to a message that it had waited with, which may have been the last.
    Took,
    /// Nothing more until an input, or until this time; [`Time::MAX`]: only an input.
    Wait(Time),
    /// Give the run up.
    Stop(Quit),
}

/// Why an application gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quit {
    /// A message could not be handed to the transport within `late_limit` of its scheduled time.
    BehindSchedule {
        /// The message.
        message: u64,
        /// When it was to be sent.
        scheduled: Time,
    },
    /// A connection that it cannot do without failed: why, in RFC words.
    Connection(&'static str),
    /// The other side said something that makes no sense.
    Nonsense(&'static str),
}

/// How far an application has come: all that the rules of a run's end need to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Messages that came due here.
    pub due: u64,
    /// Messages that are done as far as this side can tell: answered, or here.
    pub done: u64,
    /// When the latest came due.
    pub last_due: Option<Time>,
    /// No more will come due.
    pub all_due: bool,
    /// Nothing comes due before the other side answers: a session, or the reply of a ping-pong.
    pub awaits_answer: bool,
}

/// One side of a workload: takes an input, then says what to do until there is nothing more.
pub trait Application: fmt::Debug {
    /// Takes one input.
    fn handle(&mut self, now: Time, input: Input);
    /// The next thing to do.
    fn poll(&mut self, now: Time) -> Output;
    /// How far it has come.
    fn standing(&self) -> Standing;
    /// Whether it reads what comes. While it does not, messages are to stay with the transport.
    #[inline]
    fn is_reading(&self) -> bool {
        true
    }
    /// What it has noted.
    fn ledger(&mut self) -> &mut Ledger;
    /// The run is over: notes what never came due, and settles with its host. A long schedule ends in parts: to be called
    /// until it says true.
    fn end(&mut self, now: Time) -> bool;
}
