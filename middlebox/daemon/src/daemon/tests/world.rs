//! A daemon whose turns the test controls, and agents that talk to it.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use hol_agent::nonces;
use hol_base::{Duration, Time};
use hol_filter::{NullFilter, PacketFilter};
use hol_journal::Journal;
use hol_simco::{
    AddressTuple, Agent, AgentEvent, Authentication, Config, Credentials, Direction, Enable, Lifetime,
    Location, Message, Middlebox, PerParameters, Pid, Policy, PortParity, Refusal, Reply, Request,
    SharedSecret, Unauthenticated, length_of,
};
use hol_system::{Events, Interest, Poller};
use rustls::ServerConfig;

use super::super::Daemon;
use crate::clock::Clock;
use crate::event_source::Token;
use crate::listeners::Listeners;
use crate::rule_store::RuleStore;
use crate::sctp_port::SctpPort;
use crate::{Level, Limits, ListenAddress, Log, Transport};

/// A daemon on a port of the loopback interface.
pub struct World {
    pub daemon: Daemon,
    pub address: SocketAddr,
    /// The test stops the daemon by writing to the first socket, or closing it.
    pub stop: (UnixStream, UnixStream),
}

/// The parts of a world.
pub struct Plan {
    pub transport: Transport,
    pub address: SocketAddr,
    pub limits: Limits,
    pub policy: Policy,
    pub filter: Box<dyn PacketFilter>,
    pub journal: Option<Journal>,
    /// The authentication of agents.
    pub authentication: Box<dyn Authentication>,
    pub config: Config,
    /// The TLS configuration, if `transport` is TLS.
    pub tls: Option<Arc<ServerConfig>>,
    /// Maximum time for repeating rejected batches.
    pub max_repeat_time: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            address: "127.0.0.1:0".parse().unwrap(),
            limits: Limits::default(),
            policy: Policy::permissive(),
            filter: Box::new(NullFilter),
            journal: None,
            authentication: Box::new(Unauthenticated),
            config: Config::firewall(Lifetime(3600)),
            tls: None,
            // The speed of the machine that runs the tests is irrelevant.
            max_repeat_time: Duration::from_secs(3600),
        }
    }
}

impl Plan {
    pub fn open(self) -> World {
        let mut daemon = self.daemon();
        daemon.become_ready().unwrap();
        World::of(daemon)
    }

    /// Returns a daemon that has not begun.
    pub fn daemon(self) -> Daemon {
        let middlebox = Middlebox::new(self.config, self.policy, self.authentication).unwrap();
        let listen = ListenAddress { transport: self.transport, address: self.address, is_protected: false };
        let clock = Clock::start();
        let rule_store =
            RuleStore::new(clock, self.filter, self.journal).with_max_repeat_time(self.max_repeat_time);
        let log = Log::new(Level::Error, Box::new(io::sink()));
        let poller = Poller::new().unwrap();
        let listeners = Listeners::open(&[listen], None, self.tls, &poller).unwrap();
        let sctp_ports = SctpPort::open_all(&[listen], None).unwrap();
        let mut daemon =
            Daemon::new(clock, poller, listeners, None, middlebox, rule_store, self.limits, log).unwrap();
        daemon.enable_sctp_over_udp(sctp_ports).unwrap();
        daemon
    }
}

impl World {
    pub fn new() -> Self {
        Plan::default().open()
    }

    pub fn of(daemon: Daemon) -> Self {
        let address = daemon.addresses().next().unwrap().address;
        let stop = UnixStream::pair().unwrap();
        daemon.poller.add(&stop.1, Token::Stop, Interest::Read).unwrap();
        Self { daemon, address, stop }
    }

    /// Performs a turn within a moment; returns false if there was nothing to do.
    pub fn turn(&mut self) -> bool {
        let mut ready = Events::with_capacity(Daemon::MAX_READY);
        let patience =
            self.daemon.time_to_next_action().unwrap_or(Duration::MAX).min(Duration::from_millis(20));
        let has_waiting_messages = self.daemon.connections.wake_at() == Time::ZERO;
        self.daemon.poller.wait(Some(patience), &mut ready).unwrap();
        self.daemon.turn(&ready, &self.stop.1).unwrap();
        has_waiting_messages || !ready.is_empty()
    }

    /// Performs turns until nothing is ready.
    pub fn settle(&mut self) {
        while self.turn() {}
    }

    /// Lets time pass without a turn, then performs the turns that are due.
    pub fn skip(&mut self, span: Duration) {
        self.daemon.clock.skip(span);
        self.settle();
    }

    /// Opens a connection that sends nothing.
    pub fn connect(&mut self) -> TcpStream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_nonblocking(true).unwrap();
        self.turn();
        socket
    }

    /// Opens a session of an anonymous agent.
    pub fn agent(&mut self) -> Client {
        self.agent_with(Box::new(Unauthenticated))
    }

    /// Opens a session of the agent with this name.
    pub fn agent_named(&mut self, name: &str) -> Client {
        self.agent_with(Box::new(SharedSecret::parse(name, SECRETS, nonces()).unwrap()))
    }

    fn agent_with(&mut self, credentials: Box<dyn Credentials>) -> Client {
        let mut client =
            Client { socket: self.connect(), agent: Agent::new(credentials), received: Vec::new() };
        let mut send_octets = client.agent.establish().unwrap();
        loop {
            client.write(&send_octets.to_bytes());
            match client.receive(self) {
                Some(AgentEvent::Authenticate(sa)) => send_octets = sa,
                Some(AgentEvent::Open(_)) => return client,
                other => panic!("no session: {other:?}"),
            }
        }
    }
}

/// The secrets of the named agents.
pub const SECRETS: &str = "attacker = '0123456789abcdef'\ninnocent = 'fedcba9876543210'\n";

/// Reads until the daemon closes or sends no more; returns true if it has closed.
pub fn drain(world: &mut World, socket: &mut TcpStream, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    let mut silent = 0;
    while silent < 5 {
        match socket.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => into.extend(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => silent += u32::from(!world.turn()),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return true,
            Err(error) => panic!("{error}"),
        }
    }
    false
}

/// An agent on a non-blocking socket.
pub struct Client {
    pub socket: TcpStream,
    pub agent: Agent,
    received: Vec<u8>,
}

impl Client {
    pub fn write(&mut self, octets: &[u8]) {
        self.socket.write_all(octets).expect("the kernel has room for what tests write");
    }

    /// Returns the next message; `None` if the connection is closed.
    pub fn receive(&mut self, world: &mut World) -> Option<AgentEvent> {
        let octets = self.receive_octets(world)?;
        Some(self.agent.receive(&octets).unwrap())
    }

    /// Performs turns until something has arrived; returns their number.
    pub fn turns_until_answered(&mut self, world: &mut World) -> usize {
        for turns in 0..100_000 {
            let mut octet = [0];
            if self.socket.peek(&mut octet).is_ok_and(|count| count > 0) {
                return turns;
            }
            world.turn();
        }
        panic!("the daemon says nothing")
    }

    fn receive_octets(&mut self, world: &mut World) -> Option<Vec<u8>> {
        let mut buffer = [0; 1 << 16];
        for _ in 0..1000 {
            if let Some(length) = length_of(&self.received).filter(|length| *length <= self.received.len()) {
                return Some(self.received.drain(..length).collect());
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => drop(world.turn()),
                Err(_) => return None,
            }
        }
        panic!("the daemon says nothing")
    }

    /// Sends octets other than a request of the agent; returns the answer.
    pub fn send_octets(&mut self, world: &mut World, octets: &[u8]) -> Option<Message> {
        self.write(octets);
        self.receive_octets(world).map(|octets| Message::parse(&octets).unwrap())
    }

    /// Sends a request; returns its answer.
    pub fn ask(&mut self, world: &mut World, request: Request) -> Result<Reply, Refusal> {
        let request = self.agent.ask(request).unwrap();
        self.write(&request.to_bytes());
        self.answer(world)
    }

    pub fn answer(&mut self, world: &mut World) -> Result<Reply, Refusal> {
        loop {
            match self.receive(world) {
                Some(AgentEvent::Answer(_, answer)) => return answer,
                Some(AgentEvent::RuleEvent(..)) => {}
                other => panic!("no answer: {other:?}"),
            }
        }
    }

    pub fn enable(&mut self, world: &mut World, port: u16, lifetime: u32) -> Result<Pid, Refusal> {
        match self.ask(world, per(port, lifetime))? {
            Reply::Per(granted) => Ok(granted.pid),
            other => panic!("PER is answered by {other:?}"),
        }
    }

    pub fn list(&mut self, world: &mut World) -> Vec<Pid> {
        match self.ask(world, Request::Prl) {
            Ok(Reply::Prl(pids)) => pids,
            other => panic!("PRL is answered by {other:?}"),
        }
    }
}

/// Returns a request for a UDP pinhole to a port of an internal host.
pub fn per(port: u16, lifetime: u32) -> Request {
    const UDP: u8 = 17;
    let internal = SocketAddr::from(([192, 0, 2, 1], port));
    let enable = Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, internal),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        lifetime: Lifetime(lifetime),
    };
    Request::Per { enable, gid: None }
}
