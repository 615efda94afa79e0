//! The cost of adding and removing rules, compared with `nft -f` with the same rules; and of a million rules.
//! Runs in its own network namespace, so it needs root; the comparison needs `nft`.

use std::fmt::Write;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hol_base::{Duration, Time};
use hol_filter::{Config, Nftables, PacketFilter};
use hol_simco::{
    Action, AddressTuple, AgentId, Binding, Change, Direction, Gid, Location, PerParameters, Pid, PortParity,
    Rule,
};
use nix::sched::{CloneFlags, unshare};

const UDP: u8 = 17;
const NOW: Time = Time::from_nanos(1_700_000_000_000_000_000);
/// Number of rules in force while others are added and removed.
const EXISTING_RULES: u32 = 10_000;

/// Returns the change that adds the `n`th pinhole for RTP, with a lifetime of a minute.
fn begin(n: u32) -> Change {
    let host = |net: u32| format!("{net}.{}.{}.1:5004", n >> 8 & 255, n & 255).parse().unwrap();
    let action = Action::Enable {
        gid: Gid(n),
        parameters: PerParameters { parity: PortParity::Any, direction: Direction::Inbound },
        internal: AddressTuple::of_host(Location::Internal, UDP, host(10 + (n >> 16))),
        external: AddressTuple::of_host(Location::External, UDP, host(100)),
        binding: Binding::default(),
    };
    let expires = NOW + Duration::from_secs(3600);
    Change { before: None, after: Some(Rule { pid: Pid(n), owner: AgentId::NOBODY, expires, action }) }
}

/// Returns the same changes as a script for `nft -f`, to compare with.
fn script(command: &str, rules: std::ops::Range<u32>) -> String {
    let mut script = format!("{command} element inet simco inbound4_proto_saddr_sport_daddr_dport {{ ");
    let timeout = if command == "add" { " timeout 1h" } else { "" };
    for n in rules {
        let (a, b, net) = (n >> 8 & 255, n & 255, 10 + (n >> 16));
        write!(script, "udp . 100.{a}.{b}.1 . 5004 . {net}.{a}.{b}.1 . 5004{timeout}, ").unwrap();
    }
    script + "}\n"
}

fn nft(script: &str) {
    let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    nft.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success(), "nft -f");
}

fn rules(c: &mut Criterion) {
    let has_nft = Command::new("nft").arg("--version").stdout(Stdio::null()).status().is_ok();
    for size in [1, 64, 1024] {
        let mut group = c.benchmark_group(format!("a rule begins and ends, {size} at once"));
        group.throughput(Throughput::Elements(u64::from(size)));
        let batch: Vec<Change> = (EXISTING_RULES..EXISTING_RULES + size).map(begin).collect();
        let ends: Vec<Change> = batch.iter().map(|change| change.inverse()).collect();
        for name in ["hol-filter, watching others", "hol-filter"] {
            let Some(mut filter) = filter() else { return };
            if name != "hol-filter" {
                filter.watch().unwrap();
            }
            filter.apply(NOW, &(0..EXISTING_RULES).map(begin).collect::<Vec<_>>()).unwrap();
            group.bench_function(name, |b| {
                b.iter(|| {
                    filter.apply(NOW, &batch).unwrap();
                    filter.apply(NOW, &ends).unwrap();
                });
            });
        }
        // The filter is gone, so its table has no owner.
        if has_nft {
            let [add, delete] =
                ["add", "delete"].map(|command| script(command, EXISTING_RULES..EXISTING_RULES + size));
            group.sample_size(20).bench_function("nft -f", |b| {
                b.iter(|| {
                    nft(&add);
                    nft(&delete);
                });
            });
        }
    }
}

/// Measures the memory that a million elements need in this process and in the kernel.
fn million_rules(c: &mut Criterion) {
    const RULES: u32 = 1_000_000;
    const BATCH: u32 = 1000;
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let Some(mut filter) = filter() else { return };
    let before = [process_memory(), kernel_memory()];
    for first in (0..RULES).step_by(BATCH as usize) {
        filter.apply(NOW, &(first..first + BATCH).map(begin).collect::<Vec<_>>()).unwrap();
    }
    let [here, there] = [process_memory() - before[0], kernel_memory() - before[1]];
    println!("{RULES} rules: {here} MB in the process, {there} MB in the kernel");
    c.bench_function("a rule begins and ends, among a million", |b| {
        b.iter(|| {
            filter.apply(NOW, &[begin(RULES)]).unwrap();
            filter.apply(NOW, &[begin(RULES).inverse()]).unwrap();
        });
    });
}

/// Opens a filter in a new network namespace; `None` if that is not permitted.
fn filter() -> Option<Nftables> {
    if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
        eprintln!("skipped: no network namespace: {error}");
        return None;
    }
    Some(Nftables::open(Config::new()).unwrap())
}

/// Returns the memory of this process in megabytes.
fn process_memory() -> u64 {
    megabytes("/proc/self/status", &["VmRSS:"])
}

/// Returns the memory of the kernel in megabytes.
fn kernel_memory() -> u64 {
    megabytes("/proc/meminfo", &["SUnreclaim:", "VmallocUsed:"])
}

fn megabytes(file: &str, keys: &[&str]) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let kilobytes = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
    text.lines().filter(|line| keys.iter().any(|key| line.starts_with(key))).map(kilobytes).sum::<u64>()
        / 1024
}

criterion_group!(benches, rules, million_rules);
criterion_main!(benches);
