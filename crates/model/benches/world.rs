//! Whole runs: what one transaction costs, with both endpoints, the network, the middlebox and the records.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hol_base::Seed;
use hol_measure::Summarizer;
use hol_model::follow;
use hol_network::NetworkSpec;
use hol_scenario::Scenario;
use hol_workloads::{Simco, WorkloadSpec};

const TRANSACTIONS: u64 = 80_000;

/// Kiesel et al. 2006, experiment 1: SIMCO at 100/s, 10 ms one way.
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
            };
            group.bench_function(BenchmarkId::new(transport, loss), |bencher| {
                bencher.iter(|| {
                    let mut summarizer = Summarizer::default();
                    follow(&scenario, Seed(1), None, &mut summarizer).expect("it runs");
                    black_box(summarizer.finish())
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, transactions);
criterion_main!(benches);
