//! Differences between the kernel's table and the required rules.

use hol_base::Duration;
use hol_filter::{Config, Corrections, PacketFilter, Progress};
use hol_simco::Direction::{BiDirectional, Inbound};
use hol_simco::{Change, Rule};

use crate::rules::{NOW, UDP, begin, bind, disable, enable, end, lasting};
use crate::worker::run_before_workers;
use crate::world::Node::Middlebox;
use crate::world::World;

const NOTHING: Corrections = Corrections { missing: 0, surplus: 0 };

fn rules() -> [Rule; 4] {
    [
        enable(1, BiDirectional, UDP, "10.1.0.2:5004", "10.2.0.2:6004"),
        enable(2, Inbound, UDP, "10.1.0.0/24", "0.0.0.0/0"),
        disable(3, UDP, "10.1.0.9", "10.2.0.0/16"),
        bind(4, Inbound, UDP, "10.1.0.3:5004", "10.2.0.3:6004", Some("192.0.2.77:40000"), None),
    ]
}

/// Number of elements of all these rules: 2 + 1 + 2 + 2.
const ELEMENTS: usize = 7;

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn rules_outlive_their_filter_and_are_adopted() {
    let world = World::new();
    let mended = world.filter(Config::new()).reconcile(NOW, &rules()).unwrap();
    assert_eq!(mended, Corrections { missing: ELEMENTS, surplus: 0 });
    let before = world.stateless_listing();
    let mut successor = world.filter(Config::new());
    assert_eq!(world.stateless_listing(), before, "opening the filter changes nothing");
    assert_eq!(successor.reconcile(NOW, &rules()).unwrap(), NOTHING);
    successor.apply(NOW, &[begin(rules()[1]).inverse()]).unwrap();
    assert_eq!(successor.reconcile(NOW, &rules()).unwrap(), Corrections { missing: 1, surplus: 0 });
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn surplus_elements_are_removed() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    filter.reconcile(NOW, &rules()).unwrap();
    let mended = filter.reconcile(NOW, &rules()[..1]).unwrap();
    assert_eq!(mended, Corrections { missing: 0, surplus: ELEMENTS - 2 });
    let over = NOW + Duration::from_secs(61);
    assert_eq!(
        filter.reconcile(over, &rules()).unwrap(),
        Corrections { missing: 0, surplus: 2 },
        "lifetimes have ended"
    );
    assert!(!world.listing().contains("expires"));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn elements_changed_by_others_are_repaired() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    filter.reconcile(NOW, &rules()).unwrap();
    let exact = "inet simco inbound4_proto_saddr_sport_daddr_dport";
    world.nft(&format!("add element {exact} {{ udp . 8.8.8.8 . 53 . 10.1.0.2 . 53 }}"));
    world.nft(&format!("delete element {exact} {{ udp . 10.2.0.2 . 6004 . 10.1.0.2 . 5004 }}"));
    assert_eq!(filter.reconcile(NOW, &rules()).unwrap(), Corrections { missing: 1, surplus: 1 });
    world.nft("flush map inet simco dnat4_proto_daddr_dport");
    world.nft("add element inet simco dnat4_proto_daddr_dport { udp . 192.0.2.77 . 40000 : 10.1.0.66 . 1 }");
    assert_eq!(filter.reconcile(NOW, &rules()).unwrap(), Corrections { missing: 1, surplus: 1 });
    assert_eq!(filter.reconcile(NOW, &rules()).unwrap(), NOTHING);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_wrong_expiry_is_repaired() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    filter.reconcile(NOW, &rules()[1..2]).unwrap();
    let longer = lasting(rules()[1], Duration::from_secs(3600));
    assert_eq!(filter.reconcile(NOW, &[longer]).unwrap(), Corrections { missing: 1, surplus: 1 });
    assert!(world.listing().contains("timeout 1h5s"));
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn chains_and_sets_changed_by_others_are_repaired() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    filter.reconcile(NOW, &rules()).unwrap();
    let whole = world.stateless_listing();
    let tamper = [
        "flush chain inet simco passing",
        "insert rule inet simco checks accept",
        "flush table inet simco\ndelete map inet simco dnat4_proto_daddr_dport",
        "add set inet simco mine { type ipv4_addr; }",
        "add chain inet simco mine { type filter hook forward priority 5; policy drop; }",
        "delete table inet simco",
        "delete table inet simco\nadd table inet simco { flags dormant; }",
        "delete table inet simco\nadd table inet simco\n\
         add chain inet simco forward { type filter hook input priority 5; }\n\
         add set inet simco inbound4_proto_saddr_sport_daddr_dport { type ipv6_addr; }",
    ];
    for script in tamper {
        world.nft(script);
        filter.reconcile(NOW, &rules()).unwrap();
        assert_eq!(sorted(&world.stateless_listing()), sorted(&whole), "{script}");
    }
}

fn numbered(n: u32) -> Rule {
    enable(n, Inbound, UDP, &format!("10.1.0.2:{}", 10_000 + n), "10.2.0.2:6004")
}

/// The rules do not fit into one transaction.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn twenty_thousand_rules_are_restored_and_removed() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rules: Vec<Rule> = (0..20_000).map(numbered).collect();
    assert_eq!(filter.reconcile(NOW, &rules).unwrap(), Corrections { missing: 20_000, surplus: 0 });
    while filter.continue_reconciliation(NOW).unwrap() != Progress::Done {}
    assert_eq!(filter.reconcile(NOW, &rules).unwrap(), NOTHING);
    assert_eq!(filter.reconcile(NOW, &[]).unwrap(), Corrections { missing: 0, surplus: 20_000 });
    assert!(!world.listing().contains("expires"));
}

/// A kernel worker enlarges the hash table of a set while it is listed by position. Here the worker has to wait for a
/// processor until the list has begun.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_table_that_grows_while_it_is_listed_is_listed_completely() {
    let world = World::new();
    // The table grows when more than three quarters of its 2¹⁶ slots are used: lib/rhashtable.c
    let changes: Vec<Change> = (0..49_200).map(numbered).map(begin).collect();
    let (first, last) = changes.split_at(49_100);
    for _ in 0..3 {
        let mut filter = world.filter(Config::new());
        filter.apply(NOW, first).unwrap();
        let mended = run_before_workers(|list_begins| {
            filter.apply(NOW, last).unwrap();
            list_begins();
            filter.reconcile(NOW, &[]).unwrap()
        });
        assert_eq!(mended, Corrections { missing: 0, surplus: changes.len() });
        assert!(!world.listing().contains("expires"));
    }
}

/// A rule that ends or changes during a reconciliation is neither restored nor left unchanged, whether its element was
/// present or missing.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn rules_can_change_during_a_reconciliation() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rules: Vec<Rule> = (0..20_000).map(numbered).collect();
    filter.reconcile(NOW, &rules).unwrap();
    let elements = || world.listing().matches("expires").count();
    assert_eq!(elements(), 16_384, "the other elements are still missing");
    let (first, last) = (rules[0], rules[19_999]);
    let later = |rule| Change { before: Some(rule), after: Some(lasting(rule, Duration::from_secs(90))) };
    filter.apply(NOW, &[end(first), end(last), later(rules[1]), later(rules[19_998])]).unwrap();
    while filter.continue_reconciliation(NOW).unwrap() != Progress::Done {}
    assert_eq!(elements(), 19_998);
    assert_eq!(world.listing().matches("timeout 1m35s").count(), 2);
}

/// A table that is too large to list: missing elements are added, surplus ones removed, and new ones stay.
#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_large_table_is_repaired_while_rules_change() {
    let world = World::new();
    let mut filter = world.filter(Config::new());
    let rule = |n: u32| {
        let internal = format!("10.1.{}.{}:{}", n >> 12 & 15, n >> 8 & 15, 1024 + (n & 255));
        enable(n, Inbound, UDP, &internal, "10.2.0.2:6004")
    };
    let all: Vec<Rule> = (0..70_000).map(rule).collect();
    let continue_reconciliation = |filter: &mut hol_filter::Nftables| {
        while world.call_in(Middlebox, || filter.continue_reconciliation(NOW).unwrap()) != Progress::Done {}
    };
    world.call_in(Middlebox, || filter.reconcile(NOW, &all[..68_000]).unwrap());
    continue_reconciliation(&mut filter);
    let mended = world.call_in(Middlebox, || filter.reconcile(NOW, &all[1000..69_000]).unwrap());
    assert_eq!(mended, NOTHING, "the table has not been listed yet");
    filter.apply(NOW, &[begin(all[69_500]), end(all[2000])]).unwrap();
    continue_reconciliation(&mut filter);
    let mut wanted: Vec<Rule> = all[1000..69_000].iter().chain([&all[69_500]]).copied().collect();
    wanted.retain(|rule| rule.pid != all[2000].pid);
    let distinct: std::collections::BTreeSet<String> =
        wanted.iter().map(|rule| format!("{:?}", rule.address_tuples())).collect();
    assert_eq!(world.listing().matches("expires").count(), distinct.len());
}

/// Sorts the blocks of a listing, because recreated ones are listed last.
fn sorted(listing: &str) -> Vec<&str> {
    let mut blocks: Vec<&str> = listing.split("\n\n").map(|block| block.trim_matches(['\n', '}'])).collect();
    blocks.iter_mut().for_each(|block| *block = block.trim_start_matches("table inet simco {").trim());
    blocks.sort_unstable();
    blocks
}
