//! Tests how Wireshark dissects our captures.

use std::process::Command;

use bytes::Bytes;
use hol_base::Time;
use hol_wire::sctp::{
    AddressOperation, Asconf, AsconfAck, AsconfSerial, Auth, Cause, Chunk, Data, DataFlags, ForwardTsn, Fsn,
    GapAckBlock, IData, IForwardTsn, Init, Mid, Packet as SctpPacket, Parameter, Reconfig, ReconfigResult,
    ReconfigSerial, Request, Response, Sack, SkippedMessages, Ssn, Tsn,
};
use hol_wire::tcp::{DataSeq, Flags, Mapping, Mptcp, Options, SackBlock, Segment, SeqNum, Timestamps};
use hol_wire::udp::Datagram;
use hol_wire::{Packet, PcapngWriter, SendTimes, Transport};
use smallvec::smallvec;

/// Returns one packet for every TCP option and every chunk kind, and a datagram.
fn packets() -> Vec<Packet> {
    let transports = segments().into_iter().map(Transport::from);
    let bundles = chunks().into_iter().map(|chunk| {
        Transport::from(SctpPacket {
            source_port: 40000,
            destination_port: 7626,
            verification_tag: if matches!(chunk, Chunk::Init(_)) { 0 } else { 0x0102_0304 },
            zero_checksum: false,
            chunks: smallvec![chunk],
        })
    });
    let (source, destination) = (hol_wire::ipv4(10, 0, 0, 1), hol_wire::ipv4(10, 0, 0, 2));
    let datagram = Transport::from(Datagram {
        source_port: 40000,
        destination_port: 5001,
        payload: Bytes::from_static(b"hello"),
        stamp: SendTimes::default(),
    });
    transports
        .chain(bundles)
        .chain([datagram])
        .map(|transport| Packet::new(source, destination, transport))
        .collect()
}

fn segments() -> Vec<Segment> {
    let segment = |flags, options, payload: &'static [u8]| Segment {
        source_port: 40000,
        destination_port: 5001,
        seq: SeqNum(1000),
        ack: SeqNum(2000),
        flags,
        window: 502,
        options,
        payload: Bytes::from_static(payload),
        stamp: SendTimes::default(),
    };
    let timestamps = Some(Timestamps { value: 1, echo: 2 });
    let blocks = |n| {
        (0..n).map(|i| SackBlock { left: SeqNum(2100 + 200 * i), right: SeqNum(2200 + 200 * i) }).collect()
    };
    let mptcp = |option| Options { mptcp: Some(Box::new(option)), ..Options::default() };
    let (sender_key, receiver_key) = (Some(6), Some(7));
    let capable = Mptcp::Capable { flags: 1, sender_key, receiver_key, data_length: None };
    let mapping = Mapping { data: DataSeq::Whole(8), subflow: 9, length: 5 };
    let ack = Some(DataSeq::Half(10));
    let signal = Mptcp::Signal { data_fin: false, ack, mapping: Some(mapping) };
    let syn = Options { mss: Some(1460), window_scale: Some(7), sack_permitted: true, ..Options::default() };
    vec![
        segment(Flags::SYN, Options { timestamps, ..syn.clone() }, b""),
        segment(Flags::SYN | Flags::ACK, syn, b""),
        segment(Flags::PSH | Flags::ACK, Options { timestamps, ..Options::default() }, b"hello"),
        segment(Flags::ACK, Options { timestamps, sack: blocks(3), ..Options::default() }, b""),
        segment(Flags::ACK, Options { sack: blocks(4), ..Options::default() }, b""),
        segment(Flags::FIN | Flags::ACK, Options::default(), b"odd"),
        segment(Flags::RST, Options::default(), b""),
        segment(Flags::SYN, mptcp(Mptcp::Join { backup: true, address: 3, token: 4, nonce: 5 }), b""),
        segment(Flags::ACK, mptcp(capable), b""),
        segment(Flags::ACK, mptcp(signal), b"hello"),
    ]
}

fn chunks() -> Vec<Chunk> {
    let cookie = Bytes::from_static(b"a cookie of 21 octets");
    let init = |parameters| {
        Box::new(Init {
            initiate_tag: 0x0102_0304,
            a_rwnd: 65536,
            outbound_streams: 8,
            inbound_streams: 2048,
            initial_tsn: Tsn(1),
            parameters,
        })
    };
    let common = [
        Parameter::of_address(hol_wire::ipv4(10, 0, 1, 1)),
        Parameter::ForwardTsnSupported,
        Parameter::SupportedExtensions(vec![Asconf::KIND, AsconfAck::KIND, Auth::KIND, IData::KIND]),
        Parameter::Random(Bytes::from_static(&[7; 32])),
        Parameter::ChunkList(vec![Asconf::KIND, AsconfAck::KIND]),
        Parameter::HmacAlgorithms(vec![3, 1]),
        Parameter::ZeroChecksumAcceptable(Parameter::SCTP_OVER_DTLS),
    ];
    let causes = vec![
        Cause::InvalidStreamIdentifier(7),
        Cause::MissingMandatoryParameter(7),
        Cause::StaleCookie(1000),
        Cause::OutOfResource,
        Cause::UnrecognizedChunk(Bytes::from_static(&[0xfe, 0, 0, 4])),
        Cause::InvalidMandatoryParameter,
        Cause::NoUserData(Tsn(9)),
        Cause::CookieWhileShuttingDown,
        Cause::ProtocolViolation(Bytes::from_static(b"why")),
        Cause::UnsupportedHmac(9),
    ];
    vec![
        Chunk::Init(init([&common[..], &[Parameter::CookiePreservative(1000)]].concat())),
        Chunk::InitAck(init([&common[..], &[Parameter::StateCookie(cookie.clone())]].concat())),
        Chunk::CookieEcho(cookie.clone()),
        Chunk::CookieAck,
        Chunk::Data(Data {
            flags: DataFlags::BEGIN | DataFlags::END,
            tsn: Tsn(1),
            stream: 3,
            ssn: Ssn(0),
            ppid: 0,
            payload: Bytes::from_static(b"hello"),
            stamp: SendTimes::default(),
        }),
        Chunk::Sack(Sack {
            cumulative_tsn: Tsn(1),
            a_rwnd: 65536,
            gaps: smallvec![GapAckBlock { start: 2, end: 3 }, GapAckBlock { start: 5, end: 5 }],
            duplicates: smallvec![Tsn(1)],
        }),
        Chunk::Heartbeat(cookie.clone()),
        Chunk::HeartbeatAck(cookie),
        Chunk::ForwardTsn(Box::new(ForwardTsn {
            new_cumulative_tsn: Tsn(9),
            skipped: smallvec![(1, Ssn(2)), (3, Ssn(4))],
        })),
        i_data(DataFlags::BEGIN, Fsn(0), 15),
        i_data(DataFlags::END | DataFlags::UNORDERED, Fsn(1), 0),
        Chunk::IForwardTsn(Box::new(IForwardTsn {
            new_cumulative_tsn: Tsn(9),
            skipped: smallvec![
                SkippedMessages { stream: 1, unordered: false, mid: Mid(2) },
                SkippedMessages { stream: 3, unordered: true, mid: Mid(4) },
            ],
        })),
        Chunk::Error(causes),
        Chunk::Shutdown { cumulative_tsn: Tsn(9) },
        Chunk::ShutdownAck,
        Chunk::ShutdownComplete { reflected: true },
        Chunk::Abort {
            reflected: false,
            causes: vec![Cause::UserInitiatedAbort(Bytes::from_static(b"bye"))],
        },
        Chunk::Auth(Box::new(Auth { shared_key_id: 0, hmac_id: 3, hmac: Bytes::from_static(&[9; 32]) })),
        Chunk::Asconf(Box::new(asconf())),
        Chunk::AsconfAck(Box::new(asconf_ack())),
        Chunk::Reconfig(vec![
            outgoing_reset(),
            Reconfig::IncomingReset { serial: ReconfigSerial(2), streams: vec![3] },
        ]),
        Chunk::Reconfig(vec![Reconfig::Response {
            serial: ReconfigSerial(4),
            result: ReconfigResult::PERFORMED,
            next_tsns: None,
        }]),
        Chunk::Reconfig(vec![
            Reconfig::AddOutgoing { serial: ReconfigSerial(5), streams: 6 },
            Reconfig::AddIncoming { serial: ReconfigSerial(6), streams: 7 },
        ]),
        Chunk::Unknown { kind: 0x3f, flags: 1, value: Bytes::from_static(b"??") },
    ]
}

/// Returns a reset with an odd number of streams, so that it is padded.
fn outgoing_reset() -> Reconfig {
    let (serial, response) = (ReconfigSerial(1), ReconfigSerial(9));
    Reconfig::OutgoingReset { serial, response, last_tsn: Tsn(8), streams: vec![1, 2, 3] }
}

fn i_data(flags: DataFlags, fsn: Fsn, ppid: u32) -> Chunk {
    let (payload, stamp) = (Bytes::from_static(b"hello"), SendTimes::default());
    Chunk::IData(Box::new(IData { flags, tsn: Tsn(2), stream: 3, mid: Mid(4), fsn, ppid, payload, stamp }))
}

/// Returns an ASCONF with every possible change of addresses.
fn asconf() -> Asconf {
    let address = hol_wire::ipv4(10, 0, 1, 1);
    let changes = [
        AddressOperation::Add(address),
        AddressOperation::SetPrimary(address),
        AddressOperation::Delete(address),
    ];
    let requests = changes.into_iter().zip(1..).map(|(change, correlation)| Request { correlation, change });
    Asconf { serial: AsconfSerial(1), lookup: hol_wire::ipv4(10, 0, 0, 1), requests: requests.collect() }
}

/// Returns an ASCONF-ACK with a success, and every refusal of RFC 5061.
fn asconf_ack() -> AsconfAck {
    let request = asconf().requests[2].to_bytes();
    let causes = vec![Cause::DeleteLastAddress(request.clone()), Cause::DeleteSourceAddress(request)];
    let responses = vec![Response::Success { correlation: 1 }, Response::Error { correlation: 3, causes }];
    AsconfAck { serial: AsconfSerial(1), responses }
}

/// Returns the chosen fields of every packet of a capture, by tshark.
fn dissect(packets: &[Packet], fields: &[&str]) -> Vec<Vec<String>> {
    let file = tempfile::Builder::new().suffix(".pcapng").tempfile().unwrap();
    let mut writer = PcapngWriter::new(file.as_file(), "experiment hello, seed 1", &["up", "down"]).unwrap();
    for (packet, i) in packets.iter().zip(0..) {
        let comment = (i == 0).then_some("dropped: loss on up");
        writer
            .packet(i % 2, Time::from_nanos(u64::from(i) * 1_000_000_001), &packet.to_bytes(), comment)
            .unwrap();
    }
    writer.finish().unwrap();
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file.path());
    let verified = ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];
    for preference in verified.into_iter().chain(["sctp.checksum:CRC 32c"]) {
        command.args(["-o", preference]);
    }
    command.args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().expect("tshark is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Wireshark's status of a checksum: 0 is bad, 1 is good.
const CHECKSUMS: [&str; 4] =
    ["ip.checksum.status", "tcp.checksum.status", "sctp.checksum.status", "udp.checksum.status"];

#[test]
#[ignore = "needs tshark"]
fn wireshark_finds_every_packet_well_formed() {
    let packets = packets();
    let fields = [&CHECKSUMS[..], &["_ws.malformed", "frame.time_epoch", "frame.interface_name"]].concat();
    let rows = dissect(&packets, &fields);
    assert_eq!(rows.len(), packets.len());
    for ((row, packet), i) in rows.iter().zip(&packets).zip(0..) {
        let transport = match packet.transport {
            Transport::Tcp(_) => ["1", "", ""],
            Transport::Sctp(_) => ["", "1", ""],
            Transport::Udp(_) | Transport::Quic(_) => ["", "", "1"],
        };
        let time = format!("{}.{i:09}", 1_577_836_800 + i);
        let interface = ["up", "down"][i % 2];
        assert_eq!(row[..4], [&["1"][..], &transport].concat(), "{packet}");
        assert_eq!(row[4..], ["", &time, interface], "{packet}");
    }
}

/// Section 3.5 of the pcapng draft: comments of the section and of a packet.
#[test]
#[ignore = "needs tshark"]
fn wireshark_shows_packet_comments() {
    let rows = dissect(&packets()[..2], &["frame.comment"]);
    assert_eq!(rows, [["dropped: loss on up"], [""]]);
}

#[test]
#[ignore = "needs tshark"]
fn wireshark_sees_corruption() {
    let corrupted: Vec<_> =
        packets().into_iter().map(|packet| Packet { corrupted: true, ..packet }).collect();
    let rows = dissect(&corrupted, &CHECKSUMS);
    assert_eq!(rows.len(), corrupted.len());
    for (row, packet) in rows.iter().zip(&corrupted) {
        assert!(row[0] == "1" && row[1..].contains(&"0".to_owned()), "{packet}: {row:?}");
    }
}

/// RFC 9293 section 3.2, RFC 2018, RFC 7323: Wireshark reads the values that were written.
#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_the_tcp_options_that_we_wrote() {
    let fields = [
        "tcp.options.mss_val",
        "tcp.options.wscale.shift",
        "tcp.option_kind",
        "tcp.options.timestamp.tsval",
        "tcp.options.sack.count",
        "tcp.len",
    ];
    let packets: Vec<_> =
        packets().into_iter().filter(|p| matches!(p.transport, Transport::Tcp(_))).collect();
    let rows = dissect(&packets, &fields);
    let expected = [
        ["1460", "7", "2,4,8,1,3", "1", "", "0"],
        ["1460", "7", "2,1,1,4,1,3", "", "", "0"],
        ["", "", "1,1,8", "1", "", "5"],
        ["", "", "1,1,8,1,1,5", "1", "3", "0"],
        ["", "", "1,1,5", "", "4", "0"],
        ["", "", "", "", "", "3"],
        ["", "", "", "", "", "0"],
        ["", "", "30", "", "", "0"],
        ["", "", "30", "", "", "0"],
        ["", "", "30,1,1", "", "", "5"],
    ];
    assert_eq!(rows, expected);
}

/// RFC 8684 sections 3.1 to 3.3: Wireshark reads the values that were written.
#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_the_options_of_mptcp_that_we_wrote() {
    let fields = [
        "tcp.options.mptcp.subtype",
        "tcp.options.mptcp.recvtok",
        "tcp.options.mptcp.sendkey",
        "tcp.options.mptcp.recvkey",
        "tcp.options.mptcp.rawdataack",
        "tcp.options.mptcp.rawdataseqno",
        "tcp.options.mptcp.subflowseqno",
        "tcp.options.mptcp.datalvllen",
    ];
    let rows = dissect(&packets(), &fields);
    let expected = [
        ["1", "4", "", "", "", "", "", ""],
        ["0", "", "6", "7", "", "", "", ""],
        ["2", "", "", "", "10", "8", "9", "5"],
    ];
    let filled = rows.iter().filter(|row| row.iter().any(|field| !field.is_empty()));
    assert_eq!(filled.cloned().collect::<Vec<_>>(), expected);
}

/// RFC 9260 section 3.2: Wireshark reads the values that were written.
#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_the_chunks_that_we_wrote() {
    let packets: Vec<_> =
        packets().into_iter().filter(|p| matches!(p.transport, Transport::Sctp(_))).collect();
    let rows = dissect(&packets, &["sctp.chunk_type"]);
    // The unrecognized chunk that the ERROR chunk reports is dissected too.
    let kinds = [
        "1", "2", "10", "11", "0", "3", "4", "5", "192", "64", "64", "194", "9,254", "7", "8", "14", "6",
        "15", "193", "128", "130", "130", "130", "63",
    ];
    assert_eq!(rows, kinds.map(|kind| [kind]));
}

/// RFC 4895 sections 3 and 5.1, RFC 5061 section 4: Wireshark reads the values that were written.
#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_authentication_and_address_configuration() {
    let fields = [
        "sctp.hmac_id",
        "sctp.hmac",
        "sctp.asconf_seq_nr_number",
        "sctp.asconf_ack_seq_nr_number",
        "sctp.correlation_id",
        "sctp.random_number",
    ];
    let packets: Vec<_> =
        packets().into_iter().filter(|p| matches!(p.transport, Transport::Sctp(_))).collect();
    let rows = dissect(&packets, &fields);
    let random = "07".repeat(32);
    let hmac = "09".repeat(32);
    let first = "0x00000001";
    // An error cause contains the request that it refuses, so its correlation ID occurs twice.
    let expected = [
        ["3,1", "", "", "", "", &random],
        ["3,1", "", "", "", "", &random],
        ["9", "", "", "", "", ""],
        ["3", &hmac, "", "", "", ""],
        ["", "", first, "", "0x00000001,0x00000002,0x00000003", ""],
        ["", "", "", first, "0x00000001,0x00000003,0x00000003,0x00000003", ""],
    ];
    let filled = rows.iter().filter(|row| row.iter().any(|field| !field.is_empty()));
    assert_eq!(filled.cloned().collect::<Vec<_>>(), expected);
}

/// RFC 8260 sections 2.1 and 2.3.1.
#[test]
#[ignore = "needs tshark"]
fn wireshark_reads_the_messages_and_fragments_that_we_interleave() {
    let packets = packets();
    let fields = [
        "sctp.data_mid",
        "sctp.data_fsn",
        "sctp.i_forward_tsn_sid",
        "sctp.i_forward_tsn_u_bit",
        "sctp.forward_tsn_mid",
    ];
    let rows = dissect(&packets, &fields);
    let read: Vec<String> = rows.iter().map(|row| row.join(" ")).filter(|row| row.len() > 4).collect();
    assert_eq!(read, ["4    ", "4 1   ", "  1,3 0,1 2,4"]);
}
