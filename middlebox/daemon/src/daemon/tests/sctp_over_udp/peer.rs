//! An agent with its own UDP socket, and single packets.

use std::net::{IpAddr, UdpSocket};

use bytes::Bytes;
use hol_sctp::wire::sctp::{Chunk, Init, Packet, Parameter, Tsn};
use hol_sctp_udp::{Association, UdpPath, parse};
use hol_simco::{Body, Message, PAYLOAD_PROTOCOL, PORT, Reply, Request, Tid, Version};

use super::super::world::World;

/// An agent.
pub struct Peer {
    pub udp: UdpSocket,
    pub association: Association,
    /// Whether the agent reads its messages.
    pub reads: bool,
    /// The TID and the stream of each message that arrived in a single chunk.
    pub streams_seen: Vec<(u32, u16)>,
    last_tid: u32,
}

/// Returns a socket at an address of this host, connected to the daemon.
pub fn socket(world: &World, host: &str) -> UdpSocket {
    let udp = UdpSocket::bind((host.parse::<IpAddr>().unwrap(), 0)).unwrap();
    udp.connect(world.address).unwrap();
    udp.set_nonblocking(true).unwrap();
    udp
}

impl Peer {
    /// Opens an association.
    pub fn connect(world: &mut World, host: &str) -> Self {
        let mut peer = Self::begin(world, host);
        for _ in 0..100 {
            peer.exchange(world);
            if peer.association.is_established() {
                return peer;
            }
        }
        panic!("no association")
    }

    /// Begins an association.
    pub fn begin(world: &World, host: &str) -> Self {
        let udp = socket(world, host);
        let path = UdpPath { peer: world.address, local: udp.local_addr().unwrap().ip() };
        let association = Association::connect(world.daemon.clock.now(), path, PORT);
        Self { udp, association, reads: true, streams_seen: Vec::new(), last_tid: 1_000_000 }
    }

    /// Opens a session.
    pub fn session(world: &mut World, host: &str) -> Self {
        let mut peer = Self::connect(world, host);
        let answer = peer.ask(world, Request::Se { version: Version::SIMCO_3_0, challenge: None });
        assert!(matches!(answer, Body::Reply(Reply::Se { .. })), "{answer:?}");
        peer
    }

    /// Sends datagrams, lets the daemon perform a turn, and reads datagrams.
    pub fn exchange(&mut self, world: &mut World) {
        let mut buffer = [0; 2048];
        self.association.advance(world.daemon.clock.now());
        self.transmit();
        world.turn();
        while let Ok(length) = self.udp.recv(&mut buffer) {
            let packet = parse(&buffer[..length]).expect("the daemon sends valid packets");
            self.note_streams(&packet);
            self.association.receive(world.daemon.clock.now(), packet);
        }
        self.transmit();
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.association.next_datagram() {
            self.udp.send(&datagram).unwrap();
        }
    }

    fn note_streams(&mut self, packet: &Packet) {
        for chunk in &packet.chunks {
            if let Chunk::Data(data) = chunk
                && let Ok(message) = Message::parse(&data.payload)
            {
                self.streams_seen.push((message.tid.0, data.stream));
            }
        }
    }

    /// Sends a request; the daemon performs a turn.
    pub fn send(&mut self, world: &mut World, tid: u32, request: Request) {
        let octets = Message::request(Tid(tid), request).to_bytes();
        self.send_octets(world, (tid % u32::from(self.association.streams())) as u16, octets.to_vec());
    }

    /// Sends a message of any content.
    pub fn send_octets(&mut self, world: &mut World, stream: u16, octets: Vec<u8>) {
        assert!(self.association.queue(stream, PAYLOAD_PROTOCOL, octets.into()));
        self.association.flush();
        self.exchange(world);
    }

    /// Returns the next message; `None` if the association has ended.
    pub fn receive(&mut self, world: &mut World) -> Option<Message> {
        for _ in 0..1000 {
            if let Some(octets) = self.association.next_message() {
                self.transmit();
                return Some(Message::parse(&octets).unwrap());
            }
            if self.association.has_ended() {
                return None;
            }
            self.exchange(world);
        }
        panic!("the daemon says nothing")
    }

    /// Sends a request; returns the answer to it, skipping notifications.
    pub fn ask(&mut self, world: &mut World, request: Request) -> Body {
        self.last_tid += 1;
        self.send(world, self.last_tid, request);
        loop {
            match self.receive(world).expect("an answer").body {
                Body::Notification(_) => {}
                answer => return answer,
            }
        }
    }

    /// Continues from another UDP port, as behind a NAT with a new binding.
    pub fn move_to_another_port(&mut self, world: &World) {
        let host = self.udp.local_addr().unwrap().ip().to_string();
        self.udp = socket(world, &host);
    }
}

/// A peer that sends single packets.
pub struct Stranger {
    pub udp: UdpSocket,
    pub port: u16,
    pub tag: u32,
}

impl Stranger {
    pub fn new(world: &World, host: &str) -> Self {
        Self { udp: socket(world, host), port: 5000, tag: 0x1234_5678 }
    }

    pub fn packet(&self, verification_tag: u32, chunks: Vec<Chunk>) -> Bytes {
        let (source_port, destination_port, chunks) = (self.port, PORT, chunks.into());
        Packet { source_port, destination_port, verification_tag, zero_checksum: false, chunks }.to_bytes()
    }

    pub fn init(&self) -> Bytes {
        let init = Init {
            initiate_tag: self.tag,
            a_rwnd: 65_536,
            outbound_streams: 10,
            inbound_streams: 10,
            initial_tsn: Tsn(1),
            parameters: Vec::new(),
        };
        self.packet(0, vec![Chunk::Init(Box::new(init))])
    }

    pub fn send(&self, octets: &[u8]) {
        self.udp.send(octets).unwrap();
    }

    /// Returns the next packet of the daemon; `None` if there is none.
    pub fn receive(&self) -> Option<Packet> {
        let mut buffer = [0; 2048];
        let length = self.udp.recv(&mut buffer).ok()?;
        parse(&buffer[..length])
    }

    /// Sends INIT; returns the tag and the cookie of the INIT ACK.
    pub fn invitation(&self, world: &mut World) -> (u32, Bytes) {
        self.send(&self.init());
        world.turn();
        let packet = self.receive().expect("an INIT ACK");
        let [Chunk::InitAck(ack)] = &packet.chunks[..] else { panic!("{packet:?}") };
        let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        (ack.initiate_tag, cookie.unwrap())
    }

    /// Performs the handshake; returns the daemon's tag.
    pub fn join(&self, world: &mut World) -> u32 {
        let (tag, cookie) = self.invitation(world);
        self.send(&self.packet(tag, vec![Chunk::CookieEcho(cookie)]));
        world.turn();
        let packet = self.receive().expect("a COOKIE ACK");
        assert_eq!(packet.chunks[0], Chunk::CookieAck);
        tag
    }
}
