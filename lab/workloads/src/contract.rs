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

/// The number of a connection or association of one application, from 0 in the order of opening or accepting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// An event that an application must handle.
#[derive(Debug)]
pub enum Input {
    /// A connection that the application requested is open: messages can be sent.
    Opened(ConnectionId),
    /// The peer has opened this connection.
    Accepted(ConnectionId),
    /// A whole message has been delivered.
    Message(Delivery),
    /// The transport has rejected this message because its send buffer is full; [`Self::Writable`] will follow.
    Full(Outgoing),
    /// This connection accepts messages again.
    Writable(ConnectionId),
    /// The peer has closed this connection for sending.
    PeerClosed(ConnectionId),
    /// The connection has been closed gracefully in both directions.
    Closed(ConnectionId),
    /// The connection was refused, was reset or timed out, for this reason in the terms of the RFC.
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
    /// When the message was sent, and when it arrived.
    pub delivery_times: DeliveryTimes,
}

/// A message for the transport to send. The application records it as written unless the transport returns it as
/// [`Input::Full`].
#[derive(Debug)]
pub struct Outgoing {
    /// Connection on which to send the message.
    pub connection: ConnectionId,
    /// Stream on which to send the message; TCP has only one.
    pub stream: u16,
    /// The whole message.
    pub payload: Bytes,
    /// Delivery options of this message; `None`: those of the transport.
    pub delivery: Option<DeliveryOptions>,
    /// Entry of the message in the application's ledger.
    pub(crate) entry: Option<EntryId>,
}

impl Outgoing {
    /// Returns whether this is a message of the workload. Messages of a session setup are not, so repeating them does
    /// not count as progress.
    pub const fn is_message(&self) -> bool {
        self.entry.is_some()
    }
}

/// How a partially reliable or unordered transport delivers a message. RFC 3758, RFC 7496.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryOptions {
    /// Whether the message is delivered when it arrives, even out of order.
    pub unordered: bool,
    /// When the transport abandons the message. For a message with a deadline, the lifetime is the time left until the
    /// deadline.
    pub reliability: Reliability,
}

/// The next action of an application.
#[derive(Debug)]
pub enum Output {
    /// Open a connection, which gets the next number. Only clients open connections.
    Open(ConnectionId),
    /// Send this message.
    Send(Outgoing),
    /// Close this connection once all queued data have been delivered.
    Close(ConnectionId),
    /// Do nothing: the application has processed a message that waited. The flow may be over now, because that message
    /// may have been the last.
    Processed,
    /// Wait for an input or until this time; with [`Time::MAX`], for an input only.
    Wait(Time),
    /// Abort the run for this reason.
    Stop(AbortReason),
}

/// Why an application aborts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AbortReason {
    /// A message could not be sent at most `late_limit` after its scheduled time.
    BehindSchedule {
        /// Number of the message, from 0.
        message: u64,
        /// Scheduled time of the message.
        scheduled: Time,
    },
    /// A connection that the workload requires failed, for this reason in the terms of the RFC.
    Connection(&'static str),
    /// The peer sent data that are invalid for this reason.
    InvalidData(&'static str),
}

/// The progress of an application, as needed to decide when a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Number of messages that came due at this end.
    #[serde(rename = "due")]
    pub messages_due: u64,
    /// Number of messages that have been answered or received, as far as this end knows.
    #[serde(rename = "done")]
    pub messages_done: u64,
    /// When the latest message came due.
    #[serde(rename = "last_due")]
    pub last_due_time: Option<Time>,
    /// Whether no more messages will come due.
    #[serde(rename = "all_due")]
    pub is_all_due: bool,
    /// Whether the next message comes due only after something from the peer has arrived: the reply to a session setup,
    /// or to the last message of a ping-pong.
    #[serde(rename = "awaits_answer")]
    pub waits_for_reply: bool,
}

/// One end of a workload. It handles an input, and then returns actions until it waits.
pub trait Application: fmt::Debug {
    /// Handles an input from the transport.
    fn handle(&mut self, now: Time, input: Input);
    /// Returns the next action of the application.
    fn poll(&mut self, now: Time) -> Output;
    /// Returns the progress of the application.
    fn progress(&self) -> Progress;
    /// Returns whether the application reads from its connections. While it does not, messages stay in the transport.
    #[inline]
    fn is_reading(&self) -> bool {
        true
    }
    /// Returns when the application could first send; `None` if it cannot send yet. Its connections were open at
    /// `opened`; a handshake of its own, such as TLS, delays it further.
    fn connected(&self, opened: Option<Time>) -> Option<Time> {
        opened
    }
    /// Returns the ledger of the application.
    fn ledger(&mut self) -> &mut Ledger;
    /// Ends the run: a client records the messages that never came due, and a middlebox compares its packet filter with
    /// its rules. Call repeatedly until it returns true, because a long schedule is processed in parts.
    fn end(&mut self, now: Time) -> bool;
}
