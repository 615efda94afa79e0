//! An attacker and an innocent agent. The tests count work and octets, so a slow machine makes no difference;
//! `benches/hostile` measures time.

use std::io::{Read, Write};

use hol_filter::{MAX_SHAPES, footprint};
use hol_simco::{
    AddressTuple, Addresses, Capabilities, Config, Enable, Lifetime, Location, Message, Pid, Policy, Refusal,
    Reply, Request, SharedSecrets, Tid,
};

use super::world::{Client, Plan, SECRETS, World, per};
use crate::Limits;

const UDP: u8 = 17;
/// Turns in which an innocent agent gets its answer: one may be in progress when it asks.
const FEW_TURNS: usize = 3;
/// Maximum cost of a turn.
const MAX_WORK: u64 = 10_000_000;

/// Returns a firewall that can block, with the footprints of nftables, and two agents that authenticate.
fn world_with(quota: &str, limits: Limits) -> World {
    let mut config = Config::firewall(Lifetime(3600));
    config.capabilities.middlebox_type |= Capabilities::PDR;
    let config =
        Config { footprint: Some(footprint), max_elements: 300_000, max_shapes: MAX_SHAPES, ..config };
    let text = format!(
        "[agents.attacker]\nmay = ['enable', 'disable', 'lifetime', 'status', 'list']\naccess = 'all'\n{quota}\n\
         [agents.innocent]\n"
    );
    let authentication = Box::new(SharedSecrets::parse(SECRETS, hol_agent::nonces()).unwrap());
    let policy = Policy::parse(&text).unwrap();
    Plan { config, policy, authentication, limits, ..Plan::default() }.open()
}

fn world() -> World {
    world_with("", Limits::default())
}

fn host(number: u16) -> [u8; 4] {
    let [high, low] = number.to_be_bytes();
    [10, 0, high, low]
}

fn internal(number: u16, port: u16, ports: u16) -> AddressTuple {
    with_ports(AddressTuple::of_host(Location::Internal, UDP, (host(number), port).into()), ports)
}

fn external(port: u16, ports: u16) -> AddressTuple {
    with_ports(AddressTuple::of_host(Location::External, UDP, ([198, 51, 100, 9], port).into()), ports)
}

fn with_ports(mut tuple: AddressTuple, ports: u16) -> AddressTuple {
    if let Addresses::Full { port_range, .. } = &mut tuple.addresses {
        *port_range = ports;
    }
    tuple
}

fn enable(internal: AddressTuple, external: AddressTuple) -> Request {
    let Request::Per { enable, gid } = per(1, 3600) else { unreachable!() };
    Request::Per { enable: Enable { internal, external, ..enable }, gid }
}

fn disable(internal: AddressTuple, external: AddressTuple) -> Request {
    Request::Pdr { internal, external, lifetime: Lifetime(3600) }
}

/// Returns the octets of many requests, for one write.
fn octets(requests: impl Iterator<Item = Request>) -> Vec<u8> {
    requests.fold(Vec::new(), |mut octets, request| {
        Message::request(Tid(7), request).append_to(&mut octets);
        octets
    })
}

/// Continues the attack while the innocent agent asks from time to time: it gets its answers within a few turns, and no
/// turn exceeds its cost. It is irrelevant whether the attacker's requests are granted.
fn attack(world: &mut World, attacker: &mut Client, octets: &[u8]) {
    let mut innocent = world.agent_named("innocent");
    let (mut rest, mut answers) = (octets, vec![0; 1 << 20]);
    let mut is_over = false;
    while !is_over {
        // Writes as much as the kernel takes, and reads all answers.
        while let Ok(count @ 1..) = attacker.socket.write(rest) {
            rest = &rest[count..];
        }
        while attacker.socket.read(&mut answers).is_ok_and(|count| count > 0) {}
        is_over = rest.is_empty() && !world.turn();
        let request = innocent.agent.ask(per(5004, 1)).unwrap();
        innocent.write(&request.to_bytes());
        let turns = innocent.turns_until_answered(world);
        assert!(turns <= FEW_TURNS, "{turns} turns");
        let pid = match innocent.answer(world) {
            Ok(Reply::Per(rule)) => rule.pid,
            other => panic!("{other:?}"),
        };
        innocent.ask(world, Request::Plc { pid, lifetime: Lifetime(0) }).unwrap();
    }
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

/// Returns the maximum cost of a turn since the last call.
fn max_work(world: &World) -> u64 {
    std::mem::take(&mut world.daemon.metrics.lock().max_work)
}

#[test]
fn new_lifetimes_of_rules_with_many_elements_do_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let rules = (0..100).map(|n| enable(internal(n, 1025, 512), external(2049, 512)));
    attack(world, &mut attacker, &octets(rules));
    let pids: Vec<Pid> = all_rules(world).iter().map(|rule| rule.pid).collect();
    let change = |n: u32| Request::Plc { pid: pids[n as usize % pids.len()], lifetime: Lifetime(1800 + n) };
    attacker.write(&octets((0..200).map(change)));
    let mut innocent = world.agent_named("innocent");
    for _ in 0..20 {
        let request = innocent.agent.ask(per(5004, 60)).unwrap();
        innocent.write(&request.to_bytes());
        assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
        innocent.answer(world).unwrap();
    }
    world.settle();
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

/// A step of a sweep ends at the share of the turn, not after a number of rules.
#[test]
fn a_disable_rule_over_rules_with_many_elements_does_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let rules = (0..100).map(|n| enable(internal(n, 1025, 512), external(2049, 512)));
    attack(world, &mut attacker, &octets(rules));
    let mut innocent = world.agent_named("innocent");
    let all = AddressTuple { prefix_length: 16, ..internal(0, 0, 1) };
    attacker.write(&octets([disable(all, AddressTuple { prefix_length: 0, ..external(0, 1) })].into_iter()));
    let mut answers = 0;
    while all_rules(world).len() > 1 {
        let request = innocent.agent.ask(Request::Prl).unwrap();
        innocent.write(&request.to_bytes());
        assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
        innocent.answer(world).unwrap();
        answers += 1;
    }
    assert!(answers > 5, "{answers} answers during the sweep");
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

/// Each end fills a turn, so every second turn is for requests.
#[test]
fn rules_with_many_elements_that_end_together_do_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let short = |n| {
        let Request::Per { enable, gid } = enable(internal(n, 1025, 512), external(2049, 512)) else {
            unreachable!()
        };
        Request::Per { enable: Enable { lifetime: Lifetime(600), ..enable }, gid }
    };
    attack(world, &mut attacker, &octets((0..60).map(short)));
    let mut innocent = world.agent_named("innocent");
    world.daemon.clock.skip(hol_base::Duration::from_secs(601));
    let mut answers = 0;
    while world.daemon.middlebox.wake_at() <= world.daemon.clock.now() {
        let request = innocent.agent.ask(Request::Prl).unwrap();
        innocent.write(&request.to_bytes());
        assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
        innocent.answer(world).unwrap();
        answers += 1;
    }
    assert!(answers > 5, "{answers} answers before the last end");
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

/// A turn without requests ends more rules than the share of an agent.
#[test]
fn an_idle_middlebox_uses_whole_turns_to_end_rules() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    attack(world, &mut attacker, &octets((0..4000).map(|n| enable(internal(n, 5004, 1), external(0, 1)))));
    let all = AddressTuple { prefix_length: 16, ..internal(0, 0, 1) };
    attacker.write(&octets([disable(all, AddressTuple { prefix_length: 0, ..external(0, 1) })].into_iter()));
    let (mut turns, max) = (0, 4000 * 10_000 / Limits::TURN_WORK + 5);
    while all_rules(world).len() > 1 {
        world.turn();
        turns += 1;
    }
    assert!(turns <= max, "{turns} turns, expected {max}");
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

#[test]
fn long_port_ranges_do_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let rules = (0..960).map(|n| enable(internal(n, 1025, 4096), external(0, 1)));
    attack(world, &mut attacker, &octets(rules));
    let elements: usize = all_rules(world).iter().map(|rule| footprint(rule).unwrap().elements).sum();
    assert!(0 < elements && elements <= 960 * 46, "{elements}");
}

#[test]
fn port_pairs_are_limited_by_the_quota() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let rules = (0..960).map(|n| enable(internal(n, 1025, 512), external(2049, 512)));
    attack(world, &mut attacker, &octets(rules));
    assert_eq!(all_rules(world).len(), 100_000 / 512);
    let too_many = enable(internal(0, 1025, 513), external(2049, 513));
    let mut innocent = world.agent_named("innocent");
    assert_eq!(innocent.ask(world, too_many), Err(Refusal::ConfigurationFailed));
}

fn all_rules(world: &World) -> Vec<hol_simco::Rule> {
    world.daemon.middlebox.rules(world.daemon.clock.now()).copied().collect()
}

#[test]
fn some_prefix_lengths_are_left_for_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let shaped = |n: u8| {
        let a0 = AddressTuple { prefix_length: 8 + n / 8, ..internal(0, 5004, 1) };
        enable(a0, AddressTuple { prefix_length: 8 + n % 8, ..external(0, 1) })
    };
    attack(world, &mut attacker, &octets((0..64).map(shaped)));
    assert_eq!(all_rules(world).len(), 16);
    let mut innocent = world.agent_named("innocent");
    let a3 = AddressTuple { prefix_length: 24, ..external(0, 1) };
    assert!(innocent.ask(world, enable(internal(1, 5004, 1), a3)).is_ok());
}

#[test]
fn continuous_lists_do_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let rules = octets((0..9000).map(|n| enable(internal(n, 5004, 1), external(0, 1))));
    attack(world, &mut attacker, &rules);
    let lists = Message::request(Tid(7), Request::Prl).to_bytes();
    attack(world, &mut attacker, &lists.repeat(100_000));
    for pid in 1..1000 {
        attacker.write(
            &Message::request(Tid(7), Request::Plc { pid: Pid(pid), lifetime: Lifetime(0) }).to_bytes(),
        );
        world.turn();
    }
    attack(world, &mut attacker, &lists.repeat(300));
}

#[test]
fn wide_rules_beside_many_disable_rules_do_not_delay_other_agents() {
    let world = &mut world();
    let mut attacker = world.agent_named("attacker");
    let blocks = octets((0..20_000).map(|n| disable(internal(n, 9, 1), external(9, 1))));
    attack(world, &mut attacker, &blocks);
    let wide = |n: u16| {
        let a0 = AddressTuple { prefix_length: 8, ..internal(0, 10 + n, 1) };
        enable(a0, AddressTuple { prefix_length: 0, ..external(0, 1) })
    };
    attack(world, &mut attacker, &octets((0..200).map(wide)));
}

#[test]
fn a_hundred_sessions_of_an_agent_do_not_delay_other_agents() {
    let world = &mut world_with("quota = { sessions = 200 }", Limits::default());
    let mut attackers: Vec<Client> = (0..100).map(|_| world.agent_named("attacker")).collect();
    let rules = octets((0..300).map(|n| enable(internal(n, 1025, 512), external(0, 1))));
    attackers.iter_mut().for_each(|attacker| attacker.write(&rules));
    let mut last = attackers.pop().unwrap();
    attack(world, &mut last, &rules);
}

/// Half of the agents read their notifications; the others lose their sessions before memory runs out.
#[test]
fn a_disable_rule_with_many_notifications_does_not_delay_other_agents() {
    let limits = Limits { backlog: 1 << 20, ..Limits::default() };
    let world = &mut world_with("quota = { sessions = 200 }", limits.clone());
    let mut attacker = world.agent_named("attacker");
    let rules = octets((0..8000).map(|n| enable(internal(n, 5004, 1), external(0, 1))));
    attack(world, &mut attacker, &rules);
    let held = all_rules(world).len();
    assert!(held > 7900);
    let mut listeners: Vec<Client> = (0..20).map(|_| world.agent_named("attacker")).collect();
    let _deaf: Vec<Client> = (0..80).map(|_| world.agent_named("attacker")).collect();
    let all = AddressTuple { prefix_length: 16, ..internal(0, 0, 1) };
    attacker.write(&octets([disable(all, AddressTuple { prefix_length: 0, ..external(0, 1) })].into_iter()));
    let mut innocent = world.agent_named("innocent");
    let (mut received, mut max, mut turns) = (vec![0; 20], 0, 0);
    let mut piece = vec![0; 1 << 16];
    let mut goes_on = true;
    while goes_on {
        goes_on = world.turn() || world.daemon.middlebox.wake_at() == hol_base::Time::ZERO;
        for (listener, received) in listeners.iter_mut().zip(&mut received) {
            while let Ok(count @ 1..) = listener.socket.read(&mut piece) {
                *received += count;
            }
        }
        while attacker.socket.read(&mut piece).is_ok_and(|count| count > 0) {}
        max = max.max(world.daemon.connections.queued_octets());
        turns += 1;
        if turns % 16 == 0 {
            let request = innocent.agent.ask(per(5004, 1)).unwrap();
            innocent.write(&request.to_bytes());
            assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
            innocent.answer(world).unwrap();
        }
    }
    assert!(max <= limits.backlog + (1 << 20), "{max} octets waited");
    // An ARE has 24 octets: RFC 4540 section 5.3.19. Rules of the innocent agent ended as well.
    let told = held * 24;
    assert!(received.iter().all(|received| *received >= told), "{received:?} of {told}");
}

/// A step of a sweep must not take the whole turn, or no request would be read until the sweep ends.
#[test]
fn a_disable_rule_that_many_sessions_are_told_of_leaves_room_for_requests() {
    let world = &mut world_with("quota = { sessions = 600 }", Limits::default());
    let mut attacker = world.agent_named("attacker");
    attack(world, &mut attacker, &octets((0..200).map(|n| enable(internal(n, 5004, 1), external(0, 1)))));
    let _listeners: Vec<Client> = (0..500).map(|_| world.agent_named("attacker")).collect();
    let mut innocent = world.agent_named("innocent");
    max_work(world);
    let all = AddressTuple { prefix_length: 16, ..internal(0, 0, 1) };
    attacker.write(&octets([disable(all, AddressTuple { prefix_length: 0, ..external(0, 1) })].into_iter()));
    let mut answers = 0;
    while all_rules(world).len() > 1 {
        let request = innocent.agent.ask(Request::Prl).unwrap();
        innocent.write(&request.to_bytes());
        assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
        innocent.answer(world).unwrap();
        answers += 1;
    }
    assert!(answers > 5, "{answers} answers during the sweep");
    let max = max_work(world);
    assert!(max <= MAX_WORK, "a turn of {max}");
}

/// The ends take half of a turn, and their notifications the same half.
#[test]
fn rules_that_end_together_do_not_delay_other_agents() {
    let world = &mut world_with("quota = { sessions = 200 }", Limits::default());
    let mut attacker = world.agent_named("attacker");
    let short = |n| {
        let Request::Per { enable, gid } = enable(internal(n, 5004, 1), external(0, 1)) else {
            unreachable!()
        };
        Request::Per { enable: Enable { lifetime: Lifetime(600), ..enable }, gid }
    };
    attack(world, &mut attacker, &octets((0..8000).map(short)));
    let _listeners: Vec<Client> = (0..60).map(|_| world.agent_named("attacker")).collect();
    let mut innocent = world.agent_named("innocent");
    world.daemon.metrics.lock().max_work = 0;
    world.daemon.clock.skip(hol_base::Duration::from_secs(601));
    let mut turns = 0;
    while turns == 0 || world.daemon.middlebox.wake_at() == hol_base::Time::ZERO {
        world.turn();
        turns += 1;
        let request = innocent.agent.ask(per(5004, 60)).unwrap();
        innocent.write(&request.to_bytes());
        assert!(innocent.turns_until_answered(world) <= FEW_TURNS);
        innocent.answer(world).unwrap();
    }
    assert!(turns > 5, "{turns} turns");
    assert!(all_rules(world).len() < 8000);
    let max = world.daemon.metrics.lock().max_work;
    assert!(max <= Limits::TURN_WORK + Limits::AGENT_SHARE, "a turn of {max}");
}

#[test]
fn answers_precede_notifications() {
    let world = &mut world_with("quota = { sessions = 2000 }", Limits::default());
    let listeners: Vec<Client> = (0..600).map(|_| world.agent_named("attacker")).collect();
    let mut innocent = world.agent_named("innocent");
    innocent.enable(world, 5004, 60).unwrap();
    assert_eq!(world.daemon.connections.wake_at(), hol_base::Time::ZERO, "some are not notified yet");
    world.settle();
    for listener in &listeners {
        assert_eq!(listener.socket.peek(&mut [0; 100]).unwrap(), 24, "all are notified in the end");
    }
}

#[test]
fn the_slowest_readers_are_disconnected_first() {
    let limits = Limits { backlog: 100_000, ..Limits::default() };
    let world = &mut world_with("quota = { sessions = 20 }", limits);
    let mut busy = world.agent_named("attacker");
    let mut slow: Vec<Client> = (0..10).map(|_| world.agent_named("attacker")).collect();
    let pid = busy.enable(world, 5004, 3600).unwrap();
    let status = octets(std::iter::repeat_n(Request::Prs { pid }, 1000));
    // The slow agents send requests and do not read, until the kernel's buffers are full and the daemon's queues grow.
    while world.daemon.connections.len() == 11 {
        slow.iter_mut().for_each(|client| drop(client.socket.write(&status)));
        world.turn();
        assert!(world.daemon.connections.queued_octets() <= 100_000);
    }
    assert!(busy.enable(world, 5005, 3600).is_ok(), "an agent that reads keeps its session");
}
