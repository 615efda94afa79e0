//! Replacing the policy while sessions and rules continue.

use crate::world::*;
use hol_simco::*;

fn world() -> (World, SessionId, SessionId, SessionId) {
    let mut world = World::with_agents(blocking_firewall());
    let [alice, bob, operator] = ["alice", "bob", "operator"].map(|name| world.open(Some(name)));
    (world, alice, bob, operator)
}

fn replace_policy(world: &mut World, policy: &str) {
    let policy = Policy::parse(policy).unwrap();
    world.middlebox.replace_policy(policy, Box::new(Unauthenticated)).unwrap();
}

/// The names are in another order, so that their identifiers would change.
#[test]
fn new_rights_apply_to_the_next_request_and_rules_keep_their_owners() {
    let (mut world, alice, bob, operator) = world();
    let [of_alice, of_bob] = [alice, bob].map(|agent| world.granted(START, agent, per(60)).pid);
    replace_policy(
        &mut world,
        "[agents.aaron]\n[agents.alice]\nmay = ['list']\n[agents.operator]\naccess = 'all'",
    );
    assert_eq!(world.refused(alice, per(60)), Refusal::NotAuthorized);
    assert_eq!(world.ask(START, alice, Request::Prl), Body::Reply(Reply::Prl(vec![of_alice])));
    assert_eq!(world.refused(bob, Request::Prl), Refusal::NotAuthorized, "the new policy has no such agent");
    assert_eq!(world.ask(START, operator, Request::Prl), Body::Reply(Reply::Prl(vec![of_alice, of_bob])));
    let Body::Reply(Reply::Pes(rule)) = world.ask(START, operator, Request::Prs { pid: of_bob }) else {
        panic!("the rule remains");
    };
    assert_eq!(rule.owner, Owner::new("bob"));
    let aaron = world.open(Some("aaron"));
    assert_eq!(world.ask(START, aaron, Request::Prl), Body::Reply(Reply::Prl(vec![])));
    replace_policy(&mut world, POLICY);
    assert_eq!(
        world.ask(START, bob, plc(of_bob, 0)),
        Body::Reply(Reply::Prd),
        "the agent has its rights again"
    );
}

#[test]
fn notifications_follow_the_access_of_a_new_policy() {
    let (mut world, alice, bob, operator) = world();
    replace_policy(&mut world, "[agents.alice]\n[agents.bob]\naccess = ['alice']\n[agents.operator]");
    let pid = world.granted(START, alice, per(60)).pid;
    assert_eq!((world.events(bob), world.events(operator)), (vec![(pid, 60)], vec![]));
    world.middlebox.disconnect(bob);
    world.granted(START, alice, per(60));
    assert!(world.take_messages(bob).is_empty());
}

/// PDR must find rules that began when no agent was allowed PDR.
#[test]
fn a_new_right_to_disable_applies_to_existing_rules() {
    let policy = Policy::parse("[agents.alice]").unwrap();
    let middlebox = Middlebox::new(blocking_firewall(), policy, Box::new(Unauthenticated)).unwrap();
    let mut world = World::new(middlebox);
    let alice = world.open(Some("alice"));
    let pid = world.granted(START, alice, per(60)).pid;
    replace_policy(&mut world, "[agents.alice]\n[agents.guard]\nmay = ['disable']");
    let guard = world.open(Some("guard"));
    world.ask(START, guard, pdr("198.51.100.7:0", 60));
    assert_eq!(world.refused(alice, plc(pid, 60)), Refusal::NoSuchRule);
    replace_policy(&mut world, "[agents.alice]");
    assert_eq!(world.refused(alice, per(60)), Refusal::Conflict, "the disable rule remains");
}
