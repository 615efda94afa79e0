//! Lifetimes of elements.

use std::time;

use hol_base::Duration;
use hol_filter::{Config, Corrections, FilterError, PacketFilter};
use hol_simco::Change;
use hol_simco::Direction::{Inbound, Outbound};

use crate::rules::{NOW, UDP, begin, bind, enable, end, lasting};
use crate::world::Node::{Inside, Outside};
use crate::world::{World, arrives, wait};

const SHORT: Duration = Duration::from_millis(700);
/// How much longer than its rule an element lasts if no transaction deletes it.
const GRACE_TIME: time::Duration = time::Duration::from_secs(5);

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn the_kernel_ends_a_lifetime_without_the_filter() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5004"), world.udp(Outside, "10.2.0.2:6004"));
    let rule = lasting(enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), SHORT);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    drop(filter);
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_some());
    wait(time::Duration::from_millis(700) + GRACE_TIME);
    assert!(arrives(&outside, "10.1.0.2:5004", &inside).is_none());
}

/// A timeout of zero would mean no timeout.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_lifetime_of_a_nanosecond_ends() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004");
    filter.apply(NOW, &[begin(lasting(rule, Duration::from_nanos(1)))]).unwrap();
    filter.reconcile(NOW, &[lasting(rule, Duration::from_nanos(1))]).unwrap();
    assert!(world.listing().contains("timeout 5s"));
    filter.apply(NOW + Duration::from_nanos(1), &[end(lasting(rule, Duration::from_nanos(1)))]).unwrap();
    assert!(!world.listing().contains("timeout "));
}

/// Ended elements of one key would accumulate in the kernel's table until it refuses another:
/// net/netfilter/nft_set_hash.c `nft_rhash_gc`, lib/rhashtable.c `rhashtable_insert_rehash`.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_short_rule_can_begin_and_end_repeatedly() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = lasting(enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), Duration::from_millis(1));
    for round in 0..40 {
        filter.apply(NOW, &[begin(rule)]).unwrap_or_else(|error| panic!("round {round}: {error}"));
        wait(time::Duration::from_millis(25));
        filter.apply(NOW + Duration::from_millis(25), &[end(rule)]).unwrap();
        assert!(!world.listing().contains("timeout "), "the ended element is deleted");
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_lifetime_can_be_extended_and_shortened() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = lasting(enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), Duration::from_secs(600));
    let longer = lasting(rule, Duration::from_secs(3600));
    filter.apply(NOW, &[begin(rule)]).unwrap();
    assert!(world.listing().contains("timeout 10m5s"));
    filter.apply(NOW, &[Change { before: Some(rule), after: Some(longer) }]).unwrap();
    assert!(world.listing().contains("timeout 1h5s"));
    filter.apply(NOW, &[Change { before: Some(longer), after: Some(rule) }]).unwrap();
    assert!(world.listing().contains("timeout 10m5s"));
}

/// The new timeout equals the first one, but counts from now: linux/netfilter/nf_tables.h `NFTA_SET_ELEM_EXPIRATION`.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_lifetime_can_be_renewed() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = lasting(enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), Duration::from_secs(600));
    filter.apply(NOW, &[begin(rule)]).unwrap();
    wait(time::Duration::from_millis(20));
    let (now, renewed) = (NOW + Duration::from_millis(20), lasting(rule, Duration::from_millis(600_020)));
    assert!(!world.listing().contains("expires 10m5s"));
    filter.apply(now, &[Change { before: Some(rule), after: Some(renewed) }]).unwrap();
    let rules = [lasting(rule, Duration::from_millis(600_020))];
    assert_eq!(filter.reconcile(now, &rules).unwrap(), Corrections::default());
    let listing = world.listing();
    let expires = listing.split_once("expires ").unwrap().1;
    assert!(expires.starts_with("10m4s9"), "{expires}");
    assert_eq!(listing.matches("timeout 10m5s").count(), 1);
}

/// Another program can replace an element before Linux 6.9.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_lifetime_of_a_foreign_element_can_be_changed() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    let rule = bind(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004", Some("192.0.2.77:40000"), None);
    filter.apply(NOW, &[begin(rule)]).unwrap();
    let map = "element inet simco dnat4_proto_daddr_dport { udp . 192.0.2.77 . 40000";
    world.nft(&format!("delete {map} }}\nadd {map} timeout 1h : 10.1.0.3 . 5004 }}"));
    let longer = lasting(rule, Duration::from_secs(600));
    filter.apply(NOW, &[Change { before: Some(rule), after: Some(longer) }]).unwrap();
    let listing = world.listing();
    assert!(listing.contains(": 10.1.0.2 . 5004") && !listing.contains("10.1.0.3"), "{listing}");
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn an_element_of_two_rules_lasts_as_long_as_the_longer() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let short = lasting(enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), Duration::from_secs(600));
    let long = lasting(enable(2, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004"), Duration::from_secs(3600));
    filter.apply(NOW, &[begin(long)]).unwrap();
    filter.apply(NOW, &[begin(short)]).unwrap();
    assert!(world.listing().contains("timeout 1h5s"));
    filter.apply(NOW, &[end(long)]).unwrap();
    assert!(world.listing().contains("timeout 10m5s"));
    filter.apply(NOW, &[begin(long), end(short)]).unwrap();
    assert!(world.listing().contains("timeout 1h5s"));
    filter.apply(NOW, &[end(long)]).unwrap();
    assert!(!world.listing().contains("expires"));
}

/// The kernel's clock differs from ours, so an element may have ended in the kernel before its rule is
/// changed.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn rules_that_ended_in_the_kernel_can_be_changed_and_restarted() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = |pid, port| enable(pid, Inbound, UDP, &format!("10.1.0.2:{port}"), "10.2.0.2:6004");
    let [first, second] = [rule(1, 5004), rule(2, 5006)].map(|rule| lasting(rule, Duration::from_millis(60)));
    filter.apply(NOW, &[begin(first), begin(second)]).unwrap();
    wait(time::Duration::from_millis(100) + GRACE_TIME);
    let longer = lasting(first, Duration::from_secs(3600));
    filter.apply(NOW, &[Change { before: Some(first), after: Some(longer) }, end(second)]).unwrap();
    assert_eq!(world.listing().matches("timeout 1h5s expires").count(), 1);
    filter.apply(NOW, &[begin(lasting(second, Duration::from_secs(600)))]).unwrap();
    let listing = world.listing();
    assert!(listing.contains("6004 . 10.1.0.2 . 5006 timeout 10m5s"), "{listing}");
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_batch_is_applied_completely_or_not_at_all() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let [one, two] =
        [5004, 5006].map(|port| enable(port, Outbound, UDP, &format!("10.1.0.2:{port}"), "10.2.0.2:6004"));
    filter.apply(NOW, &[begin(one)]).unwrap();
    let before = world.stateless_listing();
    let many = enable(3, Outbound, UDP, "10.1.0.2:5004+5000", "10.2.0.2:6004+5000");
    let error = filter.apply(NOW, &[end(one), begin(two), begin(many)]).unwrap_err();
    assert!(
        matches!(error, FilterError::Unsupported { .. }) && error.to_string().contains("rule 3"),
        "{error}"
    );
    let crossing = enable(4, Outbound, UDP, "10.1.0.2:5004", "[fd02::2]:6004");
    filter.apply(NOW, &[end(one), begin(crossing)]).unwrap_err();
    assert_eq!(world.stateless_listing(), before);
    filter.apply(NOW, &[end(one), begin(two)]).unwrap();
    assert!(world.listing().contains("elements = { udp . 10.1.0.2 . 5006"));
}
