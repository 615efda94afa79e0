//! RFC 9260 sections 5.2, 6.10, 8.4 and 8.5: tests packets that do not fit the state.

use super::script::{
    LOCAL, LOCAL_PORT, PEER_TAG, REMOTE, REMOTE_PORT, Script, config, data, init_ack, message,
};
use super::server::{Server, init, init_with};
use crate::{Config, response_to_out_of_the_blue};
use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_transport::{Command, Endpoint as _, Event, Failure, Input, Output, drain};
use hol_wire::sctp::{Cause, Chunk, Packet, Parameter};
use hol_wire::{Address, Transport, sctp};
use smallvec::smallvec;

const NEW: Address = hol_wire::ipv4(10, 9, 9, 9);

fn abort(reflected: bool) -> Chunk {
    Chunk::Abort { reflected, causes: Vec::new() }
}

/// Returns an endpoint in the state COOKIE-WAIT, and discards its INIT.
fn in_cookie_wait() -> Script {
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    script.packets.clear();
    script
}

fn in_cookie_echoed() -> Script {
    let mut script = in_cookie_wait();
    script.inject([init_ack(8, &[])]);
    script.packets.clear();
    script
}

#[test]
fn restart_stops_the_pending_shutdown() {
    // RFC 9260 section 5.2.4 A: the timers T2 and T5 belong to the old association.
    let mut server = Server::established(Config { heartbeat: false, ..config() }, vec![]);
    server.command(Command::Close);
    assert_eq!(server.endpoint.state_name(), "SHUTDOWN-SENT");
    let answers = server.open(init_with(0x1234, vec![]));
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::CookieAck]);
    assert_eq!(server.endpoint.state_name(), "ESTABLISHED");
    assert_eq!(server.run_to(Time::from_millis(1_000_000)), []);
    assert_eq!(
        (server.endpoint.state_name(), server.events.as_slice()),
        ("ESTABLISHED", &[Event::Connected][..])
    );
}

#[test]
fn restart_resets_cwnd_and_reports_lost_messages() {
    // RFC 9260 section 5.2.4 A: like after an ABORT.
    let mut server = Server::established(config(), vec![]);
    for stream in [1, 2, 3] {
        server.command(Command::Send(message(stream, 4000)));
    }
    server.run_to(Time::from_millis(1500));
    assert_eq!(server.endpoint.paths()[0].cwnd(), 1500);
    server.open(init_with(0x1234, vec![]));
    let lost = [1, 2, 3].map(|stream| Event::Abandoned { stream });
    assert_eq!(server.events[1..], [&lost[..], &[Event::Connected]].concat());
    assert_eq!((server.endpoint.paths()[0].cwnd(), server.endpoint.outstanding()), (4404, 0));
    let sent = server.command(Command::Send(message(1, 100)));
    let Chunk::Data(first) = &sent[0].1.chunks[0] else { panic!("{sent:?}") };
    assert_eq!((first.tsn, first.ssn), (server.endpoint.initial_tsn, sctp::Ssn(0)));
}

#[test]
fn an_init_that_adds_an_address_is_refused() {
    // RFC 9260 sections 5.2.2 and 3.3.10.11; the association continues.
    let mut server = Server::established(config(), vec![]);
    let added = Parameter::of_address(NEW);
    let again = init_with(0x1234, vec![Parameter::of_address(LOCAL[0]), added.clone()]);
    let answers = server.ask(0, vec![again]);
    let causes = vec![Cause::NewAddresses(Parameter::list(std::slice::from_ref(&added)))];
    assert_eq!(answers[0].verification_tag, 0x1234);
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::Abort { reflected: false, causes: causes.clone() }]);
    // From the new address itself, listing an address of the association.
    let again = init_with(0x1234, vec![Parameter::of_address(LOCAL[0])]);
    let answers = server.ask_from(NEW, 0, vec![again]);
    assert_eq!(answers[0].1.chunks.as_slice(), [Chunk::Abort { reflected: false, causes }]);
    assert_eq!(answers[0].0, NEW);
    assert_eq!((server.endpoint.state_name(), server.endpoint.paths().len()), ("ESTABLISHED", 1));
    assert_eq!(server.endpoint.peer_tag, PEER_TAG);
}

#[test]
fn init_without_new_addresses_is_answered() {
    // RFC 9260 section 5.2.2: with a new tag, but otherwise unchanged.
    let addresses = || vec![Parameter::of_address(LOCAL[0]), Parameter::of_address(LOCAL[1])];
    let mut server = Server::established(config(), addresses());
    let tag = server.endpoint.local_tag;
    for parameters in [vec![], addresses()] {
        let (ack, _) = server.init_ack(init_with(0x1234, parameters));
        assert_ne!(ack.initiate_tag, tag);
    }
    assert_eq!((server.endpoint.local_tag, server.endpoint.peer_tag), (tag, PEER_TAG));
}

#[test]
fn init_adding_an_address_in_cookie_echoed_is_refused() {
    // RFC 9260 section 5.2.1.
    let mut script = in_cookie_echoed();
    script.inject_with_tag(0, smallvec![init_with(0x1234, vec![Parameter::of_address(NEW)])]);
    let answer = script.take_one();
    assert_eq!(answer.verification_tag, 0x1234);
    let [Chunk::Abort { reflected: false, causes }] = answer.chunks.as_slice() else { panic!("{answer:?}") };
    assert!(matches!(causes[..], [Cause::NewAddresses(_)]));
    assert_eq!(script.endpoint.state_name(), "COOKIE-ECHOED");
    script.inject([Chunk::CookieAck]);
    assert_eq!(script.events, [Event::Connected]);
}

#[test]
fn init_during_the_handshake_is_answered_with_our_own_tag() {
    // RFC 9260 section 5.2.1: unchanged, and T1 continues.
    for mut script in [in_cookie_wait(), in_cookie_echoed()] {
        let (state, tag) = (script.endpoint.state_name(), script.endpoint.local_tag);
        script.inject_with_tag(0, smallvec![init_with(0x1234, vec![])]);
        let answer = script.take_one();
        let Chunk::InitAck(ack) = &answer.chunks[0] else { panic!("{answer:?}") };
        assert_eq!((answer.verification_tag, ack.initiate_tag), (0x1234, tag));
        assert_eq!(ack.initial_tsn, script.endpoint.initial_tsn);
        assert_eq!(script.endpoint.state_name(), state);
        script.run_to(1000);
        assert_eq!(script.packets.len(), 1, "T1 runs on");
    }
}

#[test]
fn init_during_the_handshake_must_come_from_a_peer_address() {
    // RFC 9260 section 5.2.1, rules 1 and 2; no other endpoint listens.
    let answer_to = |parameters| {
        let mut script = in_cookie_wait();
        let packet = Packet {
            source_port: REMOTE_PORT,
            destination_port: LOCAL_PORT,
            verification_tag: 0,
            zero_checksum: false,
            chunks: smallvec![init(parameters)],
        };
        let packet = hol_wire::Packet::new(NEW, LOCAL[0], Transport::Sctp(Box::new(packet)));
        script.input(Input::Packet(packet));
        let (_, address, answer) = script.packets.remove(0);
        (address, matches!(answer.chunks[0], Chunk::InitAck(_)))
    };
    assert_eq!(answer_to(vec![Parameter::of_address(REMOTE[0])]), (REMOTE[0], true));
    assert_eq!(answer_to(vec![]), (NEW, false));
}

#[test]
fn init_without_a_listener_is_aborted_with_its_tag() {
    // RFC 9260 section 8.4 (3): the T bit is not set, because the tag is not reflected.
    let refused = [(PEER_TAG, abort(false))];
    let answers = |script: &mut Script| {
        script.inject_with_tag(0, smallvec![init(vec![])]);
        script
            .packets
            .drain(..)
            .map(|(_, _, answer)| (answer.verification_tag, answer.chunks[0].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(answers(&mut Script::closed(config(), 1)), refused);
    let mut ended = Script::established(config());
    ended.command(Command::Abort);
    ended.packets.clear();
    assert_eq!(answers(&mut ended), refused);
    let mut stray = Packet {
        source_port: 1,
        destination_port: 2,
        verification_tag: 0,
        zero_checksum: false,
        chunks: smallvec![init(vec![])],
    };
    let answer = response_to_out_of_the_blue(&stray).expect("it is refused");
    assert_eq!((answer.verification_tag, &answer.chunks[0]), (PEER_TAG, &abort(false)));
    // Section 3.3.2: without a tag there is no answer.
    stray.chunks = smallvec![init_with(0, vec![])];
    assert_eq!(response_to_out_of_the_blue(&stray), None);
    let mut ended_without_tag = Script::closed(config(), 1);
    ended_without_tag.inject_with_tag(0, stray.chunks);
    assert!(ended_without_tag.packets.is_empty());
}

#[test]
fn invalid_init_fields_are_refused() {
    // RFC 9260 section 3.3.2: no streams, or a window below 1500 octets; a tag of zero is dropped.
    let breakages: [fn(&mut sctp::Init); 3] =
        [|init| init.outbound_streams = 0, |init| init.inbound_streams = 0, |init| init.a_rwnd = 1499];
    for broken in breakages {
        let Chunk::Init(mut init) = init(vec![]) else { unreachable!() };
        broken(&mut init);
        for mut server in [Server::new(config()), Server::established(config(), vec![])] {
            let state = server.endpoint.state_name();
            let answers = server.ask(0, vec![Chunk::Init(init.clone())]);
            let causes = vec![Cause::InvalidMandatoryParameter];
            assert_eq!(answers[0].chunks.as_slice(), [Chunk::Abort { reflected: false, causes }]);
            assert_eq!((answers[0].verification_tag, server.endpoint.state_name()), (PEER_TAG, state));
        }
    }
    assert_eq!(Server::new(config()).ask(0, vec![init_with(0, vec![])]), []);
}

#[test]
fn abort_needs_the_right_tag() {
    // RFC 9260 section 8.5.1 B. Before INIT ACK the peer has no tag, so none can be reflected.
    for reflected in [true, false] {
        let mut script = in_cookie_wait();
        script.inject_with_tag(0, smallvec![abort(reflected)]);
        assert_eq!((script.endpoint.state_name(), script.events.len()), ("COOKIE-WAIT", 0));
    }
    let mut script = in_cookie_wait();
    script.inject([abort(false)]);
    assert_eq!(script.events, [Event::Failed { reason: Failure::Refused }]);
    let ends = |verification_tag: fn(&Script) -> u32, chunks| {
        let mut script = Script::established(config());
        script.inject_with_tag(verification_tag(&script), chunks);
        assert!(script.packets.is_empty(), "an ABORT is never answered");
        script.endpoint.is_closed()
    };
    assert!(ends(|script| script.endpoint.local_tag, smallvec![abort(false)]));
    assert!(ends(|_| PEER_TAG, smallvec![abort(true)]));
    assert!(!ends(|_| PEER_TAG, smallvec![abort(false)]));
    assert!(!ends(|script| script.endpoint.local_tag, smallvec![abort(true)]));
    assert!(!ends(|script| script.endpoint.local_tag, smallvec![Chunk::CookieAck, abort(true)]));
    assert!(ends(|script| script.endpoint.local_tag, smallvec![Chunk::CookieAck, abort(false)]));
}

#[test]
fn reflected_tag_of_an_abandoned_attempt_is_ignored() {
    // RFC 9260 sections 5.2.6 and 8.5.1 B: in COOKIE-WAIT again, the peer has no tag again.
    let mut script = in_cookie_echoed();
    script.inject([Chunk::Error(vec![Cause::StaleCookie(1)])]);
    assert_eq!(script.endpoint.state_name(), "COOKIE-WAIT");
    script.inject_with_tag(PEER_TAG, smallvec![abort(true)]);
    assert_eq!(script.endpoint.state_name(), "COOKIE-WAIT");
}

#[test]
fn shutdown_ack_during_the_handshake_is_out_of_the_blue() {
    // RFC 9260 sections 8.5.1 E and 9.2: the tag is reflected, and T1 continues.
    for make in [in_cookie_wait, in_cookie_echoed] {
        for own in [true, false] {
            let mut script = make();
            let state = script.endpoint.state_name();
            let tag = if own { script.endpoint.local_tag } else { 0xdead };
            script.inject_with_tag(tag, smallvec![Chunk::ShutdownAck]);
            let answer = script.take_one();
            assert_eq!(answer.verification_tag, tag);
            assert_eq!(answer.chunks.as_slice(), [Chunk::ShutdownComplete { reflected: true }]);
            assert_eq!((script.endpoint.state_name(), script.events.len()), (state, 0));
            script.run_to(1000);
            assert_eq!(script.packets.len(), 1, "T1 runs on");
        }
    }
}

#[test]
fn only_init_ack_and_abort_count_before_the_peer_has_a_tag() {
    // RFC 9260 sections 5.2.5, 6, 8.3 and 9.2; the report of an unknown chunk would have no tag.
    let chunks = [
        data(1),
        Chunk::CookieAck,
        Chunk::Heartbeat(Bytes::from_static(b"there?")),
        Chunk::HeartbeatAck(Bytes::new()),
        Chunk::Shutdown { cumulative_tsn: sctp::Tsn(0) },
        Chunk::ShutdownComplete { reflected: false },
        Chunk::Error(vec![Cause::StaleCookie(1)]),
        Chunk::Unknown { kind: 0xfe, flags: 0, value: Bytes::new() },
        Script::established(config()).make_sack(0, &[], 1500),
    ];
    for chunk in chunks {
        let mut script = in_cookie_wait();
        script.inject([chunk.clone()]);
        assert_eq!((script.endpoint.state_name(), script.packets.len()), ("COOKIE-WAIT", 0), "{chunk:?}");
        assert_eq!(script.events, []);
    }
}

#[test]
fn bundled_init_and_shutdown_complete_are_ignored() {
    // RFC 9260 sections 5.1 and 6.10.
    let mut script = in_cookie_wait();
    script.inject([init_ack(8, &[]), data(1)]);
    assert_eq!((script.endpoint.state_name(), script.packets.len()), ("COOKIE-WAIT", 0));
    let mut server = Server::new(config());
    assert_eq!(server.ask(0, vec![init(vec![]), data(1)]), []);
    assert_eq!(server.ask(0, vec![data(1), init(vec![])]), []);
    let mut script = Script::established(config());
    let cumulative_tsn = script.first - 1;
    script.inject([Chunk::Shutdown { cumulative_tsn }]);
    script.inject([data(1), Chunk::ShutdownComplete { reflected: false }]);
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-ACK-SENT");
}

#[test]
fn linux_aborts_if_a_chunk_that_must_be_alone_is_bundled() {
    // `net/sctp/sm_statefuns.c` sctp_sf_do_5_1C_ack and sctp_sf_do_4_C.
    let linux = crate::fixtures::linux;
    let mut script = Script::closed(linux(), 1);
    script.command(Command::Connect);
    script.inject([init_ack(8, &[]), data(1)]);
    assert!(matches!(script.events[..], [Event::Failed { .. }]));
    let mut script = Script::established(linux());
    let cumulative_tsn = script.first - 1;
    script.inject([Chunk::Shutdown { cumulative_tsn }]);
    script.inject([data(1), Chunk::ShutdownComplete { reflected: false }]);
    assert!(matches!(script.packets.last().unwrap().2.chunks[0], Chunk::Abort { .. }));
}

#[test]
fn an_unexpected_init_ack_or_cookie_ack_is_discarded() {
    // RFC 9260 sections 5.2.3 and 5.2.5.
    for mut script in [in_cookie_echoed(), Script::established(config())] {
        let state = script.endpoint.state_name();
        let mut other = init_ack(8, &[]);
        let Chunk::InitAck(init) = &mut other else { unreachable!() };
        init.initiate_tag = 0;
        script.inject([init_ack(8, &[])]);
        script.inject([other]);
        assert_eq!((script.endpoint.state_name(), script.packets.len()), (state, 0));
    }
    let mut script = Script::established(config());
    script.inject([Chunk::CookieAck]);
    assert_eq!((script.packets.len(), script.events.len()), (0, 0));
}

#[test]
fn packets_out_of_the_blue_are_answered_as_the_rfc_says() {
    // RFC 9260 sections 8.4 and 8.5.1 A.
    let answer_to = |tag, chunks: Vec<Chunk>| {
        let answers = Server::new(config()).ask(tag, chunks);
        answers.first().map(|packet: &Packet| (packet.verification_tag, packet.chunks[0].clone()))
    };
    let answer = |chunk: Chunk| answer_to(99, vec![chunk]);
    assert_eq!(answer(abort(false)), None);
    assert_eq!(answer_to(99, vec![data(1), abort(false)]), None);
    assert_eq!(answer(Chunk::ShutdownComplete { reflected: false }), None);
    assert_eq!(answer(Chunk::CookieAck), None);
    assert_eq!(answer(Chunk::Error(vec![Cause::StaleCookie(1)])), None);
    assert_eq!(answer(Chunk::ShutdownAck), Some((99, Chunk::ShutdownComplete { reflected: true })));
    assert_eq!(answer(data(1)), Some((99, abort(true))));
    assert_eq!(answer(Chunk::Error(vec![Cause::OutOfResource])), Some((99, abort(true))));
    assert_eq!(answer(init(vec![])), Some((99, abort(true))), "an INIT has no tag");
    assert_eq!(answer_to(0, vec![data(1)]), None, "without a tag comes nothing but INIT");
}

#[test]
fn packets_from_or_to_non_unicast_addresses_are_dropped() {
    // RFC 9260 section 8.4 (1).
    for source in
        [hol_wire::ipv4(224, 0, 0, 1), hol_wire::ipv4(255, 255, 255, 255), hol_wire::ipv4(0, 0, 0, 0)]
    {
        let mut server = Server::new(config());
        assert_eq!(server.ask_from(source, 99, vec![data(1)]), []);
        assert_eq!(server.ask_from(source, 0, vec![init(vec![])]), []);
        let (ack, cookie) = server.init_ack(init(vec![]));
        assert_eq!(server.ask_from(source, ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]), []);
        assert_eq!(server.endpoint.state_name(), "CLOSED");
    }
}

#[test]
fn cookie_during_shutdown_is_refused() {
    // RFC 9260 sections 5.2.4 A and 3.3.10.10; section 9.2 for the INIT.
    let mut server = Server::established(config(), vec![]);
    let (ack, cookie) = server.init_ack(init_with(0x1234, vec![]));
    let cumulative_tsn = server.endpoint.initial_tsn - 1;
    server.ask(server.endpoint.local_tag, vec![Chunk::Shutdown { cumulative_tsn }]);
    assert_eq!(server.endpoint.state_name(), "SHUTDOWN-ACK-SENT");
    assert_eq!(server.ask(0, vec![init_with(0x1234, vec![])])[0].chunks.as_slice(), [Chunk::ShutdownAck]);
    let foreign = server.ask_from(hol_wire::ipv4(10, 9, 0, 1), 0, vec![init_with(0x1234, vec![])]);
    assert_eq!(foreign[0].1.chunks.as_slice(), [abort(false)], "the source is not an address of the peer");
    let answers = server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    let error = Chunk::Error(vec![Cause::CookieWhileShuttingDown]);
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::ShutdownAck, error]);
    assert_eq!(answers[0].verification_tag, PEER_TAG);
}

#[test]
fn a_cookie_echo_from_another_address_does_not_confirm_it() {
    // RFC 9260 section 5.4, rule 2: the address to which INIT ACK was sent is confirmed; a HEARTBEAT is bundled with the COOKIE ACK.
    let mut server = Server::new(config());
    let addresses = LOCAL.map(Parameter::of_address).to_vec();
    let (ack, cookie) = server.init_ack(init(addresses));
    let answers = server.ask_from(LOCAL[1], ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(answers[0].0, LOCAL[1]);
    assert!(matches!(answers[0].1.chunks.as_slice(), [Chunk::CookieAck, Chunk::Heartbeat(_)]), "{answers:?}");
    assert_eq!(server.endpoint.paths().iter().map(|path| path.confirmed).collect::<Vec<_>>(), [true, false]);
    let sent = server.command(Command::Send(message(0, 100)));
    assert_eq!(sent[0].0, LOCAL[0]);
}

#[test]
fn a_stale_cookie_with_the_tags_of_the_association_is_valid() {
    // RFC 9260 section 5.2.4 (3).
    let mut server = Server::new(Config { valid_cookie_life: Duration::from_secs(1), ..config() });
    let (ack, cookie) = server.init();
    server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie.clone())]);
    let (late, late_cookie) = server.init_ack(init_with(0x1234, vec![]));
    server.now = Time::from_millis(2000);
    let answers = server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::CookieAck]);
    let answers = server.ask(late.initiate_tag, vec![Chunk::CookieEcho(late_cookie)]);
    assert_eq!(answers[0].chunks.as_slice(), [Chunk::Error(vec![Cause::StaleCookie(1_000_000)])]);
    assert_eq!(answers[0].verification_tag, 0x1234);
}

#[test]
fn packet_with_other_ports_is_ignored() {
    // RFC 9260 section 3.1: the ports identify the association of a packet. Section 8.5: the tag alone does not.
    let ask = |source_port, destination_port| {
        let mut script = Script::established(config());
        let chunks = smallvec![Chunk::Heartbeat(Bytes::from_static(b"there?"))];
        let verification_tag = script.endpoint.local_tag;
        let packet = Packet { source_port, destination_port, verification_tag, zero_checksum: false, chunks };
        let packet = hol_wire::Packet::new(REMOTE[0], LOCAL[0], Transport::Sctp(Box::new(packet)));
        script.endpoint.handle(script.now, Input::Packet(packet));
        let mut answers = 0;
        drain(&mut script.endpoint, script.now, |_, output| {
            answers += u32::from(matches!(output, Output::Transmit(_)));
        });
        answers
    };
    assert_eq!(ask(REMOTE_PORT, LOCAL_PORT), 1);
    assert_eq!(ask(REMOTE_PORT + 1, LOCAL_PORT), 0);
    assert_eq!(ask(REMOTE_PORT, LOCAL_PORT + 1), 0);
}
