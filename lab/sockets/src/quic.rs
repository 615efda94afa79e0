//! QUIC: quinn's with TLS, over UDP sockets that are connected to each other.
//!
//! Each end of a connection has a socket of its own. Nothing is fragmented. What ICMP says is left alone: RFC 9000 section 14.2.1.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hol_base::{ByteCount, Seed, Time};
use hol_quic::{Carriage, Config, Endpoint, KeyLog, Next, Sealed, Sending as Datagram, Tls};
use hol_system as system;
use hol_transport::{Command, Event, Framer, Message, Passage, Received, Reliability};
use hol_wire::{Address, Ecn, ip_header};
use hol_workloads::{LengthOf, Outgoing};
use socket2::Socket;

use crate::End;
use crate::assignment::{Counts, Site, SocketsError};
use crate::datagrams::Datagrams;
use crate::ip_options::IpOptions;
use crate::transceiver::{Fault, Heard, Opener, Sending, Sent, Transceiver};

/// Opens QUIC connections.
pub(crate) struct Quic {
    config: Arc<Config>,
    carriage: Carriage,
    length_of: LengthOf,
    tls: Tls,
    log: KeyLog,
    seed: Seed,
    /// Endpoints so far, for the names of their seeds.
    endpoints: Cell<u64>,
    /// Whether what an application sends at once shares datagrams, and several go to the kernel, or come from it, at a time.
    gathers: bool,
}

impl Quic {
    /// `shared`: what ends on two hosts both know.
    pub(crate) fn new(
        config: &Config,
        carriage: Carriage,
        length_of: LengthOf,
        seed: Seed,
        shared: Option<&[u8; 32]>,
        gathers: bool,
    ) -> Self {
        let log = KeyLog::default();
        let tls = match shared {
            Some(secret) => Tls::shared(secret, config, log.clone()),
            None => Tls::new(config, log.clone()),
        };
        Self {
            tls,
            config: Arc::new(config.clone()),
            carriage,
            length_of,
            log,
            seed: seed.derive("quic"),
            endpoints: Cell::new(0),
            gathers,
        }
    }

    fn socket(&self, site: &Site) -> Result<Socket, SocketsError> {
        Datagrams::open(site, self.config.ecn)
    }

    /// The end of a connection to `peer`.
    fn connection(&self, end: End, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        let number = self.endpoints.replace(self.endpoints.get() + 1);
        let rng = self.seed.derive(&format!("endpoint/{number}")).rng();
        let peer = (peer.addresses[0], peer.port);
        let config = within(&self.config, largest(&socket, peer.0));
        let endpoint = match end {
            End::Client => Endpoint::client(config, self.carriage, &self.tls, peer, rng),
            End::Server => Endpoint::server(config, self.carriage, &self.tls, rng),
        };
        let framing = (self.carriage == Carriage::Streams).then(|| (self.length_of, Vec::new()));
        Box::new(Connection {
            datagrams: Datagrams::over(socket, peer.0, self.gathers),
            gathers: self.gathers,
            peer,
            endpoint,
            begins: end == End::Client,
            framing,
            due: Time::MAX,
            events: VecDeque::new(),
        })
    }
}

/// The configuration, with datagrams that are no longer than the `largest`, if that is known.
fn within(config: &Arc<Config>, largest: Option<u64>) -> Arc<Config> {
    let Some(largest) = largest else { return Arc::clone(config) };
    let largest = largest.max(Config::LEAST_MTU);
    let [mtu, mtu_discovery] = [config.mtu, config.mtu_discovery].map(|size| ByteCount(size.0.min(largest)));
    Arc::new(Config { mtu, mtu_discovery, ..Config::clone(config) })
}

/// The payload that fits into the MTU of the path's first link, as a connected socket knows it. ip(7), IP_MTU.
fn largest(socket: &Socket, peer: Address) -> Option<u64> {
    let (mut mtu, options) = ([0u8; 4], IpOptions::of(peer));
    system::option(socket, options.level, options.mtu, &mut mtu).ok()?;
    Some(
        u64::from(u32::from_ne_bytes(mtu))
            .saturating_sub((ip_header(peer) + hol_wire::udp::Datagram::HEADER) as u64),
    )
}

impl Opener for Quic {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        self.socket(server)
    }

    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        Datagrams::connect(self.socket(client)?, server)
    }

    fn transceiver(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        self.connection(End::Client, socket, peer)
    }

    fn answerer(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        self.connection(End::Server, socket, peer)
    }

    fn accepts(&self) -> bool {
        false
    }

    fn has_timers(&self) -> bool {
        true
    }

    fn secrets(&self) -> String {
        self.log.lines()
    }
}

/// One end of a connection.
struct Connection {
    datagrams: Datagrams,
    /// Messages wait for [`Transceiver::send_all`].
    gathers: bool,
    peer: (Address, u16),
    endpoint: Endpoint<Sealed>,
    /// It is a client's, and has not begun.
    begins: bool,
    /// Of streams that carry octets: a framer for each.
    framing: Option<(LengthOf, Vec<Framer>)>,
    /// When quinn wants to act.
    due: Time,
    /// What it told, and nobody has heard.
    events: VecDeque<Event>,
}

impl Connection {
    /// Does what the endpoint wants, until it waits.
    fn drive(&mut self, now: Time) -> io::Result<()> {
        self.flush()?;
        loop {
            match self.endpoint.poll(now) {
                Next::Transmit(Datagram { octets, ecn }) => self.datagrams.push(octets, ecn),
                Next::Event(event) => self.events.push_back(event),
                Next::Wait(until) => {
                    self.due = until.unwrap_or(Time::MAX);
                    return self.flush();
                }
            }
        }
    }

    /// Sends what there is room for.
    fn flush(&mut self) -> io::Result<()> {
        self.datagrams.flush()?;
        self.endpoint.hold(self.datagrams.is_full());
        Ok(())
    }

    /// Tells what there is to tell.
    fn tell(&mut self, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        while let Some(event) = self.events.pop_front() {
            match event {
                // Of a connection that nobody knows to be open nobody hears more.
                Event::Connected => {
                    take(Heard::Up(0));
                    return Ok(());
                }
                Event::Received(received) => self.deliver(received, take)?,
                Event::Writable => take(Heard::Room),
                Event::PeerClosed => take(Heard::PeerClosed),
                Event::Closed => take(Heard::Closed),
                Event::Failed { reason } => return Err(Fault::Protocol(reason)),
                // Nobody hears of what is given up, in any protocol of this world.
                Event::Abandoned { .. } | Event::Path { .. } | Event::Reconfigured { .. } => {}
            }
        }
        Ok(())
    }

    fn deliver(&mut self, received: Received, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        let Received { stream, payload, .. } = received;
        let Some((length_of, framers)) = &mut self.framing else {
            take(Heard::Message(stream, payload));
            return Ok(());
        };
        let place = usize::from(stream);
        if place >= framers.len() {
            framers.resize_with(place + 1, || Framer::new(*length_of));
        }
        let framer = &mut framers[place];
        framer.push(payload, Passage::default());
        take(Heard::Part);
        while let Some(framed) = framer.next()? {
            take(Heard::Message(stream, framed.payload));
        }
        Ok(())
    }
}

impl Transceiver for Connection {
    fn socket(&self) -> &Socket {
        &self.datagrams.socket
    }

    fn is_open_when_writable(&self) -> bool {
        false
    }

    fn error(&self) -> io::Result<Option<io::Error>> {
        Ok(None)
    }

    fn send(&mut self, message: &Outgoing, now: Time) -> io::Result<Sent> {
        let reliability = Reliability::Full;
        let Outgoing { stream, payload, .. } = message;
        let message = Message {
            stream: *stream,
            unordered: self.framing.is_none(),
            reliability,
            ppid: 0,
            payload: payload.clone(),
        };
        if !self.endpoint.offer(now, message) {
            return Ok(Sent::WouldBlock);
        }
        if !self.gathers {
            self.drive(now)?;
        }
        Ok(Sent::Whole)
    }

    fn send_all(&mut self, now: Time) -> io::Result<()> {
        if self.gathers { self.drive(now) } else { Ok(()) }
    }

    fn receive(&mut self, buffer: &mut [u8], now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        let Self { datagrams, endpoint, peer, .. } = self;
        datagrams.receive_all(buffer, |octets, ecn| endpoint.hear_from(now, *peer, octets, ecn))?;
        self.drive(now)?;
        self.tell(take)
    }

    fn hear_early(&mut self, octets: Bytes, ecn: Ecn) {
        self.datagrams.hear_early(octets, ecn);
    }

    fn shutdown(&mut self, now: Time) -> io::Result<()> {
        self.endpoint.tell(now, Command::Close);
        self.drive(now)
    }

    fn due(&self) -> Time {
        if self.begins || !self.events.is_empty() { Time::ZERO } else { self.due }
    }

    fn act(&mut self, now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        if std::mem::take(&mut self.begins) {
            self.endpoint.tell(now, Command::Connect);
        }
        self.drive(now)?;
        self.tell(take)
    }

    fn waits_for_room(&self) -> bool {
        self.datagrams.is_full()
    }

    fn set_reading(&mut self, reads: bool, now: Time) -> bool {
        self.endpoint.tell(now, Command::Read(reads));
        // What follows is said when it is asked what it wants to do.
        self.due = Time::ZERO;
        true
    }

    fn speaks_for_itself(&self) -> bool {
        true
    }

    fn lingers(&self) -> bool {
        !self.endpoint.is_drained()
    }

    fn counts(&self) -> Counts {
        let statistics = self.endpoint.counts();
        Counts {
            packets_sent: statistics.packets_sent,
            packets_received: statistics.packets_received,
            retransmissions: self.endpoint.packets_lost(),
        }
    }

    fn sending(&self) -> Option<Sending> {
        let mut paths = Vec::new();
        self.endpoint.path(&mut |path| paths.push(path));
        self.endpoint.has_sent_data().then(|| Sending { paths, again: self.endpoint.packets_lost() })
    }
}
