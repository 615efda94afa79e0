//! Whole runs on this machine's kernel.

mod filter;
mod namespaces;
#[path = "../pair/mod.rs"]
mod pair;

use std::net::Ipv4Addr;

use hol_base::{Frequency, Seed};
use hol_measure::Outcome;
use hol_scenario::{RunEnd, Side};
use hol_sockets::{EndAddresses, Ending, FlowParameters, FlowRun, SocketsError, run};
use hol_workloads::{HostSpec, WorkloadSpec};

use crate::namespaces::enter;
use crate::pair::Pair;

fn loopback() -> EndAddresses {
    EndAddresses { addresses: vec![Ipv4Addr::LOCALHOST.into()], port: 0 }
}

/// Returns the parameters of a flow of 30 messages at 1000/s over the loopback interface.
fn parameters(transport: &str, kind: &str) -> FlowParameters {
    let mut workload: WorkloadSpec = toml::from_str(&format!("kind = '{kind}'")).unwrap();
    if let Some(load) = workload.load_mut() {
        load.rate = Frequency::new(1000.0);
    }
    FlowParameters {
        transport: transport.parse().unwrap(),
        workload,
        messages: 30,
        seed: Seed(1),
        client: loopback(),
        client_moves: false,
        server: loopback(),
        server_host: HostSpec::default(),
        processors: [None, None],
        ending: Ending::Abort,
        is_batching: false,
        reports_receive_time: false,
    }
}

fn here(parameters: &FlowParameters) -> Result<FlowRun, SocketsError> {
    run(parameters, &mut |_| Ok(()))
}

#[track_caller]
fn assert_complete(run: &FlowRun, messages: u64) {
    assert_eq!(run.run_end, RunEnd::Finished);
    assert_eq!(run.records.len() as u64, messages);
    for record in &run.records {
        assert_eq!(record.outcome, Outcome::Completed, "{record:?}");
        assert_eq!(record.breakdown().unwrap().total(), record.latency().unwrap());
    }
}

fn assert_every_workload_runs(transport: &str) {
    for kind in ["simco", "echo", "pingpong", "oneway"] {
        let run = here(&parameters(transport, kind)).unwrap();
        eprintln!("{transport} {kind}: {:?} {:?}", run.client, run.records[9].latency());
        assert_complete(&run, 30);
    }
}

#[test]
fn every_workload_runs_over_tcp_and_udp() {
    for transport in ["tcp", "tcp:connections=4", "tcp:cc=reno,nagle=minshall", "udp"] {
        assert_every_workload_runs(transport);
    }
}

#[test]
#[ignore = "needs a kernel with MPTCP"]
fn every_workload_runs_over_mptcp() {
    assert_every_workload_runs("mptcp");
}

#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn every_workload_runs_over_sctp() {
    assert_every_workload_runs("sctp:associations=2,streams=4");
}

/// Checks that waits are known only if requested, and no longer than the run. Their length depends on the
/// machine.
fn assert_read_delays_are_recorded_on_request(transport: &str) {
    let plain = parameters(transport, "echo");
    assert_eq!(here(&plain).unwrap().waits, [None; 2], "{transport}");
    let asking = FlowParameters { reports_receive_time: true, ..plain };
    // A busy kernel starts to record timestamps some time after they were enabled.
    let mut runs = (0..100).map(|_| here(&asking).unwrap());
    let run_with_waits = runs.find_map(|run| run.waits[0].zip(run.waits[1]).map(|waits| (run, waits)));
    let (run, waits) = run_with_waits.unwrap_or_else(|| panic!("no waits are known of {transport}"));
    assert_complete(&run, 30);
    for waits in [waits.0, waits.1] {
        assert!((1..=30).contains(&waits.messages), "{transport}: {waits:?}");
        assert!(waits.median <= waits.p999 && waits.p999 <= waits.max, "{transport}: {waits:?}");
        assert!(waits.max <= run.ended.as_nanos(), "{transport}: {waits:?}");
    }
}

#[test]
fn read_delays_are_recorded_on_request() {
    ["tcp", "udp"].into_iter().for_each(assert_read_delays_are_recorded_on_request);
}

#[test]
#[ignore = "needs a kernel with MPTCP"]
fn read_delays_of_mptcp_are_recorded_on_request() {
    assert_read_delays_are_recorded_on_request("mptcp");
}

fn assert_streams_are_apart(transport: &str) {
    let run = here(&parameters(transport, "echo")).unwrap();
    let streams: Vec<u16> = run.records[..8].iter().map(|record| record.stream).collect();
    assert_eq!(streams, [0, 1, 2, 3, 0, 1, 2, 3], "{transport}");
}

#[test]
fn parallel_connections_keep_their_streams_apart() {
    assert_streams_are_apart("tcp:connections=4");
}

#[test]
#[ignore = "needs a kernel with SCTP (modprobe sctp)"]
fn parallel_associations_keep_their_streams_apart() {
    assert_streams_are_apart("sctp:associations=2,streams=2");
}

/// Checks that messages larger than the send buffer, which are sent in parts, arrive complete.
fn assert_large_messages_arrive_complete(transport: &str) {
    let workload = toml::from_str("kind = 'echo'\nrate = '1000/s'\nsize = '8MiB'").unwrap();
    let parameters = FlowParameters { messages: 4, workload, ..parameters(transport, "echo") };
    assert_complete(&here(&parameters).unwrap(), 4);
}

#[test]
fn messages_larger_than_the_send_buffer_go_out_in_parts() {
    assert_large_messages_arrive_complete("tcp");
}

#[test]
#[ignore = "needs a kernel with MPTCP"]
fn messages_larger_than_the_send_buffer_go_out_in_parts_over_mptcp() {
    assert_large_messages_arrive_complete("mptcp");
}

fn assert_packets_are_counted(transport: &str) {
    let run = here(&parameters(transport, "pingpong")).unwrap();
    for counts in [run.client, run.server] {
        assert!(counts.packets_sent >= 30 && counts.packets_received >= 30, "{transport}: {counts:?}");
    }
}

#[test]
fn packets_are_counted() {
    ["tcp", "udp"].into_iter().for_each(assert_packets_are_counted);
}

#[test]
#[ignore = "needs a kernel with MPTCP"]
fn packets_of_mptcp_are_counted() {
    assert_packets_are_counted("mptcp");
}

#[test]
fn the_messages_keep_to_their_schedule() {
    let run = here(&parameters("tcp", "echo")).unwrap();
    let gaps = run.records.windows(2).map(|pair| pair[1].scheduled.since(pair[0].scheduled).as_nanos());
    assert!(gaps.into_iter().all(|gap| gap == 1_000_000));
    assert!(run.connected.unwrap() < run.records[0].scheduled && run.records[29].scheduled < run.ended);
}

#[test]
fn a_namespace_that_cannot_be_entered_is_named() {
    let mut refuse = |end| match end {
        Side::Server => Ok(()),
        Side::Client => Err(std::io::ErrorKind::PermissionDenied.into()),
    };
    let error = run(&parameters("tcp", "echo"), &mut refuse).unwrap_err();
    assert_eq!(error.to_string(), "cannot enter the client's network: permission denied");
}

#[test]
fn sctp_runs_or_is_refused_with_a_remedy() {
    match here(&parameters("sctp", "echo")) {
        Ok(run) => assert_complete(&run, 30),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("this kernel has no SCTP"), "{text}");
            assert!(text.contains("modprobe sctp") && text.contains("--world kernel"), "{text}");
        }
    }
}

#[test]
fn impossible_runs_are_refused_before_any_socket_is_opened() {
    for (transport, expected) in [
        ("tcp:stack=linux-2.6.16", "stack=linux-2.6.16: the kernel uses its own stack"),
        ("tcp:rto_min=1s", "rto_min=1s: in Linux rto_min is also the minimum of the RTO's variance term"),
        ("tcp:nagle=classic", "nagle=classic: Linux implements only Minshall's variant"),
        ("tcp:hystart=false", "hystart=false: this parameter of the module tcp_cubic applies to all"),
        ("sctp:sack_delay=600ms", "sack_delay=600ms: the maximum is 500ms"),
        ("sctp:streams=8,max_inbound_streams=4", "streams=8: the other end accepts only"),
        ("sctp:lifetime=500us", "lifetime=500us: Linux supports only whole milliseconds"),
    ] {
        let mut enter = |_| panic!("{transport} is opened");
        let error = run(&parameters(transport, "echo"), &mut enter).unwrap_err().to_string();
        assert!(error.starts_with("the kernel does not support ") && error.contains(expected), "{error}");
    }
    let mut large = parameters("udp", "echo");
    large.workload = toml::from_str("kind = 'echo'\nsize = '65508B'").unwrap();
    assert!(here(&large).unwrap_err().to_string().contains("65507"));
    let nothing = FlowParameters { messages: 0, ..parameters("tcp", "echo") };
    assert!(matches!(here(&nothing), Err(SocketsError::NoMessages)));
    let nowhere =
        FlowParameters { server: EndAddresses { addresses: vec![], port: 0 }, ..parameters("udp", "echo") };
    assert_eq!(here(&nowhere).unwrap_err().to_string(), "the server has no address; give it at least one");
}

/// Repeats runs on the same ports: no packet or state of a run affects the next one.
fn assert_namespaces_may_be_two(transports: &[&str]) {
    let pair = Pair::new();
    for transport in transports {
        let [client, server] =
            Pair::ADDRESSES.map(|address| EndAddresses { addresses: vec![address.into()], port: 0 });
        let server = EndAddresses { port: 7626, ..server };
        let client = EndAddresses { port: 49152, ..client };
        let parameters = FlowParameters { client, server, ..parameters(transport, "simco") };
        let run = run(&parameters, &mut |end| enter(&pair, end));
        assert_complete(&run.unwrap_or_else(|problem| panic!("{transport}: {problem}")), 30);
    }
}

#[test]
#[ignore = "needs root and network namespaces (iproute2)"]
fn the_two_ends_may_be_in_two_namespaces() {
    assert_namespaces_may_be_two(&["tcp:connections=3", "tcp", "udp"]);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2), and a kernel with MPTCP"]
fn the_two_ends_of_mptcp_may_be_in_two_namespaces() {
    assert_namespaces_may_be_two(&["mptcp", "mptcp"]);
}

#[test]
#[ignore = "needs root and network namespaces (iproute2), and a kernel with SCTP (modprobe sctp)"]
fn the_two_ends_of_sctp_may_be_in_two_namespaces() {
    assert_namespaces_may_be_two(&["sctp", "sctp"]);
}

#[test]
fn an_address_without_an_interface_is_refused_by_name() {
    let elsewhere = EndAddresses { addresses: vec![Ipv4Addr::new(203, 0, 113, 9).into()], port: 7 };
    let error =
        here(&FlowParameters { server: elsewhere, ..parameters("tcp", "echo") }).unwrap_err().to_string();
    assert!(error.starts_with("cannot bind TCP to 203.0.113.9:7: "), "{error}");
}
