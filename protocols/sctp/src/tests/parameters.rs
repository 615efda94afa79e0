//! RFC 9260 sections 3.2, 3.3.2, 3.3.3 and 5.1.1 to 5.1.2: tests the parameters of INIT and INIT ACK, and chunks of unknown types.

use super::script::{LOCAL, PEER_TAG, PEER_TSN, REMOTE, Script, config, data, delivered, init_ack};
use super::server::{Server, init};
use crate::Config;
use bytes::Bytes;
use hol_transport::{Command, Event};
use hol_wire::ipv4;
use hol_wire::sctp::{Cause, Chunk, ForwardTsn, Init, Packet, Parameter};
use smallvec::smallvec;

fn unknown(kind: u16, length: usize) -> Parameter {
    Parameter::Unknown { kind, value: vec![7; length].into() }
}

/// Returns the peer's INIT ACK with these parameters before the usual ones.
fn init_ack_with(parameters: Vec<Parameter>) -> Chunk {
    let Chunk::InitAck(mut init) = init_ack(8, &[]) else { unreachable!() };
    init.parameters.splice(0..0, parameters);
    Chunk::InitAck(init)
}

/// Returns the answer of an opening endpoint to an INIT ACK, and whether the endpoint has ended.
fn answer_to(init_ack: Chunk) -> (Packet, bool) {
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    script.packets.clear();
    script.inject([init_ack]);
    (script.take_one(), script.endpoint.is_closed())
}

#[test]
fn unknown_parameters_of_an_init_are_reported_in_the_init_ack() {
    // RFC 9260 section 3.2.2.
    let mut server = Server::new(config());
    let (ack, _) = server.init_ack(init(vec![
        unknown(0xc001, 5),
        unknown(0x8001, 4),
        unknown(0x4001, 0),
        unknown(0xc002, 0),
    ]));
    let reports: Vec<_> =
        ack.parameters.iter().filter(|parameter| matches!(parameter, Parameter::Unrecognized(_))).collect();
    let report = |parameter| Parameter::Unrecognized(Parameter::list(&[parameter]));
    assert_eq!(reports, [&report(unknown(0xc001, 5)), &report(unknown(0x4001, 0))]);
}

#[test]
fn reports_in_an_init_ack_fit_the_packet() {
    // RFC 9260 section 6.10: reports without room are omitted.
    let mut server = Server::new(config());
    let answers =
        server.ask(0, vec![init(vec![unknown(0xc001, 1000), unknown(0xc002, 400), unknown(0xc003, 4)])]);
    assert!(answers[0].length() <= 1480, "{} octets", answers[0].length());
    let Chunk::InitAck(ack) = &answers[0].chunks[0] else { panic!("{answers:?}") };
    assert_eq!(
        ack.parameters.iter().filter(|parameter| matches!(parameter, Parameter::Unrecognized(_))).count(),
        2
    );
}

#[test]
fn unknown_init_ack_parameters_are_reported_after_cookie_echo() {
    // RFC 9260 sections 3.2.2 and 3.3.10.8.
    let strange = vec![unknown(0xc001, 5), unknown(0x8001, 4), unknown(0x4001, 0), unknown(0xc002, 0)];
    let (packet, _) = answer_to(init_ack_with(strange));
    let copies = Parameter::list(&[unknown(0xc001, 5), unknown(0x4001, 0)]);
    let error = Chunk::Error(vec![Cause::UnrecognizedParameters(copies)]);
    let cookie = Chunk::CookieEcho(Bytes::from_static(b"cookie"));
    assert_eq!(packet.chunks.as_slice(), [cookie, error]);
}

#[test]
fn report_without_room_after_cookie_echo_waits_for_cookie_ack() {
    // RFC 9260 section 3.2.2.
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    script.packets.clear();
    let Chunk::InitAck(mut init) = init_ack_with(vec![unknown(0xc001, 700)]) else { unreachable!() };
    init.parameters.push(Parameter::StateCookie(Bytes::from_static(&[1; 800])));
    init.parameters
        .retain(|parameter| !matches!(parameter, Parameter::StateCookie(cookie) if cookie.len() < 800));
    script.inject([Chunk::InitAck(init)]);
    assert!(matches!(script.take_one().chunks.as_slice(), [Chunk::CookieEcho(_)]));
    script.inject([Chunk::CookieAck]);
    assert!(matches!(script.take_one().chunks.as_slice(), [Chunk::Error(_)]));
}

#[test]
fn unknown_parameter_can_stop_the_processing() {
    // RFC 9260 section 3.2.1: parameters after it are not processed, those before it are, and the handshake continues.
    let addresses = |stop| {
        let mut server = Server::new(config());
        server.open(init(vec![
            Parameter::of_address(LOCAL[1]),
            unknown(stop, 4),
            Parameter::of_address(REMOTE[1]),
        ]));
        server.endpoint.paths().iter().map(crate::Path::address).collect::<Vec<_>>()
    };
    assert_eq!(addresses(0x0100), [LOCAL[0], LOCAL[1]]);
    assert_eq!(addresses(0x4100), [LOCAL[0], LOCAL[1]]);
    assert_eq!(addresses(0x8100), [LOCAL[0], LOCAL[1], REMOTE[1]]);
    let (packet, ended) = answer_to(init_ack_with(vec![unknown(0x0100, 4)]));
    assert!(matches!(packet.chunks.as_slice(), [Chunk::CookieEcho(_)]) && !ended);
}

#[test]
fn known_but_unused_parameters_are_ignored() {
    // RFC 9260 sections 3.3.2.1, 3.3.3.1 and 5.1.2: they are no error, and the parameters after them are processed.
    let known = vec![
        Parameter::Ipv6Address([0xfd; 16].into()),
        Parameter::CookiePreservative(1000),
        Parameter::SupportedAddressTypes(vec![6, 11]),
        Parameter::Unrecognized(Bytes::from_static(&[0xc0, 1, 0, 4])),
        Parameter::of_address(REMOTE[1]),
    ];
    let mut server = Server::new(config());
    let (ack, cookie) = server.init_ack(init(known.clone()));
    assert!(!ack.parameters.iter().any(|parameter| matches!(parameter, Parameter::Unrecognized(_))));
    server.ask(ack.initiate_tag, vec![Chunk::CookieEcho(cookie)]);
    assert_eq!(server.endpoint.paths().len(), 2);
    let (packet, _) = answer_to(init_ack_with(known));
    assert!(matches!(packet.chunks.as_slice(), [Chunk::CookieEcho(_)]), "{packet:?}");
}

#[test]
fn non_unicast_address_is_ignored() {
    // RFC 9260 section 5.1.2 requires valid addresses, section 8.4 unicast ones.
    let many = [ipv4(224, 0, 0, 1), ipv4(255, 255, 255, 255), ipv4(0, 0, 0, 0)];
    let mut server = Server::new(config());
    server.open(init(many.map(Parameter::of_address).to_vec()));
    assert_eq!(server.endpoint.paths().len(), 1);
}

#[test]
fn a_host_name_is_refused() {
    // RFC 9260 sections 3.3.2.1.4, 5.1.2 B and 3.3.10.5.
    let name = Parameter::HostNameAddress(Bytes::from_static(b"a.example\0"));
    let causes = vec![Cause::UnresolvableAddress(Parameter::list(std::slice::from_ref(&name)))];
    let abort = [Chunk::Abort { reflected: false, causes }];
    let mut server = Server::new(config());
    let answers = server.ask(0, vec![init(vec![name.clone()])]);
    assert_eq!((answers[0].verification_tag, answers[0].chunks.as_slice()), (PEER_TAG, &abort[..]));
    let (packet, ended) = answer_to(init_ack_with(vec![name]));
    assert_eq!((packet.verification_tag, packet.chunks.as_slice(), ended), (PEER_TAG, &abort[..], true));
}

#[test]
fn init_ack_without_a_mandatory_field_is_refused() {
    // RFC 9260 sections 3.3.3, 5.1 and 3.3.10.2.
    type Breaks = fn(&mut Init);
    let refused = |breaks: Breaks| {
        let Chunk::InitAck(mut init) = init_ack(8, &[]) else { unreachable!() };
        breaks(&mut init);
        let (packet, ended) = answer_to(Chunk::InitAck(init));
        assert!(ended);
        let [Chunk::Abort { reflected, causes }] = packet.chunks.as_slice() else { panic!("{packet:?}") };
        (packet.verification_tag, *reflected, causes.clone())
    };
    let invalid = (PEER_TAG, false, vec![Cause::InvalidMandatoryParameter]);
    assert_eq!(refused(|init| init.outbound_streams = 0), invalid);
    assert_eq!(refused(|init| init.inbound_streams = 0), invalid);
    assert_eq!(refused(|init| init.a_rwnd = 1499), invalid);
    let missing = vec![Cause::MissingMandatoryParameter(7)];
    assert_eq!(refused(|init| init.parameters.clear()), (PEER_TAG, false, missing));
    let (tag, reflected, _) = refused(|init| init.initiate_tag = 0);
    assert!(tag != 0 && reflected, "it has no tag, so ours goes back");
}

#[test]
fn messages_on_streams_the_peer_lacks_are_abandoned() {
    // RFC 9260 section 5.1.1; an application that waits for room is informed.
    let send_buffer = hol_base::ByteCount(3000);
    let mut script = Script::closed(Config { streams: 10, send_buffer, ..config() }, 1);
    script.command(Command::Connect);
    script.packets.clear();
    for stream in [0, 9, 4] {
        script.send(stream, 900);
    }
    assert!(!hol_transport::Endpoint::can_send(&script.endpoint, 900));
    script.inject([init_ack(4, &[])]);
    assert_eq!(
        script.events,
        [Event::Abandoned { stream: 9 }, Event::Abandoned { stream: 4 }, Event::Writable]
    );
    script.inject([Chunk::CookieAck]);
    let data = script.packets.iter().flat_map(|(_, _, packet)| &packet.chunks);
    assert_eq!(data.filter(|chunk| matches!(chunk, Chunk::Data(_))).count(), 1);
}

#[test]
fn forward_tsn_is_negotiated_by_parameter_or_extension_list() {
    // RFC 3758 section 3.3, RFC 5061 section 4.2.7.
    let agreed = |parameters| {
        let mut server = Server::new(config());
        server.open(init(parameters));
        server.endpoint.partial_reliability
    };
    assert!(agreed(vec![Parameter::ForwardTsnSupported]));
    assert!(agreed(vec![Parameter::SupportedExtensions(vec![ForwardTsn::KIND])]));
    assert!(!agreed(vec![Parameter::SupportedExtensions(vec![0x0f])]));
    assert!(!agreed(vec![]));
}

#[test]
fn forward_tsn_without_negotiation_is_an_unknown_chunk() {
    // RFC 3758 section 3.3.1: its type requires to continue and to report it.
    let mut server = Server::established(config(), vec![]);
    let forward =
        Chunk::ForwardTsn(Box::new(ForwardTsn { new_cumulative_tsn: PEER_TSN + 3, skipped: smallvec![] }));
    let answers = server.ask(server.endpoint.local_tag, vec![forward.clone(), data(1)]);
    let mut copy = Vec::new();
    forward.emit(&mut copy);
    let error = Chunk::Error(vec![Cause::UnrecognizedChunk(copy.into())]);
    assert_eq!(answers[0].chunks[0], error);
    let Chunk::Sack(sack) = &answers[0].chunks[1] else { panic!("{answers:?}") };
    assert_eq!(sack.cumulative_tsn, PEER_TSN);
}

#[test]
fn top_bits_decide_how_unknown_chunks_are_handled() {
    // RFC 9260 section 3.2: 0x40 reports, 0x80 continues.
    for (kind, reports, goes_on) in
        [(0x3e, false, false), (0x7e, true, false), (0xbe, false, true), (0xfe, true, true)]
    {
        let mut script = Script::established(config());
        let value = Bytes::from_static(&[1, 2, 3, 4, 5]);
        script.inject([Chunk::Unknown { kind, flags: 9, value }, data(1)]);
        let copy = Bytes::from(vec![kind, 9, 0, 9, 1, 2, 3, 4, 5]);
        let error = Chunk::Error(vec![Cause::UnrecognizedChunk(copy)]);
        let sent: Vec<Chunk> =
            script.packets.iter().flat_map(|(_, _, packet)| packet.chunks.clone()).collect();
        assert_eq!((sent.contains(&error), delivered(&script.events).len()), (reports, usize::from(goes_on)));
    }
}

#[test]
fn a_report_of_an_unknown_chunk_fits_into_a_packet() {
    // RFC 9260 section 6.10: the chunk filled its packet.
    let mut script = Script::established(config());
    script.inject([Chunk::Unknown { kind: 0xfe, flags: 0, value: vec![7; 1464].into() }]);
    assert_eq!(script.take_one().length(), 1480);
}
