//! RFC 9260 section 9: tests the end of an association.

use super::pair::{Network, Pair};
use super::script::{PEER_TAG, Script, config, data, message};
use crate::{Config, Endpoint};
use hol_base::Duration;
use hol_transport::{Command, Event, Failure, Reliability};
use hol_wire::sctp::{Chunk, DataFlags};

#[test]
fn queued_messages_are_delivered_before_closing() {
    // Section 9.2.
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    for number in 0..200 {
        pair.send_numbered(0, 0, number, Reliability::Full);
    }
    pair.close();
    assert!(pair.numbers(1, 0).into_iter().eq(0..200));
    assert!(pair.sides.iter().all(Endpoint::is_closed));
    let ends = |side: usize| {
        pair.events[side].iter().map(|(_, event)| event.clone()).rev().take(2).collect::<Vec<_>>()
    };
    assert_eq!(ends(0)[0], Event::Closed);
    assert_eq!(ends(1), [Event::Closed, Event::PeerClosed]);
}

#[test]
fn passive_side_delivers_its_queue_before_closing() {
    // Section 9.2: SHUTDOWN-RECEIVED.
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    for number in 0..200 {
        pair.send_numbered(1, 0, number, Reliability::Full);
    }
    pair.close();
    assert!(pair.numbers(0, 0).into_iter().eq(0..200));
}

#[test]
fn last_data_before_shutdown_request_an_immediate_sack() {
    // RFC 7053 section 5.2: the I bit in SHUTDOWN-PENDING.
    let mut script = Script::established(config());
    for _ in 0..6 {
        script.command(Command::Send(message(0, 1400)));
    }
    script.command(Command::Close);
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-PENDING");
    script.packets.clear();
    script.sack(4, &[]);
    let Chunk::Data(data) = &script.packets[0].2.chunks[0] else { panic!("{:?}", script.packets) };
    assert!(data.flags.contains(DataFlags::IMMEDIATE));
}

#[test]
fn shutdown_is_retransmitted_until_answered() {
    // Section 9.2: T2-shutdown.
    let mut script = Script::established(config());
    script.command(Command::Close);
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-SENT");
    script.run_to(3500);
    let times: Vec<u64> = script.packets.iter().map(|(at, ..)| at.as_millis() - 1000).collect();
    assert_eq!(times, [0, 1000, 3000]);
    script.packets.clear();
    script.inject([Chunk::ShutdownAck]);
    assert_eq!(script.take_one().chunks.as_slice(), [Chunk::ShutdownComplete { reflected: false }]);
    assert_eq!(script.events.last(), Some(&Event::Closed));
}

#[test]
fn data_crossing_a_shutdown_are_acknowledged_by_another_shutdown() {
    // Section 9.2.
    let mut script = Script::established(config());
    script.command(Command::Close);
    script.packets.clear();
    script.inject([data(1)]);
    assert!(matches!(script.take_one().chunks[..], [Chunk::Sack(_), Chunk::Shutdown { .. }]));
}

#[test]
fn simultaneous_shutdown_closes_both_ends() {
    // Section 9.2.
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    pair.command(0, Command::Close);
    pair.command(1, Command::Close);
    pair.run(Duration::from_secs(5));
    assert!(pair.sides.iter().all(Endpoint::is_closed));
}

#[test]
fn an_abort_ends_both_sides_at_once() {
    // Section 9.1.
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    pair.command(0, Command::Abort);
    pair.run(Duration::from_millis(10));
    let last = |side: usize| pair.events[side].last().map(|(_, event)| event.clone());
    assert_eq!(last(0), Some(Event::Failed { reason: Failure::Aborted }));
    assert_eq!(last(1), Some(Event::Failed { reason: Failure::AbortedByPeer }));
}

#[test]
fn endless_shutdown_is_ended_by_the_guard_timer() {
    // Section 9.2: T5-shutdown-guard, five times RTO.Max.
    let mut script = Script::established(Config { association_max_retrans: 1000, ..config() });
    script.command(Command::Close);
    script.run_to(299_000);
    assert!(!script.endpoint.is_closed());
    script.run_to(300_000);
    assert_eq!(script.events.last(), Some(&Event::Failed { reason: Failure::ShutdownTimedOut }));
    assert!(script.endpoint.is_closed());
}

#[test]
fn shutdown_complete_may_reflect_the_tag() {
    // Section 8.5.1 C.
    let mut script = Script::established(config());
    let cumulative_tsn = script.first - 1;
    script.inject([Chunk::Shutdown { cumulative_tsn }]);
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-ACK-SENT");
    script.inject_with_tag(PEER_TAG, [Chunk::ShutdownComplete { reflected: true }].into_iter().collect());
    assert_eq!(script.events, [Event::PeerClosed, Event::Closed]);
}

#[test]
fn peer_that_sends_data_during_shutdown_has_not_failed() {
    // Section 9.2: DATA in SHUTDOWN-SENT clears the count and restarts T2.
    let mut script = Script::established(Config { association_max_retrans: 2, ..config() });
    script.command(Command::Close);
    for number in 1..10 {
        script.run_to(u64::from(number) * 5000);
        script.inject([data(number)]);
    }
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-SENT");
    script.run_to(600_000);
    assert!(script.endpoint.is_closed(), "a silent one has");
}
