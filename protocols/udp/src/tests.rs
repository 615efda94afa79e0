//! Tests with scripts: datagrams in, datagrams out.

use bytes::Bytes;
use hol_base::Time;
use hol_transport::{Command, Endpoint as _, Event, Input, Message, Output, Reliability, drain};
use hol_wire::{Address, Packet, Transport};

use crate::{Config, Endpoint, SipTransaction};

const CLIENT: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 1), 40000);
const SERVER: (Address, u16) = (hol_wire::ipv4(10, 0, 0, 2), 5060);

fn config(sip: SipTransaction) -> Config {
    Config { sip, ..Config::rfc768() }
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Passes an input to an endpoint. Returns the packets and events that it outputs at this time, and its
/// deadline.
fn step(endpoint: &mut Endpoint, now: Time, input: Option<Input>) -> (Vec<Packet>, Vec<Event>, Option<Time>) {
    let (mut packets, mut events) = (Vec::new(), Vec::new());
    if let Some(input) = input {
        endpoint.handle(now, input);
    }
    let deadline = drain(endpoint, now, |_, output| match output {
        Output::Transmit(packet) => packets.push(packet),
        Output::Event(event) => events.push(event),
        Output::Wait(_) => unreachable!("drain keeps it"),
    });
    (packets, events, deadline)
}

fn send(payload: &'static [u8]) -> Option<Input> {
    let payload = Bytes::from_static(payload);
    let message = Message { stream: 3, unordered: false, reliability: Reliability::Full, ppid: 0, payload };
    Some(Input::Command(Command::Send(message)))
}

fn client(sip: SipTransaction) -> Endpoint {
    Endpoint::connect(config(sip), CLIENT, SERVER)
}

fn server(sip: SipTransaction) -> Endpoint {
    Endpoint::listen(config(sip), SERVER)
}

/// Returns the times in ms at which the copies of an unanswered request are sent, and the time in ms at
/// which it fails.
fn copies(sip: SipTransaction) -> (Vec<u64>, u64) {
    let mut client = client(sip);
    let (_, _, mut deadline) = step(&mut client, ms(0), send(b"message1"));
    let mut copies = Vec::new();
    while let Some(now) = deadline {
        let (packets, events, next) = step(&mut client, now, None);
        let millis = now.as_nanos() / 1_000_000;
        if events.contains(&Event::Abandoned { stream: 3 }) {
            assert_eq!((packets.len(), next), (0, None));
            return (copies, millis);
        }
        assert_eq!(packets.len(), 1);
        copies.push(millis);
        deadline = next;
    }
    panic!("the endpoint waits forever after {copies:?}");
}

/// RFC 3261 section 17.1.1.2: timer A doubles; timer B ends the transaction after 64 T1.
#[test]
fn invite_is_repeated_with_doubling_intervals() {
    assert_eq!(copies(SipTransaction::Invite), (vec![500, 1500, 3500, 7500, 15_500, 31_500], 32_000));
}

/// Requests other than INVITE are repeated at "intervals of 500 ms, 1 s, 2 s, 4 s, 4 s, 4 s, etc.", until
/// timer F ends the transaction. RFC 3261 section 17.1.2.2.
#[test]
fn other_requests_are_repeated_at_least_every_t2() {
    let expected = vec![500, 1500, 3500, 7500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500];
    assert_eq!(copies(SipTransaction::Request), (expected, 32_000));
}

#[test]
fn datagram_without_sip_is_sent_once() {
    let mut client = client(SipTransaction::Off);
    let (packets, events, deadline) = step(&mut client, ms(0), send(b"message1"));
    assert_eq!((packets.len(), events.len(), deadline), (1, 0, None));
}

/// RFC 3261 section 17.2.2: the server answers a copy of a request again, but delivers the request only
/// once.
#[test]
fn response_ends_the_transaction_and_copies_are_delivered_once() {
    let (mut client, mut server) = (client(SipTransaction::Request), server(SipTransaction::Request));
    let (request, ..) = step(&mut client, ms(0), send(b"message1"));
    let mut told = Vec::new();
    let mut answers = Vec::new();
    for _ in 0..2 {
        let (packets, events, deadline) = step(&mut server, ms(25), Some(Input::Packet(request[0].clone())));
        assert_eq!(deadline, None);
        answers.extend(packets);
        told.extend(events);
    }
    assert_eq!((answers.len(), told.len()), (2, 1));
    assert_eq!(answers[0].length(), 20 + 8 + 300);
    let [Event::Received(received)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((received.payload.as_ref(), received.delivery_times.sent), (&b"message1"[..], ms(0)));
    for answer in answers {
        let (packets, events, _) = step(&mut client, ms(50), Some(Input::Packet(answer)));
        assert_eq!((packets.len(), events.len()), (0, 0));
    }
    // The timer has nothing to retransmit.
    assert_eq!(step(&mut client, ms(500), None), (vec![], vec![], None));
    assert_eq!(server.statistics().duplicates_received, 1);
}

#[test]
fn closing_waits_for_the_last_response() {
    let (mut client, mut server) = (client(SipTransaction::Invite), server(SipTransaction::Invite));
    let (request, ..) = step(&mut client, ms(0), send(b"message1"));
    let close = || Some(Input::Command(Command::Close));
    assert_eq!(step(&mut client, ms(1), close()).1, []);
    let (response, ..) = step(&mut server, ms(25), Some(Input::Packet(request[0].clone())));
    assert_eq!(step(&mut client, ms(50), Some(Input::Packet(response[0].clone()))).1, [Event::Closed]);
    assert_eq!(step(&mut server, ms(60), close()).1, [Event::Closed]);
}

#[test]
fn a_corrupted_datagram_is_dropped() {
    let (mut client, mut server) = (client(SipTransaction::Request), server(SipTransaction::Request));
    let (request, ..) = step(&mut client, ms(0), send(b"message1"));
    let packet = Packet { corrupted: true, ..request[0].clone() };
    assert!(matches!(packet.transport, Transport::Udp(_)));
    assert_eq!(step(&mut server, ms(25), Some(Input::Packet(packet))), (vec![], vec![], None));
}
