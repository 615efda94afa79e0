//! A listening port with several associations, whose peers are the test. RFC 9260 section 5.1.

use bytes::Bytes;
use hol_base::{Duration, Seed, Time};
use hol_transport::{Command, Endpoint as _, Event, Input, Output};
use hol_wire::sctp::{Cause, Chunk, Data, DataFlags, Init, Packet, Parameter, Ssn, Tsn};
use hol_wire::{Address, SendTimes, Transport, ipv4};

use crate::{Config, Endpoint, Listener};

const SERVER: Address = ipv4(10, 0, 0, 1);
const PORT: u16 = 7626;

/// A host that sends packets to the listener.
#[derive(Clone, Copy)]
struct Host {
    address: Address,
    port: u16,
    tag: u32,
}

const HOST: Host = Host { address: ipv4(10, 0, 0, 2), port: 5000, tag: 0x1111_1111 };
const OTHER: Host = Host { address: ipv4(10, 0, 0, 3), port: 5000, tag: 0x2222_2222 };

fn listener() -> Listener {
    Listener::new(Config::rfc9260(), vec![SERVER], PORT, Seed(1).rng())
}

impl Host {
    fn packet(self, verification_tag: u32, chunks: Vec<Chunk>) -> hol_wire::Packet {
        let sctp = Packet {
            source_port: self.port,
            destination_port: PORT,
            verification_tag,
            zero_checksum: false,
            chunks: chunks.into(),
        };
        hol_wire::Packet::new(self.address, SERVER, sctp)
    }

    fn init(self) -> hol_wire::Packet {
        let init = Init {
            initiate_tag: self.tag,
            a_rwnd: 65_536,
            outbound_streams: 2,
            inbound_streams: 2,
            initial_tsn: Tsn(self.tag),
            parameters: Vec::new(),
        };
        self.packet(0, vec![Chunk::Init(Box::new(init))])
    }

    /// Sends INIT; returns the tag and the cookie of the answer.
    fn cookie(self, listener: &mut Listener, now: Time) -> (u32, Bytes) {
        assert!(listener.handle(now, self.init()).is_none());
        let [Chunk::InitAck(ack)] = &answer(listener).chunks[..] else { panic!("no INIT ACK") };
        let cookie = ack.parameters.iter().find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        (ack.initiate_tag, cookie.expect("a cookie"))
    }

    fn echo(self, (tag, cookie): &(u32, Bytes)) -> hol_wire::Packet {
        self.packet(*tag, vec![Chunk::CookieEcho(cookie.clone())])
    }
}

/// Returns the only answer.
fn answer(listener: &mut Listener) -> Packet {
    let packet = listener.poll_transmit().expect("an answer");
    assert!(listener.poll_transmit().is_none());
    let Transport::Sctp(packet) = packet.transport else { unreachable!("it speaks SCTP") };
    *packet
}

/// Returns the events of an association.
fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match endpoint.poll(Time::ZERO) {
            Output::Event(event) => events.push(event),
            Output::Transmit(_) => {}
            Output::Wait(_) => return events,
        }
    }
}

/// RFC 9260 section 5.1.3: the listener keeps no state before COOKIE ECHO.
#[test]
fn inits_leave_no_state() {
    let mut listener = listener();
    for tag in 1..=20_000 {
        let (_, cookie) = Host { tag, ..HOST }.cookie(&mut listener, Time::ZERO);
        assert!(!cookie.is_empty());
    }
    assert!(!listener.has_state());
}

/// RFC 9260 section 5.1.5: cookies that were sent before another association began are still valid after that.
#[test]
fn each_cookie_echo_begins_an_association_of_its_own() {
    let mut listener = listener();
    let cookies = [HOST, OTHER].map(|host| host.cookie(&mut listener, Time::ZERO));
    let hosts = [HOST, OTHER].into_iter().zip(&cookies);
    let associations: Vec<Endpoint> = hosts
        .map(|(host, cookie)| {
            let mut association = listener.handle(Time::ZERO, host.echo(cookie)).expect("an association");
            assert_eq!(association.primary(), Some(host.address));
            assert_eq!(association.verification_tag(), cookie.0);
            assert_eq!(events(&mut association), [Event::Connected]);
            association
        })
        .collect();
    assert_eq!(associations.len(), 2);
    assert!(!listener.has_state());
}

/// RFC 9260 section 5.1.5.
#[test]
fn a_forged_cookie_begins_nothing() {
    let mut listener = listener();
    let (tag, cookie) = HOST.cookie(&mut listener, Time::ZERO);
    let forged: Vec<u8> = cookie.iter().map(|octet| octet ^ 1).collect();
    for cookie in
        [(tag, forged.into()), (tag ^ 1, cookie.clone()), (tag, cookie.slice(1..)), (tag, Bytes::new())]
    {
        assert!(listener.handle(Time::ZERO, HOST.echo(&cookie)).is_none());
        assert!(listener.poll_transmit().is_none());
    }
    let of_another_port = Host { port: 5001, ..HOST };
    assert!(listener.handle(Time::ZERO, of_another_port.echo(&(tag, cookie))).is_none());
    assert!(!listener.has_state());
}

/// RFC 9260 section 5.2.6.
#[test]
fn a_late_cookie_is_reported_as_stale() {
    let mut listener = listener();
    let cookie = HOST.cookie(&mut listener, Time::ZERO);
    let late = Time::ZERO + Config::rfc9260().valid_cookie_life + Duration::from_millis(1);
    assert!(listener.handle(late, HOST.echo(&cookie)).is_none());
    let packet = answer(&mut listener);
    assert_eq!(packet.verification_tag, HOST.tag);
    assert_eq!(packet.chunks[..], [Chunk::Error(vec![Cause::StaleCookie(1000)])]);
    assert!(!listener.has_state());
}

/// RFC 9260 section 6.2: DATA without user data aborts the association. It may be bundled with the COOKIE ECHO.
#[test]
fn an_association_that_fails_at_once_does_not_end_the_listener() {
    let mut listener = listener();
    let cookie = HOST.cookie(&mut listener, Time::ZERO);
    let empty = Data {
        flags: DataFlags::BEGIN | DataFlags::END,
        tsn: Tsn(HOST.tag),
        stream: 0,
        ssn: Ssn(0),
        ppid: 0,
        payload: Bytes::new(),
        stamp: SendTimes::default(),
    };
    let packet = HOST.packet(cookie.0, vec![Chunk::CookieEcho(cookie.1), Chunk::Data(empty)]);
    let failed = listener.handle(Time::ZERO, packet).expect("an association");
    assert_eq!(failed.state_name(), "CLOSED");
    let cookie = OTHER.cookie(&mut listener, Time::ZERO);
    assert!(listener.handle(Time::ZERO, OTHER.echo(&cookie)).is_some());
}

/// RFC 4086, RFC 9260 section 5.3.1: what the peer of one association sees says nothing about the tags of others.
#[test]
fn associations_draw_different_numbers() {
    let mut listener = listener();
    let cookie = HOST.cookie(&mut listener, Time::ZERO);
    let association = listener.handle(Time::ZERO, HOST.echo(&cookie)).expect("an association");
    let mut drawn = association.rng.clone();
    let tags = [(); 3].map(|()| association.secret.derive_tag(drawn.next_u64()));
    let later = [(); 3].map(|()| OTHER.cookie(&mut listener, Time::ZERO).0);
    assert!(later.iter().all(|tag| !tags.contains(tag)));
}

/// The limits of a server count what an association holds.
#[test]
fn held_data_are_counted() {
    let mut listener = listener();
    let cookie = HOST.cookie(&mut listener, Time::ZERO);
    let mut association = listener.handle(Time::ZERO, HOST.echo(&cookie)).expect("an association");
    events(&mut association);
    association.handle(Time::ZERO, Input::Command(Command::Read(false)));
    let data = |offset: u32, flags: DataFlags| {
        let (tsn, payload) = (Tsn(HOST.tag + offset), Bytes::from_static(b"ten octets"));
        Chunk::Data(Data {
            flags,
            tsn,
            stream: 0,
            ssn: Ssn(0),
            ppid: 0,
            payload,
            stamp: SendTimes::default(),
        })
    };
    // A whole message, the first fragment of another, and a fragment after a gap.
    let chunks =
        vec![data(0, DataFlags::BEGIN | DataFlags::END), data(1, DataFlags::BEGIN), data(3, DataFlags(0))];
    association.handle(Time::ZERO, Input::Packet(HOST.packet(cookie.0, chunks)));
    let held = association.held_data();
    assert_eq!((held.octets, held.pieces, held.partial_octets), (30, 3, 0));
}
