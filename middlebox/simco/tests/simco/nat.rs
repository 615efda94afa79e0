//! Network address translators. RFC 4540 sections 8.2.3, 8.3.3 and 8.4.3.

use crate::world::*;
use hol_simco::*;

fn alice(kinds: u8) -> (World, SessionId) {
    let mut world = World::with_agents(nat(kinds));
    let agent = world.open(Some("alice"));
    (world, agent)
}

fn rtp(parity: PortParity) -> Enable {
    let parameters = PerParameters { parity, direction: Direction::BiDirectional };
    let (internal, external) = (internal(UDP, "10.0.0.5:5004"), external(UDP, "198.51.100.7:6001"));
    Enable { parameters, internal, external, lifetime: Lifetime(60) }
}

fn per_of(enable: Enable) -> Request {
    Request::Per { enable, gid: None }
}

fn outside(host: &str) -> AddressTuple {
    AddressTuple::of_host(Location::Outside, UDP, host.parse().unwrap())
}

fn inside(host: &str) -> AddressTuple {
    AddressTuple::of_host(Location::Inside, UDP, host.parse().unwrap())
}

/// Section 8.3.3: the outside tuple is the translator's; the inside one is omitted, but part of the status.
#[test]
fn a_traditional_nat_gives_an_outside_tuple_only() {
    let (mut world, agent) = alice(0);
    let rule = world.granted(START, agent, per_of(rtp(PortParity::Any)));
    assert_eq!((rule.outside, rule.inside), (outside("203.0.113.1:40000"), None));
    let Body::Reply(Reply::Pes(status)) = world.ask(START, agent, Request::Prs { pid: rule.pid }) else {
        panic!()
    };
    assert_eq!(status.outside, rule.outside);
    assert_eq!(status.inside, rtp(PortParity::Any).external.seen_from(Location::Inside));
}

/// Section 8.3.3, and RFC 3989 section 2.3.6: A2 has the parity of A0, A1 that of A3.
#[test]
fn a_twice_nat_gives_both_tuples_with_the_same_parity() {
    let (mut world, agent) = alice(Capabilities::TWICE_NAT);
    let first = world.granted(START, agent, per_of(rtp(PortParity::Same)));
    assert_eq!(first.outside, outside("203.0.113.1:40000"));
    assert_eq!(first.inside, Some(inside("10.255.0.1:40001")));
    let second = world.granted(START, agent, per_of(rtp(PortParity::Same)));
    assert_eq!(second.outside, outside("203.0.113.1:40002"));
    assert_eq!(second.inside, Some(inside("10.255.0.1:40003")));
}

/// Sections 8.2.3 and 8.4.3: what PRR reserved, PEA enables.
#[test]
fn a_pea_enables_the_reserved_ports() {
    let (mut world, agent) = alice(Capabilities::TWICE_NAT);
    let twice = PrrParameters { nat_mode: NatMode::Twice, ..two_even_ports() };
    for (parameters, has_inside) in [(two_even_ports(), false), (twice, true)] {
        let reserved = world.granted(START, agent, Request::Prr { parameters, lifetime: HOUR, gid: None });
        assert_eq!(reserved.inside.is_some(), has_inside);
        let Addresses::Full { port, port_range, .. } = reserved.outside.addresses else { panic!() };
        assert_eq!((port % 2, port_range), (0, 2));
        let pea = Request::Pea { enable: rtp(PortParity::Same), pid: reserved.pid };
        let enabled = world.granted(START, agent, pea);
        assert_eq!((enabled.outside, enabled.inside), (reserved.outside, reserved.inside));
    }
}

/// Codes that section 4.2.3 lists and section 8 does not place: a PEA that does not fit its reservation.
#[test]
fn a_pea_has_to_fit_its_reservation() {
    let (mut world, agent) = alice(Capabilities::PROTOCOL_TRANSLATION);
    let GrantedRule { pid, .. } = world.granted(START, agent, prr(60));
    let mut refused = |change: fn(&mut Enable)| {
        let mut enable = rtp(PortParity::Same);
        change(&mut enable);
        world.refused(agent, Request::Pea { enable, pid })
    };
    let to_tcp = |e: &mut Enable| (e.internal.protocol, e.external.protocol) = (TCP, TCP);
    let three_ports = |e: &mut Enable| {
        for tuple in [&mut e.internal, &mut e.external] {
            let Addresses::Full { port_range, .. } = &mut tuple.addresses else { unreachable!() };
            *port_range = 3;
        }
    };
    assert_eq!(refused(to_tcp), Refusal::ProtocolMismatch);
    assert_eq!(refused(three_ports), Refusal::IllegalPortCount);
    assert_eq!(refused(|e| e.internal = internal(UDP, "10.0.0.5:5005")), Refusal::ParityMismatch);
    assert_eq!(refused(|e| e.external = external(UDP, "[2001:db8::7]:5")), Refusal::IpVersionMismatch);
    world.granted(START, agent, Request::Pea { enable: rtp(PortParity::Same), pid });
}

/// Sections 8.2.1 and 8.2.3.
#[test]
fn a_reservation_that_the_nat_cannot_make_is_refused() {
    let (mut world, agent) = alice(0);
    let mut refused = |change: fn(&mut PrrParameters)| {
        let mut parameters = two_even_ports();
        change(&mut parameters);
        world.refused(agent, Request::Prr { parameters, lifetime: HOUR, gid: None })
    };
    assert_eq!(refused(|p| p.protocol = 47), Refusal::ProtocolNotSupported);
    assert_eq!(refused(|p| p.nat_mode = NatMode::Twice), Refusal::NatModeNotSupported);
    assert_eq!(refused(|p| p.port_range = 11), Refusal::LackOfPorts);
}

/// Sections 4.3.9 and 8.2.3: protocol 0 is an address without ports, 0xFFFF all ports of a protocol.
#[test]
fn whole_addresses_and_all_ports_can_be_reserved() {
    let (mut world, agent) = alice(0);
    let request = |change: fn(&mut PrrParameters)| {
        let mut parameters = two_even_ports();
        change(&mut parameters);
        Request::Prr { parameters, lifetime: Lifetime(60), gid: None }
    };
    let all_udp = request(|p| p.port_range = PrrParameters::ALL_PORTS);
    let address = request(|p| p.protocol = 0);
    assert_eq!(world.granted(START, agent, all_udp).outside, outside("203.0.113.1:0"));
    assert_eq!(world.refused(agent, address.clone()), Refusal::LackOfAddresses);
    assert_eq!(world.refused(agent, request(|_| {})), Refusal::LackOfPorts);
    let v6 = request(|p| (p.inside, p.outside, p.port_range) = (IpChoice::V6, IpChoice::V6, 1));
    let v6 = world.granted(START, agent, v6);
    assert_eq!(v6.outside, outside("[2001:db8:2::1]:40000"));
    world.granted(at(60), agent, address);
}

/// Sections 4.3.3 and 8.3.3: A2 has the IP version of A3; two versions need protocol translation.
#[test]
fn only_protocol_translation_joins_ip_versions() {
    let enable = Enable { internal: internal(UDP, "[fd00::5]:5004"), ..rtp(PortParity::Any) };
    let (mut world, agent) = alice(0);
    assert_eq!(world.refused(agent, per_of(enable)), Refusal::IpVersionMismatch);
    let mismatch = PrrParameters { inside: IpChoice::V6, outside: IpChoice::V4, ..two_even_ports() };
    let reserve = |parameters| Request::Prr { parameters, lifetime: HOUR, gid: None };
    assert_eq!(world.refused(agent, reserve(mismatch)), Refusal::IpVersionMismatch);
    let either = PrrParameters { outside: IpChoice::Any, ..mismatch };
    assert_eq!(world.granted(START, agent, reserve(either)).outside.ip_version(), IpVersion::V6);
    let (mut world, agent) = alice(Capabilities::PROTOCOL_TRANSLATION);
    assert_eq!(world.granted(START, agent, per_of(enable)).outside, outside("203.0.113.1:40000"));
}

/// The ports of an ended rule are free again.
#[test]
fn ports_are_released_when_their_rules_end() {
    let (mut world, agent) = alice(0);
    let rules: Vec<GrantedRule> =
        (0..10).map(|_| world.granted(START, agent, per_of(rtp(PortParity::Any)))).collect();
    assert_eq!(world.refused(agent, per_of(rtp(PortParity::Any))), Refusal::LackOfPorts);
    world.ask(START, agent, plc(rules[3].pid, 0));
    assert_eq!(world.granted(START, agent, per_of(rtp(PortParity::Any))).outside, rules[3].outside);
    world.advance(at(60));
    for _ in 0..10 {
        world.granted(at(60), agent, per_of(rtp(PortParity::Any)));
    }
}

/// A change has all four tuples of a rule, so that a NAT can be configured before its firewall (section
/// 8.3.4).
#[test]
fn a_change_contains_all_four_tuples() {
    let (mut world, agent) = alice(0);
    let rule = world.granted(START, agent, per_of(rtp(PortParity::Any)));
    let [Change { before: None, after: Some(begun) }] = world.changes[..] else {
        panic!("{:?}", world.changes)
    };
    let Action::Enable { internal, external, binding, .. } = begun.action else { panic!("{begun:?}") };
    assert_eq!((internal, external), (rtp(PortParity::Any).internal, rtp(PortParity::Any).external));
    assert_eq!(binding, Binding { outside: Some(rule.outside), inside: None });
}

/// The error of a contradictory configuration contains its remedy.
#[test]
fn contradictory_configurations_are_refused_with_advice() {
    let error = |change: &dyn Fn(&mut Config)| {
        let mut config = nat(Capabilities::TWICE_NAT);
        change(&mut config);
        Middlebox::new(config, Policy::permissive(), Box::new(Unauthenticated)).unwrap_err()
    };
    assert_eq!(error(&|c| c.outside.clear()), ConfigError::NoAddresses);
    assert_eq!(error(&|c| c.inside.clear()), ConfigError::NoAddresses);
    assert_eq!(error(&|c| c.ports = 0..=9), ConfigError::Ports(0, 9));
    let [any, group, mine] = ["0.0.0.0", "ff02::1", "10.255.0.1"].map(|address| address.parse().unwrap());
    assert_eq!(error(&|c| c.outside.push(any)), ConfigError::NotAHost(any));
    assert_eq!(error(&|c| c.inside.push(group)), ConfigError::NotAHost(group));
    assert_eq!(
        error(&|c| c.outside.push(mine)),
        ConfigError::DuplicateAddress(mine),
        "both inside and outside"
    );
    assert_eq!(
        error(&|c| c.capabilities.middlebox_type = Capabilities::TWICE_NAT),
        ConfigError::NatKindWithoutNat
    );
    assert_eq!(error(&|c| c.capabilities.middlebox_type = Capabilities::PDR), ConfigError::NoFunction);
}

/// A binding is for one host, so a wildcard is for PDR only.
#[test]
fn a_nat_binds_single_hosts_and_blocks_many() {
    let mut config = nat(Capabilities::TWICE_NAT | Capabilities::PDR);
    config.capabilities.flags |= Capabilities::INTERNAL_WILDCARD | Capabilities::EXTERNAL_WILDCARD;
    let mut world = World::with_agents(config);
    let operator = world.open(Some("operator"));
    let any = rtp(PortParity::Any);
    let one_way = PerParameters { direction: Direction::Inbound, ..any.parameters };
    let net = |tuple| AddressTuple { prefix_length: 24, ..tuple };
    for (internal, external) in [(net(any.internal), any.external), (any.internal, net(any.external))] {
        let enable = Enable { parameters: one_way, internal, external, ..any };
        assert_eq!(world.refused(operator, per_of(enable)), Refusal::WildcardNotSupported);
    }
    assert!(matches!(world.ask(START, operator, pdr("198.51.100.7:0", 60)), Body::Reply(Reply::Pdr { .. })));
    assert_eq!(world.refused(operator, per_of(any)), Refusal::Conflict);
}

/// Section 8.3.3 is about translated data. IPv6 is not translated if the NAT has only IPv4 addresses; for IPv6 the
/// middlebox is then a firewall.
#[test]
fn a_nat_of_ipv4_is_a_firewall_for_ipv6() {
    let of_v4 = Config { outside: vec!["203.0.113.1".parse().unwrap()], inside: Vec::new(), ..nat(0) };
    let mut world = World::with_agents(of_v4.clone());
    let agent = world.open(Some("alice"));
    let enable = Enable {
        internal: internal(UDP, "[fd00::5]:5004"),
        external: external(UDP, "[2001:db8::7]:6004"),
        ..rtp(PortParity::Any)
    };
    let granted = world.granted(START, agent, per_of(enable));
    assert_eq!(granted.outside, AddressTuple { location: Location::Outside, ..enable.internal });
    let translated = world.granted(START, agent, per_of(rtp(PortParity::Any)));
    assert_eq!(translated.outside, outside("203.0.113.1:40000"));
    let mut without_filter = of_v4;
    without_filter.capabilities.middlebox_type ^= Capabilities::PACKET_FILTER;
    let mut world = World::with_agents(without_filter);
    let agent = world.open(Some("alice"));
    assert_eq!(world.refused(agent, per_of(enable)), Refusal::LackOfAddresses);
}
