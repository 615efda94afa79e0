//! Measures whole runs: the time of one transaction, or of one object of a page, with both endpoints, the
//! network and the records.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hol_base::Seed;
use hol_measure::Summarizer;
use hol_model::run_with_observer;
use hol_network::NetworkSpec;
use hol_scenario::Scenario;
use hol_workloads::{Page, Simco, Sizes, WorkloadSpec};

const TRANSACTIONS: u64 = 80_000;

/// Measures SIMCO transactions as in Kiesel et al. 2006, experiment 1: 100 per second, with a delay of 10 ms in
/// each direction.
fn transactions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simco");
    group.throughput(Throughput::Elements(TRANSACTIONS)).sample_size(10);
    for transport in ["sctp:streams=8", "sctp:streams=1", "tcp"] {
        for loss in ["0%", "1%"] {
            let scenario = Scenario {
                network: NetworkSpec {
                    loss: hol_network::LossSpec::Independent(loss.parse().expect("a ratio")),
                    ..NetworkSpec::default()
                },
                hosts: Default::default(),
                transport: transport.parse().expect("a transport"),
                workload: WorkloadSpec::new(Simco::default()),
                messages: TRANSACTIONS,
                background: Vec::new(),
                onward: Vec::new(),
                programs: Vec::new(),
                root: hol_scenario::Root::Host,
            };
            group.bench_function(BenchmarkId::new(transport, loss), |bencher| {
                bencher.iter(|| {
                    let mut summarizer = Summarizer::default();
                    run_with_observer(&scenario, Seed(1), None, &mut summarizer).expect("it runs");
                    black_box(summarizer.finish())
                });
            });
        }
    }
    group.finish();
}

/// Measures pages of 50 objects of 1 kB, with a delay of 10 ms in each direction.
fn objects(criterion: &mut Criterion) {
    const PAGES: u64 = 400;
    const OBJECTS: u16 = 50;
    let mut group = criterion.benchmark_group("page");
    group.throughput(Throughput::Elements(PAGES * u64::from(OBJECTS))).sample_size(10);
    for transport in ["tcp", "tcp:connections=6", "sctp:streams=50"] {
        let [document, size] = ["1kB", "1kB"].map(|size| size.parse().expect("a size"));
        let page = Page { document, objects: OBJECTS, size: Sizes::Fixed(size), ..Page::default() };
        let transport_of = transport.parse().expect("a transport");
        let scenario =
            Scenario::with_single_flow(NetworkSpec::default(), transport_of, WorkloadSpec::new(page), PAGES);
        group.bench_function(transport, |bencher| {
            bencher.iter(|| {
                let mut summarizer = Summarizer::default();
                run_with_observer(&scenario, Seed(1), None, &mut summarizer).expect("it runs");
                black_box(summarizer.finish())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, transactions, objects);
criterion_main!(benches);
