//! Generates any packet that an endpoint could send.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use hol_base::Time;
use hol_wire::sctp::{
    AddressOperation, Asconf, AsconfAck, AsconfSerial, Auth, Cause, Chunk, Data, DataFlags, ForwardTsn, Fsn,
    GapAckBlock, IData, IForwardTsn, Init, Mid, Packet as SctpPacket, Parameter, Reconfig, ReconfigResult,
    ReconfigSerial, Request, Response, Sack, SkippedMessages, Ssn, Tsn,
};
use hol_wire::tcp::{DataSeq, Flags, Mapping, Mptcp, Options, SackBlock, Segment, SeqNum, Timestamps};
use hol_wire::udp::Datagram;
use hol_wire::{Address, Ecn, Packet, SendTimes, Transport};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

pub fn packet() -> impl Strategy<Value = Packet> {
    let transport = prop_oneof![
        segment().prop_map(Transport::from),
        sctp_packet().prop_map(Transport::from),
        datagram().prop_map(Transport::from)
    ];
    (hosts(), any::<u8>(), transport).prop_map(|([source, destination], ecn, transport)| Packet {
        ecn: Ecn::from_bits(ecn),
        ..Packet::new(source, destination, transport)
    })
}

/// Generates two addresses of one family.
fn hosts() -> impl Strategy<Value = [Address; 2]> {
    prop_oneof![
        any::<[Ipv4Addr; 2]>().prop_map(|hosts| hosts.map(Address::from)),
        any::<[Ipv6Addr; 2]>().prop_map(|hosts| hosts.map(Address::from))
    ]
}

fn segment() -> impl Strategy<Value = Segment> {
    let numbers = (any::<u16>(), any::<u16>(), any::<u32>(), any::<u32>(), any::<u16>());
    (numbers, 0..0x200u16, octets(), stamp()).prop_flat_map(|(numbers, flags, payload, stamp)| {
        let (source_port, destination_port, seq, ack, window) = numbers;
        let flags = Flags(flags);
        let options = if flags.contains(Flags::SYN) { syn_options().boxed() } else { data_options().boxed() };
        options.prop_map(move |options| Segment {
            source_port,
            destination_port,
            seq: SeqNum(seq),
            ack: SeqNum(ack),
            flags,
            window,
            options,
            payload: payload.clone(),
            stamp,
        })
    })
}

fn datagram() -> impl Strategy<Value = Datagram> {
    (any::<u16>(), any::<u16>(), octets(), stamp()).prop_map(
        |(source_port, destination_port, payload, stamp)| Datagram {
            source_port,
            destination_port,
            payload,
            stamp,
        },
    )
}

fn syn_options() -> impl Strategy<Value = Options> {
    (option::of(any::<u16>()), option::of(0u8..15), any::<bool>(), timestamps()).prop_map(
        |(mss, window_scale, sack_permitted, timestamps)| Options {
            mss,
            window_scale,
            sack_permitted,
            timestamps,
            ..Options::default()
        },
    )
}

fn data_options() -> impl Strategy<Value = Options> {
    prop_oneof![
        sack_options(),
        signal().prop_map(|signal| Options { mptcp: Some(Box::new(signal)), ..Options::default() })
    ]
}

fn signal() -> impl Strategy<Value = Mptcp> {
    let mapping = (data_seq(), any::<u32>(), any::<u16>());
    let mapping = mapping.prop_map(|(data, subflow, length)| Mapping { data, subflow, length });
    (any::<bool>(), option::of(data_seq()), option::of(mapping))
        .prop_map(|(data_fin, ack, mapping)| Mptcp::Signal { data_fin, ack, mapping })
}

fn data_seq() -> impl Strategy<Value = DataSeq> {
    prop_oneof![any::<u32>().prop_map(DataSeq::Half), any::<u64>().prop_map(DataSeq::Whole)]
}

fn sack_options() -> impl Strategy<Value = Options> {
    (timestamps(), vec((any::<u32>(), any::<u32>()), 0..=4)).prop_map(|(timestamps, mut sack)| {
        sack.truncate(if timestamps.is_some() { 3 } else { 4 });
        let sack =
            sack.into_iter().map(|(left, right)| SackBlock { left: SeqNum(left), right: SeqNum(right) });
        Options { timestamps, sack: sack.collect(), ..Options::default() }
    })
}

fn timestamps() -> impl Strategy<Value = Option<Timestamps>> {
    option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo }))
}

fn sctp_packet() -> impl Strategy<Value = SctpPacket> {
    (any::<(u16, u16, u32, bool)>(), vec(chunk(), 1..6)).prop_map(
        |((source_port, destination_port, tag, zero_checksum), chunks)| SctpPacket {
            source_port,
            destination_port,
            verification_tag: tag,
            zero_checksum,
            chunks: chunks.into(),
        },
    )
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        data().prop_map(Chunk::Data),
        init().prop_map(|init| Chunk::Init(Box::new(init))),
        init().prop_map(|init| Chunk::InitAck(Box::new(init))),
        sack().prop_map(Chunk::Sack),
        octets().prop_map(Chunk::Heartbeat),
        octets().prop_map(Chunk::HeartbeatAck),
        (any::<bool>(), vec(cause(), 0..4))
            .prop_map(|(reflected, causes)| Chunk::Abort { reflected, causes }),
        any::<u32>().prop_map(|tsn| Chunk::Shutdown { cumulative_tsn: Tsn(tsn) }),
        Just(Chunk::ShutdownAck),
        vec(cause(), 0..4).prop_map(Chunk::Error),
        octets().prop_map(Chunk::CookieEcho),
        Just(Chunk::CookieAck),
        any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete { reflected }),
        forward_tsn().prop_map(|forward| Chunk::ForwardTsn(Box::new(forward))),
        i_data().prop_map(|data| Chunk::IData(Box::new(data))),
        i_forward_tsn().prop_map(|forward| Chunk::IForwardTsn(Box::new(forward))),
        auth().prop_map(|auth| Chunk::Auth(Box::new(auth))),
        asconf().prop_map(|asconf| Chunk::Asconf(Box::new(asconf))),
        asconf_ack().prop_map(|ack| Chunk::AsconfAck(Box::new(ack))),
        vec(reconfig(), 0..3).prop_map(Chunk::Reconfig),
        (unknown_kind(), any::<u8>(), octets()).prop_map(|(kind, flags, value)| Chunk::Unknown {
            kind,
            flags,
            value
        }),
    ]
}

fn reconfig() -> impl Strategy<Value = Reconfig> {
    let serial = || any::<u32>().prop_map(ReconfigSerial);
    let streams = || vec(any::<u16>(), 0..5);
    prop_oneof![
        (serial(), serial(), any::<u32>().prop_map(Tsn), streams()).prop_map(
            |(serial, response, last_tsn, streams)| Reconfig::OutgoingReset {
                serial,
                response,
                last_tsn,
                streams
            }
        ),
        (serial(), streams()).prop_map(|(serial, streams)| Reconfig::IncomingReset { serial, streams }),
        serial().prop_map(|serial| Reconfig::TsnReset { serial }),
        (serial(), any::<u32>(), option::of(any::<(u32, u32)>())).prop_map(|(serial, result, next)| {
            let next_tsns = next.map(|(sender, receiver)| (Tsn(sender), Tsn(receiver)));
            Reconfig::Response { serial, result: ReconfigResult(result), next_tsns }
        }),
        (serial(), any::<u16>()).prop_map(|(serial, streams)| Reconfig::AddOutgoing { serial, streams }),
        (serial(), any::<u16>()).prop_map(|(serial, streams)| Reconfig::AddIncoming { serial, streams }),
        (19u16.., octets()).prop_map(|(kind, value)| Reconfig::Unknown { kind, value }),
    ]
}

fn unknown_kind() -> impl Strategy<Value = u8> {
    (16u8..128).prop_filter("that is I-DATA", |kind| *kind != IData::KIND)
}

fn i_data() -> impl Strategy<Value = IData> {
    (data(), any::<(u32, u32)>()).prop_map(|(data, (mid, fsn))| IData::new(&data, Mid(mid), Fsn(fsn)))
}

fn i_forward_tsn() -> impl Strategy<Value = IForwardTsn> {
    let skipped = any::<(u16, bool, u32)>().prop_map(|(stream, unordered, mid)| SkippedMessages {
        stream,
        unordered,
        mid: Mid(mid),
    });
    (any::<u32>(), vec(skipped, 0..4))
        .prop_map(|(tsn, skipped)| IForwardTsn { new_cumulative_tsn: Tsn(tsn), skipped: skipped.into() })
}

fn data() -> impl Strategy<Value = Data> {
    (any::<(u8, u32, u16, u16, u32)>(), octets(), stamp()).prop_map(
        |((flags, tsn, stream, ssn, ppid), payload, stamp)| Data {
            flags: DataFlags(flags),
            tsn: Tsn(tsn),
            stream,
            ssn: Ssn(ssn),
            ppid,
            payload,
            stamp,
        },
    )
}

fn init() -> impl Strategy<Value = Init> {
    (any::<(u32, u32, u16, u16, u32)>(), vec(parameter(), 0..5)).prop_map(|(numbers, parameters)| {
        let (initiate_tag, a_rwnd, outbound_streams, inbound_streams, tsn) = numbers;
        Init { initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn: Tsn(tsn), parameters }
    })
}

fn parameter() -> impl Strategy<Value = Parameter> {
    prop_oneof![
        any::<Address>().prop_map(Parameter::of_address),
        octets().prop_map(Parameter::StateCookie),
        octets().prop_map(Parameter::Unrecognized),
        octets().prop_map(Parameter::HostNameAddress),
        vec(any::<u16>(), 0..5).prop_map(Parameter::SupportedAddressTypes),
        any::<u32>().prop_map(Parameter::CookiePreservative),
        Just(Parameter::ForwardTsnSupported),
        any::<u32>().prop_map(Parameter::ZeroChecksumAcceptable),
        vec(any::<u8>(), 0..5).prop_map(Parameter::SupportedExtensions),
        octets().prop_map(Parameter::Random),
        vec(any::<u8>(), 0..5).prop_map(Parameter::ChunkList),
        vec(any::<u16>(), 0..5).prop_map(Parameter::HmacAlgorithms),
        (0x8100u16..0xC000, octets()).prop_map(|(kind, value)| Parameter::Unknown { kind, value }),
    ]
}

fn cause() -> impl Strategy<Value = Cause> {
    prop_oneof![
        any::<u16>().prop_map(Cause::InvalidStreamIdentifier),
        any::<u16>().prop_map(Cause::MissingMandatoryParameter),
        any::<u32>().prop_map(Cause::StaleCookie),
        Just(Cause::OutOfResource),
        octets().prop_map(Cause::UnresolvableAddress),
        octets().prop_map(Cause::UnrecognizedChunk),
        Just(Cause::InvalidMandatoryParameter),
        any::<u32>().prop_map(|tsn| Cause::NoUserData(Tsn(tsn))),
        Just(Cause::CookieWhileShuttingDown),
        octets().prop_map(Cause::NewAddresses),
        octets().prop_map(Cause::UserInitiatedAbort),
        octets().prop_map(Cause::ProtocolViolation),
        octets().prop_map(Cause::UnrecognizedParameters),
        octets().prop_map(Cause::DeleteLastAddress),
        octets().prop_map(Cause::DeleteSourceAddress),
        Just(Cause::IllegalAsconfAck),
        any::<u16>().prop_map(Cause::UnsupportedHmac),
        (0x106u16.., octets()).prop_map(|(code, value)| Cause::Other { code, value }),
    ]
}

fn sack() -> impl Strategy<Value = Sack> {
    let gap = any::<(u16, u16)>().prop_map(|(start, end)| GapAckBlock { start, end });
    (any::<(u32, u32)>(), vec(gap, 0..6), vec(any::<u32>().prop_map(Tsn), 0..4)).prop_map(
        |((tsn, a_rwnd), gaps, duplicates)| Sack {
            cumulative_tsn: Tsn(tsn),
            a_rwnd,
            gaps: gaps.into(),
            duplicates: duplicates.into(),
        },
    )
}

fn auth() -> impl Strategy<Value = Auth> {
    (any::<(u16, u16)>(), octets()).prop_map(|((shared_key_id, hmac_id), hmac)| Auth {
        shared_key_id,
        hmac_id,
        hmac,
    })
}

fn asconf() -> impl Strategy<Value = Asconf> {
    let change = prop_oneof![
        any::<Address>().prop_map(AddressOperation::Add),
        any::<Address>().prop_map(AddressOperation::Delete),
        any::<Address>().prop_map(AddressOperation::SetPrimary),
        (0xC007u16.., octets()).prop_map(|(kind, value)| AddressOperation::Unknown { kind, value }),
    ];
    let request = (any::<u32>(), change).prop_map(|(correlation, change)| Request { correlation, change });
    (any::<(u32, Address)>(), vec(request, 0..4)).prop_map(|((serial, lookup), requests)| Asconf {
        serial: AsconfSerial(serial),
        lookup,
        requests,
    })
}

fn asconf_ack() -> impl Strategy<Value = AsconfAck> {
    let response = prop_oneof![
        any::<u32>().prop_map(|correlation| Response::Success { correlation }),
        (any::<u32>(), vec(cause(), 0..3))
            .prop_map(|(correlation, causes)| Response::Error { correlation, causes }),
    ];
    (any::<u32>(), vec(response, 0..4))
        .prop_map(|(serial, responses)| AsconfAck { serial: AsconfSerial(serial), responses })
}

fn forward_tsn() -> impl Strategy<Value = ForwardTsn> {
    let skipped = any::<(u16, u16)>().prop_map(|(stream, ssn)| (stream, Ssn(ssn)));
    (any::<u32>(), vec(skipped, 0..4))
        .prop_map(|(tsn, skipped)| ForwardTsn { new_cumulative_tsn: Tsn(tsn), skipped: skipped.into() })
}

fn octets() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn stamp() -> impl Strategy<Value = SendTimes> {
    any::<(u64, u64, bool)>().prop_map(|(first_sent, sent, cut)| SendTimes {
        cut,
        first_sent: Time::from_nanos(first_sent),
        sent: Time::from_nanos(sent),
    })
}
