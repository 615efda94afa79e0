//! Measures the time per packet as a scenario grows, one axis at a time. docs/measured.md has the figures.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hol_base::{Duration, Seed};
use hol_measure::Summarizer;
use hol_model::run_with_observer;
use hol_scenario::{Background, Scenario};

const TRANSACTIONS: &str = "kind = 'simco'\nrate = '1000/s'";
const MESSAGES: u64 = 20_000;

fn scenario(transport: &str, workload: &str, network: &str, messages: u64) -> Scenario {
    Scenario::with_single_flow(
        toml::from_str(network).expect("a network"),
        transport.parse().expect("a transport"),
        toml::from_str(workload).expect("a workload"),
        messages,
    )
}

/// Measures the time divided by the number of packets that nodes send. (The number of packets per message depends
/// on bundling.)
fn measure(criterion: &mut Criterion, axis: &str, points: impl IntoIterator<Item = (u64, Scenario)>) {
    let mut group = criterion.benchmark_group(axis);
    group.sample_size(10);
    for (value, scenario) in points {
        let summarize = || {
            let mut summarizer = Summarizer::default();
            let summary = run_with_observer(&scenario, Seed(1), None, &mut summarizer).expect("it runs");
            black_box(summarizer.finish());
            summary.packets
        };
        let packets = summarize();
        group.throughput(Throughput::Elements(packets));
        group.bench_function(BenchmarkId::from_parameter(value), |bencher| {
            bencher.iter(summarize);
        });
    }
    group.finish();
}

fn messages(criterion: &mut Criterion) {
    let of = |messages| (messages, scenario("tcp", TRANSACTIONS, "", messages));
    measure(criterion, "messages", [10_000, 100_000, 1_000_000].map(of));
}

fn connections(criterion: &mut Criterion) {
    let of = |number| (number, scenario(&format!("tcp:connections={number}"), TRANSACTIONS, "", MESSAGES));
    measure(criterion, "connections", [1, 16, 256, 1024].map(of));
}

fn streams(criterion: &mut Criterion) {
    let of = |number| (number, scenario(&format!("sctp:streams={number}"), TRANSACTIONS, "", MESSAGES));
    measure(criterion, "streams", [1, 256, 65_535].map(of));
}

/// Measures the time with a growing number of greedy flows in addition to the measured flow.
fn flows(criterion: &mut Criterion) {
    let workload = "kind = 'oneway'\ninterval = '20ms'\nstart = '3s'\nlate_limit = '1h'";
    let of = |count: u16| {
        let background = Background {
            transport: "tcp".parse().expect("a transport"),
            workload: toml::from_str("kind = 'bulk'").expect("a workload"),
            messages: None,
            count,
            spread: Duration::from_secs(1),
        };
        let alone = scenario("tcp", workload, "", 250);
        (count.into(), Scenario { background: vec![background], ..alone })
    };
    measure(criterion, "flows", [1, 16, 127].map(of));
}

/// Measures the time with a growing number of nodes that have an address but send nothing.
fn nodes(criterion: &mut Criterion) {
    let of = |number: u64| {
        let idle: String = (2..number).map(|node| format!("'n{node}', ")).collect();
        let all = format!("['client', 'server', {idle}]");
        let network = format!("nodes = {all}\nlans = [{{ nodes = {all} }}]\ndelay = '10ms'");
        (number, scenario("tcp", TRANSACTIONS, &network, MESSAGES))
    };
    measure(criterion, "nodes", [2, 16, 128].map(of));
}

/// Measures the time with a growing number of links in a row, all of which each packet crosses.
fn hops(criterion: &mut Criterion) {
    let of = |number: u64| {
        let name = |node: u64| match node {
            0 => "client".to_owned(),
            node if node == number => "server".to_owned(),
            node => format!("n{node}"),
        };
        let nodes: Vec<String> = (0..=number).map(|node| format!("'{}'", name(node))).collect();
        let link = |node| format!("{{ from = '{}', to = '{}' }}", name(node), name(node + 1));
        let links: Vec<String> = (0..number).map(link).collect();
        let network =
            format!("nodes = [{}]\nlinks = [{}]\ndelay = '1ms'", nodes.join(", "), links.join(", "));
        (number, scenario("tcp", TRANSACTIONS, &network, MESSAGES))
    };
    measure(criterion, "hops", [1, 4, 16].map(of));
}

criterion_group!(benches, messages, connections, streams, flows, nodes, hops);
criterion_main!(benches);
