//! Inputs and outputs of an application.
//!
//! Sans-IO, like an endpoint: `handle` an input, then `poll` until [`Output::Wait`] (or [`Output::Stop`]);
//! repeat at the next input or at the given time. The application opens and closes connections, sends on
//! (connection, stream), sets its own timers, and notes measurements in its [`Ledger`]. Closed loops, think
//! times and dependencies are up to the application.

use std::fmt;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{DeliveryTimes, Reliability};
use serde::{Deserialize, Serialize};

use crate::ledger::{EntryId, Ledger};

/// A connection or association of one application, numbered from 0 in the order of opening or accepting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// What an application is told.
#[derive(Debug)]
pub enum Input {
    /// A connection that the application requested is open for sending.
    Opened(ConnectionId),
    /// The peer opened a connection.
    Accepted(ConnectionId),
    /// A whole message was delivered.
    Message(Delivery),
    /// The transport rejected this message because its send buffer is full; `Writable` follows.
    Full(Outgoing),
    /// The connection accepts messages again.
    Writable(ConnectionId),
    /// The peer sends no more data on this connection.
    PeerClosed(ConnectionId),
    /// The connection was closed gracefully.
    Closed(ConnectionId),
    /// The connection was refused, reset or timed out. The reason is in the terms of the RFC.
    Failed(ConnectionId, &'static str),
}

/// A message that the transport has delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Connection on which the message arrived.
    pub connection: ConnectionId,
    /// Stream on which the message arrived.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// When the message was sent and arrived.
    pub delivery_times: DeliveryTimes,
}

/// A message for the transport. The application records it as written unless the transport returns it as
/// [`Input::Full`].
#[derive(Debug)]
pub struct Outgoing {
    /// Connection for the message.
    pub connection: ConnectionId,
    /// Stream for the message; TCP has only one.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// How this message is delivered; `None`: as the transport's options specify.
    pub delivery: Option<DeliveryOptions>,
    /// Entry of the message in the application's ledger.
    pub(crate) entry: Option<EntryId>,
}

impl Outgoing {
    /// Returns whether this is a message of the workload. A session setup is not such a message, so repeating it is not
    /// progress.
    pub const fn is_message(&self) -> bool {
        self.entry.is_some()
    }
}

/// How one message is delivered over a partially reliable or unordered transport. RFC 3758, RFC 7496.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// Deliver on arrival, out of order.
    pub unordered: bool,
    /// When the transport abandons the message. For a message with a deadline, the lifetime is the time left until
    /// then.
    pub reliability: Reliability,
}

/// What an application wants to be done next.
#[derive(Debug)]
pub enum Output {
    /// Open a connection, which gets the next number. Only clients open connections.
    Open(ConnectionId),
    /// Send this message.
    Send(Outgoing),
    /// Deliver queued data, then close the connection.
    Close(ConnectionId),
    /// No action: the application has processed a waiting message. The flow may be over, because that message may have
    /// been the last.
    Processed,
    /// Wait for an input or until this time; [`Time::MAX`]: for an input only.
    Wait(Time),
    /// Abort the run.
    Stop(AbortReason),
}

/// Why an application aborts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    /// A message could not be sent within `late_limit` of its scheduled time.
    BehindSchedule {
        /// Number of the message, from 0.
        message: u64,
        /// Scheduled time of the message.
        scheduled: Time,
    },
    /// A required connection failed. The reason is in the terms of the RFC.
    Connection(&'static str),
    /// The peer sent invalid data.
    InvalidData(&'static str),
}

/// The progress of an application, as needed to decide when a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Number of messages that came due at this end.
    #[serde(rename = "due")]
    pub messages_due: u64,
    /// Number of messages known to be done at this end: answered, or received.
    #[serde(rename = "done")]
    pub messages_done: u64,
    /// When the latest message came due.
    #[serde(rename = "last_due")]
    pub last_due_time: Option<Time>,
    /// Whether no more messages will come due.
    #[serde(rename = "all_due")]
    pub is_all_due: bool,
    /// Whether no message comes due before the peer has sent something: the reply to a session setup, or to
    /// the last message of a ping-pong.
    #[serde(rename = "awaits_answer")]
    pub waits_for_reply: bool,
}

/// One end of a workload: takes an input, then returns actions until there are none left.
pub trait Application: fmt::Debug {
    /// Handles an input from the transport.
    fn handle(&mut self, now: Time, input: Input);
    /// Returns what the application does next.
    fn poll(&mut self, now: Time) -> Output;
    /// Returns the progress of the application.
    fn progress(&self) -> Progress;
    /// Returns whether the application reads. While it does not, messages stay in the transport.
    #[inline]
    fn is_reading(&self) -> bool {
        true
    }
    /// Returns when the application could first send; `None` if it cannot send yet. Its connections were open
    /// at `opened`. It sends later than that if it performs its own handshake, such as TLS.
    fn connected(&self, opened: Option<Time>) -> Option<Time> {
        opened
    }
    /// Returns the ledger of the application.
    fn ledger(&mut self) -> &mut Ledger;
    /// Ends the run: a client records the messages that never came due, and a middlebox compares its packet filter with
    /// its rules. Call repeatedly until it returns true, because a long schedule is processed in parts.
    fn end(&mut self, now: Time) -> bool;
}
