//! Tests properties that hold on any network.

use std::collections::BTreeMap;

use bytes::Bytes;
use hol_base::Duration;
use hol_transport::{Command, Event, Message, Reliability};
use hol_wire::sctp::{
    Cause, Chunk, Data, DataFlags, ForwardTsn, Fsn, GapAckBlock, IData, IForwardTsn, Init, Mid, Parameter,
    Sack, SkippedMessages, Ssn, Tsn,
};
use hol_wire::{Address, SendTimes};
use proptest::prelude::*;

use super::pair::{Network, Pair};
use super::script::{PEER_TSN, REMOTE, Script, config, message};
use crate::{Config, Endpoint, Scheduler, fixtures};

#[derive(Debug, Clone)]
pub(super) struct Sending {
    pub(super) side: usize,
    pub(super) stream: u16,
    pub(super) unordered: bool,
    pub(super) reliability: Reliability,
    pub(super) length: usize,
    /// Milliseconds until the next message.
    pub(super) pause: u64,
}

pub(super) fn network() -> impl Strategy<Value = Network> {
    (0.0..0.2, 0.0..0.2, 1u64..50, 0u64..100, 1usize..3).prop_map(
        |(loss, duplication, delay, jitter, paths)| {
            let (delay, jitter) = (Duration::from_millis(delay), Duration::from_millis(jitter));
            Network { loss, duplication, delay, jitter, paths }
        },
    )
}

fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        8 => Just(Reliability::Full),
        1 => (10u64..300).prop_map(|life| Reliability::Lifetime(Duration::from_millis(life))),
        1 => (0u32..3).prop_map(Reliability::Retransmissions),
    ]
}

pub(super) fn sending() -> impl Strategy<Value = Sending> {
    let length = prop_oneof![8 => 4usize..200, 1 => 200usize..2000, 1 => 2000usize..20_000];
    (0usize..2, 0u16..4, any::<bool>(), reliability(), length, 0u64..30).prop_map(
        |(side, stream, unordered, reliability, length, pause)| Sending {
            side,
            stream,
            unordered,
            reliability,
            length,
            pause,
        },
    )
}

/// Returns a scheduler and its value for each stream.
fn scheduler() -> impl Strategy<Value = (Scheduler, &'static str)> {
    prop_oneof![
        3 => Just((Scheduler::Fcfs, "")),
        2 => Just((Scheduler::Rr, "")),
        1 => Just((Scheduler::RrPacket, "")),
        1 => Just((Scheduler::Prio, "1/0/1/2")),
        1 => Just((Scheduler::Fc, "")),
        1 => Just((Scheduler::Wfq, "1/5/2")),
    ]
}

pub(super) fn stacks() -> impl Strategy<Value = Config> {
    prop_oneof![
        Just(config()),
        Just(fixtures::linux()),
        Just(fixtures::linux_2_6_16()),
        Just(Config { cmt: true, ..config() }),
        Just(Config { cmt: true, ..fixtures::linux() }),
        Just(Config { rack: true, ..config() }),
        Just(Config { rack: true, cmt: true, ..config() }),
        Just(Config { rack: true, ..fixtures::linux() }),
        Just(Config { streams: 10, ..Config::dcsctp() }),
        Just(Config { streams: 10, ..Config::usrsctp() }),
        Just(Config { receive_buffer: hol_base::ByteCount(24_000), ..config() }),
        // A receive buffer shorter than many messages, which are therefore delivered in part.
        Just(Config { receive_buffer: hol_base::ByteCount(5000), ..config() }),
    ]
    .prop_flat_map(|config| (Just(config), scheduler(), any::<bool>()))
    .prop_map(|(config, (scheduler, values), interleaving)| Config {
        scheduler,
        stream_values: values.parse().unwrap(),
        interleaving,
        ..config
    })
    .prop_map(|config| Config { association_max_retrans: 1000, max_init_retransmits: 1000, ..config })
}

/// Returns the number with which the message was sent.
pub(super) fn number(payload: &Bytes) -> u32 {
    payload.iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn run(config: &Config, network: Network, sendings: &[Sending], seed: u64) -> Pair {
    let mut pair = Pair::connected(config, network, seed);
    for (index, sending) in sendings.iter().enumerate() {
        let Sending { side, stream, unordered, reliability, length, pause } = *sending;
        let mut payload = vec![index as u8; length];
        payload[..4].copy_from_slice(&(index as u32).to_be_bytes());
        pair.send(side, Message { stream, unordered, reliability, ppid: 0, payload: payload.into() });
        pair.run(Duration::from_millis(pause));
    }
    pair.run_while(Duration::from_secs(7200), |pair| !pair.all_accepted());
    pair.close();
    pair
}

/// Checks that no ordered message is lost, repeated or reordered, and no unordered one is lost or repeated.
pub(super) fn check(pair: &Pair, sendings: &[Sending]) {
    for side in 0..2 {
        let mut copies: BTreeMap<u32, u32> = BTreeMap::new();
        let mut newest: BTreeMap<u16, u32> = BTreeMap::new();
        for message in pair.received(1 - side) {
            let number = number(&message.payload);
            let sent = &sendings[number as usize];
            assert_eq!((sent.side, sent.stream, sent.length), (side, message.stream, message.payload.len()));
            assert!(message.payload[4..].iter().all(|byte| *byte == number as u8));
            *copies.entry(number).or_default() += 1;
            if !message.unordered {
                let before = newest.insert(message.stream, number);
                assert!(before.is_none_or(|before| before < number), "{before:?} before {number}");
            }
        }
        for (index, sent) in sendings.iter().enumerate().filter(|(_, sent)| sent.side == side) {
            let copies = copies.get(&(index as u32)).copied().unwrap_or(0);
            // A message of which Linux drops the rest leaves a hole in its stream if all sent chunks are
            // acknowledged; and an outdated FORWARD TSN may refer to a stream that was reset since.
            let config = &pair.sides[side].config;
            let meets_old_numbers = config.reconfig && config.forward_tsn_always_counts;
            let leaves_hole = |other: &Sending| {
                let begins_only = config.sack_checks_limits_first && !sent.unordered && other.length > 500;
                (other.side, other.stream) == (side, sent.stream)
                    && other.reliability != Reliability::Full
                    && (begins_only || meets_old_numbers)
            };
            let promised = sent.reliability == Reliability::Full && !sendings.iter().any(leaves_hole);
            let min = u32::from(promised);
            assert!((min..=1).contains(&copies), "message {index} arrived {copies} times: {sent:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_arrives_as_promised_and_the_association_closes(
        config in stacks(),
        network in network(),
        sendings in prop::collection::vec(sending(), 1..60),
        seed in any::<u64>(),
    ) {
        let pair = run(&config, network, &sendings, seed);
        for side in 0..2 {
            let states: Vec<_> = pair.sides.iter().map(Endpoint::state_name).collect();
            prop_assert!(pair.sides[side].is_closed(), "side {} is not closed: {:?}", side, states);
            let failed = pair.events[side].iter().find(|(_, event)| matches!(event, Event::Failed { .. }));
            prop_assert!(failed.is_none(), "{:?}", failed);
        }
        check(&pair, &sendings);
    }
}

/// Returns chunks that a broken or hostile peer may send, close enough to valid ones to pass the first checks.
fn any_chunk() -> impl Strategy<Value = Chunk> {
    let near = || prop_oneof![4 => 0u32..30, 1 => any::<u32>()];
    let octets = || prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from);
    let init = (any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), octets()).prop_map(
        |(initiate_tag, a_rwnd, outbound_streams, inbound_streams, cookie)| {
            let parameters = vec![Parameter::StateCookie(cookie)];
            let initial_tsn = Tsn(a_rwnd);
            Box::new(Init {
                initiate_tag,
                a_rwnd,
                outbound_streams,
                inbound_streams,
                initial_tsn,
                parameters,
            })
        },
    );
    let data =
        (near(), 0u16..70, any::<u16>(), 0u8..16, octets()).prop_map(|(tsn, stream, ssn, flags, payload)| {
            let (tsn, flags, ssn) = (PEER_TSN + tsn, DataFlags(flags), Ssn(ssn));
            Chunk::Data(Data { flags, tsn, stream, ssn, ppid: 0, payload, stamp: SendTimes::default() })
        });
    let near_mid = || prop_oneof![4 => 0u32..3, 1 => any::<u32>()];
    let i_data = (near(), 0u16..4, near_mid(), 0u32..5, 0u8..16, octets()).prop_map(
        |(tsn, stream, mid, fsn, flags, payload)| {
            let (flags, ssn, stamp) = (DataFlags(flags), Ssn(0), SendTimes::default());
            let data = Data { flags, tsn: PEER_TSN + tsn, stream, ssn, ppid: 0, payload, stamp };
            Chunk::IData(Box::new(IData::new(&data, Mid(mid), Fsn(fsn))))
        },
    );
    let i_forward = (near(), 0u16..4, any::<bool>(), near_mid()).prop_map(|(tsn, stream, unordered, mid)| {
        let skipped = smallvec::smallvec![SkippedMessages { stream, unordered, mid: Mid(mid) }];
        Chunk::IForwardTsn(Box::new(IForwardTsn { new_cumulative_tsn: PEER_TSN + tsn, skipped }))
    });
    let gap = (0u16..40, 0u16..40).prop_map(|(start, end)| GapAckBlock { start, end });
    // The acknowledgement is relative to the endpoint's cumulative TSN ack point.
    let step = || prop_oneof![16 => 0u32..2, 4 => 2u32..4, 1 => any::<u32>()];
    let sack = (step(), any::<u32>(), prop::collection::vec(gap, 0..4)).prop_map(|(tsn, a_rwnd, gaps)| {
        let (cumulative_tsn, gaps, duplicates) = (Tsn(tsn), gaps.into(), Default::default());
        Chunk::Sack(Sack { cumulative_tsn, a_rwnd, gaps, duplicates })
    });
    let forward = (near(), 0u16..70, any::<u16>()).prop_map(|(tsn, stream, ssn)| {
        let skipped = smallvec::smallvec![(stream, Ssn(ssn))];
        Chunk::ForwardTsn(Box::new(ForwardTsn { new_cumulative_tsn: PEER_TSN + tsn, skipped }))
    });
    prop_oneof![
        8 => data,
        8 => sack,
        2 => forward,
        8 => i_data,
        2 => i_forward,
        1 => step().prop_map(|tsn| Chunk::Shutdown { cumulative_tsn: Tsn(tsn) }),
        1 => init.prop_map(Chunk::InitAck),
        1 => octets().prop_map(Chunk::CookieEcho),
        1 => octets().prop_map(Chunk::Heartbeat),
        1 => octets().prop_map(Chunk::HeartbeatAck),
        1 => Just(Chunk::CookieAck),
        1 => Just(Chunk::ShutdownAck),
        1 => any::<u32>().prop_map(|staleness| Chunk::Error(vec![Cause::StaleCookie(staleness)])),
        1 => (any::<u8>(), octets()).prop_map(|(kind, value)| Chunk::Unknown { kind, flags: 0, value }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_chunks_of_a_peer_never_break_an_endpoint(
        config in stacks(),
        chunks in prop::collection::vec((any_chunk(), 0u64..400, 1usize..3000), 1..60),
    ) {
        let mut script = Script::established(config);
        let mut at = 0;
        for (mut chunk, pause, length) in chunks {
            match &mut chunk {
                Chunk::Sack(Sack { cumulative_tsn, .. }) | Chunk::Shutdown { cumulative_tsn } => {
                    *cumulative_tsn = script.endpoint.flight.cumulative() + cumulative_tsn.0;
                }
                // Most user data are of the negotiated kind.
                Chunk::Data(data) if script.endpoint.interleaving && length % 8 > 0 => {
                    let (mid, fsn) = (Mid(u32::from(data.ssn.0 % 4)), Fsn(pause as u32 % 4));
                    chunk = Chunk::IData(Box::new(IData::new(data, mid, fsn)));
                }
                Chunk::IData(data) if !script.endpoint.interleaving && length % 8 > 0 => {
                    chunk = Chunk::Data(data.to_data());
                }
                _ => {}
            }
            let lifetime = Reliability::Lifetime(Duration::from_millis(pause));
            let reliability = if length % 2 == 0 { lifetime } else { Reliability::Full };
            script.command(Command::Send(Message { reliability, ..message(0, length) }));
            script.inject([chunk]);
            at += pause;
            script.run_to(at);
        }
        let in_flight: u64 = script.endpoint.paths().iter().map(crate::Path::flight_size).sum();
        prop_assert_eq!(in_flight, script.endpoint.outstanding());
    }
}

/// Returns INIT and INIT ACK of another host, and chunks that end associations.
fn any_stranger() -> impl Strategy<Value = Chunk> {
    let octets = || prop::collection::vec(any::<u8>(), 0..60).prop_map(Bytes::from);
    let parameter = prop_oneof![
        any::<Address>().prop_map(Parameter::of_address),
        (0usize..2).prop_map(|path| Parameter::of_address(REMOTE[path])),
        octets().prop_map(Parameter::StateCookie),
        octets().prop_map(Parameter::HostNameAddress),
        Just(Parameter::ForwardTsnSupported),
        (any::<u16>(), octets()).prop_map(|(kind, value)| Parameter::Unknown { kind, value }),
    ];
    let numbers = (0u32..3, prop_oneof![Just(1499u32), Just(100_000)], 0u16..3, 0u16..3);
    let init = (numbers, prop::collection::vec(parameter, 0..4)).prop_map(|(numbers, parameters)| {
        let (initiate_tag, a_rwnd, outbound_streams, inbound_streams) = numbers;
        Init { initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn: PEER_TSN, parameters }
    });
    prop_oneof![
        2 => init.clone().prop_map(|init| Chunk::Init(Box::new(init))),
        2 => init.prop_map(|init| Chunk::InitAck(Box::new(init))),
        1 => any::<bool>().prop_map(|reflected| Chunk::Abort { reflected, causes: Vec::new() }),
        1 => any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete { reflected }),
        8 => any_chunk(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// RFC 9260 sections 6.10 and 8.5: in any state, a packet fits the MTU, has a tag unless it is an INIT,
    /// and bundles only permitted chunks.
    #[test]
    fn answers_to_random_packets_obey_the_rules(
        config in stacks(),
        progress in 0usize..5,
        packets in prop::collection::vec(
            (prop::collection::vec(any_stranger(), 1..4), 0usize..4, 0u64..3000),
            1..20,
        ),
    ) {
        let mut script = Script::closed(config, 1);
        if progress > 0 {
            script.command(Command::Connect);
        }
        if progress > 1 {
            script.inject([super::script::init_ack(8, &[])]);
        }
        if progress > 2 {
            script.inject([Chunk::CookieAck]);
        }
        if progress > 3 {
            script.command(Command::Close);
        }
        let mut at = 0;
        for (chunks, tag, pause) in packets {
            let tags = [0, script.endpoint.local_tag, script.endpoint.local_tag, script.endpoint.peer_tag];
            script.inject_with_tag(tags[tag], chunks.into());
            script.command(Command::Send(message(0, 100)));
            at += pause;
            script.run_to(at);
        }
        for (_, _, packet) in &script.packets {
            let alone = |chunk: &Chunk| {
                matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. })
            };
            let is_init = matches!(packet.chunks[0], Chunk::Init(_));
            prop_assert_eq!(packet.verification_tag == 0, is_init, "{:?}", packet);
            prop_assert!(packet.chunks.len() == 1 || !packet.chunks.iter().any(alone), "{:?}", packet);
            let data = packet.chunks.iter().position(|chunk| chunk.user_data().is_some());
            let behind = data.map_or(&[][..], |first| &packet.chunks[first..]);
            prop_assert!(behind.iter().all(|chunk| chunk.user_data().is_some()), "{:?}", packet);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let network = Network { loss: 0.1, jitter: Duration::from_millis(20), paths: 2, ..Network::PERFECT };
    let sendings: Vec<Sending> = (0..100)
        .map(|index| Sending {
            side: index % 2,
            stream: (index % 3) as u16,
            unordered: index % 5 == 0,
            reliability: Reliability::Full,
            length: 50 + index * 7,
            pause: 3,
        })
        .collect();
    let digest = |seed| run(&fixtures::linux(), network, &sendings, seed).digest();
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
}

/// A chunk is abandoned instead of retransmitted while the rest of its message is acknowledged: no timer ran for it.
#[test]
fn message_abandoned_instead_of_retransmitted_is_reported() {
    let config = Config { cmt: true, scheduler: Scheduler::Rr, interleaving: true, ..fixtures::linux() };
    let config = Config { association_max_retrans: 1000, max_init_retransmits: 1000, ..config };
    let (delay, jitter) = (Duration::from_millis(2), Duration::from_millis(63));
    let network =
        Network { loss: 0.18401708782989812, duplication: 0.11808308387580266, delay, jitter, paths: 1 };
    let small = |side, pause| (side, 0, Reliability::Full, 4, pause);
    let sendings = [
        small(1, 0),
        small(1, 23),
        small(0, 0),
        small(0, 21),
        small(0, 19),
        small(0, 2),
        small(0, 12),
        small(0, 10),
        (1, 0, Reliability::Full, 861, 18),
        (1, 0, Reliability::Full, 109, 11),
        (1, 0, Reliability::Full, 106, 12),
        (1, 0, Reliability::Full, 83, 21),
        (1, 0, Reliability::Full, 186, 1),
        small(0, 6),
        (1, 0, Reliability::Full, 1425, 12),
        small(0, 22),
        small(0, 11),
        small(0, 14),
        small(1, 17),
        small(1, 29),
        small(1, 23),
        (0, 0, Reliability::Full, 108, 8),
        (0, 0, Reliability::Full, 182, 9),
        small(0, 0),
        (0, 1, Reliability::Full, 1761, 3),
        (0, 0, Reliability::Retransmissions(1), 10_137, 0),
        (0, 1, Reliability::Full, 4, 0),
    ]
    .map(|(side, stream, reliability, length, pause)| Sending {
        side,
        stream,
        unordered: false,
        reliability,
        length,
        pause,
    });
    let pair = run(&config, network, &sendings, 4_375_596_072_904_103_050);
    assert!(pair.sides.iter().all(Endpoint::is_closed));
}
