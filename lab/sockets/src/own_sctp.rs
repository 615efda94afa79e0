//! SCTP without a kernel that has it: the model's endpoint, whose packets go in datagrams of UDP. RFC 6951.
//!
//! Each association has a socket of its own at each end, and one path. Tags, TSNs and the secret of the cookies are chance, not the
//! run's seed, for others may be on the network.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use hol_base::{ByteCount, Duration, Rng, Seed, Time};
use hol_sctp::{Config, Endpoint};
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability};
use hol_wire::sctp::Packet;
use hol_wire::{Address, Ecn, Transport};
use hol_workloads::{Outgoing, Terms};
use socket2::Socket;

use crate::End;
use crate::assignment::{Counts, Site, SocketsError};
use crate::datagrams::Datagrams;
use crate::ip_options::unspecified;
use crate::transceiver::{Fault, Heard, Opener, Sending, Sent, Transceiver, refused};

/// Opens associations.
#[derive(Debug)]
pub(crate) struct OwnSctp {
    config: Arc<Config>,
    unordered: bool,
    reliability: Reliability,
    /// Whether several datagrams go to the kernel, or come from it, at a time.
    gathers: bool,
}

impl OwnSctp {
    /// Octets of UDP's header, by which packets are shorter. RFC 6951 section 5.6.
    const ENCAPSULATION: u64 = 8;

    pub(crate) fn new(config: &Config, unordered: bool, reliability: Reliability, gathers: bool) -> Self {
        let mtu = ByteCount(config.mtu.0.saturating_sub(Self::ENCAPSULATION));
        // The kernel wakes the program when it does.
        let config = Config { mtu, wakeup: Duration::ZERO, ..config.clone() };
        Self { config: Arc::new(config), unordered, reliability, gathers }
    }

    fn socket(&self, site: &Site) -> Result<Socket, SocketsError> {
        let socket = Datagrams::open(site, self.config.ecn)?;
        // What the peer may send at once has room, with what the kernel adds to it, as far as the system allows.
        let room = usize::try_from(4 * self.config.receive_buffer.0).unwrap_or(usize::MAX);
        socket.set_recv_buffer_size(room.min(1 << 26)).map_err(refused("set SO_RCVBUF"))?;
        Ok(socket)
    }

    fn association(&self, end: End, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        let site = |address: socket2::SockAddr| address.as_socket();
        // Whoever has no address yet gets none by asking, and has its packets go nowhere.
        let own = socket.local_addr().ok().and_then(site);
        let (remote, remote_port) = (peer.addresses[0], peer.port);
        let (address, port) = own.map_or((unspecified(remote), 0), |own| (own.ip(), own.port()));
        let config = Arc::clone(&self.config);
        let endpoint = match end {
            End::Client => {
                Endpoint::connect(config, vec![address], port, vec![remote], remote_port, chance())
            }
            End::Server => Endpoint::listen(config, vec![address], port, chance()),
        };
        Box::new(Association {
            datagrams: Datagrams::over(socket, remote, self.gathers),
            endpoint,
            local: address,
            remote,
            begins: end == End::Client,
            unordered: self.unordered,
            reliability: self.reliability,
            due: Time::MAX,
            events: VecDeque::new(),
            linger: self.config.rto_initial,
            rests_at: None,
        })
    }
}

/// Numbers that nobody can foresee.
fn chance() -> Rng {
    let mut octets = [0; 8];
    getrandom::fill(&mut octets).expect("Linux has random numbers");
    Seed(u64::from_ne_bytes(octets)).rng()
}

impl Opener for OwnSctp {
    fn listen(&self, server: &Site) -> Result<Socket, SocketsError> {
        self.socket(server)
    }

    fn connect(&self, client: &Site, server: &Site) -> Result<Socket, SocketsError> {
        Datagrams::connect(self.socket(client)?, server)
    }

    fn transceiver(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        self.association(End::Client, socket, peer)
    }

    fn answerer(&self, socket: Socket, peer: &Site) -> Box<dyn Transceiver> {
        self.association(End::Server, socket, peer)
    }

    fn accepts(&self) -> bool {
        false
    }

    fn has_timers(&self) -> bool {
        true
    }
}

/// One end of an association.
#[derive(Debug)]
struct Association {
    datagrams: Datagrams,
    endpoint: Endpoint,
    local: Address,
    remote: Address,
    /// It is a client's, and has not begun.
    begins: bool,
    unordered: bool,
    reliability: Reliability,
    /// When the endpoint wants to act.
    due: Time,
    /// What it told, and nobody has heard.
    events: VecDeque<Event>,
    /// It answers so long after its end: a peer whose SHUTDOWN COMPLETE was lost asks again. RFC 9260 section 8.4, rule 5.
    linger: Duration,
    /// Until then it does.
    rests_at: Option<Time>,
}

impl Association {
    /// Does what the endpoint wants, until it waits.
    fn drive(&mut self, now: Time) -> io::Result<()> {
        loop {
            match self.endpoint.poll(now) {
                Output::Transmit(packet) => {
                    if let Transport::Sctp(sctp) = &packet.transport {
                        self.datagrams.push(sctp.to_bytes(), packet.ecn);
                    }
                }
                Output::Event(event) => self.events.push_back(event),
                Output::Wait(until) => {
                    self.due = until.unwrap_or(Time::MAX);
                    return self.datagrams.flush();
                }
            }
        }
    }

    /// Tells what there is to tell.
    fn tell(&mut self, now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        while let Some(event) = self.events.pop_front() {
            match event {
                // Of an association that nobody knows to be up nobody hears more.
                Event::Connected => {
                    take(Heard::Up(0));
                    return Ok(());
                }
                Event::Received(received) => take(Heard::Message(received.stream, received.payload)),
                Event::Writable => take(Heard::Room),
                Event::PeerClosed => take(Heard::PeerClosed),
                Event::Closed => {
                    self.rests_at = Some(now + self.linger);
                    take(Heard::Closed);
                }
                Event::Failed { reason } => return Err(Fault::Protocol(reason)),
                Event::Path { address, status } => take(Heard::Path(address, status)),
                // Nobody hears of what is given up, in any protocol of this world.
                Event::Abandoned { .. } | Event::Reconfigured { .. } => {}
            }
        }
        Ok(())
    }
}

impl Transceiver for Association {
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
        let Outgoing { stream, payload, terms, .. } = message;
        if !self.endpoint.can_send(payload.len()) {
            return Ok(Sent::WouldBlock);
        }
        let usual = Terms { unordered: self.unordered, reliability: self.reliability };
        let Terms { unordered, reliability } = terms.unwrap_or(usual);
        let message = Message { stream: *stream, unordered, reliability, ppid: 0, payload: payload.clone() };
        self.endpoint.queue(now, message);
        Ok(Sent::Whole)
    }

    fn send_all(&mut self, now: Time) -> io::Result<()> {
        self.endpoint.send_queued(now);
        self.drive(now)
    }

    fn receive(&mut self, buffer: &mut [u8], now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        let Self { datagrams, endpoint, remote, local, .. } = self;
        datagrams.receive_all(buffer, |octets, ecn| {
            // What is no packet, or has another checksum, is dropped in silence. RFC 9260 section 6.8.
            if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(octets)) {
                let packet = hol_wire::Packet { ecn, ..hol_wire::Packet::new(*remote, *local, packet) };
                endpoint.handle(now, Input::Packet(packet));
            }
        })?;
        self.drive(now)?;
        self.tell(now, take)
    }

    fn hear_early(&mut self, octets: Bytes, ecn: Ecn) {
        self.datagrams.hear_early(octets, ecn);
    }

    fn shutdown(&mut self, now: Time) -> io::Result<()> {
        self.endpoint.handle(now, Input::Command(Command::Close));
        self.drive(now)
    }

    fn due(&self) -> Time {
        if self.begins || !self.events.is_empty() {
            return Time::ZERO;
        }
        self.due.min(self.rests_at.unwrap_or(Time::MAX))
    }

    fn act(&mut self, now: Time, take: &mut dyn FnMut(Heard)) -> Result<(), Fault> {
        self.rests_at = self.rests_at.filter(|at| now < *at);
        if std::mem::take(&mut self.begins) {
            self.endpoint.handle(now, Input::Command(Command::Connect));
        }
        self.drive(now)?;
        self.tell(now, take)
    }

    fn waits_for_room(&self) -> bool {
        self.datagrams.is_full()
    }

    fn set_reading(&mut self, reads: bool, now: Time) -> bool {
        self.endpoint.handle(now, Input::Command(Command::Read(reads)));
        // What follows is said when it is asked what it wants to do.
        self.due = Time::ZERO;
        true
    }

    fn speaks_for_itself(&self) -> bool {
        true
    }

    fn lingers(&self) -> bool {
        self.rests_at.is_some()
    }

    fn counts(&self) -> Counts {
        let counted = self.endpoint.statistics();
        Counts {
            packets_sent: counted.packets_sent,
            packets_received: counted.packets_received,
            retransmissions: counted.fast_retransmissions + counted.timeout_retransmissions,
        }
    }

    fn sending(&self) -> Option<Sending> {
        let mut paths = Vec::new();
        hol_transport::Endpoint::paths(&self.endpoint, &mut |path| paths.push(path));
        let counted = self.endpoint.statistics();
        let again = counted.fast_retransmissions + counted.timeout_retransmissions;
        (counted.data_sent > 0).then_some(Sending { paths, again })
    }
}
