//! RFC 8260: tests interleaved messages, and the stream schedulers.

use bytes::Bytes;
use hol_base::{ByteCount, Duration};
use hol_transport::{Command, Event, Message, Reliability};
use hol_wire::sctp::{
    Chunk, Data, DataFlags, ForwardTsn, Fsn, IData, IForwardTsn, Init, Mid, Packet, Parameter,
    SkippedMessages, Ssn, Tsn,
};
use smallvec::smallvec;

use super::pair::{Network, Pair};
use super::script::{PEER_TSN, Script, config, data, delivered, init_ack, message};
use crate::{Config, Scheduler};

const WHOLE: DataFlags = DataFlags(3);

fn interleaving(scheduler: Scheduler) -> Config {
    Config { interleaving: true, scheduler, ..config() }
}

/// Returns the peer's I-DATA chunk with this `number`, counted from 1, and this stream, MID and FSN.
fn i_data(number: u32, flags: DataFlags, (stream, mid, fsn): (u16, u32, u32)) -> Chunk {
    let (tsn, payload) = (PEER_TSN + (number - 1), Bytes::from(vec![number as u8; 10]));
    let data = Data { flags, tsn, stream, ssn: Ssn(0), ppid: 0, payload, stamp: Default::default() };
    Chunk::IData(Box::new(IData::new(&data, Mid(mid), Fsn(fsn))))
}

/// Returns stream, MID and FSN of the sent chunks, one list per packet.
fn take_places(script: &mut Script) -> Vec<Vec<(u16, u32, u32)>> {
    let place = |chunk: &Chunk| match chunk {
        Chunk::IData(data) => Some((data.stream, data.mid.0, data.fsn.0)),
        Chunk::Data(data) => panic!("{data} where I-DATA was agreed upon"),
        _ => None,
    };
    let places = |packet: &Packet| packet.chunks.iter().filter_map(place).collect::<Vec<_>>();
    let packets = std::mem::take(&mut script.packets);
    packets.iter().map(|(_, _, packet)| places(packet)).filter(|places| !places.is_empty()).collect()
}

/// Returns the streams of the sent chunks.
fn take_streams(script: &mut Script) -> Vec<u16> {
    let packets = std::mem::take(&mut script.packets);
    let chunks = packets.iter().flat_map(|(_, _, packet)| &packet.chunks);
    chunks.filter_map(|chunk| chunk.user_data().map(|data| data.stream)).collect()
}

fn aborts(script: &Script) -> bool {
    let last = script.packets.last().map(|(_, _, packet)| &packet.chunks[0]);
    matches!(last, Some(Chunk::Abort { causes, .. }) if format!("{causes:?}").contains("ProtocolViolation"))
}

#[test]
fn the_second_fragment_is_number_1_or_in_linux_0() {
    // RFC 8260 section 2.1; `net/sctp/stream_interleave.c` sctp_chunk_assign_mid, sctp_intl_retrieve_reassembled.
    for (second_fsn_is_zero, second) in [(false, 1), (true, 0)] {
        let mut script = Script::established(Config { second_fsn_is_zero, ..interleaving(Scheduler::Fcfs) });
        script.send(0, 4000);
        let places: Vec<u32> = take_places(&mut script).concat().into_iter().map(|(.., fsn)| fsn).collect();
        assert_eq!(places, [0, second, second + 1]);
        script.inject([i_data(1, DataFlags::BEGIN, (0, 0, 0)), i_data(2, DataFlags::END, (0, 0, second))]);
        assert_eq!(delivered(&script.events), [1]);
    }
}

#[test]
fn i_data_is_used_if_both_ends_list_it() {
    // RFC 8260 section 2.2.1; RFC 5061 section 4.2.7.
    let offered = |config| {
        let mut script = Script::closed(config, 1);
        script.command(Command::Connect);
        let Chunk::Init(init) = &script.take_one().chunks[0] else { panic!("no INIT") };
        let extensions = |parameter: &Parameter| match parameter {
            Parameter::SupportedExtensions(kinds) => Some(kinds.clone()),
            _ => None,
        };
        init.parameters.iter().find_map(extensions)
    };
    let kinds = vec![ForwardTsn::KIND, IData::KIND, IForwardTsn::KIND];
    assert_eq!(offered(interleaving(Scheduler::Fcfs)), Some(kinds));
    assert_eq!(offered(config()), None);
    for (kinds, expected) in [(vec![IData::KIND], true), (vec![IForwardTsn::KIND], false), (vec![], false)] {
        let mut script = Script::closed(interleaving(Scheduler::Rr), 1);
        script.command(Command::Connect);
        let Chunk::InitAck(mut answer) = init_ack(64, &[]) else { unreachable!() };
        answer.parameters.push(Parameter::SupportedExtensions(kinds));
        script.inject([Chunk::InitAck(answer)]);
        script.inject([Chunk::CookieAck]);
        script.packets.clear();
        script.send(0, 3000);
        let sent = script.packets.iter().flat_map(|(_, _, packet)| &packet.chunks);
        let kinds: Vec<bool> = sent.map(|chunk| matches!(chunk, Chunk::IData(_))).collect();
        assert_eq!(kinds, [expected; 3]);
    }
}

#[test]
fn listener_keeps_i_data_support_in_its_cookie() {
    // RFC 8260 section 2.2.1: the extensions in the INIT return in the COOKIE ECHO.
    for (config, expected) in [(interleaving(Scheduler::Rr), true), (config(), false)] {
        let mut pair = Pair::connected(&config, Network::PERFECT, 1);
        assert_eq!(pair.sides.each_ref().map(|side| side.interleaving), [expected; 2]);
        pair.send(1, message(2, 5000));
        pair.run(Duration::from_secs(1));
        assert_eq!(pair.received(0).len(), 1);
    }
}

#[test]
fn data_chunk_of_the_wrong_kind_ends_the_association() {
    // RFC 8260 sections 2.2.3 and 2.3.1.
    let forward = ForwardTsn { new_cumulative_tsn: PEER_TSN, skipped: smallvec![] };
    let i_forward = IForwardTsn { new_cumulative_tsn: PEER_TSN, skipped: smallvec![] };
    let old = [data(1), Chunk::ForwardTsn(Box::new(forward))];
    let new = [i_data(1, WHOLE, (0, 0, 0)), Chunk::IForwardTsn(Box::new(i_forward))];
    for (config, own, other) in [(config(), &old, &new), (interleaving(Scheduler::Fcfs), &new, &old)] {
        for chunk in own {
            let mut script = Script::established(config.clone());
            script.inject([chunk.clone()]);
            assert_eq!(script.endpoint.state_name(), "ESTABLISHED");
        }
        for chunk in other {
            let mut script = Script::established(config.clone());
            script.inject([chunk.clone()]);
            assert!(aborts(&script) && script.endpoint.is_closed(), "{chunk:?}");
        }
    }
}

#[test]
fn messages_and_fragments_are_numbered() {
    // RFC 8260 section 2.1: from 0, ordered and unordered messages separately; retransmissions have the same numbers.
    let mut script = Script::established(interleaving(Scheduler::Fcfs));
    script.send(5, 2000);
    script.command(Command::Send(Message { unordered: true, ..message(5, 100) }));
    script.send(5, 100);
    let sent = [vec![(5, 0, 0)], vec![(5, 0, 1)], vec![(5, 0, 0)], vec![(5, 1, 0)]];
    assert_eq!(take_places(&mut script), sent);
    script.run_to(1000);
    assert_eq!(take_places(&mut script), [[(5, 0, 0)]], "the first packet is repeated");
}

#[test]
fn a_chunk_fits_into_its_packet_with_its_longer_header() {
    // RFC 8260 section 2.1: 20 octets. Script checks that no packet is longer than the MTU.
    let mut script = Script::established(interleaving(Scheduler::Rr));
    script.send(0, 1500 - 20 - 12 - 20);
    assert_eq!(take_places(&mut script), [[(0, 0, 0)]]);
    // A message that was fragmented for I-DATA before the peer was known is also sent as DATA.
    let mut script = Script::closed(interleaving(Scheduler::Rr), 1);
    script.send(0, 5000);
    script.command(Command::Connect);
    script.inject([init_ack(64, &[])]);
    script.inject([Chunk::CookieAck]);
    assert_eq!(take_streams(&mut script), [0; 4]);
}

/// Sends a large message on stream 0, of which the window allows a part, then small ones on streams 1 and 2;
/// returns the next chunks' streams.
fn beside_a_large_message(config: Config) -> Vec<u16> {
    let mut script = Script::established(config);
    script.send(0, 20_000);
    let first = take_streams(&mut script);
    assert!(first.iter().all(|stream| *stream == 0), "{first:?}");
    script.send(1, 100);
    script.send(2, 100);
    for acknowledged in 1..=14 {
        script.sack(acknowledged, &[]);
    }
    take_streams(&mut script)
}

#[test]
fn interleaving_lets_small_messages_pass_a_large_one() {
    // RFC 8260 sections 2.2.2, 3.1 and 3.2: the large message has 14 fragments.
    let place = |streams: &[u16], wanted| streams.iter().position(|stream| *stream == wanted);
    let waits = [
        interleaving(Scheduler::Fcfs),
        Config { scheduler: Scheduler::Rr, ..config() },
        Config { scheduler: Scheduler::Prio, stream_values: "1/0".parse().unwrap(), ..config() },
        Config { scheduler: Scheduler::Fc, ..config() },
    ];
    for config in waits {
        let streams = beside_a_large_message(config);
        let last = streams.iter().rposition(|stream| *stream == 0);
        assert!(last < place(&streams, 1) && last < place(&streams, 2), "{streams:?}");
    }
    for scheduler in [Scheduler::Rr, Scheduler::RrPacket, Scheduler::Fc, Scheduler::Wfq] {
        let streams = beside_a_large_message(interleaving(scheduler));
        assert!(place(&streams, 2) <= Some(3), "{scheduler:?}: {streams:?}");
        assert!(streams.iter().rposition(|stream| *stream == 0) > Some(4), "{scheduler:?}: {streams:?}");
    }
    // Section 3.4: a large message of lower priority does not delay them at all.
    let prio = Config { stream_values: "1/0".parse().unwrap(), ..interleaving(Scheduler::Prio) };
    assert_eq!(beside_a_large_message(prio)[..3], [1, 2, 0]);
}

#[test]
fn rr_packet_scheduler_sends_one_stream_per_packet() {
    // RFC 8260 section 3.3.
    for interleaving in [false, true] {
        let config = Config { interleaving, nagle: false, scheduler: Scheduler::RrPacket, ..config() };
        let mut script = Script::established(config);
        // The window is full.
        (0..4).for_each(|_| script.send(0, 1400));
        take_streams(&mut script);
        for stream in [1, 2, 1, 2, 3] {
            script.send(stream, 100);
        }
        (1..=4).for_each(|acknowledged| script.sack(acknowledged, &[]));
        let of_packet = |packet: &Packet| {
            packet
                .chunks
                .iter()
                .filter_map(|chunk| chunk.user_data().map(|data| data.stream))
                .collect::<Vec<_>>()
        };
        let packets = std::mem::take(&mut script.packets);
        let streams: Vec<_> = packets.iter().map(|(_, _, packet)| of_packet(packet)).collect();
        assert_eq!(streams, [vec![1, 1], vec![2, 2], vec![3]], "interleaving: {interleaving}");
    }
}

#[test]
fn i_forward_tsn_skips_abandoned_messages_by_mid() {
    // RFC 8260 section 2.3.1: also unordered messages; messages between them are not abandoned.
    let mut script = Script::established(interleaving(Scheduler::Rr));
    let brief = |unordered| {
        let reliability = Reliability::Retransmissions(0);
        Command::Send(Message { reliability, unordered, ..message(3, 2000) })
    };
    script.command(brief(false));
    script.command(brief(true));
    script.send(1, 100);
    take_places(&mut script);
    // One fragment of each of the two messages is lost.
    for newest in 5..=7 {
        script.send(2, 100);
        script.sack(0, &[(2, 2), (5, newest)]);
    }
    let abandoned: Vec<&Event> =
        script.events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).collect();
    assert_eq!(abandoned, [&Event::Abandoned { stream: 3 }; 2]);
    let packets = std::mem::take(&mut script.packets);
    let forward = packets.iter().flat_map(|(_, _, packet)| &packet.chunks).find_map(|chunk| match chunk {
        Chunk::IForwardTsn(forward) => Some((**forward).clone()),
        _ => None,
    });
    let skipped = smallvec![
        SkippedMessages { stream: 3, unordered: false, mid: Mid(0) },
        SkippedMessages { stream: 3, unordered: true, mid: Mid(0) },
    ];
    let new_cumulative_tsn = script.first + 3;
    assert_eq!(forward, Some(IForwardTsn { new_cumulative_tsn, skipped }));
}

#[test]
fn received_i_forward_tsn_unblocks_later_messages() {
    // RFC 8260 section 2.3.1.
    let mut script = Script::established(interleaving(Scheduler::Rr));
    script.inject([i_data(2, DataFlags::END, (0, 0, 1))]);
    script.inject([i_data(3, WHOLE, (0, 1, 0))]);
    assert_eq!(delivered(&script.events), [0; 0]);
    let skipped = smallvec![SkippedMessages { stream: 0, unordered: false, mid: Mid(0) }];
    let forward = IForwardTsn { new_cumulative_tsn: PEER_TSN, skipped };
    script.inject([Chunk::IForwardTsn(Box::new(forward.clone()))]);
    assert_eq!(delivered(&script.events), [3]);
    script.packets.clear();
    // A duplicate is acknowledged like DATA. RFC 3758 section 3.6.
    for sacks in [0, 1] {
        script.inject([Chunk::IForwardTsn(Box::new(forward.clone()))]);
        assert_eq!(script.take_sacks().len(), sacks);
    }
}

#[test]
fn partial_reliability_with_interleaving_needs_i_forward_tsn() {
    // RFC 8260 section 2.3.1.
    let agreed = |kinds: Vec<u8>| {
        let mut script = Script::closed(interleaving(Scheduler::Rr), 1);
        script.command(Command::Connect);
        let Chunk::InitAck(answer) = init_ack(64, &[]) else { unreachable!() };
        let parameters = [&answer.parameters[..], &[Parameter::SupportedExtensions(kinds)]].concat();
        script.inject([Chunk::InitAck(Box::new(Init { parameters, ..*answer }))]);
        script.endpoint.partial_reliability
    };
    assert!(agreed(vec![]), "DATA and FORWARD TSN");
    assert!(!agreed(vec![IData::KIND]));
    assert!(agreed(vec![IData::KIND, IForwardTsn::KIND]));
}

#[test]
fn i_forward_tsn_is_accepted_if_the_peer_lists_only_i_data() {
    // RFC 8260 section 2.3.1 requires I-FORWARD-TSN in the list; Linux 6.12 lists only I-DATA, announces
    // FORWARD TSN, and sends I-FORWARD-TSN.
    let mut script = Script::closed(interleaving(Scheduler::Rr), 1);
    script.command(Command::Connect);
    let Chunk::InitAck(mut answer) = init_ack(64, &[]) else { unreachable!() };
    answer.parameters.push(Parameter::SupportedExtensions(vec![IData::KIND]));
    script.inject([Chunk::InitAck(answer)]);
    script.inject([Chunk::CookieAck]);
    script.inject([i_data(2, WHOLE, (0, 1, 0))]);
    assert_eq!(delivered(&script.events), [0; 0]);
    let skipped = smallvec![SkippedMessages { stream: 0, unordered: false, mid: Mid(0) }];
    script.inject([Chunk::IForwardTsn(Box::new(IForwardTsn { new_cumulative_tsn: PEER_TSN, skipped }))]);
    assert_eq!(delivered(&script.events), [2]);
}

#[test]
fn messages_above_the_buffer_are_partly_delivered_in_parallel() {
    // RFC 6458 section 8.1.20, level 2; each is larger than the receive buffer.
    let config = Config { receive_buffer: ByteCount(5000), ..interleaving(Scheduler::Rr) };
    let mut pair = Pair::connected(&config, Network::PERFECT, 1);
    for stream in 0..3 {
        pair.send(0, message(stream, 20_000));
    }
    pair.run(Duration::from_secs(60));
    let mut received: Vec<(u16, usize)> =
        pair.received(1).iter().map(|message| (message.stream, message.payload.len())).collect();
    received.sort_unstable();
    assert_eq!(received, [(0, 20_000), (1, 20_000), (2, 20_000)]);
}

#[test]
fn a_chunk_without_user_data_ends_the_association() {
    // RFC 8260 section 2.2.2: otherwise as for DATA, RFC 9260 section 6.2.
    let mut script = Script::established(interleaving(Scheduler::Rr));
    let Chunk::IData(chunk) = i_data(1, WHOLE, (0, 0, 0)) else { unreachable!() };
    script.inject([Chunk::IData(Box::new(IData { payload: Bytes::new(), tsn: Tsn(9), ..*chunk }))]);
    assert!(script.endpoint.is_closed());
}
