//! RFC 9260 sections 6.2, 6.5 and 6.7: tests what a receiver answers, and when.

use super::script::{PEER_TAG, PEER_TSN, Script, config, data, data_with, delivered, ms};
use crate::{Config, fixtures};
use hol_base::ByteCount;
use hol_transport::{Command, Endpoint as _, Event};
use hol_wire::sctp::{Cause, Chunk, DataFlags, GapAckBlock};

/// Returns a script whose first packet was acknowledged, so that the rules for later ones apply.
fn receiving(config: Config) -> Script {
    let mut script = Script::established(config);
    script.inject([data(1)]);
    assert_eq!(script.take_sacks().len(), 1, "section 5.1: the first is acknowledged at once");
    script
}

const WHOLE: DataFlags = DataFlags(DataFlags::BEGIN.0 | DataFlags::END.0);

#[test]
fn every_second_packet_is_acknowledged_at_once() {
    // Section 6.2.
    let mut script = receiving(config());
    script.inject([data(2)]);
    assert_eq!(script.take_sacks(), []);
    script.inject([data(3)]);
    let sacks = script.take_sacks();
    assert_eq!((sacks.len(), sacks[0].cumulative_tsn), (1, PEER_TSN + 2));
}

#[test]
fn a_lone_packet_is_acknowledged_after_the_delay() {
    // Section 6.2: within 200 ms.
    let mut script = receiving(config());
    script.inject([data(2)]);
    script.run_to(199);
    assert_eq!(script.take_sacks(), []);
    script.run_to(200);
    assert_eq!(script.take_sacks().len(), 1);
}

#[test]
fn bundled_sack_does_not_reset_the_packet_count() {
    // `net/sctp/output.c` sctp_packet_bundle_sack, with a SACK for every fourth packet.
    let mut script = receiving(Config { sack_frequency: 4, ..config() });
    script.inject([data(2)]);
    script.inject([data(3)]);
    script.send(0, 100);
    assert_eq!(script.take_sacks().len(), 1, "it rides");
    script.inject([data(4)]);
    assert_eq!(script.take_sacks(), []);
    script.inject([data(5)]);
    assert_eq!(script.take_sacks().len(), 1, "the fourth packet since the last SACK of its own");
}

#[test]
fn two_chunks_in_a_packet_count_as_one_packet() {
    // Section 6.2: every second packet, not every second DATA chunk.
    let mut script = receiving(config());
    script.inject([data(2), data(3)]);
    assert_eq!(script.take_sacks(), []);
}

#[test]
fn a_gap_is_reported_at_once() {
    // Section 6.7.
    let mut script = receiving(config());
    script.inject([data(3)]);
    script.inject([data(5)]);
    let sacks = script.take_sacks();
    assert_eq!(sacks.len(), 2);
    let block = |start, end| GapAckBlock { start, end };
    assert_eq!(sacks[1].gaps.as_slice(), [block(2, 2), block(4, 4)]);
}

#[test]
fn sack_for_the_packet_that_closes_the_last_gap_is_configurable() {
    // RFC 5681 section 4.2 by way of RFC 9260 section 6.2.
    for (at_once, expected) in [(true, 1), (false, 0)] {
        let mut script = receiving(Config { sack_when_gap_closes: at_once, ..config() });
        script.inject([data(3)]);
        script.take_sacks();
        script.inject([data(2)]);
        assert_eq!(script.take_sacks().len(), expected);
    }
}

#[test]
fn a_duplicate_is_reported_at_once() {
    // Section 6.2.
    let mut script = receiving(config());
    script.inject([data(1)]);
    let sacks = script.take_sacks();
    assert_eq!(sacks[0].duplicates.as_slice(), [PEER_TSN]);
    assert_eq!(script.endpoint.statistics().duplicates_received, 1);
}

#[test]
fn sack_for_a_duplicate_before_a_new_chunk_is_configurable() {
    // Section 6.2: MAY. Linux decides after the last chunk.
    for (as_last_asks, expected) in [(true, 0), (false, 1)] {
        let linux_or_rfc = Config { sack_as_last_chunk_asks: as_last_asks, ..config() };
        let mut script = receiving(linux_or_rfc.clone());
        script.inject([data(1), data(2)]);
        assert_eq!(script.take_sacks().len(), expected);
        let mut script = receiving(linux_or_rfc);
        script.inject([data(2), data(1)]);
        assert_eq!(script.take_sacks().len(), 1, "the last is the duplicate");
    }
}

#[test]
fn the_i_bit_asks_for_an_acknowledgement_at_once() {
    // RFC 7053 section 4.
    let mut script = receiving(config());
    script.inject([data_with(2, 0, 1, WHOLE | DataFlags::IMMEDIATE)]);
    assert_eq!(script.take_sacks().len(), 1);
}

#[test]
fn a_waiting_sack_rides_with_data() {
    // Section 6.1: bundled, and by section 6.10 before the DATA.
    let mut script = receiving(config());
    script.inject([data(2)]);
    script.send(0, 100);
    let packet = script.take_one();
    assert!(matches!(packet.chunks[..], [Chunk::Sack(_), Chunk::Data(_)]), "{packet:?}");
    script.run_to(300);
    assert_eq!(script.take_sacks(), [], "the delay is over");
}

#[test]
fn filled_window_is_advertised_and_enforced() {
    // Section 6.2: a_rwnd minus the waiting data; a chunk without room is dropped and reported.
    let mut script = receiving(Config { receive_buffer: ByteCount(1500), ..config() });
    for number in 3..=152 {
        script.inject([data(number)]);
    }
    let last = script.take_sacks().pop().unwrap();
    assert_eq!((last.a_rwnd, last.gaps.len()), (0, 1));
    script.inject([data(153)]);
    assert_eq!(script.take_sacks().pop().unwrap().gaps[0].end, 151, "chunk 153 had no room");
    script.inject([data(2)]);
    assert_eq!(delivered(&script.events).len(), 152);
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 1500);
}

#[test]
fn window_closes_without_reads_and_opens_after_them() {
    // Section 6.2: a_rwnd minus the unread data; a chunk without room is dropped, and a window that has
    // opened by much is announced at once.
    let mut script = receiving(Config { receive_buffer: ByteCount(1500), ..config() });
    script.command(Command::Read(false));
    for number in 2..=151 {
        script.inject([data(number)]);
    }
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 0);
    script.inject([data(152)]);
    script.run_to(500);
    let last = script.take_sacks().pop().unwrap();
    assert_eq!((last.cumulative_tsn, last.a_rwnd), (PEER_TSN + 150, 0), "chunk 152 had no room");
    assert_eq!(delivered(&script.events).len(), 1);
    script.command(Command::Read(true));
    assert_eq!(delivered(&script.events).len(), 151);
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 1500);
}

/// Returns fragment `number`, of 500 octets, of a message on stream 0.
fn fragment(number: u32, flags: DataFlags) -> Chunk {
    let Chunk::Data(mut data) = data_with(number, 0, 1, flags) else { unreachable!() };
    data.payload = vec![number as u8; 500].into();
    Chunk::Data(data)
}

#[test]
fn message_above_the_window_is_partly_delivered_and_read_whole() {
    // Section 6.9: data delivered in part make room.
    let mut script = receiving(Config { receive_buffer: ByteCount(1500), ..config() });
    script.inject([fragment(2, DataFlags::BEGIN)]);
    script.inject([fragment(3, DataFlags(0))]);
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 500);
    for number in 4..=20 {
        script.inject([fragment(number, DataFlags(0))]);
        // Only the latest fragment is unread.
        assert!(script.take_sacks().last().is_none_or(|sack| sack.a_rwnd >= 1000), "fragment {number}");
    }
    assert_eq!(delivered(&script.events), [1], "the message is not whole");
    script.inject([data_with(22, 1, 0, WHOLE)]);
    assert_eq!(delivered(&script.events), [1], "RFC 6458 section 8.1.20: no other comes between");
    script.inject([fragment(21, DataFlags::END)]);
    assert_eq!(delivered(&script.events), [1, 2, 22]);
    assert!(script.events.iter().any(|it| matches!(it, Event::Received(it) if it.payload.len() == 10_000)));
}

#[test]
fn unread_part_of_a_message_keeps_the_window_closed() {
    // Section 6.2: a_rwnd minus the unread data.
    let mut script = receiving(Config { receive_buffer: ByteCount(1500), ..config() });
    script.command(Command::Read(false));
    script.inject([fragment(2, DataFlags::BEGIN)]);
    for number in 3..=4 {
        script.inject([fragment(number, DataFlags(0))]);
    }
    script.run_to(500);
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 0);
    script.command(Command::Read(true));
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 1500);
    script.inject([fragment(5, DataFlags::END)]);
    assert_eq!(delivered(&script.events), [1, 2]);
}

#[test]
fn window_is_updated_after_each_read_of_a_part() {
    // `net/sctp/ulpqueue.c` sctp_ulpq_partial_delivery: 73 fragments are delivered when the next one does not
    // fit, and `net/sctp/socket.c` sctp_recvmsg takes 65,536 octets of them, then the rest, then the fragment
    // that arrived; windows as in a capture of Linux 6.12.
    let mut script = receiving(fixtures::linux());
    script.run_to(1);
    let fragment = |number: u32| {
        let flags = if number == 2 { DataFlags::BEGIN } else { DataFlags::default() };
        let Chunk::Data(chunk) = data_with(number, 0, 1, flags) else { unreachable!() };
        Chunk::Data(hol_wire::sctp::Data { payload: vec![0; 1452].into(), ..chunk })
    };
    (2..=74).for_each(|number| script.inject([fragment(number)]));
    script.run_to(500);
    assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 500);
    script.inject([fragment(75)]);
    script.run_to(501);
    let windows: Vec<u32> = script.take_sacks().iter().map(|sack| sack.a_rwnd).collect();
    assert_eq!(windows, [64_584, 105_044]);
}

#[test]
fn next_expected_chunk_evicts_others_if_nothing_is_unread() {
    // `net/sctp/ulpqueue.c` sctp_ulpq_renege: no data are discarded while the receive queue is not empty.
    let cumulative = |reads: bool| {
        let mut script = receiving(Config { receive_buffer: ByteCount(1500), ..config() });
        script.command(Command::Read(reads));
        script.inject([data_with(2, 0, 1, WHOLE)]);
        (4..=6).for_each(|number| script.inject([fragment(number, DataFlags(0))]));
        assert_eq!(script.take_sacks().pop().unwrap().a_rwnd, 0);
        script.inject([data_with(3, 0, 2, WHOLE)]);
        script.take_sacks().pop().unwrap().cumulative_tsn
    };
    assert_eq!([true, false].map(cumulative), [PEER_TSN + 5, PEER_TSN + 1]);
}

#[test]
fn data_on_an_invalid_stream_are_acknowledged_and_reported() {
    // Section 6.5.
    let mut script = receiving(config());
    script.inject([data_with(2, 999, 0, WHOLE)]);
    script.run_to(200);
    let chunks: Vec<Chunk> = script.packets.drain(..).flat_map(|(_, _, packet)| packet.chunks).collect();
    assert!(chunks.contains(&Chunk::Error(vec![Cause::InvalidStreamIdentifier(999)])), "{chunks:?}");
    assert!(chunks.iter().any(|c| matches!(c, Chunk::Sack(sack) if sack.cumulative_tsn == PEER_TSN + 1)));
    assert_eq!(delivered(&script.events), [1]);
}

#[test]
fn data_without_user_data_ends_the_association() {
    // Section 6.2.
    let mut script = receiving(config());
    let Chunk::Data(mut empty) = data(2) else { unreachable!() };
    empty.payload = bytes::Bytes::new();
    let tsn = empty.tsn;
    script.inject([Chunk::Data(empty)]);
    let abort = Chunk::Abort { reflected: false, causes: vec![Cause::NoUserData(tsn)] };
    assert_eq!(script.take_one().chunks.as_slice(), [abort]);
    assert!(script.endpoint.is_closed());
}

#[test]
fn a_packet_with_the_wrong_tag_is_dropped() {
    // Section 8.5.
    let mut script = receiving(config());
    script.events.clear();
    let wrong = script.endpoint.local_tag ^ 1;
    script.inject_with_tag(wrong, [data(2)].into_iter().collect());
    script.inject_with_tag(PEER_TAG, [data(2)].into_iter().collect());
    assert_eq!((script.packets.len(), script.events.len()), (0, 0));
}

#[test]
fn a_corrupted_packet_is_dropped() {
    // Section 6.8.
    let mut pair = super::pair::Pair::connected(&config(), super::pair::Network::PERFECT, 1);
    let before = *pair.sides[1].statistics();
    let mut packet = hol_wire::Packet::new(
        super::script::LOCAL[0],
        super::script::REMOTE[0],
        hol_wire::sctp::Packet {
            source_port: super::script::LOCAL_PORT,
            destination_port: super::script::REMOTE_PORT,
            verification_tag: pair.sides[1].local_tag,
            zero_checksum: false,
            chunks: [Chunk::CookieAck].into_iter().collect(),
        },
    );
    packet.corrupted = true;
    let now = pair.now;
    pair.sides[1].handle(now, hol_transport::Input::Packet(packet));
    assert_eq!(*pair.sides[1].statistics(), before);
}

#[test]
fn messages_are_acknowledged_before_the_application_reads() {
    let mut script = Script::established(Config { wakeup: ms(1), ..config() });
    script.inject([data(1)]);
    script.inject([data(2)]);
    assert_eq!(script.take_sacks().len(), 1, "section 5.1");
    assert!(delivered(&script.events).is_empty());
    script.run_to(1);
    assert_eq!(delivered(&script.events), [1, 2]);
}

#[test]
fn window_update_follows_reads_of_an_eighth_of_the_buffer() {
    // `net/sctp/associola.c` sctp_assoc_rwnd_decrease and sctp_assoc_rwnd_increase: the SACK of a packet is
    // sent before the application reads, and a window update follows after sk_rcvbuf >> rwnd_upd_shift octets
    // were read, which are 13,312 of 106,496.
    let mut script = receiving(fixtures::linux());
    script.run_to(1);
    let fragments = |first: u32, last: u32| {
        (first..=last).map(move |number| {
            let begin = if number == first { DataFlags::BEGIN } else { DataFlags::default() };
            let end = if number == last { DataFlags::END } else { DataFlags::default() };
            let Chunk::Data(chunk) = data_with(number, 0, 1, begin | end) else { unreachable!() };
            Chunk::Data(hol_wire::sctp::Data { payload: vec![0; 1452].into(), ..chunk })
        })
    };
    let mut windows = |first, last| {
        fragments(first, last).for_each(|chunk| script.inject([chunk]));
        script.run_to(u64::from(last));
        script.take_sacks().into_iter().map(|sack| sack.a_rwnd).collect::<Vec<u32>>()
    };
    // Ten fragments are 14,520 octets; nine are too few for an update, and the delayed SACK does not announce it.
    let every_second: Vec<u32> = (1..=5).map(|pairs| 106_496 - 2 * pairs * 1452).collect();
    assert_eq!(windows(2, 11), [&every_second[..], &[106_496]].concat());
}

#[test]
fn cmt_sack_reports_all_gaps_that_fit() {
    // RFC 9260 section 3.3.4: Linux reports at most 16, and has no concurrent multipath transfer.
    let blocks = |cmt: bool| {
        let mut script = receiving(Config { cmt, ..fixtures::linux() });
        (1..400).for_each(|step| script.inject([data(1 + 2 * step)]));
        script.take_sacks().last().map(|sack| sack.gaps.len())
    };
    assert_eq!([blocks(false), blocks(true)], [Some(16), Some(347)]);
}
