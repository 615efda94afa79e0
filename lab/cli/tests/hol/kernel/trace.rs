//! The packets of the kernel world, as text and as captures.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{failure, ok};

/// Returns the output of `hol trace` for one run.
fn trace(transport: &str, more: &[&str]) -> Vec<String> {
    let fixed = ["trace", transport, "--world", "kernel:uml", "--repetitions", "1", "--count", "100"];
    let text = ok(Path::new("."), &[&fixed[..], more].concat());
    text.lines().map(str::to_owned).collect()
}

/// Returns how many packets had this outcome at an interface.
fn count(lines: &[String], interface: &str, outcome: &str) -> usize {
    lines.iter().filter(|line| line.contains(&format!("s {interface:<10} {outcome}"))).count()
}

/// Writes the same run as a capture.
fn capture(transport: &str, path: &Path) {
    let path = path.to_str().unwrap();
    trace(transport, &["--loss", "5%", "--pcap", path]);
}

/// Returns a field of each packet, as dissected by tshark.
fn dissect(path: &Path, field: &str, filter: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields", "-e", field, "-Y", filter]);
    for preference in ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "sctp.checksum:CRC 32c"] {
        command.args(["-o", preference]);
    }
    let output = command.output().unwrap_or_else(|error| panic!("tshark: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn every_packet_that_was_sent_was_received_or_lost() {
    for transport in ["tcp", "sctp:streams=8"] {
        let lines = trace(transport, &["--loss", "5%"]);
        for (from, to) in [("client:1", "server:1"), ("server:1", "client:1")] {
            let [sent, lost] = ["sent", "lost"].map(|outcome| count(&lines, from, outcome));
            let received = count(&lines, to, "received");
            // The last ones are still in flight when the run ends.
            assert!((0..=3).contains(&(sent - lost - received)), "{transport}: {sent} {lost} {received}");
            assert!(lost > 0 && sent > 100, "{transport}: {sent} {lost} {received}");
        }
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn packets_on_an_idle_link_take_its_delay_without_loss() {
    let lines = trace("sctp", &["--delay", "10ms", "--rate", "10/s"]);
    assert_eq!(lines.iter().filter(|line| line.contains("lost")).count(), 0);
    assert_eq!(lines.iter().filter(|line| line.contains("corrupted")).count(), 0);
    let seconds = |line: &str| line.split('s').next().unwrap().parse::<f64>().unwrap();
    let first = [&lines[0], &lines[1]].map(|line| seconds(line));
    let delivery_times = first[1] - first[0];
    assert!(lines[0].contains("[INIT") && lines[1].contains("received"), "{}\n{}", lines[0], lines[1]);
    assert!((0.010..0.0105).contains(&delivery_times), "{delivery_times}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build) and tshark"]
fn capture_is_repeatable_and_valid() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    for transport in ["tcp", "sctp:streams=8"] {
        capture(transport, &first);
        capture(transport, &second);
        assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "{transport}");
        let names = dissect(&first, "frame.interface_name", "ip");
        for name in ["client:1", "server:1", "dropped"] {
            assert!(names.iter().any(|interface| interface == name), "{transport}: nothing at {name}");
        }
        // Linux writes a checksum of zero as 0xffff, which is zero, too; RFC 1624 section 3.
        let bad = "_ws.malformed || ip.checksum.status == 0 || sctp.checksum.status == 0 \
                   || (tcp.checksum.status == 0 && tcp.checksum != 0xffff)";
        assert_eq!(dissect(&first, "frame.number", bad), [] as [&str; 0], "{transport}");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn ns2_trace_is_refused_because_only_ends_are_observed() {
    let directory = tempfile::tempdir().unwrap();
    let (code, message) =
        failure(directory.path(), &["trace", "tcp", "--world", "kernel:uml", "--ns2", "run.tr"]);
    assert!(code == 2 && message.contains("use --world model, or --pcap"), "{message}");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn corrupted_packet_is_shown_as_dropped_for_its_checksum() {
    let lines = trace("sctp", &["--set", "network.corrupt=5%"]);
    assert!(count(&lines, "server:1", "dropped: wrong checksum") > 0);
}
