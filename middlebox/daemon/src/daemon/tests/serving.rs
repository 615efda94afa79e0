//! Ordinary service of agents.

use std::io::{Read, Write};
use std::net::Shutdown;

use hol_base::Duration;
use hol_filter::NullFilter;
use hol_simco::{AgentEvent, Body, Lifetime, Message, Pid, Refusal, Reply, Request, Tid};

use super::world::{Plan, World, per};
use crate::rule_store::RuleStore;
use crate::{Level, Limits, Log, Settings};

#[test]
fn a_rule_begins_is_listed_changes_and_ends() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let pid = agent.enable(world, 5004, 60).unwrap();
    assert_eq!(agent.list(world), [pid]);
    let longer = Request::Plc { pid, lifetime: Lifetime(600) };
    assert_eq!(agent.ask(world, longer), Ok(Reply::Plc { lifetime: Lifetime(600) }));
    assert_eq!(agent.ask(world, Request::Plc { pid, lifetime: Lifetime(0) }), Ok(Reply::Prd));
    assert_eq!(agent.list(world), []);
}

#[test]
fn messages_may_arrive_in_single_octets() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let request = agent.agent.ask(per(5004, 60)).unwrap();
    for octet in request.to_bytes() {
        agent.write(&[octet]);
        world.turn();
    }
    assert!(matches!(agent.answer(world), Ok(Reply::Per(_))));
}

#[test]
fn other_agents_are_notified_of_changes() {
    let world = &mut World::new();
    let (mut one, mut other) = (world.agent(), world.agent());
    let pid = one.enable(world, 5004, 60).unwrap();
    assert_eq!(other.receive(world), Some(AgentEvent::RuleEvent(pid, Lifetime(60))));
    world.skip(Duration::from_secs(61));
    for agent in [&mut one, &mut other] {
        assert_eq!(
            agent.receive(world),
            Some(AgentEvent::RuleEvent(pid, Lifetime(0))),
            "the lifetime has ended"
        );
    }
}

#[test]
fn thousands_of_pipelined_requests_are_answered_in_order() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let mut octets = Vec::new();
    for port in 1000..5000 {
        agent.agent.ask(per(port, 60)).unwrap().append_to(&mut octets);
    }
    let mut written = 0;
    while written < octets.len() {
        written += agent.socket.write(&octets[written..]).unwrap_or(0);
        world.turn();
    }
    for pid in 1..=4000 {
        let Ok(Reply::Per(granted)) = agent.answer(world) else { panic!("rule {pid}") };
        assert_eq!(granted.pid, Pid(pid));
    }
}

#[test]
fn an_agent_that_has_shut_down_sending_gets_its_answers() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let request = agent.agent.ask(per(5004, 60)).unwrap();
    agent.write(&request.to_bytes());
    agent.socket.shutdown(Shutdown::Write).unwrap();
    assert!(matches!(agent.answer(world), Ok(Reply::Per(_))));
    assert_eq!(agent.receive(world), None, "the connection ends after the answers");
}

#[test]
fn rules_outlive_the_session_that_made_them() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let pid = agent.enable(world, 5004, 60).unwrap();
    drop(agent);
    world.settle();
    assert_eq!(world.daemon.connections.len(), 0);
    assert_eq!(world.agent().list(world), [pid]);
}

/// RFC 4540 section 7.4.
#[test]
fn st_is_answered_and_ends_the_connection() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let st = agent.agent.terminate().unwrap();
    agent.write(&st.to_bytes());
    assert_eq!(agent.receive(world), Some(AgentEvent::Closed));
    assert_eq!(agent.receive(world), None);
}

/// RFC 4540 section 7.5.
#[test]
fn every_agent_is_notified_before_the_daemon_stops() {
    let mut world = World::new();
    let (mut one, mut other, silent) = (world.agent(), world.agent(), world.connect());
    world.stop.0.write_all(b"!").unwrap();
    for agent in [&mut one, &mut other] {
        assert_eq!(agent.receive(&mut world), Some(AgentEvent::Closed), "AST");
        assert_eq!(agent.receive(&mut world), None);
    }
    assert!(std::net::TcpStream::connect(world.address).is_err(), "no agent is accepted");
    drop((one, other, silent));
    world.settle();
    let World { mut daemon, stop, .. } = world;
    assert!(daemon.addresses().next().is_none() && daemon.connections.len() == 0);
    // `run` has nothing to do after this.
    daemon.run(&stop.1, |_| {}).unwrap();
}

#[test]
fn shutdown_does_not_wait_for_agents_that_stay_connected() {
    let mut world = World::new();
    let _agent = world.agent();
    world.stop.0.write_all(b"!").unwrap();
    world.settle();
    assert_eq!(world.daemon.connections.len(), 1);
    world.skip(Duration::from_secs(3));
    assert_eq!(world.daemon.connections.len(), 0);
}

#[test]
fn shutdown_does_not_wait_for_agents_that_never_read() {
    let mut world = World::new();
    let mut deaf = world.agent();
    let requests = Message::request(Tid(1), Request::Prs { pid: Pid(0) }).to_bytes().repeat(1000);
    while world.daemon.connections.queued_octets() == 0 {
        let _ = deaf.socket.write(&requests);
        world.turn();
    }
    world.stop.0.write_all(b"!").unwrap();
    world.settle();
    assert!(!world.daemon.is_over());
    world.skip(Duration::from_secs(5));
    assert!(world.daemon.is_over());
}

/// 1024 lists of 64 kB, and 33 MB for each piece that is read.
#[test]
fn many_long_lists_are_answered_without_delaying_other_agents() {
    let world = &mut World::new();
    let (mut busy, mut calm) = (world.agent(), world.agent());
    for port in 0..8000 {
        busy.enable(world, 1000 + port, 3600).unwrap();
    }
    calm.list(world);
    busy.write(&Message::request(Tid(1 << 20), Request::Prl).to_bytes().repeat(1024));
    let (mut received, mut buffer) = (0, [0; 1 << 16]);
    while received < 1024 * (8000 * 8 + 8) {
        match busy.socket.read(&mut buffer) {
            Ok(0) => panic!("the connection ends after {received} octets"),
            Ok(count) => received += count,
            Err(_) => drop(world.turn()),
        }
        let waiting = world.daemon.connections.queued_octets();
        assert!(waiting <= Limits::default().agent_backlog, "{waiting}");
    }
}

#[test]
fn an_agent_beyond_its_share_waits_behind_others() {
    let limits = Limits { agent_backlog: 2 << 16, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let mut busy = [world.agent(), world.agent(), world.agent()];
    for port in 0..8000 {
        busy[0].enable(world, 1000 + port, 3600).unwrap();
    }
    let mut calm = world.agent();
    let lists = Message::request(Tid(1 << 20), Request::Prl).to_bytes().repeat(100);
    busy.iter_mut().for_each(|agent| agent.write(&lists));
    let status = calm.agent.ask(Request::Prs { pid: Pid(9999) }).unwrap();
    calm.write(&status.to_bytes());
    // A list fills a turn, and the other two agents come before the first again.
    for _ in 0..4 {
        world.turn();
    }
    let mut answer = Vec::new();
    assert!(!drain_once(&mut calm.socket, &mut answer), "the connection stays");
    assert_eq!(Message::parse(&answer).unwrap().body, Body::Refusal(Refusal::NoSuchRule));
}

#[test]
fn other_agents_are_answered_during_continuous_requests() {
    let world = &mut World::new();
    let (mut busy, mut calm) = (world.agent(), world.agent());
    let list = busy.agent.ask(Request::Prl).unwrap().to_bytes().repeat(100_000);
    // Writes as much as the kernel takes.
    let _ = busy.socket.write(&list);
    let status = calm.agent.ask(Request::Prs { pid: Pid(9) }).unwrap();
    calm.write(&status.to_bytes());
    world.turn();
    let mut answer = Vec::new();
    assert!(!drain_once(&mut calm.socket, &mut answer), "the connection stays");
    assert_eq!(
        Message::parse(&answer).unwrap().body,
        Body::Refusal(Refusal::NoSuchRule),
        "the answer comes in the first turn"
    );
    assert!(world.turn(), "the other agent's requests continue");
}

fn drain_once(socket: &mut std::net::TcpStream, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 4096];
    let count = socket.read(&mut buffer).unwrap();
    into.extend(&buffer[..count]);
    count == 0
}

#[test]
fn rules_and_their_owners_survive_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let settings = Settings {
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        state: Some(directory.path().join("rules")),
        ..Settings::default()
    };
    let open = || World::of(settings.open(Log::new(Level::Error, Box::new(std::io::sink()))).unwrap());
    let world = &mut open();
    let mut agent = world.agent();
    let [one, two] = [5004, 5006].map(|port| agent.enable(world, port, 3600).unwrap());
    agent.ask(world, Request::Plc { pid: one, lifetime: Lifetime(0) }).unwrap();
    let status = agent.ask(world, Request::Prs { pid: two }).unwrap();
    // As after kill -9: the journal is not closed.
    world.daemon.listeners = None;
    drop(std::mem::replace(
        &mut world.daemon.rule_store,
        RuleStore::new(world.daemon.clock, Box::new(NullFilter), None),
    ));
    let world = &mut open();
    let mut agent = world.agent();
    assert_eq!(agent.list(world), [two]);
    assert_eq!(agent.ask(world, Request::Prs { pid: two }), Ok(status));
}
