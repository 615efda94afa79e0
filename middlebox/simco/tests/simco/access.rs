//! Owners, groups, access, and notifications. RFC 4540 sections 5.3.19 and 8.9; RFC 3989 section 2.1.5.

use crate::world::*;
use hol_simco::*;

fn world() -> (World, SessionId, SessionId, SessionId) {
    let mut world = World::with_agents(blocking_firewall());
    let [alice, bob, operator] = ["alice", "bob", "operator"].map(|name| world.open(Some(name)));
    (world, alice, bob, operator)
}

/// Sections 8.4 to 8.7: the existence of the rule is checked before the access of the agent.
#[test]
fn another_agents_rule_can_be_neither_seen_nor_changed() {
    let (mut world, alice, bob, _) = world();
    let reserved = world.granted(START, alice, prr(60));
    let pid = reserved.pid;
    for request in [plc(pid, 0), Request::Prs { pid }, Request::Pea { enable: pinhole(60), pid }] {
        assert_eq!(world.refused(bob, request), Refusal::RuleNotAuthorized);
    }
    assert_eq!(world.refused(bob, plc(Pid(99), 0)), Refusal::NoSuchRule);
    assert_eq!(world.ask(START, bob, Request::Prl), Body::Reply(Reply::Prl(vec![])));
}

#[test]
fn an_operator_sees_and_changes_every_rule() {
    let (mut world, alice, bob, operator) = world();
    let pids = [alice, bob].map(|agent| world.granted(START, agent, per(60)).pid);
    assert_eq!(world.ask(START, operator, Request::Prl), Body::Reply(Reply::Prl(pids.to_vec())));
    let Body::Reply(Reply::Pes(rule)) = world.ask(START, operator, Request::Prs { pid: pids[1] }) else {
        panic!("no status");
    };
    assert_eq!(rule.owner, Owner::new("bob"));
    assert_eq!(world.ask(START, operator, plc(pids[0], 0)), Body::Reply(Reply::Prd));
}

/// RFC 3989 section 2.1.5: all members of a group have one owner, so not even the operator may join.
#[test]
fn a_group_takes_rules_of_its_owner_only() {
    let (mut world, alice, bob, operator) = world();
    let gid = Some(world.granted(START, alice, per(60)).gid);
    for agent in [bob, operator] {
        assert_eq!(
            world.refused(agent, Request::Per { enable: pinhole(60), gid }),
            Refusal::GroupNotAuthorized
        );
        let prr = Request::Prr { parameters: two_even_ports(), lifetime: HOUR, gid };
        assert_eq!(world.refused(agent, prr), Refusal::GroupNotAuthorized);
    }
}

/// A reservation that another agent enables keeps its group, and so its owner.
#[test]
fn a_rule_keeps_its_owner_when_the_operator_enables_it() {
    let (mut world, alice, _, operator) = world();
    let reserved = world.granted(START, alice, prr(60));
    let enabled = world.granted(START, operator, Request::Pea { enable: pinhole(60), pid: reserved.pid });
    assert_eq!(enabled.gid, reserved.gid);
    assert_eq!(world.ask(START, alice, plc(reserved.pid, 0)), Body::Reply(Reply::Prd));
}

/// Section 8: "authorized for this transaction" is the first check of each.
#[test]
fn a_transaction_needs_its_right() {
    let rights = ["reserve", "enable", "enable", "disable", "lifetime", "status", "list"];
    let requests = [
        prr(60),
        per(60),
        Request::Pea { enable: pinhole(60), pid: Pid(99) },
        pdr("192.0.2.100:0", 60),
        plc(Pid(99), 60),
        Request::Prs { pid: Pid(99) },
        Request::Prl,
    ];
    for (right, request) in rights.into_iter().zip(requests) {
        let others: Vec<&str> = rights.into_iter().filter(|other| *other != right).collect();
        let policy = Policy::parse(&format!("[agents.x]\nmay = {others:?}")).unwrap();
        let middlebox = Middlebox::new(blocking_firewall(), policy, Box::new(Unauthenticated)).unwrap();
        let mut world = World::new(middlebox);
        let agent = world.open(Some("x"));
        assert_eq!(world.refused(agent, request), Refusal::NotAuthorized, "{right}");
    }
}

/// Section 8.3.2: a rule that the policy does not allow is a failed configuration.
#[test]
fn an_agent_opens_pinholes_for_its_own_hosts_only() {
    let text = "[agents.x]\ninternal = ['192.0.2.0/24']\nexternal = ['198.51.100.0/24', '2001:db8::/32']";
    let policy = Policy::parse(text).unwrap();
    let middlebox = Middlebox::new(Config::firewall(HOUR), policy, Box::new(Unauthenticated)).unwrap();
    let mut world = World::new(middlebox);
    let agent = world.open(Some("x"));
    world.granted(START, agent, per(60));
    let too_wide =
        Enable { internal: AddressTuple { prefix_length: 23, ..pinhole(60).internal }, ..pinhole(60) };
    let elsewhere = Enable { external: external(UDP, "203.0.113.9:0"), ..pinhole(60) };
    for enable in [too_wide, elsewhere] {
        assert_eq!(world.refused(agent, Request::Per { enable, gid: None }), Refusal::ConfigurationFailed);
    }
}

/// Sections 5.3.19 and 8.9: all sessions that may access the rule are notified, except the requesting one.
#[test]
fn every_other_session_with_access_is_notified() {
    let (mut world, alice, bob, operator) = world();
    let backup = world.open(Some("alice"));
    let silent = world.connect(ConnectionInfo::plain(Framing::Messages));
    let reserved = world.granted(START, alice, prr(60));
    let pid = reserved.pid;
    world.ask(START, alice, Request::Pea { enable: pinhole(50), pid });
    world.ask(START, alice, plc(pid, 40));
    world.ask(START, alice, plc(pid, 0));
    assert_eq!(world.refused(alice, plc(pid, 0)), Refusal::NoSuchRule, "a refused request is not announced");
    let all = [(pid, 60), (pid, 50), (pid, 40), (pid, 0)];
    assert_eq!((world.events(backup), world.events(operator)), (all.to_vec(), all.to_vec()));
    for uninvolved in [alice, bob, silent] {
        assert!(world.take_messages(uninvolved).is_empty());
    }
}

/// Section 8.9: all sessions are notified of a change without a request.
#[test]
fn the_owner_is_notified_of_the_end_of_a_lifetime() {
    let (mut world, alice, bob, operator) = world();
    let GrantedRule { pid, .. } = world.granted(START, alice, per(60));
    world.events(operator);
    assert_eq!(world.middlebox.wake_at(), at(60));
    world.advance(at(60));
    assert_eq!((world.events(alice), world.events(operator)), (vec![(pid, 0)], vec![(pid, 0)]));
    assert!(world.take_messages(bob).is_empty());
    let GrantedRule { pid, .. } = world.granted(at(60), alice, per(60));
    assert!(world.middlebox.end_rule(at(61), pid, &mut world.batch));
    assert!(!world.middlebox.end_rule(at(61), pid, &mut world.batch), "the rule has ended before");
    world.release();
    assert_eq!(world.events(alice), [(pid, 0)]);
}

/// A session gets no notifications before it is open, and none after it has ended.
#[test]
fn a_closed_session_is_not_notified() {
    let (mut world, alice, _, operator) = world();
    world.ask(START, operator, Request::St);
    world.take_messages(operator);
    world.granted(START, alice, per(60));
    assert!(world.take_messages(operator).is_empty());
}

/// A middlebox without announcements answers like any other.
#[test]
fn a_middlebox_without_announcements_sends_none() {
    let mut world = World::with_agents(Config { announces: false, ..Config::firewall(HOUR) });
    let (alice, operator) = (world.open(Some("alice")), world.open(Some("operator")));
    world.take_messages(operator);
    let pid = world.granted(START, alice, per(60)).pid;
    world.ask(START, alice, Request::Plc { pid, lifetime: Lifetime(0) });
    assert!(world.take_messages(operator).is_empty());
}

/// RFC 3989 section 2.1.4: requests of several sessions in one batch are executed one after the other.
#[test]
fn a_reply_precedes_notifications_of_later_changes() {
    let (mut world, alice, _, operator) = world();
    for (tid, agent) in [(1, alice), (2, operator)] {
        world.middlebox.receive(
            START,
            agent,
            Message::request(Tid(tid), per(60)).to_bytes(),
            &mut world.batch,
        );
    }
    assert_eq!(world.batch.changes().len(), 2);
    world.release();
    let received = world.take_messages(operator);
    assert!(matches!(
        received[..],
        [Some(Body::Notification(Notification::Are { .. })), Some(Body::Reply(Reply::Per(_)))]
    ));
}
