//! Packets that belong to no association. RFC 9260 sections 8.4 and 8.5.

use hol_wire::sctp::{self, Cause, Chunk};
use smallvec::smallvec;

use crate::Endpoint;
use crate::receive::PacketAddresses;
use crate::state::State;

impl Endpoint {
    /// Answers an out-of-the-blue packet. RFC 9260 section 8.4.
    pub(crate) fn on_out_of_the_blue(&mut self, origin: PacketAddresses, packet: &sctp::Packet) {
        if let Some(answer) = response_to_out_of_the_blue(packet).filter(|_| origin.is_unicast()) {
            self.transmit_packet(origin.destination, origin.source, answer);
        }
    }

    /// Returns whether a packet belongs to no association of this host. A SHUTDOWN ACK that arrives during our
    /// handshake belongs to an earlier association. RFC 9260 section 8.5.1 E.
    pub(crate) fn is_out_of_the_blue(&self, packet: &sctp::Packet) -> bool {
        match self.state {
            State::Closed => true,
            State::CookieWait | State::CookieEchoed => packet.chunks.contains(&Chunk::ShutdownAck),
            _ => false,
        }
    }

    /// Sends one chunk to the source of a packet.
    pub(crate) fn answer(&mut self, origin: PacketAddresses, verification_tag: u32, chunk: Chunk) {
        // RFC 9653 section 5.2, restriction 1b.
        self.answer_with(origin, verification_tag, false, chunk);
    }

    /// Sends one chunk to the source of a packet, with a checksum of zero if `zero_checksum` is set.
    pub(crate) fn answer_with(
        &mut self,
        origin: PacketAddresses,
        verification_tag: u32,
        zero_checksum: bool,
        chunk: Chunk,
    ) {
        let packet = sctp::Packet {
            source_port: self.local_port,
            destination_port: origin.port,
            verification_tag,
            zero_checksum,
            chunks: smallvec![chunk],
        };
        self.transmit_packet(origin.destination, origin.source, packet);
    }
}

/// Returns a host's answer to a packet that belongs to none of its associations, such as one for a closed port.
/// `None` if the host must not answer. RFC 9260 section 8.4.
pub fn response_to_out_of_the_blue(packet: &sctp::Packet) -> Option<sctp::Packet> {
    let is_silent = |chunk: &Chunk| match chunk {
        Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
        Chunk::Error(causes) => causes.iter().any(|cause| matches!(cause, Cause::StaleCookie(_))),
        _ => false,
    };
    if packet.chunks.iter().any(is_silent) {
        return None;
    }
    let (verification_tag, chunk) = match packet.chunks.as_slice() {
        // The peer does not know our tag, but we know its tag.
        [Chunk::Init(init)] if packet.verification_tag == 0 => match init.initiate_tag {
            // Section 3.3.2.
            0 => return None,
            tag => (tag, Chunk::Abort { reflected: false, causes: Vec::new() }),
        },
        // Section 8.5.1 A.
        _ if packet.verification_tag == 0 => return None,
        _ if packet.chunks.contains(&Chunk::ShutdownAck) => {
            (packet.verification_tag, Chunk::ShutdownComplete { reflected: true })
        }
        _ => (packet.verification_tag, Chunk::Abort { reflected: true, causes: Vec::new() }),
    };
    Some(sctp::Packet {
        source_port: packet.destination_port,
        destination_port: packet.source_port,
        verification_tag,
        zero_checksum: false,
        chunks: smallvec![chunk],
    })
}
