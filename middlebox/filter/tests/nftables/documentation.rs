//! The ruleset in `docs/simco-filter.md` is the real one.

use hol_filter::{Config, Interfaces, PacketFilter};
use hol_simco::Direction::{Inbound, Outbound};

use crate::rules::{ANY, NOW, UDP, begin, bind, disable, enable};
use crate::world::World;

const DOCUMENT: &str = include_str!("../../../../docs/simco-filter.md");

#[test]
#[ignore = "needs root and network namespaces (iproute2, nftables)"]
fn the_documented_ruleset_matches_nft() {
    let world = World::new();
    let interfaces = Interfaces { inside: "in0".into(), outside: "out0".into() };
    let mut filter = world.filter(Config::new().with_interfaces(interfaces).unwrap());
    let rules = [
        bind(1, Inbound, UDP, "10.1.0.2:5004", "10.2.0.2:0", Some("192.0.2.77:40000"), None),
        enable(2, Outbound, ANY, "10.1.0.0/16", "0.0.0.0/0"),
        disable(3, ANY, "0.0.0.0/0", "10.2.0.9"),
    ];
    filter.apply(NOW, &rules.map(begin)).unwrap();
    let listing = world.stateless_listing().replace('\t', "    ");
    // An `nft` may know fewer flags of a table than the kernel, and this process is not called `hol`.
    let start = listing.find("    set ").unwrap();
    assert!(DOCUMENT.contains(&listing[start..]), "{listing}");
}
