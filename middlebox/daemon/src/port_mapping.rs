//! PCP and NAT-PMP: internal hosts request port mappings; each mapping is a rule. RFC 6887, RFC 6886.
//!
//! The port mapper is an agent within the daemon, with a session for each agent of the policy that owns
//! hosts, so its requests are limited, recorded and enforced like all others. Hosts are identified by their
//! addresses.

mod mapping_request;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use hol_base::Time;
use hol_pcp::{DatagramRequest, ResultCode, nat_pmp, parse, reply};
use hol_simco::{
    AgentId, Batch, Body, Capabilities, ConnectionInfo, Framing, Lifetime, Message, Middlebox, Notification,
    Pid, Reply, Request, SessionId, Tid, Version,
};
use socket2::{Domain, Protocol, Socket, Type};

use mapping_request::MappingRequest;
use table::{GrantedMapping, Key, Table, host_of};

/// The service that maps ports for hosts with PCP and NAT-PMP: its sockets, and the mappings that it has granted.
#[derive(Debug)]
pub(crate) struct PortMapper {
    sockets: Vec<UdpSocket>,
    /// The gateway's outside address, which answers of NAT-PMP contain; `None` without an IPv4 address.
    address: Option<Ipv4Addr>,
    /// Maximum number of port mappings per host.
    max_mappings: usize,
    /// The start of the epoch; each answer contains the time since then. RFC 6887 section 8.5.
    start: Time,
    table: Table,
    sessions: BTreeMap<AgentId, SessionId>,
    pending: BTreeMap<Tid, PendingRequest>,
    last_tid: u32,
    /// The number of answers sent so far.
    answers: Answers,
}

/// The number of answers by protocol, operation and result code.
pub(crate) type Answers = BTreeMap<(&'static str, &'static str, u16), u64>;

/// A host that waits for an answer, and the index of the socket that will send the answer.
#[derive(Debug, Clone, Copy)]
struct Host {
    socket: u32,
    address: SocketAddr,
}

/// A request to the middlebox that has not been answered.
#[derive(Debug)]
struct PendingRequest {
    /// The host to which the answer must be sent; `None` if no host waits for one.
    host: Option<Host>,
    mapping_request: MappingRequest,
    octets: Vec<u8>,
    agent: AgentId,
}

/// The immediate outcome of a host's request.
enum Outcome {
    Answer(Vec<u8>),
    /// The request was passed to the middlebox, which answers later.
    Pending,
}

impl PortMapper {
    /// Maximum number of datagrams read per turn.
    pub const MAX_DATAGRAMS: usize = 32;

    /// Opens the sockets, and binds them to an interface if one is given.
    pub fn open(
        addresses: &[SocketAddr],
        interface: Option<&str>,
        address: Option<Ipv4Addr>,
        max_mappings: usize,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let open = |at: &SocketAddr| open(*at, interface).map_err(|error| (*at, error));
        let sockets = addresses.iter().map(open).collect::<Result<_, _>>()?;
        let (table, sessions, pending) = Default::default();
        let answers = Answers::new();
        Ok(Self {
            sockets,
            address,
            max_mappings,
            start: Time::ZERO,
            table,
            sessions,
            pending,
            last_tid: 0,
            answers,
        })
    }

    /// Starts the epoch, with mappings for those restored rules that are mappings.
    pub fn begin(&mut self, now: Time, middlebox: &Middlebox) {
        self.start = now;
        let policy = middlebox.policy();
        for rule in middlebox.rules(now) {
            let host = rule.address_tuples().and_then(|(internal, _)| host_of(&internal));
            if host.and_then(|host| policy.agent_at(host.ip())) == Some(rule.owner) {
                self.table.restore(rule);
            }
        }
    }

    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(UdpSocket::as_fd)
    }

    /// Returns the addresses of the sockets, with the actual ports.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok())
    }

    /// Processes a datagram from the socket with this index; returns false if there is none.
    pub fn receive(
        &mut self,
        now: Time,
        socket: u32,
        buffer: &mut [u8],
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> io::Result<bool> {
        let (length, address) = match self.sockets[socket as usize].recv_from(buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let ip = address.ip().to_canonical();
        self.handle(now, (Host { socket, address }, ip), &buffer[..length], middlebox, batch);
        Ok(true)
    }

    /// Answers the request of a host at once, or passes it to the middlebox.
    fn handle(
        &mut self,
        now: Time,
        (host, ip): (Host, IpAddr),
        octets: &[u8],
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) {
        batch.add_work(Self::DATAGRAM_COST);
        match self.parse_and_handle(now, (host, ip), octets, middlebox, batch) {
            Ok(Some(Outcome::Answer(answer))) => self.send(host, &answer),
            Ok(Some(Outcome::Pending) | None) => {}
            Err(refusal) => self.refuse(now, host, octets, refusal),
        }
    }

    /// Cost of parsing and answering a datagram, in units of about a nanosecond of processor time.
    const DATAGRAM_COST: u64 = 10_000;

    fn parse_and_handle(
        &mut self,
        now: Time,
        (host, ip): (Host, IpAddr),
        octets: &[u8],
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Option<Outcome>, ResultCode> {
        let epoch = self.epoch(now);
        let mapping_request = match parse(octets)? {
            None => return Ok(None),
            Some(DatagramRequest::NatPmp(nat_pmp::Request::Address)) => {
                let address = self.address.ok_or(ResultCode::NetworkFailure)?;
                return Ok(Some(Outcome::Answer(nat_pmp::address_response(address, epoch))));
            }
            Some(DatagramRequest::NatPmp(nat_pmp::Request::Map { protocol, port, external, lifetime })) => {
                MappingRequest::from_nat_pmp(ip, protocol, port, external, lifetime)
            }
            Some(DatagramRequest::Pcp(request)) => match MappingRequest::from_pcp(request, ip)? {
                Some(mapping_request) => mapping_request,
                None => {
                    return Ok(Some(Outcome::Answer(reply::success_response(
                        &hol_pcp::Operation::Announce,
                        0,
                        epoch,
                    ))));
                }
            },
        };
        let agent = middlebox.policy().agent_at(ip).ok_or(ResultCode::NotAuthorized)?;
        if self
            .pending
            .values()
            .any(|pending| pending.host.is_some() && pending.mapping_request.key == mapping_request.key)
        {
            // The same request is pending; its answer serves both.
            return Ok(None);
        }
        let pending = PendingRequest { host: Some(host), mapping_request, octets: octets.to_vec(), agent };
        self.handle_mapping(now, pending, middlebox, batch).map(Some)
    }

    /// Answers a request for a mapping at once, or passes it to the middlebox.
    fn handle_mapping(
        &mut self,
        now: Time,
        pending: PendingRequest,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, ResultCode> {
        let (mapping_request, epoch) = (&pending.mapping_request, self.epoch(now));
        let key = mapping_request.key;
        if mapping_request.lifetime == 0 && (key.port == 0 || key.protocol == 0) {
            let answer = mapping_request.confirm_deletion(epoch);
            self.delete_mappings(now, &pending, middlebox, batch)?;
            return Ok(Outcome::Answer(answer));
        }
        if !mapping_request.is_single_port() {
            return Err(ResultCode::UnsupportedProtocol);
        }
        let existing = self.table.get(&key).copied();
        if existing
            .is_some_and(|existing| existing.nonce.is_some() && existing.nonce != mapping_request.nonce)
        {
            return Err(ResultCode::NotAuthorized);
        }
        match existing {
            None if mapping_request.lifetime == 0 => {
                Ok(Outcome::Answer(mapping_request.confirm_deletion(epoch)))
            }
            None => self.begin_mapping(now, pending, middlebox, batch),
            Some(GrantedMapping { pid, .. }) if mapping_request.lifetime == 0 => {
                self.change(now, pending, pid, Lifetime(0), middlebox, batch)
            }
            Some(existing)
                if mapping_request.outside.is_exact
                    && differs(mapping_request.outside.outside, existing.outside) =>
            {
                Err(ResultCode::CannotProvideExternal)
            }
            Some(existing) if existing.filter == mapping_request.filter => {
                let lifetime = mapping_request.seconds();
                self.change(now, pending, existing.pid, lifetime, middlebox, batch)
            }
            Some(existing) => {
                // The new rule has the same port and needs no more resources than the previous rule. The previous
                // rule ends only if the policy permits the new one.
                check_rights(&pending, middlebox)?;
                let replaced = PendingRequest {
                    host: None,
                    mapping_request: mapping_request.clone(),
                    octets: Vec::new(),
                    agent: pending.agent,
                };
                self.change(now, replaced, existing.pid, Lifetime(0), middlebox, batch)?;
                let mut pending = pending;
                pending.mapping_request.outside.outside = existing.outside;
                self.enable(now, pending, middlebox, batch)
            }
        }
    }

    fn begin_mapping(
        &mut self,
        now: Time,
        pending: PendingRequest,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, ResultCode> {
        let (mapping_request, key) = (&pending.mapping_request, pending.mapping_request.key);
        // A port that is mapped for all hosts already passes this flow. RFC 6887 section 12.3.
        if key.remote.is_some()
            && let Some(mapped) = self.table.get(&Key { remote: None, ..key })
        {
            return Ok(Outcome::Answer(mapping_request.grant(mapped, now, self.epoch(now))));
        }
        let pending_count =
            self.pending.values().filter(|other| other.mapping_request.key.host == key.host).count();
        let count = self.table.mappings_of(key.host).count() + pending_count;
        if count >= self.max_mappings {
            return Err(ResultCode::UserExceedsQuota);
        }
        if count >= Self::MAPPINGS_WHEN_SCARCE && self.is_scarce(pending.agent, middlebox) {
            return Err(ResultCode::NoResources);
        }
        check_rights(&pending, middlebox)?;
        self.enable(now, pending, middlebox, batch)
    }

    fn enable(
        &mut self,
        now: Time,
        pending: PendingRequest,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, ResultCode> {
        let (enable, mapping) = (pending.mapping_request.enable(), pending.mapping_request.outside);
        let session = self.session(now, pending.agent, middlebox, batch)?;
        let tid = self.add_pending(pending);
        middlebox.handle_request(now, session, tid, Request::Per { enable, gid: None }, Some(mapping), batch);
        Ok(Outcome::Pending)
    }

    /// Number of mappings that a host may have when few are free: the last quarter of an agent's mappings is reserved
    /// for hosts with fewer mappings than this.
    const MAPPINGS_WHEN_SCARCE: usize = 4;

    /// Returns true if at most a quarter of the agent's mappings is free.
    fn is_scarce(&self, agent: AgentId, middlebox: &Middlebox) -> bool {
        let quota = middlebox.policy().quota(agent);
        let is_nat = middlebox.capabilities().includes(Capabilities::NAT);
        let max_mappings = if is_nat { quota.ports.min(quota.rules) } else { quota.rules };
        let pending_count = self.pending.values().filter(|pending| pending.agent == agent).count();
        self.table.count_of(agent) + pending_count >= max_mappings - max_mappings / 4
    }

    fn change(
        &mut self,
        now: Time,
        pending: PendingRequest,
        pid: Pid,
        lifetime: Lifetime,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, ResultCode> {
        let session = self.session(now, pending.agent, middlebox, batch)?;
        let tid = self.add_pending(pending);
        middlebox.handle_request(now, session, tid, Request::Plc { pid, lifetime }, None, batch);
        Ok(Outcome::Pending)
    }

    /// Deletes a host's mappings of one protocol or of all protocols, except those that have another nonce. RFC 6887
    /// section 15.1, RFC 6886 section 3.4.
    fn delete_mappings(
        &mut self,
        now: Time,
        pending: &PendingRequest,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<(), ResultCode> {
        let mapping_request = &pending.mapping_request;
        let is_to_delete = |(key, granted): &(&Key, &GrantedMapping)| {
            key.remote.is_none()
                && (mapping_request.key.protocol == 0 || mapping_request.key.protocol == key.protocol)
                && (granted.nonce.is_none() || granted.nonce == mapping_request.nonce)
        };
        let to_delete = self.table.mappings_of(mapping_request.key.host).filter(is_to_delete);
        let to_delete: Vec<(Key, Pid)> = to_delete.map(|(key, granted)| (*key, granted.pid)).collect();
        for (key, pid) in to_delete {
            let mapping_request = MappingRequest { key, ..mapping_request.clone() };
            let one =
                PendingRequest { host: None, mapping_request, octets: Vec::new(), agent: pending.agent };
            self.change(now, one, pid, Lifetime(0), middlebox, batch)?;
        }
        Ok(())
    }

    fn add_pending(&mut self, pending: PendingRequest) -> Tid {
        self.last_tid = self.last_tid.wrapping_add(1);
        let tid = Tid(self.last_tid);
        self.pending.insert(tid, pending);
        tid
    }

    /// Returns the session of an agent with the middlebox, which is opened for the first host of the agent.
    fn session(
        &mut self,
        now: Time,
        agent: AgentId,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<SessionId, ResultCode> {
        if let Some(session) = self.sessions.get(&agent) {
            return Ok(*session);
        }
        let name = middlebox.policy().agent_name(agent).to_owned();
        let underlay =
            ConnectionInfo { is_secure: true, agent: Some(name), ..ConnectionInfo::plain(Framing::Messages) };
        let session = middlebox.connect(now, underlay);
        let establish = Request::Se { version: Version::SIMCO_3_0, challenge: None };
        // The session is registered before its first message arrives.
        self.sessions.insert(agent, session);
        middlebox.receive(now, session, Message::request(Tid(0), establish).to_bytes(), batch);
        if middlebox.agent(session).is_none() {
            self.close(session);
            return Err(ResultCode::NoResources);
        }
        Ok(session)
    }

    /// Returns true if a session belongs to the port mapping service.
    pub fn has_session(&self, session: SessionId) -> bool {
        self.sessions.values().any(|ours| *ours == session)
    }

    /// Removes a session that has ended.
    pub fn close(&mut self, session: SessionId) {
        self.sessions.retain(|_, ours| *ours != session);
    }

    /// Processes a message from the middlebox, and answers the host. Must be called after the changes that the message
    /// confirms are in force.
    pub fn handle_reply(&mut self, now: Time, Message { tid, body }: Message) {
        if let Body::Notification(Notification::Are { pid, lifetime }) = body {
            return match lifetime {
                Lifetime(0) => self.table.end(pid),
                lifetime => self.table.extend(pid, lifetime.end(now)),
            };
        }
        let Some(PendingRequest { host, mapping_request, octets, agent }) = self.pending.remove(&tid) else {
            return;
        };
        match (self.outcome(now, &mapping_request, agent, &body), host) {
            (Ok(answer), Some(host)) => self.send(host, &answer),
            (Err(refusal), Some(host)) => self.refuse(now, host, &octets, refusal),
            (_, None) => {}
        }
    }

    fn outcome(
        &mut self,
        now: Time,
        mapping_request: &MappingRequest,
        agent: AgentId,
        body: &Body,
    ) -> Result<Vec<u8>, ResultCode> {
        let (key, epoch) = (mapping_request.key, self.epoch(now));
        let granted = match body {
            Body::Reply(Reply::Per(rule)) => {
                let outside = host_of(&rule.outside).ok_or(ResultCode::NetworkFailure)?;
                let (nonce, filter, until) =
                    (mapping_request.nonce, mapping_request.filter, rule.lifetime.end(now));
                GrantedMapping { pid: rule.pid, nonce, outside, filter, until, agent }
            }
            Body::Reply(Reply::Plc { lifetime }) => {
                let existing = self.table.get(&key).ok_or(ResultCode::NetworkFailure)?;
                GrantedMapping { nonce: mapping_request.nonce, until: lifetime.end(now), ..*existing }
            }
            Body::Reply(_) => {
                self.table.remove(&key);
                return Ok(mapping_request.confirm_deletion(epoch));
            }
            Body::Refusal(refusal) => {
                if *refusal == hol_simco::Refusal::NoSuchRule {
                    self.table.remove(&key);
                }
                return Err(to_pcp(*refusal, mapping_request.outside.is_exact));
            }
            _ => return Err(ResultCode::NetworkFailure),
        };
        self.table.insert(key, granted);
        Ok(mapping_request.grant(&granted, now, epoch))
    }

    fn refuse(&mut self, now: Time, host: Host, octets: &[u8], refusal: ResultCode) {
        let epoch = self.epoch(now);
        let answer = match octets.first() {
            Some(0) => nat_pmp::error_response(octets, refusal, epoch),
            _ => reply::error_response(octets, refusal, epoch),
        };
        self.send(host, &answer);
    }

    /// Sends an answer. Failures are ignored, because a host without an answer repeats its request.
    fn send(&mut self, host: Host, octets: &[u8]) {
        if let Some(kind) = kind_of(octets) {
            *self.answers.entry(kind).or_default() += 1;
        }
        let _ = self.sockets[host.socket as usize].send_to(octets, host.address);
    }

    /// Returns the number of answers by protocol, operation and result code.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the number of port mappings in force.
    pub fn mappings(&self) -> usize {
        self.table.len()
    }

    /// Returns the time since the start of the epoch in seconds. RFC 6887 section 8.5.
    fn epoch(&self, now: Time) -> u32 {
        (now.saturating_since(self.start).as_millis() / 1000) as u32
    }
}

/// Returns an error if the policy does not allow the agent's rules to cover the hosts in this request.
fn check_rights(
    PendingRequest { mapping_request, agent, .. }: &PendingRequest,
    middlebox: &Middlebox,
) -> Result<(), ResultCode> {
    let enable = mapping_request.enable();
    let is_covered = middlebox.policy().covers(*agent, &enable.internal, &enable.external);
    if is_covered { Ok(()) } else { Err(ResultCode::NotAuthorized) }
}

/// Returns true if the requested outside address or port differs from that of a mapping. An unspecified address matches
/// every address.
fn differs(requested: SocketAddr, outside: SocketAddr) -> bool {
    outside.port() != requested.port() || !requested.ip().is_unspecified() && outside.ip() != requested.ip()
}

/// Returns the protocol, the operation and the result code of an answer. RFC 6887 section 7.2, RFC 6886 section 3.3.
fn kind_of(octets: &[u8]) -> Option<(&'static str, &'static str, u16)> {
    let &[version, operation, high, low, ..] = octets else { return None };
    // Hosts may send any operation number, so all invalid ones count as one.
    Some(match version {
        0 => ("nat-pmp", nat_pmp_name(operation), u16::from_be_bytes([high, low])),
        _ => ("pcp", pcp_name(operation), u16::from(low)),
    })
}

fn nat_pmp_name(operation: u8) -> &'static str {
    match operation & 0x7f {
        0 => "address",
        1 | 2 => "map",
        _ => "other",
    }
}

fn pcp_name(operation: u8) -> &'static str {
    match operation & 0x7f {
        0 => "announce",
        1 => "map",
        2 => "peer",
        _ => "other",
    }
}

fn open(at: SocketAddr, interface: Option<&str>) -> io::Result<UdpSocket> {
    let kind = Type::DGRAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(at), kind, Some(Protocol::UDP))?;
    if at.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.bind(&at.into())?;
    Ok(socket.into())
}

/// Converts a refusal of the middlebox to a result code of PCP.
fn to_pcp(refusal: hol_simco::Refusal, is_exact: bool) -> ResultCode {
    use hol_simco::Refusal as Simco;
    match refusal {
        Simco::LackOfAddresses | Simco::LackOfPorts if is_exact => ResultCode::CannotProvideExternal,
        Simco::LackOfAddresses | Simco::LackOfPorts | Simco::NoResources => ResultCode::NoResources,
        Simco::NotAuthorized | Simco::RuleNotAuthorized | Simco::Conflict => ResultCode::NotAuthorized,
        Simco::ProtocolNotSupported | Simco::IpVersionMismatch => ResultCode::UnsupportedProtocol,
        _ => ResultCode::NetworkFailure,
    }
}

/// Returns the first IPv4 address of the NAT.
pub(crate) fn public_address(outside: &[IpAddr]) -> Option<Ipv4Addr> {
    outside.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    })
}

#[cfg(test)]
mod tests;
