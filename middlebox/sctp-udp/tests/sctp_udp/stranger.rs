//! A peer that sends single packets.

use bytes::Bytes;
use hol_base::Time;
use hol_sctp::wire::sctp::{Chunk, Init, Packet, Parameter, Tsn};
use hol_sctp_udp::{Association, Port, PortOutput, UdpPath, parse};

pub const PORT: u16 = 7626;

/// A peer behind a UDP port.
#[derive(Debug, Clone, Copy)]
pub struct Stranger {
    pub path: UdpPath,
    pub port: u16,
    pub tag: u32,
}

/// The tag and the cookie of an INIT ACK.
pub type Invitation = (u32, Bytes);

/// Returns a path from this host and UDP port.
pub fn path(peer: &str) -> UdpPath {
    UdpPath { peer: peer.parse().unwrap(), local: "192.0.2.1".parse().unwrap() }
}

impl Stranger {
    pub fn new(peer: &str) -> Self {
        Self { path: path(peer), port: 5000, tag: 0x1234_5678 }
    }

    pub fn packet(self, verification_tag: u32, chunk: Chunk) -> Bytes {
        let chunks = vec![chunk].into();
        let (source_port, destination_port) = (self.port, PORT);
        Packet { source_port, destination_port, verification_tag, zero_checksum: false, chunks }.to_bytes()
    }

    pub fn init(self) -> Bytes {
        let init = Init {
            initiate_tag: self.tag,
            a_rwnd: 65_536,
            outbound_streams: 10,
            inbound_streams: 10,
            initial_tsn: Tsn(1),
            parameters: Vec::new(),
        };
        self.packet(0, Chunk::Init(Box::new(init)))
    }

    /// Sends INIT; returns the tag and the cookie of the INIT ACK.
    pub fn invitation(self, port: &mut Port<u32>) -> Invitation {
        let PortOutput::Datagram(answer) = port.answer(Time::ZERO, self.path, &self.init(), true) else {
            panic!("no INIT ACK")
        };
        let packet = parse(&answer).unwrap();
        assert_eq!(packet.verification_tag, self.tag);
        let [Chunk::InitAck(ack)] = &packet.chunks[..] else { panic!("{packet:?}") };
        let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        (ack.initiate_tag, cookie.unwrap())
    }

    pub fn cookie_echo(self, (tag, cookie): &Invitation) -> Bytes {
        self.packet(*tag, Chunk::CookieEcho(cookie.clone()))
    }

    /// Performs the handshake; returns the association if the port accepts it.
    pub fn accepted(self, port: &mut Port<u32>, invitation: &Invitation) -> Option<Association> {
        match port.answer(Time::ZERO, self.path, &self.cookie_echo(invitation), true) {
            PortOutput::Association(association) => Some(*association),
            _ => None,
        }
    }

    /// Performs the handshake, and adds the association to the port; returns its tag, and the association that it replaces.
    pub fn join(self, port: &mut Port<u32>, id: u32) -> (u32, Option<u32>) {
        let invitation = self.invitation(port);
        let association = self.accepted(port, &invitation).expect("an association");
        let tag = association.verification_tag();
        assert_eq!((tag, association.peer_port()), (invitation.0, self.port));
        (tag, port.add(id, self.path, self.port, tag))
    }
}
