//! RFC 9260 sections 6.1, 6.9 and 6.10: tests which chunks may be sent, and in which packet.

use super::pair::{Network, Pair};
use super::script::{Script, config, data, message};
use crate::{Config, fixtures};
use hol_base::{Duration, Time};
use hol_congestion::sctp::{CwndParameters, Window};
use hol_transport::{Command, Endpoint as _, Event, Reliability};
use hol_wire::sctp::{Chunk, Packet, Parameter};

#[test]
fn a_message_leaves_at_once() {
    let mut script = Script::established(config());
    script.send(3, 100);
    let packet = script.take_one();
    let Chunk::Data(data) = &packet.chunks[0] else { panic!("{packet:?}") };
    assert_eq!((data.stream, data.tsn, data.payload.len()), (3, script.first, 100));
    assert_eq!(script.flight_size(), 100);
}

#[test]
fn queued_messages_share_packets() {
    // Section 6.10: as many as fit, in the order of the writes.
    let mut script = Script::established(config());
    for stream in 0..20 {
        script.endpoint.queue(script.now, message(stream % 4, 100));
    }
    script.drain();
    assert!(script.take_data().is_empty(), "others may follow");
    script.endpoint.send_queued(script.now);
    script.drain();
    assert_eq!(script.take_data(), [(0, (1..=12).collect::<Vec<_>>()), (0, (13..=20).collect())]);
}

#[test]
fn reading_sends_no_queued_data() {
    // `net/sctp/socket.c` sctp_recvmsg: only a window update does, and another burst would (`net/sctp/transport.c`
    // sctp_transport_burst_limited).
    let mut script = Script::established(config());
    script.endpoint.queue(script.now, message(0, 100));
    [false, true].into_iter().for_each(|reads| script.command(Command::Read(reads)));
    assert!(script.take_data().is_empty());
    script.endpoint.send_queued(script.now);
    script.drain();
    assert_eq!(script.take_data(), [(0, vec![1])]);
}

#[test]
fn cwnd_bounds_the_outstanding_octets() {
    // Section 6.1 B: no more chunks while cwnd (4404) or more octets are outstanding.
    let mut script = Script::established(config());
    for _ in 0..6 {
        script.send(0, 1000);
    }
    assert_eq!(script.take_data().len(), 5);
    script.sack(1, &[]);
    assert_eq!(script.take_data().len(), 1);
}

#[test]
fn closed_window_is_probed_by_one_chunk() {
    // Section 6.1 A.
    let mut script = Script::established(config());
    script.send(0, 100);
    let closed = script.make_sack(1, &[], 0);
    script.take_data();
    script.inject([closed]);
    script.send(0, 100);
    script.send(0, 100);
    assert_eq!(script.take_data(), [(0, vec![2])]);
    let open = script.make_sack(2, &[], 1000);
    script.inject([open]);
    assert_eq!(script.take_data(), [(0, vec![3])]);
}

#[test]
fn peer_that_never_acks_with_an_open_window_fails() {
    // Section 8.1: an acknowledgement clears the counter, and section 6.1 A refers to a closed window.
    let mut script = Script::established(Config { association_max_retrans: 2, ..config() });
    script.send(0, 100);
    for second in 1..=30 {
        if !script.endpoint.is_closed() {
            script.run_to(1000 * second);
            script.sack(0, &[]);
        }
    }
    assert!(script.endpoint.is_closed());
}

#[test]
fn peer_with_a_closed_window_does_not_fail() {
    // Section 6.1 A.
    let mut script = Script::established(Config { association_max_retrans: 3, ..config() });
    script.send(0, 100);
    for second in 1..300 {
        script.run_to(second * 1000);
        let shut = script.make_sack(0, &[], 0);
        script.inject([shut]);
    }
    assert_eq!(script.endpoint.state_name(), "ESTABLISHED");
}

#[test]
fn max_burst_limits_the_packets_sent_per_event() {
    // Section 6.1 D.
    let mut script = Script::established(Config { initial_window: hol_base::ByteCount(1 << 20), ..config() });
    assert_eq!(script.endpoint.paths()[0].cwnd(), 6000);
    for sent in 0..40 {
        script.send(0, 1452);
        let packets = script.take_data();
        if !packets.is_empty() {
            script.sack(sent + 1, &[]);
        }
    }
    let cwnd = script.endpoint.paths()[0].cwnd();
    assert!(cwnd >= 6000, "{cwnd}");
    for _ in 0..10 {
        script.command(Command::Send(message(0, 1452)));
    }
    assert_eq!(script.take_data().len(), (cwnd.min(6000) as usize).div_ceil(1452));
}

#[test]
fn small_messages_share_a_packet_when_they_leave_together() {
    // Section 6.10: lower TSNs first, and at most the MTU.
    let mut script = Script::established(config());
    for _ in 0..60 {
        script.send(0, 100);
    }
    script.take_data();
    script.sack(45, &[]);
    let packets = script.take_data();
    assert_eq!(packets[0].1, (46..46 + 12).collect::<Vec<u32>>());
}

#[test]
fn nagle_holds_a_small_packet_back_while_data_is_in_flight() {
    // Section 6.1 (RFC 1122 section 4.2.3.4).
    let mut script = Script::established(Config { nagle: true, ..config() });
    for _ in 0..3 {
        script.send(0, 100);
    }
    assert_eq!(script.take_data(), [(0, vec![1])]);
    script.sack(1, &[]);
    assert_eq!(script.take_data(), [(0, vec![2, 3])]);
    for _ in 0..13 {
        script.send(0, 100);
    }
    assert_eq!(script.take_data(), [(0, (4..=15).collect())], "a full packet does not wait");
}

#[test]
fn small_packet_in_an_offloaded_burst_ignores_nagle() {
    // The linux-6.12 stack: a train takes half of cwnd, 2940 octets here, like one packet.
    for (offload, third) in [(false, None), (true, Some((0, vec![29])))] {
        let stack = Config { nagle: true, segmentation_offload: offload, ..config() };
        let mut script = Script::established(stack);
        for length in [[1452].repeat(4), [100].repeat(30)].concat() {
            script.send(0, length);
        }
        assert_eq!(script.take_data().len(), 4, "cwnd is full");
        script.sack(4, &[]);
        let sent = script.take_data();
        assert_eq!(sent[..2], [(0, (5..=16).collect()), (0, (17..=28).collect())]);
        assert_eq!(sent.get(2), third.as_ref());
    }
}

#[test]
fn long_message_is_fragmented_and_reassembled() {
    // Section 6.9.
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    pair.send(0, message(2, 100_000));
    pair.run(Duration::from_secs(2));
    let received = pair.received(1);
    assert_eq!(received.len(), 1);
    assert_eq!((received[0].stream, received[0].payload.len()), (2, 100_000));
}

#[test]
fn first_fragment_leaves_room_for_a_bundled_sack() {
    // `net/sctp/chunk.c` sctp_datamsg_from_user: 16 octets of 1452, unless another chunk is sent first.
    type Packets = Vec<(usize, Vec<usize>)>;
    let lengths = |config: Config, length: usize| -> Packets {
        let mut script = Script::established(config);
        script.inject([data(1)]);
        script.inject([data(2)]);
        script.run_to(1);
        script.packets.clear();
        script.send(0, length);
        let sizes = |chunk: &Chunk| chunk.user_data().map(|data| data.payload.len());
        let sizes = |packet: &Packet| packet.chunks.iter().filter_map(sizes).collect::<Vec<usize>>();
        script.packets.iter().map(|(.., packet)| (packet.chunks.len(), sizes(packet))).collect()
    };
    assert_eq!(lengths(fixtures::linux(), 2000), [(2, vec![1436]), (1, vec![564])]);
    assert_eq!(lengths(fixtures::linux(), 1452), [(1, vec![]), (1, vec![1452])], "it is in one piece");
    assert_eq!(lengths(config(), 2000), [(1, vec![]), (1, vec![1452]), (1, vec![548])]);
}

#[test]
fn linux_refuses_a_message_longer_than_the_send_buffer() {
    // `net/sctp/socket.c` sctp_sendmsg_parse: EMSGSIZE.
    let fails = |config: Config, length: usize| {
        let mut script = Script::established(config);
        script.send(0, length);
        matches!(script.events[..], [Event::Failed { .. }])
    };
    assert_eq!([fails(fixtures::linux(), 212_992), fails(fixtures::linux(), 212_993)], [false, true]);
    assert!(!fails(config(), 300_000));
}

#[test]
fn data_sent_before_cookie_ack_are_bundled_with_cookie_echo() {
    // RFC 9260 section 5.1 C: the COOKIE ECHO must be included. Linux cuts its train in two
    // (`net/sctp/output.c` sctp_packet_pack); a message passed so early has a first fragment shorter by 200
    // octets, for a cookie that is longer.
    let chunks = |config: Config, length: usize| -> Vec<usize> {
        let mut script = Script::closed(config, 1);
        script.command(Command::Connect);
        script.send(0, length);
        let Chunk::InitAck(mut answer) = super::script::init_ack(8, &[]) else { unreachable!() };
        answer.parameters.pop();
        answer.parameters.push(Parameter::StateCookie(vec![7; 228].into()));
        script.packets.clear();
        script.inject([Chunk::InitAck(answer)]);
        script.packets.iter().map(|(.., packet)| packet.chunks.len()).collect()
    };
    assert_eq!([chunks(config(), 1000), chunks(config(), 1452)], [vec![2], vec![1]]);
    assert_eq!([chunks(fixtures::linux(), 1000), chunks(fixtures::linux(), 1452)], [vec![2], vec![1, 1]]);
}

#[test]
fn delivery_times_have_first_and_last_send_time_and_arrival() {
    let mut pair = Pair::connected(&config(), Network::PERFECT, 1);
    let start = pair.now;
    pair.cut = [true; 2];
    pair.send_numbered(0, 0, 0, Reliability::Full);
    pair.cut = [false; 2];
    pair.send_numbered(0, 0, 1, Reliability::Full);
    pair.run(Duration::from_secs(2));
    let received = pair.received(1);
    let resent = start + Duration::from_secs(1);
    assert_eq!(received[0].delivery_times.first_sent, start);
    assert!(received[0].delivery_times.sent >= resent, "{:?}", received[0].delivery_times);
    assert_eq!(
        received[1].delivery_times.arrived,
        start + Duration::from_millis(10),
        "the arrival excludes the wait in the stream"
    );
    let delivered: Vec<Time> =
        pair.events[1].iter().filter(|(_, e)| matches!(e, Event::Received(_))).map(|(at, _)| *at).collect();
    assert_eq!(delivered[0], delivered[1]);
}

#[test]
fn a_full_send_buffer_says_when_there_is_room() {
    let small = Config { send_buffer: hol_base::ByteCount(5000), ..config() };
    let mut script = Script::established(small);
    for _ in 0..5 {
        assert!(script.endpoint.can_send(1000));
        script.send(0, 1000);
    }
    assert!(!script.endpoint.can_send(1000));
    script.sack(1, &[]);
    assert_eq!(script.events, [Event::Writable]);
    assert!(script.endpoint.can_send(1000));
}

#[test]
fn more_than_65536_messages_pass_through_one_stream_across_the_tsn_wrap() {
    // Sections 6.5 and 1.6: stream sequence numbers and TSNs wrap around.
    let mut pair =
        Pair::connected(&config(), Network { delay: Duration::from_millis(1), ..Network::PERFECT }, 3);
    for number in 0..66_000 {
        pair.send_numbered(0, 0, number, Reliability::Full);
        if number % 64 == 0 {
            pair.run(Duration::from_millis(4));
        }
    }
    pair.run(Duration::from_secs(5));
    assert!(pair.numbers(1, 0).into_iter().eq(0..66_000));
}

#[test]
fn linux_send_buffer_holds_196_small_messages() {
    // Each message is charged 1088 octets of the 212,992, and the last one may exceed them.
    let mut script = Script::established(crate::fixtures::linux());
    let mut taken = 0;
    while script.endpoint.can_send(64) {
        script.send(0, 64);
        taken += 1;
    }
    assert_eq!(taken, 196);
}

#[test]
fn no_more_chunks_are_outstanding_than_gap_ack_blocks_can_name() {
    // Sections 3.3.4 and 6.1: 65,535, which also limits the messages of a stream.
    let mut script = Script::established(Config { max_burst: 0, ..config() });
    script.endpoint.paths.list[0].window = Window::new(CwndParameters::rfc9260(100_000, 400_000), u64::MAX);
    script.endpoint.peer_rwnd = 1_000_000;
    for _ in 0..66_000 {
        script.send(0, 1);
    }
    assert_eq!(script.endpoint.flight.len(), 65_535);
}

#[test]
fn initial_window_can_be_set_in_packets() {
    // Section 7.2.1, and dcSCTP (Options::cwnd_mtus_initial) and usrsctp (sctp_set_initial_cc_param).
    let cwnd = |config: Config| Script::established(config).endpoint.paths()[0].cwnd();
    assert_eq!(cwnd(config()), 4404);
    assert_eq!(cwnd(Config { initial_window_packets: 10, ..config() }), 15_000);
}

#[test]
fn last_chunk_can_be_limited_by_the_window() {
    // Section 6.1 B lets the last chunk exceed it.
    let in_flight = |exceeds| {
        let mut script =
            Script::established(Config { last_chunk_exceeds_window: exceeds, max_burst: 0, ..config() });
        for _ in 0..6 {
            script.send(0, 1000);
        }
        script.flight_size()
    };
    assert_eq!((in_flight(true), in_flight(false)), (5000, 4000));
}

#[test]
fn small_window_can_request_immediate_sacks() {
    // Section 6.2: the I bit, as in dcSCTP (Options::immediate_sack_under_cwnd_mtus).
    let asks = |below| {
        let mut script = Script::established(Config { immediate_sack_below: below, ..config() });
        script.send(0, 100);
        let Chunk::Data(data) = &script.take_one().chunks[0] else { unreachable!("it has data") };
        data.flags.contains(hol_wire::sctp::DataFlags::IMMEDIATE)
    };
    // cwnd is 4404 octets, not quite three packets.
    assert_eq!([0, 2, 3].map(asks), [false, false, true]);
}

#[test]
fn cwnd_growth_can_need_the_cumulative_tsn_or_end_of_recovery() {
    // RFC 4960 section 7.2.1; usrsctp's sctp_cwnd_update_after_sack_common.
    let grown = |config: Config| {
        let mut script = Script::established(Config { max_burst: 0, ..config });
        let cwnd = |script: &Script| script.endpoint.paths()[0].cwnd();
        for _ in 0..5 {
            script.send(0, 1000);
        }
        let before = cwnd(&script);
        script.sack(0, &[(2, 2)]);
        let by_gap = cwnd(&script) - before;
        script.endpoint.paths.list[0].fast_recovery = Some(script.first + 20);
        script.endpoint.paths.list[0].window =
            Window::new(CwndParameters { initial: 2000, ..CwndParameters::rfc9260(1500, 1) }, 1000);
        script.sack(1, &[(3, 3)]);
        script.sack(2, &[(4, 4)]);
        (by_gap, cwnd(&script) - 2000)
    };
    assert_eq!(grown(config()), (1000, 1500));
    assert_eq!(grown(Config { growth_needs_cumulative_tsn: true, ..config() }).0, 0);
    assert_eq!(grown(Config { fast_recovery_holds_window: true, ..config() }).1, 0);
}
