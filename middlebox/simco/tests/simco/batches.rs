//! No positive reply before its rule is in force and recorded; a failed request changes nothing. RFC 4540 section 8.1,
//! RFC 3989 section 2.1.4.

use crate::world::*;
use hol_base::{Duration, Time};
use hol_simco::*;
use proptest::prelude::*;

/// Processes requests in one batch; the filter rejects the steps for which `fails` returns true.
fn run(world: &mut World, fails: impl Fn(&[Change]) -> bool) {
    run_at(START, world, fails);
}

fn run_at(now: Time, world: &mut World, mut fails: impl FnMut(&[Change]) -> bool) {
    world.middlebox.undo(&mut world.batch);
    assert_eq!(world.batch.changes(), []);
    while world.middlebox.redo(now, &mut world.batch) {
        if !world.batch.last_step().is_empty() && fails(world.batch.last_step()) {
            world.middlebox.refuse(Refusal::ConfigurationFailed, &mut world.batch);
        }
    }
    world.release();
}

fn submit(world: &mut World, id: SessionId, tid: u32, request: Request) {
    world.middlebox.receive(START, id, Message::request(Tid(tid), request).to_bytes(), &mut world.batch);
}

/// Section 8.3.2: the answer is 0x034A, and nothing changes.
#[test]
fn a_rule_that_the_filter_refuses_does_not_exist() {
    let (mut world, agent) = World::firewall();
    submit(&mut world, agent, 1, per(60));
    assert_eq!(world.batch.changes().len(), 1);
    run(&mut world, |_| true);
    assert_eq!(world.take_messages(agent), [Some(Body::Refusal(Refusal::ConfigurationFailed))]);
    assert!(world.changes.is_empty());
    assert_eq!(world.ask(START, agent, Request::Prl), Body::Reply(Reply::Prl(vec![])));
    assert_eq!(world.middlebox.wake_at(), Time::MAX);
}

/// Requests after the failed one are processed as if it had failed at once: here, nothing is blocked.
#[test]
fn a_refused_step_changes_nothing() {
    let mut world = World::with_agents(blocking_firewall());
    let operator = world.open(Some("operator"));
    let GrantedRule { pid, .. } = world.granted(START, operator, per(60));
    submit(&mut world, operator, 1, pdr("198.51.100.7:0", 60));
    submit(&mut world, operator, 2, plc(pid, 30));
    submit(&mut world, operator, 3, per(60));
    submit(&mut world, operator, 4, Request::St);
    world.take_messages(operator);
    run(&mut world, |changes| matches!(changes[0].after, Some(rule) if rule.gid().is_none()));
    let received = world.take_messages(operator);
    assert_eq!(received[0], Some(Body::Refusal(Refusal::ConfigurationFailed)));
    assert_eq!(received[1], Some(Body::Reply(Reply::Plc { lifetime: Lifetime(30) })));
    assert!(matches!(received[2], Some(Body::Reply(Reply::Per(_)))));
    assert_eq!(received[3..], [Some(Body::Reply(Reply::St)), None]);
}

/// The ports of a refused step are free again.
#[test]
fn a_refused_step_releases_its_ports() {
    let mut world = World::with_agents(nat(0));
    let agent = world.open(Some("alice"));
    for tid in 0..5 {
        submit(&mut world, agent, tid, prr(60));
    }
    run(&mut world, |_| true);
    let refused = Some(Body::Refusal(Refusal::ConfigurationFailed));
    assert_eq!(world.take_messages(agent), vec![refused; 5]);
    for _ in 0..5 {
        world.granted(START, agent, prr(60));
    }
}

/// A refusal costs as much in a batch as alone. When each refused step repeated all steps after it, this took minutes.
#[test]
fn each_refusal_in_a_batch_repeats_only_its_own_step() {
    let (mut world, agent) = World::firewall();
    for tid in 0..10_000 {
        submit(&mut world, agent, tid, per(60));
    }
    let mut attempts = 0;
    run_at(START, &mut world, |_| {
        attempts += 1;
        attempts != 5000
    });
    assert_eq!(attempts, 10_000);
    assert_eq!(world.changes.len(), 1);
    let refused = Some(Body::Refusal(Refusal::ConfigurationFailed));
    let received = world.take_messages(agent);
    assert!(
        received.len() == 10_000 && received.iter().filter(|received| **received != refused).count() == 1
    );
}

/// One rule has ended, another would have ended without the refused step; later requests get the ports that are free
/// then.
#[test]
fn an_expiry_is_repeated_in_order_unless_the_rule_ends_later() {
    let mut world = World::with_agents(nat(0));
    let agent = world.open(Some("alice"));
    let pids = [60, 90, 90, 90, 90].map(|lifetime| world.granted(START, agent, prr(lifetime)).pid);
    submit(&mut world, agent, 1, plc(pids[1], 50));
    for tid in [2, 3] {
        let request = Message::request(Tid(tid), prr(60)).to_bytes();
        world.middlebox.receive(at(60), agent, request, &mut world.batch);
    }
    run_at(at(60), &mut world, |changes| changes[0].before.is_some_and(|rule| rule.pid == pids[1]));
    let received = world.take_messages(agent);
    assert_eq!(received[0], Some(Body::Refusal(Refusal::ConfigurationFailed)));
    assert!(matches!(received[2], Some(Body::Reply(Reply::Prr(_)))), "{received:?}");
    assert_eq!(received[3..], [Some(Body::Refusal(Refusal::LackOfPorts))]);
}

/// The filter's own timeout ends the rule, so a rule whose end the filter rejects has ended all the same.
#[test]
fn an_expired_rule_stays_ended_if_the_filter_refuses() {
    let (mut world, agent) = World::firewall();
    world.granted(START, agent, per(60));
    world.middlebox.advance(at(60), &mut world.batch);
    run_at(at(60), &mut world, |changes| changes[0].after.is_none());
    assert_eq!(world.take_messages(agent).len(), 1, "the end is announced");
    assert_eq!(world.ask(at(60), agent, Request::Prl), Body::Reply(Reply::Prl(vec![])));
}

/// The end was announced in a batch that is undone, and is announced again, once.
#[test]
fn an_end_is_announced_once_if_its_batch_is_repeated() {
    let (mut world, agent) = World::firewall();
    let ending = world.granted(START, agent, per(60)).pid;
    let listener = world.open(None);
    world.middlebox.advance(at(60), &mut world.batch);
    let request = Message::request(Tid(1), per(60)).to_bytes();
    world.middlebox.receive(at(60), agent, request, &mut world.batch);
    for _ in 0..2 {
        world.middlebox.undo(&mut world.batch);
        while world.middlebox.redo(at(60), &mut world.batch) {}
    }
    world.release();
    let events: Vec<(Pid, u32)> = world.events(listener);
    assert!(matches!(events[..], [(first, 0), (_, 60)] if first == ending), "{events:?}");
}

/// Restored rules keep PID, group, owner, ports and end; rules that expired meanwhile end now.
#[test]
fn rules_are_restored_after_a_restart() {
    let mut before = World::with_agents(nat(0));
    let agent = before.open(Some("alice"));
    let granted: Vec<GrantedRule> =
        [10, 60, 70].map(|lifetime| before.granted(START, agent, prr(lifetime))).to_vec();
    let rules: Vec<Rule> = before.middlebox.rules(START).copied().collect();
    assert_eq!(rules.len(), 3);

    let mut world = World::with_agents(nat(0));
    for (rule, owner) in rules.iter().zip(["alice", "alice", "gone"]) {
        assert_eq!(world.middlebox.restore(START, *rule, owner), Ok(()));
        assert_eq!(world.middlebox.restore(START, *rule, owner), Err(RestoreError::PidInUse(rule.pid)));
        let pid = Pid(rule.pid.0 + 100);
        assert_eq!(
            world.middlebox.restore(START, Rule { pid, ..*rule }, owner),
            Err(RestoreError::AddressesInUse(pid))
        );
        let of_bob = Err(RestoreError::GroupOfAnother(pid, rule.gid().unwrap()));
        assert_eq!(world.middlebox.restore(START, Rule { pid, ..*rule }, "bob"), of_bob);
    }
    let [alice, operator] = ["alice", "operator"].map(|name| world.open(Some(name)));
    world.advance(at(20));
    assert_eq!(world.events(operator)[..], [(granted[0].pid, 0)][..]);
    assert_eq!(world.ask(at(20), alice, Request::Prl), Body::Reply(Reply::Prl(vec![granted[1].pid])));
    assert_eq!(world.refused(alice, plc(granted[2].pid, 0)), Refusal::RuleNotAuthorized);
    assert_eq!(
        world.ask(at(20), operator, plc(granted[2].pid, 9)),
        Body::Reply(Reply::Plc { lifetime: Lifetime(9) })
    );
    let third = world.granted(at(20), alice, prr(60));
    assert!(third.outside != granted[1].outside && third.outside != granted[2].outside);
    assert!(granted.iter().all(|old| old.pid != third.pid && old.gid != third.gid));
}

/// The recorded end is from a clock that has been set back since; without a limit the rule would last for
/// decades.
#[test]
fn a_restored_rule_lasts_at_most_the_maximum_lifetime() {
    let (mut before, agent) = World::firewall();
    before.granted(START, agent, per(60));
    let rule = *before.middlebox.rules(START).next().unwrap();
    let (mut world, _) = World::firewall();
    let longest = world.middlebox.capabilities().max_lifetime;
    world.middlebox.restore(START, Rule { expires: at(1_766_019_600), ..rule }, "").unwrap();
    assert_eq!(world.middlebox.rules(START).next().unwrap().remaining(START), longest);
}

#[derive(Debug, Clone)]
enum Act {
    Ask(usize, Request),
    Pass(u64),
    Reconnect(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0usize..3, request()).prop_map(|(agent, request)| Act::Ask(agent, request)),
        2 => (0u64..40).prop_map(Act::Pass),
        1 => (0usize..3).prop_map(Act::Reconnect),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    let enable = (0u8..4, 0u32..60).prop_map(|(host, lifetime)| Enable {
        internal: internal(UDP, &format!("10.0.0.{host}:5004")),
        external: external(UDP, &format!("198.51.100.{host}:6000")),
        ..pinhole(lifetime)
    });
    let (pid, gid) = (|| (0u32..12).prop_map(Pid), prop::option::of((0u32..6).prop_map(Gid)));
    prop_oneof![
        4 => (enable.clone(), gid.clone()).prop_map(|(enable, gid)| Request::Per { enable, gid }),
        2 => (enable, pid()).prop_map(|(enable, pid)| Request::Pea { enable, pid }),
        3 => (0u32..60, gid).prop_map(|(lifetime, gid)| Request::Prr {
            parameters: two_even_ports(), lifetime: Lifetime(lifetime), gid
        }),
        1 => (0u8..4, 0u32..60).prop_map(|(host, lifetime)| pdr(&format!("198.51.100.{host}:0"), lifetime)),
        3 => (pid(), 0u32..60).prop_map(|(pid, lifetime)| plc(pid, lifetime)),
        1 => pid().prop_map(|pid| Request::Prs { pid }),
        1 => Just(Request::Prl),
    ]
}

/// Returns the rules after these changes: the content of a filter that applied them.
fn rules_in_filter(changes: &[Change]) -> Vec<Rule> {
    let mut held = std::collections::BTreeMap::new();
    for change in changes {
        let pid = change.before.or(change.after).expect("a change has a rule before or after it").pid;
        let before = match change.after {
            Some(after) => held.insert(pid, after),
            None => held.remove(&pid),
        };
        assert_eq!(before, change.before, "`before` is the current rule");
    }
    held.into_values().collect()
}

fn check_invariants(world: &World, now: Time) {
    let mut rules: Vec<Rule> = world.middlebox.rules(now).copied().collect();
    rules.sort_by_key(|rule| rule.pid);
    let held: Vec<Rule> =
        rules_in_filter(&world.changes).into_iter().filter(|rule| rule.is_in_force(now)).collect();
    assert_eq!(held, rules, "filter and middlebox have the same rules");
    for (at, rule) in rules.iter().enumerate() {
        for other in &rules[at + 1..] {
            assert!(rule.gid().is_none() || rule.gid() != other.gid() || rule.owner == other.owner);
            if let (Some(a), Some(b)) = (rule.binding().outside, other.binding().outside) {
                assert!(!a.overlaps(&b), "no port is assigned twice");
            }
            if let (Action::Enable { .. }, Action::Disable { .. })
            | (Action::Disable { .. }, Action::Enable { .. }) = (rule.action, other.action)
            {
                let ((a0, a3), (b0, b3)) = (rule.address_tuples().unwrap(), other.address_tuples().unwrap());
                assert!(!(a0.overlaps(&b0) && a3.overlaps(&b3)), "no enable rule overlaps a disable rule");
            }
        }
    }
    assert!(world.middlebox.wake_at() > now, "nothing is overdue");
}

proptest! {
    /// This holds for all requests of agents, and all rejections of the filter.
    #[test]
    fn filter_and_middlebox_always_have_the_same_rules(
        acts in prop::collection::vec(act(), 1..60),
        translates in any::<bool>(),
        batch_size in 1usize..6,
        failing in 0u64..8,
    ) {
        let mut config = if translates { nat(Capabilities::PDR) } else { blocking_firewall() };
        config.capabilities.flags |= Capabilities::INTERNAL_WILDCARD | Capabilities::EXTERNAL_WILDCARD;
        let mut world = World::with_agents(config);
        let names = ["alice", "bob", "operator"];
        let mut agents = names.map(|name| world.open(Some(name)));
        let (mut now, mut waiting, mut turn) = (START, 0, 0u64);
        for (tid, act) in (0..).zip(acts) {
            match act {
                Act::Ask(agent, request) => {
                    let octets = Message::request(Tid(tid), request).to_bytes();
                    world.middlebox.receive(now, agents[agent], octets, &mut world.batch);
                    waiting += 1;
                    if waiting < batch_size {
                        continue;
                    }
                }
                Act::Pass(seconds) => {
                    now += Duration::from_secs(seconds);
                    world.middlebox.advance(now, &mut world.batch);
                }
                Act::Reconnect(agent) => {
                    world.middlebox.disconnect(agents[agent]);
                    agents[agent] = world.open(Some(names[agent]));
                }
            }
            waiting = 0;
            run_at(now, &mut world, |changes| {
                turn += 1;
                turn % 8 < failing && changes.iter().any(|change| change.after.is_some())
            });
            world.advance(now);
            check_invariants(&world, now);
        }
    }
}
