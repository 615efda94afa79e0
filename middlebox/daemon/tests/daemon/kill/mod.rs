//! A daemon that is killed at random moments while agents change rules, and started again.
//!
//! `HOL_KILLS` is the number of kills, by default 20. Some of the daemons first run out of disk space.

mod daemon;
mod disk;
mod expected_rules;
mod kernel;
mod load;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use hol_base::{Rng, Seed};
use hol_journal::Journal;
use hol_simco::Pid;

use daemon::{Daemon, Filter};
use disk::Disk;
use expected_rules::{ExpectedRules, KnownRule};
use load::Agent;

use crate::namespace::in_a_namespace;

const AGENTS: usize = 4;
/// Maximum number of answers between two kills.
const MAX_ANSWERS: u64 = 400;
/// Maximum number of octets until the disk is full.
const MAX_SPACE: u64 = 10_000;
/// Maximum delay in µs before the kill, and after the start.
const MAX_DELAY: u64 = 10_000;

fn kills() -> u64 {
    std::env::var("HOL_KILLS").map_or(20, |kills| kills.parse().expect("HOL_KILLS is a number"))
}

/// The test that also runs the daemon, in another process.
const SERVES: &str = "kill::no_acknowledged_rule_is_lost_when_the_daemon_is_killed";

#[test]
fn no_acknowledged_rule_is_lost_when_the_daemon_is_killed() {
    if !daemon::has_served() {
        kill_repeatedly(Filter::None);
    }
}

#[test]
#[ignore = "needs root and network namespaces (util-linux, iproute2, nftables)"]
fn the_packet_filter_has_the_acknowledged_rules_after_each_kill() {
    if in_a_namespace("kill::the_packet_filter_has_the_acknowledged_rules_after_each_kill") {
        kill_repeatedly(Filter::Nftables);
    }
}

fn kill_repeatedly(filter: Filter) {
    // The test with nftables has root and a mount namespace.
    let disk = if filter == Filter::None { Disk::shared() } else { Disk::own() };
    let state = disk.state();
    let mut rng = Seed(7626).derive(if filter == Filter::None { "none" } else { "nftables" }).rng();
    let mut expected = ExpectedRules::default();
    let mut flows = 0;
    for round in 0..kills() {
        if round % 8 == 7 {
            // Some are killed while they still read the journal.
            let daemon = Daemon::begin(&state, filter);
            pause(&mut rng);
            daemon.kill();
        }
        let daemon = Daemon::begin(&state, filter).ready();
        // Some have started on a full disk.
        let held = daemon.rules();
        disk.empty();
        expected.compare(&held).unwrap_or_else(|wrong| panic!("after {round} kills: {wrong}"));
        if filter == Filter::Nftables {
            assert_eq!(
                kernel::flows(),
                flows_of(&held),
                "after {round} kills: in the kernel, and in the daemon"
            );
        }
        // A third of the daemons run out of space in the middle of a record before they are killed.
        if round % 3 == 2 {
            disk.fill(&daemon, rng.below(MAX_SPACE));
        }
        run(daemon, &mut expected, &mut flows, &mut rng);
        if round % 2 == 0 {
            let recorded = recorded(&state);
            expected.compare(&recorded).unwrap_or_else(|wrong| panic!("kill {round}: recorded: {wrong}"));
        }
    }
    assert!(expected.refused > 0, "no disk was full");
}

/// Lets agents change rules until some requests are answered and the daemon is killed.
fn run(daemon: Daemon, expected: &mut ExpectedRules, flows: &mut u32, rng: &mut Rng) {
    let (answered, answers) = mpsc::channel();
    let shares = expected.split(AGENTS);
    let agents: Vec<_> = shares
        .into_iter()
        .map(|share| {
            *flows += MAX_ANSWERS as u32 + load::WINDOW as u32;
            let agent = Agent::new(share, *flows, rng.next_u64());
            let (server, answered) = (daemon.server(), answered.clone());
            thread::spawn(move || agent.load(&server, &answered))
        })
        .collect();
    drop(answered);
    // The agents end only if the daemon does.
    let answer_count = 1 + rng.below(MAX_ANSWERS) as usize;
    assert_eq!(
        answers.iter().take(answer_count).count(),
        answer_count,
        "the daemon ended before it was killed"
    );
    pause(rng);
    daemon.kill();
    agents.into_iter().for_each(|agent| expected.merge(agent.join().unwrap()));
}

/// Waits for a random time.
fn pause(rng: &mut Rng) {
    thread::park_timeout(Duration::from_micros(rng.below(MAX_DELAY)));
}

fn recorded(state: &Path) -> BTreeMap<Pid, KnownRule> {
    let (_, recorded) = Journal::open(state).unwrap();
    recorded.iter().map(|recorded| (recorded.rule.pid, KnownRule::from_record(&recorded.rule))).collect()
}

fn flows_of(held: &BTreeMap<Pid, KnownRule>) -> BTreeSet<u32> {
    held.values().map(|known| known.flow).collect()
}
