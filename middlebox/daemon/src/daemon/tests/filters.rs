//! Packet filters that fail or change unexpectedly.

use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};

use hol_base::{Duration, Time};
use hol_filter::{Corrections, FilterError, PacketFilter};
use hol_journal::Journal;
use hol_simco::{Action, Change, Lifetime, Middlebox, Pid, Policy, Refusal, Reply, Request, Rule};

use super::super::Daemon;
use super::world::{Plan, World, per};

/// Refuses rules with certain ports, and all changes while it is broken.
#[derive(Clone, Default)]
struct FailingFilter(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    is_broken: bool,
    /// The error of all changes.
    failure: Option<fn() -> FilterError>,
    is_busy: bool,
    is_protected: bool,
    has_foreign_change: bool,
    attempts: usize,
    is_reconciled: bool,
}

const BAD: u32 = 13;
const BROKEN: FilterError = FilterError::NotPermitted;

fn is_bad(change: &Change) -> bool {
    matches!(change.after.map(|rule| rule.action),
        Some(Action::Enable { internal, .. }) if internal.ports().0 == BAD)
}

impl PacketFilter for FailingFilter {
    fn apply(&mut self, _: Time, changes: &[Change]) -> Result<(), FilterError> {
        let mut state = self.0.lock().unwrap();
        state.attempts += 1;
        if state.is_broken {
            return Err(BROKEN);
        }
        if let Some(failure) = state.failure {
            return Err(failure());
        }
        let bad: Vec<usize> =
            changes.iter().enumerate().filter(|(_, change)| is_bad(change)).map(|(index, _)| index).collect();
        if !bad.is_empty() {
            let (is_transient, source) = (state.is_busy, std::io::ErrorKind::Other.into());
            return Err(FilterError::Refused { changes: bad, is_transient, source });
        }
        for change in changes {
            change.before.iter().for_each(|before| state.rules.retain(|rule| rule != before));
            state.rules.extend(change.after);
        }
        Ok(())
    }

    fn reconcile(&mut self, _: Time, rules: &[Rule]) -> Result<Corrections, FilterError> {
        let mut state = self.0.lock().unwrap();
        if state.is_broken {
            return Err(BROKEN);
        }
        state.rules = rules.to_vec();
        state.is_reconciled = true;
        Ok(Corrections::default())
    }

    fn is_protected(&self) -> bool {
        self.0.lock().unwrap().is_protected
    }

    fn has_foreign_change(&mut self) -> bool {
        std::mem::take(&mut self.0.lock().unwrap().has_foreign_change)
    }
}

impl FailingFilter {
    fn world(&self) -> World {
        Plan { filter: Box::new(self.clone()), ..Plan::default() }.open()
    }

    fn world_with(&self, journal: Journal) -> World {
        Plan { filter: Box::new(self.clone()), journal: Some(journal), ..Plan::default() }.open()
    }

    fn pids(&self) -> Vec<Pid> {
        self.0.lock().unwrap().rules.iter().map(|rule| rule.pid).collect()
    }
}

/// A program that starts a middlebox and waits until it listens may assume that only rules let packets pass.
#[test]
fn listening_is_reported_after_the_filter_has_its_rules() {
    let (stop, stopped) = UnixStream::pair().unwrap();
    drop(stop);
    let daemon =
        |filter: &FailingFilter| Plan { filter: Box::new(filter.clone()), ..Plan::default() }.daemon();
    let filter = FailingFilter::default();
    let mut was_ready = false;
    let on_ready = |_: &Daemon| was_ready = filter.0.lock().unwrap().is_reconciled;
    daemon(&filter).run(&stopped, on_ready).unwrap();
    assert!(was_ready);

    let broken = FailingFilter::default();
    broken.0.lock().unwrap().is_broken = true;
    daemon(&broken).run(&stopped, |_| panic!("nothing is filtered")).unwrap_err();
}

#[test]
fn only_requests_that_the_filter_rejects_are_refused() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    let mut octets = Vec::new();
    for port in [11, 12, 13, 14, 13, 15] {
        agent.agent.ask(per(port, 60)).unwrap().append_to(&mut octets);
    }
    agent.write(&octets);
    let answers: Vec<_> = (0..6).map(|_| agent.answer(world)).collect();
    let refused: Vec<bool> = answers.iter().map(|a| *a == Err(Refusal::ConfigurationFailed)).collect();
    assert_eq!(refused, [false, false, true, false, true, false]);
    let granted = answers.iter().flatten().map(|reply| match reply {
        Reply::Per(granted) => granted.pid,
        other => panic!("{other:?}"),
    });
    assert_eq!(filter.pids(), granted.collect::<Vec<_>>(), "exactly the granted rules are in force");
    assert_eq!(agent.list(world), filter.pids());
}

/// Each transaction that the kernel aborts costs a grace period, in which no agent is served.
#[test]
fn a_batch_with_many_rejected_requests_is_repeated_once() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    let ports = (0..1000).map(|n| if n % 2 == 0 { 13 } else { 5004 });
    let requests: Vec<_> = ports.map(|port| agent.agent.ask(per(port, 60)).unwrap().to_bytes()).collect();
    agent.write(&requests.concat());
    let answers: Vec<_> = (0..1000).map(|_| agent.answer(world)).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 500);
    assert_eq!(filter.pids().len(), 500);
    let (attempts, turns) = (filter.0.lock().unwrap().attempts, world.daemon.metrics.lock().work.total());
    assert!(attempts as u64 <= 2 * turns, "{attempts} in {turns} turns");
}

#[test]
fn a_temporary_filter_failure_is_a_lack_of_resources() {
    let filter = FailingFilter::default();
    filter.0.lock().unwrap().is_busy = true;
    let world = &mut filter.world();
    let mut agent = world.agent();
    assert_eq!(agent.enable(world, 13, 60), Err(Refusal::NoResources));
    agent.enable(world, 14, 60).unwrap();
}

/// None of these failures is the fault of a request: the kernel lacks memory for a set, its socket fails, or
/// another program has deleted the table.
#[test]
fn a_failure_that_may_pass_is_a_lack_of_resources_for_all() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    let failures: [fn() -> FilterError; 3] = [
        || FilterError::Busy(std::io::ErrorKind::ResourceBusy.into()),
        || FilterError::Socket(std::io::ErrorKind::OutOfMemory.into()),
        || FilterError::TableChanged { table: "simco".into() },
    ];
    for failure in failures {
        filter.0.lock().unwrap().failure = Some(failure);
        assert_eq!(agent.enable(world, 14, 60), Err(Refusal::NoResources), "{}", failure());
    }
    filter.0.lock().unwrap().failure = None;
    agent.enable(world, 14, 60).unwrap();
}

/// An abort of the kernel may take its time. Then the rest of the batch is not tried again, and may succeed later.
#[test]
fn a_rejected_batch_is_not_repeated_when_its_time_is_over() {
    let filter = FailingFilter::default();
    let world =
        &mut Plan { filter: Box::new(filter.clone()), max_repeat_time: Duration::ZERO, ..Plan::default() }
            .open();
    let mut agent = world.agent();
    let requests = [11, 13, 14].map(|port| agent.agent.ask(per(port, 60)).unwrap().to_bytes());
    agent.write(&requests.concat());
    let answers: Vec<_> = (0..3).map(|_| agent.answer(world).unwrap_err()).collect();
    assert_eq!(answers, [Refusal::NoResources, Refusal::ConfigurationFailed, Refusal::NoResources]);
    assert_eq!(filter.0.lock().unwrap().attempts, 1);
}

/// The filter is not tried once for each request.
#[test]
fn a_broken_filter_costs_a_batch_few_attempts() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    filter.0.lock().unwrap().is_broken = true;
    let requests: Vec<_> = (0..50).map(|_| agent.agent.ask(per(5004, 60)).unwrap().to_bytes()).collect();
    agent.write(&requests.concat());
    assert!((0..50).all(|_| agent.answer(world) == Err(Refusal::ConfigurationFailed)));
    let (attempts, turns) = (filter.0.lock().unwrap().attempts, world.daemon.metrics.lock().work.total());
    assert!(attempts as u64 <= turns, "{attempts} in {turns} turns");
}

#[test]
fn a_batch_is_one_transaction_of_the_filter() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agents = [world.agent(), world.agent(), world.agent()];
    for agent in &mut agents {
        let requests = [per(1, 60), per(2, 60)].map(|request| agent.agent.ask(request).unwrap().to_bytes());
        agent.write(&requests.concat());
    }
    assert!(world.turn());
    assert_eq!(filter.0.lock().unwrap().attempts, 1);
    assert_eq!(filter.pids().len(), 6);
}

#[test]
fn a_filter_that_could_not_end_a_rule_is_repaired_later() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    let short = agent.enable(world, 11, 5).unwrap();
    let long = agent.enable(world, 12, 3600).unwrap();
    filter.0.lock().unwrap().is_broken = true;
    world.skip(Duration::from_secs(7));
    assert_eq!((agent.list(world), filter.pids()), (vec![long], vec![short, long]));
    let delete = Request::Plc { pid: long, lifetime: Lifetime(0) };
    assert_eq!(agent.ask(world, delete), Err(Refusal::ConfigurationFailed));
    filter.0.lock().unwrap().is_broken = false;
    world.skip(Duration::from_secs(2));
    assert_eq!(filter.pids(), [long]);
}

#[test]
fn foreign_changes_of_the_filter_are_undone_within_a_second() {
    let filter = FailingFilter::default();
    let world = &mut filter.world();
    let mut agent = world.agent();
    let pid = agent.enable(world, 11, 3600).unwrap();
    for _ in 0..2 {
        *filter.0.lock().unwrap() = State { has_foreign_change: true, ..State::default() };
        world.skip(Duration::from_secs(1));
        assert_eq!(filter.pids(), [pid]);
    }
}

#[test]
fn an_owned_filter_is_not_checked_periodically() {
    let filter = FailingFilter::default();
    filter.0.lock().unwrap().is_protected = true;
    let world = &mut filter.world();
    world.settle();
    assert_eq!(world.daemon.time_to_next_action(), None);
}

/// The addresses of the ended rule may belong to another rule by then, and a journal with both could restore only one.
#[test]
fn an_end_that_the_filter_rejected_is_recorded_later() {
    let directory = tempfile::tempdir().unwrap();
    let filter = FailingFilter::default();
    let mut world = filter.world_with(Journal::open(directory.path()).unwrap().0);
    let mut agent = world.agent();
    agent.enable(&mut world, 5004, 1).unwrap();
    filter.0.lock().unwrap().is_broken = true;
    world.skip(Duration::from_secs(2));
    filter.0.lock().unwrap().is_broken = false;
    let lasting = agent.enable(&mut world, 5006, 3600).unwrap();
    drop(world);
    let (_, recorded) = Journal::open(directory.path()).unwrap();
    assert_eq!(recorded.iter().map(|recorded| recorded.rule.pid).collect::<Vec<_>>(), [lasting]);
}

/// No reply waits for the mark, but it is on the disk a second later.
#[test]
fn the_mark_of_the_journal_is_synced_a_second_later() {
    let directory = tempfile::tempdir().unwrap();
    let mut world = FailingFilter::default().world_with(Journal::open(directory.path()).unwrap().0);
    let mut agent = world.agent();
    assert!(!world.daemon.rule_store.needs_mark_sync());
    agent.enable(&mut world, 5004, 3600).unwrap();
    assert!(world.daemon.rule_store.needs_mark_sync());
    world.skip(Duration::from_secs(1));
    assert!(!world.daemon.rule_store.needs_mark_sync());
}

#[test]
fn metrics_count_answers_batches_and_rules() {
    let mut world = Plan::default().open();
    let mut agent = world.agent();
    let pid = agent.enable(&mut world, 5004, 3600).unwrap();
    agent.enable(&mut world, 5006, 3600).unwrap();
    agent.ask(&mut world, Request::Plc { pid, lifetime: Lifetime(0) }).unwrap();
    agent.ask(&mut world, Request::Prs { pid }).unwrap_err();
    let text = world.daemon.metrics.text();
    for line in [
        "simco_requests_total{type=\"PER\",result=\"ok\"} 2",
        "simco_requests_total{type=\"PRS\",result=\"0x0343\"} 1",
        "simco_connections 1",
        "simco_rules 1",
        "simco_batch_changes_count 3",
        "simco_filter_seconds_count 3",
        "simco_failures_total 0",
    ] {
        assert!(text.lines().any(|written| written == line), "{line} is not in\n{text}");
    }
}

#[test]
fn gauges_of_agents_are_up_to_date_within_a_second() {
    let policy = Policy::parse("anonymous = 'phone'\n[agents.phone]\n").unwrap();
    let mut world = Plan { policy, ..Plan::default() }.open();
    world.daemon.gauges_at = Some(Time::ZERO);
    let mut agent = world.agent();
    agent.enable(&mut world, 5004, 3600).unwrap();
    world.skip(Duration::from_secs(1));
    let lines = ["simco_agent_rules{agent=\"phone\"} 1", "simco_agent_sessions{agent=\"phone\"} 1"];
    let text = world.daemon.metrics.text();
    assert!(lines.iter().all(|expected| text.lines().any(|line| line == *expected)), "{text}");
    drop(agent);
    world.settle();
    world.skip(Duration::from_secs(1));
    let text = world.daemon.metrics.text();
    assert!(text.contains("simco_agent_sessions{agent=\"phone\"} 0\n"), "{text}");
}

#[test]
fn timed_out_connections_are_not_counted_as_open() {
    let mut world = Plan::default().open();
    let _silent = world.connect();
    world.settle();
    assert_eq!(world.daemon.metrics.lock().connections, 1);
    world.skip(Middlebox::TIMEOUT);
    world.skip(Duration::from_secs(3));
    assert_eq!(world.daemon.metrics.lock().connections, 0);
}
