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
fn half_a_message_is_waited_for_as_long_as_the_rfc_says() {
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
fn a_length_that_no_request_has_ends_the_connection_at_its_header() {
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
fn a_browser_gets_no_answer_but_the_end() {
    let world = &mut World::new();
    let mut socket = world.connect();
    std::io::Write::write_all(&mut socket, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut received = Vec::new();
    assert!(drain(world, &mut socket, &mut received));
    assert_eq!(notifications(&received), [Body::Notification(Notification::Bfm)]);
}

#[test]
fn thousands_that_say_nothing_hold_up_nobody_and_are_gone_after_a_minute() {
    let max = 1500;
    let limits = Limits { connections: max, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let mut agent = world.agent();
    let silent: Vec<TcpStream> = (0..max + 50).map(|_| world.connect()).collect();
    assert_eq!(world.daemon.connections.len(), max, "there are never more");
    assert!(!world.turn(), "they keep nobody busy");
    agent.enable(world, 5004, 3600).unwrap();
    let mut late = world.agent();
    late.enable(world, 5005, 3600).unwrap();
    world.skip(MINUTE);
    drop(silent);
    world.settle();
    assert_eq!(world.daemon.connections.len(), 2, "those with a session");
    agent.enable(world, 5006, 3600).unwrap();
}

#[test]
fn a_place_that_a_session_had_is_taken_as_soon_as_it_is_free() {
    let limits = Limits { connections: 2, ..Limits::default() };
    let world = &mut Plan { limits, ..Plan::default() }.open();
    let (first, _second) = (world.agent(), world.agent());
    let mut third = world.connect();
    world.settle();
    assert!(!world.turn(), "the third waits, and keeps nobody busy");
    drop(first);
    world.settle();
    std::io::Write::write_all(&mut third, b"garbage garbage").unwrap();
    assert!(drain(world, &mut third, &mut Vec::new()), "it is heard");
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
fn a_client_that_never_reads_is_not_read_from_and_given_up_after_a_while() {
    let world = &mut World::new();
    let mut agent = world.agent();
    let pid = agent.enable(world, 5004, 3600).unwrap();
    let status = agent.agent.ask(Request::Prs { pid }).unwrap();
    ask_without_reading(world, &mut agent.socket, &status);
    let waiting = world.daemon.connections.waiting();
    assert!(0 < waiting && waiting < Limits::default().output, "{waiting}");
    assert!(!world.turn(), "nothing is read or written");
    world.skip(Limits::default().patience);
    assert_eq!(world.daemon.connections.len(), 0);
    assert_eq!(world.agent().list(world), [pid], "its rules live on");
}

#[test]
fn notifications_do_not_pile_up_for_a_client_that_never_reads() {
    let limits = Limits { output: 10_000, ..Limits::default() };
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
fn replies_and_notifications_of_others_rules_are_refused_and_change_nothing() {
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
fn an_agent_that_may_not_is_told_so() {
    let text = "anonymous = 'guest'\n[agents.guest]\nmay = ['list']\n[agents.owner]\n";
    let world = &mut Plan { policy: Policy::parse(text).unwrap(), ..Plan::default() }.open();
    let mut guest = world.agent();
    assert_eq!(guest.enable(world, 5004, 60), Err(Refusal::NotAuthorized));
    let delete = Request::Plc { pid: Pid(0), lifetime: Lifetime(0) };
    assert_eq!(guest.ask(world, delete), Err(Refusal::NotAuthorized));
    assert_eq!(guest.list(world), []);
}

#[test]
fn who_does_not_prove_itself_gets_nowhere() {
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
fn who_trickles_has_no_longer_to_open_a_session_than_others() {
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
