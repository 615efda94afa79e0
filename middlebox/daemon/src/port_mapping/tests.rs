//! A middlebox, and hosts whose datagrams the test passes to it.

use hol_base::Duration;
use hol_pcp::{Filter, Mapping, Operation};
use hol_simco::{Capabilities, Config, Direction, Output, Policy, Unauthenticated};

use super::*;

const PHONE: &str = "10.0.0.5";
const TELLY: &str = "10.0.0.6";
const POLICY: &str = "[agents.lan]\nhosts = ['10.0.0.0/24']\nquota = { ports = 20 }\n\
                      [agents.guests]\nhosts = ['10.0.0.128/25', 'fd00::/64']\nexternal = ['198.51.100.0/24', 'fd01::/64']";

/// An internal network with a middlebox and its port mapper.
struct Lan {
    mapper: PortMapper,
    middlebox: Middlebox,
    batch: Batch,
    socket: UdpSocket,
    now: Time,
}

impl Lan {
    /// Creates a network behind a NAT that has ports 40000 to 40999.
    fn behind_nat() -> Self {
        let mut config = Config::firewall(Lifetime(3600));
        config.capabilities.middlebox_type |= Capabilities::NAT | Capabilities::PORT_TRANSLATION;
        Self::behind(Config { outside: vec!["192.0.2.1".parse().unwrap()], ports: 40_000..=40_999, ..config })
    }

    fn behind(mut config: Config) -> Self {
        config.capabilities.flags |= Capabilities::IPV6;
        let policy = Policy::parse(POLICY).unwrap();
        let middlebox = Middlebox::new(config.clone(), policy, Box::new(Unauthenticated)).unwrap();
        let address = public_address(&config.outside);
        let any = "127.0.0.1:0".parse().unwrap();
        let mut mapper = PortMapper::open(&[any], None, address, 8).unwrap();
        let now = Time::from_millis(1_700_000_000_000);
        mapper.begin(now, &middlebox);
        let socket = UdpSocket::bind(any).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { mapper, middlebox, batch: Batch::default(), socket, now }
    }

    /// Restarts the middlebox and its port mapper; rules stay in force.
    fn restart(self) -> Self {
        let outside = self.mapper.address.map(IpAddr::from).into_iter().collect::<Vec<_>>();
        let mut anew = if outside.is_empty() { Self::firewall() } else { Self::behind_nat() };
        for rule in self.middlebox.rules(self.now) {
            let owner = self.middlebox.policy().agent_name(rule.owner);
            anew.middlebox.restore(self.now, *rule, owner).unwrap();
        }
        anew.mapper.table = Table::default();
        anew.now = self.now;
        anew.mapper.begin(anew.now, &anew.middlebox);
        anew
    }

    fn firewall() -> Self {
        Self::behind(Config::firewall(Lifetime(3600)))
    }

    /// Sends a datagram from a host and returns the answer; empty if there is none.
    fn send(&mut self, host: &str, octets: &[u8]) -> Vec<u8> {
        self.pass(host, octets);
        self.settle()
    }

    fn pass(&mut self, host: &str, octets: &[u8]) {
        let from = (Host { socket: 0, address: self.socket.local_addr().unwrap() }, host.parse().unwrap());
        self.mapper.handle(self.now, from, octets, &mut self.middlebox, &mut self.batch);
    }

    /// Lets the middlebox apply the pending requests, and returns the answer.
    fn settle(&mut self) -> Vec<u8> {
        let outputs: Vec<Output> = self.batch.release().collect();
        for output in outputs {
            match output {
                Output::Send(session, message) if self.mapper.has_session(session) => {
                    self.mapper.handle_reply(self.now, message);
                }
                Output::Close(session) => self.mapper.close(session),
                Output::Send(..) => {}
            }
        }
        let mut answer = [0; 2000];
        let length = self.socket.recv(&mut answer).unwrap_or(0);
        answer[..length].to_vec()
    }

    fn skip(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.middlebox.advance(self.now, &mut self.batch);
        assert!(self.settle().is_empty());
    }

    /// Requests a mapping for a host. Returns the outside address and port and the lifetime, or the result code.
    fn ask(&mut self, host: &str, lifetime: u32, operation: Operation) -> Result<(String, u32), u8> {
        let request = hol_pcp::Request { lifetime, client: host.parse().unwrap(), operation };
        let answer = self.send(host, &request.to_bytes());
        assert_eq!((answer[0], answer[1]), (2, request.to_bytes()[1] | 0x80));
        if answer[3] != 0 {
            return Err(answer[3]);
        }
        let port = u16::from_be_bytes([answer[42], answer[43]]);
        let octets: [u8; 16] = answer[44..60].try_into().unwrap();
        let outside = SocketAddr::new(IpAddr::from(octets).to_canonical(), port);
        Ok((outside.to_string(), u32::from_be_bytes(answer[4..8].try_into().unwrap())))
    }

    fn map(&mut self, host: &str, port: u16, lifetime: u32, external: u16) -> Result<(String, u32), u8> {
        self.ask(host, lifetime, map(port, external))
    }

    /// Returns the rules of all hosts.
    fn rules(&self) -> Vec<hol_simco::Rule> {
        self.middlebox.rules(self.now).copied().collect()
    }
}

fn mapping(port: u16, external: u16) -> Mapping {
    let external = SocketAddr::from((Ipv4Addr::UNSPECIFIED, external));
    Mapping { nonce: *b"a phone's no", protocol: 17, port, external }
}

fn map(port: u16, external: u16) -> Operation {
    Operation::Map { mapping: mapping(port, external), prefer_failure: false, filters: Vec::new() }
}

fn peer(port: u16, remote: &str) -> Operation {
    Operation::Peer { mapping: mapping(port, 0), remote: remote.parse().unwrap() }
}

fn granted(outside: &str, lifetime: u32) -> Result<(String, u32), u8> {
    Ok((outside.to_owned(), lifetime))
}

/// A mapping can be requested, extended and deleted. RFC 6887 sections 11.3 and 15.
#[test]
fn a_mapping_is_granted_extended_and_deleted() {
    let lan = &mut Lan::behind_nat();
    assert_eq!(
        lan.map(PHONE, 5004, 600, 40_123),
        granted("192.0.2.1:40123", 600),
        "the suggested port is free"
    );
    assert_eq!(
        lan.map(TELLY, 5004, 600, 40_123),
        granted("192.0.2.1:40124", 600),
        "the suggested port is taken"
    );
    lan.skip(100);
    assert_eq!(lan.map(PHONE, 5004, 7200, 40_999), granted("192.0.2.1:40123", 3600), "the maximum");
    assert_eq!(lan.rules().len(), 2);
    let hol_simco::Action::Enable { parameters, external, .. } = lan.rules()[0].action else { panic!() };
    assert_eq!(parameters.direction, Direction::BiDirectional, "datagrams pass both ways");
    assert!(external.has_address_wildcard(), "the mapping is open to all hosts");
    lan.skip(500);
    assert_eq!(lan.rules().len(), 1, "a lifetime ends");
    assert_eq!(lan.map(PHONE, 5004, 0, 0), granted("0.0.0.0:0", 0));
    assert_eq!(lan.map(PHONE, 5004, 0, 0), granted("0.0.0.0:0", 0), "deleting again succeeds");
    assert_eq!(lan.rules().len(), 0);
    assert_eq!(lan.map(PHONE, 5004, 5, 0).unwrap().1, 120, "the minimum lifetime is 120 s");
}

/// A host without the nonce cannot change a mapping. RFC 6887 section 11.3.
#[test]
fn a_mapping_is_changed_only_with_its_nonce() {
    let lan = &mut Lan::behind_nat();
    lan.map(PHONE, 5004, 600, 0).unwrap();
    let others = Mapping { nonce: *b"another's no", ..mapping(5004, 0) };
    let others = Operation::Map { mapping: others, prefer_failure: false, filters: Vec::new() };
    for lifetime in [0, 600] {
        assert_eq!(lan.ask(PHONE, lifetime, others.clone()), Err(2));
    }
    let nat_pmp = nat_pmp::Request::Map { protocol: 17, port: 5004, external: 0, lifetime: 0 };
    assert_eq!(lan.send(PHONE, &nat_pmp.to_bytes())[3], 2);
    let all = Mapping { protocol: 0, port: 0, ..mapping(0, 0) };
    let all_of_others = Mapping { nonce: *b"another's no", ..all };
    for (mapping, left) in [(all_of_others, 1), (all, 0)] {
        let operation = Operation::Map { mapping, prefer_failure: false, filters: Vec::new() };
        assert_eq!(lan.ask(PHONE, 0, operation).unwrap().1, 0);
        assert_eq!(lan.rules().len(), left);
    }
}

/// With PREFER_FAILURE a host gets the suggested port or an error. RFC 6887 section 13.2.
#[test]
fn prefer_failure_gets_the_suggested_port_or_an_error() {
    let lan = &mut Lan::behind_nat();
    let exactly = |external| Operation::Map {
        mapping: mapping(5004, external),
        prefer_failure: true,
        filters: Vec::new(),
    };
    assert_eq!(lan.ask(PHONE, 600, exactly(40_500)), granted("192.0.2.1:40500", 600));
    assert_eq!(lan.ask(TELLY, 600, exactly(40_500)), Err(11), "the port is taken");
    assert_eq!(lan.ask(TELLY, 600, exactly(80)), Err(11), "the port is outside the NAT's range");
    assert_eq!(lan.ask(PHONE, 600, exactly(40_501)), Err(11), "the mapping has another port");
    let lan = &mut Lan::firewall();
    assert_eq!(lan.ask(PHONE, 600, exactly(5005)), Err(11), "a firewall translates nothing");
    assert_eq!(lan.ask(PHONE, 600, exactly(5004)), granted("10.0.0.5:5004", 600));
}

/// A filter limits the hosts that may use a mapping, and can be changed. RFC 6887 section 13.3.
#[test]
fn a_filter_limits_the_users_of_a_mapping_and_can_change() {
    let lan = &mut Lan::behind_nat();
    let filter = |last| Filter { prefix_length: 24, address: [198, 51, 100, last].into(), port: 0 };
    let mapped = |filters: &[Filter]| Operation::Map {
        mapping: mapping(5004, 40_100),
        prefer_failure: false,
        filters: filters.to_vec(),
    };
    assert_eq!(lan.ask(PHONE, 600, mapped(&[filter(0)])), granted("192.0.2.1:40100", 600));
    let external = |lan: &Lan| lan.rules()[0].address_tuples().unwrap().1.prefix();
    assert_eq!(external(lan).length(), 24);
    assert_eq!(lan.ask(PHONE, 600, mapped(&[])), granted("192.0.2.1:40100", 600), "the port stays");
    assert_eq!((external(lan).length(), lan.rules().len()), (0, 1));
    assert_eq!(lan.ask(PHONE, 600, mapped(&[filter(0), filter(1)])), Err(13));
}

/// A changed filter needs a new rule. If that is refused, the previous rule and its filter stay in force.
#[test]
fn a_refused_filter_leaves_the_mapping_unchanged() {
    let lan = &mut Lan::behind_nat();
    let filtered = |port, address: &str, prefer_failure, external| {
        let filter = Filter { prefix_length: 32, address: address.parse().unwrap(), port: 0 };
        Operation::Map { mapping: mapping(port, external), prefer_failure, filters: vec![filter] }
    };
    // 18 of 20 ports are taken, so hosts with four mappings get no more.
    for (host, count) in [(PHONE, 3), (TELLY, 8), ("10.0.0.7", 4), ("10.0.0.8", 3)] {
        (0..count).for_each(|n| drop(lan.map(host, 5000 + n, 600, 40_100 + n).unwrap()));
    }
    assert_eq!(lan.rules().len(), 18);
    let (outside, _) = lan.map(PHONE, 5001, 600, 0).unwrap();
    assert_eq!(lan.ask(PHONE, 600, filtered(5001, "198.51.100.7", false, 0)), granted(&outside, 600));
    let (outside, _) = lan.map(TELLY, 5001, 600, 0).unwrap();
    assert_eq!(lan.ask(TELLY, 600, filtered(5001, "198.51.100.7", false, 0)), granted(&outside, 600));
    assert_eq!(lan.ask(TELLY, 600, filtered(5002, "198.51.100.7", true, 40_999)), Err(11), "another port");
    assert_eq!(lan.rules().len(), 18);
    // Guests may reach some networks only.
    let lan = &mut Lan::behind_nat();
    let guest = "10.0.0.200";
    let (outside, _) = lan.ask(guest, 600, filtered(5004, "198.51.100.7", false, 0)).unwrap();
    assert_eq!(lan.ask(guest, 600, filtered(5004, "192.0.2.7", false, 0)), Err(2));
    assert_eq!(lan.ask(guest, 600, filtered(5004, "198.51.100.7", false, 0)), granted(&outside, 600));
}

/// A PEER request uses an existing mapping of its port. RFC 6887 section 12.
#[test]
fn a_peer_request_uses_an_existing_mapping_of_its_port() {
    let lan = &mut Lan::behind_nat();
    let (outside, _) = lan.ask(PHONE, 600, peer(5004, "198.51.100.7:6000")).unwrap();
    assert!(outside.starts_with("192.0.2.1:4"), "{outside}");
    assert_eq!(lan.rules().len(), 1);
    let mapped = lan.map(PHONE, 5006, 600, 40_200).unwrap();
    lan.skip(10);
    let flow = lan.ask(PHONE, 900, peer(5006, "198.51.100.7:6000"));
    assert_eq!(flow, Ok((mapped.0, 590)), "the flow has the external port and the lifetime of the mapping");
    assert_eq!(lan.rules().len(), 2);
    assert_eq!(lan.ask(PHONE, 0, peer(5004, "198.51.100.7:6000")).unwrap().1, 0);
    assert_eq!(lan.rules().len(), 1);
    assert_eq!(lan.ask(PHONE, 600, peer(5004, "[fd01::1]:6000")), Err(9));
}

/// Requests that the policy forbids are refused. RFC 6887 sections 7.4, and 18.1 about trust in addresses.
#[test]
fn forbidden_requests_are_refused() {
    let lan = &mut Lan::behind_nat();
    assert_eq!(lan.map("192.168.0.1", 5004, 600, 0), Err(2), "the host belongs to no agent");
    let client = TELLY.parse().unwrap();
    let request = hol_pcp::Request { lifetime: 600, client, operation: map(5004, 0) };
    assert_eq!(lan.send(PHONE, &request.to_bytes())[3], 12, "the request contains another host's address");
    for (protocol, port) in [(0, 5004), (17, 0), (1, 5004)] {
        let mapping = Mapping { protocol, ..mapping(port, 0) };
        let operation = Operation::Map { mapping, prefer_failure: false, filters: Vec::new() };
        assert_eq!(lan.ask(PHONE, 600, operation), Err(9), "protocol {protocol}, port {port}");
    }
    assert_eq!(lan.map("10.0.0.200", 5004, 600, 0), Err(2), "the policy limits the remote hosts of guests");
    assert_eq!(lan.send(PHONE, &[9, 1, 0, 0])[..4], [2, 129, 0, 1]);
    assert!(lan.send(PHONE, &[2]).is_empty());
    assert!(lan.send(PHONE, &[2, 0x81, 0, 0]).is_empty(), "a response gets no response");
}

#[test]
fn mappings_are_limited_per_host_and_by_the_quota_of_the_agent() {
    let lan = &mut Lan::behind_nat();
    let granted = |lan: &mut Lan, host: &str| {
        (0..20).map(|n| lan.map(host, 5000 + n, 600, 0)).take_while(Result::is_ok).count()
    };
    assert_eq!((granted(lan, PHONE), lan.map(PHONE, 6000, 600, 0)), (8, Err(10)));
    assert_eq!(granted(lan, TELLY), 7, "of 20 ports 15 are taken");
    assert_eq!(lan.map(TELLY, 6000, 600, 0), Err(8), "the remaining ports are for hosts with few mappings");
    assert_eq!((granted(lan, "10.0.0.7"), granted(lan, "10.0.0.8")), (4, 1));
    assert_eq!(lan.map("10.0.0.9", 6000, 600, 0), Err(8), "the agent's ports are used up");
    lan.skip(600);
    assert_eq!(granted(lan, "10.0.0.7"), 8);
}

#[test]
fn answers_are_counted_by_kind() {
    let lan = &mut Lan::behind_nat();
    lan.map(PHONE, 5004, 600, 0).unwrap();
    lan.map("192.168.0.1", 5004, 600, 0).unwrap_err();
    lan.send(PHONE, &[0, 0]);
    for operation in 60..64 {
        lan.send(PHONE, &[9, operation, 0, 0]);
    }
    let expected = [
        (("nat-pmp", "address", 0), 1),
        (("pcp", "map", 0), 1),
        (("pcp", "map", 2), 1),
        (("pcp", "other", 1), 4),
    ];
    assert_eq!(lan.mapper.answers().clone().into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(lan.mapper.mappings(), 1);
}

/// Restored mappings count towards the limits, but mappings that have ended do not.
#[test]
fn restored_mappings_count_towards_the_limits() {
    let mut lan = Lan::behind_nat();
    for (host, port) in (5000..5015).map(|port| (if port % 2 == 0 { PHONE } else { TELLY }, port)) {
        lan.map(host, port, 600, 0).unwrap();
    }
    let lan = &mut lan.restart();
    assert_eq!(lan.map(TELLY, 6000, 600, 0), Err(8));
    assert!(lan.map("10.0.0.7", 6000, 600, 0).is_ok());
    assert_eq!(lan.map("10.0.0.7", 6000, 0, 0), granted("0.0.0.0:0", 0));
    lan.map(PHONE, 5000, 0, 0).unwrap();
    assert!(lan.map(TELLY, 6000, 600, 0).is_ok(), "one mapping is free again");
}

#[test]
fn a_repeated_request_is_performed_once() {
    let lan = &mut Lan::behind_nat();
    let client = PHONE.parse().unwrap();
    let request = hol_pcp::Request { lifetime: 600, client, operation: map(5004, 0) }.to_bytes();
    lan.pass(PHONE, &request);
    lan.pass(PHONE, &request);
    assert_eq!(lan.settle()[3], 0);
    assert!(lan.settle().is_empty());
    assert_eq!(lan.rules().len(), 1);
    assert_eq!(lan.mapper.pending.len(), 0);
}

/// NAT-PMP returns the outside address and maps ports. RFC 6886 sections 3.2 to 3.4.
#[test]
fn nat_pmp_returns_the_address_and_maps_ports() {
    let lan = &mut Lan::behind_nat();
    lan.skip(77);
    assert_eq!(lan.send(PHONE, &[0, 0]), [0, 128, 0, 0, 0, 0, 0, 77, 192, 0, 2, 1]);
    let map =
        |port, external, lifetime| nat_pmp::Request::Map { protocol: 6, port, external, lifetime }.to_bytes();
    let answer = lan.send(PHONE, &map(80, 40_080, 7200));
    assert_eq!(answer, [0, 130, 0, 0, 0, 0, 0, 77, 0, 80, 0x9c, 0x90, 0, 0, 0x0e, 0x10]);
    let hol_simco::Action::Enable { parameters, .. } = lan.rules()[0].action else { panic!() };
    assert_eq!(parameters.direction, Direction::Inbound, "connections from outside");
    lan.send(PHONE, &map(81, 0, 7200));
    assert_eq!(lan.send(PHONE, &map(0, 0, 0)), [0, 130, 0, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(lan.rules().len(), 0, "all mappings of the host are deleted");
    assert_eq!(lan.send(PHONE, &[0, 9, 0, 0])[..4], [0, 137, 0, 5]);
    assert_eq!(lan.send("192.168.0.1", &map(80, 0, 7200))[..4], [0, 130, 0, 2]);
    assert_eq!(
        Lan::firewall().send(PHONE, &[0, 0])[..4],
        [0, 128, 0, 3],
        "a firewall has no outside address"
    );
}

/// Mappings survive a restart and can be renewed. The epoch shows that the gateway may have lost state, which here is
/// the nonce (RFC 6887 section 8.5).
#[test]
fn mappings_survive_a_restart_and_can_be_renewed() {
    let mut lan = Lan::behind_nat();
    lan.map(PHONE, 5004, 600, 40_300).unwrap();
    lan.ask(PHONE, 600, peer(5010, "198.51.100.7:6000")).unwrap();
    lan.skip(100);
    let lan = &mut lan.restart();
    let announce =
        hol_pcp::Request { lifetime: 0, client: PHONE.parse().unwrap(), operation: Operation::Announce };
    let answer = lan.send(PHONE, &announce.to_bytes());
    assert_eq!(answer[..12], [2, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(lan.map(PHONE, 5004, 600, 0), granted("192.0.2.1:40300", 600));
    lan.ask(PHONE, 600, peer(5010, "198.51.100.7:6000")).unwrap();
    assert_eq!(lan.rules().len(), 2, "renewing adds no rules");
    let others = Mapping { nonce: *b"another's no", ..mapping(5004, 0) };
    let others = Operation::Map { mapping: others, prefer_failure: false, filters: Vec::new() };
    assert_eq!(lan.ask(PHONE, 600, others), Err(2));
}

/// An IPv6 firewall has mappings, too: a host is reached at its own address. RFC 6887 section 5.
#[test]
fn an_ipv6_host_is_reached_at_its_own_address() {
    let lan = &mut Lan::firewall();
    let external = "[::]:0".parse().unwrap();
    let filter = Filter { prefix_length: 64, address: "fd01::".parse().unwrap(), port: 0 };
    let operation = |filters| Operation::Map {
        mapping: Mapping { external, protocol: 6, ..mapping(80, 0) },
        prefer_failure: false,
        filters,
    };
    assert_eq!(lan.ask("fd00::5", 600, operation(Vec::new())), Err(2), "the policy limits the remote hosts");
    assert_eq!(lan.ask("fd00::5", 600, operation(vec![filter])), granted("[fd00::5]:80", 600));
}
