//! The live world between two hosts, from the command line. Times are not checked, because they depend on the machine.

mod hosts;
#[path = "../../../../sockets/tests/pair/mod.rs"]
mod pair;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hol_base::Duration;
use hol_lab::{Results, SampledObject, Series};
use serde_json::Value;

use hosts::{Hosts, PEER};

/// Options for a comparison that takes a second or two.
const FEW: [&str; 9] =
    ["--world", "live", "--workload", "echo", "--count", "400", "--rate", "1000/s", "--json"];

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn runs(dir: &Path) -> Vec<Value> {
    lines(&fs::read_to_string(dir.join("runs.jsonl")).unwrap())
}

#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn every_common_transport_of_two_hosts_answers_every_message() {
    let hosts = Hosts::new();
    let serving = hosts.serve(&["--once", "--ports", "7641"]);
    assert!(serving.greeting.contains("0.0.0.0:7640"), "{}", serving.greeting);
    let mut transports = vec!["compare", "tcp", "tcp:connections=3", "udp", "quic", "quic:connections=2"];
    if Path::new("/proc/sys/net/mptcp/enabled").exists() {
        transports.push("mptcp");
    }
    let rows = lines(&hosts.ok(&[&transports[..], &FEW, &["--repetitions", "2"]].concat()));
    assert_eq!(rows.len(), transports.len() - 1);
    for row in &rows {
        assert_eq!((&row["completed"], &row["failed"]), (&400.into(), &0.into()), "{row}");
        assert_eq!(row["world"], format!("live:{PEER}"));
    }
    let (ended_well, said) = serving.output();
    assert!(ended_well && said.contains("--peer THIS-HOST") && said.contains("finished"), "{said}");
}

/// A workload without replies, a competing one, and one in the reverse direction; the results name the hosts.
#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn flows_of_both_directions_are_joined_with_hosts_and_clocks() {
    let hosts = Hosts::new();
    let _serving = hosts.serve(&[]);
    let text = "transports = ['tcp', 'quic', 'udp']\nmessages = 300\nrepetitions = 1\n\
        [workload]\nkind = 'oneway'\nrate = '1000/s'\n\
        [[background]]\ntransport = 'tcp'\nspread = '0s'\nworkload = { kind = 'oneway', rate = '100/s', from = 'server', to = 'client' }\n\
        [[background]]\ntransport = 'udp'\nmessages = 20\nworkload = { kind = 'echo', rate = '100/s' }\n";
    fs::write(hosts.dir().join("x.toml"), text).unwrap();
    hosts.ok(&["run", "x.toml", "--world", "live", "--out", "out", "--records"]);
    let runs = runs(&hosts.dir().join("out"));
    assert_eq!(runs.len(), 3);
    for run in &runs {
        let text = run.to_string();
        let world_report = &run["facts"];
        assert_eq!(world_report["peer"]["address"], PEER, "{text}");
        assert_eq!(world_report["peer"]["from"], "10.77.0.1");
        assert_eq!(world_report["kernel"], world_report["peer"]["kernel"]);
        // Both hosts have one clock here, so the clocks have the same speed.
        let time = |key: &str| {
            let time: Duration = serde_json::from_value(world_report["peer"][key].clone()).unwrap();
            time.as_nanos()
        };
        let (offset, uncertainty) = (world_report["peer"]["offset"].as_i64().unwrap(), time("uncertainty"));
        assert!(offset.unsigned_abs() <= uncertainty && uncertainty > 0, "{text}");
        assert!(time("round_trip") <= 2 * uncertainty, "{text}");
        let provenance = world_report["provenance"].as_str().unwrap();
        assert!(run["background"][0]["octets"].as_u64().unwrap() > 0, "{text}");
        assert!(provenance.contains(&format!("from 10.77.0.1 to {PEER}: Linux ")), "{provenance}");
    }
    // Datagrams of QUIC have no timestamps, and a busy kernel may begin late to timestamp the others.
    let waited = runs.iter().filter_map(|run| run["facts"]["waited_ns"]["server"]["messages"].as_u64());
    assert!((1..=2).contains(&waited.filter(|messages| *messages > 0).count()), "{runs:?}");
    let points = fs::read_to_string(hosts.dir().join("out/points.csv")).unwrap();
    assert_eq!(points.lines().count(), 4, "{points}");
    // The same experiment on this machine alone is a different question.
    let manifest = fs::read_to_string(hosts.dir().join("out/manifest.json")).unwrap();
    assert!(manifest.contains(&format!("\"live:{PEER}\"")), "{manifest}");
}

/// The peer also samples its senders, and all samples have the same clock.
#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn time_series_have_the_senders_of_both_hosts() {
    let hosts = Hosts::new();
    let _serving = hosts.serve(&[]);
    let text = "transports = ['tcp', 'quic']\nmessages = 300\nrepetitions = 1\nseries = '5ms'\n\
        [workload]\nkind = 'echo'\nrate = '1000/s'\n";
    fs::write(hosts.dir().join("x.toml"), text).unwrap();
    hosts.ok(&["run", "x.toml", "--world", "live", "--out", "out"]);
    let out = hosts.dir().join("out");
    for result in Results::load(&out).unwrap().points {
        let (mut times, mut sides) = (Vec::new(), BTreeSet::new());
        let series = Series::open(&out, result.runs[0].key).unwrap().expect("it is kept");
        let note = |row: hol_lab::Row| {
            if let SampledObject::Sender { side, .. } = row.subject {
                sides.insert(side);
                times.push(row.at);
            }
        };
        series.for_each_row(note).unwrap();
        assert_eq!(sides.len(), 2, "{}", result.point.label);
        assert!(times.is_sorted(), "{}", result.point.label);
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn dead_peer_ends_the_run_and_a_new_peer_continues() {
    let hosts = Hosts::new();
    let long =
        ["compare", "tcp", "--world", "live", "--workload", "echo", "--count", "60000", "--rate", "500/s"];
    let mut serving = hosts.serve(&[]);
    let client = hosts.begin(&long);
    serving.wait_for_problem("connected");
    hosts.wait_for_run();
    serving.kill();
    let output = client.wait_with_output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains(PEER) && complaint.contains("closed the control channel"), "{complaint}");

    // The client dies: nothing of it remains on the other host, which serves the next client.
    let mut serving = hosts.serve(&[]);
    let mut client = hosts.begin(&long);
    serving.wait_for_problem("connected");
    hosts.wait_for_run();
    client.kill().unwrap();
    client.wait().unwrap();
    serving.wait_for_problem("finished");
    assert_eq!(hosts.open_sockets(), [] as [String; 0]);
    hosts.ok(&[&["compare", "tcp"], &FEW[..], &["--repetitions", "1"]].concat());
}

#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn wrong_secret_and_absent_server_are_errors_with_a_remedy() {
    let hosts = Hosts::new();
    let ask = [&["compare", "tcp"], &FEW[..], &["--repetitions", "1"]].concat();
    let refused = |words: &[&str]| {
        let output = hosts.ask(&ask);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_ne!(output.status.code(), Some(0), "{complaint}");
        assert!(words.iter().all(|word| complaint.contains(word)), "{words:?}: {complaint}");
    };
    refused(&[PEER, "no program listens on port 7640", "hol live serve"]);
    let mut serving = hosts.serve(&[]);
    fs::write(hosts.dir().join("secret"), "another\n").unwrap();
    refused(&[PEER, "secrets of the two hosts differ", "--secret-file"]);
    serving.wait_for_problem("secrets of the two hosts differ");
    fs::write(hosts.dir().join("secret"), "\n").unwrap();
    refused(&["secret is empty"]);
    fs::write(hosts.dir().join("secret"), "only these two know").unwrap();
    hosts.ok(&ask);
    hosts.cut();
    refused(&[PEER]);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn broken_path_ends_both_hosts() {
    let hosts = Hosts::new();
    let mut serving = hosts.serve(&[]);
    let ask =
        ["compare", "udp", "--world", "live", "--workload", "echo", "--count", "60000", "--rate", "500/s"];
    let client = hosts.begin(&ask);
    serving.wait_for_problem("connected");
    hosts.wait_for_run();
    hosts.cut();
    let output = client.wait_with_output().unwrap();
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && complaint.contains("the other host sent no message for 10 s"),
        "{complaint}"
    );
    serving.wait_for_problem("the other host sent no message for 10 s");
    assert_eq!(hosts.open_sockets(), [] as [String; 0]);
}
