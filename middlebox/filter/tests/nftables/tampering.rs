//! Other programs: their rules stay unchanged, and their changes to our table are noticed.

use hol_filter::{Config, Corrections, FilterError, Nftables, PacketFilter};
use hol_simco::Direction::Inbound;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::rules::{NOW, UDP, begin, disable, enable, end};
use crate::world::Node::Middlebox;
use crate::world::World;

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn tables_of_others_stay_unchanged() {
    let world = World::new();
    let theirs = "table inet theirs {\n\tset allowed {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 }\n\t}\n\n\
                  \tchain forward {\n\t\ttype filter hook forward priority filter; policy accept;\n\
                  \t\tip saddr @allowed accept\n\t}\n}\n";
    world.nft(theirs);
    let mut filter = world.filter(Config::new().with_table("firewall").unwrap());
    let rule = enable(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:6004");
    filter.apply(NOW, &[begin(rule), begin(disable(2, UDP, "10.1.0.2", "10.2.0.9"))]).unwrap();
    filter.reconcile(NOW, &[rule]).unwrap();
    assert_eq!(world.nft("list table inet theirs"), theirs);
    filter.remove().unwrap();
    assert_eq!(world.listing(), theirs);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_deleted_table_is_reported() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    let [one, two] = [1, 2].map(|pid| enable(pid, Inbound, UDP, &format!("10.1.0.2:{pid}"), "10.2.0.2:6004"));
    filter.apply(NOW, &[begin(one)]).unwrap();
    world.nft("delete table inet simco");
    for change in [begin(two), end(one)] {
        let error = filter.apply(NOW, &[change]).unwrap_err();
        assert!(matches!(error, FilterError::TableChanged { .. }), "{error}");
        assert!(error.to_string().contains("inet simco"), "{error}");
    }
    assert_eq!(filter.reconcile(NOW, &[one]).unwrap(), Corrections { missing: 1, surplus: 0 });
    filter.apply(NOW, &[begin(two), end(one)]).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_deleted_set_is_reported() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    let [one, two] = [1, 2].map(|pid| enable(pid, Inbound, UDP, &format!("10.1.0.2:{pid}"), "10.2.0.2:6004"));
    filter.apply(NOW, &[begin(one)]).unwrap();
    world.nft("flush table inet simco\ndelete set inet simco inbound4_proto_saddr_sport_daddr_dport");
    let error = filter.apply(NOW, &[begin(two), end(one)]).unwrap_err();
    assert!(matches!(error, FilterError::TableChanged { .. }), "{error}");
    filter.reconcile(NOW, &[one]).unwrap();
    filter.apply(NOW, &[begin(two), end(one)]).unwrap();
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn elements_changed_by_others_do_not_prevent_changes() {
    let world = World::new();
    let mut filter = world.filter(Config::new().without_protection());
    let [one, two] = [1, 2].map(|pid| enable(pid, Inbound, UDP, &format!("10.1.0.2:{pid}"), "10.2.0.2:6004"));
    filter.apply(NOW, &[begin(one)]).unwrap();
    let set = "inet simco inbound4_proto_saddr_sport_daddr_dport";
    world.nft(&format!("delete element {set} {{ udp . 10.2.0.2 . 6004 . 10.1.0.2 . 1 }}"));
    world.nft(&format!("add element {set} {{ udp . 10.2.0.2 . 6004 . 10.1.0.2 . 2 }}"));
    filter.apply(NOW, &[begin(two), end(one)]).unwrap();
    let listing = world.listing();
    assert!(listing.contains("elements = { udp . 10.2.0.2 . 6004 . 10.1.0.2 . 2 timeout 1m"), "{listing}");
}

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn a_missing_permission_is_explained() {
    let world = World::new();
    let nothing = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    let error = world.call_in(Middlebox, || {
        set_capabilities(None, nothing).unwrap();
        Nftables::open(Config::new()).unwrap_err()
    });
    assert!(
        matches!(error, FilterError::NotPermitted) && error.to_string().contains("CAP_NET_ADMIN"),
        "{error}"
    );
}

#[test]
fn names_that_nftables_rejects_are_refused() {
    for name in ["", "7up", "a b", "semi;colon", "line\nbreak"] {
        let error = Config::new().with_table(name).unwrap_err();
        assert!(error.to_string().contains("letter"), "{error}");
    }
}
