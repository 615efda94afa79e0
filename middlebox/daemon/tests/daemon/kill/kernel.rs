//! The content of the packet filter.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;

/// Returns the flows that the packet filter passes, according to `nft`: each has an address 10.x.y.z in any form
/// of the table.
pub fn flows() -> BTreeSet<u32> {
    let output = Command::new("nft").args(["list", "table", "inet", "simco"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listing = String::from_utf8(output.stdout).unwrap();
    let words = listing.split(|c: char| !c.is_ascii_digit() && c != '.');
    let addresses = words.filter_map(|word| word.parse::<Ipv4Addr>().ok()).map(Ipv4Addr::to_bits);
    addresses.filter(|address| address >> 24 == 10).map(|address| address & 0x00ff_ffff).collect()
}
