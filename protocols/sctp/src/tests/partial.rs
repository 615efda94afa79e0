//! RFC 3758 and RFC 7496: tests messages that may be abandoned.

use super::pair::{Network, Pair};
use super::script::{PEER_TSN, Script, config, data, data_with, delivered, init_ack, message};
use crate::{Config, fixtures};
use bytes::Bytes;
use hol_base::{ByteCount, Duration};
use hol_transport::{Command, Endpoint as _, Event, Message, Reliability};
use hol_wire::sctp::{Chunk, DataFlags, ForwardTsn, Ssn};
use smallvec::smallvec;

fn unreliable(length: usize, reliability: Reliability) -> Command {
    Command::Send(Message { reliability, ..message(3, length) })
}

fn forward_tsns(script: &mut Script) -> Vec<ForwardTsn> {
    let packets = std::mem::take(&mut script.packets);
    let chunks = packets.into_iter().flat_map(|(_, _, packet)| packet.chunks);
    chunks
        .filter_map(|chunk| if let Chunk::ForwardTsn(forward) = chunk { Some(*forward) } else { None })
        .collect()
}

#[test]
fn message_without_retransmissions_is_abandoned_at_its_first_loss() {
    // RFC 7496 section 4.2; RFC 3758 section 3.5.
    let mut script = Script::established(config());
    script.command(unreliable(100, Reliability::Retransmissions(0)));
    for _ in 0..3 {
        script.send(0, 100);
    }
    script.packets.clear();
    for last in 2..=4 {
        script.sack(0, &[(2, last)]);
    }
    assert_eq!(script.events, [Event::Abandoned { stream: 3 }]);
    let forward = forward_tsns(&mut script);
    assert_eq!(forward, [ForwardTsn { new_cumulative_tsn: script.first, skipped: smallvec![(3, Ssn(0))] }]);
    script.sack(4, &[]);
    assert_eq!(script.flight_size(), 0);
}

#[test]
fn message_is_retransmitted_up_to_its_limit() {
    // RFC 7496 section 4.2.
    let mut script = Script::established(config());
    script.command(unreliable(100, Reliability::Retransmissions(2)));
    script.run_to(20_000);
    assert_eq!(script.take_data().len(), 3);
    assert_eq!(script.events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).count(), 1);
}

#[test]
fn a_message_that_waited_too_long_is_never_sent() {
    // RFC 3758 section 4.1.
    let mut script = Script::established(config());
    for _ in 0..5 {
        script.send(0, 1400);
    }
    script.take_data();
    script.command(unreliable(100, Reliability::Lifetime(Duration::from_millis(50))));
    script.run_to(60);
    script.sack(4, &[]);
    script.run_to(100);
    assert_eq!(script.take_data(), [(60, vec![5])]);
    assert!(script.events.contains(&Event::Abandoned { stream: 3 }));
}

#[test]
fn abandoned_unsent_message_frees_the_send_buffer() {
    // `net/sctp/outqueue.c` sctp_outq_flush_data frees it, and `socket.c` sctp_wfree wakes an application that waits for room.
    let mut script = Script::established(Config { send_buffer: ByteCount(10_000), ..config() });
    for _ in 0..4 {
        script.send(0, 1400);
    }
    script.command(unreliable(4000, Reliability::Lifetime(Duration::from_millis(50))));
    assert!(!script.endpoint.can_send(5000));
    script.run_to(60);
    script.events.clear();
    script.sack(1, &[]);
    assert_eq!(script.events, [Event::Abandoned { stream: 3 }, Event::Writable]);
}

#[test]
fn message_past_its_lifetime_is_abandoned_at_the_next_sack() {
    // RFC 3758 section 3.5 A3.
    let mut script = Script::established(config());
    script.command(unreliable(100, Reliability::Lifetime(Duration::from_millis(50))));
    script.send(0, 100);
    script.run_to(51);
    script.sack(0, &[(2, 2)]);
    assert_eq!(script.events, [Event::Abandoned { stream: 3 }]);
    assert_eq!(forward_tsns(&mut script).len(), 1);
}

#[test]
fn all_fragments_of_a_message_are_abandoned_together() {
    // RFC 3758 section 3.5 A3: including those that were not sent.
    let mut script = Script::established(config());
    script.command(unreliable(10_000, Reliability::Retransmissions(0)));
    let sent = script.take_data().len() as u32;
    assert!(sent < 7);
    script.run_to(1000);
    let forward = forward_tsns(&mut script);
    assert_eq!(forward[0].new_cumulative_tsn, script.first + sent, "one TSN more stands for the rest");
    script.send(3, 100);
    let Some(Chunk::Data(next)) = script.take_one().chunks.last().cloned() else { panic!("no DATA") };
    assert_eq!(next.ssn, Ssn(1), "the sequence number of the message given up is not used again");
}

#[test]
fn forward_tsn_is_repeated_until_it_is_acknowledged() {
    // RFC 3758 section 3.5 C5.
    let mut script = Script::established(config());
    script.command(unreliable(100, Reliability::Retransmissions(0)));
    script.run_to(8000);
    assert!(forward_tsns(&mut script).len() >= 2);
    script.sack(1, &[]);
    script.run_to(60_000);
    assert_eq!(forward_tsns(&mut script), []);
}

#[test]
fn receiver_skips_abandoned_messages() {
    // RFC 3758 section 3.6.
    let mut script = Script::established(config());
    script.inject([data(2)]);
    assert!(delivered(&script.events).is_empty());
    script.packets.clear();
    let forward = ForwardTsn { new_cumulative_tsn: PEER_TSN, skipped: smallvec![(0, Ssn(0))] };
    script.inject([Chunk::ForwardTsn(Box::new(forward))]);
    assert_eq!(delivered(&script.events), [2]);
    script.run_to(200);
    assert_eq!(script.take_sacks().last().map(|sack| sack.cumulative_tsn), Some(PEER_TSN + 1));
}

#[test]
fn old_forward_tsn_is_acknowledged() {
    // RFC 3758 section 3.6: every second one; otherwise FORWARD TSN and SACK would trigger each other without end.
    for config in [config(), fixtures::linux()] {
        let mut script = Script::established(config);
        script.inject([data(1)]);
        script.packets.clear();
        let forward = ForwardTsn { new_cumulative_tsn: PEER_TSN - 1, skipped: smallvec![] };
        let mut sacks = || {
            script.inject([Chunk::ForwardTsn(Box::new(forward.clone()))]);
            script.take_sacks().len()
        };
        assert_eq!([sacks(), sacks(), sacks(), sacks()], [0, 1, 0, 1]);
    }
}

#[test]
fn linux_counts_a_forward_tsn_in_addition_to_data() {
    // `net/sctp/sm_statefuns.c` sctp_sf_eat_fwd_tsn; RFC 3758 section 3.6 counts packets.
    for (config, sacks) in [(fixtures::linux(), 1), (config(), 0)] {
        let mut script = Script::established(config);
        script.inject([data(1)]);
        script.packets.clear();
        let forward = ForwardTsn { new_cumulative_tsn: PEER_TSN + 1, skipped: smallvec![(0, Ssn(1))] };
        script.inject([Chunk::ForwardTsn(Box::new(forward)), data(3)]);
        assert_eq!(script.take_sacks().len(), sacks);
    }
}

#[test]
fn forward_tsn_frees_the_buffer_before_its_sack() {
    // `net/sctp/sm_statefuns.c` sctp_sf_eat_fwd_tsn: SCTP_CMD_PROCESS_FWDTSN, then SCTP_CMD_GEN_SACK.
    let window = |config: Config, through: u32| {
        let held = config.receive_buffer.0 as u32;
        let mut script = Script::established(config);
        script.inject([data_with(1, 0, 0, DataFlags::BEGIN)]);
        script.inject([data_with(2, 0, 0, DataFlags::default())]);
        let forward = ForwardTsn { new_cumulative_tsn: PEER_TSN + through, skipped: smallvec![(0, Ssn(0))] };
        script.inject([Chunk::ForwardTsn(Box::new(forward))]);
        script.take_sacks().last().map_or(0, |sack| held - sack.a_rwnd)
    };
    assert_eq!([window(fixtures::linux(), 2), window(config(), 2)], [0; 2]);
    assert_eq!(
        [window(fixtures::linux(), 1), window(config(), 1)],
        [0, 20],
        "the message is complete up to there"
    );
}

#[test]
fn forward_tsn_too_far_ahead_is_ignored() {
    // `net/sctp/tsnmap.c` sctp_tsnmap_check: 4096 beyond the cumulative TSN.
    let mut script = Script::established(fixtures::linux());
    let mut forward_by = |step: u32| {
        let cumulative = script.endpoint.tsn_map.cumulative();
        let forward = ForwardTsn { new_cumulative_tsn: cumulative + step, skipped: smallvec![] };
        script.inject([Chunk::ForwardTsn(Box::new(forward))]);
        script.endpoint.tsn_map.cumulative() != cumulative
    };
    assert_eq!([forward_by(4097), forward_by(4096)], [false, true]);
}

#[test]
fn acknowledged_message_is_not_abandoned() {
    // RFC 3758 section 3.5: the message has arrived, so its lifetime has no effect.
    let mut script = Script::established(config());
    script.command(unreliable(100, Reliability::Lifetime(Duration::from_millis(50))));
    script.run_to(51);
    script.sack(1, &[]);
    assert_eq!(script.events, []);
}

#[test]
fn linux_checks_limits_before_acknowledging() {
    // `net/sctp/outqueue.c` sctp_check_transmitted: a message that was sent once, and may not be
    // retransmitted, is abandoned at the next SACK.
    let give_up = |config: Config, length| {
        let mut script = Script::established(config);
        script.command(unreliable(length, Reliability::Retransmissions(0)));
        script.packets.clear();
        script.sack(1, &[]);
        let told = script.events.len();
        (told, forward_tsns(&mut script).len(), script.flight_size())
    };
    assert_eq!(give_up(fixtures::linux(), 100), (0, 0, 0), "the whole message has arrived");
    assert_eq!(give_up(fixtures::linux(), 10_000), (1, 1, 0), "the rest is not sent");
    let (told, forwards, in_flight) = give_up(config(), 10_000);
    assert_eq!((told, forwards), (0, 0));
    assert!(in_flight > 2904, "RFC 7496 section 3.2: nothing has to be sent again");
}

#[test]
fn linux_abandons_in_the_order_of_its_lists() {
    // `net/sctp/outqueue.c` sctp_check_transmitted: a retransmitted chunk is listed after the others of its
    // message, which are abandoned at the next SACK.
    let mut script = Script::established(fixtures::linux());
    script.command(unreliable(4000, Reliability::Retransmissions(1)));
    for last in 2..=3 {
        script.sack(0, &[(2, last)]);
    }
    script.run_to(4000);
    script.packets.clear();
    script.sack(0, &[(2, 3)]);
    script.sack(0, &[(2, 3)]);
    let ends: Vec<u32> = forward_tsns(&mut script)
        .iter()
        .map(|forward| forward.new_cumulative_tsn.distance_from(script.first))
        .collect();
    assert_eq!(ends, [0, 2]);
}

#[test]
fn forward_tsn_ends_before_a_gap_acked_chunk() {
    // RFC 3758 section 3.5 C2.
    let mut script = Script::established(config());
    for _ in 0..3 {
        script.command(unreliable(100, Reliability::Lifetime(Duration::from_millis(50))));
    }
    script.packets.clear();
    script.run_to(51);
    script.sack(0, &[(2, 2)]);
    assert_eq!(forward_tsns(&mut script)[0].new_cumulative_tsn, script.first);
}

#[test]
fn later_messages_overtake_abandoned_ones() {
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    pair.cut = [true; 2];
    let lifetime = Reliability::Lifetime(Duration::from_millis(25));
    let payload = Bytes::from_static(&[0; 4]);
    pair.send(0, Message { stream: 0, unordered: false, reliability: lifetime, ppid: 0, payload });
    pair.cut = [false; 2];
    for number in 1..20 {
        pair.send_numbered(0, 0, number, Reliability::Full);
        pair.run(Duration::from_millis(5));
    }
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.numbers(1, 0), (1..20).collect::<Vec<u32>>());
}

#[test]
fn abandoned_queue_does_not_delay_the_shutdown() {
    // RFC 9260 section 9.2.
    let mut script = Script::established(config());
    for _ in 0..4 {
        script.send(0, 1400);
    }
    script.command(unreliable(100, Reliability::Lifetime(Duration::from_millis(50))));
    script.command(Command::Close);
    script.run_to(60);
    script.sack(4, &[]);
    assert_eq!(script.endpoint.state_name(), "SHUTDOWN-SENT");
}

#[test]
fn a_forward_tsn_fits_into_a_packet() {
    // RFC 3758 section 3.5 C4: it extends as far as there is room for the streams.
    let mut script = Script::closed(Config { streams: 500, initial_window: ByteCount(6000), ..config() }, 1);
    script.command(Command::Connect);
    let Chunk::Init(init) = &script.take_one().chunks[0].clone() else { panic!("no INIT") };
    script.first = init.initial_tsn;
    script.inject([init_ack(500, &[])]);
    script.inject([Chunk::CookieAck]);
    for stream in 0..500 {
        let reliability = Reliability::Lifetime(Duration::from_millis(50));
        script.command(Command::Send(Message { reliability, ..message(stream, 4) }));
    }
    script.packets.clear();
    script.run_to(1000);
    let forward = forward_tsns(&mut script);
    assert_eq!((forward[0].skipped.len(), forward[0].new_cumulative_tsn), (365, script.first + 364));
    script.sack(365, &[]);
    assert_eq!(forward_tsns(&mut script)[0].new_cumulative_tsn, script.first + 499);
}
