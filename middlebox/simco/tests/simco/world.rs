//! A middlebox with a null filter, and agents with connections to it.

use std::collections::BTreeMap;

use hol_base::Time;
use hol_simco::*;

pub const UDP: u8 = 17;
pub const TCP: u8 = 6;
pub const START: Time = Time::ZERO;
pub const HOUR: Lifetime = Lifetime(3600);

/// The agents of most tests: `alice` and `bob` may access their own rules, `operator` all, and only it may
/// block.
pub const POLICY: &str = "
quota = { addresses = 8 }
[agents.alice]
[agents.bob]
[agents.operator]
may = ['reserve', 'enable', 'disable', 'lifetime', 'status', 'list']
access = 'all'
";

/// The middlebox, the messages on its connections, and its changes.
pub struct World {
    pub middlebox: Middlebox,
    pub batch: Batch,
    /// Messages to each connection that the test has not read; `None` is the end.
    inboxes: BTreeMap<SessionId, Vec<Option<Message>>>,
    /// All applied changes.
    pub changes: Vec<Change>,
    tid: u32,
}

impl World {
    pub fn new(middlebox: Middlebox) -> Self {
        Self { middlebox, batch: Batch::default(), inboxes: BTreeMap::new(), changes: Vec::new(), tid: 100 }
    }

    /// Returns a pure firewall without authentication, and one open session.
    pub fn firewall() -> (Self, SessionId) {
        let mut world = Self::new(Middlebox::firewall(HOUR));
        let session = world.open(None);
        (world, session)
    }

    /// Returns a pure firewall with [`POLICY`] for agents that the layers below have authenticated.
    pub fn with_agents(config: Config) -> Self {
        let policy = Policy::parse(POLICY).unwrap();
        Self::new(Middlebox::new(config, policy, Box::new(Unauthenticated)).unwrap())
    }

    pub fn connect(&mut self, underlay: ConnectionInfo) -> SessionId {
        self.middlebox.connect(START, underlay)
    }

    /// Opens a session of this agent.
    pub fn open(&mut self, agent: Option<&str>) -> SessionId {
        let agent = agent.map(str::to_owned);
        let id = self.connect(ConnectionInfo { agent, ..ConnectionInfo::plain(Framing::Messages) });
        let reply = self.ask(START, id, se());
        assert!(matches!(reply, Body::Reply(Reply::Se { .. })), "{reply:?}");
        id
    }

    /// Passes octets to the middlebox, applies all changes, and delivers the messages.
    pub fn receive(&mut self, now: Time, id: SessionId, octets: &[u8]) {
        self.middlebox.receive(now, id, octets.to_vec().into(), &mut self.batch);
        self.release();
    }

    pub fn advance(&mut self, now: Time) {
        self.middlebox.advance(now, &mut self.batch);
        self.release();
    }

    pub fn release(&mut self) {
        self.changes.extend_from_slice(self.batch.changes());
        for output in self.batch.release() {
            let (id, message) = match output {
                Output::Send(id, message) => (id, Some(message)),
                Output::Close(id) => (id, None),
            };
            self.inboxes.entry(id).or_default().push(message);
        }
    }

    /// Returns the messages since the last call; `None` is the end.
    pub fn take_messages(&mut self, id: SessionId) -> Vec<Option<Body>> {
        let inbox = self.inboxes.remove(&id).unwrap_or_default();
        inbox.into_iter().map(|message| message.map(|message| message.body)).collect()
    }

    /// Returns the rules and lifetimes in the AREs since the last call.
    pub fn events(&mut self, id: SessionId) -> Vec<(Pid, u32)> {
        let event = |received| match received {
            Some(Body::Notification(Notification::Are { pid, lifetime })) => (pid, lifetime.0),
            other => panic!("{other:?} is not an ARE"),
        };
        self.take_messages(id).into_iter().map(event).collect()
    }

    /// Returns the reply to a request, whose TID is checked. Earlier messages to the connection are dropped.
    pub fn ask(&mut self, now: Time, id: SessionId, request: Request) -> Body {
        self.tid += 1;
        self.ask_with(now, id, Tid(self.tid), request)
    }

    /// Returns the reply to a request with this TID.
    pub fn ask_with(&mut self, now: Time, id: SessionId, tid: Tid, request: Request) -> Body {
        self.inboxes.remove(&id);
        self.receive(now, id, &Message::request(tid, request).to_bytes());
        let replies = self.inboxes.get_mut(&id).expect("a reply");
        let at =
            replies.iter().position(|message| message.as_ref().is_some_and(|message| message.tid == tid));
        replies.remove(at.expect("a reply with the TID")).unwrap().body
    }

    /// Returns the positive reply to a request.
    pub fn granted(&mut self, now: Time, id: SessionId, request: Request) -> GrantedRule {
        match self.ask(now, id, request) {
            Body::Reply(Reply::Per(granted) | Reply::Prr(granted)) => granted,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the negative reply to a request.
    pub fn refused(&mut self, id: SessionId, request: Request) -> Refusal {
        match self.ask(START, id, request) {
            Body::Refusal(refusal) => refusal,
            other => panic!("{other:?}"),
        }
    }
}

pub fn se() -> Request {
    Request::Se { version: Version::SIMCO_3_0, challenge: None }
}

pub fn at(seconds: u64) -> Time {
    Time::from_millis(1000 * seconds)
}

pub fn internal(protocol: u8, host: &str) -> AddressTuple {
    AddressTuple::of_host(Location::Internal, protocol, host.parse().unwrap())
}

pub fn external(protocol: u8, host: &str) -> AddressTuple {
    AddressTuple::of_host(Location::External, protocol, host.parse().unwrap())
}

/// Returns a pinhole for UDP from any port of 198.51.100.7 to 192.0.2.1:5004.
pub fn pinhole(lifetime: u32) -> Enable {
    Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: internal(UDP, "192.0.2.1:5004"),
        external: external(UDP, "198.51.100.7:0"),
        lifetime: Lifetime(lifetime),
    }
}

pub fn per(lifetime: u32) -> Request {
    Request::Per { enable: pinhole(lifetime), gid: None }
}

pub fn prr(lifetime: u32) -> Request {
    Request::Prr { parameters: two_even_ports(), lifetime: Lifetime(lifetime), gid: None }
}

/// Returns a reservation for RTP and RTCP.
pub fn two_even_ports() -> PrrParameters {
    PrrParameters {
        nat_mode: NatMode::Traditional,
        parity: ReservedParity::Even,
        inside: IpChoice::V4,
        outside: IpChoice::V4,
        protocol: UDP,
        port_range: 2,
    }
}

pub fn plc(pid: Pid, lifetime: u32) -> Request {
    Request::Plc { pid, lifetime: Lifetime(lifetime) }
}

/// Returns a PDR for all UDP of an attacker.
pub fn pdr(attacker: &str, lifetime: u32) -> Request {
    let anybody = AddressTuple { prefix_length: 0, ..internal(UDP, "0.0.0.0:0") };
    Request::Pdr { internal: anybody, external: external(UDP, attacker), lifetime: Lifetime(lifetime) }
}

/// Returns the configuration of a firewall that also blocks.
pub fn blocking_firewall() -> Config {
    let mut config = Config::firewall(HOUR);
    config.capabilities.middlebox_type |= Capabilities::PDR;
    config
}

/// Returns the configuration of a NAT with a packet filter, both IP versions outside; `kinds` adds to its
/// type.
pub fn nat(kinds: u8) -> Config {
    let middlebox_type =
        Capabilities::NAT | Capabilities::PACKET_FILTER | Capabilities::PORT_TRANSLATION | kinds;
    let flags = Capabilities::PORT_WILDCARD | Capabilities::IPV4 | Capabilities::IPV6;
    Config {
        capabilities: Capabilities { middlebox_type, flags, max_lifetime: HOUR },
        outside: vec!["203.0.113.1".parse().unwrap(), "2001:db8:2::1".parse().unwrap()],
        inside: vec!["10.255.0.1".parse().unwrap(), "fd00::1".parse().unwrap()],
        ports: 40_000..=40_009,
        ..Config::firewall(HOUR)
    }
}
