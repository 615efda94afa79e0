//! `hol replay`: converts a capture to an experiment whose messages have the same sizes and times, over any transport.

use std::fs;

use crate::program::{failure, ok};

/// Returns the exchanges of an experiment as text.
fn exchanges(text: &str) -> Vec<String> {
    let table: toml::Table = text.parse().expect("an experiment");
    let list = table["workload"]["exchanges"].as_array().unwrap();
    list.iter().map(|exchange| exchange.as_str().unwrap().to_owned()).collect()
}

/// Returns the time of an exchange, in ms.
fn at(exchange: &str) -> f64 {
    let at: hol_base::Duration = exchange.split(' ').next().unwrap().parse().unwrap();
    at.as_millis_f64()
}

#[test]
fn replay_recovers_messages_from_a_capture_at_either_end() {
    let dir = tempfile::tempdir().unwrap();
    for transport in ["tcp", "sctp:streams=4", "udp"] {
        let run =
            ["--workload", "echo", "--size", "300B", "--rate", "50/s", "--count", "40", "--delay", "15ms"];
        let flags = ["--repetitions", "1", "--pcap", "run.pcapng"];
        ok(dir.path(), &[&["trace", transport][..], &run, &flags].concat());
        for interface in ["client:1", "server:1"] {
            let text = ok(dir.path(), &["replay", "run.pcapng", "--interface", interface]);
            let exchanges = exchanges(&text);
            assert_eq!(exchanges.len(), 40, "{transport} at {interface}: {text}");
            for (number, exchange) in exchanges.iter().enumerate() {
                assert!(exchange.ends_with(" 300B 300B"), "{transport} at {interface}: {exchange}");
                // A message that waits for the one before may be a little late.
                assert!(
                    (at(exchange) - 20.0 * number as f64).abs() < 1.0,
                    "{transport} at {interface}: {exchange}"
                );
            }
        }
    }
}

#[test]
fn replayed_capture_runs_over_every_transport() {
    let dir = tempfile::tempdir().unwrap();
    let run = [
        "--workload",
        "simco",
        "--count",
        "60",
        "--loss",
        "3%",
        "--repetitions",
        "1",
        "--pcap",
        "run.pcapng",
    ];
    ok(dir.path(), &[&["trace", "tcp"][..], &run].concat());
    ok(dir.path(), &["replay", "run.pcapng", "mine.toml"]);
    let text = fs::read_to_string(dir.path().join("mine.toml")).unwrap();
    assert!(text.contains("[network.up]") && exchanges(&text).len() > 50, "{text}");
    let rows =
        ok(dir.path(), &["run", "mine.toml", "--json", "--set", "repetitions=2", "--set", "messages=120"]);
    let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row["completed"] == 120 || row["failed"] == 0), "{rows:?}");
    let (code, message) = failure(dir.path(), &["replay", "run.pcapng", "mine.toml"]);
    assert!(code == 2 && message.contains("already exists"), "{message}");
}

#[test]
fn replayed_messages_fit_into_the_send_buffer_of_sctp() {
    let dir = tempfile::tempdir().unwrap();
    let run =
        ["--workload", "oneway", "--size", "300kB", "--rate", "2/s", "--count", "4", "--repetitions", "1"];
    ok(dir.path(), &[&["trace", "sctp:send_buffer=1MB", "--pcap", "run.pcapng"][..], &run].concat());
    ok(dir.path(), &["replay", "run.pcapng", "mine.toml"]);
    let text = fs::read_to_string(dir.path().join("mine.toml")).unwrap();
    assert!(text.contains("\"sctp:streams=8,send_buffer=600kB\""), "{text}");
    let rows = ok(dir.path(), &["run", "mine.toml", "--json"]);
    assert_eq!(rows.matches("\"failed\":0").count(), 3, "{rows}");
}

#[test]
fn captures_without_messages_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("empty.pcap"), b"").unwrap();
    let (code, message) = failure(dir.path(), &["replay", "empty.pcap"]);
    assert!(code == 1 && message.contains("empty.pcap: is empty"), "{message}");
    let (code, message) = failure(dir.path(), &["replay", "none.pcap"]);
    assert!(code == 1 && message.contains("cannot read"), "{message}");
}
