//! An agent that authenticates, and then sends arbitrary octets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use hol_agent::nonces;
use hol_base::{Duration, Time};
use hol_simco::{
    AddressTuple, Addresses, Agent, AgentEvent, Body, Direction, Enable, Header, Lifetime, Location, Message,
    PerParameters, PortParity, Request, SharedSecret, Tid, Token, Version,
};
use rustix::time::{ClockId, clock_gettime};

pub const UDP: u8 = 17;
pub const SECRETS: &str =
    "attacker = '0123456789abcdef'\ninnocent = 'fedcba9876543210'\nwatcher = '0123456789fedcba'\n";

/// An agent's session with the daemon.
pub struct Peer {
    pub socket: TcpStream,
    received: Vec<u8>,
}

pub fn now() -> Time {
    let now = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

#[expect(clippy::disallowed_methods, reason = "agents act in real time")]
pub fn sleep(span: Duration) {
    thread::sleep(std::time::Duration::from_nanos(span.as_nanos()));
}

impl Peer {
    pub fn connect(address: SocketAddr, name: &str) -> Self {
        let socket = TcpStream::connect(address).expect("the daemon listens");
        socket.set_nodelay(true).expect("TCP");
        let mut peer = Self { socket, received: Vec::new() };
        let secret = SharedSecret::parse(name, SECRETS, nonces()).expect("the agent has a secret");
        let mut agent = Agent::new(Box::new(secret));
        let mut next = agent.establish().expect("the session is closed");
        loop {
            peer.send(&next.to_bytes());
            let answer = peer.receive().expect("an answer");
            match agent.receive(&answer.to_bytes()).expect("a valid message") {
                AgentEvent::Authenticate(sa) => next = sa,
                AgentEvent::Open(_) => return peer,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Tries to open a session with a wrong secret; returns true if it is refused.
    pub fn is_refused(address: SocketAddr) -> bool {
        let socket = TcpStream::connect(address).expect("the daemon listens");
        let mut peer = Self { socket, received: Vec::new() };
        peer.send(&octets(Request::Se { version: Version::SIMCO_3_0, challenge: None }));
        if peer.receive().is_none() {
            return true;
        }
        peer.send(&octets(Request::Sa { token: Some(Token::new(vec![0; 32])) }));
        !matches!(peer.receive(), Some(Message { body: Body::Reply(_), .. }))
    }

    pub fn send(&mut self, octets: &[u8]) {
        self.socket.write_all(octets).expect("the daemon runs");
    }

    /// Returns the next message from the daemon; `None` if the daemon has closed the connection.
    pub fn receive(&mut self) -> Option<Message> {
        let mut piece = [0; 1 << 16];
        loop {
            if let Some(length) = Header::parse(&self.received).map(|header| header.message_length())
                && length <= self.received.len()
            {
                let message = Message::parse(&self.received[..length]).expect("a message");
                self.received.drain(..length);
                return Some(message);
            }
            match self.socket.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.received.extend(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Returns the answer to the last request; notifications before it are skipped.
    pub fn answer(&mut self) -> Body {
        loop {
            match self.receive().expect("an answer").body {
                Body::Notification(_) => {}
                body => return body,
            }
        }
    }

    /// Reads `octets` octets from the daemon without parsing them.
    pub fn skip_octets(&mut self, mut octets: usize) {
        let mut piece = [0; 1 << 16];
        while octets > 0 {
            let count = self.socket.read(&mut piece).expect("answers");
            assert!(count > 0, "the daemon has closed the connection");
            octets = octets.saturating_sub(count);
        }
    }
}

/// Returns an address tuple with `ports` consecutive ports from the given one on.
pub fn tuple(location: Location, host: ([u8; 4], u16), ports: u16) -> AddressTuple {
    let mut tuple = AddressTuple::of_host(location, UDP, SocketAddr::from(host));
    if let Addresses::Full { port_range, .. } = &mut tuple.addresses {
        *port_range = ports;
    }
    tuple
}

/// Returns an encoded PER request (RFC 4540), which enables a pinhole for one hour.
pub fn per(internal: AddressTuple, external: AddressTuple) -> Vec<u8> {
    per_for(Lifetime(3600), internal, external)
}

pub fn per_for(lifetime: Lifetime, internal: AddressTuple, external: AddressTuple) -> Vec<u8> {
    octets(enable(lifetime, internal, external))
}

pub fn enable(lifetime: Lifetime, internal: AddressTuple, external: AddressTuple) -> Request {
    let parameters = PerParameters { parity: PortParity::Any, direction: Direction::Inbound };
    Request::Per { enable: Enable { parameters, internal, external, lifetime }, gid: None }
}

pub fn pdr(internal: AddressTuple, external: AddressTuple) -> Vec<u8> {
    octets(Request::Pdr { internal, external, lifetime: Lifetime(3600) })
}

pub fn octets(request: Request) -> Vec<u8> {
    Message::request(Tid(1), request).to_bytes().to_vec()
}
