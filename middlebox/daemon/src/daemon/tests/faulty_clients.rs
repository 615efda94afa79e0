//! Connections that do harm, on purpose or by mistake.

use std::net::TcpStream;

use hol_base::Duration;
use hol_simco::{
    AgentEvent, Body, Lifetime, Message, Middlebox, Notification, Pid, Policy, Refusal, Reply, Request, Tid,
};

use super::world::{Plan, World, drain, per};
use crate::Limits;

const MINUTE: Duration = Middlebox::TIMEOUT;

fn notifications(octets: &[u8]) -> Vec<Body> {
    octets.chunks(8).map(|message| Message::parse(message).unwrap().body).collect()
}

/// RFC 4540 section 6, step 2.
#[test]
fn an_incomplete_message_times_out_as_in_the_rfc() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let request = agent.agent.ask(per(5004, 60)).unwrap().to_bytes();
    agent.write(&request[..20]);
    world.settle();
    world.skip(MINUTE - Duration::from_secs(1));
    assert_eq!(world.daemon.connections.len(), 1);
    world.skip(Duration::from_secs(1));
    assert_eq!(agent.receive(world), Some(AgentEvent::BadlyFormed));
    assert_eq!(agent.receive(world), Some(AgentEvent::Closed));
    assert_eq!(agent.receive(world), None);
}

#[test]
fn an_impossible_length_ends_the_connection_at_the_header() {
    let world = &mut World::new();
    let mut socket = world.connect();
    // The header announces the maximum length, many times over.
    std::io::Write::write_all(&mut socket, &[0x01, 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff].repeat(100))
        .unwrap();
    let mut received = Vec::new();
    assert!(drain(world, &mut socket, &mut received));
    assert_eq!(notifications(&received), [Body::Notification(Notification::Bfm)]);
}

#[test]
fn an_http_request_ends_the_connection_without_an_answer() {
    let world = &mut World::new();
    let mut socket = world.connect();
    std::io::Write::write_all(&mut socket, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut received = Vec::new();
    assert!(drain(world, &mut socket, &mut received));
    assert_eq!(notifications(&received), [Body::Notification(Notification::Bfm)]);
}

#[test]
fn silent_connections_are_closed_after_a_minute() {
    let max = 1500;
    let limits = Limits { connections: max, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let mut agent = world.agent();
    let silent: Vec<TcpStream> = (0..max + 50).map(|_| world.connect()).collect();
    assert_eq!(world.daemon.connections.len(), max, "the maximum is not exceeded");
    assert!(!world.turn(), "silent connections cause no work");
    agent.enable(world, 5004, 3600).unwrap();
    let mut late = world.agent();
    late.enable(world, 5005, 3600).unwrap();
    world.skip(MINUTE);
    drop(silent);
    world.settle();
    assert_eq!(world.daemon.connections.len(), 2, "connections with a session remain");
    agent.enable(world, 5006, 3600).unwrap();
}

#[test]
fn a_waiting_connection_is_accepted_when_a_session_ends() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let (first, _second) = (world.agent(), world.agent());
    let mut third = world.connect();
    world.settle();
    assert!(!world.turn(), "the third connection waits and causes no work");
    drop(first);
    world.settle();
    std::io::Write::write_all(&mut third, b"garbage garbage").unwrap();
    assert!(drain(world, &mut third, &mut Vec::new()), "the third connection is read");
}

/// Fills a connection with requests and reads no answer.
fn ask_without_reading(world: &mut World, socket: &mut TcpStream, request: &Message) {
    let requests = request.to_bytes().repeat(1000);
    let mut silent = 0;
    while silent < 20 {
        match std::io::Write::write(socket, &requests) {
            Ok(_) => silent = 0,
            Err(_) => silent += u32::from(!world.turn()),
        }
    }
}

#[test]
fn a_client_that_never_reads_is_disconnected() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let pid = agent.enable(world, 5004, 3600).unwrap();
    let status = agent.agent.ask(Request::Prs { pid }).unwrap();
    ask_without_reading(world, &mut agent.socket, &status);
    let waiting = world.daemon.connections.queued_octets();
    assert!(0 < waiting && waiting < Limits::default().agent_backlog, "{waiting}");
    assert!(!world.turn(), "nothing is read or written");
    world.skip(Limits::default().patience);
    assert_eq!(world.daemon.connections.len(), 0);
    assert_eq!(world.agent().list(world), [pid], "its rules remain");
}

#[test]
fn notifications_for_a_client_that_never_reads_are_limited() {
    let limits = Limits { agent_backlog: 10_000, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let (mut deaf, mut busy) = (world.agent(), world.agent());
    let status = deaf.agent.ask(Request::Prs { pid: Pid(0) }).unwrap();
    ask_without_reading(world, &mut deaf.socket, &status);
    let mut asked = 0;
    while world.daemon.connections.len() == 2 {
        busy.enable(world, 5004, 60).unwrap();
        asked += 1;
        assert!(asked < 1000, "an ARE has 24 octets, so 10,000 octets are soon there");
    }
    busy.enable(world, 5004, 60).unwrap();
}

/// RFC 4540 section 6, step 3: agents send only requests to a middlebox.
#[test]
fn replies_and_notifications_from_agents_are_refused() {
    let world = &mut World::new();
    let (mut owner, mut forger) = (world.agent(), world.agent());
    let pid = owner.enable(world, 5004, 3600).unwrap();
    assert_eq!(forger.receive(world), Some(AgentEvent::RuleEvent(pid, Lifetime(3600))));
    let forged = [
        Body::Reply(Reply::Plc { lifetime: Lifetime(1) }),
        Body::Reply(Reply::Pdr { pid, lifetime: Lifetime(1) }),
        Body::Notification(Notification::Are { pid, lifetime: Lifetime(0) }),
        Body::Notification(Notification::Ast),
        Body::Refusal(Refusal::NoSuchRule),
    ];
    for body in forged {
        let answer = forger.send_octets(world, &Message { tid: Tid(77), body }.to_bytes()).unwrap();
        assert_eq!(answer, Message::refusal(Tid(77), Refusal::WrongBasicType));
    }
    assert_eq!(owner.list(world), [pid]);
    assert_eq!(forger.list(world), [pid], "the session goes on");
}

#[test]
fn an_agent_without_the_right_is_refused() {
    let text = "anonymous = 'guest'\n[agents.guest]\nmay = ['list']\n[agents.owner]\n";
    let world = &mut Plan { policy: Policy::parse(text).unwrap(), ..Plan::default() }.open();
    let mut guest = world.agent();
    assert_eq!(guest.enable(world, 5004, 60), Err(Refusal::NotAuthorized));
    let delete = Request::Plc { pid: Pid(0), lifetime: Lifetime(0) };
    assert_eq!(guest.ask(world, delete), Err(Refusal::NotAuthorized));
    assert_eq!(guest.list(world), []);
}

#[test]
fn an_unauthenticated_agent_gets_no_session() {
    let text = "[agents.owner]\n";
    let world = &mut Plan { policy: Policy::parse(text).unwrap(), ..Plan::default() }.open();
    let mut socket = world.connect();
    let request = Message::request(Tid(1), per(5004, 60)).to_bytes();
    std::io::Write::write_all(&mut socket, &request).unwrap();
    let mut received = Vec::new();
    assert!(drain(world, &mut socket, &mut received));
    assert_eq!(notifications(&received), [Body::Refusal(Refusal::WrongSubType)]);
    assert_eq!(world.daemon.middlebox.rules(world.daemon.clock.now()).count(), 0);
}

#[test]
fn slow_octets_do_not_extend_the_time_to_open_a_session() {
    let world = &mut World::new();
    let mut socket = world.connect();
    for octet in [1, 1, 0, 8] {
        std::io::Write::write_all(&mut socket, &[octet]).unwrap();
        world.settle();
        assert_eq!(world.daemon.connections.len(), 1);
        world.skip(Duration::from_secs(15));
    }
    let mut received = Vec::new();
    assert!(drain(world, &mut socket, &mut received));
    assert_eq!(notifications(&received), [Body::Notification(Notification::Bfm)]);
}
