//! Choices where RFC 4540 contradicts itself: one test for each in `docs/simco.md`, in its order.

use crate::world::*;
use hol_simco::*;

/// 1. Section 6 excludes ST and 0x15 from the sub-types of an open session, but they have to work in it.
#[test]
fn an_open_session_takes_every_request_and_no_sub_type_of_replies() {
    let (mut world, agent) = World::firewall();
    let GrantedRule { pid, .. } = world.granted(START, agent, per(60));
    assert_eq!(world.refused(agent, se()), Refusal::NotApplicable);
    assert_eq!(world.ask(START, agent, plc(pid, 0)), Body::Reply(Reply::Prd));
    for sub_type in [0x16, 0x23, 0x24] {
        world.receive(START, agent, &[1, sub_type, 0, 0, 0, 0, 0, 1]);
        assert_eq!(world.take_messages(agent), [Some(Body::Refusal(Refusal::WrongSubType))]);
    }
    assert_eq!(world.ask(START, agent, Request::St), Body::Reply(Reply::St));
}

/// 2. Without a session SA and ST get 0x0311 and the end (section 6), not 0x0320 (7.3 and 7.4).
#[test]
fn sa_and_st_without_a_session_are_wrong_sub_types() {
    for request in [Request::Sa { token: None }, Request::St] {
        let mut world = World::new(Middlebox::firewall(HOUR));
        let id = world.connect(ConnectionInfo::plain(Framing::Messages));
        assert_eq!(world.refused(id, request), Refusal::WrongSubType);
        assert_eq!(world.take_messages(id), [None]);
    }
}

/// 3. The PER reply has five attributes (5.3.10), but a traditional NAT omits the inside tuple (8.3.3).
#[test]
fn a_per_reply_of_a_traditional_nat_has_four_attributes() {
    for (config, length) in [(Config::firewall(HOUR), 64), (nat(0), 48), (nat(Capabilities::TWICE_NAT), 64)] {
        let mut world = World::with_agents(config);
        let agent = world.open(Some("alice"));
        let enable = Enable { external: external(UDP, "198.51.100.7:9"), ..pinhole(60) };
        let reply = world.ask(START, agent, Request::Per { enable, gid: None });
        assert_eq!(Message { tid: Tid(1), body: reply }.length(), length);
    }
}

/// 4. PLC keeps RESERVED and ENABLED (figure 42), not "RESERVED or UNUSED" (8.1).
#[test]
fn a_lifetime_change_needs_a_reserved_or_enabled_rule() {
    let (mut world, agent) = World::firewall();
    for request in [prr(60), per(60)] {
        let GrantedRule { pid, .. } = world.granted(START, agent, request);
        assert_eq!(world.ask(START, agent, plc(pid, 9)), Body::Reply(Reply::Plc { lifetime: Lifetime(9) }));
    }
    assert_eq!(world.refused(agent, plc(Pid(99), 9)), Refusal::NoSuchRule);
}

/// 5. A port range is no wildcard in PER and PDR (8.3.1, 8.8.2), and none in PEA either (but 8.4.1).
#[test]
fn a_port_range_needs_no_wildcard_support() {
    let mut config = blocking_firewall();
    config.capabilities.flags = Capabilities::IPV4;
    let mut world = World::with_agents(config);
    let operator = world.open(Some("operator"));
    let two_ports = |tuple: AddressTuple| {
        let Addresses::Full { address, .. } = tuple.addresses else { unreachable!() };
        AddressTuple { addresses: Addresses::Full { address, port: 5004, port_range: 2 }, ..tuple }
    };
    let (internal, external) = (two_ports(pinhole(60).internal), two_ports(pinhole(60).external));
    let parameters = PerParameters { direction: Direction::BiDirectional, ..pinhole(60).parameters };
    let enable = Enable { parameters, internal, external, lifetime: Lifetime(60) };
    let GrantedRule { pid, .. } = world.granted(START, operator, prr(60));
    world.granted(START, operator, Request::Pea { enable, pid });
    world.granted(START, operator, Request::Per { enable, gid: None });
    let pdr = Request::Pdr { internal, external, lifetime: Lifetime(60) };
    assert!(matches!(world.ask(START, operator, pdr), Body::Reply(Reply::Pdr { .. })));
}

/// 6. The PER parameter set has no IP version and no protocol (4.3.10, but 8.3.3): the tuples have.
#[test]
fn the_outside_tuple_has_protocol_and_version_of_the_external_one() {
    let mut world = World::with_agents(nat(Capabilities::PROTOCOL_TRANSLATION));
    let agent = world.open(Some("alice"));
    let (internal, external) = (internal(TCP, "10.0.0.5:80"), external(TCP, "[2001:db8::7]:9"));
    let enable = Enable { internal, external, ..pinhole(60) };
    let outside = world.granted(START, agent, Request::Per { enable, gid: None }).outside;
    assert_eq!((outside.ip_version(), outside.protocol), (IpVersion::V6, TCP));
}

/// 7. 0x0401 and 0x0403 are notifications (4.2.4), not negative replies (5.3).
#[test]
fn bfm_and_are_are_notifications() {
    let bfm = Message::notification(Tid(1), Notification::Bfm).to_bytes();
    assert_eq!(bfm[..2], [4, 1]);
    let are = Notification::Are { pid: Pid(1), lifetime: HOUR };
    assert_eq!(Message::notification(Tid(1), are).to_bytes()[..2], [4, 3]);
    assert_eq!(Message::parse(&[3, 1, 0, 0, 0, 0, 0, 1]), Err(ParseError::SubType(1)));
}

/// 8. It is the middlebox that answers SA by SE (but "the agent returns an SE reply", 7.3).
#[test]
fn the_middlebox_concludes_session_setup() {
    let mut world = World::new(Middlebox::firewall(HOUR));
    let id = world.connect(ConnectionInfo::plain(Framing::Messages));
    let challenge = Some(Challenge::new("who?"));
    world.ask(START, id, Request::Se { version: Version::SIMCO_3_0, challenge });
    let concluded = world.ask(START, id, Request::Sa { token: None });
    assert_eq!(concluded, Body::Reply(Reply::Se { capabilities: world.middlebox.capabilities() }));
}

/// 9. The length field allows 65,543 octets (4.2), section 8.7 allows 65,536: 8,191 rules fit either way.
#[test]
fn a_list_has_at_most_8191_rules() {
    let (mut world, agent) = World::firewall();
    for _ in 0..8191 {
        world.granted(START, agent, per(60));
    }
    let listed = Message { tid: Tid(1), body: world.ask(START, agent, Request::Prl) };
    assert_eq!(listed.to_bytes().len(), 65_536);
    world.granted(START, agent, per(60));
    assert_eq!(world.refused(agent, Request::Prl), Refusal::ReplyTooBig);
}

/// 10. Codes that no rule of section 8 uses; this one is for a transaction that is not supported.
#[test]
fn pdr_is_refused_without_its_capability() {
    let (mut world, agent) = World::firewall();
    assert_eq!(world.refused(agent, pdr("192.0.2.100:0", 60)), Refusal::NotSupported);
}

/// 11. Wildcards are for PER and PEA (4.3.8), and for PDR (8.8.2).
#[test]
fn a_pdr_may_have_wildcards_that_the_middlebox_supports() {
    for (flags, is_granted) in
        [(Config::firewall(HOUR).capabilities.flags, true), (Capabilities::IPV4, false)]
    {
        let mut config = blocking_firewall();
        config.capabilities.flags = flags;
        let mut world = World::with_agents(config);
        let operator = world.open(Some("operator"));
        let reply = world.ask(START, operator, pdr("192.0.2.100:0", 60));
        assert_eq!(matches!(reply, Body::Reply(Reply::Pdr { .. })), is_granted);
        assert_eq!(reply == Body::Refusal(Refusal::WildcardNotSupported), !is_granted);
    }
}
