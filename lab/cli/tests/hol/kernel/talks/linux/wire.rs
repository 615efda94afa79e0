//! Our end, over a UDP socket and the real clock.

#![expect(clippy::disallowed_types, reason = "the peer is a program with a clock of its own")]

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::Endpoint;
use hol_wire::sctp::{Chunk, Packet};
use hol_wire::{Address, Transport};

use super::table::{self, Done, Side, Talk, Talker, Terms};

pub struct Wire {
    socket: UdpSocket,
    talker: Talker<Endpoint>,
    start: Instant,
    loss: f64,
    chance: Rng,
    /// Whether either end has sent I-DATA.
    pub has_interleaved: bool,
}

const HERE: Address = table::HERE;

/// The UDP port on which the peer's kernel receives encapsulated packets. RFC 6951 section 5.1.
pub const SCTP_OVER_UDP: u16 = 9899;

impl Wire {
    /// Maximum duration of a talk.
    const LIMIT: Duration = Duration::from_secs(30);
    /// Time for which this end answers after the talk is complete, because its last packet may be lost.
    const LINGER: Duration = Duration::from_millis(500);

    pub fn new(side: Side, talk: &Talk, terms: Terms, loss: f64, seed: Seed) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        socket.connect(("127.0.0.1", SCTP_OVER_UDP)).unwrap();
        let talker = Talker::new(side, talk, table::own(side, talk, terms, seed));
        let chance = seed.derive("loss").rng();
        Self { socket, talker, start: Instant::now(), loss, chance, has_interleaved: false }
    }

    /// Returns our UDP port.
    pub fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Runs the talk until it is complete.
    pub fn talk(&mut self) -> Done {
        self.talker.begin(self.now());
        let mut until = Time::ZERO + Self::LIMIT;
        while self.now() < until {
            let was_over = self.talker.done.ended.is_some();
            let due = self.perform_due();
            if self.talker.done.ended.is_some() && !was_over {
                until = until.min(self.now() + Self::LINGER);
            }
            self.listen(due);
        }
        self.talker.done.clone()
    }

    /// Performs what is due; returns the time of the next action.
    fn perform_due(&mut self) -> Option<Time> {
        let now = self.now();
        let Self { socket, talker, loss, chance, has_interleaved, .. } = self;
        talker.go_on(now, |packet| {
            let Transport::Sctp(sctp) = &packet.transport else { return };
            *has_interleaved |= interleaves(sctp);
            if !chance.chance(*loss) || aborts(sctp) {
                let _ = socket.send(&sctp.to_bytes());
            }
        })
    }

    /// Waits for a packet, at most until the endpoint is due, and passes it to the endpoint.
    fn listen(&mut self, due: Option<Time>) {
        const MAX: Duration = Duration::from_millis(20);
        let wait = due.map_or(MAX, |due| due.saturating_since(self.now()).min(MAX));
        let wait = std::time::Duration::from_nanos(wait.as_nanos().max(1000));
        self.socket.set_read_timeout(Some(wait)).unwrap();
        let mut octets = [0; 1 << 16];
        match self.socket.recv(&mut octets) {
            Ok(length) => {
                let packet = Packet::parse(Bytes::copy_from_slice(&octets[..length])).unwrap();
                if self.chance.chance(self.loss) && !aborts(&packet) {
                    return;
                }
                self.has_interleaved |= interleaves(&packet);
                let now = self.now();
                self.talker.arrives(now, hol_wire::Packet::new(HERE, HERE, packet));
            }
            Err(error) => assert!(
                matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                ),
                "{error}"
            ),
        }
    }
}

fn interleaves(packet: &Packet) -> bool {
    packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::IData(_)))
}

/// Returns whether a packet contains an ABORT. It must not be lost, because it is not retransmitted: an idle peer would
/// notice the end only with its next HEARTBEAT, half a minute later. RFC 9260 section 8.3.
fn aborts(packet: &Packet) -> bool {
    packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Abort { .. }))
}
