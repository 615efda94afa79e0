//! Bindings of NATs. RFC 4540 section 8.3.3: A2 (192.0.2.77) represents A0 outside, A1 (198.51.100.77) represents A3 inside.

use std::io::{Read, Write};
use std::net::IpAddr;
use std::time;

use hol_base::Duration;
use hol_filter::{Config, Corrections, DefaultPolicy, Filtering, Interfaces, Masquerade, PacketFilter, Pool};
use hol_netlink::{Message, Socket};
use hol_simco::Direction::{BiDirectional, Inbound, Outbound};

use crate::rules::{ANY, NOW, TCP, UDP, begin, bind, disable, enable, end, lasting};
use crate::world::Node::{Inside, Middlebox, Outside};
use crate::world::{World, arrives, await_links};

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_internal_host_is_reached_at_the_outside_address() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let stranger = world.udp(Outside, "10.2.0.3:6004");
    let rule = bind(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:0", Some("192.0.2.77:40000"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &inside).as_deref(), Some("10.2.0.2:6004"));
    assert_eq!(arrives(&stranger, "192.0.2.77:40000", &inside), None);
    filter.apply(NOW, &[end(rule)]).unwrap();
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &inside), None);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_internal_host_is_seen_with_the_outside_address() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let rule = bind(1, BiDirectional, UDP, "10.1.0.2:5004", "10.2.0.2:6004", Some("192.0.2.77:40000"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert_eq!(arrives(&inside, "10.2.0.2:6004", &outside).as_deref(), Some("192.0.2.77:40000"));
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &inside).as_deref(), Some("10.2.0.2:6004"));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_twice_nat_translates_the_addresses_of_both_hosts() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let (a2, a1) = (Some("192.0.2.77:40000"), Some("198.51.100.77:50000"));
    let rule = bind(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004", a2, a1);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &inside).as_deref(), Some("198.51.100.77:50000"));
    filter.apply(NOW, &[end(rule)]).unwrap();
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5006"), world.udp(Outside, "10.2.0.2:6006"));
    let rule = bind(2, Outbound, UDP, "10.1.0.2:5006", "10.2.0.2:6006", a2, a1);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert_eq!(arrives(&inside, "198.51.100.77:50000", &outside).as_deref(), Some("192.0.2.77:40000"));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn ports_of_a_range_are_translated_one_by_one() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = bind(1, Inbound, UDP, "10.1.0.2:5004+2", "10.2.0.2:0", Some("192.0.2.77:40000+2"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let outside = world.udp(Outside, "10.2.0.2:6004");
    for n in 0..2 {
        let inside = world.udp(Inside, &format!("10.1.0.2:{}", 5004 + n));
        assert!(arrives(&outside, &format!("192.0.2.77:{}", 40000 + n), &inside).is_some(), "port {n}");
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_binding_of_a_whole_address_keeps_ports() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = bind(1, Outbound, ANY, "10.1.0.2", "10.2.0.0/24", Some("192.0.2.77"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.3:6004"));
    assert_eq!(arrives(&inside, "10.2.0.3:6004", &outside).as_deref(), Some("192.0.2.77:5004"));
    let listener = world.listen(Outside, "10.2.0.2:80");
    let _stream = world.connect(Inside, "10.2.0.2:80").unwrap();
    assert_eq!(listener.accept().unwrap().1.ip().to_string(), "192.0.2.77");
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn ipv6_is_translated_like_ipv4() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "[fd01::2]:5004"), world.udp(Outside, "[fd02::2]:6004"));
    await_links(&outside, "[fd01::2]:5004", &inside);
    let a2 = Some("[2001:db8::77]:40000");
    let rule = bind(1, BiDirectional, UDP, "[fd01::2]:5004", "[fd02::2]:6004", a2, None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert_eq!(arrives(&outside, "[2001:db8::77]:40000", &inside).as_deref(), Some("[fd02::2]:6004"));
    assert_eq!(arrives(&inside, "[fd02::2]:6004", &outside).as_deref(), Some("[2001:db8::77]:40000"));
}

/// Each of two rules about the same data has its own outside address: new connections get that of the rule that
/// ends last.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn the_longer_of_two_bindings_for_the_same_data_applies() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let listener = world.listen(Outside, "10.2.0.2:80");
    let seen = || {
        let _stream = world.connect(Inside, "10.2.0.2:80").unwrap();
        listener.accept().unwrap().1.ip().to_string()
    };
    let rule = |pid, a2| bind(pid, Outbound, TCP, "10.1.0.2:0", "10.2.0.2:80", Some(a2), None);
    let (first, second) = (rule(1, "192.0.2.77"), lasting(rule(2, "192.0.2.78"), Duration::from_secs(90)));
    filter.apply(NOW, &[begin(first), begin(second)]).unwrap();
    assert_eq!(seen(), "192.0.2.78");
    filter.apply(NOW, &[end(second)]).unwrap();
    assert_eq!(seen(), "192.0.2.77");
}

/// A NAT without a firewall passes all packets, except those of a connection whose binding has ended.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_flow_through_a_translator_ends_with_its_rule() {
    let world = World::new();
    world.nft(
        "add table ip others\nadd chain ip others nat { type nat hook postrouting priority 90; }\n\
         add rule ip others nat ip saddr 10.1.0.3 meta l4proto udp snat to 192.0.2.77:50000",
    );
    let mut filter = world.filter(Config::new().with_default_policy(DefaultPolicy::Accept));
    filter.reconcile(NOW, &[]).unwrap();
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let (neighbour, stranger) = (world.udp(Inside, "10.1.0.3:5004"), world.udp(Outside, "10.2.0.3:6004"));
    let others_pass = || {
        let by_others = arrives(&neighbour, "10.2.0.2:6004", &outside);
        assert_eq!(by_others.as_deref(), Some("192.0.2.77:50000"), "NAT rules of other tables still apply");
        assert!(arrives(&outside, "192.0.2.77:50000", &neighbour).is_some());
        assert!(
            arrives(&stranger, "10.1.0.2:5004", &inside).is_some(),
            "a NAT without a firewall passes other packets"
        );
    };
    others_pass();
    let a2 = "192.0.2.77:40000";
    let passes = || {
        let enters = arrives(&outside, a2, &inside).as_deref() == Some("10.2.0.2:6004");
        let leaves = arrives(&inside, "10.2.0.2:6004", &outside).as_deref() == Some(a2);
        assert_eq!(enters, leaves);
        enters
    };
    let rule = bind(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004", Some(a2), None);
    for _ in 0..2 {
        filter.apply(NOW, &[begin(rule)]).unwrap();
        assert!(passes());
        filter.apply(NOW, &[end(rule)]).unwrap();
        assert!(!passes());
        others_pass();
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_connection_through_a_translator_ends_with_its_rule() {
    let world = World::new();
    let interfaces = Interfaces { inside: "in0".into(), outside: "out0".into() };
    let config =
        Config::new().with_default_policy(DefaultPolicy::Accept).with_interfaces(interfaces).unwrap();
    let mut filter = world.filter(config);
    let listener = world.listen(Outside, "10.2.0.2:80");
    let rule = bind(1, Outbound, TCP, "10.1.0.2:0", "10.2.0.2:80", Some("192.0.2.77"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let mut client = world.connect(Inside, "10.2.0.2:80").unwrap();
    let (mut server, seen) = listener.accept().unwrap();
    assert_eq!(seen.ip().to_string(), "192.0.2.77");
    server.set_read_timeout(Some(time::Duration::from_millis(250))).unwrap();
    let mut passes = || {
        client.write_all(b"GET").unwrap();
        server.read_exact(&mut [0; 3]).is_ok()
    };
    assert!(passes());
    filter.apply(NOW, &[end(rule)]).unwrap();
    assert!(!passes());
}

/// The NAT usually assigns ports of its own address.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_datagram_before_its_binding_does_not_block_the_flow() {
    let world = World::new();
    for (own, a0, a3) in
        [("10.2.0.1", "10.1.0.2:5004", "10.2.0.2:6004"), ("[fd02::1]", "[fd01::2]:5004", "[fd02::2]:6004")]
    {
        let [bound, free] = [40_000, 50_001].map(|port| format!("{own}:{port}"));
        let pool =
            Pool { addresses: vec![own.trim_matches(['[', ']']).parse().unwrap()], ports: 40_000..=50_000 };
        let mut filter = world.filter(Config::new().with_pool(pool));
        filter.reconcile(NOW, &[]).unwrap();
        let (inside, outside) = (world.udp(Inside, a0), world.udp(Outside, a3));
        let here = world.udp(Middlebox, &free);
        await_links(&outside, &free, &here);
        assert_eq!(arrives(&outside, &bound, &inside), None);
        filter.apply(NOW, &[begin(bind(1, Inbound, UDP, a0, a3, Some(&bound), None))]).unwrap();
        await_links(&outside, &bound, &inside);
        filter.remove().unwrap();
    }
}

fn pool() -> Pool {
    Pool { addresses: vec!["192.0.2.77".parse().unwrap()], ports: 16_384..=u16::MAX }
}

fn interfaces() -> Interfaces {
    Interfaces { inside: "in0".into(), outside: "out0".into() }
}

/// A pinhole for A0 is behind the translation, and must not bypass it: external hosts send to A2.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_inside_address_of_a_nat_is_not_reached_untranslated() {
    let world = World::new();
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let listener = world.listen(Inside, "10.1.0.2:80");
    let rules = [
        bind(1, BiDirectional, UDP, "10.1.0.2:5004", "10.2.0.2:6004", Some("192.0.2.77:40000"), None),
        bind(2, Inbound, TCP, "10.1.0.2:80", "10.2.0.2:0", Some("192.0.2.77:40080"), None),
    ];
    for config in [Config::new(), Config::new().with_interfaces(interfaces()).unwrap()] {
        let mut filter = world.filter(config.with_pool(pool()));
        filter.apply(NOW, &rules.map(begin)).unwrap();
        assert_eq!(arrives(&outside, "10.1.0.2:5004", &inside), None);
        assert!(world.connect(Outside, "10.1.0.2:80").is_err());
        assert!(arrives(&outside, "192.0.2.77:40000", &inside).is_some());
        assert!(arrives(&inside, "10.2.0.2:6004", &outside).is_some());
        let _stream = world.connect(Outside, "192.0.2.77:40080").unwrap();
        listener.accept().unwrap();
        filter.remove().unwrap();
    }
    // A middlebox without a pool is not a NAT, although this rule has a binding.
    let mut filter = world.filter(Config::new());
    filter.apply(NOW, &rules.map(begin)).unwrap();
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_some());
    filter.remove().unwrap();
    // Without IPv6 addresses the NAT is a firewall for IPv6.
    let mut filter = world.filter(Config::new().with_pool(pool()));
    let (inside, outside) = (world.udp(Inside, "[fd01::2]:5004"), world.udp(Outside, "[fd02::2]:6004"));
    filter.apply(NOW, &[begin(enable(3, Inbound, UDP, "[fd01::2]:5004", "[fd02::2]:6004"))]).unwrap();
    await_links(&outside, "[fd01::2]:5004", &inside);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn masqueraded_flows_and_their_replies_need_no_rule() {
    let world = World::new();
    let hosts = vec!["10.1.0.2/31".parse().unwrap()];
    let masquerade = Masquerade { hosts, addresses: pool().addresses, ..Masquerade::default() };
    let config = Config::new().with_interfaces(interfaces()).unwrap().with_pool(pool());
    let mut filter = world.filter(config.with_masquerade(masquerade));
    filter.reconcile(NOW, &[]).unwrap();
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let seen = arrives(&inside, "10.2.0.2:6004", &outside).unwrap();
    assert!(seen.starts_with("192.0.2.77:"), "{seen}");
    assert_eq!(arrives(&outside, &seen, &inside).as_deref(), Some("10.2.0.2:6004"));
    let stranger = world.udp(Outside, "10.2.0.3:6004");
    assert_eq!(arrives(&stranger, &seen, &inside), None, "filtering depends on address and port");
    assert_eq!(arrives(&outside, "10.1.0.2:5004", &inside), None);

    let listener = world.listen(Outside, "10.2.0.2:80");
    let mut stream = world.connect(Inside, "10.2.0.2:80").unwrap();
    let (mut other, from) = listener.accept().unwrap();
    assert_eq!(from.ip().to_string(), "192.0.2.77");
    other.write_all(b"page").unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    assert!(world.run(Inside, "ping", &["-c1", "-W1", "10.2.0.2"]).is_ok());

    // A rule keeps its own binding, and a block its effect.
    let bound = bind(1, Outbound, UDP, "10.1.0.3:5004", "10.2.0.2:6004", Some("192.0.2.77:40000"), None);
    let blocked = disable(2, ANY, "0.0.0.0/0", "10.2.0.3");
    filter.apply(NOW, &[begin(bound), begin(blocked)]).unwrap();
    let second = world.udp(Inside, "10.1.0.3:5004");
    assert_eq!(arrives(&second, "10.2.0.2:6004", &outside).as_deref(), Some("192.0.2.77:40000"));
    assert_eq!(arrives(&inside, "10.2.0.3:6004", &stranger), None);
    // Connections that the binding translated end with it; other flows of the host need no rule, as before.
    filter.apply(NOW, &[end(bound)]).unwrap();
    assert_eq!(arrives(&second, "10.2.0.2:6004", &outside), None);
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &second), None);
    let again = world.udp(Inside, "10.1.0.3:5008");
    let seen = arrives(&again, "10.2.0.2:6004", &outside).unwrap();
    assert_eq!(arrives(&outside, &seen, &again).as_deref(), Some("10.2.0.2:6004"));
    // Other hosts need rules.
    world.run(Inside, "ip", &["address", "add", "10.1.0.4/24", "dev", "eth0"]).unwrap();
    let third = world.udp(Inside, "10.1.0.4:5004");
    assert_eq!(arrives(&third, "10.2.0.2:6004", &outside), None);
}

/// RFC 4787, REQ-8: with endpoint-independent filtering an external host that the internal host has not contacted
/// reaches it; with address- and port-dependent filtering, the default, it does not.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_mapped_endpoint_is_reached_as_the_filtering_policy_says() {
    let world = World::new();
    for (filtering, is_reached) in
        [(Filtering::AddressAndPortDependent, false), (Filtering::EndpointIndependent, true)]
    {
        let mut filter = world.filter(masquerading(filtering));
        filter.reconcile(NOW, &[]).unwrap();
        // The port is outside the range of the NAT, which therefore assigns a random one.
        let v4 = ["10.1.0.2:50004", "10.2.0.2:6004", "10.2.0.3:6006"];
        let v6 = ["[fd01::2]:50004", "[fd02::2]:6004", "[fd02::3]:6006"];
        for [inside, contacted, stranger] in [v4, v6] {
            let (host, seen_by) = (world.udp(Inside, inside), world.udp(Outside, contacted));
            await_links(&host, contacted, &seen_by);
            let seen = arrives(&host, contacted, &seen_by).unwrap();
            let other = world.udp(Outside, stranger);
            assert_eq!(arrives(&seen_by, &seen, &host).as_deref(), Some(contacted));
            assert_eq!(arrives(&other, &seen, &host).is_some(), is_reached, "{filtering:?}");
            if is_reached {
                assert_eq!(arrives(&other, &seen, &host).as_deref(), Some(stranger));
                assert_eq!(arrives(&host, stranger, &other), Some(seen), "REQ-1: the mapping is the same");
            }
            assert_eq!(arrives(&other, inside, &host), None, "the inside address stays hidden");
        }
        filter.remove().unwrap();
    }
}

/// A mapping outlives the connections that conntrack knows, a repair of the table and a restart, but not the policy.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_mapped_endpoint_keeps_its_mapping_without_connections() {
    let world = World::new();
    let config = masquerading(Filtering::EndpointIndependent);
    let mut filter = world.filter(config.clone());
    filter.reconcile(NOW, &[]).unwrap();
    let (host, outside) = (world.udp(Inside, "10.1.0.2:50004"), world.udp(Outside, "10.2.0.2:6004"));
    let seen = arrives(&host, "10.2.0.2:6004", &outside).unwrap();
    drop(filter);
    let mut filter = world.filter(config);
    assert_eq!(filter.reconcile(NOW, &[]).unwrap(), Corrections::default());
    forget_connections(&world);
    assert_eq!(arrives(&outside, &seen, &host).as_deref(), Some("10.2.0.2:6004"));
    forget_connections(&world);
    assert_eq!(arrives(&host, "10.2.0.2:6004", &outside), Some(seen.clone()));
    // A block applies to mapped endpoints too.
    let blocked = disable(1, ANY, "0.0.0.0/0", "10.2.0.3");
    filter.apply(NOW, &[begin(blocked)]).unwrap();
    assert_eq!(arrives(&world.udp(Outside, "10.2.0.3:6004"), &seen, &host), None);
    drop(filter);
    let mut filter = world.filter(masquerading(Filtering::AddressAndPortDependent));
    filter.reconcile(NOW, &[]).unwrap();
    assert!(!world.listing().contains("endpoints4"));
    assert_eq!(arrives(&world.udp(Outside, "10.2.0.3:6006"), &seen, &host), None);
}

/// Deletes all connections: `IPCTNL_MSG_CT_DELETE` of linux/netfilter/nfnetlink_conntrack.h.
fn forget_connections(world: &World) {
    const DELETE_CONNECTIONS: u16 = 1 << 8 | 2;
    let socket = world.call_in(Middlebox, Socket::netfilter).unwrap();
    socket.execute(Message::new(DELETE_CONNECTIONS, 0, &[0; 4])).unwrap();
}

/// Returns a NAT that masquerades all internal hosts.
fn masquerading(filtering: Filtering) -> Config {
    let hosts = ["10.1.0.0/24", "fd01::/64"].map(|hosts| hosts.parse().unwrap()).to_vec();
    let addresses: Vec<IpAddr> = ["192.0.2.77", "2001:db8::77"].map(|text| text.parse().unwrap()).to_vec();
    let pool = Pool { addresses: addresses.clone(), ..pool() };
    let masquerade = Masquerade { hosts, addresses, filtering, ..Masquerade::default() };
    Config::new().with_interfaces(interfaces()).unwrap().with_pool(pool).with_masquerade(masquerade)
}

/// RFC 4787, REQ-9: internal hosts reach each other at outside addresses, and each sees the outside address of its peer.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn internal_hosts_reach_each_other_by_outside_addresses() {
    let world = World::new();
    let masquerade = Masquerade { hairpin: true, addresses: pool().addresses, ..Masquerade::default() };
    let config = Config::new().with_interfaces(interfaces()).unwrap().with_pool(pool());
    let mut filter = world.filter(config.with_masquerade(masquerade));
    let rules = [
        bind(1, BiDirectional, UDP, "10.1.0.2:5004", "0.0.0.0/0", Some("192.0.2.77:40000"), None),
        bind(2, BiDirectional, UDP, "10.1.0.3:5006", "0.0.0.0/0", Some("192.0.2.77:40002"), None),
        bind(3, Inbound, TCP, "10.1.0.2:80", "0.0.0.0/0", Some("192.0.2.77:40080"), None),
    ];
    filter.apply(NOW, &rules.map(begin)).unwrap();
    // Both hosts are addresses of one namespace, because `World` has one inside namespace.
    let (one, two) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Inside, "10.1.0.3:5006"));
    assert_eq!(arrives(&two, "192.0.2.77:40000", &one).as_deref(), Some("192.0.2.77:40002"));
    assert_eq!(arrives(&one, "192.0.2.77:40002", &two).as_deref(), Some("192.0.2.77:40000"));
    let unmapped = world.udp(Inside, "10.1.0.3:5010");
    let seen = arrives(&unmapped, "192.0.2.77:40000", &one).unwrap();
    assert!(seen.starts_with("192.0.2.77:"), "{seen}");
    let listener = world.listen(Inside, "10.1.0.2:80");
    let _stream = world.connect(Inside, "192.0.2.77:40080").unwrap();
    assert_eq!(listener.accept().unwrap().1.ip().to_string(), "192.0.2.77");
}

/// The kernel keeps a source port that no connection uses, and does not know that a binding has it.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_masqueraded_flow_does_not_take_the_port_of_a_binding() {
    let world = World::new();
    let hosts = vec!["10.1.0.3/32".parse().unwrap()];
    let masquerade =
        Masquerade { hosts, hairpin: true, addresses: pool().addresses, ..Masquerade::default() };
    let ports = masquerade.ports.clone();
    let config = Config::new().with_interfaces(interfaces()).unwrap().with_pool(pool());
    let mut filter = world.filter(config.with_masquerade(masquerade));
    let rule = bind(1, BiDirectional, UDP, "10.1.0.2:5004", "0.0.0.0/0", Some("192.0.2.77:40000"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let (bound, neighbour) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Inside, "10.1.0.3:40000"));
    let outside = world.udp(Outside, "10.2.0.2:6004");
    let is_in_range = |seen: &str| {
        let seen: std::net::SocketAddr = seen.parse().unwrap();
        seen.ip().to_string() == "192.0.2.77" && ports.contains(&seen.port())
    };
    let seen = arrives(&neighbour, "10.2.0.2:6004", &outside).unwrap();
    assert!(is_in_range(&seen), "{seen}");
    assert_eq!(arrives(&outside, &seen, &neighbour).as_deref(), Some("10.2.0.2:6004"));
    assert_eq!(arrives(&outside, "192.0.2.77:40000", &bound).as_deref(), Some("10.2.0.2:6004"));
    assert_eq!(arrives(&bound, "10.2.0.2:6004", &outside).as_deref(), Some("192.0.2.77:40000"));
    // This also applies between internal hosts.
    let seen = arrives(&neighbour, "192.0.2.77:40000", &bound).unwrap();
    assert!(is_in_range(&seen), "{seen}");
    // A free port of the range is kept; other protocols have no ports.
    let kept = world.udp(Inside, "10.1.0.3:5010");
    assert_eq!(arrives(&kept, "10.2.0.2:6004", &outside).as_deref(), Some("192.0.2.77:5010"));
    assert!(world.run(Inside, "ping", &["-c1", "-W1", "-I", "10.1.0.3", "10.2.0.2"]).is_ok());
}
