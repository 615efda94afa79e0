//! QUIC in the kernel world: quinn with TLS over UDP of Linux.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::points::{Columns, rows};
use crate::program::{failure, ok};

/// Returns each point by transport and loss, with its columns by name.
fn points(experiment: &str, world: &str) -> BTreeMap<String, Columns> {
    let point = |columns: Columns| {
        let loss = columns.get("network.loss").cloned().unwrap_or_default();
        (format!("{} {loss}", columns["transport"]), columns)
    };
    rows(experiment, world).into_iter().map(point).collect()
}

fn number(columns: &Columns, name: &str) -> f64 {
    columns[name].parse().unwrap()
}

/// RFC 9000 section 13.4, RFC 3168: sockets send and receive the ECN bits, and quinn reacts to the feedback.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn as_many_packets_are_marked_as_in_the_model() {
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

/// RFC 9000 section 8.1. The certificate is as long as the option requires, so that both worlds have the same flight.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn long_handshake_flight_costs_a_round_trip_in_the_guest_too() {
    let experiment = "
        transports = ['quic:handshake_flight=600B', 'quic', 'quic:handshake_flight=4500B']
        messages = 20
        repetitions = 1
        network = { delay = '20ms', rate = '100Mbit' }
        workload = { kind = 'echo', rate = '100/s' }
    ";
    let [model, guest] = ["model", "kernel:uml"].map(|world| points(experiment, world));
    let connect = |points: &BTreeMap<String, Columns>| {
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

/// The run's seed determines keys, signatures and skipped packet numbers, because the guest has no other source of
/// random numbers.
fn the_same_seed_gives_the_same_packets(world: &str) {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| capture(world, &dir.path().join(name)));
    assert!(first == second, "captures of the same run differ");
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn the_same_seed_gives_the_same_packets_in_user_mode_linux() {
    the_same_seed_gives_the_same_packets("kernel:uml");
}

#[test]
#[ignore = "needs QEMU and a kernel (hol kernel fetch)"]
fn the_same_seed_gives_the_same_packets_in_qemu() {
    the_same_seed_gives_the_same_packets("kernel");
}

/// One end at a time: Wireshark, which sees a packet at both ends of a link, loses track when keys are updated.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build) and tshark"]
fn capture_of_an_end_is_decrypted_with_its_key_log() {
    let dir = tempfile::tempdir().unwrap();
    let [all, one] = ["all", "one"].map(|name| dir.path().join(name));
    capture("kernel:uml", &all);
    let tshark = |from: &Path, arguments: &[&str]| {
        let output = Command::new("tshark").arg("-r").arg(from).args(arguments).output();
        let output = output.unwrap_or_else(|error| panic!("tshark: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for end in ["client:1", "server:1"] {
        let own = format!("frame.interface_name == \"{end}\"");
        tshark(&all, &["-Y", &own, "-w", one.to_str().unwrap()]);
        let fields = ["-T", "fields", "-e", "quic.frame_type", "-e", "quic.decryption_failed"];
        let seen = tshark(&one, &fields);
        assert!(seen.lines().count() > 500, "{end}: {} packets", seen.lines().count());
        let sealed = seen.lines().filter(|line| line.split('\t').next() == Some("")).count();
        assert_eq!(sealed, 0, "{end}: packets whose frames nobody sees, of {}", seen.lines().count());
        assert!(!seen.contains("decryption"), "{end}");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn unsupported_settings_of_the_kernel_world_are_refused_by_name() {
    let paths = "network.paths=[{}, {}]";
    let moves = "network.handover={at = '1s', overlap = 1, attach = '100ms'}";
    for (transport, settings, words) in [
        ("quic:wakeup=1ms", &[][..], "wakeup=1ms"),
        ("quic:handshake_flight=300B", &[], "at least 600 octets"),
        ("quic", &["network.mtu=1000B"], "MTU of at least 1228 octets"),
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

mod nightly {
    use super::*;

    #[test]
    #[ignore = "slow: .ci/nightly runs it"]
    fn quinn_in_the_guest_takes_as_long_as_in_the_model() {
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
            assert!(
                (guest / model - 1.0).abs() < 0.03,
                "{name}: {guest} ms in the guest, {model} in the model"
            );
        }
    }
}
