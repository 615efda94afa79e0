//! IPv6 networks in the kernel world, compared with the model.

use std::collections::BTreeMap;
use std::fs;

use super::points::points;
use crate::program::{failure, ok};
use hol_wire::capture::CaptureReader;

/// Returns mean latencies in ms by transport; asserts that all messages arrived.
fn means(experiment: &str, world: &str) -> BTreeMap<String, f64> {
    let points = points(experiment, world).into_iter();
    points
        .map(|(transport, columns)| {
            assert_eq!(columns["completed"], columns["offered"], "{world}: {transport}");
            (transport, columns["mean_ms"].parse().unwrap())
        })
        .collect()
}

#[track_caller]
fn assert_alike(experiment: &str) {
    let [model, linux] = ["model", "kernel:uml"].map(|world| means(experiment, world));
    for (transport, model) in &model {
        let linux = linux[transport];
        println!("{transport}: mean {model} ms in the model, {linux} in Linux");
        assert!((model / linux - 1.0).abs() < 0.02, "{transport}: {model} ms in the model, {linux} in Linux");
    }
}

#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn all_transports_are_as_fast_as_in_the_model() {
    assert_alike(
        "transports = ['tcp', 'sctp:streams=8', 'sctp:socket=own', 'udp', 'quic', 'quic:ecn=true']
        messages = 200
        repetitions = 1
        network = { ip = 'v6', delay = '10ms', rate = '1Mbit' }
        workload = { kind = 'echo', rate = '20/s', size = '1000B' }",
    );
}

/// The same packets are lost in both worlds, so that loss recovery is compared, too.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn lost_packets_are_retransmitted_as_in_the_model() {
    assert_alike(
        "transports = ['tcp', 'sctp:streams=8']
        messages = 100
        repetitions = 1
        network = { ip = 'v6', delay = '10ms', rate = '10Mbit', up = { loss = { drop = [20, 40, 60] } } }
        workload = { kind = 'echo', rate = '50/s', size = '1000B' }",
    );
}

/// RFC 9260 section 5.1.2, RFC 8684 section 3.4.1: hosts announce IPv6 addresses to the peer, which uses them when the
/// first path fails.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn transport_with_two_paths_survives_the_loss_of_one() {
    let experiment = "transports = ['sctp', 'mptcp']
        messages = 100
        repetitions = 1
        network = { ip = 'v6', delay = '10ms', paths = [{}, {}], events = [{ at = '2s', path = 1, down = true }] }
        workload = { kind = 'echo', rate = '20/s', size = '1000B' }";
    assert_eq!(means(experiment, "kernel:uml").len(), 2);
}

/// Links carry only the packets of the run: no router solicitation, no multicast join, no neighbour discovery.
#[test]
#[ignore = "needs User-Mode Linux (hol kernel build)"]
fn capture_has_only_the_packets_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let trace = |world: &str| {
        let file = format!("{}.pcapng", world.replace(':', "-"));
        let set = ["--set", "network.ip=v6", "--workload", "echo", "--count", "10", "--world", world];
        ok(dir.path(), &[&["trace", "tcp", "--pcap", &file], &set[..]].concat());
        let octets = fs::read(dir.path().join(file)).unwrap();
        let packets = CaptureReader::new(octets.as_slice()).unwrap();
        packets.map(|packet| packet.unwrap().octets).collect::<Vec<_>>()
    };
    // RFC 8200 section 3: version and next header.
    let is_tcp = |octets: &Vec<u8>| (octets[0] >> 4, octets[6]) == (6, 6);
    for world in ["model", "kernel:uml"] {
        let packets = trace(world);
        assert!(packets.len() > 10 && packets.iter().all(is_tcp), "{world}: {packets:?}");
    }
}

#[test]
fn unsupported_ipv6_settings_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |network: &str| {
        let text = format!("transports = ['tcp']\n[network]\n{network}\n[workload]\nkind = 'echo'\n");
        fs::write(dir.path().join("a.toml"), text).unwrap();
        failure(dir.path(), &["run", "a.toml", "--out", "out"]).1
    };
    assert!(refused("ip = 'v5'").contains("a.toml:3"));
    assert!(refused("ip = 'v6'\nmtu = '1000B'").contains("the minimum of IPv6 is 1280"));
    let links = "nodes = ['client', 'server']\nlinks = [{ from = 'client', to = 'server', addresses = ['10.1.1.2', 'fd00::1'] }]";
    assert!(refused(links).contains("set `ip` in [network]"));
}
