//! Several paths in the kernel world: Multipath TCP joins them, adds up their rates, and continues over the other when
//! one fails.

use std::path::Path;

use crate::program::ok;

const PATHS: [&str; 2] = ["--set", "network.paths=[{}, {}]"];
const BACKUP: [&str; 2] = ["--set", "network.paths=[{}, { backup = true }]"];
const WORLD: [&str; 2] = ["--world", "kernel:uml"];

/// Returns the output of `hol trace` for one run.
fn trace(dir: &Path, arguments: &[&str], paths: &[&str]) -> String {
    ok(dir, &[&["trace", "mptcp", "--repetitions", "1"][..], arguments, paths, &WORLD].concat())
}

/// Returns the time of the last packet with data that the client sent at this interface, and the number of these packets.
fn sent_at(text: &str, interface: &str) -> (f64, usize) {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let data =
        words.filter(|words| words[1] == interface && words[2] == "sent" && words.last() != Some(&"0"));
    let times: Vec<f64> = data.map(|words| words[0].trim_end_matches('s').parse().unwrap()).collect();
    (times.last().copied().unwrap_or(0.0), times.len())
}

/// RFC 8684 section 3.2: the second subflow joins over the link of the address that the server announced.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn multipath_tcp_uses_the_sum_of_both_paths() {
    let dir = tempfile::tempdir().unwrap();
    let bulk = ["--workload", "bulk", "--count", "400", "--bandwidth", "4Mbit", "--delay", "10ms"];
    let both = trace(dir.path(), &bulk, &PATHS);
    assert!(both.contains("mp_join") || both.contains("join"), "{}", &both[..both.len().min(4000)]);
    let (_, first) = sent_at(&both, "client:1");
    let (end, second) = sent_at(&both, "client:2");
    assert!(first.min(second) * 3 > first.max(second), "{first} and {second} packets");
    let alone = ok(dir.path(), &[&["trace", "mptcp", "--repetitions", "1"][..], &bulk, &WORLD].concat());
    let (end_alone, _) = sent_at(&alone, "client:1");
    assert!(end < 0.7 * end_alone, "two paths take {end} s, one {end_alone} s");
}

/// Data in flight on the failed path are retransmitted over the other one.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn multipath_tcp_continues_when_a_path_is_down() {
    let dir = tempfile::tempdir().unwrap();
    let down = ["--set", "network.events=[{ at = '1s', path = 1, down = true }]"];
    let load = ["--workload", "echo", "--rate", "50/s", "--count", "200", "--delay", "10ms"];
    let text = trace(dir.path(), &[&load[..], &down].concat(), &PATHS);
    let (last, _) = sent_at(&text, "client:2");
    assert!(last > 3.5, "data go on over the second path until {last} s");
}

/// RFC 8684 section 3.3.8: a backup path carries data only while no other path works, and is joined before that.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn a_backup_waits_until_the_other_path_is_down() {
    let dir = tempfile::tempdir().unwrap();
    let load = ["--workload", "echo", "--rate", "50/s", "--count", "200", "--delay", "10ms"];
    let bulk = ["--workload", "bulk", "--count", "400", "--bandwidth", "4Mbit", "--delay", "10ms"];
    for load in [&load[..], &bulk] {
        let idle = trace(dir.path(), load, &BACKUP);
        assert!(idle.lines().any(|line| line.contains("client:2") && line.contains("join")), "{idle}");
        let ((_, first), (_, second)) = (sent_at(&idle, "client:1"), sent_at(&idle, "client:2"));
        assert!(first > 190 && second == 0, "{first} and {second} packets with data");
    }
    let down = ["--set", "network.events=[{ at = '1s', path = 1, down = true }]"];
    let text = trace(dir.path(), &[&load[..], &down].concat(), &BACKUP);
    let (last, _) = sent_at(&text, "client:2");
    assert!(last > 3.5, "data go on over the backup until {last} s");
}
