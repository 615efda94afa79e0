//! What an application is told and what it answers.
//!
//! Sans-IO, like an endpoint: `handle` an input, then `poll` until [`Output::Wait`] (or [`Output::Stop`]); again
//! at the next input or the named time. Opening and closing connections is the driver's business.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Passage;

use crate::{Client, Server};

/// What an application is told.
#[derive(Debug)]
pub enum Input {
    /// Every connection is open for sending.
    Connected,
    /// A whole message has been delivered.
    Message(Delivery),
    /// The transport did not take this message, for its send buffer is full; `Writable` follows.
    Full(Outgoing),
    /// The transport takes messages again.
    Writable,
}

/// A message that was delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The stream or connection that it came on.
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
    /// The stream or connection that it takes.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// The entry of the application's journal that it belongs to.
    pub(crate) entry: Option<usize>,
}

/// What an application answers.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Send(Outgoing),
    /// Nothing more until an input, or until this time; [`Time::MAX`]: only an input.
    Wait(Time),
    /// Give the run up.
    Stop(Trouble),
}

/// Why an application gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A message could not be handed to the transport within `late_limit` of its scheduled time.
    BehindSchedule {
        /// The message.
        message: u64,
        /// When it was to be sent.
        scheduled: Time,
    },
    /// The other side said something that makes no sense.
    Nonsense(&'static str),
}

/// What the application sees of the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Face {
    /// Streams of all associations, or parallel connections; messages take them in turn.
    pub streams: u16,
    /// Sessions of an application that has any: one for each connection or association.
    pub sessions: u16,
}

/// What both sides of a workload have in common: take an input, then say what to do until there is nothing more.
pub trait Application {
    /// Takes one input.
    fn handle(&mut self, now: Time, input: Input);
    /// The next thing to do.
    fn poll(&mut self, now: Time) -> Output;
}

impl Application for Client {
    fn handle(&mut self, now: Time, input: Input) {
        self.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output {
        self.poll(now)
    }
}

impl Application for Server {
    fn handle(&mut self, now: Time, input: Input) {
        self.handle(now, input);
    }
    fn poll(&mut self, now: Time) -> Output {
        self.poll(now)
    }
}
