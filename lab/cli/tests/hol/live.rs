//! The live world from the command line, over loopback. Times are not checked, because they depend on the machine.

use crate::program::{failure, ok};

#[test]
fn live_comparison_runs_and_is_not_called_repeatable() {
    let dir = tempfile::tempdir().unwrap();
    let few = ["--count", "200", "--rate", "1000/s", "--repetitions", "2"];
    let answer = ok(dir.path(), &[&["compare", "tcp", "udp", "--world", "live"], &few[..]].concat());
    assert!(answer.contains("this machine's loopback interface"), "{answer}");

    let text = "world = 'live'\ntransports = ['tcp']\nmessages = 200\nrepetitions = 2\n[workload]\nkind = 'echo'\nrate = '1000/s'\n";
    std::fs::write(dir.path().join("x.toml"), text).unwrap();
    ok(dir.path(), &["run", "x.toml", "--out", "out"]);
    let points = std::fs::read_to_string(dir.path().join("out/points.csv")).unwrap();
    assert_eq!(points.lines().count(), 2, "{points}");
    let (code, complaint) = failure(dir.path(), &["verify", "out"]);
    assert!(code == 2 && complaint.contains("live"), "{code}: {complaint}");
}

#[test]
fn live_path_that_does_not_exist_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let (code, complaint) = failure(dir.path(), &["compare", "tcp", "--world", "live", "--loss", "1%"]);
    assert!(code == 2 && complaint.contains("loss"), "{code}: {complaint}");
}

/// `network.ip` is the only key of a path that loopback supports.
#[test]
#[ignore = "needs IPv6 on the loopback interface"]
fn loopback_works_over_ipv4_and_ipv6() {
    let dir = tempfile::tempdir().unwrap();
    let text = "world = 'live'\ntransports = ['tcp', 'udp', 'quic:ecn=true', 'sctp:socket=own']\nmessages = 100\nrepetitions = 1
        network.ip = 'v6'\n[workload]\nkind = 'echo'\nrate = '1000/s'\n";
    std::fs::write(dir.path().join("x.toml"), text).unwrap();
    ok(dir.path(), &["run", "x.toml", "--out", "out"]);
    let points = std::fs::read_to_string(dir.path().join("out/points.csv")).unwrap();
    let completed = points.lines().filter(|line| line.contains(",100,100,0,")).count();
    assert_eq!(completed, 4, "{points}");
}
