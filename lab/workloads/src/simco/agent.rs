//! The SIMCO agent's requests: one session per connection or association, then requests about rules. RFC 4540.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use hol_base::{Duration, Rng, Time};
use hol_measure::RecordKind;
use hol_simco::{
    AddressTuple, Body, Direction, Enable, Header, Lifetime, Location, Message, PerParameters, Pid,
    PortParity, Reply, Request, Tid, Version,
};
use hol_transport::FramingError;

use super::mix::{RequestMix, RequestPurpose};
use super::octets::MessageBuffer;
use crate::sender::{RepliedRequest, RequestSource};
use crate::{ConnectionId, StreamLayout};

/// A SIMCO agent that sends requests like a call server, which enables, extends and deletes rules for the media of its
/// calls.
#[derive(Debug)]
pub(crate) struct Agent {
    sessions: u16,
    /// Number of transaction identifiers (TIDs) reserved for session control: one for each attempt to send the SE
    /// (session establishment) request of each session.
    control_tids: u32,
    mix: RequestMix,
    rng: Rng,
    /// Rules without a pending request, in order of expiry. Requests on different streams may overtake each other, so a
    /// rule has at most one pending request.
    idle: VecDeque<IdleRule>,
    /// Pending requests that change an existing rule, by message number; all other pending requests enable a rule.
    changes: BTreeMap<u32, Change>,
    octets: MessageBuffer,
}

/// A rule in force without a pending request.
#[derive(Debug)]
struct IdleRule {
    pid: Pid,
    /// The time after which the agent lets the rule expire, because a repeated request might arrive too late.
    usable_until: Time,
}

/// A change of an existing rule.
#[derive(Debug)]
enum Change {
    Lifetime(Pid),
    Delete,
}

impl Agent {
    /// IP protocol number of the media: UDP.
    const MEDIA_PROTOCOL: u8 = 17;
    /// Lifetime of a rule in s: long enough for any delay, and short enough to keep the middlebox's table small.
    const RULE_LIFETIME: Lifetime = Lifetime(10);
    /// How long the agent may send requests about a rule after it was enabled or extended.
    const CHANGE_TIME: Duration = Duration::from_secs(5);

    /// Creates an agent; `rng` draws the purpose of each request.
    pub(crate) fn new(lanes: StreamLayout, mix: RequestMix, rng: Rng) -> Self {
        let (sessions, control_tids) = (lanes.connections, control_tids(lanes));
        let (idle, changes, octets) = (VecDeque::new(), BTreeMap::new(), MessageBuffer::new());
        Self { sessions, control_tids, mix, rng, idle, changes, octets }
    }

    /// Returns the SE (session establishment) request that opens a session. SE requests have the first TIDs, and a
    /// repeated SE request has a new TID. RFC 4540 sections 4.2 and 5.2.1.
    pub(super) fn open(&mut self, session: u32, attempt: u32) -> (Tid, Bytes) {
        let tid = Tid(attempt * u32::from(self.sessions) + session);
        let request = Request::Se { version: Version::SIMCO_3_0, challenge: None };
        (tid, self.octets.encode(&Message::request(tid, request)))
    }

    /// Returns the request for message `number`. If no rule can be changed, the request enables a rule.
    pub(crate) fn request(&mut self, now: Time, number: u32) -> (Tid, Bytes) {
        let tid = Tid(number.wrapping_add(self.control_tids));
        let request = if self.mix.only_enables() {
            Self::enable_request(number)
        } else {
            self.draw_request(now, number)
        };
        (tid, self.octets.encode(&Message::request(tid, request)))
    }

    fn draw_request(&mut self, now: Time, number: u32) -> Request {
        while self.idle.front().is_some_and(|rule| rule.usable_until <= now) {
            self.idle.pop_front();
        }
        let purpose = self.mix.draw(&mut self.rng);
        let rule = if purpose == RequestPurpose::Enable { None } else { self.idle.pop_front() };
        let Some(IdleRule { pid, .. }) = rule else { return Self::enable_request(number) };
        let (change, lifetime) = match purpose {
            RequestPurpose::Delete => (Change::Delete, Lifetime(0)),
            _ => (Change::Lifetime(pid), Self::RULE_LIFETIME),
        };
        self.changes.insert(number, change);
        Request::Plc { pid, lifetime }
    }

    /// Builds a PER (policy enable rule) request of 56 octets. RFC 4540 section 5.3.3.
    fn enable_request(number: u32) -> Request {
        let [.., high, low] = number.to_be_bytes();
        let host = |net: u8| SocketAddr::from((Ipv4Addr::new(10, net, high, low), 5004));
        let enable = Enable {
            parameters: PerParameters { parity: PortParity::Any, direction: Direction::BiDirectional },
            internal: AddressTuple::of_host(Location::Internal, Self::MEDIA_PROTOCOL, host(200)),
            external: AddressTuple::of_host(Location::External, Self::MEDIA_PROTOCOL, host(201)),
            lifetime: Self::RULE_LIFETIME,
        };
        Request::Per { enable, gid: None }
    }

    /// Records that a rule was enabled or extended.
    fn note_rule(&mut self, now: Time, pid: Pid) {
        if !self.mix.only_enables() {
            self.idle.push_back(IdleRule { pid, usable_until: now + Self::CHANGE_TIME });
        }
    }
}

impl RequestSource for Agent {
    fn kind(&self) -> RecordKind {
        RecordKind::Transaction
    }

    fn session_setup(&mut self, session: ConnectionId, attempt: u32) -> Option<(u32, Bytes)> {
        let (tid, payload) = self.open(session.0, attempt);
        Some((tid.0, payload))
    }

    fn next(&mut self, now: Time, number: u32) -> (u32, Bytes) {
        let (tid, payload) = self.request(now, number);
        (tid.0, payload)
    }

    fn reply(&mut self, now: Time, octets: &Bytes) -> Result<RepliedRequest, &'static str> {
        let Message { tid, body } =
            Message::parse(octets).map_err(|_| "the peer sent an invalid SIMCO message")?;
        let Some(number) = tid.0.checked_sub(self.control_tids) else {
            let session = ConnectionId(tid.0 % u32::from(self.sessions));
            return Ok(match body {
                Body::Reply(Reply::Se { .. }) => RepliedRequest::Session(session),
                _ => RepliedRequest::SessionRefused(session),
            });
        };
        match (self.changes.remove(&number), body) {
            (None, Body::Reply(Reply::Per(rule))) => self.note_rule(now, rule.pid),
            (Some(Change::Lifetime(pid)), Body::Reply(Reply::Plc { .. })) => self.note_rule(now, pid),
            (Some(Change::Delete), Body::Reply(Reply::Prd)) => {}
            _ => return Ok(RepliedRequest::Refused(number)),
        }
        Ok(RepliedRequest::Message(number))
    }
}

/// Returns the number of transaction identifiers reserved for session control.
pub(crate) fn control_tids(lanes: StreamLayout) -> u32 {
    u32::from(lanes.connections) * lanes.max_setup_attempts()
}

/// Returns the message number of a request or reply; `None` for session control, which uses the first `control_tids`
/// TIDs.
pub(crate) fn message_number(octets: &[u8], control_tids: u32) -> Option<u32> {
    let tid = Header::parse(octets)?.tid;
    tid.0.checked_sub(control_tids)
}

/// Returns the length of the message that starts with `octets`. RFC 4540 section 4.2.
pub(crate) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    Ok(hol_simco::length_of(octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Seed;
    use hol_simco::{Batch, ConnectionInfo, Framing, Middlebox, Output, Refusal, SessionId};

    const CHANGES_ONLY: RequestMix = RequestMix { enable: 1, lifetime: 1_000_000, delete: 0 };

    fn agent(mix: RequestMix) -> Agent {
        Agent::new(
            StreamLayout {
                streams: 1,
                connections: 1,
                may_lose_messages: false,
                is_stream: false,
                handshake: None,
            },
            mix,
            Seed(1).rng(),
        )
    }

    /// A middlebox with one session.
    struct Peer(Middlebox, SessionId);

    impl Peer {
        fn new() -> Self {
            let mut middlebox = Middlebox::firewall(Lifetime(3600));
            let session = middlebox.connect(Time::ZERO, ConnectionInfo::plain(Framing::Messages));
            let mut opened = Self(middlebox, session);
            opened.answer(Time::ZERO, agent(RequestMix::default()).open(0, 0).1);
            opened
        }

        fn answer(&mut self, now: Time, request: Bytes) -> Bytes {
            let mut batch = Batch::default();
            self.0.receive(now, self.1, request, &mut batch);
            let Some(Output::Send(_, reply)) = batch.release().next() else { panic!("no reply") };
            reply.to_bytes()
        }
    }

    /// With IPv4 address tuples a request has 56 octets and its reply 64. RFC 4540 sections 5.3.3 and 5.3.10.
    #[test]
    fn simco_request_takes_56_octets_and_its_reply_64() {
        let (mut agent, mut middlebox) = (agent(RequestMix::default()), Peer::new());
        let (tid, request) = agent.request(Time::ZERO, 41);
        assert_eq!((tid, request.len(), message_number(&request, 1)), (Tid(42), 56, Some(41)));
        let reply = middlebox.answer(Time::ZERO, request);
        assert_eq!((reply.len(), agent.reply(Time::ZERO, &reply)), (64, Ok(RepliedRequest::Message(41))));
        assert!(agent.idle.is_empty());
    }

    /// If the reply to an SE is lost, the SE is repeated as a new request, which the middlebox refuses because the
    /// session is already open. RFC 4540 section 5.2.1.
    #[test]
    fn refused_repetition_of_a_session_setup_counts_as_open() {
        let lanes = StreamLayout {
            streams: 2,
            connections: 2,
            may_lose_messages: true,
            is_stream: false,
            handshake: None,
        };
        let mut agent = Agent::new(lanes, RequestMix::default(), Seed(1).rng());
        let (mut middlebox, second) = (Peer::new(), ConnectionId(1));
        let (tid, again) = agent.open(1, 1);
        let reply = middlebox.answer(Time::ZERO, again);
        assert_eq!(
            (tid, agent.reply(Time::ZERO, &reply)),
            (Tid(3), Ok(RepliedRequest::SessionRefused(second)))
        );
        let (_, request) = agent.request(Time::ZERO, 0);
        assert_eq!(message_number(&request, control_tids(lanes)), Some(0));
    }

    #[test]
    fn enabled_rules_are_changed_and_deleted_without_refusals() {
        let mut agent = agent(RequestMix { enable: 1, lifetime: 1, delete: 1 });
        let mut middlebox = Peer::new();
        let mut sizes = [0; 3];
        for number in 0..3000 {
            let now = Time::from_millis(10 * u64::from(number));
            let (_, request) = agent.request(now, number);
            let reply = middlebox.answer(now, request);
            assert_eq!(agent.reply(now, &reply), Ok(RepliedRequest::Message(number)));
            // The replies to PER, PLC and its special case PRD. RFC 4540 sections 5.3.10 to 5.3.12.
            sizes[[64, 16, 8].iter().position(|size| *size == reply.len()).expect("a reply")] += 1;
        }
        assert!(sizes.iter().all(|count| *count > 900), "{sizes:?}");
        assert!(agent.changes.is_empty());
    }

    #[test]
    fn rules_with_pending_requests_or_near_expiry_are_not_changed() {
        let (mut agent, mut middlebox) = (agent(CHANGES_ONLY), Peer::new());
        let enable = |agent: &mut Agent, now, number| agent.request(now, number).1.len() == 56;
        let (_, first) = agent.request(Time::ZERO, 0);
        assert!(enable(&mut agent, Time::ZERO, 1), "there is no rule yet");
        let reply = middlebox.answer(Time::ZERO, first);
        agent.reply(Time::ZERO, &reply).unwrap();
        assert!(!enable(&mut agent, Time::ZERO, 2));
        assert!(enable(&mut agent, Time::ZERO, 3), "the only rule is being changed");
        agent.note_rule(Time::ZERO, Pid(7));
        assert!(enable(&mut agent, Time::ZERO + Agent::CHANGE_TIME, 4));
    }

    #[test]
    fn refusals_and_mismatched_replies_name_the_failed_message() {
        let mut agent = agent(CHANGES_ONLY);
        agent.note_rule(Time::ZERO, Pid(7));
        agent.request(Time::ZERO, 0);
        let deleted = Message::reply(Tid(1), Reply::Prd).to_bytes();
        assert_eq!(agent.reply(Time::ZERO, &deleted), Ok(RepliedRequest::Refused(0)));
        let refusal = Message::refusal(Tid(2), Refusal::NoSuchRule).to_bytes();
        assert_eq!(agent.reply(Time::ZERO, &refusal), Ok(RepliedRequest::Refused(1)));
        assert!(agent.idle.is_empty(), "the agent has forgotten the rule");
    }
}
