//! The middlebox's side of one session: a pure firewall without a packet filter behind it.
//!
//! It serves measurements, so it answers SE, ST, PER, PLC, PRS and PRL of one agent, refuses PRR, PEA and PDR as
//! "transaction not supported", does not authenticate, and announces no expiries.

use hol_base::Time;
use smallvec::{SmallVec, smallvec};

use crate::header::{basic_type, sub_type};
use crate::policy::Rules;
use crate::{
    Addresses, Body, Capabilities, Direction, Enable, EnabledRule, Gid, Granted, Header, Lifetime, Location,
    Message, Notification, Owner, ParseError, Pid, Refusal, Reply, Request, Tid, Version,
};

/// A middlebox with one session at most.
#[derive(Debug)]
pub struct Middlebox {
    capabilities: Capabilities,
    session: Session,
    rules: Rules,
    notifications: u32,
}

/// RFC 4540 section 7.1, figure 41; without authentication there is no NOAUTH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Session {
    Closed,
    Open,
}

/// What the middlebox sends back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The messages, in order.
    pub messages: SmallVec<[Message; 1]>,
    /// The middlebox closes the connection behind them.
    pub close: bool,
}

impl Answer {
    fn to(tid: Tid, body: Body) -> Self {
        Self { messages: smallvec![Message { tid, body }], close: false }
    }

    fn closing(self) -> Self {
        Self { close: true, ..self }
    }
}

impl Middlebox {
    /// A middlebox that waits for a session.
    pub fn new(capabilities: Capabilities) -> Self {
        Self { capabilities, session: Session::Closed, rules: Rules::default(), notifications: 0 }
    }

    /// Answers one message, cut from the stream by [`length_of`](crate::length_of). RFC 4540 section 6.
    pub fn handle(&mut self, now: Time, octets: &[u8]) -> Answer {
        let is_whole = |header: &Header| header.message_length() == octets.len();
        let Some(header) = Header::parse(octets).filter(is_whole) else {
            return self.report_broken_header();
        };
        match self.check_format(header, octets) {
            Ok(request) => self.answer(now, header.tid, request),
            Err(refusal) => {
                let close = self.session == Session::Closed;
                Answer { close, ..Answer::to(header.tid, Body::Refusal(refusal)) }
            }
        }
    }

    /// RFC 4540 section 6, steps 3 to 5; without a session only SE passes them.
    fn check_format(&self, header: Header, octets: &[u8]) -> Result<Request, Refusal> {
        if header.basic_type != basic_type::REQUEST {
            return Err(Refusal::WrongBasicType);
        }
        if self.session == Session::Closed && header.sub_type != sub_type::SE {
            return Err(Refusal::WrongSubType);
        }
        Request::parse(header.sub_type, &octets[Header::LENGTH..]).map_err(|error| match error {
            ParseError::SubType(_) => Refusal::WrongSubType,
            _ => Refusal::BadlyFormed,
        })
    }

    /// BFM, and AST if a session ends by it. RFC 4540 section 6, step 1.
    fn report_broken_header(&mut self) -> Answer {
        let mut messages = smallvec![self.notify(Notification::Bfm)];
        if self.session == Session::Open {
            messages.push(self.notify(Notification::Ast));
        }
        self.session = Session::Closed;
        Answer { messages, close: true }
    }

    fn notify(&mut self, notification: Notification) -> Message {
        self.notifications = self.notifications.wrapping_add(1);
        Message::notification(Tid(self.notifications), notification)
    }

    fn answer(&mut self, now: Time, tid: Tid, request: Request) -> Answer {
        let outcome = match request {
            Request::Se { version, challenge } => return self.establish(tid, version, challenge.is_some()),
            Request::St => {
                self.session = Session::Closed;
                return Answer::to(tid, Body::Reply(Reply::St)).closing();
            }
            Request::Sa { .. } => Err(Refusal::NotApplicable),
            Request::Per { enable, gid } => self.enable(now, enable, gid),
            Request::Plc { pid, lifetime } => self.change_lifetime(now, pid, lifetime),
            Request::Prs { pid } => self.status(now, pid),
            Request::Prl => self.list(now),
            Request::Prr { .. } | Request::Pea { .. } | Request::Pdr { .. } => Err(Refusal::NotSupported),
        };
        Answer::to(tid, outcome.map_or_else(Body::Refusal, Body::Reply))
    }

    /// RFC 4540 section 7.2.
    fn establish(&mut self, tid: Tid, version: Version, challenged: bool) -> Answer {
        if self.session == Session::Open {
            return Answer::to(tid, Body::Refusal(Refusal::NotApplicable));
        }
        if version != Version::SIMCO_3_0 {
            return Answer::to(tid, Body::VersionMismatch(Version::SIMCO_3_0)).closing();
        }
        if challenged {
            return Answer::to(tid, Body::Refusal(Refusal::AuthenticationFailed)).closing();
        }
        self.session = Session::Open;
        Answer::to(tid, Body::Reply(Reply::Se { capabilities: self.capabilities }))
    }

    /// PER on a pure firewall: the tuples come back as the other side sees them. RFC 4540 section 8.3.2.
    fn enable(&mut self, now: Time, enable: Enable, gid: Option<Gid>) -> Result<Reply, Refusal> {
        if gid.is_some_and(|gid| !self.rules.knows_group(gid)) {
            return Err(Refusal::NoSuchGroup);
        }
        check(&enable, &self.capabilities)?;
        let lifetime = self.grant(enable.lifetime);
        if lifetime == Lifetime(0) {
            return Err(Refusal::ConfigurationFailed);
        }
        let (pid, gid) = self.rules.add(now, enable, gid, lifetime);
        let outside = enable.internal.seen_from(Location::Outside);
        let inside = Some(enable.external.seen_from(Location::Inside));
        Ok(Reply::Per(Granted { pid, gid, lifetime, outside, inside }))
    }

    /// RFC 4540 section 8.5.
    fn change_lifetime(&mut self, now: Time, pid: Pid, lifetime: Lifetime) -> Result<Reply, Refusal> {
        let lifetime = self.grant(lifetime);
        if !self.rules.change_lifetime(now, pid, lifetime) {
            return Err(Refusal::NoSuchRule);
        }
        Ok(if lifetime == Lifetime(0) { Reply::Prd } else { Reply::Plc { lifetime } })
    }

    /// RFC 4540 section 8.6; every rule here is an enabled one.
    fn status(&self, now: Time, pid: Pid) -> Result<Reply, Refusal> {
        let rule = self.rules.get(now, pid).ok_or(Refusal::NoSuchRule)?;
        let Enable { parameters, internal, external, lifetime: _ } = rule.enable;
        Ok(Reply::Pes(Box::new(EnabledRule {
            pid,
            gid: rule.gid,
            parameters,
            internal,
            inside: external.seen_from(Location::Inside),
            outside: internal.seen_from(Location::Outside),
            external,
            lifetime: rule.remaining(now),
            owner: Owner::new(Vec::new()),
        })))
    }

    /// RFC 4540 section 8.7.
    fn list(&self, now: Time) -> Result<Reply, Refusal> {
        /// As many as a 16-bit length can tell, at eight octets each.
        const MOST: usize = u16::MAX as usize / 8;
        let pids: Vec<Pid> = self.rules.pids(now).take(MOST + 1).collect();
        if pids.len() > MOST { Err(Refusal::ReplyTooBig) } else { Ok(Reply::Prl(pids)) }
    }

    /// RFC 4540 section 8.3.1: no longer than asked for, no longer than the maximum.
    fn grant(&self, requested: Lifetime) -> Lifetime {
        Lifetime(requested.0.min(self.capabilities.max_lifetime.0))
    }
}

/// The checks of a PER request, in the order of RFC 4540 section 8.3.1.
fn check(enable: &Enable, capabilities: &Capabilities) -> Result<(), Refusal> {
    let Enable { parameters, internal, external, lifetime: _ } = enable;
    let port_range = |addresses| match addresses {
        Addresses::Full { port_range, .. } => Some(port_range),
        Addresses::ProtocolsOnly(_) => None,
    };
    if (internal.location, external.location) != (Location::Internal, Location::External)
        || internal.protocol != external.protocol
        || port_range(internal.addresses) != port_range(external.addresses)
    {
        return Err(Refusal::Inconsistent);
    }
    let internal_wildcard = internal.has_address_wildcard();
    let external_wildcard = external.has_address_wildcard();
    let port_wildcard = internal.has_port_wildcard() || external.has_port_wildcard();
    if internal_wildcard && !capabilities.allow(Capabilities::INTERNAL_WILDCARD)
        || external_wildcard && !capabilities.allow(Capabilities::EXTERNAL_WILDCARD)
        || port_wildcard && !capabilities.allow(Capabilities::PORT_WILDCARD)
    {
        return Err(Refusal::WildcardNotSupported);
    }
    let any_wildcard = internal_wildcard || external_wildcard || port_wildcard;
    if parameters.direction == Direction::BiDirectional && any_wildcard {
        return Err(Refusal::Inconsistent);
    }
    Ok(())
}
