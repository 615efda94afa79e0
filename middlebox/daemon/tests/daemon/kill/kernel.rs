//! A network namespace, and the content of its packet filter.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;

const NAMESPACE_VARIABLE: &str = "HOL_TEST_NAMESPACE";

/// Returns true in a network namespace of this test's own; otherwise runs the test in one.
pub fn in_a_namespace(test: &str) -> bool {
    if std::env::var_os(NAMESPACE_VARIABLE).is_some() {
        return true;
    }
    let output = Command::new("unshare")
        .args([
            "--net",
            "sh",
            "-c",
            r#"ip link set lo up && exec "$0" --exact "$1" --ignored --nocapture 2>&1"#,
        ])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(NAMESPACE_VARIABLE, "")
        .output()
        .expect("unshare (util-linux) is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "needs root, iproute2, nftables: {text}");
    false
}

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
