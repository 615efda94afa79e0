//! The endpoint: its state, what it is told, what it answers.

use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use hol_base::{Duration, Rng, Time};
use hol_transport::{Command, Input, Output, PathState, Reader, Statistics};
use hol_wire::quic::{Secrets, Side};
use hol_wire::{Address, Packet, Transport};
use quinn_proto as quinn;

use crate::close::Closing;
use crate::first_sent::FirstSent;
use crate::in_flight::in_flight;
use crate::receive::Incoming;
use crate::send::Outgoing;
use crate::{Carriage, Config, clock, settings};

/// An address and a port.
pub(crate) type Site = (Address, u16);

/// One end of one QUIC connection.
pub struct Endpoint {
    pub(crate) config: Arc<Config>,
    pub(crate) carriage: Carriage,
    pub(crate) local: Site,
    /// A server learns it from the first packet.
    pub(crate) remote: Option<Site>,
    /// With what a capture protects its packets; a server learns from the first packet where they come from.
    pub(crate) secrets: Option<Secrets>,
    pub(crate) quinn: quinn::Endpoint,
    /// Of a client that has not been told to connect.
    pub(crate) settings: Option<quinn::ClientConfig>,
    pub(crate) connection: Option<(quinn::ConnectionHandle, quinn::Connection)>,
    pub(crate) outgoing: Outgoing,
    pub(crate) incoming: Incoming,
    pub(crate) first_sent: FirstSent,
    pub(crate) closing: Closing,
    pub(crate) packets: VecDeque<Packet>,
    pub(crate) reader: Reader,
    /// The application was refused room and waits to be told.
    pub(crate) blocked: Cell<bool>,
    /// There has been an input since quinn-proto was asked what follows.
    pub(crate) stirred: bool,
    /// When the last PTO expired. RFC 9002 section 6.2.
    pub(crate) last_probe: Option<Time>,
    /// Where quinn-proto writes a packet.
    pub(crate) buffer: Vec<u8>,
    pub(crate) statistics: Statistics,
}

impl Endpoint {
    /// An endpoint that opens the connection when it is told to connect.
    pub fn connect(
        config: impl Into<Arc<Config>>,
        carriage: Carriage,
        local: (Address, u16),
        remote: (Address, u16),
        mut rng: Rng,
    ) -> Self {
        let config = config.into();
        let origin = rng.next_u64().to_be_bytes();
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), None, false, None);
        Self {
            remote: Some(remote),
            secrets: Some(Secrets { origin, sender: Side::Client }),
            settings: Some(settings::client(&config, origin)),
            ..Self::new(config, carriage, local, quinn)
        }
    }

    /// An endpoint that waits for one connection.
    pub fn listen(
        config: impl Into<Arc<Config>>,
        carriage: Carriage,
        local: (Address, u16),
        rng: Rng,
    ) -> Self {
        let config = config.into();
        let server = Arc::new(settings::server(&config));
        let quinn = quinn::Endpoint::new(Arc::new(settings::endpoint(rng)), Some(server), false, None);
        Self::new(config, carriage, local, quinn)
    }

    fn new(config: Arc<Config>, carriage: Carriage, local: Site, quinn: quinn::Endpoint) -> Self {
        Self {
            carriage,
            local,
            remote: None,
            secrets: None,
            quinn,
            settings: None,
            connection: None,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            // What was sent so long before the last octet was read: the window moved on for that. RFC 9000 section 4.1.
            first_sent: FirstSent::new(config.stream_receive_window.0.min(config.send_window.0)),
            closing: Closing::default(),
            packets: VecDeque::new(),
            reader: Reader::new(config.wakeup),
            blocked: Cell::new(false),
            stirred: false,
            last_probe: None,
            buffer: Vec::with_capacity(2048),
            statistics: Statistics::default(),
            config,
        }
    }

    fn command(&mut self, now: Time, command: Command) {
        match command {
            Command::Connect => self.open(now),
            Command::Send(message) => self.send(message),
            Command::Close => self.closing.asked = true,
            Command::Abort => self.abort(now),
            Command::Read(reads) => {
                self.incoming.reads = reads;
                self.reader.set_reading(reads);
            }
        }
    }

    /// Asks quinn-proto what follows from what it was told, until nothing does.
    fn advance(&mut self, now: Time) {
        let is_probing = self.expire(now);
        self.exchange();
        self.hear();
        loop {
            self.read(now);
            self.write();
            self.close_if_done(now);
            self.transmit(now, is_probing);
            // What was sent may have been news to either.
            if !self.exchange() && !self.hear() {
                return;
            }
        }
    }

    /// When quinn-proto has to be asked again.
    pub(crate) fn deadline(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(clock::time)
    }
}

impl hol_transport::Endpoint for Endpoint {
    // Not inlined, for it would take registers from the loop in which the other transports are.
    #[inline(never)]
    fn handle(&mut self, now: Time, input: Input) {
        self.stirred = true;
        match input {
            Input::Packet(packet) if packet.corrupted => {}
            Input::Packet(Packet { source, transport: Transport::Quic(datagram), .. }) => {
                self.receive(now, source, *datagram);
            }
            // It does not migrate.
            Input::Packet(_) | Input::AddressAdded(_) | Input::AddressRemoved(_) => {}
            Input::Command(command) => self.command(now, command),
        }
    }

    #[inline(never)]
    fn poll(&mut self, now: Time) -> Output {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Output::Transmit(packet);
            }
            if let Some(event) = self.reader.next_event() {
                return Output::Event(event);
            }
            if self.reader.wake(now) {
                continue;
            }
            let due = self.deadline();
            if std::mem::take(&mut self.stirred) || due.is_some_and(|at| at <= now) {
                self.advance(now);
                continue;
            }
            return Output::Wait(Time::earliest([due, self.reader.deadline()]));
        }
    }

    #[inline(never)]
    fn can_send(&self, _length: usize) -> bool {
        let fits = self.has_room();
        if !fits {
            self.blocked.set(true);
        }
        fits
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        let (Some((peer, _)), Some((_, connection))) = (self.remote, &self.connection) else { return };
        if !connection.is_closed() {
            tell(path_state(peer, connection));
        }
    }
}

/// What quinn-proto tells of its controller. RFC 9002 section 7: octets of UDP payload.
fn path_state(peer: Address, connection: &quinn::Connection) -> PathState {
    let metrics = connection.congestion_state().metrics();
    PathState {
        peer,
        cwnd: Some(metrics.congestion_window),
        ssthresh: metrics.ssthresh.filter(|octets| *octets < u64::MAX),
        srtt: Some(Duration::from_nanos(connection.rtt().as_nanos() as u64)),
        pacing_rate: metrics.pacing_rate.map(|bits| bits / 8),
        in_flight: in_flight(connection),
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, remote, carriage, closing, statistics, .. } = self;
        f.debug_struct("Endpoint")
            .field("local", local)
            .field("remote", remote)
            .field("carriage", carriage)
            .field("closing", closing)
            .field("statistics", statistics)
            .finish_non_exhaustive()
    }
}
