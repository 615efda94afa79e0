//! Servers that send onward requests before they answer: a call through two proxies.

use hol_base::{Duration, Seed, Time};
use hol_model::run;
use hol_scenario::{OnwardRequests, Run, RunEnd, Scenario};

const CHAIN: &str = "
    nodes = ['caller', 'proxy', 'middlebox', 'far', 'callee']
    rate = '1Gbit'
    [[links]]
    from = 'caller'
    to = 'proxy'
    delay = '5ms'
    [[links]]
    from = 'proxy'
    to = 'middlebox'
    delay = '1ms'
    [[links]]
    from = 'proxy'
    to = 'far'
    delay = '20ms'
    LOSS
    [[links]]
    from = 'far'
    to = 'callee'
    delay = '7ms'
";

/// Runs calls: the proxy sends a request to its middlebox, then one to the far proxy, which sends one to the
/// callee.
fn call(transport: &str, loss: &str, messages: u64) -> Run {
    let transport: hol_stack::TransportSpec = transport.parse().unwrap();
    let workload = |text: &str| toml::from_str(text).unwrap();
    let echo = "kind = 'echo'\nsize = '500B'";
    let network = toml::from_str(&CHAIN.replace("LOSS", loss)).unwrap();
    let measured = workload(&format!("{echo}\nfrom = 'caller'\nto = 'proxy'\nrate = '50/s'\nstart = '1s'"));
    let onward = [
        "kind = 'simco'\nfrom = 'proxy'\nto = 'middlebox'".to_owned(),
        format!("{echo}\nfrom = 'proxy'\nto = 'far'"),
        format!("{echo}\nfrom = 'far'\nto = 'callee'"),
    ];
    let onward = onward
        .map(|text| OnwardRequests { transport: transport.clone(), workload: workload(&text) })
        .to_vec();
    let scenario = Scenario { onward, ..Scenario::with_single_flow(network, transport, measured, messages) };
    run(&scenario, Seed(1), None).unwrap()
}

fn times(run: &Run) -> Vec<Duration> {
    run.records.iter().filter_map(|record| record.latency()).collect()
}

#[test]
fn lossless_call_takes_the_sum_of_its_round_trips() {
    for transport in ["tcp:stack=rfc", "sctp:streams=8,stack=rfc", "udp:stack=rfc"] {
        let run = call(transport, "", 100);
        assert_eq!(run.summary.run_end, RunEnd::Finished, "{transport}");
        // 2 × (5 + 1 + 20 + 7) ms of propagation; a message of 600 octets takes 40 µs on eight links of 1
        // Gbit/s.
        let times = times(&run);
        assert_eq!(times.len(), 100);
        let (min, max) = (Duration::from_millis(66), Duration::from_micros(66_060));
        assert!(times.iter().all(|time| (min..max).contains(time)), "{transport}: {times:?}");
        let waits = run
            .records
            .iter()
            .map(|record| record.reply.unwrap().written.since(record.request.unwrap().delivered));
        assert!(waits.min() >= Some(Duration::from_millis(56)), "the rest is at the proxy");
    }
}

#[test]
fn loss_between_proxies_delays_later_calls_only_on_the_same_stream() {
    let delayed = |transport| {
        let run = call(transport, "up = { loss = { drop = [60] } }", 100);
        assert_eq!(run.summary.run_end, RunEnd::Finished);
        times(&run).iter().filter(|time| **time > Duration::from_millis(67)).count()
    };
    let (one, eight) = (delayed("sctp:streams=1"), delayed("sctp:streams=8"));
    assert!(one > eight && eight >= 1, "{one} and {eight}");
}

#[test]
fn every_request_reaches_every_server_once_and_runs_repeat() {
    let [run, again] = [(); 2].map(|()| call("tcp", "loss = '2%'", 300));
    assert_eq!(run.digest(), again.digest());
    let asked: Vec<usize> = run.background_records.iter().map(Vec::len).collect();
    assert_eq!((run.records.len(), asked), (300, vec![300; 3]));
    let [first, ..] = &run.background_records[..] else { panic!("three flows") };
    assert!(first.iter().zip(&run.records).all(|(asked, call)| {
        asked.scheduled >= call.request.map_or(Time::MAX, |request| request.delivered)
    }));
}

#[test]
fn error_names_the_server_that_no_client_can_reach() {
    let lan = "nodes = ['client', 'server', 'third']\nlans = [{ nodes = ['client', 'server', 'third'] }]";
    let workload = |text: &str| toml::from_str(text).unwrap();
    let transport: hol_stack::TransportSpec = "sctp".parse().unwrap();
    let asks = "kind = 'echo'\nfrom = 'server'\nto = 'third'\nlistens = false";
    let onward = vec![OnwardRequests { transport: transport.clone(), workload: workload(asks) }];
    let alone =
        Scenario::with_single_flow(toml::from_str(lan).unwrap(), transport, workload("kind = 'echo'"), 10);
    let run = run(&Scenario { onward, ..alone }, Seed(1), None).unwrap();
    let why = run.summary.run_end.reason().unwrap();
    assert!(why.contains("[[onward]] number 1: ") && why.contains("refused"), "{why}");
    assert!(times(&run).is_empty());
}
