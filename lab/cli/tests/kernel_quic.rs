//! QUIC in the kernel world: quinn with TLS over UDP of User-Mode Linux, and of QEMU where it says so. Without a kernel the tests say so
//! and pass, unless `HOL_REQUIRE_UML` or `HOL_REQUIRE_KERNEL` is set.

mod hol;
#[path = "hol/kernel.rs"]
mod kernel;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use hol::{BIN, failure, ok};
use kernel::{has_user_mode, kernels};

/// Runs `experiment` in a world; each point by what tells it from others, with its columns by name.
fn points(experiment: &str, world: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("quic.toml"), experiment).unwrap();
    ok(dir.path(), &["run", "quic.toml", "--out", "out", "--world", world]);
    let text = fs::read_to_string(dir.path().join("out/points.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<String>>());
    let names = lines.next().unwrap();
    let point = |values: Vec<String>| {
        let columns: BTreeMap<String, String> = names.iter().cloned().zip(values).collect();
        let loss = columns.get("network.loss").cloned().unwrap_or_default();
        (format!("{} {loss}", columns["transport"]), columns)
    };
    lines.map(point).collect()
}

fn number(columns: &BTreeMap<String, String>, name: &str) -> f64 {
    columns[name].parse().unwrap()
}

/// docs/quic.md has more points, with the reasons of what is left.
#[test]
fn quinn_in_the_guest_takes_as_long_as_in_the_model() {
    if !has_user_mode("quinn_in_the_guest_takes_as_long_as_in_the_model") {
        return;
    }
    let experiment = "
        transports = ['quic', 'quic:streams=8']
        messages = 20000
        repetitions = 10
        network = { delay = '5ms', rate = '100Mbit' }
        workload = { kind = 'echo', rate = '100/s' }
        sweep = { 'network.loss' = ['0%', '1%', '3%'] }
    ";
    let [model, guest] = ["model", "kernel:uml"].map(|world| points(experiment, world));
    assert_eq!(model.len(), 6);
    for (name, model) in &model {
        let guest = &guest[name];
        assert_eq!(number(guest, "completed"), 20_000.0, "{name}");
        let [model, guest] = [model, guest].map(|point| number(point, "mean_ms"));
        assert!((guest / model - 1.0).abs() < 0.03, "{name}: {guest} ms in the guest, {model} in the model");
    }
}

/// RFC 9000 section 13.4, RFC 3168: the bits go and come on sockets, and quinn heeds what comes back.
#[test]
fn as_many_packets_are_marked_as_in_the_model() {
    if !has_user_mode("as_many_packets_are_marked_as_in_the_model") {
        return;
    }
    let marked = |transport: &str, world: &str| {
        let load = ["--workload=bulk", "--size=1400B", "--count=6000", "--repetitions=1", "--loss=0%"];
        let path =
            ["--bandwidth=10Mbit", "--delay=5ms", "--set=network.discipline={ codel = { ecn = true } }"];
        let run = ["trace", transport, "--world", world, "--at", "server"];
        let text = ok(Path::new("."), &[&run[..], &load, &path].concat());
        let received = |line: &&str| line.split_whitespace().nth(2) == Some("received");
        text.lines().filter(received).filter(|line| line.ends_with("(CE)")).count()
    };
    let [model, guest] = ["model", "kernel:uml"].map(|world| marked("quic:ecn=true", world));
    assert!(
        10 * model.abs_diff(guest) <= guest.max(10) && guest > 0,
        "{guest} marks in the guest, {model} in the model"
    );
    assert_eq!(marked("quic", "kernel:uml"), 0);
}

/// RFC 9000 section 8.1. The certificate is as long as the option wants the flight, so that both worlds have it.
#[test]
fn a_long_handshake_flight_costs_a_round_trip_in_the_guest_too() {
    if !has_user_mode("a_long_handshake_flight_costs_a_round_trip_in_the_guest_too") {
        return;
    }
    let experiment = "
        transports = ['quic:handshake_flight=600B', 'quic', 'quic:handshake_flight=4500B']
        messages = 20
        repetitions = 1
        network = { delay = '20ms', rate = '100Mbit' }
        workload = { kind = 'echo', rate = '100/s' }
    ";
    let [model, guest] = ["model", "kernel:uml"].map(|world| points(experiment, world));
    let connect = |points: &BTreeMap<String, BTreeMap<String, String>>| {
        points.values().map(|point| number(point, "connect_ms").round()).collect::<Vec<f64>>()
    };
    assert_eq!(connect(&guest), connect(&model));
    let round_trips = |points: &str| number(&guest[points], "connect_ms") / 40.0;
    assert_eq!(round_trips("quic ").floor(), 1.0);
    assert_eq!(round_trips("quic:handshake_flight=4500B ").floor(), 2.0);
}

fn capture(world: &str, path: &Path) -> Vec<u8> {
    let text = path.to_str().unwrap();
    let run = ["trace", "quic:streams=4", "--loss", "3%", "--count", "300", "--repetitions", "1"];
    ok(Path::new("."), &[&run[..], &["--world", world, "--pcap", text]].concat());
    fs::read(path).unwrap()
}

/// Keys, signatures and packet numbers that are skipped are of the run's seed, whose guest has no other chance.
#[test]
fn the_same_seed_gives_the_same_packets() {
    let dir = tempfile::tempdir().unwrap();
    let repeats = |world| {
        let [first, second] = ["first", "second"].map(|name| capture(world, &dir.path().join(name)));
        assert!(first == second, "{world}: captures of the same run differ");
    };
    if has_user_mode("the_same_seed_gives_the_same_packets") {
        repeats("kernel:uml");
    }
    if kernels("the_same_seed_gives_the_same_packets").is_some() {
        repeats("kernel");
    }
}

/// One end at a time: Wireshark, which sees a packet at both ends of a line, loses track when keys are updated.
#[test]
fn what_an_end_captured_is_decrypted_with_the_key_log_in_it() {
    if !has_user_mode("what_an_end_captured_is_decrypted_with_the_key_log_in_it") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [all, one] = ["all", "one"].map(|name| dir.path().join(name));
    capture("kernel:uml", &all);
    let tshark = |from: &Path, arguments: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(from).args(arguments).output();
        let Ok(output) = output else {
            eprintln!("SKIPPED, for there is no tshark");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    };
    for end in ["client:1", "server:1"] {
        let own = format!("frame.interface_name == \"{end}\"");
        if tshark(&all, &["-Y", &own, "-w", one.to_str().unwrap()]).is_none() {
            return;
        }
        let fields = ["-T", "fields", "-e", "quic.frame_type", "-e", "quic.decryption_failed"];
        let seen = tshark(&one, &fields).unwrap();
        assert!(seen.lines().count() > 500, "{end}: {} packets", seen.lines().count());
        let sealed = seen.lines().filter(|line| line.split('\t').next() == Some("")).count();
        assert_eq!(sealed, 0, "{end}: packets whose frames nobody sees, of {}", seen.lines().count());
        assert!(!seen.contains("decryption"), "{end}");
    }
}

#[test]
fn what_the_kernel_world_cannot_have_is_refused_by_its_name() {
    if !has_user_mode("what_the_kernel_world_cannot_have_is_refused_by_its_name") {
        return;
    }
    let paths = "network.paths=[{}, {}]";
    let moves = "network.handover={at = '1s', overlap = 1, attach = '100ms'}";
    for (transport, settings, words) in [
        ("quic:wakeup=1ms", &[][..], "wakeup=1ms"),
        ("quic:handshake_flight=300B", &[], "600 octets at least"),
        ("quic", &["network.mtu=1000B"], "MTU of 1228 octets at least"),
        ("quic:datagrams", &["workload.size=1300B"], "DATAGRAM frame"),
        ("quic", &[paths, moves], "network.handover"),
    ] {
        let sets = settings.iter().flat_map(|setting| ["--set", setting]);
        let run = ["trace", transport, "--workload", "echo", "--world", "kernel:uml"];
        let arguments: Vec<&str> = run.into_iter().chain(sets).collect();
        let (code, message) = failure(Path::new("."), &arguments);
        assert!(code == 2 && message.contains(words), "{transport} {settings:?}: {message}");
    }
}
