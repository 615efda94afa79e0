//! Rules of a pure firewall, one agent. RFC 4540 section 8.

use crate::world::*;
use hol_simco::*;

/// Section 8.3.2: the internal tuple comes back as outside, the external one as inside.
#[test]
fn a_firewall_returns_the_tuples_as_seen_from_the_other_side() {
    let (mut world, agent) = World::firewall();
    let rule = world.granted(START, agent, per(60));
    assert_eq!(rule.outside, pinhole(60).internal.seen_from(Location::Outside));
    assert_eq!(rule.inside, Some(pinhole(60).external.seen_from(Location::Inside)));
    assert_eq!(rule.lifetime, Lifetime(60));
}

/// Sections 8.1 and 8.3: every rule has its own PID, and its own group unless it names one.
#[test]
fn every_rule_has_its_own_pid_and_group() {
    let (mut world, agent) = World::firewall();
    let first = world.granted(START, agent, per(60));
    let second = world.granted(START, agent, per(60));
    assert!(first.pid != second.pid && first.gid != second.gid);
    let join = |gid| Request::Per { enable: pinhole(60), gid: Some(gid) };
    assert_eq!(world.granted(START, agent, join(first.gid)).gid, first.gid);
    assert_eq!(world.refused(agent, join(Gid(99))), Refusal::NoSuchGroup);
}

/// RFC 3989 section 2.3.3: a group lives as long as its last member.
#[test]
fn a_group_ends_with_its_last_member() {
    let (mut world, agent) = World::firewall();
    let first = world.granted(START, agent, per(60));
    let join = Request::Per { enable: pinhole(60), gid: Some(first.gid) };
    let second = world.granted(START, agent, join.clone());
    world.ask(START, agent, plc(first.pid, 0));
    world.granted(START, agent, join.clone());
    world.ask(START, agent, plc(second.pid, 0));
    world.advance(at(60));
    assert_eq!(world.ask(at(60), agent, join), Body::Refusal(Refusal::NoSuchGroup));
}

/// Section 8.3.1: at most the requested and at most the maximal lifetime, and never zero.
#[test]
fn the_granted_lifetime_is_limited() {
    let (mut world, agent) = World::firewall();
    assert_eq!(world.granted(START, agent, per(7200)).lifetime, HOUR);
    assert_eq!(world.granted(START, agent, prr(7200)).lifetime, HOUR);
    assert_eq!(world.refused(agent, per(0)), Refusal::ConfigurationFailed);
    assert_eq!(world.refused(agent, prr(0)), Refusal::ConfigurationFailed);
}

fn refused(config: Config, change: impl Fn(&mut Enable)) -> Refusal {
    let mut world = World::with_agents(config);
    let agent = world.open(Some("alice"));
    let mut enable = pinhole(60);
    change(&mut enable);
    world.refused(agent, Request::Per { enable, gid: None })
}

fn set_port_range(tuple: &mut AddressTuple, range: u16) {
    let Addresses::Full { port_range, port, .. } = &mut tuple.addresses else { panic!("no ports") };
    (*port_range, *port) = (range, (*port).max(1));
}

/// Section 8.3.1, in its order.
#[test]
fn an_inconsistent_per_is_refused() {
    let refused = |change: fn(&mut Enable)| refused(Config::firewall(HOUR), change);
    assert_eq!(refused(|e| e.internal.location = Location::Inside), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.external.location = Location::Outside), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.internal.location = Location::Undefined(4)), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.external.protocol = TCP), Refusal::Inconsistent);
    assert_eq!(refused(|e| e.parameters.direction = Direction::BiDirectional), Refusal::Inconsistent);
    let one_and_two_ports = |e: &mut Enable| {
        set_port_range(&mut e.internal, 2);
        set_port_range(&mut e.external, 1);
    };
    assert_eq!(refused(one_and_two_ports), Refusal::Inconsistent);
}

/// Codes that section 4.2.3 lists and section 8 does not place: they follow the checks of 8.3.1.
#[test]
fn a_per_for_no_host_no_port_or_another_ip_version_is_refused() {
    let refused = |change: fn(&mut Enable)| refused(Config::firewall(HOUR), change);
    assert_eq!(refused(|e| e.internal = internal(UDP, "0.0.0.0:1")), Refusal::IllegalAddress);
    assert_eq!(refused(|e| e.external = external(UDP, "255.255.255.255:1")), Refusal::IllegalAddress);
    assert_eq!(refused(|e| e.internal = internal(UDP, "[2001:db8::1]:1")), Refusal::IpVersionMismatch);
    assert_eq!(refused(|e| set_port_range(&mut e.internal, 65_000)), Refusal::IllegalPortCount);
    let v6 = |e: &mut Enable| {
        (e.internal, e.external) = (internal(UDP, "[2001:db8::1]:1"), external(UDP, "[2001:db8::2]:1"));
    };
    assert_eq!(refused(v6), Refusal::IpVersionMismatch, "the firewall serves IPv4");
}

/// Sections 4.3.3 and 8.3.1: each kind of wildcard needs its capability.
#[test]
fn a_wildcard_needs_the_capability() {
    type Widen = fn(&mut Enable);
    let internal_net: Widen = |e| e.internal.prefix_length = 24;
    let external_net: Widen = |e| e.external.prefix_length = 24;
    let any_port: Widen = |e| e.internal = internal(UDP, "192.0.2.1:0");
    let any_protocol: Widen = |e| (e.internal.protocol, e.external.protocol) = (0, 0);
    let no_addresses: Widen = |e| e.external.addresses = Addresses::ProtocolsOnly(IpVersion::V4);
    let cases = [
        (internal_net, Capabilities::INTERNAL_WILDCARD),
        (external_net, Capabilities::EXTERNAL_WILDCARD),
        (any_port, Capabilities::PORT_WILDCARD),
        (any_protocol, Capabilities::PORT_WILDCARD),
        (no_addresses, Capabilities::EXTERNAL_WILDCARD),
    ];
    for (widen, needed) in cases {
        let ask = |flags: u8| {
            let mut config = Config::firewall(HOUR);
            config.capabilities.flags = flags;
            let mut world = World::with_agents(config);
            let agent = world.open(Some("alice"));
            let mut enable = pinhole(60);
            enable.external = external(UDP, "198.51.100.7:9");
            widen(&mut enable);
            world.ask(START, agent, Request::Per { enable, gid: None })
        };
        let all = Capabilities::firewall(HOUR).flags;
        assert!(matches!(ask(all), Body::Reply(Reply::Per(_))));
        assert_eq!(ask(all & !needed), Body::Refusal(Refusal::WildcardNotSupported), "{needed:#x}");
    }
}

/// Section 8.3.1: bi-directional data may have any protocol, and no other wildcard.
#[test]
fn only_the_protocol_may_be_a_wildcard_of_bidirectional_data() {
    let (mut world, agent) = World::firewall();
    let mut enable = pinhole(60);
    enable.parameters.direction = Direction::BiDirectional;
    (enable.internal.protocol, enable.external.protocol) = (0, 0);
    world.granted(START, agent, Request::Per { enable, gid: None });
    enable.external.prefix_length = 8;
    assert_eq!(world.refused(agent, Request::Per { enable, gid: None }), Refusal::Inconsistent);
}

/// Section 8.2.2: a pure firewall reserves nothing but a PID.
#[test]
fn a_firewall_reserves_protocols_only() {
    let (mut world, agent) = World::firewall();
    let rule = world.granted(START, agent, prr(60));
    assert_eq!(rule.inside, None);
    let AddressTuple { location, protocol, prefix_length, addresses } = rule.outside;
    assert_eq!((location, protocol, prefix_length), (Location::Outside, UDP, 0));
    assert_eq!(addresses, Addresses::ProtocolsOnly(IpVersion::V4));
    let v6 = PrrParameters { inside: IpChoice::V6, outside: IpChoice::V6, ..two_even_ports() };
    let v6 = Request::Prr { parameters: v6, lifetime: HOUR, gid: None };
    assert_eq!(world.refused(agent, v6), Refusal::IpVersionMismatch);
}

/// Sections 8.1 and 8.4.2: PEA turns RESERVED into ENABLED; PID and group stay.
#[test]
fn a_reservation_is_enabled_once() {
    let (mut world, agent) = World::firewall();
    let reserved = world.granted(START, agent, prr(60));
    let pea = |pid| Request::Pea { enable: pinhole(30), pid };
    assert_eq!(world.refused(agent, pea(Pid(99))), Refusal::NoSuchRule);
    let enabled = world.granted(at(10), agent, pea(reserved.pid));
    assert_eq!((enabled.pid, enabled.gid, enabled.lifetime), (reserved.pid, reserved.gid, Lifetime(30)));
    assert_eq!(world.refused(agent, pea(reserved.pid)), Refusal::Inconsistent);
    let status = world.ask(at(15), agent, Request::Prs { pid: enabled.pid });
    assert!(matches!(status, Body::Reply(Reply::Pes(rule)) if rule.lifetime == Lifetime(25)));
}

/// Section 8.1: a failed request changes nothing.
#[test]
fn a_reservation_outlives_a_failed_pea() {
    let (mut world, agent) = World::firewall();
    let reserved = world.granted(START, agent, prr(60));
    let mut enable = pinhole(60);
    enable.external.protocol = TCP;
    assert_eq!(world.refused(agent, Request::Pea { enable, pid: reserved.pid }), Refusal::Inconsistent);
    let status = world.ask(at(5), agent, Request::Prs { pid: reserved.pid });
    let left = GrantedRule { lifetime: Lifetime(55), ..reserved };
    assert_eq!(status, Body::Reply(Reply::Prs { rule: left, owner: Owner::new("") }));
}

/// Section 8.5: a positive lifetime counts from the request, zero deletes.
#[test]
fn a_lifetime_change_extends_and_deletes() {
    let (mut world, agent) = World::firewall();
    let GrantedRule { pid, .. } = world.granted(START, agent, per(60));
    assert_eq!(world.ask(at(59), agent, plc(pid, 10)), Body::Reply(Reply::Plc { lifetime: Lifetime(10) }));
    assert_eq!(world.ask(at(68), agent, plc(pid, 9999)), Body::Reply(Reply::Plc { lifetime: HOUR }));
    assert_eq!(world.ask(at(69), agent, plc(pid, 0)), Body::Reply(Reply::Prd));
    assert_eq!(world.ask(at(69), agent, plc(pid, 10)), Body::Refusal(Refusal::NoSuchRule));
}

/// Section 8.6: the tuples are those of the request and of the reply, and a rule that has ended does not exist.
#[test]
fn the_status_of_a_rule_counts_down_to_its_end() {
    let (mut world, agent) = World::firewall();
    let granted = world.granted(START, agent, per(60));
    let prs = Request::Prs { pid: granted.pid };
    let Body::Reply(Reply::Pes(rule)) = world.ask(hol_base::Time::from_millis(20_500), agent, prs.clone())
    else {
        panic!("no status");
    };
    assert_eq!((rule.pid, rule.gid, rule.lifetime), (granted.pid, granted.gid, Lifetime(40)));
    assert_eq!((rule.internal, rule.external), (pinhole(60).internal, pinhole(60).external));
    assert_eq!((rule.outside, Some(rule.inside)), (granted.outside, granted.inside));
    assert_eq!(world.ask(at(60), agent, prs), Body::Refusal(Refusal::NoSuchRule));
}

/// Section 8.7: all rules in force.
#[test]
fn the_list_has_the_rules_in_force() {
    let (mut world, agent) = World::firewall();
    let pids: Vec<Pid> = (1..=4).map(|i| world.granted(START, agent, per(10 * i)).pid).collect();
    world.ask(START, agent, plc(pids[2], 0));
    let reserved = world.granted(START, agent, prr(60)).pid;
    let listed = world.ask(at(10), agent, Request::Prl);
    assert_eq!(listed, Body::Reply(Reply::Prl(vec![pids[1], pids[3], reserved])));
}

/// "No resources available for this transaction", 0x0342, has no rule in the RFC; we send it when the table is full.
#[test]
fn a_full_table_takes_no_more_rules_until_one_ends() {
    let mut world = World::with_agents(Config { max_rules: 2, ..blocking_firewall() });
    let agent = world.open(Some("operator"));
    world.granted(START, agent, per(60));
    let reserved = world.granted(START, agent, prr(60));
    for request in [per(60), prr(60), pdr("192.0.2.100:0", 60)] {
        assert_eq!(world.refused(agent, request), Refusal::NoResources);
    }
    world.granted(START, agent, Request::Pea { enable: pinhole(90), pid: reserved.pid });
    world.granted(at(60), agent, per(60));
}

/// Many rules that end together are removed gradually, but agents see all of them as ended.
#[test]
fn ten_thousand_rules_end_at_their_time() {
    let (mut world, agent) = World::firewall();
    let pids: Vec<Pid> = (0..10_000).map(|_| world.granted(START, agent, per(60)).pid).collect();
    assert_eq!(world.ask(at(60), agent, Request::Prl), Body::Reply(Reply::Prl(vec![])));
    assert_eq!(world.ask(at(60), agent, plc(pids[9_999], 1)), Body::Refusal(Refusal::NoSuchRule));
    while world.middlebox.wake_at() <= at(60) {
        world.advance(at(60));
    }
    assert_eq!(world.changes.iter().filter(|change| change.after.is_none()).count(), 10_000);
}
