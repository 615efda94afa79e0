//! Policy disable rules. RFC 4540 section 8.8.

use crate::world::*;
use hol_simco::*;

/// Returns the PER of section 8.8.1: UDP from any host to one port of one host.
fn from_any_host() -> Enable {
    let external = AddressTuple { prefix_length: 0, ..external(UDP, "0.0.0.0:0") };
    Enable { internal: internal(UDP, "10.1.8.3:12345"), external, ..pinhole(60) }
}

fn from(host: &str) -> Enable {
    Enable { external: external(UDP, host), ..from_any_host() }
}

fn per_of(enable: Enable) -> Request {
    Request::Per { enable, gid: None }
}

fn world() -> (World, SessionId, SessionId) {
    let mut world = World::with_agents(blocking_firewall());
    let [alice, operator] = ["alice", "operator"].map(|name| world.open(Some(name)));
    (world, alice, operator)
}

/// Section 8.8.1: the example, across owners; a rule that does not overlap stays, and so does a reservation.
#[test]
fn a_disable_rule_ends_the_enable_rules_it_conflicts_with() {
    let (mut world, alice, operator) = world();
    let anybody = world.granted(START, alice, per_of(from_any_host())).pid;
    let attacker = world.granted(START, operator, per_of(from("192.0.2.100:9"))).pid;
    let friend = world.granted(START, alice, per_of(from("192.0.2.101:9"))).pid;
    let reserved = world.granted(START, alice, prr(60)).pid;
    let Body::Reply(Reply::Pdr { pid, lifetime }) = world.ask(START, operator, pdr("192.0.2.100:0", 30))
    else {
        panic!("no reply");
    };
    assert_eq!(lifetime, Lifetime(30));
    assert_eq!(world.events(operator), [(anybody, 0), (attacker, 0)], "also the rule of the operator itself");
    assert!(world.events(alice).contains(&(anybody, 0)));
    assert_eq!(
        world.ask(START, operator, Request::Prl),
        Body::Reply(Reply::Prl(vec![friend, reserved, pid]))
    );
    let steps: Vec<_> =
        world.changes.iter().rev().take(3).rev().map(|c| (c.before.is_some(), c.after.is_some())).collect();
    assert_eq!(steps, [(false, true), (true, false), (true, false)], "the block begins before the rules end");
}

/// Section 8.8.1: the rule ends like one that was enabled at once, also after a change of its lifetime.
#[test]
fn a_disable_rule_ends_a_rule_that_was_reserved_before_it_was_enabled() {
    let (mut world, alice, operator) = world();
    let pid = world.granted(START, alice, prr(60)).pid;
    world.granted(START, alice, Request::Pea { enable: from_any_host(), pid });
    world.ask(START, alice, plc(pid, 50));
    world.ask(START, operator, pdr("192.0.2.100:0", 30));
    assert_eq!(world.events(operator), [(pid, 0)]);
    assert_eq!(world.refused(alice, Request::Prs { pid }), Refusal::NoSuchRule);
}

/// Section 8.8.2: no conflicting rule can begin while the disable rule lasts, by PER or PEA.
#[test]
fn a_disable_rule_keeps_conflicting_rules_out_until_it_ends() {
    let (mut world, alice, operator) = world();
    let reserved = world.granted(START, alice, prr(600)).pid;
    world.ask(START, operator, pdr("192.0.2.100:0", 30));
    let pea = Request::Pea { enable: from_any_host(), pid: reserved };
    for request in [per_of(from_any_host()), pea.clone()] {
        assert_eq!(world.refused(alice, request), Refusal::Conflict);
    }
    world.granted(at(29), alice, per_of(from("192.0.2.101:9")));
    world.granted(at(30), alice, per_of(from_any_host()));
    world.granted(at(30), alice, pea);
}

/// Sections 8.5 and 8.6: a disable rule has a status and a lifetime like other rules, and belongs to no
/// group.
#[test]
fn a_disable_rule_is_listed_shown_and_ended_like_others() {
    let (mut world, _, operator) = world();
    let Body::Reply(Reply::Pdr { pid, .. }) = world.ask(START, operator, pdr("192.0.2.100:0", 30)) else {
        panic!()
    };
    let Body::Reply(Reply::Pds(rule)) = world.ask(at(10), operator, Request::Prs { pid }) else { panic!() };
    assert_eq!((rule.pid, rule.lifetime, rule.owner), (pid, Lifetime(20), Owner::new("operator")));
    assert_eq!(rule.external, external(UDP, "192.0.2.100:0"));
    let pea = Request::Pea { enable: from_any_host(), pid };
    assert_eq!(world.refused(operator, pea), Refusal::Inconsistent);
    assert_eq!(world.ask(at(10), operator, plc(pid, 0)), Body::Reply(Reply::Prd));
    world.granted(at(10), operator, per_of(from_any_host()));
}

/// Section 8.8.2: the tuples are checked like those of PER.
#[test]
fn an_inconsistent_pdr_is_refused() {
    let (mut world, _, operator) = world();
    let Request::Pdr { internal, external, lifetime } = pdr("192.0.2.100:0", 30) else { unreachable!() };
    let swapped = Request::Pdr { internal: external, external: internal, lifetime };
    let tcp = Request::Pdr { internal, external: AddressTuple { protocol: TCP, ..external }, lifetime };
    for request in [swapped, tcp] {
        assert_eq!(world.refused(operator, request), Refusal::Inconsistent);
    }
    assert_eq!(world.refused(operator, pdr("192.0.2.100:0", 0)), Refusal::ConfigurationFailed);
}
