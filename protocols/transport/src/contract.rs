//! Inputs and outputs of an endpoint.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_wire::{Address, Packet, SendTimes};

use crate::Failure;

/// An endpoint: one end of a connection or association.
pub trait Endpoint {
    /// Handles one input. The next [`poll`](Self::poll) returns the resulting outputs.
    fn handle(&mut self, now: Time, input: Input);

    /// Returns the next output. After `Wait`, call this function again at the next input or at the given time.
    fn poll(&mut self, now: Time) -> Output;

    /// Returns whether the send buffer has room for a message of `length` octets. If not, [`Event::Writable`]
    /// follows when there may be room.
    fn can_send(&self, length: usize) -> bool;

    /// Returns how many octets of a message of `length` octets the send buffer has room for. A byte stream may
    /// take part of a message; other transports take the whole message or nothing. If octets are left,
    /// [`Event::Writable`] follows when there is room.
    fn accepts(&self, length: usize) -> usize {
        if self.can_send(length) { length } else { 0 }
    }

    /// Returns whether received data wait for the application to read them; false for an endpoint that delivers
    /// data as soon as they arrive.
    fn has_unread(&self) -> bool {
        false
    }

    /// Returns the counters of the endpoint.
    fn statistics(&self) -> &Statistics;

    /// Calls `tell` with the congestion control state of each path to the peer. Does not call it without a
    /// connection or without congestion control.
    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        let _ = tell;
    }
}

/// An input to an endpoint.
#[derive(Debug)]
pub enum Input {
    /// A packet arrived for this endpoint.
    Packet(Packet),
    /// The application gives a command.
    Command(Command),
    /// The host was assigned this address.
    AddressAdded(Address),
    /// The host lost this address.
    AddressRemoved(Address),
}

/// A command of the application.
#[derive(Debug)]
pub enum Command {
    /// Open the connection as the client. (A server's endpoint is created in the listening state.)
    Connect,
    /// Send a message, if [`Endpoint::can_send`] allows it. TCP appends its octets to the byte stream.
    Send(Message),
    /// Deliver the queued data, then close the connection.
    Close,
    /// Reset or add streams of an SCTP association (RFC 6525), if the peer agrees; [`Event::Reconfigured`] reports
    /// the result.
    Reconfigure(Reconfiguration),
    /// Abort the connection, and inform the peer.
    Abort,
    /// Start or stop reading; initially the application reads. While it does not, arriving data fill the receive
    /// window; datagrams have no window.
    Read(bool),
}

/// A change of the streams of an association (RFC 6525). An empty list of streams means all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconfiguration {
    /// Reset these outgoing streams, after all data queued before have arrived.
    ResetOutgoing(Vec<u16>),
    /// Reset the peer's outgoing streams. In a command, this requests the reset from the peer; in an event, it
    /// reports a reset that took place after all data delivered before.
    ResetIncoming(Vec<u16>),
    /// Add this number of outgoing streams.
    AddOutgoing(u16),
    /// Add this number of incoming streams.
    AddIncoming(u16),
}

/// A message that the application sends.
#[derive(Debug, Clone)]
pub struct Message {
    /// Number of the SCTP stream; 0 for TCP.
    pub stream: u16,
    /// Whether to deliver the message on arrival, regardless of the order. SCTP only.
    pub unordered: bool,
    /// When the sender abandons the message. SCTP only.
    pub reliability: Reliability,
    /// SCTP payload protocol identifier.
    pub ppid: u32,
    /// User data of the message, not empty.
    pub payload: Bytes,
}

/// How long the sender tries to deliver a message. RFC 3758, RFC 7496.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reliability {
    /// The sender tries until the association fails.
    #[default]
    Full,
    /// The message is abandoned when this time has passed since the application sent it.
    Lifetime(Duration),
    /// The message is abandoned after this number of retransmissions.
    Retransmissions(u32),
}

/// What the caller of an endpoint must do next.
#[derive(Debug)]
pub enum Output {
    /// The caller must send this packet.
    Transmit(Packet),
    /// The caller must pass this event to the application.
    Event(Event),
    /// The caller must wait for the next input, or until this time if it is given.
    Wait(Option<Time>),
}

/// An event for the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The connection is open, so that the application can send.
    Connected,
    /// User data were delivered: a whole message (SCTP), or the next octets of the byte stream (TCP).
    Received(ReceivedData),
    /// The send buffer has room again.
    Writable,
    /// A partially reliable message was abandoned before it was acknowledged.
    Abandoned {
        /// The stream of the abandoned message.
        stream: u16,
    },
    /// A path of a multihomed association changed.
    Path {
        /// The peer's address on this path.
        address: Address,
        /// The new status of the path.
        status: PathStatus,
    },
    /// A stream reconfiguration that either endpoint requested was carried out or has failed.
    Reconfigured {
        /// The reconfiguration that was requested.
        what: Reconfiguration,
        /// Whether the reconfiguration was carried out.
        done: bool,
    },
    /// The peer will not send any more data.
    PeerClosed,
    /// The connection was closed without an error.
    Closed,
    /// The connection was reset, refused or timed out.
    Failed {
        /// Why the connection failed.
        reason: Failure,
    },
}

/// User data that are delivered to the application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedData {
    /// Number of the SCTP stream; 0 for TCP.
    pub stream: u16,
    /// Whether the message was delivered regardless of the order.
    pub unordered: bool,
    /// SCTP payload protocol identifier; 0 for TCP.
    pub ppid: u32,
    /// The user data.
    pub payload: Bytes,
    /// When the data were sent and arrived. (The time of delivery is the time of the event.)
    pub delivery_times: DeliveryTimes,
}

/// When delivered data were sent and arrived; for measurement only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeliveryTimes {
    /// When the last octet of the data was first sent.
    pub first_sent: Time,
    /// When the copy that completed the data was sent.
    pub sent: Time,
    /// When the data were complete at the receiver. The time from then until delivery is the head-of-line wait.
    pub arrived: Time,
}

/// The state of a path. RFC 9260 section 8.2, RFC 7829 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    /// The path is in use or can be used.
    Active,
    /// A timeout occurred, but the path may still be used. RFC 7829.
    PotentiallyFailed,
    /// The path has failed: Path.Max.Retrans was exceeded.
    Inactive,
}

/// The congestion control state of a path. Octets count TCP payload, SCTP user data or QUIC's UDP payload. Values
/// that an endpoint does not know are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathState {
    /// The peer's address.
    pub peer: Address,
    /// The congestion window in octets.
    pub cwnd: Option<u64>,
    /// The slow start threshold in octets; `None` also before the first reduction.
    pub ssthresh: Option<u64>,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// The pacing rate in octets per second; `None` if packets are not paced.
    pub pacing_rate: Option<u64>,
    /// Number of octets that were sent and are neither acknowledged nor considered lost.
    pub in_flight: Option<u64>,
}

/// Counters of an endpoint, for reports and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Number of packets sent.
    pub packets_sent: u64,
    /// Number of packets received and accepted.
    pub packets_received: u64,
    /// Number of data segments or DATA chunks sent for the first time.
    pub data_sent: u64,
    /// Number of data segments or DATA chunks retransmitted before a timeout.
    pub fast_retransmissions: u64,
    /// Number of data segments or DATA chunks retransmitted after a timeout.
    pub timeout_retransmissions: u64,
    /// Number of expiries of the retransmission timer (RTO, T3-rtx).
    pub timeouts: u64,
    /// Number of expiries of the retransmission timer without an acknowledgement since the previous expiry, so
    /// that the timer had been doubled. TCP and SCTP only.
    pub backoffs: u64,
    /// Number of tail loss probes sent. RFC 8985 section 7; TCP only.
    pub tail_loss_probes: u64,
    /// Number of congestion events: reductions of ssthresh.
    pub congestion_events: u64,
    /// Number of data segments or DATA chunks that arrived more than once.
    pub duplicates_received: u64,
}

impl Message {
    /// Creates a message that is delivered reliably and in order, on stream 0.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        let reliability = Reliability::Full;
        Self { stream: 0, unordered: false, reliability, ppid: 0, payload: payload.into() }
    }
}

impl ReceivedData {
    /// Creates a received message that belongs to no stream and was delivered regardless of the order.
    pub fn unordered(payload: Bytes, delivery_times: DeliveryTimes) -> Self {
        Self { stream: 0, unordered: true, ppid: 0, payload, delivery_times }
    }
}

impl DeliveryTimes {
    /// Returns the times of data that arrived in a single packet.
    pub fn new(stamp: SendTimes, arrived: Time) -> Self {
        Self { first_sent: stamp.first_sent, sent: stamp.sent, arrived }
    }

    /// Returns the times of data that are complete only when both packets have arrived. The copy that arrives last
    /// completes the data, even if its octets were sent earlier than others.
    pub fn join(self, other: Self) -> Self {
        let last = if other.arrived >= self.arrived { other } else { self };
        let first_sent = self.first_sent.max(other.first_sent);
        Self { first_sent, sent: last.sent.max(first_sent), ..last }
    }
}

/// Polls `endpoint` until it waits, passes every output to `take`, and returns the deadline.
///
/// # Panics
/// If the endpoint never waits, or waits for a time in the past. Either is a bug of the endpoint.
pub fn drain<E: Endpoint + ?Sized>(
    endpoint: &mut E,
    now: Time,
    mut take: impl FnMut(&mut E, Output),
) -> Option<Time> {
    const MAX_OUTPUTS: u32 = 1_000_000;
    for _ in 0..MAX_OUTPUTS {
        match endpoint.poll(now) {
            Output::Wait(deadline) => {
                assert!(
                    deadline.is_none_or(|at| at > now),
                    "an endpoint waits at {now} until {deadline:?}, which is not in the future"
                );
                return deadline;
            }
            output => take(endpoint, output),
        }
    }
    panic!("an endpoint produced {MAX_OUTPUTS} outputs at {now} without waiting");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_times_span_last_octet_to_completing_copy() {
        let delivery_times = |first_sent, sent, arrived| {
            let [first_sent, sent, arrived] = [first_sent, sent, arrived].map(Time::from_millis);
            DeliveryTimes { first_sent, sent, arrived }
        };
        // The first packet was lost, and retransmitted before the last one was written.
        let (first, last) = (delivery_times(0, 40, 60), delivery_times(50, 50, 55));
        assert_eq!(first.join(last), delivery_times(50, 50, 60));
        assert_eq!(last.join(first), delivery_times(50, 50, 60));
        assert_eq!(delivery_times(0, 0, 5).join(delivery_times(1, 30, 35)), delivery_times(1, 30, 35));
    }
}
