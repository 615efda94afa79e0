//! What is seen of the packets that leave and come: all of those that nothing encrypts, nothing of those of TLS.

use hol_base::Time;
use hol_transport::{Event, Passage, Statistics};
use hol_wire::Ecn;

use crate::site::Site;

/// Takes the packets of an endpoint, and tells what it can of how the octets in them travel.
pub trait Sight {
    /// A packet on its way out.
    type Packet;

    /// quinn-proto has written a datagram for the peer, which may be marked or not; `is_probing`: nothing was found lost, and yet it may have a probe.
    fn leave(
        &mut self,
        now: Time,
        remote: Site,
        datagram: (&[u8], Ecn),
        is_probing: bool,
        statistics: &mut Statistics,
    );

    /// Whether more may leave now.
    fn has_room(&self) -> bool {
        true
    }

    /// The next packet that is to be sent.
    fn next_packet(&mut self) -> Option<Self::Packet>;

    /// All of a stream to the peer is acknowledged.
    fn acknowledged(&mut self, stream: u64);

    /// Octets of a stream from the peer, up to this offset, are read: how they came.
    fn read(&mut self, now: Time, stream: u64, end: u64) -> Passage;

    /// A stream from the peer was read to its end.
    fn ended(&mut self, stream: u64);
}

/// What an endpoint has to say.
#[derive(Debug)]
pub enum Next<P> {
    /// Send this packet.
    Transmit(P),
    /// Tell the application.
    Event(Event),
    /// Nothing more until an input, or until this time.
    Wait(Option<Time>),
}
