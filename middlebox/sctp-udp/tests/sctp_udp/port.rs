//! The port of a middlebox.

use hol_base::{Duration, Time};
use hol_sctp::wire::sctp::{Cause, Chunk};
use hol_sctp_udp::{Port, PortOutput, parse};

use super::stranger::{Stranger, path};

fn port() -> Port<u32> {
    Port::new("192.0.2.1".parse().unwrap(), super::stranger::PORT)
}

/// RFC 9260 section 5.1.3: there is no state before COOKIE ECHO.
#[test]
fn inits_begin_no_association() {
    let mut port = port();
    for tag in 1..=1000 {
        let stranger = Stranger { tag, ..Stranger::new("198.51.100.7:9899") };
        let (_, cookie) = stranger.invitation(&mut port);
        assert!(!cookie.is_empty());
    }
    assert!(port.is_empty());
}

/// RFC 6951 section 5.4.
#[test]
fn an_association_follows_its_peer_to_another_udp_port() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let (tag, _) = peer.join(&mut port, 1);
    let octets = peer.packet(tag, Chunk::CookieAck);
    let moved = path("198.51.100.7:40000");
    assert_eq!(port.association_of(moved, &octets), Some(1), "the NAT has a new binding");
    assert_eq!(port.association_of(path("198.51.100.8:9899"), &octets), None, "another host");
    port.note_path(1, moved);
    // With the T bit the tag is the peer's own, and so only the addresses identify the association. RFC 9260 section 8.5.1.
    let abort = peer.packet(peer.tag, Chunk::Abort { reflected: true, causes: Vec::new() });
    assert_eq!(port.association_of(moved, &abort), Some(1));
    assert_eq!(port.association_of(peer.path, &abort), None);
}

/// RFC 9260 section 8.5.
#[test]
fn a_packet_with_another_tag_belongs_to_no_association() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let (tag, _) = peer.join(&mut port, 1);
    assert_eq!(port.association_of(peer.path, &peer.packet(tag ^ 1, Chunk::CookieAck)), None);
    let other = Stranger { port: 5001, ..peer };
    assert_eq!(port.association_of(peer.path, &other.packet(tag, Chunk::CookieAck)), None);
    assert_eq!(port.association_of(peer.path, b"short"), None);
}

/// RFC 9260 section 5.2.4 A.
#[test]
fn a_peer_that_restarts_replaces_its_association() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let (old, replaced) = peer.join(&mut port, 1);
    assert_eq!(replaced, None);
    let (new, replaced) = Stranger { tag: 7, ..peer }.join(&mut port, 2);
    assert_eq!(replaced, Some(1));
    port.remove(1);
    assert_eq!(port.association_of(peer.path, &peer.packet(old, Chunk::CookieAck)), None);
    assert_eq!(port.association_of(peer.path, &peer.packet(new, Chunk::CookieAck)), Some(2));
    let abort = peer.packet(7, Chunk::Abort { reflected: true, causes: Vec::new() });
    assert_eq!(port.association_of(peer.path, &abort), Some(2));
    port.remove(2);
    assert!(port.is_empty());
}

/// Two hosts behind a NAT may choose the same port of SCTP: RFC 6951 section 3.
#[test]
fn another_udp_port_is_another_peer() {
    let mut port = port();
    let [one, other] = ["198.51.100.7:40001", "198.51.100.7:40002"].map(Stranger::new);
    let (first, _) = one.join(&mut port, 1);
    let (second, replaced) = other.join(&mut port, 2);
    assert_eq!((replaced, port.len()), (None, 2));
    assert_eq!(port.association_of(one.path, &one.packet(first, Chunk::CookieAck)), Some(1));
    assert_eq!(port.association_of(other.path, &other.packet(second, Chunk::CookieAck)), Some(2));
}

/// A COOKIE ECHO that is repeated because the COOKIE ACK was lost belongs to the association. RFC 9260 section 5.2.4 D.
#[test]
fn a_repeated_cookie_echo_begins_no_second_association() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let invitation = peer.invitation(&mut port);
    let mut association = peer.accepted(&mut port, &invitation).unwrap();
    port.add(1, peer.path, peer.port, invitation.0);
    let answer = |association: &mut hol_sctp_udp::Association| {
        let octets = std::iter::from_fn(|| association.next_datagram()).next().expect("a COOKIE ACK");
        parse(&octets).unwrap().chunks[0].clone()
    };
    assert_eq!(answer(&mut association), Chunk::CookieAck);
    let echo = peer.cookie_echo(&invitation);
    assert_eq!(port.association_of(peer.path, &echo), Some(1));
    association.receive(Time::ZERO, parse(&echo).unwrap());
    assert_eq!(answer(&mut association), Chunk::CookieAck);
}

/// The owner of a cookie cannot direct our data to another host.
#[test]
fn a_cookie_of_another_host_begins_nothing() {
    let mut port = port();
    let owner = Stranger::new("198.51.100.7:9899");
    let invitation = owner.invitation(&mut port);
    let forged = Stranger { path: path("203.0.113.9:9899"), ..owner };
    assert!(forged.accepted(&mut port, &invitation).is_none());
    assert!(owner.accepted(&mut port, &invitation).is_some());
}

/// RFC 9260 sections 5.1.3 and 5.2.6: the life of a cookie is 60 s, whatever its owner asks for.
#[test]
fn a_cookie_expires() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let invitation = peer.invitation(&mut port);
    let late = Time::ZERO + Duration::from_secs(61);
    let PortOutput::Datagram(answer) = port.answer(late, peer.path, &peer.cookie_echo(&invitation), true)
    else {
        panic!("no answer")
    };
    let stale = Chunk::Error(vec![Cause::StaleCookie(1_000_000)]);
    assert_eq!(parse(&answer).unwrap().chunks[..], [stale]);
}

/// Tags and keys come from the operating system. RFC 9260 sections 5.1.3 and 5.3.1.
#[test]
fn ports_do_not_accept_cookies_of_each_other() {
    let peer = Stranger::new("198.51.100.7:9899");
    let [mut one, mut other] = [port(), port()];
    let invitation = peer.invitation(&mut one);
    assert!(peer.accepted(&mut other, &invitation).is_none());
    assert_ne!(peer.invitation(&mut other).0, invitation.0);
}

#[test]
fn a_full_port_answers_no_handshake() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let invitation = peer.invitation(&mut port);
    for octets in [peer.init(), peer.cookie_echo(&invitation)] {
        assert!(matches!(port.answer(Time::ZERO, peer.path, &octets, false), PortOutput::None));
    }
    assert!(peer.accepted(&mut port, &invitation).is_some(), "the peer repeats its COOKIE ECHO");
}

/// RFC 9260 section 8.4.
#[test]
fn stray_packets_are_answered_or_dropped() {
    let mut port = port();
    let peer = Stranger::new("198.51.100.7:9899");
    let mut answer = |octets: &[u8]| match port.answer(Time::ZERO, peer.path, octets, true) {
        PortOutput::Datagram(answer) => Some(parse(&answer).unwrap().chunks[0].clone()),
        _ => None,
    };
    let abort = Chunk::Abort { reflected: true, causes: Vec::new() };
    assert_eq!(answer(&peer.packet(9, Chunk::Heartbeat("x".into()))), Some(abort.clone()));
    assert_eq!(
        answer(&peer.packet(9, Chunk::ShutdownAck)),
        Some(Chunk::ShutdownComplete { reflected: true }),
        "rule 5: a lost SHUTDOWN COMPLETE is repeated"
    );
    assert_eq!(answer(&peer.packet(9, abort)), None, "rule 2");
    let mut corrupted = peer.init().to_vec();
    corrupted[20] ^= 1;
    assert_eq!(answer(&corrupted), None, "section 6.8");
    assert_eq!(answer(b"no packet"), None);
    assert_eq!(answer(&[]), None);
}
