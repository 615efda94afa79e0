//! A middlebox with a packet filter in the kernel world.

use std::fs;
use std::path::Path;

use crate::program::{failure, ok};
use serde_json::Value;

fn compare(transport: &str, filter: &str) -> Value {
    let arguments = [
        "compare",
        transport,
        "--world=kernel",
        "--json",
        "--count=200",
        "--repetitions=1",
        "--mix=enable=2,lifetime=1,delete=1",
        "--filter",
        filter,
    ];
    let line = ok(Path::new("."), &arguments);
    serde_json::from_str(line.trim()).expect(&line)
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn packet_filter_takes_time_and_refuses_no_rule() {
    // QEMU is used, because instructions take time there.
    for transport in ["tcp", "sctp:streams=8"] {
        let [without, with, again] =
            ["none", "nftables", "nftables"].map(|filter| compare(transport, filter));
        let mean = |row: &Value| row["mean_ms"].as_f64().unwrap();
        assert_eq!((&with["completed"], &with["digest"]), (&200.into(), &again["digest"]));
        // Tens of thousands of instructions, a nanosecond each.
        let added = mean(&with) - mean(&without);
        assert!((0.005..0.5).contains(&added), "{transport}: {added} ms");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn only_the_measured_workload_has_a_packet_filter() {
    let directory = tempfile::tempdir().unwrap();
    let file = "transports = ['tcp']\nworld = 'kernel:uml'\n\n[hosts.server]\nfilter = 'nftables'\n\n\
                [[background]]\ntransport = 'tcp'\nworkload = { kind = 'simco' }\n";
    fs::write(directory.path().join("two.toml"), file).unwrap();
    let (code, message) = failure(directory.path(), &["run", "two.toml"]);
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("[[background]] number 1") && message.contains("packet filter"), "{message}");
}
