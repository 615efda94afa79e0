//! What goes into an endpoint and what comes out.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_wire::{Address, Packet, Stamp};

/// One end of a connection or association.
pub trait Endpoint {
    /// Takes one input. Nothing leaves before the next [`poll`](Self::poll).
    fn handle(&mut self, now: Time, input: Input);

    /// The next thing to do. After `Wait` there is nothing more until an input or the named time.
    fn poll(&mut self, now: Time) -> Output;

    /// Whether the send buffer takes a message of `length` octets now; if not,
    /// [`Event::Writable`] follows when it may.
    fn can_send(&self, length: usize) -> bool;

    /// How many octets of a message of `length` the send buffer takes now. A stream of octets may take a message in parts, all
    /// else takes it whole or not at all. If some are left, [`Event::Writable`] follows when there is room for more.
    fn accepts(&self, length: usize) -> usize {
        if self.can_send(length) { length } else { 0 }
    }

    /// Whether more data waits for the application to read it; one that hands over what has come at once never has any.
    fn has_unread(&self) -> bool {
        false
    }

    /// What has been counted so far.
    fn statistics(&self) -> &Statistics;

    /// Tells of each path to the peer how its congestion control stands; nothing if there is none, or no connection.
    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        let _ = tell;
    }
}

/// What an endpoint is told.
#[derive(Debug)]
pub enum Input {
    /// A packet arrived for this endpoint.
    Packet(Packet),
    /// The application wants something.
    Command(Command),
    /// The host has this address from now on.
    AddressAdded(Address),
    /// The host has this address no more.
    AddressRemoved(Address),
}

/// What the application may ask for.
#[derive(Debug)]
pub enum Command {
    /// Open the connection (active open). A passive endpoint is made listening.
    Connect,
    /// Send a message; only when [`Endpoint::can_send`] says so. TCP appends its octets to the byte stream.
    Send(Message),
    /// Deliver what is queued, then close.
    Close,
    /// Have streams begin anew, or more of them. SCTP alone, and where the peer agrees to it: [`Event::Reconfigured`] tells. RFC 6525.
    Reconfigure(Reconfiguration),
    /// Close at once and tell the peer.
    Abort,
    /// Whether the application reads, as it does in the beginning. While it does not, what arrives takes room of the window;
    /// datagrams have none.
    Read(bool),
}

/// What is to become of streams. RFC 6525. A list of none is a list of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconfiguration {
    /// What is sent on these streams begins anew, behind all that was handed over before.
    ResetOutgoing(Vec<u16>),
    /// The peer's streams begin anew: asked for, or behind all that was received before.
    ResetIncoming(Vec<u16>),
    /// So many streams more to send on.
    AddOutgoing(u16),
    /// So many streams more for the peer to send on.
    AddIncoming(u16),
}

/// What the application sends.
#[derive(Debug, Clone)]
pub struct Message {
    /// SCTP stream; TCP has but one.
    pub stream: u16,
    /// Deliver on arrival, whatever came before. SCTP only.
    pub unordered: bool,
    /// When to give up. SCTP only.
    pub reliability: Reliability,
    /// SCTP payload protocol identifier.
    pub ppid: u32,
    /// User data, not empty.
    pub payload: Bytes,
}

/// How long the sender tries. RFC 3758, RFC 7496.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reliability {
    /// Until the association fails.
    #[default]
    Full,
    /// Given up when this much time has passed since the message was handed over.
    Lifetime(Duration),
    /// Given up when it would be retransmitted more often than this.
    Retransmissions(u32),
}

/// What an endpoint answers.
#[derive(Debug)]
pub enum Output {
    /// Send this packet.
    Transmit(Packet),
    /// Tell the application.
    Event(Event),
    /// Nothing more until an input, or until this time.
    Wait(Option<Time>),
}

/// What an endpoint tells its application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The connection is open for sending.
    Connected,
    /// User data is delivered: a whole message (SCTP), or the next octets of the byte stream (TCP).
    Received(Received),
    /// There is room in the send buffer again.
    Writable,
    /// A partially reliable message was given up before it was acknowledged.
    Abandoned {
        /// Its stream.
        stream: u16,
    },
    /// A path of a multihomed association changed.
    Path {
        /// The peer's address.
        address: Address,
        /// Its new state.
        status: PathStatus,
    },
    /// Streams have begun anew or become more, whichever end wanted it; or it was asked for and will not be.
    Reconfigured {
        /// What was asked for.
        what: Reconfiguration,
        /// It is done.
        done: bool,
    },
    /// The peer sends no more.
    PeerClosed,
    /// The connection has ended in an orderly way.
    Closed,
    /// The connection was reset, refused or timed out.
    Failed {
        /// Why, in RFC words, such as "connection refused" or "association max retrans exceeded".
        reason: &'static str,
    },
}

/// User data that is delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// SCTP stream; 0 for TCP.
    pub stream: u16,
    /// It came outside the order of its stream.
    pub unordered: bool,
    /// SCTP payload protocol identifier; 0 for TCP.
    pub ppid: u32,
    /// User data.
    pub payload: Bytes,
    /// How it came here. Delivery is the time of the event itself.
    pub passage: Passage,
}

/// How delivered data travelled. Measurement only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Passage {
    /// When the last of it left the sender for the first time.
    pub first_sent: Time,
    /// When the copy that completed it left the sender.
    pub sent: Time,
    /// When it was complete at the receiver; whatever follows is head-of-line wait.
    pub arrived: Time,
}

/// The state of a path. RFC 9260 section 8.2, RFC 7829 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStatus {
    /// In use.
    Active,
    /// It timed out, but is not given up. RFC 7829.
    PotentiallyFailed,
    /// Path.Max.Retrans was exceeded.
    Inactive,
}

/// How the congestion control of a path stands, in octets as its protocol counts them: payload of TCP, user data of SCTP,
/// UDP payload of QUIC. What an end cannot tell is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathState {
    /// The peer's address.
    pub peer: Address,
    /// The congestion window.
    pub cwnd: Option<u64>,
    /// The slow start threshold; `None` also before there is one.
    pub ssthresh: Option<u64>,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Octets a second, where departures are paced.
    pub pacing_rate: Option<u64>,
    /// What is sent, and neither acknowledged nor taken for lost.
    pub in_flight: Option<u64>,
}

/// What an endpoint counts. The tests check it beside the behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received and accepted.
    pub packets_received: u64,
    /// Data segments or DATA chunks sent for the first time.
    pub data_sent: u64,
    /// Data segments or DATA chunks sent again before a timeout.
    pub fast_retransmissions: u64,
    /// Data segments or DATA chunks sent again after a timeout.
    pub timeout_retransmissions: u64,
    /// Expiries of the retransmission timer (RTO, T3-rtx).
    pub timeouts: u64,
    /// Those of them that follow another without an acknowledgement between: the timer had been doubled. TCP and SCTP only.
    pub backoffs: u64,
    /// Tail loss probes. RFC 8985 section 7; TCP only.
    pub tail_loss_probes: u64,
    /// Congestion events: reductions of ssthresh.
    pub congestion_events: u64,
    /// Data segments or DATA chunks that arrived more than once.
    pub duplicates_received: u64,
}

impl Received {
    /// A message that belongs to no stream and no order.
    pub fn alone(payload: Bytes, passage: Passage) -> Self {
        Self { stream: 0, unordered: true, ppid: 0, payload, passage }
    }
}

impl Passage {
    /// The passage of data that one packet carried.
    pub fn new(stamp: Stamp, arrived: Time) -> Self {
        Self { first_sent: stamp.first_sent, sent: stamp.sent, arrived }
    }

    /// The passage of data that is complete only when this and `other` are: the copy that arrives last completes it, be it of an
    /// octet that left before the last of them.
    pub fn join(self, other: Self) -> Self {
        let last = if other.arrived >= self.arrived { other } else { self };
        let first_sent = self.first_sent.max(other.first_sent);
        Self { first_sent, sent: last.sent.max(first_sent), ..last }
    }
}

/// Polls `endpoint` until it waits, gives every output to `take`, and returns the deadline.
///
/// # Panics
/// If the endpoint does not come to rest, or waits for a time that has passed: both are our errors.
pub fn drain<E: Endpoint + ?Sized>(
    endpoint: &mut E,
    now: Time,
    mut take: impl FnMut(&mut E, Output),
) -> Option<Time> {
    const LIMIT: u32 = 1_000_000;
    for _ in 0..LIMIT {
        match endpoint.poll(now) {
            Output::Wait(deadline) => {
                assert!(deadline.is_none_or(|at| at > now), "an endpoint waits for {deadline:?} at {now}");
                return deadline;
            }
            output => take(endpoint, output),
        }
    }
    panic!("an endpoint gave {LIMIT} outputs at {now}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_under_way_from_its_last_octet_to_the_copy_that_completes_it() {
        let passage = |first_sent, sent, arrived| {
            let [first_sent, sent, arrived] = [first_sent, sent, arrived].map(Time::from_millis);
            Passage { first_sent, sent, arrived }
        };
        // The first packet was lost, and sent again before the last was written.
        let (first, last) = (passage(0, 40, 60), passage(50, 50, 55));
        assert_eq!(first.join(last), passage(50, 50, 60));
        assert_eq!(last.join(first), passage(50, 50, 60));
        assert_eq!(passage(0, 0, 5).join(passage(1, 30, 35)), passage(1, 30, 35));
    }
}
