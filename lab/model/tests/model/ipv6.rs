//! Networks of IPv6 in the model world: a header of 40 octets (RFC 8200 section 3) instead of 20, and no
//! other difference.

use hol_base::{Duration, Seed};
use hol_measure::Outcome;
use hol_model::run;
use hol_scenario::{Run, Scenario};

fn over(ip: &str, network: &str, transport: &str, workload: &str, messages: u64) -> Run {
    let network = format!("ip = '{ip}'\n{network}");
    let scenario = Scenario::with_single_flow(
        toml::from_str(&network).unwrap(),
        transport.parse().unwrap(),
        toml::from_str(workload).unwrap(),
        messages,
    );
    let run = run(&scenario, Seed(1), None).unwrap();
    assert!(run.records.iter().all(|record| record.outcome == Outcome::Completed), "{transport}");
    run
}

fn latency(run: &Run) -> Duration {
    run.records[0].latency().unwrap()
}

#[test]
fn ipv6_datagram_is_20_octets_longer() {
    let took = |ip| {
        let oneway = "kind = 'oneway'\nsize = '1000B'";
        latency(&over(ip, "delay = '10ms'\nrate = '1Mbit'\noverhead = '0B'", "udp", oneway, 1))
    };
    assert_eq!(took("v4"), Duration::from_millis(10) + Duration::from_micros(8 * (20 + 8 + 1000)));
    assert_eq!(took("v6") - took("v4"), Duration::from_micros(8 * 20));
}

/// Checks the payload of a packet of 1500 octets: RFC 9293 section 3.7.1 with 12 octets of timestamps, RFC
/// 9260 section 6.9. The throughput of a bottleneck falls in proportion.
#[test]
fn ipv6_packet_carries_20_octets_less() {
    for (transport, [short, long]) in [("tcp", [1428.0, 1448.0]), ("sctp", [1432.0, 1452.0])] {
        let took = |ip| {
            let oneway = "kind = 'oneway'\nsize = '2MB'";
            let spec = format!("{transport}:send_buffer=4MB,receive_buffer=4MB");
            latency(&over(ip, "delay = '100us'\nrate = '10Mbit'", &spec, oneway, 1)).as_secs_f64()
        };
        let ratio = took("v6") / took("v4");
        assert!((ratio - long / short).abs() < 0.001, "{transport}: {ratio}, not {}", long / short);
    }
}

#[test]
fn every_transport_delivers_all_messages_over_ipv6() {
    let network = "delay = '10ms'\nrate = '10Mbit'\nloss = '2%'\ndiscipline = { fq_codel = {} }";
    for transport in ["tcp", "tcp:cc=bbr", "sctp:streams=8", "sctp:streams=8,interleaving", "quic:streams=8"]
    {
        let run = over("v6", network, transport, "kind = 'echo'\nsize = '3kB'\nrate = '50/s'", 200);
        assert_eq!(run.records.len(), 200);
    }
}

/// RFC 9260 sections 5.1.2 and 8.2: the handshake lists the addresses of both paths, and the second path is
/// used after the first has failed.
#[test]
fn an_association_over_two_paths_survives_the_first() {
    let network = "delay = '10ms'\npaths = [{}, {}]\nevents = [{ at = '1s', path = 1, down = true }]";
    let run = over("v6", network, "sctp", "kind = 'echo'\nrate = '20/s'", 100);
    let slowest = run.records.iter().map(|record| record.latency().unwrap()).max().unwrap();
    assert!(slowest > Duration::from_millis(500), "it took a timeout: {slowest}");
}
