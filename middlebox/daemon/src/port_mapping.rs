//! PCP and NAT-PMP: internal hosts request port mappings, each of which is a rule. RFC 6887, RFC 6886.
//!
//! This is an agent within the daemon, with a session for each agent of the policy that owns hosts, so its
//! requests are limited, recorded and enforced like all others. Hosts are identified by their address.

mod table;
mod wanted;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use hol_base::Time;
use hol_pcp::{Heard, Refusal, hear, nat_pmp, reply};
use hol_simco::{
    AgentId, Batch, Body, Capabilities, ConnectionInfo, Framing, Lifetime, Message, Middlebox, Notification,
    Pid, Reply, Request, SessionId, Tid, Version,
};
use socket2::{Domain, Protocol, Socket, Type};

use table::{Granted, Key, Table, host_of};
use wanted::Wanted;

/// The sockets for hosts, and their mappings.
#[derive(Debug)]
pub(crate) struct PortMapper {
    sockets: Vec<UdpSocket>,
    /// The gateway's outside address, for NAT-PMP.
    address: Option<Ipv4Addr>,
    /// Maximum mappings per host.
    most: usize,
    /// Start of its epoch.
    start: Time,
    table: Table,
    sessions: BTreeMap<AgentId, SessionId>,
    asked: BTreeMap<Tid, Asked>,
    last_tid: u32,
    /// Sent answers.
    answers: Answers,
}

/// The number of answers by protocol, operation and result code.
pub(crate) type Answers = BTreeMap<(&'static str, &'static str, u16), u64>;

/// A host to answer.
#[derive(Debug, Clone, Copy)]
struct Host {
    socket: u32,
    address: SocketAddr,
}

/// A pending request to the middlebox.
#[derive(Debug)]
struct Asked {
    /// `None` if nobody waits for it.
    host: Option<Host>,
    wanted: Wanted,
    octets: Vec<u8>,
    agent: AgentId,
}

/// The immediate result of a request.
enum Outcome {
    Answer(Vec<u8>),
    /// The middlebox has been asked.
    Asked,
}

impl PortMapper {
    /// Maximum datagrams read per turn.
    pub const MOST_HEARD: usize = 32;

    /// Opens the sockets, on this interface if given.
    pub fn open(
        addresses: &[SocketAddr],
        interface: Option<&str>,
        address: Option<Ipv4Addr>,
        most: usize,
    ) -> Result<Self, (SocketAddr, io::Error)> {
        let open = |at: &SocketAddr| open(*at, interface).map_err(|error| (*at, error));
        let sockets = addresses.iter().map(open).collect::<Result<_, _>>()?;
        let (table, sessions, asked) = Default::default();
        let answers = Answers::new();
        Ok(Self { sockets, address, most, start: Time::ZERO, table, sessions, asked, last_tid: 0, answers })
    }

    /// Starts with the mappings of restored rules.
    pub fn begin(&mut self, now: Time, middlebox: &Middlebox) {
        self.start = now;
        let policy = middlebox.policy();
        for rule in middlebox.rules(now) {
            let host = rule.ends().and_then(|(internal, _)| host_of(&internal));
            if host.and_then(|host| policy.agent_at(host.ip())) == Some(rule.owner) {
                self.table.restore(rule);
            }
        }
    }

    pub fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().map(UdpSocket::as_fd)
    }

    /// Returns its addresses, with the actual ports.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok())
    }

    /// Reads a datagram of this socket; returns false if there is none.
    pub fn hear(
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
        self.take(now, (Host { socket, address }, ip), &buffer[..length], middlebox, batch);
        Ok(true)
    }

    /// Answers a host's request, or passes it to the middlebox.
    fn take(
        &mut self,
        now: Time,
        (host, ip): (Host, IpAddr),
        octets: &[u8],
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) {
        batch.count(Self::DATAGRAM);
        match self.understand(now, (host, ip), octets, middlebox, batch) {
            Ok(Some(Outcome::Answer(answer))) => self.say(host, &answer),
            Ok(Some(Outcome::Asked) | None) => {}
            Err(refusal) => self.refuse(now, host, octets, refusal),
        }
    }

    /// Cost to parse and answer a datagram, in units of about a nanosecond.
    const DATAGRAM: u64 = 10_000;

    fn understand(
        &mut self,
        now: Time,
        (host, ip): (Host, IpAddr),
        octets: &[u8],
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Option<Outcome>, Refusal> {
        let epoch = self.epoch(now);
        let wanted = match hear(octets)? {
            None => return Ok(None),
            Some(Heard::NatPmp(nat_pmp::Request::Address)) => {
                let address = self.address.ok_or(Refusal::NetworkFailure)?;
                return Ok(Some(Outcome::Answer(nat_pmp::address(address, epoch))));
            }
            Some(Heard::NatPmp(nat_pmp::Request::Map { protocol, port, external, lifetime })) => {
                Wanted::by_nat_pmp(ip, protocol, port, external, lifetime)
            }
            Some(Heard::Pcp(request)) => match Wanted::by_pcp(request, ip)? {
                Some(wanted) => wanted,
                None => {
                    return Ok(Some(Outcome::Answer(reply::grant(&hol_pcp::Operation::Announce, 0, epoch))));
                }
            },
        };
        let agent = middlebox.policy().agent_at(ip).ok_or(Refusal::NotAuthorized)?;
        if self.asked.values().any(|asked| asked.host.is_some() && asked.wanted.key == wanted.key) {
            // The same request is pending; its answer serves both.
            return Ok(None);
        }
        let asked = Asked { host: Some(host), wanted, octets: octets.to_vec(), agent };
        self.want(now, asked, middlebox, batch).map(Some)
    }

    /// Fulfils a request, or passes it to the middlebox.
    fn want(
        &mut self,
        now: Time,
        asked: Asked,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, Refusal> {
        let (wanted, epoch) = (&asked.wanted, self.epoch(now));
        let key = wanted.key;
        if wanted.lifetime == 0 && (key.port == 0 || key.protocol == 0) {
            let answer = wanted.given_back(epoch);
            self.give_all_back(now, &asked, middlebox, batch)?;
            return Ok(Outcome::Answer(answer));
        }
        if !wanted.is_one_port() {
            return Err(Refusal::UnsupportedProtocol);
        }
        let had = self.table.get(&key).copied();
        if had.is_some_and(|had| had.nonce.is_some() && had.nonce != wanted.nonce) {
            return Err(Refusal::NotAuthorized);
        }
        match had {
            None if wanted.lifetime == 0 => Ok(Outcome::Answer(wanted.given_back(epoch))),
            None => self.begin_mapping(now, asked, middlebox, batch),
            Some(Granted { pid, .. }) if wanted.lifetime == 0 => {
                self.change(now, asked, pid, Lifetime(0), middlebox, batch)
            }
            Some(had) if wanted.outside.is_exact && is_other(wanted.outside.outside, had.outside) => {
                Err(Refusal::CannotProvideExternal)
            }
            Some(had) if had.filter == wanted.filter => {
                let lifetime = wanted.seconds();
                self.change(now, asked, had.pid, lifetime, middlebox, batch)
            }
            Some(had) => {
                // Another rule with the same port. It takes no more than the one that it replaces, which ends only if
                // nothing is in its way.
                check_rights(&asked, middlebox)?;
                let gone =
                    Asked { host: None, wanted: wanted.clone(), octets: Vec::new(), agent: asked.agent };
                self.change(now, gone, had.pid, Lifetime(0), middlebox, batch)?;
                let mut asked = asked;
                asked.wanted.outside.outside = had.outside;
                self.enable(now, asked, middlebox, batch)
            }
        }
    }

    fn begin_mapping(
        &mut self,
        now: Time,
        asked: Asked,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, Refusal> {
        let (wanted, key) = (&asked.wanted, asked.wanted.key);
        // A port that is mapped for everybody already lets this flow pass. RFC 6887 section 12.3.
        if key.remote.is_some()
            && let Some(mapped) = self.table.get(&Key { remote: None, ..key })
        {
            return Ok(Outcome::Answer(wanted.grant(mapped, now, self.epoch(now))));
        }
        let under_way = self.asked.values().filter(|other| other.wanted.key.host == key.host).count();
        let has = self.table.of(key.host).count() + under_way;
        if has >= self.most {
            return Err(Refusal::UserExceedsQuota);
        }
        if has >= Self::FEW && self.is_scarce(asked.agent, middlebox) {
            return Err(Refusal::NoResources);
        }
        check_rights(&asked, middlebox)?;
        self.enable(now, asked, middlebox, batch)
    }

    fn enable(
        &mut self,
        now: Time,
        asked: Asked,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, Refusal> {
        let (enable, mapping) = (asked.wanted.enable(), asked.wanted.outside);
        let session = self.session(now, asked.agent, middlebox, batch)?;
        let tid = self.note(asked);
        middlebox.ask(now, session, tid, Request::Per { enable, gid: None }, Some(mapping), batch);
        Ok(Outcome::Asked)
    }

    /// Mappings that a host gets even when few are left: those are reserved for hosts with fewer.
    const FEW: usize = 4;

    /// Returns true if only a quarter is left of what all hosts of this agent may map together.
    fn is_scarce(&self, agent: AgentId, middlebox: &Middlebox) -> bool {
        let quota = middlebox.policy().quota(agent);
        let is_nat = middlebox.capabilities().include(Capabilities::NAT);
        let most = if is_nat { quota.ports.min(quota.rules) } else { quota.rules };
        let under_way = self.asked.values().filter(|asked| asked.agent == agent).count();
        self.table.count_of(agent) + under_way >= most - most / 4
    }

    fn change(
        &mut self,
        now: Time,
        asked: Asked,
        pid: Pid,
        lifetime: Lifetime,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<Outcome, Refusal> {
        let session = self.session(now, asked.agent, middlebox, batch)?;
        let tid = self.note(asked);
        middlebox.ask(now, session, tid, Request::Plc { pid, lifetime }, None, batch);
        Ok(Outcome::Asked)
    }

    /// Deletes all mappings of the host, or those of a protocol, that it may delete. RFC 6887 section 15.1,
    /// RFC 6886 section 3.4.
    fn give_all_back(
        &mut self,
        now: Time,
        asked: &Asked,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let wanted = &asked.wanted;
        let is_meant = |(key, granted): &(&Key, &Granted)| {
            key.remote.is_none()
                && (wanted.key.protocol == 0 || wanted.key.protocol == key.protocol)
                && (granted.nonce.is_none() || granted.nonce == wanted.nonce)
        };
        let meant = self.table.of(wanted.key.host).filter(is_meant);
        let meant: Vec<(Key, Pid)> = meant.map(|(key, granted)| (*key, granted.pid)).collect();
        for (key, pid) in meant {
            let wanted = Wanted { key, ..wanted.clone() };
            let one = Asked { host: None, wanted, octets: Vec::new(), agent: asked.agent };
            self.change(now, one, pid, Lifetime(0), middlebox, batch)?;
        }
        Ok(())
    }

    fn note(&mut self, asked: Asked) -> Tid {
        self.last_tid = self.last_tid.wrapping_add(1);
        let tid = Tid(self.last_tid);
        self.asked.insert(tid, asked);
        tid
    }

    /// Returns the session of an agent, opening it for its first host.
    fn session(
        &mut self,
        now: Time,
        agent: AgentId,
        middlebox: &mut Middlebox,
        batch: &mut Batch,
    ) -> Result<SessionId, Refusal> {
        if let Some(session) = self.sessions.get(&agent) {
            return Ok(*session);
        }
        let name = middlebox.policy().agent_name(agent).to_owned();
        let underlay =
            ConnectionInfo { is_secure: true, agent: Some(name), ..ConnectionInfo::plain(Framing::Messages) };
        let session = middlebox.connect(now, underlay);
        let establish = Request::Se { version: Version::SIMCO_3_0, challenge: None };
        // Registered before its first message arrives.
        self.sessions.insert(agent, session);
        middlebox.receive(now, session, Message::request(Tid(0), establish).to_bytes(), batch);
        if middlebox.agent(session).is_none() {
            self.close(session);
            return Err(Refusal::NoResources);
        }
        Ok(session)
    }

    /// Returns true if this is one of its sessions.
    pub fn has(&self, session: SessionId) -> bool {
        self.sessions.values().any(|ours| *ours == session)
    }

    /// Handles the end of the session.
    pub fn close(&mut self, session: SessionId) {
        self.sessions.retain(|_, ours| *ours != session);
    }

    /// Handles a committed message of the middlebox, and answers the host.
    pub fn learn(&mut self, now: Time, Message { tid, body }: Message) {
        if let Body::Notification(Notification::Are { pid, lifetime }) = body {
            return match lifetime {
                Lifetime(0) => self.table.end(pid),
                lifetime => self.table.prolong(pid, lifetime.end(now)),
            };
        }
        let Some(Asked { host, wanted, octets, agent }) = self.asked.remove(&tid) else { return };
        match (self.outcome(now, &wanted, agent, &body), host) {
            (Ok(answer), Some(host)) => self.say(host, &answer),
            (Err(refusal), Some(host)) => self.refuse(now, host, &octets, refusal),
            (_, None) => {}
        }
    }

    fn outcome(
        &mut self,
        now: Time,
        wanted: &Wanted,
        agent: AgentId,
        body: &Body,
    ) -> Result<Vec<u8>, Refusal> {
        let (key, epoch) = (wanted.key, self.epoch(now));
        let granted = match body {
            Body::Reply(Reply::Per(rule)) => {
                let outside = host_of(&rule.outside).ok_or(Refusal::NetworkFailure)?;
                let (nonce, filter, until) = (wanted.nonce, wanted.filter, rule.lifetime.end(now));
                Granted { pid: rule.pid, nonce, outside, filter, until, agent }
            }
            Body::Reply(Reply::Plc { lifetime }) => {
                let had = self.table.get(&key).ok_or(Refusal::NetworkFailure)?;
                Granted { nonce: wanted.nonce, until: lifetime.end(now), ..*had }
            }
            Body::Reply(_) => {
                self.table.remove(&key);
                return Ok(wanted.given_back(epoch));
            }
            Body::Refusal(refusal) => {
                if *refusal == hol_simco::Refusal::NoSuchRule {
                    self.table.remove(&key);
                }
                return Err(in_pcp(*refusal, wanted.outside.is_exact));
            }
            _ => return Err(Refusal::NetworkFailure),
        };
        self.table.insert(key, granted);
        Ok(wanted.grant(&granted, now, epoch))
    }

    fn refuse(&mut self, now: Time, host: Host, octets: &[u8], refusal: Refusal) {
        let epoch = self.epoch(now);
        let answer = match octets.first() {
            Some(0) => nat_pmp::refusal(octets, refusal, epoch),
            _ => reply::refusal(octets, refusal, epoch),
        };
        self.say(host, &answer);
    }

    /// Sends an answer; a host that does not get it asks again.
    fn say(&mut self, host: Host, octets: &[u8]) {
        if let Some(kind) = kind_of(octets) {
            *self.answers.entry(kind).or_default() += 1;
        }
        let _ = self.sockets[host.socket as usize].send_to(octets, host.address);
    }

    /// Returns the number of answers of each kind.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Returns the number of mappings.
    pub fn mappings(&self) -> usize {
        self.table.len()
    }

    /// Returns the epoch in seconds. RFC 6887 section 8.5.
    fn epoch(&self, now: Time) -> u32 {
        (now.saturating_since(self.start).as_millis() / 1000) as u32
    }
}

/// Fails if the policy does not let the agent have what one of its hosts wants.
fn check_rights(Asked { wanted, agent, .. }: &Asked, middlebox: &Middlebox) -> Result<(), Refusal> {
    let enable = wanted.enable();
    let is_covered = middlebox.policy().covers(*agent, &enable.internal, &enable.external);
    if is_covered { Ok(()) } else { Err(Refusal::NotAuthorized) }
}

/// Returns true if this is not the outside address and port that are wanted. Any address will do for an unspecified one.
fn is_other(wanted: SocketAddr, outside: SocketAddr) -> bool {
    outside.port() != wanted.port() || !wanted.ip().is_unspecified() && outside.ip() != wanted.ip()
}

/// Returns the protocol, the operation and the result of an answer. RFC 6887 section 7.2, RFC 6886 section 3.3.
fn kind_of(octets: &[u8]) -> Option<(&'static str, &'static str, u16)> {
    let &[version, operation, high, low, ..] = octets else { return None };
    // Hosts can ask for any operation: those that are none count as one.
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

/// Converts a refusal of SIMCO to PCP.
fn in_pcp(refusal: hol_simco::Refusal, is_exact: bool) -> Refusal {
    use hol_simco::Refusal as Simco;
    match refusal {
        Simco::LackOfAddresses | Simco::LackOfPorts if is_exact => Refusal::CannotProvideExternal,
        Simco::LackOfAddresses | Simco::LackOfPorts | Simco::NoResources => Refusal::NoResources,
        Simco::NotAuthorized | Simco::RuleNotAuthorized | Simco::Conflict => Refusal::NotAuthorized,
        Simco::ProtocolNotSupported | Simco::IpVersionMismatch => Refusal::UnsupportedProtocol,
        _ => Refusal::NetworkFailure,
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
