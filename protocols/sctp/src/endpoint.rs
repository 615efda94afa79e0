//! One end of an association, which takes packets and commands and returns packets and events.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use hol_base::{Rng, Time};
use hol_transport::{
    Command, Event, Failure, Input, Message, Output, PathState, ReceivingApplication, Statistics,
};
use hol_wire::sctp::{AsconfSerial, Cause, Chunk, Data, IData, Parameter, ReconfigSerial, Sack, Tsn};
use hol_wire::{Address, Packet, ip_header_length};
use smallvec::smallvec;

use crate::Config;
use crate::acknowledge::Acknowledgements;
use crate::authentication::{Authentication, own_parameters};
use crate::clock::Clock;
use crate::config::ETHERNET_MTU;
use crate::ecn::EcnState;
use crate::flight::{Flight, ReliabilityLimit};
use crate::inbound_streams::InboundStreams;
use crate::interleaved::InterleavedReassembly;
use crate::outbound_streams::OutboundStreams;
use crate::own_addresses::OwnAddresses;
use crate::own_reconfig_requests::OwnReconfigRequests;
use crate::path::{Path, Paths};
use crate::peer_addresses::PeerAddresses;
use crate::peer_reconfig_requests::PeerReconfigRequests;
use crate::reassembly::Reassembly;
use crate::secret::Secret;
use crate::state::State;
use crate::timers::Timers;
use crate::tsn_map::TsnMap;

/// One end of one SCTP association. RFC 9260.
#[derive(Debug)]
pub struct Endpoint {
    /// The configuration. All associations of a flow share it, so that it stays in the processor's cache.
    pub(crate) config: Arc<Config>,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
    pub(crate) statistics: Statistics,
    /// Packets that the next calls of `poll` return.
    pub(crate) packets: VecDeque<Packet>,
    /// Events that wait for the application.
    pub(crate) reader: ReceivingApplication,

    /// The endpoint's own addresses.
    pub(crate) local: Vec<Address>,
    /// Length in octets of the headers of a packet before its chunks.
    pub(crate) headers: usize,
    pub(crate) local_port: u16,
    /// The endpoint's own verification tag.
    pub(crate) local_tag: u32,
    pub(crate) initial_tsn: Tsn,
    pub(crate) secret: Secret,
    /// The peer's port; zero in a listening endpoint without a peer.
    pub(crate) peer_port: u16,
    pub(crate) peer_tag: u32,
    /// The cookie to echo; empty until it is received.
    pub(crate) cookie: Bytes,

    pub(crate) state: State,
    /// Whether the association has ended, for any reason.
    pub(crate) ended: bool,
    pub(crate) timers: Timers,
    pub(crate) paths: Paths,
    /// Number of consecutive timeouts on all paths. RFC 9260 section 8.1.
    pub(crate) error_count: u32,
    /// Control chunks for the next packets, each with its path if it must take a certain one.
    pub(crate) control: VecDeque<(Option<usize>, Chunk)>,

    pub(crate) streams_out: OutboundStreams,
    pub(crate) flight: Flight,
    /// The peer's receive window minus the outstanding data, in octets. RFC 9260 section 6.2.1.
    pub(crate) peer_rwnd: u64,
    /// Whether chunks are to be fast-retransmitted: one packet, regardless of cwnd.
    pub(crate) fast_retransmit_due: bool,
    /// Whether both ends support FORWARD TSN, or I-FORWARD-TSN if messages are interleaved.
    pub(crate) partial_reliability: bool,
    /// Whether the endpoint processes the peer's FORWARD TSN or I-FORWARD-TSN. If messages are interleaved, it is
    /// enough that the peer supports either of the two.
    pub(crate) accepts_forward_tsn: bool,
    /// Whether both endpoints support I-DATA; before the handshake, whether this endpoint does.
    pub(crate) interleaving: bool,
    pub(crate) marks: EcnState,

    /// The authentication parameters of our INIT and INIT ACK; empty if authentication is not offered. RFC 4895
    /// section 6.1.
    pub(crate) auth_parameters: Vec<Parameter>,
    pub(crate) authentication: Option<Authentication>,
    /// Whether both ends support ASCONF.
    pub(crate) addip: bool,
    pub(crate) own_addresses: OwnAddresses,
    pub(crate) peer_addresses: PeerAddresses,

    /// Whether both ends accept a checksum of zero. RFC 9653.
    pub(crate) zero_checksum: bool,
    /// Whether both ends support RE-CONFIG.
    pub(crate) reconfig: bool,
    pub(crate) own_reconfig_requests: OwnReconfigRequests,
    pub(crate) peer_reconfig_requests: PeerReconfigRequests,

    pub(crate) tsn_map: TsnMap,
    pub(crate) reassembly: Reassembly,
    pub(crate) interleaved: InterleavedReassembly,
    pub(crate) streams_in: InboundStreams,
    pub(crate) acknowledgements: Acknowledgements,
}

impl Endpoint {
    /// Creates an endpoint that sends INIT to `remote[0]`, its primary path, when the application requests `Connect`.
    ///
    /// `remote[i]` is reached from a local address in its network, otherwise from `local[i]` (cyclically if
    /// there are fewer). The endpoint accepts messages as soon as it connects.
    ///
    /// All addresses are of one family.
    ///
    /// # Panics
    /// If `local` or `remote` is empty.
    ///
    /// ```
    /// use hol_sctp::base::{Seed, Time};
    /// use hol_sctp::transport::{Command, Endpoint as _, Input, Output};
    /// use hol_sctp::{Config, Endpoint, wire::ipv4};
    ///
    /// // The server has two addresses, and so the association two paths.
    /// let (client, server) = (vec![ipv4(10, 0, 1, 1)], vec![ipv4(10, 0, 1, 2), ipv4(10, 0, 2, 2)]);
    /// let mut endpoint = Endpoint::connect(Config::linux_6_12(), client, 5000, server, 5001, Seed(1).rng());
    /// endpoint.handle(Time::ZERO, Input::Command(Command::Connect));
    /// let Output::Transmit(init) = endpoint.poll(Time::ZERO) else { panic!("no INIT") };
    /// assert_eq!(init.destination, ipv4(10, 0, 1, 2));
    /// ```
    pub fn connect(
        config: impl Into<Arc<Config>>,
        local: Vec<Address>,
        local_port: u16,
        remote: Vec<Address>,
        remote_port: u16,
        rng: Rng,
    ) -> Self {
        assert!(!remote.is_empty(), "an active endpoint needs an address of its peer");
        let mut endpoint = Self::listen(config, local, local_port, rng);
        endpoint.peer_port = remote_port;
        for address in remote {
            endpoint.add_path(address, 0);
        }
        endpoint.paths.list.iter_mut().for_each(|path| path.is_from_application = true);
        endpoint
    }

    /// Creates an endpoint that waits for one association. It stores no state before a valid COOKIE ECHO arrives.
    ///
    /// # Panics
    /// If `local` is empty.
    ///
    /// ```
    /// use hol_sctp::{Config, Endpoint, base::Seed, wire::ipv4};
    ///
    /// let endpoint = Endpoint::listen(Config::rfc9260(), vec![ipv4(10, 0, 1, 2)], 5001, Seed(2).rng());
    /// assert_eq!(endpoint.state_name(), "CLOSED");
    /// ```
    pub fn listen(
        config: impl Into<Arc<Config>>,
        local: Vec<Address>,
        local_port: u16,
        mut rng: Rng,
    ) -> Self {
        let mut config: Arc<Config> = config.into();
        if config.mtu.0 == 0 {
            config = Arc::new(config.with_network_mtu(ETHERNET_MTU));
        }
        assert!(!local.is_empty(), "an endpoint needs an address");
        let secret = Secret::new(&mut rng);
        let (initial_tsn, local_tag) = (Tsn(secret.derive_number(0) as u32), secret.derive_tag(1));
        let number = || secret.derive_number(rng.next_u64());
        let auth_parameters = if config.auth { own_parameters(config.auth_hash, number) } else { Vec::new() };
        Self {
            clock: Clock::new(config.clock_tick, config.timer_wheel),
            statistics: Statistics::default(),
            packets: VecDeque::new(),
            reader: ReceivingApplication::new(config.wakeup),
            headers: ip_header_length(local[0]) + hol_wire::sctp::Packet::HEADER_LENGTH,
            local,
            local_port,
            local_tag,
            initial_tsn,
            secret,
            peer_port: 0,
            peer_tag: 0,
            cookie: Bytes::new(),
            state: State::Closed,
            ended: false,
            timers: Timers::new(config.rto_initial),
            paths: Paths::default(),
            error_count: 0,
            control: VecDeque::new(),
            streams_out: OutboundStreams::new(&config),
            flight: Flight::new(initial_tsn),
            peer_rwnd: 0,
            fast_retransmit_due: false,
            partial_reliability: false,
            accepts_forward_tsn: false,
            interleaving: config.interleaving,
            marks: EcnState::default(),
            auth_parameters,
            authentication: None,
            addip: false,
            own_addresses: OwnAddresses::new(AsconfSerial(0)),
            peer_addresses: PeerAddresses::new(AsconfSerial(0)),
            zero_checksum: false,
            reconfig: false,
            own_reconfig_requests: OwnReconfigRequests::new(ReconfigSerial(0)),
            peer_reconfig_requests: PeerReconfigRequests::new(ReconfigSerial(0)),
            tsn_map: TsnMap::new(Tsn(0), config.max_tsn_gap),
            reassembly: Reassembly::default(),
            interleaved: InterleavedReassembly::default(),
            streams_in: InboundStreams::new(0),
            acknowledgements: Acknowledgements::new(&config),
            rng,
            config,
        }
    }

    /// Returns the endpoint for the next association, which accepts the same cookies; `None` if this endpoint has
    /// not begun an association. The peer of this association cannot derive the random numbers of the next
    /// endpoint from the numbers that it sees.
    pub(crate) fn next_listener(&mut self) -> Option<Self> {
        if self.peer_tag == 0 {
            return None;
        }
        let rng = Rng::from_state([(); 4].map(|()| self.secret.derive_number(self.rng.next_u64())));
        let following = Self::listen(Arc::clone(&self.config), self.local.clone(), self.local_port, rng);
        let (secret, auth_parameters) = (self.secret.clone(), self.auth_parameters.clone());
        Some(Self { secret, auth_parameters, ..following })
    }

    /// Returns our verification tag, which the peer puts into its packets. RFC 9260 section 8.5.
    pub fn verification_tag(&self) -> u32 {
        self.local_tag
    }

    /// Returns whether the association has ended, for any reason, and the application has been informed.
    pub fn is_closed(&self) -> bool {
        self.ended && self.reader.is_empty()
    }

    /// Returns the state by its name in RFC 9260 section 4, such as `"COOKIE-WAIT"`.
    pub fn state_name(&self) -> &'static str {
        self.state.name()
    }

    /// Returns the peer's addresses, in the order in which they became known.
    pub fn paths(&self) -> &[Path] {
        &self.paths.list
    }

    /// Returns the peer's primary address, to which data are sent while it is active. RFC 9260 section 6.4.
    pub fn primary(&self) -> Option<Address> {
        self.paths.list.get(self.paths.primary).map(Path::address)
    }

    /// Returns the number of outbound streams: the requested number, or fewer if the peer accepts fewer. RFC 9260
    /// section 5.1.1.
    pub fn outbound_streams(&self) -> u16 {
        self.streams_out.count()
    }

    /// Returns the number of octets of user data that have been sent on all paths and not been acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.flight.outstanding()
    }

    /// Returns whether there are received data that the application has not read.
    pub fn has_unread(&self) -> bool {
        self.reader.unread() > 0
    }

    /// Sets the configuration from now on, except for the options that the handshake has negotiated. RFC 6458
    /// section 8.1.
    pub fn set_config(&mut self, config: impl Into<Arc<Config>>) {
        let config: Arc<Config> = config.into();
        self.config =
            if config.mtu.0 == 0 { Arc::new(config.with_network_mtu(self.config.mtu.0)) } else { config };
    }

    /// Queues a message without sending it, so that further messages can be bundled with it. RFC 9260 section
    /// 6.10. The next [`send_queued`](Self::send_queued), input or timer sends it if the windows allow.
    pub fn queue(&mut self, now: Time, message: Message) {
        self.on_send(now, message);
    }

    /// Sends the queued messages that the windows allow. The next `poll` returns the packets.
    pub fn send_queued(&mut self, now: Time) {
        self.flush(now, false);
    }

    /// Queues an event for the application; `poll` returns it.
    pub(crate) fn push_event(&mut self, event: Event) {
        self.reader.push_event(event);
    }

    /// Returns the length in octets of a chunk that fills its packet.
    pub(crate) fn max_chunk_size(&self) -> usize {
        (self.config.mtu.0 as usize - self.headers) & !3
    }

    /// Returns the maximum number of octets of user data in one chunk. RFC 9260 section 6.9.
    pub(crate) fn max_fragment_size(&self) -> usize {
        self.max_chunk_size() - self.data_header_length()
    }

    /// Returns the length in octets of a data chunk's header.
    pub(crate) const fn data_header_length(&self) -> usize {
        if self.interleaving { IData::HEADER_LENGTH } else { Data::HEADER_LENGTH }
    }

    fn on_command(&mut self, now: Time, command: Command) {
        match command {
            Command::Connect => self.send_init(now),
            Command::Send(message) => self.on_send(now, message),
            Command::Reconfigure(what) => self.request_reconfiguration(now, what),
            Command::Close => self.close(),
            Command::Read(reads) => self.reader.set_reading(reads),
            Command::Abort => {
                self.abort(Cause::UserInitiatedAbort(Bytes::new()), Failure::Aborted);
            }
        }
    }

    /// Queues a message. A message for a stream that the peer does not accept is abandoned at once.
    fn on_send(&mut self, now: Time, message: Message) {
        assert!(!message.payload.is_empty(), "a message must have user data");
        if self.ended || !self.state.takes_messages() || message.stream >= self.streams_out.count() {
            return self.push_event(Event::Abandoned { stream: message.stream });
        }
        let length = message.payload.len() as u64;
        if self.config.send_buffer_bounds_messages && length > self.config.send_buffer.0 {
            // `net/sctp/socket.c` sctp_sendmsg_parse: EMSGSIZE.
            return self.end(Event::Failed { reason: Failure::MessageTooLong });
        }
        let limit = ReliabilityLimit::new(message.reliability, now, self.clock);
        let (first, max) = (self.first_fragment(message.payload.len()), self.max_fragment_size());
        self.streams_out.push(message, first, max, limit);
    }

    /// Returns the maximum length of a message's first fragment, in octets (`net/sctp/chunk.c`
    /// sctp_datamsg_from_user).
    fn first_fragment(&self, length: usize) -> usize {
        const COOKIE_ECHO_OCTETS: usize = 200;
        let max = self.max_fragment_size();
        if !self.config.fragments_leave_room {
            return max;
        }
        let is_idle = self.streams_out.is_empty() && self.flight.lost() == 0;
        let sack = if self.timers.sack.is_some() && is_idle && length > max { Sack::FIXED_OCTETS } else { 0 };
        let echo =
            if matches!(self.state, State::Closed | State::CookieWait) { COOKIE_ECHO_OCTETS } else { 0 };
        max - sack - echo
    }

    /// Aborts the association and informs the peer. RFC 9260 section 9.1.
    pub(crate) fn abort(&mut self, cause: Cause, reason: Failure) {
        if self.ended {
            return;
        }
        if self.peer_tag != 0 {
            let abort = Chunk::Abort { reflected: false, causes: vec![cause] };
            self.send_single_chunk(self.paths.active, self.peer_tag, abort);
        }
        self.end(Event::Failed { reason });
    }

    /// Ends the association without informing the peer.
    pub(crate) fn end(&mut self, event: Event) {
        if self.ended {
            return;
        }
        self.ended = true;
        self.state = State::Closed;
        self.timers = Timers::new(self.config.rto_initial);
        for path in &mut self.paths.list {
            path.stop_timers();
        }
        self.control.clear();
        self.push_event(event);
    }

    /// Sends one chunk in a separate packet.
    pub(crate) fn send_single_chunk(&mut self, path: usize, verification_tag: u32, chunk: Chunk) {
        let Some(path) = self.paths.list.get(path) else { return };
        let (source, destination) = (path.source, path.address);
        let packet = hol_wire::sctp::Packet {
            source_port: self.local_port,
            destination_port: self.peer_port,
            verification_tag,
            // RFC 9653 section 5.2, restriction 1a.
            zero_checksum: self.zero_checksum && !matches!(chunk, Chunk::Init(_)),
            chunks: smallvec![chunk],
        };
        self.transmit_packet(source, destination, packet);
    }

    pub(crate) fn transmit_packet(&mut self, from: Address, to: Address, packet: hol_wire::sctp::Packet) {
        self.statistics.packets_sent += 1;
        let ecn = self.marks.codepoint();
        self.packets.push_back(Packet { ecn, ..Packet::new(from, to, packet) });
    }
}

impl hol_transport::Endpoint for Endpoint {
    fn handle(&mut self, now: Time, input: Input) {
        // A read only makes room for the peer's data; a flush after it would start another burst of our own.
        let is_about_reading = matches!(input, Input::Command(Command::Read(_)));
        match input {
            Input::Packet(packet) => self.on_packet(now, packet),
            Input::Command(command) => self.on_command(now, command),
            Input::AddressAdded(address) => self.on_address_added(now, address),
            Input::AddressRemoved(address) => self.on_address_removed(now, address),
        }
        if !is_about_reading {
            self.flush(now, false);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        loop {
            if let Some(packet) = self.packets.pop_front() {
                return Output::Transmit(packet);
            }
            if self.reader.read_piece() {
                self.send_window_update_if_due(now);
                continue;
            }
            if let Some(event) = self.reader.next_event() {
                if matches!(event, Event::Received(_)) {
                    self.send_window_update_if_due(now);
                }
                return Output::Event(event);
            }
            if self.reader.wake_if_due(now) {
                continue;
            }
            if self.reader.has_resumed() {
                self.send_window_update_if_due(now);
                continue;
            }
            let next = Time::earliest([self.deadline(), self.reader.deadline()]);
            if next.is_none_or(|at| at > now) {
                return Output::Wait(next);
            }
            self.on_timers(now);
        }
    }

    fn can_send(&self, length: usize) -> bool {
        !self.ended && self.state.takes_messages() && self.streams_out.buffer.has_room(length)
    }

    fn has_unread(&self) -> bool {
        self.reader.unread() > 0
    }

    fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn paths(&self, tell: &mut dyn FnMut(PathState)) {
        let known = self.paths.list.iter().filter(|path| !path.deleted && !self.ended);
        known.for_each(|path| tell(path.state()));
    }
}
