//! Packets that belong to no association. RFC 9260 sections 8.4 and 8.5.

use hol_wire::sctp::{self, Cause, Chunk};
use smallvec::smallvec;

use crate::Endpoint;
use crate::receive::Origin;
use crate::state::State;

impl Endpoint {
    /// Section 8.4.
    pub(crate) fn on_out_of_the_blue(&mut self, origin: Origin, packet: &sctp::Packet) {
        if let Some(answer) = answer_to_stray(packet) {
            self.transmit_packet(origin.destination, origin.source, answer);
        }
    }

    /// A packet with a tag that is not ours is dropped, but a SHUTDOWN ACK that comes while we open is from
    /// an association that we have forgotten. Section 8.5.1 E.
    pub(crate) fn on_wrong_tag(&mut self, origin: Origin, first: &Chunk) {
        let opening = matches!(self.state, State::CookieWait | State::CookieEchoed);
        if opening && matches!(first, Chunk::ShutdownAck) {
            let complete = Chunk::ShutdownComplete { reflected: true };
            self.answer(origin, origin.verification_tag, complete);
        }
    }

    /// ABORT with the sender's own tag.
    pub(crate) fn refuse(&mut self, origin: Origin) {
        let abort = Chunk::Abort { reflected: true, causes: Vec::new() };
        self.answer(origin, origin.verification_tag, abort);
    }

    /// Sends one chunk back to where a packet came from.
    pub(crate) fn answer(&mut self, origin: Origin, verification_tag: u32, chunk: Chunk) {
        let packet = sctp::Packet {
            source_port: self.local_port,
            destination_port: origin.port,
            verification_tag,
            chunks: smallvec![chunk],
        };
        self.transmit_packet(origin.destination, origin.source, packet);
    }
}

/// What a host says to a packet that belongs to none of its associations, as when nobody listens. Section 8.4.
pub fn answer_to_stray(packet: &sctp::Packet) -> Option<sctp::Packet> {
    let is_silent = |chunk: &Chunk| match chunk {
        Chunk::Abort { .. } | Chunk::ShutdownComplete { .. } | Chunk::CookieAck => true,
        Chunk::Error(causes) => causes.iter().any(|cause| matches!(cause, Cause::StaleCookie(_))),
        _ => false,
    };
    if packet.chunks.iter().any(is_silent) {
        return None;
    }
    let (verification_tag, chunk) = match packet.chunks.first() {
        // It does not know our tag, but we know its own.
        Some(Chunk::Init(init)) => (init.initiate_tag, Chunk::Abort { reflected: false, causes: Vec::new() }),
        _ if packet.chunks.contains(&Chunk::ShutdownAck) => {
            (packet.verification_tag, Chunk::ShutdownComplete { reflected: true })
        }
        _ => (packet.verification_tag, Chunk::Abort { reflected: true, causes: Vec::new() }),
    };
    Some(sctp::Packet {
        source_port: packet.destination_port,
        destination_port: packet.source_port,
        verification_tag,
        chunks: smallvec![chunk],
    })
}
