//! Every message of RFC 4540 section 5, encoded and parsed.

use std::net::IpAddr;

use hol_simco::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn message() -> impl Strategy<Value = Message> {
    let body = prop_oneof![
        4 => request().prop_map(Body::Request),
        4 => reply().prop_map(Body::Reply),
        1 => any::<u8>().prop_filter_map("no code", Refusal::from_code).prop_map(Body::Refusal),
        1 => version().prop_map(Body::VersionMismatch),
        1 => notification().prop_map(Body::Notification),
    ];
    (any::<u32>(), body).prop_map(|(tid, body)| Message { tid: Tid(tid), body })
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        (version(), option::of(challenge()))
            .prop_map(|(version, challenge)| Request::Se { version, challenge }),
        option::of(token()).prop_map(|token| Request::Sa { token }),
        Just(Request::St),
        (prr_parameters(), lifetime(), option::of(gid()))
            .prop_map(|(parameters, lifetime, gid)| Request::Prr { parameters, lifetime, gid }),
        (enable(), option::of(gid())).prop_map(|(enable, gid)| Request::Per { enable, gid }),
        (enable(), pid()).prop_map(|(enable, pid)| Request::Pea { enable, pid }),
        (tuple(), tuple(), lifetime()).prop_map(|(internal, external, lifetime)| Request::Pdr {
            internal,
            external,
            lifetime
        }),
        (pid(), lifetime()).prop_map(|(pid, lifetime)| Request::Plc { pid, lifetime }),
        pid().prop_map(|pid| Request::Prs { pid }),
        Just(Request::Prl),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        capabilities().prop_map(|capabilities| Reply::Se { capabilities }),
        (challenge(), option::of(token()))
            .prop_map(|(challenge, token)| Reply::Sa { challenge: Some(challenge), token }),
        token().prop_map(|token| Reply::Sa { challenge: None, token: Some(token) }),
        Just(Reply::St),
        granted().prop_map(Reply::Prr),
        granted().prop_map(Reply::Per),
        lifetime().prop_map(|lifetime| Reply::Plc { lifetime }),
        Just(Reply::Prd),
        (granted(), owner()).prop_map(|(rule, owner)| Reply::Prs { rule, owner }),
        enable_rule_status().prop_map(|rule| Reply::Pes(Box::new(rule))),
        disable_rule_status().prop_map(|rule| Reply::Pds(Box::new(rule))),
        vec(pid(), 0..10).prop_map(Reply::Prl),
        (pid(), lifetime()).prop_map(|(pid, lifetime)| Reply::Pdr { pid, lifetime }),
    ]
}

fn notification() -> impl Strategy<Value = Notification> {
    prop_oneof![
        Just(Notification::Bfm),
        Just(Notification::Ast),
        (pid(), lifetime()).prop_map(|(pid, lifetime)| Notification::Are { pid, lifetime }),
    ]
}

fn enable() -> impl Strategy<Value = Enable> {
    (per_parameters(), tuple(), tuple(), lifetime()).prop_map(|(parameters, internal, external, lifetime)| {
        Enable { parameters, internal, external, lifetime }
    })
}

fn granted() -> impl Strategy<Value = GrantedRule> {
    (pid(), gid(), lifetime(), tuple(), option::of(tuple()))
        .prop_map(|(pid, gid, lifetime, outside, inside)| GrantedRule { pid, gid, lifetime, outside, inside })
}

fn enable_rule_status() -> impl Strategy<Value = EnableRuleStatus> {
    (granted(), per_parameters(), tuple(), tuple(), tuple(), owner()).prop_map(
        |(
            GrantedRule { pid, gid, lifetime, outside, inside: _ },
            parameters,
            internal,
            inside,
            external,
            owner,
        )| {
            EnableRuleStatus { pid, gid, parameters, internal, inside, outside, external, lifetime, owner }
        },
    )
}

fn disable_rule_status() -> impl Strategy<Value = DisableRuleStatus> {
    (pid(), tuple(), tuple(), lifetime(), owner()).prop_map(|(pid, internal, external, lifetime, owner)| {
        DisableRuleStatus { pid, internal, external, lifetime, owner }
    })
}

fn tuple() -> impl Strategy<Value = AddressTuple> {
    let full = (any::<IpAddr>(), any::<u16>(), 1u16..)
        .prop_map(|(address, port, port_range)| Addresses::Full { address, port, port_range });
    let protocols_only =
        (1u8..=2).prop_filter_map("no code", IpVersion::from_code).prop_map(Addresses::ProtocolsOnly);
    let location = any::<u8>().prop_map(Location::from_code);
    (location, any::<u8>(), 0u8..=32, prop_oneof![3 => full, 1 => protocols_only]).prop_map(
        |(location, protocol, prefix_length, addresses)| AddressTuple {
            location,
            protocol,
            prefix_length,
            addresses,
        },
    )
}

fn per_parameters() -> impl Strategy<Value = PerParameters> {
    let parity = prop_oneof![Just(PortParity::Any), Just(PortParity::Same)];
    let direction = (1u8..=3).prop_filter_map("no code", Direction::from_code);
    (parity, direction).prop_map(|(parity, direction)| PerParameters { parity, direction })
}

fn prr_parameters() -> impl Strategy<Value = PrrParameters> {
    let nat_mode = (1u8..=2).prop_filter_map("no code", NatMode::from_code);
    let parity = (0u8..=2).prop_filter_map("no code", ReservedParity::from_code);
    let ip = || (0u8..=2).prop_filter_map("no code", IpChoice::from_code);
    (nat_mode, parity, ip(), ip(), any::<u8>(), 1u16..).prop_map(
        |(nat_mode, parity, inside, outside, protocol, port_range)| PrrParameters {
            nat_mode,
            parity,
            inside,
            outside,
            protocol,
            port_range,
        },
    )
}

fn version() -> impl Strategy<Value = Version> {
    any::<(u8, u8)>().prop_map(|(major, minor)| Version { major, minor })
}

fn capabilities() -> impl Strategy<Value = Capabilities> {
    (any::<(u8, u8)>(), lifetime()).prop_map(|((middlebox_type, flags), max_lifetime)| Capabilities {
        middlebox_type,
        flags,
        max_lifetime,
    })
}

fn pid() -> impl Strategy<Value = Pid> {
    any::<u32>().prop_map(Pid)
}

fn gid() -> impl Strategy<Value = Gid> {
    any::<u32>().prop_map(Gid)
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    any::<u32>().prop_map(Lifetime)
}

fn challenge() -> impl Strategy<Value = Challenge> {
    vec(any::<u8>(), 0..20).prop_map(Challenge::new)
}

fn token() -> impl Strategy<Value = Token> {
    vec(any::<u8>(), 0..20).prop_map(Token::new)
}

fn owner() -> impl Strategy<Value = Owner> {
    vec(any::<u8>(), 0..20).prop_map(Owner::new)
}

proptest! {
    #[test]
    fn messages_survive_emitting_and_parsing(message in message()) {
        let octets = message.to_bytes();
        prop_assert_eq!(octets.len(), message.length());
        prop_assert_eq!(length_of(&octets), Some(octets.len()));
        prop_assert_eq!(Message::parse(&octets), Ok(message));
    }

    /// RFC 4540 section 6, step 2.
    #[test]
    fn a_truncated_message_is_an_error(message in message(), cut in any::<prop::sample::Index>()) {
        let octets = message.to_bytes();
        let part = &octets[..cut.index(octets.len())];
        prop_assert_eq!(Message::parse(part), Err(ParseError::Length));
    }

    /// A changed octet results in another message or an error, never a panic; and emitting a parsed message, up
    /// to reserved octets, yields the same again.
    #[test]
    fn any_octets_parse_to_a_message_or_an_error(
        message in message(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut octets = message.to_bytes().to_vec();
        for (at, value) in changes {
            let at = at.index(octets.len());
            octets[at] = value;
        }
        if let Ok(changed) = Message::parse(&octets) {
            prop_assert_eq!(Message::parse(&changed.to_bytes()), Ok(changed));
        }
    }
}

/// RFC 4540 sections 4.2, 4.3 and 5.3.3, filled in by hand: UDP from any port of 198.51.100.7 may reach
/// 192.0.2.1:5004 for 60 s.
#[test]
fn a_per_request_has_the_layout_of_the_rfc() {
    let octets = [
        0x0112_0030u32, // request, PER, 48 octets follow
        0x0000_0001,    // TID
        0x000B_0004,    // PER parameter set
        0x0001_0000,    // any parity, inbound
        0x0009_000C,    // address tuple
        0x0120_1100,    // full IPv4, prefix 32, UDP, internal
        0x138C_0001,    // port 5004, one port
        0xC000_0201,    // 192.0.2.1
        0x0009_000C,    // address tuple
        0x0120_1103,    // full IPv4, prefix 32, UDP, external
        0x0000_0001,    // any port, one port
        0xC633_6407,    // 198.51.100.7
        0x0007_0004,    // lifetime
        0x0000_003C,    // 60 s
    ];
    let octets = octets.map(u32::to_be_bytes).concat();
    let per = Message::request(Tid(1), Request::Per { enable: enable_udp(), gid: None });
    assert_eq!(per.to_bytes(), octets);
    assert_eq!(Message::parse(&octets), Ok(per));
}

fn enable_udp() -> Enable {
    const UDP: u8 = 17;
    Enable {
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, "192.0.2.1:5004".parse().unwrap()),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        lifetime: Lifetime(60),
    }
}

/// RFC 4540 section 5, with IPv4 full tuples: the size of each message on the wire.
#[test]
fn messages_have_the_sizes_of_section_5() {
    let length = |body| Message { tid: Tid(1), body }.to_bytes().len();
    let enable = enable_udp();
    let (pid, gid, lifetime) = (Pid(1), Gid(1), Lifetime(60));
    let (outside, inside) = (enable.internal, Some(enable.external));
    let protocols = AddressTuple { addresses: Addresses::ProtocolsOnly(IpVersion::V4), ..outside };
    let se = Request::Se { version: Version::SIMCO_3_0, challenge: None };
    let firewall = Capabilities::firewall(lifetime);
    assert_eq!(length(Body::Request(se)), 16);
    assert_eq!(length(Body::Reply(Reply::Se { capabilities: firewall })), 20);
    assert_eq!(length(Body::Request(Request::Per { enable, gid: None })), 56);
    assert_eq!(length(Body::Request(Request::Per { enable, gid: Some(gid) })), 64);
    assert_eq!(length(Body::Request(Request::Pea { enable, pid })), 64);
    assert_eq!(length(Body::Reply(Reply::Per(GrantedRule { pid, gid, lifetime, outside, inside }))), 64);
    let reserved = GrantedRule { pid, gid, lifetime, outside: protocols, inside: None };
    assert_eq!(length(Body::Reply(Reply::Prr(reserved))), 40);
    assert_eq!(length(Body::Request(Request::Plc { pid, lifetime })), 24);
    assert_eq!(length(Body::Reply(Reply::Plc { lifetime })), 16);
    assert_eq!(length(Body::Reply(Reply::Prd)), 8);
    assert_eq!(length(Body::Notification(Notification::Are { pid, lifetime })), 24);
}

/// RFC 4540 section 6, steps 3 to 5: which check fails decides the answer.
#[test]
fn format_errors_are_distinguished() {
    let parse = |octets: &[u8]| Message::parse(octets).unwrap_err();
    assert_eq!(parse(&[5, 1, 0, 0, 0, 0, 0, 1]), ParseError::BasicType(5));
    assert_eq!(parse(&[1, 0x16, 0, 0, 0, 0, 0, 1]), ParseError::SubType(0x16));
    assert_eq!(parse(&[3, 0x14, 0, 0, 0, 0, 0, 1]), ParseError::SubType(0x14));
    assert_eq!(parse(&[1, 0x21, 0, 0, 0, 0, 0, 1]), ParseError::Attribute(0x0005));
    assert_eq!(parse(&[1, 0x03, 0, 4, 0, 0, 0, 1, 0, 5, 0, 0]), ParseError::SurplusAttribute);
    assert_eq!(parse(&[2, 0x02, 0, 0, 0, 0, 0, 1]), ParseError::MissingAttribute);
    assert_eq!(parse(&[1, 0x03, 0, 0, 0, 0, 0, 1, 0]), ParseError::Length);
}
