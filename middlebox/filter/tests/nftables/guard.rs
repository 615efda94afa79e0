//! Ownership of the table. Before Linux 6.9 every program can change it.

use hol_filter::{Config, Corrections, FilterError, Nftables, PacketFilter};
use hol_simco::Direction::Inbound;
use hol_simco::Rule;

use crate::rules::{NOW, UDP, begin, enable, end};
use crate::world::Node::{Inside, Middlebox, Outside};
use crate::world::{World, arrives};

const FOREIGN_CHANGES: [&str; 5] = [
    "flush table inet simco",
    "delete table inet simco",
    "flush chain inet simco passing",
    "insert rule inet simco forward accept",
    "add element inet simco inbound4_proto_saddr_sport_daddr_dport { udp . 10.2.0.2 . 1 . 10.1.0.2 . 1 }",
];

fn rule(pid: u32) -> Rule {
    enable(pid, Inbound, UDP, &format!("10.1.0.2:{}", 5000 + pid), "10.2.0.2:6004")
}

/// Returns a filter with the first rule in a table that it owns.
fn owner(world: &World) -> Nftables {
    let mut filter = world.filter(Config::new());
    assert!(filter.is_protected(), "before Linux 6.9 a table does not stay owned");
    filter.reconcile(NOW, &[rule(1)]).unwrap();
    filter
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn other_programs_cannot_change_an_owned_table() {
    let world = World::new();
    let mut filter = owner(&world);
    let before = world.stateless_listing();
    for script in FOREIGN_CHANGES {
        let refused = world.run(Middlebox, "nft", &[script]).unwrap_err().to_string();
        assert!(refused.contains("Operation not permitted"), "{script}: {refused}");
    }
    world.nft("flush ruleset");
    assert_eq!(world.stateless_listing(), before);
    let (inside, other) = (world.udp(Inside, "10.1.0.2:5001"), world.udp(Inside, "10.1.0.2:5002"));
    let outside = world.udp(Outside, "10.2.0.2:6004");
    assert!(arrives(&outside, "10.1.0.2:5001", &inside).is_some());
    assert!(arrives(&outside, "10.1.0.2:5002", &other).is_none());
    filter.apply(NOW, &[begin(rule(2)), end(rule(1))]).unwrap();
    assert!(arrives(&outside, "10.1.0.2:5002", &other).is_some());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn a_second_filter_is_refused_an_owned_table() {
    let world = World::new();
    let mut filter = owner(&world);
    let before = world.listing().matches("expires").count();
    let error = world.open(Config::new()).unwrap_err();
    assert!(matches!(error, FilterError::TableOwned { .. }), "{error}");
    for part in ["inet simco", "[nftables] table = NAME"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!(world.listing().matches("expires").count(), before);
    let mut other = world.filter(Config::new().with_table("other").unwrap());
    other.apply(NOW, &[begin(rule(2))]).unwrap();
    filter.apply(NOW, &[end(rule(1))]).unwrap();
    assert!(world.listing().contains("10.1.0.2 . 5002"));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn the_next_filter_adopts_the_table_unchanged() {
    let world = World::new();
    let filter = owner(&world);
    drop(filter);
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5001"), world.udp(Outside, "10.2.0.2:6004"));
    assert!(arrives(&outside, "10.1.0.2:5001", &inside).is_some(), "the table outlives its owner");
    let mut successor = world.filter(Config::new());
    assert_eq!(successor.reconcile(NOW, &[rule(1)]).unwrap(), Corrections::default());
    world.run(Middlebox, "nft", &[FOREIGN_CHANGES[0]]).unwrap_err();
    successor.remove().unwrap();
    assert_eq!(world.listing(), "");
}

/// Changes made in the meantime are reversed.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn a_table_changed_without_an_owner_is_repaired() {
    let world = World::new();
    let filter = owner(&world);
    let whole = world.stateless_listing();
    drop(filter);
    for script in FOREIGN_CHANGES {
        world.nft(script);
        let mut successor = world.filter(Config::new());
        successor.reconcile(NOW, &[rule(1)]).unwrap();
        assert_eq!(world.stateless_listing(), whole, "{script}");
    }
}

/// An older daemon has created the table, to which no flag can be added.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables), and Linux 6.9 for tables with an owner"]
fn a_table_that_cannot_be_owned_is_replaced() {
    let world = World::new();
    world.filter(Config::new().without_protection()).reconcile(NOW, &[rule(1)]).unwrap();
    let _filter = owner(&world);
    let (inside, outside) = (world.udp(Inside, "10.1.0.2:5001"), world.udp(Outside, "10.2.0.2:6004"));
    assert!(arrives(&outside, "10.1.0.2:5001", &inside).is_some());
    world.run(Middlebox, "nft", &[FOREIGN_CHANGES[0]]).unwrap_err();
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn foreign_changes_of_an_unguarded_table_are_detected() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    assert!(!filter.is_protected());
    world.call_in(Middlebox, || filter.watch()).unwrap();
    filter.reconcile(NOW, &[rule(1)]).unwrap();
    filter.apply(NOW, &[begin(rule(2))]).unwrap();
    assert!(!filter.has_foreign_change(), "own changes are not foreign");
    world.nft("add table inet theirs\nadd chain inet theirs simco\nadd table ip simco");
    assert!(!filter.has_foreign_change(), "changes to other tables are ignored");
    for script in FOREIGN_CHANGES.iter().chain(&["flush ruleset"]) {
        world.nft(script);
        assert!(filter.has_foreign_change(), "{script}");
        assert!(!filter.has_foreign_change(), "{script}");
        filter.reconcile(NOW, &[rule(1), rule(2)]).unwrap();
        assert!(!filter.has_foreign_change(), "{script}");
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn tables_of_other_middleboxes_are_found() {
    let world = World::new();
    world.nft("add table inet mine; add chain inet mine forward { type filter hook forward priority 0; }");
    world.nft("add table ip simco; add chain ip simco forward; add chain ip simco checks; add chain ip simco blocked");
    let others = |config| world.filter(config).other_tables().unwrap();
    assert!(others(Config::new()).is_empty());
    let mut first = world.filter(Config::new());
    first.reconcile(NOW, &[]).unwrap();
    let second = || Config::new().with_table("second").unwrap();
    assert!(first.other_tables().unwrap().is_empty(), "the filter's own table is not listed");
    assert_eq!(others(second()), ["simco"]);
    drop(first);
    assert_eq!(others(second()), ["simco"], "a table without an owner still filters");
}
