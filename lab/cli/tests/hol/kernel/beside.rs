//! Real programs compared with the workloads that model them: parts of the shipped experiments.

use std::path::Path;

use crate::program::ok;
use serde_json::Value;

/// Returns the points of a shipped experiment with these keys, in the order of the plan.
fn points(experiment: &str, keys: &[&str]) -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(experiment);
    let set = keys.iter().flat_map(|key| ["--set", key]);
    let line: Vec<_> =
        ["run", file.to_str().unwrap(), "--out", "out", "--json"].into_iter().chain(set).collect();
    let text = ok(directory.path(), &line);
    let points: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert!(!points.is_empty() && points.iter().all(|point| point["failed"] == 0), "{points:?}");
    points
}

/// Returns a number of a point.
fn number(point: &Value, path: &str) -> f64 {
    point.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {point}"))
}

/// Asserts that the values of program and workload differ by at most `percent`.
fn is_near(program: f64, workload: f64, percent: f64) {
    let difference = 100.0 * (program / workload - 1.0);
    assert!(difference.abs() < percent, "{program} beside {workload}: {difference:.1} %");
}

/// A hundred files of 1000 octets over 1 Mbit/s. The model's state cookie is shorter than Linux's, which each
/// association carries twice; nginx writes the header of a response and its file separately, so that over SCTP each is
/// a message of its own.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), nginx, curl and mkfs.erofs (erofs-utils)"]
fn curl_takes_as_long_for_a_hundred_files_as_workload_page() {
    let line = ["network.rate=1Mbit", "network.delay=5ms"];
    for (connection, way) in [("close", "close"), ("keep-alive", "keepalive")] {
        let size = "program.0.files.'/var/www/html/file'.size=1000B";
        let connection = format!("program.1.env.CONNECTION={connection}");
        let programs = points("web.toml", &[&line[..], &[size, &connection]].concat());
        let way = format!("workload.way={way}");
        let pages = points("web-model.toml", &[&line[..], &["workload.size=1000B", &way]].concat());
        for (program, page) in programs.iter().zip(&pages) {
            is_near(number(program, "/mean_ms"), number(page, "/mean_ms"), 10.0);
        }
    }
}

/// Two programs that support only TCP deliver messages as fast as the workload `oneway`.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), python3 and mkfs.erofs (erofs-utils)"]
fn program_messages_are_as_fast_as_workload_oneway() {
    let (programs, workloads) = (points("messages.toml", &[]), points("messages-model.toml", &[]));
    assert_eq!(programs.len(), 6);
    for (program, workload) in programs.iter().zip(&workloads) {
        is_near(number(program, "/metrics/rate/mean"), number(workload, "/throughput_kbps"), 3.0);
    }
}

/// If two messages do not fit into the send buffer together, the second waits until the first is completely
/// acknowledged. Of 128 KiB the last chunk is in flight alone, and waits for a delayed SACK; messages larger than the
/// receive buffer are delivered in parts, at slightly different times.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn large_sctp_messages_wait_for_one_another_as_in_linux() {
    let in_world = |world: &str| points("iperf-model.toml", &["transports=[\"sctp\"]", world]);
    let (model, linux) = (in_world("world=model"), in_world("world=kernel:uml"));
    for ((model, linux), percent) in model.iter().zip(&linux).zip([5.0, 0.5, 0.5]) {
        is_near(number(model, "/throughput_kbps"), number(linux, "/throughput_kbps"), percent);
    }
}

/// smbclient looks up a file before it removes it, and negotiates with its server; the workload does neither.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build), samba, smbclient and mkfs.erofs (erofs-utils)"]
fn smbclient_takes_as_long_as_workload_files_plus_round_trips() {
    let dialect = "program.1.env.DIALECT=NT1";
    let programs =
        points("samba.toml", &[dialect, "program.1.env.FILES=\"100\"", "program.1.env.SIZE=\"100\""]);
    let batches = points("samba-model.toml", &["workload.files=100", "workload.size=100B"]);
    for (program, batch) in programs.iter().zip(&batches) {
        // smbclient sends a FIND_FIRST2 for each file, one request to negotiate, two for the session, and five for
        // trees: 11 to 14 ms each over this link.
        let (program, batch) = (number(program, "/mean_ms"), number(batch, "/mean_ms"));
        let round_trip = (program - batch) / 108.0;
        assert!((11.0..14.0).contains(&round_trip), "{program} beside {batch}: {round_trip} ms each");
    }
}

mod nightly {
    use super::*;

    /// iperf sends as much as the workload, also over SCTP.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn iperf_has_the_throughput_of_workload_bulk() {
        for octets in [131_072, 8000] {
            let programs = points("iperf.toml", &[&format!("program.1.env.WRITE=\"{octets}\"")]);
            let messages = format!("messages={}", 12_500_000 / octets);
            let size = format!("workload.size={octets}B");
            let bulks = points("iperf-model.toml", &[&size, &messages]);
            for (program, bulk) in programs.iter().zip(&bulks) {
                is_near(number(program, "/metrics/rate/mean"), number(bulk, "/throughput_kbps"), 5.0);
            }
        }
    }

    /// FreeBSD's SCTP has the same goodput as the model's; with a loss of 1 %, as precisely as five runs can tell.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn usrsctp_has_the_throughput_of_workload_bulk() {
        for (loss, percent) in [("0%", 1.0), ("1%", 20.0)] {
            let loss = format!("network.loss={loss}");
            let programs = points("usrsctp.toml", &[&loss, "repetitions=5"]);
            let bulks = points("usrsctp-model.toml", &[&loss, "repetitions=5", "messages=42500"]);
            let rate = 8.0 * number(&programs[0], "/metrics/rate/mean") / 1000.0;
            is_near(rate, number(&bulks[0], "/throughput_kbps"), percent);
        }
    }

    /// A document, then twelve images one after the other, in Chromium; two runs have the same packets.
    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn chromium_takes_as_long_as_workload_page_and_is_repeatable() {
        let keys = ["repetitions=1", "network.loss=0%", "program.1.env.PAGE=http://server/serial"];
        let [first, again] = [(); 2].map(|()| points("browser.toml", &keys));
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("page.toml"), include_str!("programs/page.toml")).unwrap();
        let page = ok(directory.path(), &["run", "page.toml", "--json"]);
        let page: Vec<Value> = page.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        is_near(number(&first[0], "/metrics/page/mean"), number(&page[0], "/mean_ms"), 5.0);
        assert_eq!(first[0]["digest"], again[0]["digest"]);
    }
}
