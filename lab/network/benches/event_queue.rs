//! Compares three methods to find the next event among a few components: scan, binary heap, tournament tree.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use hol_base::{Duration, Seed, Time};
use hol_network::EventQueue;

fn next_event(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("next_event");
    for components in [2usize, 6, 20, 50, 1000] {
        let mut rng = Seed(1).rng();
        let gaps: Vec<Duration> = (0..1024).map(|_| Duration::from_nanos(rng.below(1_000_000))).collect();
        let mut turn = 0;
        let mut gap = move || {
            turn = (turn + 1) % gaps.len();
            gaps[turn]
        };

        let mut times = vec![Time::ZERO; components];
        group.bench_function(BenchmarkId::new("scan", components), |bencher| {
            bencher.iter(|| {
                let first = (0..components).min_by_key(|component| times[*component]).expect("some");
                times[first] += gap();
                black_box(first)
            });
        });

        let mut heap: BinaryHeap<_> =
            (0..components).map(|component| Reverse((Time::ZERO, component))).collect();
        group.bench_function(BenchmarkId::new("heap", components), |bencher| {
            bencher.iter(|| {
                let Reverse((time, first)) = heap.pop().expect("some");
                heap.push(Reverse((time + gap(), first)));
                black_box(first)
            });
        });

        let mut agenda = EventQueue::new(components);
        (0..components).for_each(|component| agenda.set(component, Time::ZERO));
        group.bench_function(BenchmarkId::new("tournament", components), |bencher| {
            bencher.iter(|| {
                let (time, first) = agenda.first();
                agenda.set(first, time + gap());
                black_box(first)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, next_event);
criterion_main!(benches);
