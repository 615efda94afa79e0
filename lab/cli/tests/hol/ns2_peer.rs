//! The study of Nayak et al. 2019 compared with ns-2 2.35, with which the paper was simulated and which has an
//! independent SCTP.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::ok;
use serde_json::Value;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/nayak2019/two-streams.tcl");
/// User data of a DATA chunk that fills a packet of 1500 octets.
const CHUNK: f64 = 1452.0;
const SECONDS: f64 = 60.0;
/// Messages per second of one source of the paper, 5.09 Mbit/s.
const RATE: f64 = 438.2;

/// Returns the streams of the DATA chunks in the order of their arrival at the other end.
fn ns2(streams: u16, sources: f64, delay_ms: u32, loss: f64) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let kbps = RATE * sources * CHUNK * 8.0 / 1e3;
    let arguments = [&streams.to_string(), &kbps.to_string(), &delay_ms.to_string(), &loss.to_string()]
        .map(String::from)
        .into_iter()
        .chain(["60", "7", "run.tr"].map(String::from));
    let run = Command::new("ns").arg(SCRIPT).args(arguments).current_dir(dir.path()).output();
    let run = run.unwrap_or_else(|error| panic!("ns: {error} (package ns2)"));
    assert!(run.status.success(), "{run:?}");
    let trace = fs::read_to_string(dir.path().join("run.tr")).unwrap();
    let arrived = trace.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    // A line is `r 0.51 0 1 sctp 1500 ------D 1 0.0 1.0 1 12 1 0 0`: the flags are the seventh field, and the last ones
    // are TSN, stream and sequence number.
    arrived
        .filter(|words| words[0] == "r" && words[6].ends_with('D'))
        .map(|words| words[words.len() - 2].to_owned())
        .collect()
}

fn kbps(chunks: &[String]) -> f64 {
    chunks.len() as f64 * CHUNK * 8.0 / SECONDS / 1e3
}

/// Returns the model's result for two streams, with its 95 % interval.
fn model(sources: f64, delay_ms: u32, loss: &str) -> [f64; 2] {
    let (rate, delay) = (format!("{}/s", RATE * sources), format!("{delay_ms}ms"));
    let path = ["--bandwidth", "10Mbit", "--set", "network.overhead=0B", "--delay", &delay, "--loss", loss];
    let load = ["--workload", "oneway", "--size", "1452B", "--rate", &rate, "--count", "80000", "--json"];
    let text = ok(Path::new("."), &[&["compare", "sctp:streams=2"][..], &path, &load].concat());
    let row: Value = serde_json::from_str(text.trim()).unwrap();
    ["throughput_kbps", "throughput_ci95_kbps"].map(|key| row[key].as_f64().unwrap())
}

#[test]
#[ignore = "needs ns-2 (package ns2)"]
fn ns2_ignores_streams_and_two_sources_match_the_model() {
    let one = ns2(1, 1.0, 10, 0.01);
    assert!(one.len() > 20_000);
    assert_eq!(one, ns2(2, 1.0, 10, 0.01), "the second stream changes nothing, and has nothing");
    for sources in [1.0, 2.0] {
        let (theirs, [ours, _]) = (kbps(&ns2(2, sources, 10, 0.0)), model(sources, 10, "0%"));
        assert!((theirs / ours - 1.0).abs() < 0.01, "{sources} sources: ns-2 {theirs}, here {ours} kbit/s");
    }
    // With losses the two stacks differ: ns-2 has RFC 2960, and no limited transmit.
    for (sources, delay) in [(1.0, 10), (2.0, 10), (1.0, 50)] {
        let (theirs, [ours, half]) = (kbps(&ns2(2, sources, delay, 0.01)), model(sources, delay, "1%"));
        assert!(
            (theirs / ours - 1.0).abs() < 0.15 + half / ours,
            "{sources} sources, {delay} ms, 1 %: ns-2 {theirs}, here {ours} ± {half} kbit/s"
        );
    }
}
