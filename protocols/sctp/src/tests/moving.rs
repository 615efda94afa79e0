//! RFC 4895 and RFC 5061: tests the addition and deletion of addresses.

use bytes::Bytes;
use hol_congestion::sctp::{CwndParameters, Window};
use hol_transport::{Command, Event, Failure, Input, PathStatus};
use hol_wire::sctp::{
    AddressOperation, Asconf, AsconfAck, AsconfSerial, Cause, Chunk, Init, Packet, Parameter, Request,
    Response,
};
use hol_wire::{Address, ipv4};
use proptest::prelude::*;

use super::pair::{Network, Pair};
use super::script::{LOCAL, PEER_TSN, REMOTE, Script, config, data, delivered, init_ack, message, ms};
use crate::authentication::{AuthOffer, Authentication, own_parameters};
use crate::{Config, Hash};

/// Returns the configuration of an endpoint that may change addresses.
fn mobile() -> Config {
    Config { auth: true, addip: true, ..config() }
}

/// Returns an association with a peer that has `addresses`, and the peer's keys.
fn established(config: Config, addresses: &[Address]) -> (Script, Authentication) {
    let mut script = Script::closed(config, 1);
    script.command(Command::Connect);
    let init = script.take_one();
    let Chunk::Init(init) = &init.chunks[0] else { panic!("{init:?}") };
    script.first = init.initial_tsn;
    let (keys, answer) = answer(init, addresses);
    script.inject([answer]);
    assert!(matches!(script.take_one().chunks[0], Chunk::CookieEcho(_)));
    script.inject([Chunk::CookieAck]);
    assert_eq!(script.events, [Event::Connected]);
    script.events.clear();
    (script, keys)
}

/// Returns the INIT ACK of a peer that supports all extensions.
fn answer(init: &Init, addresses: &[Address]) -> (Authentication, Chunk) {
    let own = own_parameters(Hash::Sha1, || 3);
    let offer = |parameters: &[Parameter]| AuthOffer::read(parameters).unwrap().unwrap();
    let keys = Authentication::new(&offer(&own), &offer(&init.parameters));
    let Chunk::InitAck(mut answer) = init_ack(8, addresses) else { unreachable!() };
    answer.parameters.push(Parameter::SupportedExtensions(vec![0xC1, 0x80, 0x0F]));
    answer.parameters.extend(own);
    (keys, Chunk::InitAck(answer))
}

/// Injects chunks that the peer has authenticated.
fn inject_signed<const N: usize>(script: &mut Script, keys: &Authentication, chunks: [Chunk; N]) {
    let mut all = vec![keys.empty_auth_chunk()];
    all.extend(chunks);
    keys.sign(&mut all);
    script.inject_with_tag(script.endpoint.local_tag, all.into_iter().collect());
}

fn address_added(script: &mut Script, address: Address) {
    script.input(Input::AddressAdded(address));
}

fn address_removed(script: &mut Script, address: Address) {
    script.input(Input::AddressRemoved(address));
}

/// Returns the only ASCONF, after verifying its authentication.
fn take_asconf(script: &mut Script, keys: &Authentication) -> Asconf {
    let mut found: Vec<Asconf> = Vec::new();
    for (_, _, packet) in script.packets.drain(..) {
        let Some(at) = packet.chunks.iter().position(|chunk| matches!(chunk, Chunk::Auth(_))) else {
            continue;
        };
        assert_eq!(keys.verify(&packet.chunks[at..]), Ok(true));
        found.extend(packet.chunks[at..].iter().filter_map(|chunk| match chunk {
            Chunk::Asconf(asconf) => Some(Asconf::clone(asconf)),
            _ => None,
        }));
    }
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn changes(asconf: &Asconf) -> Vec<AddressOperation> {
    asconf.requests.iter().map(|request| request.change.clone()).collect()
}

fn ack(asconf: &Asconf) -> Chunk {
    Chunk::AsconfAck(Box::new(AsconfAck { serial: asconf.serial, responses: Vec::new() }))
}

/// Returns the peer's `number`-th ASCONF, from 0.
fn asconf(number: u32, changes: &[AddressOperation]) -> Chunk {
    let request =
        |(change, correlation): (&AddressOperation, u32)| Request { correlation, change: change.clone() };
    let requests = changes.iter().zip(7..).map(request).collect();
    Chunk::Asconf(Box::new(Asconf { serial: AsconfSerial(PEER_TSN.0) + number, lookup: REMOTE[0], requests }))
}

/// Returns the answers that were sent, with their destinations.
fn take_acks(script: &mut Script) -> Vec<(Address, AsconfAck)> {
    let packets = script.packets.drain(..);
    let chunks = packets.flat_map(|(_, to, packet)| packet.chunks.into_iter().map(move |chunk| (to, chunk)));
    let acks = chunks.filter_map(|(to, chunk)| match chunk {
        Chunk::AsconfAck(ack) => Some((to, *ack)),
        _ => None,
    });
    acks.collect()
}

fn has<'p>(packets: impl IntoIterator<Item = &'p Packet>, wanted: fn(&Chunk) -> bool) -> bool {
    packets.into_iter().any(|packet| packet.chunks.iter().any(wanted))
}

fn answer_heartbeats(script: &mut Script) {
    for (_, _, packet) in std::mem::take(&mut script.packets) {
        for chunk in packet.chunks {
            if let Chunk::Heartbeat(info) = chunk {
                script.inject([Chunk::HeartbeatAck(info)]);
            }
        }
    }
}

#[test]
fn init_lists_the_extensions_and_key_parameters() {
    // RFC 5061 section 4.2.7, RFC 4895 section 6.1.
    for (config, kinds) in
        [(mobile(), vec![0xC1, 0x80, 0x0F, 192]), (Config { addip: false, ..mobile() }, vec![0x0F, 192])]
    {
        let mut script = Script::closed(config, 1);
        script.command(Command::Connect);
        let init = script.take_one();
        let Chunk::Init(init) = &init.chunks[0] else { panic!("{init:?}") };
        assert!(init.parameters.contains(&Parameter::SupportedExtensions(kinds)), "{init:?}");
        assert!(matches!(AuthOffer::read(&init.parameters), Ok(Some(AuthOffer { hash: Hash::Sha256, .. }))));
    }
    let mut script = Script::closed(config(), 1);
    script.command(Command::Connect);
    let init = script.take_one();
    assert!(
        matches!(&init.chunks[0], Chunk::Init(init) if init.parameters == [Parameter::ForwardTsnSupported])
    );
}

#[test]
fn a_new_address_is_added_and_made_primary_under_authentication() {
    // RFC 5061 sections 5.1 A1, A2, 4.1.1 and 5.4: the addition precedes the set-primary.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    assert_eq!((asconf.serial, asconf.lookup), (AsconfSerial(script.first.0), LOCAL[0]));
    assert_eq!(changes(&asconf), [AddressOperation::Add(LOCAL[1]), AddressOperation::SetPrimary(LOCAL[1])]);
}

#[test]
fn next_asconf_waits_for_the_answer_to_the_last() {
    // RFC 5061 section 5.1.1 C1.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let first = take_asconf(&mut script, &keys);
    let third = hol_wire::ipv4(10, 2, 0, 1);
    address_added(&mut script, third);
    assert!(script.packets.is_empty());
    inject_signed(&mut script, &keys, [ack(&first)]);
    let second = take_asconf(&mut script, &keys);
    assert_eq!(second.serial, first.serial.next());
    assert_eq!(changes(&second), [AddressOperation::Add(third), AddressOperation::SetPrimary(third)]);
}

#[test]
fn unanswered_asconf_is_retransmitted_unchanged() {
    // RFC 5061 section 5.1 B1 to B5: T-4 has the RTO, which doubles; the errors count.
    let (mut script, keys) = established(Config { pf_threshold: 5, ..mobile() }, &[]);
    address_added(&mut script, LOCAL[1]);
    let first = take_asconf(&mut script, &keys);
    script.run_to(999);
    assert!(script.packets.is_empty());
    script.run_to(1000);
    assert_eq!(take_asconf(&mut script, &keys), first);
    assert_eq!((script.endpoint.error_count, script.endpoint.paths()[0].error_count()), (1, 1));
    script.run_to(2999);
    assert!(script.packets.is_empty());
    script.run_to(3000);
    assert_eq!(take_asconf(&mut script, &keys), first);
    // A5: the answer stops the timer and clears the counters.
    inject_signed(&mut script, &keys, [ack(&first)]);
    assert_eq!((script.endpoint.error_count, script.endpoint.paths()[0].error_count()), (0, 0));
    script.packets.clear();
    script.run_to(8000);
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), |chunk| matches!(
        chunk,
        Chunk::Asconf(_)
    )));
}

#[test]
fn association_ends_if_asconfs_stay_unanswered() {
    // RFC 5061 section 5.1 B2.
    let (mut script, _) = established(mobile(), &[]);
    address_added(&mut script, LOCAL[1]);
    script.run_to(1_000_000);
    assert!(
        matches!(script.events.last(), Some(Event::Failed { reason: Failure::MaxRetransmits })),
        "{:?}",
        script.events
    );
}

#[test]
fn a_new_address_sends_only_when_the_peer_has_agreed() {
    // RFC 5061 section 5.3 F1 and F2.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    assert!(script.endpoint.paths().iter().all(|path| path.source == LOCAL[0]));
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    let sources: Vec<_> = script.endpoint.paths().iter().map(|path| path.source).collect();
    assert_eq!(sources, LOCAL);
    // The path to an address in its network is probed at once, and carries DATA after the answer.
    script.send(0, 100);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[1] && has([packet], is_heartbeat)));
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[0] && has([packet], is_data)));
    answer_heartbeats(&mut script);
    script.sack(1, &[]);
    script.send(0, 100);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
}

#[test]
fn path_with_a_new_source_address_restarts() {
    // RFC 9260 section 7.2.5.2: the congestion state was that of another route.
    let (mut script, keys) = established(mobile(), &REMOTE);
    for path in &mut script.endpoint.paths.list {
        path.window = Window::new(CwndParameters::rfc9260(100_000, 400_000), 7);
    }
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    let cwnds: Vec<_> = script.endpoint.paths().iter().map(|path| (path.cwnd(), path.ssthresh())).collect();
    assert_eq!(cwnds, [(400_000, 7), (4404, 100_000)]);
}

fn is_heartbeat(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Heartbeat(_))
}

fn is_data(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Data(_))
}

#[test]
fn an_address_that_the_peer_refuses_is_not_used() {
    // RFC 5061 sections 5.1 A7 and 5.3 F10: the requests after a failed one have failed too.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    let causes = vec![Cause::Other { code: 0xA1, value: Bytes::new() }];
    let responses = vec![Response::Error { correlation: asconf.requests[0].correlation, causes }];
    let refusal = AsconfAck { serial: asconf.serial, responses };
    inject_signed(&mut script, &keys, [Chunk::AsconfAck(Box::new(refusal))]);
    assert_eq!(script.endpoint.local, LOCAL[..1]);
}

#[test]
fn a_lost_address_is_deleted_from_another() {
    // RFC 5061 sections 5.3 F4 and F6.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    answer_heartbeats(&mut script);
    script.send(0, 100);
    script.packets.clear();
    address_removed(&mut script, LOCAL[0]);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
    let asconf = take_asconf(&mut script, &keys);
    assert_eq!((changes(&asconf), asconf.lookup), (vec![AddressOperation::Delete(LOCAL[0])], LOCAL[1]));
    // F4: packets to it still belong to the association, but an ABORT is ignored (section 5.3.1).
    script.inject([data(1), Chunk::Abort { reflected: true, causes: Vec::new() }]);
    assert_eq!(delivered(&script.events), [1]);
    assert_eq!(script.endpoint.state_name(), "ESTABLISHED");
}

#[test]
fn data_in_flight_on_a_lost_address_are_retransmitted_at_once() {
    let (mut script, keys) = established(mobile(), &REMOTE);
    script.send(0, 100);
    script.packets.clear();
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    answer_heartbeats(&mut script);
    address_removed(&mut script, LOCAL[0]);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[1] && has([packet], is_data)));
}

#[test]
fn the_last_address_is_kept_until_there_is_another() {
    // RFC 5061 sections 5.3 F5 and 5.3.2: the association is found by the lost address.
    let (mut script, keys) = established(mobile(), &REMOTE);
    script.send(0, 100);
    script.packets.clear();
    address_removed(&mut script, LOCAL[0]);
    script.send(0, 100);
    script.run_to(20_000);
    assert!(script.packets.is_empty(), "nothing can be sent from nowhere: {:?}", script.packets);
    address_added(&mut script, LOCAL[1]);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
    // F1: DATA waits for the answer.
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), is_data));
    let asconf = take_asconf(&mut script, &keys);
    let expected = [
        AddressOperation::Add(LOCAL[1]),
        AddressOperation::SetPrimary(LOCAL[1]),
        AddressOperation::Delete(LOCAL[0]),
    ];
    assert_eq!((changes(&asconf), asconf.lookup), (expected.to_vec(), LOCAL[0]));
    script.from = 1;
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[1] && has([packet], is_data)));
}

#[test]
fn refused_address_change_withholds_the_others() {
    // RFC 5061 sections 5.3 F1 and 5.1 A7, as in Linux.
    let (mut script, keys) = established(Config { asconf_apart: true, ..mobile() }, &REMOTE);
    script.send(0, 100);
    script.packets.clear();
    address_removed(&mut script, LOCAL[0]);
    address_added(&mut script, LOCAL[1]);
    script.from = 1;
    let first = take_asconf(&mut script, &keys);
    assert_eq!(changes(&first), [AddressOperation::Add(LOCAL[1]), AddressOperation::Delete(LOCAL[0])]);
    let refused = Cause::Other { code: 164, value: Bytes::new() };
    let responses =
        vec![Response::Error { correlation: first.requests[1].correlation, causes: vec![refused] }];
    let refusal = AsconfAck { serial: first.serial, responses };
    inject_signed(&mut script, &keys, [Chunk::AsconfAck(Box::new(refusal))]);
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), is_data));
    let second = take_asconf(&mut script, &keys);
    assert_eq!(changes(&second), [AddressOperation::SetPrimary(LOCAL[1])]);
    inject_signed(&mut script, &keys, [ack(&second)]);
    assert!(has(script.packets.iter().map(|(_, _, packet)| packet), is_data));
    let third = take_asconf(&mut script, &keys);
    assert_eq!((changes(&third), third.lookup), (vec![AddressOperation::Delete(LOCAL[0])], LOCAL[1]));
    // Once more, but not forever.
    let causes = vec![Cause::Other { code: 164, value: Bytes::new() }];
    let responses = vec![Response::Error { correlation: third.requests[0].correlation, causes }];
    let refusal = AsconfAck { serial: third.serial, responses };
    inject_signed(&mut script, &keys, [Chunk::AsconfAck(Box::new(refusal))]);
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), is_asconf));
}

fn is_asconf(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Asconf(_))
}

#[test]
fn asconf_sent_from_a_lost_address_uses_another_path() {
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    address_removed(&mut script, LOCAL[0]);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
    // Section 5.1 B4: a retransmission has the same content, so the deletion waits.
    assert_eq!(take_asconf(&mut script, &keys), asconf);
}

#[test]
fn address_restored_before_an_asconf_needs_none() {
    let (mut script, _) = established(mobile(), &REMOTE);
    address_removed(&mut script, LOCAL[0]);
    address_added(&mut script, LOCAL[0]);
    script.send(0, 100);
    script.run_to(500);
    let packets = || script.packets.iter().map(|(_, _, packet)| packet);
    assert!(!has(packets(), |chunk| matches!(chunk, Chunk::Asconf(_))));
    assert!(has(packets(), is_data));
}

#[test]
fn an_association_that_is_not_up_cannot_move() {
    // RFC 5061 section 5.1.1 C4.
    let mut script = Script::closed(mobile(), 1);
    script.command(Command::Connect);
    address_removed(&mut script, LOCAL[0]);
    assert_eq!(script.events, [Event::Failed { reason: Failure::AddressRemoved }]);
}

#[test]
fn address_added_during_the_handshake_is_announced_after_it() {
    // RFC 5061 section 5.1.1 C4.
    let mut script = Script::closed(mobile(), 1);
    script.command(Command::Connect);
    let init = script.take_one();
    let Chunk::Init(init) = &init.chunks[0] else { panic!("{init:?}") };
    address_added(&mut script, LOCAL[1]);
    let (keys, answer) = answer(init, &REMOTE);
    script.inject([answer]);
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), |chunk| matches!(
        chunk,
        Chunk::Asconf(_)
    )));
    script.inject([Chunk::CookieAck]);
    assert_eq!(changes(&take_asconf(&mut script, &keys))[0], AddressOperation::Add(LOCAL[1]));
}

#[test]
fn peer_without_asconf_receives_none() {
    // RFC 5061 section 4.2.7, and section 5.1 A9 for an endpoint that learns it later.
    let mut script = Script::established_over(mobile(), 2);
    address_added(&mut script, LOCAL[1]);
    assert!(script.packets.is_empty());
    // It continues with its addresses, and finally fails as if the address had not been reported as lost.
    address_removed(&mut script, LOCAL[0]);
    script.send(0, 100);
    assert!(has([&script.take_one()], is_data));
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    take_asconf(&mut script, &keys);
    let report = Cause::UnrecognizedChunk(Bytes::from_static(&[0xC1, 0, 0, 4]));
    script.inject([Chunk::Error(vec![report])]);
    address_added(&mut script, hol_wire::ipv4(10, 2, 0, 1));
    script.run_to(5000);
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), |chunk| matches!(
        chunk,
        Chunk::Asconf(_)
    )));
}

#[test]
fn asconf_ack_without_authentication_is_ignored() {
    // RFC 5061 section 4.1.2.
    let (mut script, keys) = established(mobile(), &REMOTE);
    address_added(&mut script, LOCAL[1]);
    let asconf = take_asconf(&mut script, &keys);
    script.inject([ack(&asconf)]);
    assert_eq!(script.endpoint.local, LOCAL[..1]);
    inject_signed(&mut script, &keys, [ack(&asconf)]);
    assert_eq!(script.endpoint.local, LOCAL);
}

#[test]
fn asconf_ack_without_a_request_ends_the_association() {
    // RFC 5061 section 5.3 F0; an old one is ignored (section 4.3.4).
    let (mut script, keys) = established(mobile(), &REMOTE);
    let answer = |serial| Chunk::AsconfAck(Box::new(AsconfAck { serial, responses: Vec::new() }));
    let next = AsconfSerial(script.first.0);
    inject_signed(&mut script, &keys, [answer(next - 1)]);
    assert_eq!(script.endpoint.state_name(), "ESTABLISHED");
    inject_signed(&mut script, &keys, [answer(next)]);
    let abort = Chunk::Abort { reflected: false, causes: vec![Cause::IllegalAsconfAck] };
    assert_eq!(script.take_one().chunks[..], [abort]);
}

/// Simulates a peer that has a new address and requests data to it.
fn peer_moves(script: &mut Script, keys: &Authentication) {
    script.from = 0;
    inject_signed(
        script,
        keys,
        [asconf(0, &[AddressOperation::Add(REMOTE[1]), AddressOperation::SetPrimary(REMOTE[1])])],
    );
}

#[test]
fn an_address_of_the_peer_is_verified_before_it_is_used() {
    // RFC 5061 sections 5.3 F1, F14 and 5.4.
    let (mut script, keys) = established(mobile(), &[]);
    peer_moves(&mut script, &keys);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[1] && has([packet], is_heartbeat)));
    script.send(0, 100);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[0] && has([packet], is_data)));
    answer_heartbeats(&mut script);
    assert_eq!(script.endpoint.primary(), Some(REMOTE[1]));
    assert_eq!(script.endpoint.paths()[1].status(), PathStatus::Active);
    script.send(0, 100);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
}

#[test]
fn asconf_ack_returns_to_the_source_and_is_kept() {
    // RFC 5061 sections 5.2 E2, E4 and E6.
    let (mut script, keys) = established(mobile(), &[]);
    peer_moves(&mut script, &keys);
    let first = take_acks(&mut script);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].0, REMOTE[0]);
    assert!(first[0].1.responses.is_empty(), "a success is implied");
    let paths = script.endpoint.paths().len();
    peer_moves(&mut script, &keys);
    assert_eq!(take_acks(&mut script), first);
    assert_eq!(script.endpoint.paths().len(), paths);
}

#[test]
fn asconf_with_an_unexpected_serial_is_discarded() {
    // RFC 5061 section 5.2 E2 and E5.
    let (mut script, keys) = established(mobile(), &[]);
    for serial in [1, 5, u32::MAX] {
        inject_signed(&mut script, &keys, [asconf(serial, &[AddressOperation::Add(REMOTE[1])])]);
        assert!(script.packets.is_empty());
    }
    assert_eq!(script.endpoint.paths().len(), 1);
}

#[test]
fn unauthenticated_asconf_is_discarded_with_its_packet() {
    // RFC 5061 section 5.2 D5, RFC 4895 section 6.3.
    let (mut script, keys) = established(mobile(), &[]);
    let question = || asconf(0, &[AddressOperation::Add(REMOTE[1])]);
    script.inject([question(), data(1)]);
    let mut forged = vec![keys.empty_auth_chunk(), question(), data(1)];
    keys.sign(&mut forged);
    forged[1] = asconf(0, &[AddressOperation::Add(REMOTE[0])]);
    script.inject_with_tag(script.endpoint.local_tag, forged.into_iter().collect());
    // A chunk before AUTH is not covered by it.
    let mut before = vec![question(), keys.empty_auth_chunk(), data(1)];
    keys.sign(&mut before);
    script.inject_with_tag(script.endpoint.local_tag, before.into_iter().collect());
    assert!(script.packets.is_empty() && script.events.is_empty(), "{:?}", script.packets);
    assert_eq!(script.endpoint.paths().len(), 1);
}

#[test]
fn endpoint_without_asconf_reports_it_and_without_auth_drops_it() {
    // RFC 5061 section 4.1.1, RFC 4895 section 5.
    let mut script = Script::established(config());
    script.inject([asconf(0, &[AddressOperation::Add(REMOTE[1])]), data(1)]);
    assert_eq!(delivered(&script.events), [1]);
    let reported = |chunk: &Chunk| matches!(chunk, Chunk::Error(causes) if matches!(&causes[..], [Cause::UnrecognizedChunk(chunk)] if chunk[0] == 0xC1));
    assert!(has(script.packets.iter().map(|(_, _, packet)| packet), reported));
    let (_, keys) = established(mobile(), &[]);
    inject_signed(&mut script, &keys, [data(2)]);
    assert_eq!(delivered(&script.events), [1]);
}

#[test]
fn an_unknown_hash_is_reported() {
    // RFC 4895 section 6.3.
    let (mut script, _) = established(mobile(), &[]);
    let auth = hol_wire::sctp::Auth { shared_key_id: 0, hmac_id: 9, hmac: Bytes::from_static(&[0; 20]) };
    script.inject([Chunk::Auth(Box::new(auth)), data(1)]);
    assert_eq!(script.take_one().chunks[..], [Chunk::Error(vec![Cause::UnsupportedHmac(9)])]);
    assert!(script.events.is_empty());
}

/// Returns the only error of the only answer.
fn refusal(script: &mut Script) -> Cause {
    let acks = take_acks(script);
    match &acks[..] {
        [(_, AsconfAck { responses, .. })] => match &responses[..] {
            [Response::Error { correlation: 7, causes }] => causes[0].clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_last_address_and_the_source_are_not_deleted() {
    // RFC 5061 section 5.3 F7 and F8, in this order.
    let (mut script, keys) = established(mobile(), &[]);
    inject_signed(&mut script, &keys, [asconf(0, &[AddressOperation::Delete(REMOTE[0])])]);
    assert!(matches!(refusal(&mut script), Cause::DeleteLastAddress(_)));
    inject_signed(&mut script, &keys, [asconf(1, &[AddressOperation::Add(REMOTE[1])])]);
    script.packets.clear();
    inject_signed(&mut script, &keys, [asconf(2, &[AddressOperation::Delete(REMOTE[0])])]);
    assert!(matches!(refusal(&mut script), Cause::DeleteSourceAddress(_)));
    assert_eq!(script.endpoint.paths.count(), 2);
}

#[test]
fn unknown_address_operation_is_refused_and_later_ones_succeed() {
    // RFC 5061 sections 5.2 V2 and 5.1 A7.
    let (mut script, keys) = established(mobile(), &[]);
    let unknown = AddressOperation::Unknown { kind: 0xC00F, value: Bytes::new() };
    inject_signed(&mut script, &keys, [asconf(0, &[unknown, AddressOperation::Add(REMOTE[1])])]);
    let [(_, ack)] = &take_acks(&mut script)[..] else { panic!("one answer") };
    let [Response::Error { correlation: 7, causes }, Response::Success { correlation: 8 }] =
        &ack.responses[..]
    else {
        panic!("{ack:?}")
    };
    assert!(matches!(causes[..], [Cause::UnrecognizedParameters(_)]));
}

#[test]
fn an_address_that_does_not_exist_is_not_made_primary() {
    // RFC 5061 section 5.4.
    let (mut script, keys) = established(mobile(), &[]);
    inject_signed(&mut script, &keys, [asconf(0, &[AddressOperation::SetPrimary(REMOTE[1])])]);
    assert_eq!(script.endpoint.primary(), Some(REMOTE[0]));
}

#[test]
fn deleted_address_neither_receives_nor_sends() {
    // RFC 5061 section 5.3 F13: data in flight to it are retransmitted, and a packet from it is out of the blue.
    let (mut script, keys) = established(mobile(), &[]);
    peer_moves(&mut script, &keys);
    answer_heartbeats(&mut script);
    script.send(0, 100);
    script.packets.clear();
    script.from = 1;
    inject_signed(&mut script, &keys, [asconf(1, &[AddressOperation::Delete(REMOTE[0])])]);
    script.from = 0;
    script.inject([data(1)]);
    assert!(script.events.iter().all(|event| matches!(event, Event::Path { .. })));
    let stray = script.packets.pop().unwrap();
    assert!(matches!(stray.2.chunks[..], [Chunk::Abort { reflected: true, .. }]));
    script.packets.clear();
    script.run_to(120_000);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
}

#[test]
fn wildcard_address_means_the_source_of_the_packet() {
    // RFC 5061 sections 4.2.1, 4.2.2 and 5.3.2: the ASCONF comes from an unknown address.
    let (mut script, keys) = established(mobile(), &[]);
    script.send(0, 100);
    script.packets.clear();
    script.from = 1;
    let all = [AddressOperation::Add(ipv4(0, 0, 0, 0)), AddressOperation::Delete(ipv4(0, 0, 0, 0))];
    inject_signed(&mut script, &keys, [asconf(0, &all)]);
    assert!(script.packets.iter().all(|(_, to, _)| *to == REMOTE[1]));
    // F1: DATA waits until the address has answered.
    assert!(!has(script.packets.iter().map(|(_, _, packet)| packet), is_data));
    answer_heartbeats(&mut script);
    assert!(script.packets.iter().any(|(_, to, packet)| *to == REMOTE[1] && has([packet], is_data)));
}

/// The peer sends to a new address after ASCONF and its answer, HEARTBEAT and its answer.
#[test]
fn the_peer_sends_to_a_new_address_after_a_round_trip_and_a_half() {
    let network = Network { paths: 2, ..Network::PERFECT };
    let mut pair = Pair::connected_from_one(&mobile(), network, 1);
    pair.run(ms(1000));
    let began = pair.now;
    pair.input(0, Input::AddressAdded(LOCAL[1]));
    pair.run_while(ms(1000), |pair| pair.sides[1].paths().iter().all(|path| path.address() != LOCAL[1]));
    assert_eq!(pair.now.saturating_since(began), ms(10));
    let active = |pair: &Pair| pair.sides[1].paths.list[pair.sides[1].paths.active].address();
    pair.run_while(ms(1000), |pair| active(pair) != LOCAL[1]);
    assert_eq!(pair.now.saturating_since(began), ms(30));
}

proptest! {
    /// Whatever is lost, and whenever the mobile node loses one address and gets the other: every message
    /// arrives once and in order, and the association stays up.
    #[test]
    fn an_association_moves_with_its_host(
        seed in any::<u64>(),
        loss in 0.0..0.2f64,
        leaves in 0u64..400,
        comes in 0u64..400,
        from in 0..2usize,
    ) {
        let network = Network { paths: 2, loss, ..Network::PERFECT };
        // The association must not fail, although section 8.1 of RFC 9260 permits it.
        let config = Config { association_max_retrans: 1000, max_init_retransmits: 1000, ..mobile() };
        let mut pair = Pair::connected_from_one(&config, network, seed);
        (0..40).for_each(|number: u32| {
            let payload = Bytes::from([&number.to_be_bytes()[..], &[0; 2000]].concat());
            pair.send(from, hol_transport::Message { payload, ..message(0, 1) });
        });
        let (first, second) = (comes.min(leaves), comes.max(leaves));
        for (at, is_coming) in [(first, comes < leaves), (second, comes >= leaves)] {
            pair.run_until(ms(at));
            if is_coming {
                pair.input(0, Input::AddressAdded(LOCAL[1]));
            } else {
                pair.cut[0] = true;
                pair.input(0, Input::AddressRemoved(LOCAL[0]));
            }
        }
        pair.run(hol_base::Duration::from_secs(600));
        prop_assert_eq!(pair.numbers(1 - from, 0), (0..40).collect::<Vec<_>>());
        prop_assert_eq!(pair.sides[1].paths.count(), 1);
        prop_assert_eq!(pair.sides[1].primary(), Some(LOCAL[1]));
        prop_assert_eq!(&pair.sides[0].local, &LOCAL[1..]);
    }
}

/// Simulates a peer that has lost its address and sends ASCONF from the next one.
fn peer_moves_late(script: &mut Script, keys: &Authentication) {
    script.from = 1;
    inject_signed(
        script,
        keys,
        [asconf(0, &[AddressOperation::Add(REMOTE[1]), AddressOperation::Delete(REMOTE[0])])],
    );
}

#[test]
fn deletion_of_the_lookup_address_can_be_refused() {
    // RFC 5061 sections 5.3.2 and 4.3.5.
    for keeps in [false, true] {
        let (mut script, keys) = established(Config { asconf_keeps_lookup_address: keeps, ..mobile() }, &[]);
        peer_moves_late(&mut script, &keys);
        let (_, answer) = take_acks(&mut script).remove(0);
        let is_refused = answer.responses.iter().any(|response| match response {
            Response::Error { causes, .. } => matches!(causes[..], [Cause::Other { code: 164, .. }]),
            Response::Success { .. } => false,
        });
        assert_eq!((is_refused, script.endpoint.paths.index_of(REMOTE[0]).is_some()), (keeps, keeps));
        // From a known address the association was not looked up.
        inject_signed(&mut script, &keys, [asconf(1, &[AddressOperation::Delete(REMOTE[0])])]);
        assert_eq!(script.endpoint.paths.index_of(REMOTE[0]), None);
    }
}

#[test]
fn data_in_flight_to_a_deleted_address_are_lost_or_moved() {
    // RFC 5061 section 5.3 F13; RFC 9260 section 6.3.3 for the timer.
    for moves in [false, true] {
        let (mut script, keys) = established(Config { deleted_flight_moves: moves, ..mobile() }, &[]);
        script.send(0, 100);
        script.packets.clear();
        peer_moves_late(&mut script, &keys);
        answer_heartbeats(&mut script);
        let sent = |script: &Script| has(script.packets.iter().map(|(_, _, packet)| packet), is_data);
        assert_eq!(sent(&script), !moves);
        // The data are in no window, so new data are sent; after their acknowledgement no timer runs.
        script.packets.clear();
        script.send(0, 100);
        assert!(sent(&script));
        assert_eq!(script.endpoint.paths()[1].flight_size(), if moves { 100 } else { 200 });
        if moves {
            script.packets.clear();
            script.run_to(script.now.as_millis() + 1100);
            assert!(sent(&script));
        }
        script.sack(2, &[]);
        assert_eq!(script.endpoint.paths()[1].flight_size(), 0);
        assert_eq!(script.endpoint.paths()[1].t3_rtx, None);
    }
}
