//! Arbitrary octets, arbitrary packets, and a transaction whose segments are lost, repeated and reordered.

use bytes::Bytes;
use hol_base::Time;
use hol_measure::{Outcome, RecordKind};
use hol_network::TapEvent;
use hol_passive::{ObservedPacket, TrafficMeasurement, measure};
use hol_wire::sctp::{Chunk, Data, DataFlags, Fsn, IData, Init, Mid, Packet as SctpPacket, Ssn, Tsn};
use hol_wire::tcp::{DataSeq, Flags, Mapping, Mptcp, Segment, SeqNum};
use hol_wire::{Packet, SendTimes, Transport};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use smallvec::smallvec;

use crate::capture_builder::{CLIENT, CaptureBuilder, SERVER, segment, subflow, transactions};

type CapturedPackets = Vec<(u64, TapEvent, Vec<u8>)>;

fn event() -> impl Strategy<Value = TapEvent> {
    select(vec![
        TapEvent::Sent,
        TapEvent::Sent,
        TapEvent::Received,
        TapEvent::Lost,
        TapEvent::Corrupted,
        TapEvent::Dequeued,
    ])
}

/// Checks properties of any measurement: it is deterministic, records are numbered and in order, and every delay can be decomposed.
fn assert_sound(capture: &CapturedPackets) -> TrafficMeasurement {
    let traffic = || {
        measure(capture.iter().map(|(nanos, event, octets)| ObservedPacket {
            time: Time::from_nanos(*nanos),
            event: *event,
            octets,
        }))
    };
    let TrafficMeasurement { records, totals } = traffic();
    for (id, record) in (0..).zip(&records) {
        assert_eq!(record.id, id);
        assert_eq!(record.parent.is_some(), record.kind == RecordKind::Transaction);
        assert!(record.parent.is_none_or(|parent| u64::from(parent) < id));
        let _ = (record.breakdown(), record.latency());
    }
    assert!(records.is_sorted_by_key(|record| record.scheduled));
    assert_eq!(traffic(), TrafficMeasurement { records: records.clone(), totals });
    TrafficMeasurement { records, totals }
}

/// Generates payloads, mostly parts of HTTP messages.
fn payload() -> impl Strategy<Value = Bytes> {
    let said: Vec<&[u8]> = vec![
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 100 C\r\n\r\n",
        b"HTTP/1.0 404 No\r\n\r\n",
        b"5\r\nabcde\r\n0\r\n\r\n",
        b"\r\n",
        b"",
    ];
    select(said).prop_map(Bytes::from_static)
}

/// Generates sequence numbers near 0 and near the ends of the number space.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..60, (0u32..60).prop_map(|back| back.wrapping_sub(30)), any::<u32>()]
}

fn option() -> impl Strategy<Value = Mptcp> {
    let key = || select(vec![None, Some(1), Some(2)]);
    let seq = || prop_oneof![number().prop_map(DataSeq::Half), any::<u64>().prop_map(DataSeq::Whole)];
    let mapping = (seq(), number(), any::<u16>());
    let mapping = mapping.prop_map(|(data, subflow, length)| Mapping { data, subflow, length });
    prop_oneof![
        (key(), key(), any::<bool>()).prop_map(|(sender_key, receiver_key, data)| {
            let receiver_key = receiver_key.filter(|_| sender_key.is_some());
            let data_length = (data && receiver_key.is_some()).then_some(18);
            Mptcp::Capable { flags: 1, sender_key, receiver_key, data_length }
        }),
        // The token of key 1: the first 32 bits of its SHA-256.
        Just(Mptcp::Join { backup: false, address: 1, token: 0xcd26_6215, nonce: 1 }),
        (any::<bool>(), proptest::option::of(mapping)).prop_map(|(data_fin, mapping)| Mptcp::Signal {
            data_fin,
            ack: None,
            mapping
        }),
    ]
}

fn tcp() -> impl Strategy<Value = Transport> {
    let flags = select(vec![0x02u16, 0x12, 0x10, 0x10, 0x10, 0x10, 0x11, 0x04]);
    (0usize..2, number(), flags, payload(), 1u16..3, proptest::option::of(option())).prop_map(
        |(direction, number, flags, payload, port, option)| {
            let plain = segment(direction, 0, &payload);
            let optional = match option {
                Some(option) => subflow(port, option, plain),
                None => plain,
            };
            Segment { seq: SeqNum(number), flags: Flags(flags), ..optional }.into()
        },
    )
}

fn sctp() -> impl Strategy<Value = Transport> {
    let init = |tag: u32, tsn| Init {
        initiate_tag: tag,
        a_rwnd: 1,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(tsn),
        parameters: vec![],
    };
    let data = (any::<bool>(), number(), 0u16..3, 0u8..8, payload()).prop_map(
        |(interleaved, tsn, stream, flags, payload)| {
            let (flags, tsn, stamp) = (DataFlags(flags), Tsn(tsn), SendTimes::default());
            let data = Data { flags, tsn, stream, ssn: Ssn(0), ppid: 0, payload, stamp };
            if interleaved {
                Chunk::IData(Box::new(IData::new(&data, Mid(0), Fsn(0))))
            } else {
                Chunk::Data(data)
            }
        },
    );
    let chunk = prop_oneof![
        (1u32..4, number()).prop_map(move |(tag, tsn)| Chunk::Init(Box::new(init(tag, tsn)))),
        (1u32..4, number()).prop_map(move |(tag, tsn)| Chunk::InitAck(Box::new(init(tag, tsn)))),
        data,
        Just(Chunk::ShutdownAck),
        Just(Chunk::Abort { reflected: true, causes: vec![] }),
    ];
    (any::<bool>(), 0u32..4, chunk).prop_map(|(turned, verification_tag, chunk)| {
        let (source_port, destination_port) = if turned { (1, 2) } else { (2, 1) };
        SctpPacket {
            source_port,
            destination_port,
            verification_tag,
            zero_checksum: false,
            chunks: smallvec![chunk],
        }
        .into()
    })
}

proptest! {
    #[test]
    fn arbitrary_octets_are_accepted(capture in vec((any::<u64>(), event(), vec(any::<u8>(), 0..80)), 0..20)) {
        assert_sound(&capture);
    }

    /// Packets with correct checksums and arbitrary numbers, order, tags, options and events.
    #[test]
    fn arbitrary_packets_are_accepted(
        packets in vec((0u64..100, event(), any::<bool>(), prop_oneof![tcp(), sctp()]), 0..60),
        cut in any::<proptest::sample::Index>(),
    ) {
        let mut capture: CapturedPackets = packets
            .into_iter()
            .map(|(nanos, event, turned, transport)| {
                let (from, to) = if turned { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
                (nanos, event, Packet::new(from, to, transport).to_bytes().to_vec())
            })
            .collect();
        assert_sound(&capture);
        // One of the packets is truncated.
        if !capture.is_empty() {
            let at = cut.index(capture.len());
            let length = cut.index(capture[at].2.len());
            capture[at].2.truncate(length);
            assert_sound(&capture);
        }
    }

    /// RFC 9293 section 3.8.1: a response stays the same if its segments are lost, reordered, or retransmitted with other boundaries.
    #[test]
    fn a_transaction_does_not_depend_on_loss_and_reordering(
        cuts in vec(1usize..400, 1..20),
        again in vec((0usize..900, 1usize..400, 0u64..90), 0..20),
        losses in vec(any::<bool>(), 20),
    ) {
        let mut capture = CaptureBuilder::tcp();
        capture.sent(30, 0, segment(0, 0, b"GET / HTTP/1.1\r\n\r\n"));
        let response = [&b"HTTP/1.1 200 OK\r\nContent-Length: 861\r\n\r\n"[..], &[b'x'; 861]].concat();
        let part = |begin: usize, length: usize| &response[begin..(begin + length).min(response.len())];
        let mut begin = 0;
        for (length, lost) in cuts.into_iter().chain([901]).zip(losses) {
            if begin >= response.len() {
                break;
            }
            let segment = segment(1, begin as u32, part(begin, length));
            if lost { capture.lost(40, 1, segment) } else { capture.sent(40, 1, segment) };
            begin += length;
        }
        for (begin, length, ms) in again {
            capture.sent(41 + ms, 1, segment(1, begin as u32, part(begin, length)));
        }
        capture.sent(200, 1, segment(1, 0, &response));
        let traffic = capture.traffic();
        let [transaction] = transactions(&traffic)[..] else { panic!("{traffic:?}") };
        prop_assert_eq!((transaction.size, transaction.outcome), (18, Outcome::Completed));
        prop_assert_eq!(traffic.totals.tcp.octets, [18, response.len() as u64]);
        let reply = transaction.reply.unwrap();
        prop_assert!((50..=210).contains(&reply.delivered.as_millis()));
        prop_assert!(transaction.breakdown().unwrap().total() == transaction.latency().unwrap());
    }
}
