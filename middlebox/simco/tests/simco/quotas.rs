//! Limits of the resources of one agent, and of the work of one request. RFC 4540 section 4.2.3 has the codes, without
//! their conditions.

use std::collections::BTreeSet;

use crate::world::*;
use hol_base::Time;
use hol_simco::*;

/// Returns a policy of two agents; the second may block, and access all rules.
fn policy(quota: &str) -> Policy {
    let may = "['reserve', 'enable', 'disable', 'lifetime', 'status', 'list']";
    let text = format!("[quota]\n{quota}\n[agents.alice]\n[agents.bob]\nmay = {may}\naccess = 'all'\n");
    Policy::parse(&text).unwrap()
}

fn world_of(config: Config, quota: &str) -> (World, SessionId, SessionId) {
    let middlebox = Middlebox::new(config, policy(quota), Box::new(Unauthenticated)).unwrap();
    let mut world = World::new(middlebox);
    let [alice, bob] = ["alice", "bob"].map(|name| world.open(Some(name)));
    (world, alice, bob)
}

/// Returns as many elements as the rule has ports, and the shape of its external prefix.
fn footprint_of(rule: &Rule) -> Result<Footprint, Refusal> {
    let Some((a0, a3)) = rule.address_tuples() else { return Ok(Footprint::default()) };
    let (first, last) = a0.ports();
    let shapes = vec![ShapeId(a3.prefix_length.into())];
    if last == 65_535 {
        Err(Refusal::ConfigurationFailed)
    } else {
        Ok(Footprint { elements: (last - first + 1) as usize, shapes })
    }
}

fn config_with_footprints() -> Config {
    Config { footprint: Some(footprint_of), max_elements: 100, max_shapes: 8, ..blocking_firewall() }
}

fn ports(count: u16) -> Request {
    let Enable { mut internal, .. } = pinhole(60);
    if let Addresses::Full { port_range, .. } = &mut internal.addresses {
        *port_range = count;
    }
    Request::Per { enable: Enable { internal, ..pinhole(60) }, gid: None }
}

fn from_prefix(length: u8) -> Request {
    let enable = pinhole(60);
    Request::Per {
        enable: Enable { external: AddressTuple { prefix_length: length, ..enable.external }, ..enable },
        gid: None,
    }
}

fn shortages(world: &mut World, id: SessionId, request: Request) -> Vec<OperatorEvent> {
    world.middlebox.receive(START, id, Message::request(Tid(1), request).to_bytes(), &mut world.batch);
    let operator_events = world.batch.operator_events().to_vec();
    world.release();
    operator_events
}

#[test]
fn the_rule_quota_applies_to_each_agent_separately() {
    let (mut world, alice, bob) = world_of(blocking_firewall(), "rules = 2");
    let first = world.granted(START, alice, per(60)).pid;
    world.granted(START, alice, per(60));
    assert_eq!(world.refused(alice, per(60)), Refusal::NoResources);
    world.granted(START, bob, per(60));
    world.ask(START, alice, plc(first, 0));
    world.granted(START, alice, per(60));
    let short = shortages(&mut world, alice, per(60));
    assert!(matches!(short[..], [OperatorEvent::Exhausted(_, ExhaustedResource::Rules)]), "{short:?}");
}

#[test]
fn elements_are_counted_for_the_agent_and_for_all() {
    let (mut world, alice, bob) = world_of(config_with_footprints(), "elements = 60");
    let wide = world.granted(START, alice, ports(50)).pid;
    assert_eq!(world.refused(alice, ports(11)), Refusal::NoResources);
    world.granted(START, alice, ports(10));
    assert_eq!(world.refused(bob, ports(41)), Refusal::NoResources, "the maximum for all agents is 100");
    world.granted(START, bob, ports(40));
    world.ask(START, alice, plc(wide, 30));
    world.ask(START, alice, plc(wide, 0));
    world.granted(START, bob, ports(20));
}

#[test]
fn unenforceable_rules_are_refused_without_a_change() {
    let (mut world, alice, _) = world_of(config_with_footprints(), "");
    let enable = Enable { internal: internal(UDP, "192.0.2.1:0"), ..pinhole(60) };
    assert_eq!(world.refused(alice, Request::Per { enable, gid: None }), Refusal::ConfigurationFailed);
    assert!(world.changes.is_empty());
}

/// A quarter of the shapes is for agents that have at most four.
#[test]
fn a_quarter_of_the_shapes_is_reserved_for_agents_with_few() {
    let (mut world, alice, bob) = world_of(config_with_footprints(), "shapes = 100");
    for length in 1..=6 {
        world.granted(START, alice, from_prefix(length));
    }
    assert_eq!(world.refused(alice, from_prefix(7)), Refusal::NoResources);
    world.granted(START, alice, from_prefix(6));
    world.granted(START, bob, from_prefix(8));
    world.granted(START, bob, from_prefix(9));
    assert_eq!(world.refused(bob, from_prefix(10)), Refusal::NoResources, "the maximum for all agents is 8");
    world.granted(START, bob, from_prefix(1));
}

#[test]
fn the_shape_quota_limits_an_agent() {
    let (mut world, alice, _) = world_of(config_with_footprints(), "shapes = 2");
    let first = world.granted(START, alice, from_prefix(1)).pid;
    world.granted(START, alice, from_prefix(2));
    assert_eq!(world.refused(alice, from_prefix(3)), Refusal::NoResources);
    world.ask(START, alice, plc(first, 0));
    world.granted(START, alice, from_prefix(3));
}

#[test]
fn the_session_quota_limits_an_agent() {
    let (mut world, alice, _) = world_of(blocking_firewall(), "sessions = 1");
    let underlay = ConnectionInfo { agent: Some("alice".into()), ..ConnectionInfo::plain(Framing::Messages) };
    let second = world.connect(underlay.clone());
    assert_eq!(world.refused(second, se()), Refusal::LackOfResources);
    world.middlebox.disconnect(alice);
    let third = world.connect(underlay);
    assert!(matches!(world.ask(START, third, se()), Body::Reply(Reply::Se { .. })));
}

/// Section 8.2.3: protocol 0 is a whole address, 0xFFFF all ports of a protocol. By default no agent gets either.
#[test]
fn whole_addresses_and_ports_have_quotas() {
    let prr = |protocol, port_range| {
        let parameters = PrrParameters { protocol, port_range, ..two_even_ports() };
        Request::Prr { parameters, lifetime: Lifetime(60), gid: None }
    };
    let (mut world, alice, _) = world_of(nat(0), "");
    assert_eq!(world.refused(alice, prr(0, 1)), Refusal::LackOfAddresses);
    assert_eq!(world.refused(alice, prr(UDP, PrrParameters::ALL_PORTS)), Refusal::LackOfAddresses);
    let (mut world, alice, bob) = world_of(nat(0), "addresses = 1\nports = 4");
    world.granted(START, alice, prr(UDP, 4));
    assert_eq!(world.refused(alice, prr(UDP, 2)), Refusal::LackOfPorts);
    world.granted(START, bob, prr(UDP, 2));
    let (mut world, alice, _) = world_of(nat(0), "addresses = 1");
    world.granted(START, alice, prr(0, 1));
}

/// Sections 8.2.1 and 8.4.1: an enabled reservation keeps its addresses, so it takes no more of them.
#[test]
fn a_reservation_that_is_enabled_takes_its_ports_once() {
    let (mut world, alice, _) = world_of(nat(0), "ports = 2");
    let pid = world.granted(START, alice, prr(60)).pid;
    let enable = Enable { internal: internal(UDP, "192.0.2.1:5004"), ..pinhole(60) };
    world.granted(START, alice, Request::Pea { enable, pid });
}

/// A refused rule does not use a PID up.
#[test]
fn a_rule_refused_for_its_quota_uses_no_pid() {
    let (mut world, alice, _) = world_of(config_with_footprints(), "elements = 1");
    (0..100).for_each(|_| assert_eq!(world.refused(alice, ports(2)), Refusal::NoResources));
    assert_eq!(world.granted(START, alice, ports(1)).pid, Pid(65));
}

#[test]
fn quotas_of_an_agent_override_those_of_the_policy() {
    let text = "[quota]\nrules = 7\n[agents.alice]\nquota = { shapes = 3 }\n[agents.bob]\n";
    let policy = Policy::parse(text).unwrap();
    let quota = |name| *policy.quota(policy.agent(name).unwrap());
    assert_eq!(quota("alice"), Quota { rules: 7, shapes: 3, ..Quota::default() });
    assert_eq!(quota("bob"), Quota { rules: 7, ..Quota::default() });
    let error = Policy::parse("[agents.alice]\nquota = { rule = 3 }\n").unwrap_err().to_string();
    assert!(error.contains("rule"), "{error}");
}

/// A quarter of the sessions is for agents that have few, even if one has a large quota.
#[test]
fn a_quarter_of_the_sessions_is_reserved_for_agents_with_few() {
    let (mut world, ..) = world_of(Config { max_sessions: 40, ..blocking_firewall() }, "sessions = 1000");
    let mut open = |agent: &str| {
        let id = world.connect(ConnectionInfo {
            agent: Some(agent.into()),
            ..ConnectionInfo::plain(Framing::Messages)
        });
        matches!(world.ask(START, id, se()), Body::Reply(Reply::Se { .. }))
    };
    assert_eq!((0..100).filter(|_| open("bob")).count(), 28, "28 and the two open ones are 30");
    assert!((0..3).all(|_| open("alice")), "an agent with few sessions gets one");
    assert_eq!((0..100).filter(|_| open("alice")).count(), 0, "an agent with four gets no more");
}

/// Section 8.9: even if many rules end at once, half of a batch is reserved for requests, and no end waits for
/// the notifications of others.
#[test]
fn rules_that_end_together_get_half_of_each_batch_and_are_announced_later() {
    let (mut world, alice, bob) =
        world_of(Config { footprint: Some(footprint_of), ..blocking_firewall() }, "");
    let listeners: Vec<SessionId> = (0..20).map(|_| world.open(Some("bob"))).collect();
    let held: BTreeSet<Pid> = (0..1000).map(|_| world.granted(START, alice, ports(1)).pid).collect();
    listeners.iter().chain([&bob, &alice]).for_each(|id| drop(world.take_messages(*id)));
    world.batch = Batch::default().with_work_limit(1_000_000, 100_000);
    let (mut batches, mut last_end, mut told) = (0, 0, BTreeSet::new());
    while batches == 0 || world.middlebox.wake_at() <= at(60) {
        world.middlebox.advance(at(60), &mut world.batch);
        let work = world.batch.work();
        assert!((1..=520_000).contains(&work), "batch {batches}: {work}");
        if !world.batch.changes().is_empty() {
            last_end = batches;
        }
        let status = Message::request(Tid(1), Request::Prs { pid: Pid(0) }).to_bytes();
        world.middlebox.receive(at(60), alice, status, &mut world.batch);
        world.release();
        assert_eq!(
            world.take_messages(alice).iter().filter(|body| matches!(body, Some(Body::Refusal(_)))).count(),
            1
        );
        for (pid, lifetime) in world.events(listeners[0]) {
            assert!(lifetime == 0 && told.insert(pid), "each end is announced once");
        }
        batches += 1;
    }
    assert_eq!(told, held);
    assert!(last_end <= 1000 / 45 && batches > last_end + 1, "{last_end} of {batches}");
}

/// A failed search for ports counts as work: here for each of 64 addresses.
#[test]
fn a_failed_search_for_ports_counts_as_work() {
    let outside = (1..=64).map(|host| [203, 0, 113, host].into()).collect();
    let (mut world, alice, _) = world_of(Config { outside, ports: 1024..=65_535, ..nat(0) }, "ports = 1000");
    let reservation = PrrParameters { port_range: 60_000, ..two_even_ports() };
    let request = Request::Prr { parameters: reservation, lifetime: Lifetime(60), gid: None };
    for expected in [Refusal::LackOfPorts; 2] {
        let octets = Message::request(Tid(1), request.clone()).to_bytes();
        world.middlebox.receive(START, alice, octets, &mut world.batch);
        assert!(world.batch.work() >= 64 * 500, "{}", world.batch.work());
        world.release();
        assert_eq!(world.take_messages(alice), [Some(Body::Refusal(expected))]);
    }
}

/// Section 8.8: all rules that a disable rule overrules end, a few at a time.
#[test]
fn a_disable_rule_ends_many_rules_a_few_at_a_time() {
    let (mut world, alice, bob) = world_of(blocking_firewall(), "");
    let held: BTreeSet<Pid> = (0..1000).map(|_| world.granted(START, alice, per(60)).pid).collect();
    world.take_messages(bob);
    let request = pdr("198.51.100.7:0", 60);
    let Body::Reply(Reply::Pdr { pid, .. }) = world.ask(START, bob, request) else { panic!("no reply") };
    let first = world.events(bob).len();
    assert!((1..=64).contains(&first), "{first}");
    assert_eq!(world.middlebox.wake_at(), Time::ZERO);
    let other = world.open(Some("bob"));
    world.ask(START, other, plc(pid, 0));
    assert_eq!(
        world.refused(alice, per(60)),
        Refusal::Conflict,
        "the disable rule has ended, but not its sweep"
    );
    let mut turns = 0;
    while world.middlebox.wake_at() == Time::ZERO {
        world.batch.begin_share();
        world.advance(START);
        turns += 1;
    }
    assert!(turns < 20, "{turns}");
    let told: BTreeSet<Pid> =
        world.changes.iter().filter(|c| c.after.is_none()).filter_map(|c| Some(c.before?.pid)).collect();
    assert_eq!(told, &held | &BTreeSet::from([pid]));
    world.granted(START, alice, per(60));
}

/// Section 8.9: the requesting session is notified of all ended rules before the answer to its next request.
#[test]
fn the_next_answer_follows_the_end_of_all_overruled_rules() {
    let (mut world, alice, other) = world_of(blocking_firewall(), "");
    let bob = world
        .connect(ConnectionInfo { agent: Some("bob".to_owned()), ..ConnectionInfo::plain(Framing::Stream) });
    world.ask(START, bob, se());
    for _ in 0..200 {
        world.granted(START, alice, per(60));
    }
    world.take_messages(bob);
    let [block, list] = [(1, pdr("198.51.100.7:0", 60)), (2, Request::Prl)]
        .map(|(tid, request)| Message::request(Tid(tid), request).to_bytes());
    world.receive(START, bob, &[block, list].concat());
    assert!(world.middlebox.is_sweeping_for(bob) && !world.middlebox.is_sweeping_for(alice));
    assert!(
        matches!(world.ask(START, other, Request::Prl), Body::Reply(Reply::Prl(_))),
        "other sessions do not wait"
    );
    while world.middlebox.is_sweeping_for(bob) {
        world.middlebox.resume(START, bob, &mut world.batch);
        world.advance(START);
    }
    world.middlebox.resume(START, bob, &mut world.batch);
    world.release();
    let received = world.take_messages(bob);
    let is_end = |body: &&Option<Body>| matches!(body, Some(Body::Notification(Notification::Are { .. })));
    let answers: Vec<&Option<Body>> = received.iter().filter(|body| !is_end(body)).collect();
    assert_eq!(received.iter().filter(is_end).count(), 200);
    assert!(
        matches!(answers[..], [Some(Body::Reply(Reply::Pdr { .. })), Some(Body::Reply(Reply::Prl(_)))]),
        "{answers:?}"
    );
    assert_eq!(received.last(), answers.last().copied(), "the list follows the notifications");
    let Some(Some(Body::Reply(Reply::Prl(pids)))) = received.last() else { panic!("no list") };
    assert_eq!(pids.len(), 1);
}

/// If the disable rule cannot be applied, no rule that it would have overruled ends.
#[test]
fn an_undone_disable_rule_cancels_its_sweep() {
    let (mut world, alice, bob) = world_of(blocking_firewall(), "");
    for _ in 0..200 {
        world.granted(START, alice, per(60));
    }
    let request = Message::request(Tid(1), pdr("198.51.100.7:0", 60)).to_bytes();
    world.middlebox.receive(START, bob, request, &mut world.batch);
    world.middlebox.undo(&mut world.batch);
    assert!(world.middlebox.redo(START, &mut world.batch));
    world.middlebox.refuse(Refusal::ConfigurationFailed, &mut world.batch);
    world.release();
    world.advance(START);
    assert_eq!(world.middlebox.rules(START).count(), 200);
}

/// Section 8.8: this also holds if the middlebox stopped before all of them had ended.
#[test]
fn overruled_rules_end_after_a_restart() {
    let (mut world, alice, bob) = world_of(blocking_firewall(), "");
    for _ in 0..200 {
        world.granted(START, alice, per(60));
    }
    world.ask(START, bob, pdr("198.51.100.7:0", 60));
    let recorded: Vec<Rule> = world.middlebox.rules(START).copied().collect();
    assert!(recorded.len() > 100);
    let (mut world, ..) = world_of(blocking_firewall(), "");
    recorded.iter().for_each(|rule| world.middlebox.restore(START, *rule, "alice").unwrap());
    assert_eq!(world.middlebox.end_overruled(START).len(), recorded.len() - 1);
    assert_eq!(world.middlebox.rules(START).count(), 1);
}

/// Section 8.7: 8,191 rules fit into a reply. The refusal does not examine each rule.
#[test]
fn a_list_that_is_too_long_is_refused_without_examining_rules() {
    let (mut world, alice, _) = world_of(blocking_firewall(), "");
    for _ in 0..8192 {
        world.granted(START, alice, per(60));
    }
    let list = Message::request(Tid(1), Request::Prl).to_bytes();
    world.middlebox.receive(START, alice, list, &mut world.batch);
    assert!(world.batch.work() < 1000, "{}", world.batch.work());
    world.release();
    let pid = world.middlebox.rules(START).next().unwrap().pid;
    world.ask(START, alice, plc(pid, 0));
    assert!(
        matches!(world.ask(START, alice, Request::Prl), Body::Reply(Reply::Prl(pids)) if pids.len() == 8191)
    );
}

/// Work uses up a share of a batch, regardless of the octets.
#[test]
fn a_session_waits_after_its_share_of_work() {
    let (mut world, ..) = world_of(Config { footprint: Some(footprint_of), ..blocking_firewall() }, "");
    let stream = ConnectionInfo { agent: Some("alice".into()), ..ConnectionInfo::plain(Framing::Stream) };
    let id = world.connect(stream);
    world.ask(START, id, se());
    world.batch = Batch::default().with_work_limit(4_000_000, 1_000_000);
    let requests = Message::request(Tid(1), ports(60)).to_bytes().repeat(10);
    world.middlebox.receive(START, id, requests.into(), &mut world.batch);
    assert_eq!(world.batch.changes().len(), 2, "600,000 each");
    assert!(world.middlebox.has_waiting_messages(id) && !world.batch.is_full());
    for expected in [4, 6, 7] {
        world.batch.begin_share();
        world.middlebox.resume(START, id, &mut world.batch);
        assert_eq!(world.batch.changes().len(), expected);
    }
    assert!(world.batch.is_full());
}

/// The PIDs of rules that ended before a restart are not reused soon after it.
#[test]
fn pids_are_not_reused_soon_after_a_restart() {
    let (mut world, alice, _) = world_of(blocking_firewall(), "");
    for pid in [1, 2, 200, 1 << 24 | 3] {
        world.middlebox.delay_pid_reuse(Pid(pid));
    }
    let granted: Vec<u32> = (0..300).map(|_| world.granted(START, alice, per(60)).pid.0).collect();
    let distinct: BTreeSet<u32> = granted.iter().copied().collect();
    assert_eq!(distinct.len(), granted.len());
    assert!([1, 2, 3, 200, 1 << 24 | 3].iter().all(|pid| !distinct.contains(pid)), "{granted:?}");
}
