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

/// The longest packet is shorter than QUIC's smallest, so the network has an MTU at which no run accepts QUIC.
#[test]
fn transport_that_the_network_does_not_carry_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let run = ["--workload", "echo", "--count", "20", "--repetitions", "1", "--pcap", "run.pcapng"];
    ok(dir.path(), &[&["trace", "tcp:mss=88"][..], &run].concat());
    ok(dir.path(), &["replay", "run.pcapng", "mine.toml"]);
    let text = fs::read_to_string(dir.path().join("mine.toml")).unwrap();
    assert!(text.contains("# Note: quic is left out: ") && text.contains("mtu = \"576B\""), "{text}");
    let rows = ok(dir.path(), &["run", "mine.toml", "--json"]);
    assert!(rows.matches("\"failed\":0").count() == 2, "{rows}");
}

/// Datagrams, after which the sender is silent for 60 days.
#[test]
fn silences_longer_than_an_idle_timeout_are_shortened() {
    let dir = tempfile::tempdir().unwrap();
    let mut capture = [0xa1b2_c3d4_u32, 0, 0, 65_535, 0, 101].map(u32::to_le_bytes).concat();
    let datagram = [
        &[
            0x45, 0, 0, 128, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0, 80, 0,
            108, 0, 0,
        ][..],
        &[0; 100],
    ]
    .concat();
    let month = 30 * 24 * 3600;
    for second in [0, 1, 19, 19 + 2 * month, 20 + 2 * month, 50 + 2 * month] {
        capture.extend([second, 0, 128, 128].map(u32::to_le_bytes).concat());
        capture.extend(&datagram);
    }
    fs::write(dir.path().join("a.pcap"), capture).unwrap();
    ok(dir.path(), &["replay", "a.pcap", "mine.toml"]);
    let text = fs::read_to_string(dir.path().join("mine.toml")).unwrap();
    assert!(text.contains("# Note: shortened 2 silences of more than 20s between messages to 20s"), "{text}");
    let times: Vec<f64> = exchanges(&text).iter().map(|exchange| at(exchange) / 1000.0).collect();
    assert_eq!(times, [0.0, 1.0, 19.0, 39.0, 40.0, 60.0]);
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
