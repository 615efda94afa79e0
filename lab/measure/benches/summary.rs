//! Measures the time to count a latency and to summarise a record.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::{Duration, Seed, Time};
use hol_measure::{Outcome, Record, RecordKind, Recorder, TransferTimes, summarize};

const MESSAGES: u64 = 80_000;

/// Returns typical response times over one SCTP stream: usually a round trip, occasionally up to a second more.
fn latencies() -> Vec<Duration> {
    let mut rng = Seed(1).rng();
    let mut latency = || {
        let extra = if rng.chance(0.1) { rng.below(1_000_000_000) } else { rng.below(1_000) };
        Duration::from_nanos(20_010_240 + extra)
    };
    (0..MESSAGES).map(|_| latency()).collect()
}

fn records() -> Vec<Record> {
    let leg = |written: Time, delivered: Time| {
        Some(TransferTimes {
            written,
            first_sent: written,
            last_sent: written,
            arrived: delivered,
            delivered,
        })
    };
    let record = |(id, latency): (u64, &Duration)| {
        let scheduled = Time::from_millis(10 * id);
        let reached = scheduled + Duration::from_millis(10);
        let (request, reply) = (leg(scheduled, reached), leg(reached, scheduled + *latency));
        Record {
            id,
            kind: RecordKind::Transaction,
            parent: None,
            stream: 0,
            size: 64,
            reply_size: 0,
            scheduled,
            request,
            reply,
            outcome: Outcome::Completed,
        }
    };
    (0..).zip(&latencies()).map(record).collect()
}

fn summary(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("80,000 messages");
    group.throughput(Throughput::Elements(MESSAGES));
    let (latencies, records) = (latencies(), records());
    group.bench_function("record latencies", |b| {
        b.iter(|| {
            let mut recorder = Recorder::new();
            latencies.iter().for_each(|latency| recorder.count_completed(*latency));
            recorder.finish()
        });
    });
    group.bench_function("summarize records", |b| b.iter(|| summarize(&records)));
    group.finish();
}

criterion_group!(benches, summary);
criterion_main!(benches);
