//! `hol path learn`: derives the known network from a capture of a run, and from incomplete captures what they contain.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{failure, ok};

/// Captures one run.
fn capture(dir: &Path, arguments: &[&str]) {
    let flags = ["--repetitions", "1", "--pcap", "run.pcapng"];
    ok(dir, &[&["trace"][..], arguments, &flags].concat());
}

/// Returns the network derived from the packets at an interface.
fn learn(dir: &Path, interface: &str) -> (String, toml::Table) {
    let text = ok(dir, &["path", "learn", "run.pcapng", "--interface", interface]);
    let table: toml::Table = text.parse().expect("a table of an experiment");
    (text, table["network"].as_table().unwrap().clone())
}

/// Returns the number of a value such as "10Mbit" in its base unit.
fn number(value: &toml::Value) -> f64 {
    let text = value.as_str().unwrap();
    let (digits, unit) = text.split_at(text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap());
    let scale = [("Mbit", 1e6), ("kbit", 1e3), ("ms", 1e-3), ("us", 1e-6)];
    let scale = scale.iter().find(|(name, _)| *name == unit).map_or(1.0, |(_, scale)| *scale);
    digits.parse::<f64>().unwrap() * scale
}

/// Returns the ends of the interval in the comment before a key, in the unit of its first number.
fn interval(text: &str, table: &str, key: &str) -> (f64, f64) {
    let section = text.split(&format!("[{table}]")).nth(1).unwrap();
    let lines: Vec<&str> = section.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with(&format!("{key} =")))
        .unwrap_or_else(|| panic!("{key}: {text}"));
    let comment = lines[..at].iter().rev().find(|line| line.contains(" to ") || line.contains("At most"));
    let comment = comment.unwrap().trim_start_matches("# Bursts: one begins after ");
    let numbers: Vec<f64> = comment
        .split([' ', '%', ':'])
        .filter_map(|word| word.trim_end_matches(|c: char| c.is_alphabetic()).parse().ok())
        .collect();
    if comment.contains("At most") { (0.0, numbers[0]) } else { (numbers[0], numbers[1]) }
}

fn is_within(text: &str, table: &str, key: &str, truth: f64) {
    let (low, high) = interval(text, table, key);
    assert!(low <= truth && truth <= high, "{table}.{key}: {truth} is not in {low} to {high}\n{text}");
}

#[test]
fn capture_of_a_transfer_gives_rate_delay_loss_and_mtu() {
    let dir = tempfile::tempdir().unwrap();
    // A run whose handshakes are not lost, because SCTP's server measures no other round-trip time.
    let network = ["--bandwidth", "10Mbit", "--delay", "30ms", "--loss", "1%", "--seed", "3"];
    for transport in ["tcp", "sctp"] {
        capture(dir.path(), &[&[transport, "--workload", "bulk", "--count", "1500"][..], &network].concat());
        for interface in ["client:1", "server:1"] {
            let (text, network) = learn(dir.path(), interface);
            is_within(&text, "network", "delay", 30.0);
            assert!((number(&network["delay"]) - 0.030).abs() < 0.0003, "{text}");
            is_within(&text, "network.up", "loss", 1.0);
            let up = network["up"].as_table().unwrap();
            assert!(!up.contains_key("reorder"), "{text}");
            assert_eq!(network["mtu"].as_str(), Some("1500B"), "{text}");
            // At the receiver, only TCP timestamps show which packets waited, and with losses only few of them do.
            let may_be_unseen = transport == "sctp" || interface == "server:1";
            match up.get("rate") {
                Some(rate) => assert!((number(rate) / 10e6 - 1.0).abs() < 0.005, "{text}"),
                None => assert!(may_be_unseen && text.contains("rate: at least 10Mbit"), "{text}"),
            }
            assert!(text.contains("only acknowledgements were sent in this direction"), "{text}");
        }
    }
}

#[test]
fn capture_of_messages_gives_jitter_and_both_loss_rates() {
    let dir = tempfile::tempdir().unwrap();
    let set = ["--set", "network.jitter=5ms", "--set", "network.down.loss=4%"];
    let network = ["--bandwidth", "10Mbit", "--delay", "20ms", "--loss", "2%", "--count", "4000"];
    capture(dir.path(), &[&["tcp", "--workload", "simco"][..], &network, &set].concat());
    for interface in ["client:1", "server:1"] {
        let (text, _) = learn(dir.path(), interface);
        is_within(&text, "network.up", "loss", 2.0);
        is_within(&text, "network.down", "loss", 4.0);
        is_within(&text, "network", "jitter", 5.0);
        is_within(&text, "network", "delay", 20.0);
        assert!(text.contains("# rate: at least"), "an application that sends evenly is no line: {text}");
    }
}

#[test]
fn bursts_and_reordering_are_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let bulk = [
        "sctp",
        "--workload",
        "bulk",
        "--count",
        "2500",
        "--bandwidth",
        "10Mbit",
        "--delay",
        "20ms",
        "--set",
    ];
    capture(dir.path(), &[&bulk[..], &["network.loss={good_to_bad='0.5%',bad_to_good='30%'}"]].concat());
    for interface in ["client:1", "server:1"] {
        let (text, network) = learn(dir.path(), interface);
        is_within(&text, "network.up", "loss", 0.5);
        assert!(network["up"]["loss"].get("bad_to_good").is_some(), "{text}");
    }
    let reordering = ["network.reorder=1%", "--set", "network.reorder_by=4ms"];
    capture(dir.path(), &[&["tcp"], &bulk[1..], &reordering].concat());
    for interface in ["client:1", "server:1"] {
        let (text, network) = learn(dir.path(), interface);
        is_within(&text, "network.up", "reorder", 1.0);
        assert!((number(&network["up"]["reorder_by"]) - 0.004).abs() < 0.001, "{text}");
        assert_eq!(network["up"]["loss"].as_str(), Some("0%"), "{text}");
        assert!((number(&network["up"]["rate"]) / 10e6 - 1.0).abs() < 0.02, "{text}");
    }
}

#[test]
fn learnt_network_is_valid_in_an_experiment() {
    let dir = tempfile::tempdir().unwrap();
    capture(
        dir.path(),
        &["tcp", "--workload", "bulk", "--count", "500", "--bandwidth", "10Mbit", "--loss", "1%"],
    );
    let (text, _) = learn(dir.path(), "client:1");
    let experiment = format!("transports = ['tcp']\nmessages = 20\nrepetitions = 1\n{text}");
    fs::write(dir.path().join("learnt.toml"), experiment).unwrap();
    ok(dir.path(), &["run", "learnt.toml"]);
}

#[test]
fn incomplete_captures_give_partial_results_or_an_error() {
    let dir = tempfile::tempdir().unwrap();
    capture(
        dir.path(),
        &["tcp", "--workload", "bulk", "--count", "300", "--bandwidth", "10Mbit", "--loss", "1%"],
    );
    let whole = fs::read(dir.path().join("run.pcapng")).unwrap();
    let write = |octets: &[u8]| fs::write(dir.path().join("bad.pcapng"), octets).unwrap();
    let learn = ["path", "learn", "bad.pcapng"];

    write(&whole[..whole.len() / 2 + 1]);
    let text = ok(dir.path(), &learn);
    assert!(text.contains("is truncated at octet") && text.contains("\ndelay = "), "{text}");

    for (octets, words) in [
        (&b""[..], "bad.pcapng: is empty"),
        (b"[network]\n", "is not a capture"),
        (&whole[..100], "no IP packet"),
    ] {
        write(octets);
        let (code, message) = failure(dir.path(), &learn);
        assert!(code == 1 && message.contains(words), "{words}: {message}");
    }
    let (code, message) = failure(dir.path(), &["path", "learn", "run.pcapng", "--host", "192.0.2.1"]);
    assert!(code == 2 && message.contains("contains no packets from or to this host"), "{message}");
    let (code, message) = failure(dir.path(), &["path", "learn", "run.pcapng", "--interface", "eth0"]);
    assert!(code == 1 && message.contains("client:1, server:1"), "{message}");
}

#[test]
fn compressed_captures_are_read_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    capture(dir.path(), &["tcp", "--workload", "bulk", "--count", "300", "--bandwidth", "10Mbit"]);
    let plain = ok(dir.path(), &["path", "learn", "run.pcapng"]);
    let settings =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    for (program, name, problem) in [
        ("gzip", "run.gz", "the compressed file ends too early; copy or download it again"),
        ("xz", "run.xz", "xz: "),
    ] {
        let output =
            Command::new(program).args(["-c", "run.pcapng"]).current_dir(dir.path()).output().unwrap();
        fs::write(dir.path().join(name), &output.stdout).unwrap();
        assert_eq!(settings(&ok(dir.path(), &["path", "learn", name])), settings(&plain));
        ok(dir.path(), &["replay", name, &format!("{name}.toml")]);

        fs::write(dir.path().join("cut"), &output.stdout[..output.stdout.len() / 2]).unwrap();
        let (code, message) = failure(dir.path(), &["path", "learn", "cut"]);
        assert!(code == 1 && message.contains(problem), "{message}");
    }
}

#[test]
fn files_of_other_tools_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("up.json"), "{\"start\": {\"test_start\": {}}, \"intervals\": []}").unwrap();
    for command in [&["run", "up.json"][..], &["path", "learn", "up.json"]] {
        let (_, message) = failure(dir.path(), command);
        assert!(message.contains("up.json: is a result of iperf3; "), "{message}");
    }
    capture(dir.path(), &["tcp", "--count", "3"]);
    let (_, message) = failure(dir.path(), &["run", "run.pcapng"]);
    assert!(message.contains("is a capture of packets; `hol path learn FILE`"), "{message}");
}

/// A classic capture of an unsupported link type, and one of only one direction.
#[test]
fn unsupported_link_types_and_missing_directions_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let header = |link: u32| [0xa1b2_c3d4_u32, 0, 0, 0, 0, link].map(u32::to_le_bytes).concat();
    let record = |ms: u32, octets: &[u8]| {
        let fields = [0, ms * 1000, octets.len() as u32, octets.len() as u32].map(u32::to_le_bytes).concat();
        [&fields[..], octets].concat()
    };
    let segment = |k: u32| {
        let mut octets =
            vec![0x45, 0, 0, 140, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x9c, 0x40, 0, 80];
        octets.extend((1000 + 100 * k).to_be_bytes());
        octets.extend([0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        octets.resize(140, 0);
        octets
    };
    let packets: Vec<u8> = (0..100).flat_map(|k| record(k, &segment(k))).collect();
    fs::write(dir.path().join("usb.pcap"), [header(189), packets.clone()].concat()).unwrap();
    let (code, message) = failure(dir.path(), &["path", "learn", "usb.pcap"]);
    assert!(code == 1 && message.contains("link type 189 (USB)"), "{message}");

    fs::write(dir.path().join("half.pcap"), [header(101), packets].concat()).unwrap();
    let text = ok(dir.path(), &["path", "learn", "half.pcap"]);
    for words in [
        "it covers only that direction",
        "delay: unknown",
        "0 of 100 packets",
        "rate: at least",
        "began before",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn ipv6_path_is_learnt_with_its_ip_version() {
    let dir = tempfile::tempdir().unwrap();
    let trace = [
        "trace",
        "tcp",
        "--set",
        "network.ip=v6",
        "--workload",
        "echo",
        "--size",
        "9kB",
        "--pcap",
        "a.pcapng",
    ];
    ok(dir.path(), &trace);
    let learnt = ok(dir.path(), &["path", "learn", "a.pcapng"]);
    assert!(learnt.contains("[network]\nip = \"v6\"\n"), "{learnt}");
    assert!(learnt.contains("mtu = \"1500B\""), "{learnt}");
}
