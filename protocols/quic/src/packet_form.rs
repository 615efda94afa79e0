//! The trait of the two forms of packets: unencrypted packets, whose content is visible, and packets that TLS encrypts.

use hol_base::Time;
use hol_transport::{DeliveryTimes, Event, Statistics};
use hol_wire::Ecn;

use crate::socket_address::SocketAddress;

/// Observes an endpoint's packets and reports when their octets were sent, acknowledged or lost.
pub trait PacketForm {
    /// A packet to be sent.
    type Packet;

    /// Accepts a datagram that quinn-proto has written for the peer, with its ECN codepoint. If `is_probing`,
    /// the datagram may contain a probe, because a timer expired without a detected loss.
    fn queue_datagram(
        &mut self,
        now: Time,
        remote: SocketAddress,
        datagram: (&[u8], Ecn),
        is_probing: bool,
        statistics: &mut Statistics,
    );

    /// Returns whether more may be sent now.
    fn has_room(&self) -> bool {
        true
    }

    /// Returns the next packet to send.
    fn next_packet(&mut self) -> Option<Self::Packet>;

    /// Handles the complete acknowledgment of a stream to the peer.
    fn on_stream_acknowledged(&mut self, stream: u64);

    /// Handles reading of a stream from the peer up to this offset; returns the times of the data.
    fn read(&mut self, now: Time, stream: u64, end: u64) -> DeliveryTimes;

    /// Handles the end of a stream from the peer.
    fn on_stream_ended(&mut self, stream: u64);
}

/// What an endpoint wants to be done next.
#[derive(Debug)]
pub enum EndpointOutput<P> {
    /// Send this packet.
    Transmit(P),
    /// Report to the application.
    Event(Event),
    /// Nothing to do until an input, or until this time.
    Wait(Option<Time>),
}
