//! Messages between two ends.

use bytes::Bytes;
use hol_base::{Duration, Time};
use hol_sctp_udp::{Association, AssociationEnd, Port, PortOutput, UdpPath, parse};

use super::stranger::PORT;

/// An agent's association and a middlebox's.
struct Pair {
    now: Time,
    agent: Association,
    middlebox: Association,
}

/// Passes all datagrams of one end to the other.
fn pass(now: Time, from: &mut Association, to: &mut Association) -> usize {
    let datagrams: Vec<Bytes> = std::iter::from_fn(|| from.next_datagram()).collect();
    for datagram in &datagrams {
        assert!(datagram.len() <= 1280 - 20 - 8, "RFC 6951 section 5.6");
        to.receive(now, parse(datagram).unwrap());
    }
    datagrams.len()
}

impl Pair {
    fn new() -> Self {
        let (agent, middlebox) = ("192.0.2.2".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let now = Time::ZERO;
        let path = UdpPath { peer: (middlebox, 9899).into(), local: agent };
        let there = UdpPath { peer: (agent, 40_000).into(), local: middlebox };
        let mut port = Port::<u32>::new(middlebox, PORT);
        let mut agent = Association::connect(now, path, PORT);
        loop {
            let datagram = agent.next_datagram().expect("the handshake goes on");
            match port.answer(now, there, &datagram, true) {
                PortOutput::Datagram(answer) => agent.receive(now, parse(&answer).unwrap()),
                PortOutput::Association(middlebox) => {
                    let mut pair = Self { now, agent, middlebox: *middlebox };
                    pair.settle();
                    assert!(pair.agent.is_established() && pair.middlebox.is_established());
                    return pair;
                }
                PortOutput::None => panic!("no answer"),
            }
        }
    }

    fn settle(&mut self) {
        while pass(self.now, &mut self.agent, &mut self.middlebox)
            + pass(self.now, &mut self.middlebox, &mut self.agent)
            > 0
        {}
    }

    /// Lets time pass; without `connected` all datagrams are lost.
    fn skip(&mut self, span: Duration, connected: bool) {
        let end = self.now + span;
        loop {
            self.now = self.agent.wake_at().min(self.middlebox.wake_at()).min(end);
            self.agent.advance(self.now);
            self.middlebox.advance(self.now);
            if connected {
                self.settle();
            } else {
                while self.agent.next_datagram().is_some() || self.middlebox.next_datagram().is_some() {}
            }
            if self.now == end {
                return;
            }
        }
    }
}

fn send(association: &mut Association, octets: &'static [u8]) {
    assert!(association.queue(0, 15, Bytes::from_static(octets)));
    association.flush();
}

#[test]
fn messages_arrive_whole_and_in_order() {
    let mut pair = Pair::new();
    for message in [&b"one"[..], b"two", b"three"] {
        send(&mut pair.agent, message);
    }
    let long = Bytes::from(vec![7; 65_543]);
    assert!(pair.middlebox.queue(1, 15, long.clone()));
    pair.middlebox.flush();
    pair.settle();
    pair.skip(Duration::from_secs(1), true);
    let received: Vec<Bytes> = std::iter::from_fn(|| pair.middlebox.next_message()).collect();
    assert_eq!(received, [&b"one"[..], b"two", b"three"]);
    assert_eq!(pair.agent.next_message(), Some(long));
    assert_eq!(pair.middlebox.unacknowledged(), 0);
}

/// RFC 9260 section 6.2.1: what is not read closes the window, so that an association needs little memory.
#[test]
fn messages_that_are_not_read_close_the_window() {
    let mut pair = Pair::new();
    let mut sent = 0;
    while sent < 1000 && pair.agent.queue(0, 15, vec![1; 1000].into()) {
        pair.agent.flush();
        pair.settle();
        sent += 1;
    }
    assert!(sent < 200, "{sent}");
    assert!(pair.middlebox.held_data().octets <= 18 << 10);
    let mut received = 0;
    while received < sent {
        received += std::iter::from_fn(|| pair.middlebox.next_message()).count();
        pair.settle();
        pair.skip(Duration::from_millis(1), true);
    }
}

/// RFC 9260 section 9.2.
#[test]
fn both_ends_shut_down() {
    let mut pair = Pair::new();
    send(&mut pair.agent, b"last words");
    pair.agent.close();
    pair.settle();
    pair.skip(Duration::from_millis(200), true);
    assert_eq!(pair.middlebox.next_message(), Some(Bytes::from_static(b"last words")));
    assert!(pair.middlebox.has_peer_closed());
    assert_eq!([pair.agent.end(), pair.middlebox.end()], [Some(AssociationEnd::Closed); 2]);
}

/// RFC 9260 sections 8.1 and 8.3: heartbeats find out that the peer has vanished.
#[test]
fn a_vanished_peer_is_detected_after_about_four_minutes() {
    let mut pair = Pair::new();
    pair.skip(Duration::from_secs(3600), true);
    assert_eq!([pair.agent.end(), pair.middlebox.end()], [None; 2]);
    pair.skip(Duration::from_secs(150), false);
    assert_eq!(pair.middlebox.end(), None);
    pair.skip(Duration::from_secs(150), false);
    assert!(matches!(pair.middlebox.end(), Some(AssociationEnd::Failed(_))));
    assert_eq!(pair.middlebox.wake_at(), Time::MAX, "no timer remains");
}

/// RFC 9260 section 9.1.
#[test]
fn an_abort_ends_the_other_end_at_once() {
    let mut pair = Pair::new();
    pair.agent.abort();
    pair.settle();
    assert!(pair.middlebox.has_ended());
    assert!(matches!(pair.middlebox.end(), Some(AssociationEnd::Failed(_))));
}
