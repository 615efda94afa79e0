//! Flows between four hosts, all on this machine; each host receives the others' state only over control channels.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use hol_base::{Duration, Seed};
use hol_live::{Live, Secret, Server, Service};
use hol_scenario::{Background, OnwardRequests, Run, Scenario, World};
use hol_stack::TransportSpec;
use hol_workloads::WorkloadSpec;

const NODES: &str =
    "nodes = ['client', 'server', 'a', 'b']\nlans = [{ nodes = ['client', 'server', 'a', 'b'] }]";

fn transport(text: &str) -> TransportSpec {
    text.parse().unwrap()
}

fn workload(text: &str) -> WorkloadSpec {
    toml::from_str(text).unwrap()
}

/// Returns a background flow that sends without end.
fn endless_background(over: &str, from: &str, to: &str) -> Background {
    let workload = workload(&format!("kind = 'oneway'\nrate = '500/s'\nfrom = '{from}'\nto = '{to}'"));
    Background { transport: transport(over), workload, messages: None, count: 1, spread: Duration::ZERO }
}

fn scenario(text: &str) -> Scenario {
    Scenario::with_single_flow(toml::from_str(NODES).unwrap(), transport("tcp"), workload(text), 200)
}

/// Performs a run with three other hosts, which have these nodes.
fn run(scenario: &Scenario, nodes: [&str; 3]) -> Run {
    let secret = || Secret::new(super::SECRET).unwrap();
    secret().set_for_process();
    let servers = nodes.map(|_| {
        Server::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), secret(), Service::Ends(None)).unwrap()
    });
    let place = |(node, server): (&str, &Server)| format!("{node}={}", server.address().unwrap());
    let places: Vec<String> = nodes.into_iter().zip(&servers).map(place).collect();
    thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| server.run(false, &|_| ()).unwrap());
        }
        let live = Live::with_peer(&places.join(",")).unwrap();
        let run = live.check(scenario).and_then(|()| live.run(scenario, Seed(1)));
        servers.iter().for_each(|server| server.stop().unwrap());
        run.unwrap()
    })
}

#[test]
fn flows_go_between_any_two_of_four_hosts() {
    let mut scenario = scenario("kind = 'echo'\nrate = '1000/s'");
    scenario.background = [
        ("tcp", "a", "b"),
        ("quic", "b", "a"),
        ("udp", "a", "server"),
        ("tcp", "b", "client"),
        ("sctp:socket=own", "server", "b"),
        ("tcp", "client", "a"),
    ]
    .map(|(over, from, to)| endless_background(over, from, to))
    .into();
    let Run { summary, records, background_records, .. } = run(&scenario, ["server", "a", "b"]);
    assert!(
        records.len() == 200 && records.iter().all(|record| record.reply.is_some()),
        "{:?}",
        summary.run_end
    );
    for (flow, records) in scenario.background.iter().zip(&background_records) {
        let delivered = records.iter().filter(|record| record.request.is_some()).count();
        assert!(delivered > 50, "{}: {delivered} of {}", flow.transport, records.len());
        // The times are on one clock, although three hosts measured them.
        let wrong = records.iter().find(|r| r.request.is_some_and(|leg| leg.delivered < leg.written));
        assert_eq!(wrong, None);
    }
    let world_report = summary.world_report.unwrap();
    assert!(world_report.peer.is_some() && world_report.others.len() == 2, "{:?}", world_report.others);
    assert_eq!(
        world_report.provenance.matches("from 127.0.0.1 to 127.0.0.1: Linux").count(),
        3,
        "{}",
        world_report.provenance
    );
}

/// The measured server, on one host, sends a request to a server on another host before it replies.
#[test]
fn a_server_sends_onward_requests_to_a_third_host() {
    let mut scenario = scenario("kind = 'echo'\nrate = '500/s'");
    let onward = |over: &str, to: &str| OnwardRequests {
        transport: transport(over),
        workload: workload(&format!("kind = 'echo'\nfrom = 'server'\nto = '{to}'")),
    };
    scenario.onward = vec![onward("tcp", "a"), onward("quic", "b")];
    let Run { summary, records, .. } = run(&scenario, ["server", "a", "b"]);
    assert!(
        records.len() == 200 && records.iter().all(|record| record.reply.is_some()),
        "{:?}",
        summary.run_end
    );
}

/// Unnamed nodes are on this host, and two nodes on one host have no flow between them.
#[test]
fn invalid_placements_are_refused_before_the_run() {
    let refusal = |places: &str, scenario: &Scenario| {
        Live::with_peer(places).unwrap().check(scenario).unwrap_err().to_string()
    };
    let mut scenario = scenario("kind = 'echo'");
    let problem = refusal("server=192.0.2.1,cross=192.0.2.2", &scenario);
    assert!(problem.contains("no node \"cross\""), "{problem}");
    scenario.background = vec![endless_background("tcp", "a", "b")];
    let problem = refusal("server=192.0.2.1", &scenario);
    assert!(problem.contains("from \"a\" to \"b\"") && problem.contains("--peer NODE=HOST"), "{problem}");
}
