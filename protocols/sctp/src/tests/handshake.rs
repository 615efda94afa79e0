//! RFC 9260 section 5: tests the setup of an association, also by both ends at the same time.

use super::pair::{Network, Pair};
use super::script::{
    LOCAL, LOCAL_PORT, PEER_TAG, REMOTE, REMOTE_PORT, Script, config, init_ack, message, ms,
};
use super::server::{Server, init};
use crate::{Config, Endpoint};
use hol_base::{Duration, Seed, Time};
use hol_transport::{Command, Endpoint as _, Event, Failure, Input, Output, Reliability, drain};
use hol_wire::sctp::{Cause, Chunk, Packet, Parameter};

#[test]
fn four_packets_open_an_association() {
    // Section 5.1.
    let mut pair = Pair::new(&config(), Network::PERFECT, 1);
    pair.run(ms(100));
    let connected =
        |side: usize| pair.events[side].iter().find(|(_, e)| *e == Event::Connected).map(|(at, _)| *at);
    assert_eq!((connected(0), connected(1)), (Some(Time::from_millis(40)), Some(Time::from_millis(30))));
    assert_eq!(pair.sides.each_ref().map(|side| side.statistics().packets_sent), [2, 2]);
}

#[test]
fn listener_stores_nothing_before_cookie_echo() {
    // Section 5.1.3.
    let mut server = Server::new(config());
    let (first, first_cookie) = server.init();
    let (second, _) = server.init();
    assert_ne!(first.initiate_tag, second.initiate_tag);
    assert_eq!((server.endpoint.state_name(), server.endpoint.paths().len()), ("CLOSED", 0));
    let answers = server.ask(first.initiate_tag, vec![Chunk::CookieEcho(first_cookie)]);
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::CookieAck]);
    assert_eq!(server.endpoint.state_name(), "ESTABLISHED");
}

#[test]
fn init_flood_leaves_no_state_in_a_listener() {
    // Section 5.1.3: the content of an INIT is in the cookie. Only the random number generator has a new state.
    let mut server = Server::new(config());
    let (rng, before) = (server.endpoint.rng.clone(), format!("{:?}", server.endpoint));
    for number in 0..100_000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        let init = Packet {
            source_port: (1024 + number % 60_000) as u16,
            destination_port: REMOTE_PORT,
            verification_tag: 0,
            zero_checksum: false,
            chunks: vec![init(vec![])].into(),
        };
        let packet = hol_wire::Packet::new(hol_wire::ipv4(11, a, b, c), REMOTE[0], init);
        server.endpoint.handle(server.now, Input::Packet(packet));
        let mut answers = 0;
        drain(&mut server.endpoint, server.now, |_, output| {
            answers += usize::from(matches!(output, Output::Transmit(_)));
        });
        assert_eq!(answers, 1, "an INIT ACK, and no more than one");
    }
    let (after, sent) = (server.endpoint.rng.clone(), server.endpoint.statistics.packets_sent);
    assert_eq!(sent, 100_000);
    (server.endpoint.rng, server.endpoint.statistics) = (rng, Default::default());
    assert_eq!(format!("{:?}", server.endpoint), before);
    server.endpoint.rng = after;
    let (ack, cookie) = server.init();
    server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(server.endpoint.state_name(), "ESTABLISHED", "a client that returns its cookie is accepted");
}

#[test]
fn streams_are_negotiated_to_the_smaller_number() {
    // Section 5.1.1.
    let mut server = Server::new(Config { streams: 64, ..config() });
    let (ack, cookie) = server.init();
    server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(server.endpoint.outbound_streams(), 5);
    let mut script = Script::closed(Config { streams: 64, ..config() }, 1);
    script.command(Command::Connect);
    script.inject([init_ack(8, &[])]);
    assert_eq!(script.endpoint.outbound_streams(), 8);
}

#[test]
fn data_rides_with_the_cookie_echo() {
    // Section 5.1: one packet; the rest follows after COOKIE ACK.
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    for _ in 0..3 {
        script.command(Command::Send(message(0, 100)));
    }
    let Chunk::Init(init) = script.take_one().chunks[0].clone() else { unreachable!() };
    script.first = init.initial_tsn;
    script.inject([init_ack(8, &[])]);
    assert!(matches!(script.take_one().chunks[..], [Chunk::CookieEcho(_), Chunk::Data(_)]));
    script.inject([Chunk::CookieAck]);
    assert_eq!(script.take_data(), [(0, vec![2, 3])]);
}

#[test]
fn repeated_cookie_echo_carries_its_data_again() {
    // Section 5.1.6 (T1-cookie).
    let mut pair = Pair::new(&config(), Network::PERFECT, 1);
    pair.send_numbered(0, 0, 7, Reliability::Full);
    pair.run(ms(15));
    pair.cut = [true; 2];
    pair.run(ms(10));
    pair.cut = [false; 2];
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.numbers(1, 0), [7]);
    assert_eq!(pair.sides[0].outstanding(), 0);
}

#[test]
fn init_is_repeated_with_back_off_up_to_its_limit() {
    // Sections 5.1.6 and 4: Max.Init.Retransmits.
    let mut script = Script::closed(Config { max_init_retransmits: 3, ..config() }, 1);
    script.command(Command::Connect);
    script.run_to(60_000);
    let times: Vec<u64> = script.packets.iter().map(|(at, ..)| at.as_millis() - 1000).collect();
    assert_eq!(times, [0, 1000, 3000, 7000]);
    assert_eq!(script.events, [Event::Failed { reason: Failure::MaxInitRetransmits }]);
}

#[test]
fn stale_cookie_is_refused_and_a_longer_life_requested() {
    // Section 5.2.6.
    let mut server = Server::new(Config { valid_cookie_life: Duration::from_secs(1), ..config() });
    let (ack, cookie) = server.init();
    server.now = Time::from_millis(3500);
    let answers = server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    let error = Chunk::Error(vec![Cause::StaleCookie(2_500_000)]);
    assert_eq!((answers[0].verification_tag, &answers[0].chunks[0]), (PEER_TAG, &error));
    let mut script = Script::closed(Config { init_ack_reduces_streams: true, ..config() }, 1);
    script.command(Command::Connect);
    script.inject([init_ack(8, &[])]);
    script.packets.clear();
    script.inject([error]);
    let packet = script.take_one();
    let Chunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
    assert!(init.parameters.contains(&Parameter::CookiePreservative(5000)), "{init:?}");
    // The peer's numbers are now known (net/sctp/sm_make_chunk.c sctp_process_init).
    let streams = (init.outbound_streams, init.inbound_streams);
    assert_eq!(streams, (config().streams.min(8), config().max_inbound_streams.min(8)));
}

#[test]
fn init_after_a_stale_cookie_restarts_its_back_off() {
    // net/sctp/sm_sideeffect.c sctp_cmd_new_state: both timers of T1 restart; the error count continues.
    let mut script = Script::closed(Config { max_init_retransmits: 5, ..config() }, 1);
    script.command(Command::Connect);
    script.inject([init_ack(8, &[])]);
    script.run_to(4500);
    script.packets.clear();
    script.inject([Chunk::Error(vec![Cause::StaleCookie(1)])]);
    script.run_to(60_000);
    let times: Vec<u64> = script.packets.iter().map(|(at, ..)| at.as_millis() - 5500).collect();
    assert_eq!(times, [0, 1000, 3000]);
    assert_eq!(script.events, [Event::Failed { reason: Failure::MaxInitRetransmits }]);
}

#[test]
fn cookie_preservative_extends_the_cookie_life() {
    // Section 3.3.2.1.3; net/sctp/sm_make_chunk.c sctp_process_param. Otherwise no association would be possible over a path of 80 s.
    let answers = |millis: u64| {
        let mut server = Server::new(Config { valid_cookie_life: Duration::from_secs(1), ..config() });
        let (ack, cookie) = server.init_ack(init(vec![Parameter::CookiePreservative(5000)]));
        server.now = Time::from_millis(millis);
        server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)])
    };
    assert_eq!(answers(6000)[0].chunks[0], Chunk::CookieAck);
    assert_eq!(answers(6001)[0].chunks[0], Chunk::Error(vec![Cause::StaleCookie(1000)]));
}

#[test]
fn cookie_ack_goes_where_the_stack_says() {
    // Section 5.4: to the source of the COOKIE ECHO, and with a HEARTBEAT; `net/sctp/sm_make_chunk.c` sctp_make_cookie_ack leaves it to
    // the path of the INIT.
    for (to_source, to) in [(true, 1), (false, 0)] {
        let mut server = Server::new(Config { cookie_ack_to_source: to_source, ..config() });
        let (ack, cookie) = server.init_ack(init(LOCAL.map(Parameter::of_address).to_vec()));
        let answers = server.ask_from(LOCAL[1], ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
        let expected: &[Chunk] = &[Chunk::CookieAck];
        assert_eq!((answers[0].0, &answers[0].1.chunks[..1]), (LOCAL[to], expected));
        assert_eq!(answers[0].1.chunks.len(), 1 + usize::from(to_source), "{answers:?}");
    }
}

#[test]
fn a_forged_cookie_is_dropped() {
    // Section 5.1.5.
    let mut server = Server::new(config());
    let (ack, cookie) = server.init();
    let forged: Vec<u8> = cookie.iter().map(|octet| octet ^ 1).collect();
    assert_eq!(server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(forged.into())]), []);
    assert_eq!(server.endpoint.state_name(), "CLOSED");
}

#[test]
fn cookie_of_an_earlier_attempt_is_ignored() {
    // Section 5.2.4 C.
    let mut server = Server::new(config());
    let (first, first_cookie) = server.init();
    let (second, second_cookie) = server.init();
    server.ask(second.initiate_tag, vec![Chunk::CookieEcho(second_cookie)]);
    assert_eq!(server.ask(first.initiate_tag, vec![Chunk::CookieEcho(first_cookie)]), []);
}

#[test]
fn restarted_peer_gets_a_new_association() {
    // Section 5.2.4 A.
    let mut server = Server::new(config());
    let (ack, cookie) = server.init();
    server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    let Chunk::Init(mut again) = init(vec![]) else { unreachable!() };
    again.initiate_tag = 0x1234;
    let answers = server.ask(0, vec![Chunk::Init(again)]);
    let Chunk::InitAck(ack) = &answers[0].chunks[0] else { panic!("{answers:?}") };
    assert_eq!(server.endpoint.peer_tag, PEER_TAG, "nothing changes before the cookie");
    let Some(Parameter::StateCookie(cookie)) = ack.parameters.last() else { panic!("{ack:?}") };
    let answers = server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie.clone())]);
    assert_eq!(
        (answers[0].verification_tag, answers[0].chunks.as_slice()),
        (0x1234, &[Chunk::CookieAck][..])
    );
}

#[test]
fn simultaneous_open_gives_one_association() {
    // Section 5.2.1 and 5.2.4 B and D.
    let rng = |seed| Seed(seed).rng();
    let mut sides = [
        Endpoint::connect(
            config(),
            LOCAL[..1].to_vec(),
            LOCAL_PORT,
            REMOTE[..1].to_vec(),
            REMOTE_PORT,
            rng(1),
        ),
        Endpoint::connect(
            config(),
            REMOTE[..1].to_vec(),
            REMOTE_PORT,
            LOCAL[..1].to_vec(),
            LOCAL_PORT,
            rng(2),
        ),
    ];
    let now = Time::ZERO;
    let mut wire = std::collections::VecDeque::new();
    for (index, side) in sides.iter_mut().enumerate() {
        side.handle(now, Input::Command(Command::Connect));
        drain(side, now, |_, output| wire.push_back((1 - index, output)));
    }
    while let Some((to, output)) = wire.pop_front() {
        if let Output::Transmit(packet) = output {
            sides[to].handle(now, Input::Packet(packet));
            drain(&mut sides[to], now, |_, output| wire.push_back((1 - to, output)));
        }
    }
    assert_eq!(sides.each_ref().map(Endpoint::state_name), ["ESTABLISHED"; 2]);
    assert_eq!((sides[0].peer_tag, sides[1].peer_tag), (sides[1].local_tag, sides[0].local_tag));
}

/// Linux: `sctp_unpack_cookie` (net/sctp/sm_make_chunk.c) sets the TSNs of the new association except `last_cwr_tsn`.
#[test]
fn half_of_the_servers_treat_echoes_of_marks_as_answered() {
    let ignoring = |is_random| {
        let config = Config { ecn: true, ecn_answered_to_random_tsn: is_random, ..config() };
        let ignores = |seed: &u64| {
            let pair = Pair::connected(&config, Network::PERFECT, *seed);
            let [client, server] = &pair.sides;
            assert!(client.initial_tsn.after(client.marks.answered_tsn));
            !server.initial_tsn.after(server.marks.answered_tsn)
        };
        (0..200).filter(ignores).count()
    };
    assert_eq!(ignoring(false), 0);
    assert!((70..130).contains(&ignoring(true)));
}
