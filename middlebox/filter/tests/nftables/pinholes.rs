//! Packets through a pure firewall. RFC 4540 section 8.3.2, RFC 3989 section 2.3.5.

use std::io::{Read, Write};

use hol_filter::{Config, DefaultPolicy, FilterError, Interfaces, PacketFilter};
use hol_simco::Direction::{BiDirectional, Inbound, Outbound};

use crate::rules::{ANY, NOW, TCP, UDP, begin, disable, enable, end};
use crate::world::Node::{Inside, Outside};
use crate::world::{World, arrives, await_links};

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn datagrams_pass_in_the_direction_of_their_rule_until_it_ends() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let pass = || {
        let inward = arrives(&outside, "10.1.0.2:5004", &inside).is_some();
        (inward, arrives(&inside, "10.2.0.2:6004", &outside).is_some())
    };
    assert_eq!(pass(), (true, true), "without a table");
    filter.apply(NOW, &[]).unwrap();
    assert_eq!(pass(), (false, false), "without a rule");
    for (direction, passing) in
        [(Inbound, (true, false)), (Outbound, (false, true)), (BiDirectional, (true, true))]
    {
        let rule = enable(1, direction, UDP, "10.1.0.2:5004", "10.2.0.2:6004");
        filter.apply(NOW, &[begin(rule)]).unwrap();
        assert_eq!(pass(), passing, "{direction:?}");
        filter.apply(NOW, &[end(rule)]).unwrap();
        assert_eq!(pass(), (false, false), "behind {direction:?}");
    }
}

/// A range is split into blocks; the test sends to its ends, inside and outside.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_long_range_of_ports_passes_and_its_neighbours_do_not() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = enable(1, BiDirectional, UDP, "10.1.0.2:5003+1000", "10.2.0.2:0");
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert!(world.listing().matches("expires").count() < 100);
    let outside = world.udp(Outside, "10.2.0.2:6004");
    for (port, passes) in
        [(5002, false), (5003, true), (5120, true), (5999, true), (6002, true), (6003, false)]
    {
        let inside = world.udp(Inside, &format!("10.1.0.2:{port}"));
        let inward = arrives(&outside, &format!("10.1.0.2:{port}"), &inside).is_some();
        let outward = arrives(&inside, "10.2.0.2:6004", &outside).is_some();
        assert_eq!((inward, outward), (passes, passes), "{port}");
    }
    let block = disable(2, UDP, "10.1.0.2:5100+64", "10.2.0.2:6000+32");
    filter.apply(NOW, &[begin(block)]).unwrap();
    let inside = world.udp(Inside, "10.1.0.2:5150");
    assert!(arrives(&outside, "10.1.0.2:5150", &inside).is_none());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_connection_passes_if_its_first_packet_may_pass() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let listener = world.listen(Inside, "10.1.0.2:80");
    let backwards = world.listen(Outside, "10.2.0.2:80");
    let rule = enable(1, Inbound, TCP, "10.1.0.2:80", "10.2.0.2:0");
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let mut outer = world.connect(Outside, "10.1.0.2:80").unwrap();
    let (mut inner, _) = listener.accept().unwrap();
    inner.write_all(b"answer").unwrap();
    let mut octets = [0; 6];
    outer.read_exact(&mut octets).unwrap();
    world.connect(Inside, "10.2.0.2:80").unwrap_err();
    drop(backwards);
    filter.apply(NOW, &[end(rule)]).unwrap();
    inner.write_all(b"answer").unwrap();
    outer.read_exact(&mut octets).unwrap_err();
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn overlapping_wildcards_pass_matching_packets() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let inside = world.udp(Inside, "10.1.0.2:5004");
    let near = world.udp(Outside, "10.2.0.2:6004");
    let far = world.udp(Outside, "10.2.0.3:6006");
    let rules = [
        enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2/31"),
        enable(2, Inbound, UDP, "10.1.0.0/24", "10.2.0.2:0"),
        enable(3, Inbound, UDP, "10.1.0.2:5004", "10.2.0.0/16"),
        enable(4, Inbound, ANY, "10.1.0.2", "10.2.0.2"),
        enable(5, Outbound, UDP, "10.1.0.0/16", "0.0.0.0/0"),
    ];
    let pass = || {
        let from = |host| arrives(host, "10.1.0.2:5004", &inside).is_some();
        let [near_passes, far_passes] = [&near, &far].map(from);
        (near_passes, far_passes, arrives(&inside, "10.2.0.3:6006", &far).is_some())
    };
    filter.apply(NOW, &rules.map(begin)).unwrap();
    assert_eq!(pass(), (true, true, true));
    for (rule, passing) in rules.into_iter().zip([
        (true, true, true),
        (true, true, true),
        (true, false, true),
        (false, false, true),
    ]) {
        filter.apply(NOW, &[end(rule)]).unwrap();
        assert_eq!(pass(), passing, "without {rule:?}");
    }
    let listener = world.listen(Inside, "10.1.0.2:80");
    filter.apply(NOW, &[begin(rules[3])]).unwrap();
    assert_eq!(pass(), (true, false, true));
    world.connect(Outside, "10.1.0.2:80").expect("any protocol is also TCP");
    drop(listener);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn ports_of_two_ranges_are_paired() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    filter.apply(NOW, &[begin(enable(1, Inbound, UDP, "10.1.0.2:5004+2", "10.2.0.2:6004+2"))]).unwrap();
    let [rtp, rtcp, other] =
        ["10.1.0.2:5004", "10.1.0.2:5005", "10.1.0.2:5006"].map(|host| world.udp(Inside, host));
    let [media, control] = ["10.2.0.2:6004", "10.2.0.2:6005"].map(|host| world.udp(Outside, host));
    assert!(arrives(&media, "10.1.0.2:5004", &rtp).is_some());
    assert!(arrives(&control, "10.1.0.2:5005", &rtcp).is_some());
    assert!(arrives(&media, "10.1.0.2:5005", &rtcp).is_none());
    assert!(arrives(&control, "10.1.0.2:5006", &other).is_none());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn ipv6_passes_like_ipv4() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let [inside, other] = ["[fd01::2]:5004", "[fd01::3]:5004"].map(|host| world.udp(Inside, host));
    let outside = world.udp(Outside, "[fd02::2]:6004");
    await_links(&outside, "[fd01::2]:5004", &inside);
    await_links(&outside, "[fd01::3]:5004", &other);
    let exact = enable(1, Inbound, UDP, "[fd01::2]:5004", "[fd02::2]:6004");
    filter.apply(NOW, &[begin(exact)]).unwrap();
    assert!(arrives(&outside, "[fd01::2]:5004", &inside).is_some());
    assert!(arrives(&outside, "[fd01::3]:5004", &other).is_none());
    let net = enable(2, Inbound, UDP, "fd01::/64", "fd02::/65");
    filter.apply(NOW, &[begin(net), end(exact)]).unwrap();
    assert!(arrives(&outside, "[fd01::3]:5004", &other).is_some());
    let listing = world.listing();
    assert!(listing.contains("elements = { udp . fd02:: . fd01:: timeout 1m"), "{listing}");
    assert!(arrives(&inside, "[fd02::2]:6004", &outside).is_none());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_disable_rule_overrides_enable_rules() {
    let world = World::new();
    let mut filter = world.filter(Config::new().with_default_policy(DefaultPolicy::Accept));
    let inside = world.udp(Inside, "10.1.0.2:5004");
    let [attacker, friend] = ["10.2.0.2:6004", "10.2.0.3:6004"].map(|host| world.udp(Outside, host));
    let block = disable(1, ANY, "10.0.0.0/8", "10.2.0.2");
    filter
        .apply(NOW, &[begin(enable(2, BiDirectional, UDP, "10.1.0.2:5004", "10.2.0.2:6004")), begin(block)])
        .unwrap();
    assert!(arrives(&attacker, "10.1.0.2:5004", &inside).is_none());
    assert!(arrives(&inside, "10.2.0.2:6004", &attacker).is_none());
    assert!(arrives(&friend, "10.1.0.2:5004", &inside).is_some());
    filter.apply(NOW, &[end(block)]).unwrap();
    assert!(arrives(&attacker, "10.1.0.2:5004", &inside).is_some());
}

/// Senders need ICMP errors about unreachable ports and packets that are too big.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn icmp_errors_about_permitted_datagrams_pass() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    filter.apply(NOW, &[begin(enable(1, Outbound, UDP, "10.1.0.2:5004", "10.2.0.2:9"))]).unwrap();
    let inside = world.udp(Inside, "10.1.0.2:5004");
    inside.connect("10.2.0.2:9").unwrap();
    inside.send(b"anybody?").unwrap();
    assert_eq!(inside.recv(&mut [0; 16]).unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}

/// Without the interfaces the filter cannot know which packets come from outside.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_outbound_rule_does_not_admit_inbound_packets() {
    let world = World::new();
    let interfaces = Interfaces { inside: "in0".into(), outside: "out0".into() };
    let mut filter = world.filter(Config::new().with_interfaces(interfaces).unwrap());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    filter.apply(NOW, &[begin(enable(1, Outbound, ANY, "0.0.0.0/0", "0.0.0.0/0"))]).unwrap();
    assert!(arrives(&inside, "10.2.0.2:6004", &outside).is_some());
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_none());
    let (inner, outer) = (world.listen(Inside, "10.1.0.2:80"), world.listen(Outside, "10.2.0.2:80"));
    world.connect(Inside, "10.2.0.2:80").unwrap();
    world.connect(Outside, "10.1.0.2:80").unwrap_err();
    drop((inner, outer));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn packets_on_other_interfaces_are_not_filtered() {
    let world = World::new();
    let names = |inside: &str, outside: &str| Interfaces { inside: inside.into(), outside: outside.into() };
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let elsewhere = Config::new().with_interfaces(names("in0", "out7")).unwrap();
    world.filter(elsewhere).apply(NOW, &[]).unwrap();
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_some());
    let here = Config::new().with_interfaces(names("in0", "out0")).unwrap();
    world.filter(here).apply(NOW, &[]).unwrap();
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_none());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn ten_thousand_rules_are_distinguished() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = |n: u32| enable(n, Inbound, UDP, &format!("10.1.0.2:{}", 10_000 + n), "10.2.0.2:6004");
    let changes: Vec<_> = (0..10_000).map(|n| begin(rule(n))).collect();
    filter.apply(NOW, &changes).unwrap();
    assert_eq!(world.listing().matches("expires").count(), 10_000);
    let outside = world.udp(Outside, "10.2.0.2:6004");
    for (port, passes) in [(9_999, false), (10_000, true), (15_000, true), (19_999, true), (20_000, false)] {
        let inside = world.udp(Inside, &format!("10.1.0.2:{port}"));
        assert_eq!(arrives(&outside, &format!("10.1.0.2:{port}"), &inside).is_some(), passes, "port {port}");
    }
    let changes: Vec<_> = (0..10_000).map(|n| end(rule(n))).collect();
    filter.apply(NOW, &changes).unwrap();
    assert_eq!(world.listing().matches("expires").count(), 0);
}

/// Each combination of prefix lengths costs every packet a lookup. Unused ones make room for others.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn the_number_of_wildcard_shapes_is_limited() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = |n: u32| {
        let external = format!("128.0.0.0/{}", 1 + n % 32);
        enable(n, Inbound, UDP, &format!("10.0.0.0/{}", 8 + n / 32), &external)
    };
    for n in 0..64 {
        filter.apply(NOW, &[begin(rule(n))]).unwrap();
    }
    let error = filter.apply(NOW, &[begin(rule(64))]).unwrap_err();
    assert!(matches!(error, FilterError::TooManyShapes(65)), "{error}");
    filter.apply(NOW, &[end(rule(10)), begin(rule(64))]).unwrap();
    let listing = world.listing();
    assert_eq!(listing.matches("expires").count(), 64, "{listing}");
}
