//! The four-way handshake. RFC 9260 sections 5.1 and 5.2.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_congestion::sctp::Window;
use hol_transport::{Event, Failure, PathStatus};
use hol_wire::Address;
use hol_wire::sctp::{
    Asconf, AsconfAck, AsconfSerial, Auth, Cause, Chunk, ForwardTsn, IData, IForwardTsn, Init, Parameter,
    Reconfig, ReconfigSerial, Tsn,
};

use crate::acknowledge::Acknowledgements;
use crate::authentication::{AuthOffer, Authentication};
use crate::cookie::{Cookie, PeerParameters};
use crate::ecn::EcnState;
use crate::flight::Flight;
use crate::inbound_streams::InboundStreams;
use crate::interleaved::InterleavedReassembly;
use crate::own_reconfig_requests::OwnReconfigRequests;
use crate::parameters::unrecognized;
use crate::path::{Path, Paths, are_in_same_network};
use crate::peer_addresses::PeerAddresses;
use crate::peer_reconfig_requests::PeerReconfigRequests;
use crate::reassembly::Reassembly;
use crate::receive::PacketAddresses;
use crate::state::State;
use crate::timers::Timers;
use crate::tsn_map::TsnMap;
use crate::{Config, Endpoint};

impl Endpoint {
    /// Sends an INIT to open the association. RFC 9260 section 5.1 A.
    pub(crate) fn send_init(&mut self, now: Time) {
        if self.state != State::Closed || self.ended || self.paths.list.is_empty() {
            return;
        }
        self.state = State::CookieWait;
        self.start_t1(now);
        self.queue_init(self.timers.init_path, None);
    }

    fn queue_init(&mut self, path: usize, preservative: Option<Parameter>) {
        let mut init = self.own_init(self.local_tag, self.initial_tsn, None);
        if self.config.names_address_types {
            init.parameters.push(Parameter::address_types(self.local[0].is_ipv6()));
        }
        init.parameters.extend(preservative);
        // After a stale cookie the peer's numbers of streams are known (net/sctp/sm_make_chunk.c sctp_process_init).
        if self.config.init_ack_reduces_streams && self.streams_in.count() > 0 {
            init.outbound_streams = self.streams_out.count();
            init.inbound_streams = self.streams_in.count();
        }
        self.send_single_chunk(path, 0, Chunk::Init(Box::new(init)));
    }

    /// Returns our INIT or, if `peer` is given, our INIT ACK to that peer. An INIT ACK has the parameters of ECN and
    /// FORWARD TSN only if the peer's INIT has them (`net/sctp/sm_make_chunk.c` sctp_make_init_ack).
    fn own_init(&self, tag: u32, initial_tsn: Tsn, peer: Option<&PeerParameters>) -> Init {
        let addresses = if self.local.len() > 1 { &self.local[..] } else { &[] };
        let mut parameters: Vec<_> = addresses.iter().copied().map(Parameter::of_address).collect();
        if self.config.ecn && peer.is_none_or(|peer| peer.ecn) {
            parameters.push(Parameter::EcnCapable);
        }
        if self.config.partial_reliability && peer.is_none_or(|peer| peer.forward_tsn) {
            parameters.push(Parameter::ForwardTsnSupported);
        }
        if self.config.zero_checksum {
            // RFC 9653 section 5.1.
            parameters.push(Parameter::ZeroChecksumAcceptable(Parameter::SCTP_OVER_DTLS));
        }
        parameters.extend(self.extensions());
        parameters.extend(self.auth_parameters.iter().cloned());
        Init {
            initiate_tag: tag,
            a_rwnd: self.config.receive_buffer.0 as u32,
            outbound_streams: self.config.streams,
            inbound_streams: self.config.max_inbound_streams,
            initial_tsn,
            parameters,
        }
    }

    /// Returns the parameter Supported Extensions with the chunk types of the enabled extensions; `None` if
    /// authentication, I-DATA and RE-CONFIG are all disabled. RFC 5061 section 4.2.7.
    fn extensions(&self) -> Option<Parameter> {
        let Config { partial_reliability, auth, addip, interleaving, reconfig, .. } = *self.config;
        let extensions = [
            (addip, Asconf::KIND),
            (addip, AsconfAck::KIND),
            (auth, Auth::KIND),
            (partial_reliability, ForwardTsn::KIND),
            // RFC 8260 sections 2.2.1 and 2.3.1.
            (interleaving, IData::KIND),
            (interleaving && partial_reliability, IForwardTsn::KIND),
            // RFC 6525 section 5.1.1.
            (reconfig, Reconfig::KIND),
        ];
        let offered = extensions.into_iter().filter_map(|(offered, kind)| offered.then_some(kind));
        (auth || interleaving || reconfig).then(|| Parameter::SupportedExtensions(offered.collect()))
    }

    fn start_t1(&mut self, now: Time) {
        self.timers.t1 = Some(self.clock.expiry(now, self.timers.t1_delay));
    }

    /// Handles the expiry of T1-init or T1-cookie: retransmits INIT (RFC 9260 section 5.1.6) or COOKIE ECHO
    /// (section 5.1 C), at most Max.Init.Retransmits times.
    pub(crate) fn on_t1_expired(&mut self, now: Time) {
        self.timers.t1_expiries += 1;
        if self.timers.t1_expiries > self.config.max_init_retransmits {
            return self.end(Event::Failed { reason: Failure::MaxInitRetransmits });
        }
        self.timers.t1_delay = (self.timers.t1_delay * 2).min(self.config.rto_max);
        self.start_t1(now);
        if self.state == State::CookieWait {
            // Each attempt uses another address: the first may be down.
            self.timers.init_path = (self.timers.init_path + 1) % self.paths.list.len();
            self.queue_init(self.timers.init_path, None);
        } else {
            if self.config.cookie_echo_tries_all_paths {
                let path = self.paths.next_application_path(self.paths.active);
                (self.paths.active, self.paths.retransmission) = (path, path);
            }
            // The DATA bundled with the COOKIE ECHO are sent again.
            (0..self.paths.list.len()).for_each(|path| self.mark_path_lost(now, path));
            self.control.push_back((None, Chunk::CookieEcho(self.cookie.clone())));
        }
    }

    /// Answers an INIT with a cookie, without storing any state. RFC 9260 sections 5.1 B, 5.2.1 and 5.2.2.
    pub(crate) fn on_init(&mut self, now: Time, origin: PacketAddresses, init: &Init) {
        if init.initiate_tag == 0 || !origin.is_unicast() {
            // Sections 3.3.2 and 8.4.
            return;
        }
        if self.state == State::ShutdownAckSent && self.names_peer_address(origin, init) {
            // Section 9.2: the peer missed the SHUTDOWN ACK.
            return self.control.push_back((None, Chunk::ShutdownAck));
        }
        match self.admit(origin, init) {
            Ok((peer, destination)) => self.send_init_ack(now, destination, init, peer),
            // Section 8.4: the peer does not know our tag, but we know its tag.
            Err(causes) => {
                self.answer(origin, init.initiate_tag, Chunk::Abort { reflected: false, causes });
            }
        }
    }

    /// Returns whether an INIT comes from an address of the peer or lists one. RFC 9260 section 9.2.
    fn names_peer_address(&self, origin: PacketAddresses, init: &Init) -> bool {
        let listed = init.parameters.iter().filter_map(Parameter::address);
        std::iter::once(origin.source).chain(listed).any(|address| self.paths.index_of(address).is_some())
    }

    /// Returns the parameters of the peer that sent an INIT, and the destination of the answer; or the error
    /// causes for which the INIT is refused.
    fn admit(
        &self,
        origin: PacketAddresses,
        init: &Init,
    ) -> Result<(PeerParameters, PacketAddresses), Vec<Cause>> {
        let listens = self.state != State::Closed || self.paths.list.is_empty();
        if self.ended || !listens {
            return Err(Vec::new());
        }
        let peer = PeerParameters::new(init, origin.source).map_err(|cause| vec![cause])?;
        let known = |address: &&Address| self.paths.index_of(**address).is_some();
        match (self.state, peer.addresses.iter().find(known).copied()) {
            (State::Closed, _) => Ok((peer, origin)),
            // Section 5.1.2 D: the INIT is for another association, which does not exist.
            (_, None) => Err(Vec::new()),
            // Section 5.2.1: the INIT ACK goes only to an address that the application gave for the association.
            (State::CookieWait, Some(address)) => Ok((peer, PacketAddresses { source: address, ..origin })),
            (_, Some(_)) => self.refuse_new_addresses(&peer).map(|()| (peer, origin)),
        }
    }

    /// Refuses an INIT that would add addresses to an association, because the INIT could be forged. RFC 9260
    /// sections 5.2.1, 5.2.2 and 3.3.10.11.
    fn refuse_new_addresses(&self, peer: &PeerParameters) -> Result<(), Vec<Cause>> {
        let is_new = |address: &&Address| self.paths.index_of(**address).is_none();
        let new: Vec<Parameter> =
            peer.addresses.iter().filter(is_new).copied().map(Parameter::of_address).collect();
        if new.is_empty() { Ok(()) } else { Err(vec![Cause::NewAddresses(Parameter::list(&new))]) }
    }

    fn send_init_ack(&mut self, now: Time, origin: PacketAddresses, init: &Init, peer: PeerParameters) {
        let tie_tags = match self.state {
            State::Closed | State::CookieWait => (0, 0),
            _ => (self.local_tag, self.peer_tag),
        };
        let (local_tag, initial_tsn) = match self.state {
            State::CookieWait | State::CookieEchoed => (self.local_tag, self.initial_tsn),
            _ => (
                self.secret.derive_tag(self.rng.next_u64()),
                Tsn(self.secret.derive_number(self.rng.next_u64()) as u32),
            ),
        };
        let zero_checksum = self.config.zero_checksum && peer.zero_checksum;
        let length = self.cookie_length(init);
        let streams = (peer.inbound_streams, peer.outbound_streams);
        let expires = now + self.config.valid_cookie_life + requested_cookie_life(init);
        let cookie = Cookie { local_tag, initial_tsn, expires, tie_tags, peer_port: origin.port, peer };
        let mut answer = self.own_init(local_tag, initial_tsn, Some(&cookie.peer));
        if self.config.init_ack_reduces_streams {
            answer.outbound_streams = answer.outbound_streams.min(streams.0);
            answer.inbound_streams = answer.inbound_streams.min(streams.1);
        }
        answer.parameters.push(Parameter::StateCookie(cookie.seal(&self.secret, length)));
        self.report_unrecognized(&mut answer, &init.parameters);
        self.answer_with(origin, init.initiate_tag, zero_checksum, Chunk::InitAck(Box::new(answer)));
    }

    /// Returns the minimum length of a cookie for the peer of an INIT, in octets (`net/sctp/sm_make_chunk.c`
    /// sctp_pack_cookie).
    fn cookie_length(&self, init: &Init) -> usize {
        const OCTETS_BEFORE_STATE: usize = 36;
        let state = self.config.cookie_state.0 as usize;
        if state == 0 {
            return 0;
        }
        let addresses = if self.local.len() > 1 { &self.local[..] } else { &[] };
        let addresses: usize = addresses.iter().map(|address| Parameter::of_address(*address).length()).sum();
        let parameters: usize = init.parameters.iter().map(Parameter::length).sum();
        let init = Chunk::HEADER_LENGTH + Init::FIXED_OCTETS + parameters;
        OCTETS_BEFORE_STATE + (state + init + addresses).next_multiple_of(32)
    }

    /// Reports the unknown parameters of an INIT in the INIT ACK, as many as fit. RFC 9260 section 3.2.2.
    fn report_unrecognized(&self, answer: &mut Init, parameters: &[Parameter]) {
        let fixed = self.max_chunk_size() - Chunk::HEADER_LENGTH - Init::FIXED_OCTETS;
        for parameter in unrecognized(parameters) {
            let report = Parameter::Unrecognized(Parameter::list(&[parameter]));
            let length: usize = answer.parameters.iter().map(Parameter::length).sum();
            if length + report.length() <= fixed {
                answer.parameters.push(report);
            }
        }
    }

    /// Processes an INIT ACK in state COOKIE-WAIT (RFC 9260 section 5.1 C), and ignores it in every other state
    /// (RFC 9260 section 5.2.3).
    pub(crate) fn on_init_ack(&mut self, now: Time, origin: PacketAddresses, init: &Init) {
        if self.state != State::CookieWait {
            return;
        }
        match read_init_ack(init, origin.source) {
            Ok((peer, cookie)) => self.echo_cookie(now, origin, &peer, cookie),
            Err(cause) => self.refuse_init_ack(origin, init.initiate_tag, cause),
        }
        let unrecognized = unrecognized(&init.parameters);
        if self.state == State::CookieEchoed && !unrecognized.is_empty() {
            // Section 3.2.2: the ERROR follows the COOKIE ECHO.
            let cause = Cause::UnrecognizedParameters(Parameter::list(&unrecognized));
            self.control.push_back((None, Chunk::Error(vec![cause])));
        }
    }

    fn echo_cookie(&mut self, now: Time, origin: PacketAddresses, peer: &PeerParameters, cookie: Bytes) {
        // Section 5.4: the COOKIE ECHO goes to an address that the application gave for the association.
        let path = self.paths.index_of(origin.source).unwrap_or(self.paths.primary);
        self.store_peer(peer);
        (self.paths.active, self.paths.retransmission) = (path, path);
        self.state = State::CookieEchoed;
        self.cookie = cookie.clone();
        self.timers.t1_delay = self.config.rto_initial;
        self.timers.t1_expiries = 0;
        self.start_t1(now);
        self.control.push_back((None, Chunk::CookieEcho(cookie)));
    }

    /// Refuses an INIT ACK: sends an ABORT to its source with the peer's tag (RFC 9260 section 5.1) or, if that
    /// tag is zero, with our own tag (RFC 9260 section 3.3.3).
    fn refuse_init_ack(&mut self, origin: PacketAddresses, tag: u32, cause: Cause) {
        let reflected = tag == 0;
        let tag = if reflected { origin.verification_tag } else { tag };
        self.answer(origin, tag, Chunk::Abort { reflected, causes: vec![cause] });
        self.end(Event::Failed { reason: Failure::UnusableInitAck });
    }

    /// Processes a COOKIE ECHO; returns whether to process the chunks that follow it. RFC 9260 sections 5.1 D and
    /// 5.2.4.
    pub(crate) fn on_cookie_echo(&mut self, now: Time, origin: PacketAddresses, octets: &Bytes) -> bool {
        let Some(cookie) = Cookie::open(octets, &self.secret) else { return false };
        let fits = origin.verification_tag == cookie.local_tag && cookie.peer_port == origin.port;
        if self.ended || !fits || !origin.is_unicast() {
            // Section 8.4 rule 1, as for an INIT.
            return false;
        }
        let known = self.state != State::Closed;
        let same = (known && cookie.local_tag == self.local_tag, known && cookie.peer.tag == self.peer_tag);
        if now > cookie.expires && same != (true, true) {
            self.report_stale_cookie(now, origin, &cookie);
            return false;
        }
        let tied = cookie.tie_tags == (self.local_tag, self.peer_tag);
        match same {
            _ if !known => self.begin(&cookie),
            // Action D: a duplicate, or both ends opened at once.
            (true, true) => {}
            // Action B: the peer opened at the same time.
            (true, false) => self.store_peer(&cookie.peer),
            // Action A: the peer has restarted.
            (false, false) if tied => return self.restart(now, &cookie),
            // Action C: a late cookie.
            (false, _) => return false,
        }
        self.peer_port = origin.port;
        self.timers.t1 = None;
        let source = self.paths.index_of(origin.source).filter(|_| known || self.config.cookie_ack_to_source);
        let path = source.unwrap_or(self.paths.active);
        self.control.push_back((Some(path), Chunk::CookieAck));
        if !self.state.is_established_or_shutting_down() {
            // Section 5.4: the address to which INIT ACK was sent is confirmed.
            self.establish(now, if known { path } else { 0 });
        }
        if !self.paths.list[path].confirmed {
            // Section 5.4: a HEARTBEAT is bundled with the COOKIE ACK.
            self.probe(now, path);
        }
        true
    }

    /// Initialises the endpoint of a server from the cookie.
    fn begin(&mut self, cookie: &Cookie) {
        self.local_tag = cookie.local_tag;
        self.initial_tsn = cookie.initial_tsn;
        self.flight = Flight::new(cookie.initial_tsn);
        self.store_peer(&cookie.peer);
        if self.config.ecn_answered_to_random_tsn && self.marks.is_negotiated() {
            self.marks.answered_tsn = Tsn(self.secret.derive_number(cookie.local_tag.into()) as u32);
        }
    }

    /// Restarts the association; data that were not acknowledged are lost. RFC 9260 section 5.2.4 A.
    fn restart(&mut self, now: Time, cookie: &Cookie) -> bool {
        if self.state == State::ShutdownAckSent {
            // Section 5.2.4: the association that is shutting down must end first.
            self.control.push_back((None, Chunk::ShutdownAck));
            self.control.push_back((None, Chunk::Error(vec![Cause::CookieWhileShuttingDown])));
            return false;
        }
        self.abandon_all();
        self.paths = Paths::default();
        self.control.clear();
        self.timers = Timers::new(self.config.rto_initial);
        self.fast_retransmit_due = false;
        self.error_count = 0;
        self.begin(cookie);
        self.control.push_back((None, Chunk::CookieAck));
        self.establish(now, 0);
        true
    }

    /// Processes a COOKIE ACK. RFC 9260 section 5.1 E.
    pub(crate) fn on_cookie_ack(&mut self, now: Time, path: usize) {
        if self.state == State::CookieEchoed {
            self.timers.t1 = None;
            self.establish(now, path);
        }
    }

    /// Stores the peer's parameters and addresses. RFC 9260 sections 5.1.1 and 5.1.2.
    fn store_peer(&mut self, peer: &PeerParameters) {
        self.peer_tag = peer.tag;
        self.peer_rwnd = u64::from(peer.a_rwnd);
        self.interleaving = self.config.interleaving && peer.i_data;
        // RFC 8260 section 2.3.1: with interleaved messages, FORWARD TSN is not used.
        let passes_over = if self.interleaving { peer.i_forward_tsn } else { peer.forward_tsn };
        self.partial_reliability = self.config.partial_reliability && passes_over;
        // Linux 6.12 sends I-FORWARD-TSN although it has listed only FORWARD TSN.
        self.accepts_forward_tsn = self.config.partial_reliability && (passes_over || peer.forward_tsn);
        self.marks = EcnState::new(self.config.ecn && peer.ecn, self.initial_tsn);
        let own = AuthOffer::read(&self.auth_parameters).ok().flatten();
        self.authentication = own.zip(peer.offer.as_ref()).map(|(own, peer)| Authentication::new(&own, peer));
        self.addip = self.config.addip && peer.addip && self.authentication.is_some();
        self.zero_checksum = self.config.zero_checksum && peer.zero_checksum;
        self.reconfig = self.config.reconfig && peer.reconfig;
        self.own_reconfig_requests = OwnReconfigRequests::new(ReconfigSerial(self.initial_tsn.0));
        self.peer_reconfig_requests = PeerReconfigRequests::new(ReconfigSerial(peer.initial_tsn.0));
        self.own_addresses.set_first_serial(AsconfSerial(self.initial_tsn.0));
        self.peer_addresses = PeerAddresses::new(AsconfSerial(peer.initial_tsn.0));
        let streams = self.config.streams.min(peer.inbound_streams);
        for stream in self.streams_out.negotiate(streams, self.interleaving) {
            self.push_event(Event::Abandoned { stream });
        }
        self.offer_room();
        self.streams_in = InboundStreams::new(self.config.max_inbound_streams.min(peer.outbound_streams));
        self.tsn_map = TsnMap::new(peer.initial_tsn, self.config.max_tsn_gap);
        self.reassembly = Reassembly::default();
        self.interleaved = InterleavedReassembly::default();
        self.acknowledgements = Acknowledgements::new(&self.config);
        for address in &peer.addresses {
            if self.paths.index_of(*address).is_none() {
                self.add_path(*address, self.peer_rwnd);
            }
        }
        let rules = self.config.cwnd_parameters();
        for path in &mut self.paths.list {
            path.window = Window::new(rules, self.peer_rwnd);
        }
    }

    pub(crate) fn add_path(&mut self, address: Address, ssthresh: u64) {
        let near = self.local.iter().find(|local| are_in_same_network(**local, address));
        let source = *near.unwrap_or(&self.local[self.paths.list.len() % self.local.len()]);
        self.paths.list.push(Path::new(&self.config, self.clock, address, source, ssthresh));
    }

    /// Establishes the association. The peer has answered on path `answered_path`. Paths to addresses that the
    /// application gave need no probe (`net/sctp/associola.c` sctp_assoc_add_peer). RFC 9260 section 5.4.
    fn establish(&mut self, now: Time, answered_path: usize) {
        self.state = State::Established;
        for (index, path) in self.paths.list.iter_mut().enumerate() {
            if path.is_from_application || index == answered_path {
                (path.status, path.confirmed) = (PathStatus::Active, true);
            }
        }
        self.paths.select();
        for index in 0..self.paths.list.len() {
            self.paths.list[index].last_sent = now;
            self.schedule_heartbeat(now, index);
            if self.paths.list[index].flight_size > 0 {
                self.restart_t3(now, index);
            }
        }
        self.push_event(Event::Connected);
        self.offer_room();
        self.send_next_asconf(now);
    }

    /// Reports to the peer that its cookie is stale. RFC 9260 section 5.2.6.
    fn report_stale_cookie(&mut self, now: Time, origin: PacketAddresses, cookie: &Cookie) {
        // In whole microseconds, as in Linux (net/sctp/sm_make_chunk.c sctp_unpack_cookie).
        let staleness = now.saturating_since(cookie.expires).as_nanos() / 1000;
        let cause = Cause::StaleCookie(u32::try_from(staleness).unwrap_or(u32::MAX));
        self.answer(origin, cookie.peer.tag, Chunk::Error(vec![cause]));
    }

    /// Processes an ERROR chunk. After a stale cookie error, sends another INIT that requests a longer cookie
    /// life. RFC 9260 section 5.2.6.
    pub(crate) fn on_error(&mut self, now: Time, causes: &[Cause]) {
        let staleness = causes.iter().find_map(|cause| match cause {
            Cause::StaleCookie(staleness) => Some(*staleness),
            _ => None,
        });
        let unknown = |cause: &Cause| matches!(cause, Cause::UnrecognizedChunk(chunk) if chunk.first() == Some(&Asconf::KIND));
        if causes.iter().any(unknown) {
            self.disable_asconf();
        }
        let (State::CookieEchoed, Some(staleness)) = (self.state, staleness) else { return };
        self.timers.t1_expiries += 1;
        if self.timers.t1_expiries > self.config.max_init_retransmits {
            return self.end(Event::Failed { reason: Failure::StaleCookie });
        }
        self.state = State::CookieWait;
        self.peer_tag = 0;
        self.control.clear();
        (0..self.paths.list.len()).for_each(|path| self.mark_path_lost(now, path));
        // Linux: net/sctp/sm_sideeffect.c sctp_cmd_new_state.
        self.timers.t1_delay = self.config.rto_initial;
        self.start_t1(now);
        // Linux: net/sctp/sm_statefuns.c sctp_sf_do_5_2_6_stale. It keeps the destination address, which works.
        let millis = 2 * u64::from(staleness) / 1000;
        self.queue_init(self.paths.active, Some(Parameter::CookiePreservative(millis as u32)));
    }
}

/// Returns the additional lifetime of the cookie that the peer requests in its INIT. RFC 9260 section 3.3.2.1.3.
/// Linux grants all of it (net/sctp/sm_make_chunk.c sctp_process_param).
fn requested_cookie_life(init: &Init) -> Duration {
    let wanted = init.parameters.iter().find_map(|parameter| match parameter {
        Parameter::CookiePreservative(millis) => Some(Duration::from_millis(u64::from(*millis))),
        _ => None,
    });
    wanted.unwrap_or(Duration::ZERO)
}

/// Returns the peer's parameters and the cookie of an INIT ACK, or the error cause for which it is refused. An
/// unknown parameter does not prevent a COOKIE ECHO. RFC 9260 section 3.2.1.
fn read_init_ack(init: &Init, source: Address) -> Result<(PeerParameters, Bytes), Cause> {
    if init.initiate_tag == 0 {
        return Err(Cause::InvalidMandatoryParameter);
    }
    let peer = PeerParameters::new(init, source)?;
    let cookie = init.parameters.iter().find_map(|parameter| match parameter {
        Parameter::StateCookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    cookie.map(|cookie| (peer, cookie)).ok_or(Cause::MissingMandatoryParameter(Parameter::STATE_COOKIE))
}
