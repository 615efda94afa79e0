//! Hosts that take time for messages: queueing theory, flow control, shares.

use std::collections::BTreeMap;

use hol_base::{Duration, Seed};
use hol_measure::{Transfer, jain_index};
use hol_model::run;
use hol_network::Drops;
use hol_scenario::{Background, Run, RunEnd, Scenario};
use hol_stack::Protocol;
use hol_workloads::HostSpec;

/// Returns a scenario with this many messages to a server that needs `service` for each, over a network with
/// almost no delay.
fn slow(transport: &str, workload: &str, service: &str, messages: u64) -> Scenario {
    let server = HostSpec { service: service.parse().unwrap(), ..HostSpec::default() };
    Scenario {
        hosts: BTreeMap::from([("server".to_owned(), server)]),
        ..Scenario::with_single_flow(
            toml::from_str("rate = '10Gbit'\ndelay = '1us'").unwrap(),
            transport.parse().unwrap(),
            toml::from_str(workload).unwrap(),
            messages,
        )
    }
}

#[track_caller]
fn done(scenario: &Scenario) -> Run {
    let run = run(scenario, Seed(1), None).unwrap();
    assert_eq!(run.run_end, RunEnd::Finished);
    run
}

const TRANSPORTS: [&str; 2] = ["tcp", "sctp:nagle=false"];

/// A message waits for the server ρ s / (2 (1 − ρ)) on average: Pollaczek and Khinchine, for a service time s that is constant.
#[test]
fn poisson_messages_wait_as_in_md1() {
    for transport in TRANSPORTS {
        for (load, tolerance) in [(0.3, 0.03), (0.7, 0.05)] {
            let workload = format!("kind = 'oneway'\narrivals = 'poisson'\nrate = '{}/s'", load * 100.0);
            let asked = slow(transport, &workload, "10ms", 100_000);
            let run = done(&asked);
            let alone = Scenario { hosts: BTreeMap::new(), ..asked };
            let delay = |run: &Run| {
                let way =
                    |r: &hol_measure::Record| r.request.unwrap().delivered.since(r.scheduled).as_millis_f64();
                run.records.iter().map(way).sum::<f64>() / run.records.len() as f64
            };
            let (wait, due) = (delay(&run) - delay(&done(&alone)), load * 10.0 / (2.0 * (1.0 - load)));
            assert!((wait / due - 1.0).abs() < tolerance, "{transport}, {load}: {wait} for {due} ms");
        }
    }
}

#[test]
fn record_shows_the_service_time_of_a_reply() {
    for transport in TRANSPORTS {
        for record in done(&slow(transport, "kind = 'pingpong'", "5ms", 50)).records {
            let (request, reply) = (record.request.unwrap(), record.reply.unwrap());
            assert_eq!(reply.written.since(request.delivered), Duration::from_millis(5));
            assert!(record.breakdown().unwrap().service >= Duration::from_millis(5));
        }
    }
}

/// RFC 9293 section 3.8.6, RFC 9260 section 6.2: waiting messages occupy the window, and close it.
#[test]
fn flow_control_limits_a_greedy_sender_to_the_service_rate() {
    const SIZE: u64 = 1000;
    for transport in TRANSPORTS {
        let asked = slow(transport, "kind = 'bulk'\nsize = '1000B'", "1ms", 20_000);
        let run = done(&asked);
        let span = Transfer::of(&run.records).unwrap().span().as_secs_f64();
        assert!((span / 20.0 - 1.0).abs() < 0.01, "{transport}: {span} s for 20,000 ms");
        assert_eq!(run.drops, Some(Drops::default()));
        let buffers = match asked.transport.protocol() {
            Protocol::Tcp { config, .. } => config.send_buffer_max.0 + config.receive_buffer_max.0,
            Protocol::Sctp { config, .. } => config.send_buffer.0 + config.receive_buffer.0,
            _ => unreachable!("one of the two"),
        };
        // In addition to the content of the buffers: the last packet, which may exceed the window, and the
        // message being served.
        let max = (buffers / SIZE + 5) as usize;
        let legs: Vec<_> = run.records.iter().map(|record| record.request.unwrap()).collect();
        assert!(legs.windows(max).all(|legs| legs[max - 1].written >= legs[0].delivered), "{transport}");
    }
}

#[test]
fn server_shares_its_processor_fairly_between_flows() {
    for transport in TRANSPORTS {
        let greedy = "kind = 'bulk'\nsize = '500B'";
        let asked = slow(transport, greedy, "500us", 10_000);
        let other = Background {
            transport: transport.parse().unwrap(),
            workload: toml::from_str(greedy).unwrap(),
            messages: None,
            count: 1,
            spread: Duration::ZERO,
        };
        let run = done(&Scenario { background: vec![other], ..asked });
        let transfer = Transfer::of(&run.records).unwrap();
        let shares = [10_000.0 * 500.0, run.background[0].octets as f64];
        assert!(jain_index(&shares).unwrap() > 0.999, "{transport}: {shares:?}");
        let both = shares.iter().sum::<f64>() / 500.0 / transfer.span().as_secs_f64();
        assert!((both / 2000.0 - 1.0).abs() < 0.01, "{transport}: {both} messages a second");
    }
}

#[test]
fn service_with_udp_or_on_a_host_without_flows_is_refused_with_a_remedy() {
    let refusal = |scenario: &Scenario| run(scenario, Seed(1), None).unwrap_err().to_string();
    let asked = slow("udp", "kind = 'oneway'", "1ms", 10);
    assert!(refusal(&asked).contains("use TCP or SCTP"), "{}", refusal(&asked));
    let network = toml::from_str(
        "nodes = ['client', 'server', 'sink']\nlinks = [{ from = 'client', to = 'server' }, { from = 'server', to = 'sink' }]",
    );
    let elsewhere = toml::from_str("kind = 'oneway'\nto = 'sink'").unwrap();
    let idle = Scenario {
        network: network.unwrap(),
        workload: elsewhere,
        ..slow("tcp", "kind = 'oneway'", "1ms", 10)
    };
    assert!(refusal(&idle).contains("no flow ends on \"server\""), "{}", refusal(&idle));
}
