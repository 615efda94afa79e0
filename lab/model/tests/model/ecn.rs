//! Runs with queues that mark: RFC 3168, RFC 8257, RFC 4960 appendix A, RFC 9000 section 13.4, RFC 9332.

use hol_base::Seed;
use hol_model::run;
use hol_scenario::{Background, Run, RunEnd, Scenario};

/// Runs a bulk transfer through CoDel, which marks or only drops.
fn bulk(transport: &str, marks: bool) -> Run {
    let network = format!(
        "rate = '10Mbit'\ndelay = '10ms'\nqueue = '1000p'\ndiscipline = {{ codel = {{ ecn = {marks} }} }}"
    );
    let scenario = Scenario {
        network: toml::from_str(&network).unwrap(),
        hosts: Default::default(),
        transport: transport.parse().unwrap(),
        workload: toml::from_str("kind = 'bulk'\nsize = '1400B'").unwrap(),
        messages: 5000,
        background: Vec::new(),
        onward: Vec::new(),
        programs: Vec::new(),
        root: hol_scenario::Root::Host,
    };
    let run = run(&scenario, Seed(7), None).unwrap();
    assert_eq!(run.run_end, RunEnd::Finished, "{transport}");
    run
}

#[test]
fn ecn_avoids_all_losses_at_a_marking_queue() {
    for transport in [
        "tcp:ecn=true",
        "tcp:ecn=true,stack=rfc",
        "tcp:cc=dctcp",
        "tcp:accecn",
        "tcp:cc=prague",
        "sctp",
        "quic:ecn=true",
    ] {
        let marking = bulk(transport, true);
        let drops = marking.drops.expect("the model knows them");
        assert!(marking.marked > Some(0), "{transport}");
        assert_eq!(drops.total(), 0, "{transport}: {drops:?}");
        let [client, _] = marking.endpoints.as_ref().expect("the model knows them");
        assert_eq!(client.timeout_retransmissions, 0, "{transport}");
        // quinn-proto does not report its reductions; it sends one STREAM frame twice here although nothing
        // is lost.
        if !transport.starts_with("quic") {
            assert!(client.congestion_events > 0, "{transport}");
            assert_eq!(client.fast_retransmissions, 0, "{transport}");
        }
        let dropping = bulk(transport, false);
        assert!(dropping.drops.expect("the model knows them").total() > 0, "{transport}");
        assert_eq!(dropping.marked, Some(0), "{transport}");
    }
}

#[test]
fn packets_without_ecn_are_dropped_by_the_same_queue() {
    for transport in ["tcp", "sctp:ecn=false", "quic"] {
        let [marking, dropping] = [true, false].map(|marks| bulk(transport, marks));
        assert_eq!(marking.marked, Some(0), "{transport}");
        assert_eq!(marking.digest(), dropping.digest(), "{transport}");
    }
}

/// RFC 9332 section 2.1: the coupling gives flows of either kind about the same rate, and L4S flows almost no
/// queueing delay.
#[test]
fn rfc9332_2_1_a_scalable_and_a_classic_flow_share_a_link() {
    for seed in 1..=3 {
        let network = "rate = '40Mbit'\ndelay = '12.5ms'\nqueue = '1000p'\ndiscipline = 'dualpi2'";
        let bulk = || toml::from_str("kind = 'bulk'\nsize = '16kB'").unwrap();
        let scalable = Background {
            transport: "tcp:cc=prague".parse().unwrap(),
            workload: bulk(),
            messages: None,
            count: 1,
            spread: hol_base::Duration::ZERO,
        };
        let scenario = Scenario {
            network: toml::from_str(network).unwrap(),
            hosts: Default::default(),
            transport: "tcp".parse().unwrap(),
            workload: bulk(),
            messages: 3000,
            background: vec![scalable],
            onward: Vec::new(),
            programs: Vec::new(),
            root: hol_scenario::Root::Host,
        };
        let run = run(&scenario, Seed(seed), None).unwrap();
        assert_eq!(run.run_end, RunEnd::Finished, "seed {seed}");
        let ratio = run.background[0].octets as f64 / (3000.0 * 16_000.0);
        assert!((0.5..2.5).contains(&ratio), "seed {seed}: {ratio}");
    }
}
