//! One end of a connection of any transport protocol.

use hol_base::{Duration, Time};
use hol_transport::{Endpoint, Input, Output, PathState, Statistics};

/// Time by which a timer wakes a program late, because a host's timer is never early. It also prevents a problem
/// with the pacer of quinn-proto, which rounds its delay down by a few ns: if the program were woken exactly then,
/// it would not be allowed to send the last octet of the last packet of a burst (quinn-proto, `Pacer::delay`).
const TIMER_LATENESS: Duration = Duration::from_nanos(10);

/// An endpoint of any transport protocol. It is an enum and not a trait object, so that the inner loop needs no
/// virtual calls.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "TCP is 216 octets larger than SCTP; boxed, each packet would cost a look-up"
)]
pub(crate) enum Connection {
    Tcp(hol_tcp::Endpoint),
    Sctp(hol_sctp::Endpoint),
    Udp(hol_udp::Endpoint),
    /// A QUIC endpoint, boxed because it is much larger than the others.
    Quic(Box<hol_quic::Endpoint>),
}

impl Endpoint for Connection {
    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        match self {
            Self::Tcp(endpoint) => endpoint.handle(now, input),
            Self::Sctp(endpoint) => endpoint.handle(now, input),
            Self::Udp(endpoint) => endpoint.handle(now, input),
            Self::Quic(endpoint) => endpoint.handle(now, input),
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        match self {
            Self::Tcp(endpoint) => endpoint.poll(now),
            Self::Sctp(endpoint) => endpoint.poll(now),
            Self::Udp(endpoint) => endpoint.poll(now),
            Self::Quic(endpoint) => match endpoint.poll(now) {
                Output::Wait(deadline) => Output::Wait(deadline.map(|at| at + TIMER_LATENESS)),
                output => output,
            },
        }
    }

    fn can_send(&self, length: usize) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.can_send(length),
            Self::Sctp(endpoint) => endpoint.can_send(length),
            Self::Udp(endpoint) => endpoint.can_send(length),
            Self::Quic(endpoint) => endpoint.can_send(length),
        }
    }

    fn accepts(&self, length: usize) -> usize {
        match self {
            Self::Tcp(endpoint) => endpoint.accepts(length),
            Self::Sctp(endpoint) => endpoint.accepts(length),
            Self::Udp(endpoint) => endpoint.accepts(length),
            Self::Quic(endpoint) => endpoint.accepts(length),
        }
    }

    fn has_unread(&self) -> bool {
        match self {
            Self::Tcp(endpoint) => endpoint.has_unread(),
            Self::Sctp(endpoint) => endpoint.has_unread(),
            Self::Udp(endpoint) => endpoint.has_unread(),
            Self::Quic(endpoint) => endpoint.has_unread(),
        }
    }

    fn statistics(&self) -> &Statistics {
        match self {
            Self::Tcp(endpoint) => endpoint.statistics(),
            Self::Sctp(endpoint) => endpoint.statistics(),
            Self::Udp(endpoint) => endpoint.statistics(),
            Self::Quic(endpoint) => endpoint.statistics(),
        }
    }

    fn paths(&self, report: &mut dyn FnMut(PathState)) {
        match self {
            Self::Tcp(endpoint) => endpoint.paths(report),
            Self::Sctp(endpoint) => Endpoint::paths(endpoint, report),
            Self::Udp(endpoint) => endpoint.paths(report),
            Self::Quic(endpoint) => endpoint.paths(report),
        }
    }
}
