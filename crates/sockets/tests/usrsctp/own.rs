//! Our end: the endpoint of the model world over a socket of UDP and the real clock.

#![expect(clippy::disallowed_types, reason = "the peer is a program with a clock of its own")]

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

use bytes::Bytes;
use hol_base::{Duration, Rng, Seed, Time};
use hol_sctp::Endpoint;
use hol_stack::{Protocol, TransportSpec};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability};
use hol_wire::sctp::Packet;
use hol_wire::{Address, Transport};

use super::Talk;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

impl Side {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }

    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Client => 5001,
            Self::Server => 5000,
        }
    }
}

/// How an association ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// In an orderly way.
    Closed,
    /// By the peer.
    Reset,
    /// By us.
    Aborted,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Done {
    pub got: u32,
    pub wrong: u32,
    pub ended: Option<Ended>,
}

pub struct Own {
    side: Side,
    socket: UdpSocket,
    endpoint: Endpoint,
    start: Instant,
    loss: f64,
    chance: Rng,
    done: Done,
    connected: bool,
    sent: u32,
    to_echo: Vec<Message>,
    ending: bool,
}

const HERE: Address = hol_wire::ipv4(127, 0, 0, 1);

impl Own {
    /// No run takes longer.
    const LIMIT: Duration = Duration::from_secs(30);
    /// So long it answers when all is over, for its last packet may be lost.
    const LINGER: Duration = Duration::from_millis(500);

    pub fn new(side: Side, talk: &Talk, [own, peer]: [u16; 2], loss: f64, seed: u64) -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", own)).unwrap();
        socket.connect(("127.0.0.1", peer)).unwrap();
        let rng = |name: &str| Seed(seed).derive(name).rng();
        let text = format!(
            "sctp:streams={},mtu=1400B,receive_buffer=1MB,send_buffer=1MB,rto_initial=100ms,rto_min=50ms,rto_max=1s,wakeup=0s",
            talk.streams
        );
        let transport: TransportSpec = text.parse().unwrap();
        let Protocol::Sctp { config, .. } = transport.protocol() else { panic!("{text}") };
        let (port, remote) = (side.port(), side.other().port());
        let endpoint = match side {
            Side::Client => {
                Endpoint::connect(config.clone(), vec![HERE], port, vec![HERE], remote, rng("endpoint"))
            }
            Side::Server => Endpoint::listen(config.clone(), vec![HERE], port, rng("endpoint")),
        };
        Self {
            side,
            socket,
            endpoint,
            start: Instant::now(),
            loss,
            chance: rng("loss"),
            done: Done::default(),
            connected: false,
            sent: 0,
            to_echo: Vec::new(),
            ending: false,
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.start.elapsed().as_nanos() as u64)
    }

    /// Until it is over.
    pub fn talk(&mut self, talk: &Talk) -> Done {
        if self.side == Side::Client {
            self.tell(Command::Connect);
        }
        let mut until = Time::ZERO + Self::LIMIT;
        while self.now() < until {
            let due = self.drive(talk);
            if self.done.ended.is_some() {
                until = until.min(self.now() + Self::LINGER);
            } else if self.say(talk) {
                continue;
            }
            self.listen(due);
            if self.done.ended.is_some() && until > self.now() + Self::LINGER {
                until = self.now() + Self::LINGER;
            }
        }
        std::mem::take(&mut self.done)
    }

    fn tell(&mut self, command: Command) {
        let now = self.now();
        self.endpoint.handle(now, Input::Command(command));
    }

    /// Does what the endpoint wants, until it waits; until when.
    fn drive(&mut self, talk: &Talk) -> Option<Time> {
        loop {
            let now = self.now();
            match self.endpoint.poll(now) {
                Output::Transmit(packet) => {
                    if let Transport::Sctp(sctp) = &packet.transport
                        && !self.chance.chance(self.loss)
                    {
                        let _ = self.socket.send(&sctp.to_bytes());
                    }
                }
                Output::Event(event) => self.hear(event, talk),
                Output::Wait(until) => return until,
            }
        }
    }

    fn hear(&mut self, event: Event, talk: &Talk) {
        match event {
            Event::Connected => self.connected = true,
            Event::Received(received) => {
                self.done.got += 1;
                self.done.wrong += u32::from(!is_whole(&received.payload, talk.size));
                if self.side == Side::Server && talk.echo {
                    self.to_echo.push(message(received.stream, talk, received.payload, true));
                }
            }
            Event::PeerClosed => self.tell(Command::Close),
            Event::Closed => self.done.ended = Some(Ended::Closed),
            Event::Failed { .. } => {
                self.done.ended.get_or_insert(if self.ending { Ended::Aborted } else { Ended::Reset });
            }
            Event::Writable | Event::Abandoned { .. } | Event::Path { .. } => {}
        }
    }

    /// Sends what there is to send, and ends what is done; whether anything was.
    fn say(&mut self, talk: &Talk) -> bool {
        let mut has_said = false;
        while self.side == Side::Client
            && self.connected
            && self.sent < talk.messages
            && self.endpoint.can_send(talk.size)
        {
            let stream = (self.sent % u32::from(talk.streams)) as u16;
            let is_last = self.sent + u32::from(talk.streams) >= talk.messages;
            let message = message(stream, talk, filled(self.sent, talk.size), is_last);
            self.tell(Command::Send(message));
            self.sent += 1;
            has_said = true;
        }
        while !self.to_echo.is_empty() && self.endpoint.can_send(talk.size) {
            let message = self.to_echo.remove(0);
            self.tell(Command::Send(message));
            has_said = true;
        }
        let has_all = match self.side {
            Side::Client => self.sent == talk.messages && (!talk.echo || self.done.got == talk.messages),
            Side::Server => self.done.got == talk.messages && self.to_echo.is_empty(),
        };
        if has_all && !self.ending && talk.end.by() == self.side {
            self.ending = true;
            self.tell(if talk.end.is_abort() { Command::Abort } else { Command::Close });
            return true;
        }
        has_said
    }

    /// Waits for a packet, at most until the endpoint is due, and takes it.
    fn listen(&mut self, due: Option<Time>) {
        const MOST: Duration = Duration::from_millis(20);
        let wait = due.map_or(MOST, |due| due.saturating_since(self.now()).min(MOST));
        let wait = std::time::Duration::from_nanos(wait.as_nanos().max(1000));
        self.socket.set_read_timeout(Some(wait)).unwrap();
        let mut octets = [0; 1 << 16];
        match self.socket.recv(&mut octets) {
            Ok(length) if !self.chance.chance(self.loss) => {
                let packet = Packet::parse(Bytes::copy_from_slice(&octets[..length])).unwrap();
                let now = self.now();
                self.endpoint.handle(now, Input::Packet(hol_wire::Packet::new(HERE, HERE, packet)));
            }
            Ok(_) => {}
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

fn message(stream: u16, talk: &Talk, payload: Bytes, is_last: bool) -> Message {
    let reliability =
        talk.retransmissions.filter(|_| !is_last).map_or(Reliability::Full, Reliability::Retransmissions);
    Message { stream, unordered: talk.unordered, reliability, ppid: 0, payload }
}

/// A message says its number, and all octets behind that follow from it.
fn filled(number: u32, size: usize) -> Bytes {
    let octet = |at: usize| (number.wrapping_mul(31).wrapping_add(at as u32 * 7)) as u8;
    number.to_be_bytes().into_iter().chain((4..size).map(octet)).collect()
}

fn is_whole(payload: &Bytes, size: usize) -> bool {
    let number = payload.first_chunk().map(|octets| u32::from_be_bytes(*octets));
    payload.len() == size && number.is_some_and(|number| filled(number, size) == *payload)
}
