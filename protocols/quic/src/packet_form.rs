//! The trait of the two forms of packets: unencrypted packets, whose content is visible, and packets that TLS encrypts.

use hol_base::Time;
use hol_transport::{DeliveryTimes, Event, Statistics};
use hol_wire::Ecn;

use crate::socket_address::SocketAddress;

/// The form of an endpoint's packets, encrypted or not. It observes the packets, and records when their octets
/// were sent, acknowledged or lost.
pub trait PacketForm {
    /// A packet to be sent.
    type Packet;

    /// Accepts a datagram that quinn-proto has written for the peer, with its ECN codepoint. If `is_probing`, the
    /// datagram may be a probe, because a timer has expired and no loss was detected.
    fn queue_datagram(
        &mut self,
        now: Time,
        remote: SocketAddress,
        datagram: (&[u8], Ecn),
        is_probing: bool,
        statistics: &mut Statistics,
    );

    /// Returns whether more packets may be sent now.
    fn has_room(&self) -> bool {
        true
    }

    /// Returns the next packet to send.
    fn next_packet(&mut self) -> Option<Self::Packet>;

    /// Handles the acknowledgment of all data of a stream to the peer.
    fn on_stream_acknowledged(&mut self, stream: u64);

    /// Records that the application has read a stream from the peer up to the offset `end`. Returns when the data
    /// were sent and arrived.
    fn read(&mut self, now: Time, stream: u64, end: u64) -> DeliveryTimes;

    /// Handles the end of a stream from the peer.
    fn on_stream_ended(&mut self, stream: u64);
}

/// What the caller of an endpoint must do next.
#[derive(Debug)]
pub enum EndpointOutput<P> {
    /// The caller must send this packet.
    Transmit(P),
    /// The caller must report this event to the application.
    Event(Event),
    /// The caller must wait for the next input, or until this time if it is given.
    Wait(Option<Time>),
}
