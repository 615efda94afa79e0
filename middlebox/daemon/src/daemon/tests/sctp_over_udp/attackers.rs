//! Peers that do harm. The tests count turns and octets, so a slow machine makes no difference.

use bytes::Bytes;
use hol_sctp::wire::SendTimes;
use hol_sctp::wire::sctp::{Chunk, Data, DataFlags, Ssn, Tsn};
use hol_simco::{Body, Message, PAYLOAD_PROTOCOL, Reply, Request, Tid, Version};

use super::super::world::{Plan, World, per};
use super::peer::{Peer, Stranger};
use super::{associations, world};
use crate::{Limits, Transport};

/// Returns a daemon with at most this many connections.
fn world_with(connections: usize) -> World {
    let limits = Limits { connections, ..Limits::default() };
    Plan { transport: Transport::SctpOverUdp, limits, ..Plan::default() }.open()
}

fn data(tsn: u32, flags: DataFlags, payload: impl Into<Bytes>) -> Chunk {
    let (payload, stamp) = (payload.into(), SendTimes::default());
    Chunk::Data(Data { flags, tsn: Tsn(tsn), stream: 0, ssn: Ssn(0), ppid: 15, payload, stamp })
}

/// RFC 9260 section 5.1.3: no state before COOKIE ECHO. INITs are in a queue of their own, of which a part is read in each turn, and an
/// agent is answered in the turn in which it asks, even if it is at the same address.
#[test]
fn a_flood_of_inits_leaves_no_state_and_does_not_delay_agents() {
    const FLOOD: u32 = 20_000;
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let mut stranger = Stranger::new(world, "127.0.0.1");
    let mut answered = 0;
    for tag in 1..=FLOOD {
        stranger.tag = tag;
        stranger.send(&stranger.init());
        if tag % 1000 == 0 {
            let request = Message::request(Tid(tag), per(5004, 60)).to_bytes();
            assert!(agent.association.queue(0, PAYLOAD_PROTOCOL, request));
            agent.association.flush();
            agent.exchange(world);
            assert!(agent.association.has_message(), "it is answered in one turn");
            assert!(matches!(agent.receive(world).unwrap().body, Body::Reply(Reply::Per(_))));
            answered += std::iter::from_fn(|| stranger.receive()).count();
        }
    }
    assert!((20..20_000).contains(&answered), "{answered} INITs were answered in between");
    world.settle();
    assert_eq!((world.daemon.connections.len(), associations(world)), (1, 1));
    let max = world.daemon.metrics.lock().max_work;
    assert!(max <= Limits::TURN_WORK / 2, "a turn of {max}");
}

/// RFC 9260 sections 6.8, 8.4 and 8.5.
#[test]
fn invalid_packets_change_nothing() {
    let world = &mut world();
    let mut agent = Peer::session(world, "127.0.0.1");
    let mut stranger = Stranger::new(world, "127.0.0.1");
    let tag = stranger.join(world);
    let before = (world.daemon.connections.len(), associations(world));
    let mut corrupted =
        stranger.packet(tag, vec![Chunk::Abort { reflected: false, causes: Vec::new() }]).to_vec();
    corrupted[8] ^= 1;
    let wrong_tag = stranger.packet(tag ^ 1, vec![Chunk::Abort { reflected: false, causes: Vec::new() }]);
    let wrong_reflection = stranger.packet(tag, vec![Chunk::Abort { reflected: true, causes: Vec::new() }]);
    for octets in [&corrupted[..], &wrong_tag, &wrong_reflection, b"", b"x", &[0; 12], &[0xff; 2000]] {
        stranger.send(octets);
        world.turn();
        world.turn();
        assert_eq!((world.daemon.connections.len(), associations(world)), before);
    }
    // Of another host, even with the right tag.
    let other = Stranger::new(world, "127.0.0.2");
    other.send(&stranger.packet(tag, vec![Chunk::Abort { reflected: false, causes: Vec::new() }]));
    world.settle();
    assert_eq!((world.daemon.connections.len(), associations(world)), before);
    assert!(matches!(agent.ask(world, per(5004, 60)), Body::Reply(Reply::Per(_))));
    // The peer itself may abort: RFC 9260 section 9.1.
    stranger.send(&stranger.packet(tag, vec![Chunk::Abort { reflected: false, causes: Vec::new() }]));
    world.settle();
    assert_eq!((world.daemon.connections.len(), associations(world)), (1, 1));
    stranger.port += 1;
    stranger.join(world);
    assert_eq!(associations(world), 2);
}

/// RFC 9260 section 5.2.4 A: a restarted peer has one session, not two.
#[test]
fn a_restart_ends_the_former_session() {
    let world = &mut world();
    let mut stranger = Stranger::new(world, "127.0.0.1");
    let old = stranger.join(world);
    stranger.tag = 7;
    let new = stranger.join(world);
    assert_ne!(old, new);
    assert_eq!((world.daemon.connections.len(), associations(world)), (1, 1));
    stranger.send(&stranger.packet(new, vec![Chunk::Heartbeat(Bytes::from_static(b"there?"))]));
    world.turn();
    let packets: Vec<_> = std::iter::from_fn(|| stranger.receive()).collect();
    assert!(
        packets
            .iter()
            .any(|packet| packet.chunks.contains(&Chunk::HeartbeatAck(Bytes::from_static(b"there?"))))
    );
}

/// RFC 9260 section 5.1: DATA may be bundled with the COOKIE ECHO.
#[test]
fn a_request_in_the_packet_of_the_cookie_is_answered() {
    let world = &mut world();
    let stranger = Stranger::new(world, "127.0.0.1");
    let (tag, cookie) = stranger.invitation(world);
    let request = Message::request(Tid(0), Request::Se { version: Version::SIMCO_3_0, challenge: None });
    let whole = DataFlags(DataFlags::BEGIN.0 | DataFlags::END.0);
    let chunks = vec![Chunk::CookieEcho(cookie), data(1, whole, request.to_bytes())];
    stranger.send(&stranger.packet(tag, chunks));
    world.turn();
    let packets: Vec<_> = std::iter::from_fn(|| stranger.receive()).collect();
    let answers = packets.iter().flat_map(|packet| &packet.chunks).filter_map(|chunk| match chunk {
        Chunk::Data(data) => Some(Message::parse(&data.payload).unwrap().body),
        _ => None,
    });
    assert!(matches!(answers.collect::<Vec<_>>()[..], [Body::Reply(Reply::Se { .. })]), "{packets:?}");
}

/// The maximum of connections holds for associations, too. As over TCP, the oldest connection without a session gives way, of the
/// address that has most of them.
#[test]
fn associations_without_a_session_give_way_to_others() {
    let world = &mut world_with(20);
    let mut agent = Peer::session(world, "127.0.0.1");
    let early: Vec<Peer> = (2..6).map(|host| Peer::connect(world, &format!("127.0.0.{host}"))).collect();
    let attackers: Vec<Peer> = (0..40).map(|_| Peer::connect(world, "127.0.0.66")).collect();
    assert_eq!((world.daemon.connections.len(), associations(world)), (20, 20));
    let mut late = Peer::session(world, "127.0.0.7");
    assert!(matches!(late.ask(world, per(5005, 60)), Body::Reply(Reply::Per(_))));
    assert!(matches!(agent.ask(world, per(5004, 60)), Body::Reply(Reply::Per(_))));
    for mut peer in early {
        peer.exchange(world);
        assert!(!peer.association.has_ended(), "those of other addresses remain");
    }
    let displaced = attackers.into_iter().filter_map(|mut peer| {
        peer.exchange(world);
        peer.association.has_ended().then_some(())
    });
    assert_eq!(displaced.count(), 40 - 14, "the daemon aborts them");
}

/// RFC 9260 section 5.1: the peer repeats its COOKIE ECHO.
#[test]
fn an_agent_waits_while_all_places_are_taken_by_sessions() {
    let world = &mut world_with(2);
    let (first, _second) = (Peer::session(world, "127.0.0.1"), Peer::session(world, "127.0.0.1"));
    let mut third = Peer::begin(world, "127.0.0.1");
    (0..3).for_each(|_| third.exchange(world));
    assert!(!third.association.is_established());
    assert_eq!(associations(world), 2);
    let mut first = first;
    first.association.abort();
    first.exchange(world);
    world.settle();
    for _ in 0..10 {
        world.skip(hol_base::Duration::from_secs(1));
        third.exchange(world);
        third.exchange(world);
    }
    assert!(third.association.is_established());
}

/// Chunks of one octet need far more memory than their user data.
#[test]
fn a_peer_that_sends_tiny_fragments_is_aborted() {
    let world = &mut world();
    let stranger = Stranger::new(world, "127.0.0.1");
    let tag = stranger.join(world);
    let mut tsn = 1;
    for _ in 0..100 {
        let chunks = (0..50).map(|_| {
            tsn += 1;
            let flags = if tsn == 2 { DataFlags::BEGIN } else { DataFlags(0) };
            data(tsn - 1, flags, &b"x"[..])
        });
        stranger.send(&stranger.packet(tag, chunks.collect()));
        world.turn();
        assert!(world.daemon.connections.queued_octets() < 512 << 10);
        while stranger.receive().is_some() {}
        if world.daemon.connections.len() == 0 {
            assert_eq!(associations(world), 0);
            return assert!(tsn < 2200, "{tsn}");
        }
    }
    panic!("{tsn} fragments are held")
}

/// Data after a gap fill the receive window, and no more.
#[test]
fn data_after_a_gap_need_bounded_memory() {
    let world = &mut world();
    let stranger = Stranger::new(world, "127.0.0.1");
    let tag = stranger.join(world);
    for tsn in 2..200 {
        stranger.send(&stranger.packet(tag, vec![data(tsn, DataFlags(0), vec![1; 1000])]));
        world.turn();
    }
    assert_eq!(world.daemon.connections.len(), 1);
    let held = world.daemon.connections.queued_octets();
    assert!((16 << 10..32 << 10).contains(&held), "{held}");
}

/// All associations together hold at most `backlog`.
#[test]
fn what_associations_hold_counts_against_the_backlog() {
    let limits = Limits { backlog: 100_000, ..Limits::default() };
    let world = &mut Plan { transport: Transport::SctpOverUdp, limits, ..Plan::default() }.open();
    let mut agent = Peer::session(world, "127.0.0.1");
    for host in 2..20 {
        let stranger = Stranger::new(world, &format!("127.0.0.{host}"));
        let tag = stranger.join(world);
        for tsn in 2..14 {
            stranger.send(&stranger.packet(tag, vec![data(tsn, DataFlags(0), vec![1; 1000])]));
        }
        world.settle();
        assert!(world.daemon.connections.queued_octets() <= 100_000);
    }
    assert!(world.daemon.connections.len() < 10);
    assert!(matches!(agent.ask(world, per(5004, 60)), Body::Reply(Reply::Per(_))));
}
