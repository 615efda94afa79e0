//! Agents over SCTP in UDP datagrams, and attackers. RFC 6951.

mod attackers;
mod peer;

use hol_base::Duration;
use hol_simco::{
    Body, Capabilities, Config, Lifetime, Message, Middlebox, Notification, Pid, Reply, Request, Tid,
};

use super::world::{Plan, World, per};
use crate::Transport;
use peer::Peer;

/// Returns a daemon that listens for SCTP over UDP at an address of the loopback interface.
fn world_at(address: &str) -> World {
    let mut config = Config::firewall(Lifetime(3600));
    config.capabilities.middlebox_type |= Capabilities::PDR;
    let address = address.parse().unwrap();
    Plan { transport: Transport::SctpOverUdp, address, config, ..Plan::default() }.open()
}

fn world() -> World {
    world_at("127.0.0.1:0")
}

fn associations(world: &World) -> usize {
    world.daemon.sctp_ports[0].associations()
}

/// RFC 4540 section 3; RFC 6951 with both versions of IP.
#[test]
fn a_session_begins_changes_rules_and_ends() {
    for (address, host) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
        let world = &mut world_at(address);
        let mut agent = Peer::session(world, host);
        assert!(matches!(agent.ask(world, per(5004, 3600)), Body::Reply(Reply::Per(_))));
        let Body::Reply(Reply::Prl(pids)) = agent.ask(world, Request::Prl) else { panic!("no list") };
        let [pid] = pids[..] else { panic!("{pids:?}") };
        let Request::Per { enable, .. } = per(5004, 3600) else { unreachable!() };
        let (internal, external) = (enable.internal, enable.external);
        let disable = Request::Pdr { internal, external, lifetime: Lifetime(60) };
        assert!(matches!(agent.ask(world, disable), Body::Reply(Reply::Pdr { .. })));
        let Body::Notification(Notification::Are { pid: ended, lifetime: Lifetime(0) }) =
            agent.receive(world).unwrap().body
        else {
            panic!("the rule that the PDR ends is announced")
        };
        assert_eq!(ended, pid);
        assert_eq!(agent.ask(world, Request::St), Body::Reply(Reply::St));
        assert!(agent.receive(world).is_none());
        world.settle();
        assert_eq!((world.daemon.connections.len(), associations(world)), (0, 0));
        assert_eq!(world.daemon.connections.queued_octets(), 0);
    }
}

/// RFC 4540 section 3: each message is on the stream that follows from its TID, as over the kernel's SCTP.
#[test]
fn answers_use_the_stream_of_their_tid() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let mut answered: Vec<u32> = Vec::new();
    for fifty in 0..20 {
        (1..=50).for_each(|tid| agent.send(world, fifty * 50 + tid, per(5004, 3600)));
        for _ in 0..50 {
            let Message { tid, body } = agent.receive(world).unwrap();
            assert!(matches!(body, Body::Reply(Reply::Per(_))));
            answered.push(tid.0);
        }
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=1000).collect::<Vec<_>>(), "each request is answered once");
    assert!(agent.streams_seen.len() > 1000, "{}", agent.streams_seen.len());
    assert!(agent.streams_seen.iter().all(|(tid, stream)| tid % 10 == u32::from(*stream)));
}

/// The longest answer, a list, does not fit into a packet or the receive window.
#[test]
fn a_long_list_arrives() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    for hundred in 0..80 {
        (0..100)
            .for_each(|n| agent.send(world, hundred * 100 + n, per((hundred * 100 + n) as u16 + 1024, 3600)));
        (0..100).for_each(|_| drop(agent.receive(world).unwrap()));
    }
    let Body::Reply(Reply::Prl(pids)) = agent.ask(world, Request::Prl) else { panic!("no list") };
    assert_eq!(pids.len(), 8000);
}

/// RFC 6951 section 5.4.
#[test]
fn a_session_continues_at_another_udp_port() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    agent.move_to_another_port(world);
    let Body::Reply(Reply::Per(rule)) = agent.ask(world, per(5004, 60)) else { panic!("no rule") };
    assert_eq!(agent.ask(world, Request::Prl), Body::Reply(Reply::Prl(vec![rule.pid])));
    assert_eq!(world.daemon.connections.len(), 1);
}

/// RFC 9260 section 9.2.
#[test]
fn an_agent_that_shuts_down_ends_its_session() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    agent.association.close();
    assert!(agent.receive(world).is_none());
    world.settle();
    assert_eq!((world.daemon.connections.len(), associations(world)), (0, 0));
}

/// RFC 9260 section 9.1.
#[test]
fn an_abort_ends_the_session() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    agent.association.abort();
    agent.exchange(world);
    world.settle();
    assert_eq!((world.daemon.connections.len(), associations(world)), (0, 0));
}

/// RFC 9260 section 8.3: heartbeats find out that the agent has vanished, and its memory is freed.
#[test]
fn a_vanished_agent_loses_its_session() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let mut vanished = Peer::session(world, "127.0.0.1");
    let Body::Reply(Reply::Per(rule)) = vanished.ask(world, per(5004, 3600)) else { panic!("no rule") };
    for _ in 0..30 {
        world.skip(Duration::from_secs(10));
        agent.exchange(world);
    }
    assert_eq!((world.daemon.connections.len(), associations(world)), (1, 1));
    let remaining = agent.ask(world, Request::Prl);
    assert_eq!(remaining, Body::Reply(Reply::Prl(vec![rule.pid])), "its rules remain");
}

/// RFC 9260 section 6.3.3: an answer that nobody acknowledges.
#[test]
fn an_agent_that_vanishes_before_its_answer_loses_its_session() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    agent.send(world, 1, per(5004, 3600));
    assert_eq!(world.daemon.connections.len(), 1);
    assert!(world.daemon.connections.queued_octets() > 0, "the answer is held until it is acknowledged");
    for _ in 0..7 {
        world.skip(Duration::from_secs(10));
    }
    assert_eq!((world.daemon.connections.len(), associations(world)), (0, 0));
    assert_eq!(world.daemon.connections.queued_octets(), 0);
}

/// As over TCP: the middlebox waits a minute for SE.
#[test]
fn an_agent_that_vanishes_after_cookie_echo_has_a_minute() {
    let world = &mut world();
    let agent = Peer::connect(world, "127.0.0.1");
    assert_eq!((world.daemon.connections.len(), associations(world)), (1, 1));
    drop(agent);
    world.skip(Middlebox::TIMEOUT);
    // BFM and AST are sent in vain.
    for _ in 0..7 {
        world.skip(Duration::from_secs(10));
    }
    assert_eq!((world.daemon.connections.len(), associations(world)), (0, 0));
}

/// RFC 4540 section 7.5: AST is delivered before the daemon ends.
#[test]
fn the_end_of_the_daemon_ends_sessions() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let now = world.daemon.clock.now();
    world.daemon.stop(now);
    world.turn();
    assert_eq!(agent.receive(world).unwrap().body, Body::Notification(Notification::Ast));
    assert!(agent.receive(world).is_none());
    world.settle();
    assert!(world.daemon.is_over());
}

/// RFC 4540 section 6, step 1.
#[test]
fn a_user_message_that_is_longer_than_any_request_ends_the_session() {
    let world = &mut world();
    for length in [4109, 60_000] {
        let mut agent = Peer::session(world, "127.0.0.1");
        agent.send_octets(world, 0, vec![1; length]);
        let received = [agent.receive(world), agent.receive(world)].map(|message| message.unwrap().body);
        let expected = [Notification::Bfm, Notification::Ast].map(Body::Notification);
        assert_eq!(received, expected, "{length} octets");
        assert!(agent.receive(world).is_none());
    }
}

/// RFC 9260 section 6.2.1: the agent's closed window stops the daemon, which reads no more requests.
#[test]
fn an_agent_that_never_reads_is_not_read_from() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let request = Message::request(Tid(1), Request::Prs { pid: Pid(0) }).to_bytes();
    agent.reads = false;
    for _ in 0..20_000 {
        agent.association.queue(0, 15, request.clone());
        agent.association.flush();
        agent.exchange(world);
        if !agent.association.queue(0, 15, request.clone()) {
            break;
        }
    }
    assert!((1..1 << 20).contains(&world.daemon.connections.queued_octets()));
    for _ in 0..20 {
        world.skip(Duration::from_secs(10));
        agent.exchange(world);
        if world.daemon.connections.len() == 0 {
            return;
        }
    }
    panic!("it keeps its session")
}
