//! The cost of recording a batch, with and without sync, and the time to read a million rules.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::Time;
use hol_journal::{Durability, Journal};
use hol_simco::{
    Action, AddressTuple, AgentId, Binding, Change, Direction, Gid, Location, Owner, PerParameters, Pid,
    PortParity, Rule,
};

const UDP: u8 = 17;

/// Returns the change that adds a pinhole for IPv4.
fn begin(pid: u32) -> Change {
    let action = Action::Enable {
        gid: Gid(pid),
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, "10.0.0.5:5004".parse().unwrap()),
        external: AddressTuple::of_host(Location::External, UDP, "198.51.100.7:0".parse().unwrap()),
        binding: Binding::default(),
    };
    let expires = Time::from_nanos(u64::MAX);
    Change { before: None, after: Some(Rule { pid: Pid(pid), owner: AgentId::NOBODY, expires, action }) }
}

fn record(journal: &mut Journal, changes: &[Change]) {
    journal.record(changes, |_| Owner::new("call-server")).unwrap();
}

fn batches(c: &mut Criterion) {
    for (name, durability) in [("buffered", Durability::Buffered), ("synced", Durability::Synced)] {
        let mut group = c.benchmark_group(name);
        // A buffered journal grows by a gigabyte a second.
        group.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_secs(1));
        for size in [1, 64, 1024] {
            let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let mut journal = Journal::open(dir.path()).unwrap().0.with_durability(durability);
            let batch: Vec<Change> = (0..size).map(begin).collect();
            group.throughput(Throughput::Elements(u64::from(size)));
            group.bench_function(size.to_string(), |b| b.iter(|| record(&mut journal, &batch)));
        }
    }
}

fn octets(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

fn recovery(c: &mut Criterion) {
    const RULES: u32 = 1_000_000;
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut journal = Journal::open(dir.path()).unwrap().0.with_durability(Durability::Buffered);
    for first in (0..RULES).step_by(1000) {
        record(&mut journal, &(first..first + 1000).map(begin).collect::<Vec<_>>());
    }
    drop(journal);
    println!("{RULES} rules: {} octets on the disk", octets(dir.path()));
    let mut group = c.benchmark_group("recovery");
    group.sample_size(10);
    group.bench_function(RULES.to_string(), |b| {
        b.iter_with_large_drop(|| {
            let (journal, rules) = Journal::open(dir.path()).unwrap();
            assert_eq!(rules.len(), RULES as usize);
            (journal, rules).1
        });
    });
}

criterion_group!(benches, batches, recovery);
criterion_main!(benches);
