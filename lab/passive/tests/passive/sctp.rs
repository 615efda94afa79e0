//! Associations of SCTP, and HTTP over their streams. RFC 9260.

use bytes::Bytes;
use hol_measure::Outcome;
use hol_wire::SendTimes;
use hol_wire::sctp::{Chunk, Data, DataFlags, Fsn, IData, Init, Mid, Packet, Ssn, Tsn};
use smallvec::smallvec;

use crate::capture_builder::{CaptureBuilder, connections, leg, transactions};

const TAGS: [u32; 2] = [111, 222];
/// The first TSNs; the client's wrap early.
const FIRST: [u32; 2] = [u32::MAX, 900];
const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";

fn packet(direction: usize, verification_tag: u32, chunk: Chunk) -> Packet {
    let ports = [5001, 80];
    let [source_port, destination_port] = [ports[direction], ports[1 - direction]];
    Packet { source_port, destination_port, verification_tag, zero_checksum: false, chunks: smallvec![chunk] }
}

fn sent_by(direction: usize, chunk: Chunk) -> Packet {
    packet(direction, TAGS[1 - direction], chunk)
}

fn init(direction: usize) -> Box<Init> {
    Box::new(Init {
        initiate_tag: TAGS[direction],
        a_rwnd: 65536,
        outbound_streams: 8,
        inbound_streams: 8,
        initial_tsn: Tsn(FIRST[direction]),
        parameters: vec![],
    })
}

/// Returns a chunk of a stream; the fragment is a whole message, its first part or its last part.
fn data(direction: usize, place: u32, stream: u16, flags: DataFlags, payload: &[u8]) -> Packet {
    let payload = Bytes::copy_from_slice(payload);
    let tsn = Tsn(FIRST[direction]) + place;
    let data = Data { flags, tsn, stream, ssn: Ssn(0), ppid: 0, payload, stamp: SendTimes::default() };
    sent_by(direction, Chunk::Data(data))
}

fn whole() -> DataFlags {
    DataFlags::BEGIN | DataFlags::END
}

fn association() -> CaptureBuilder {
    let mut capture = CaptureBuilder::default();
    capture.sent(0, 0, packet(0, 0, Chunk::Init(init(0))));
    // Section 5.1.6: the INIT is retransmitted; the reply has a tag and a number that the client does not use.
    let other = Init { initiate_tag: 999, initial_tsn: Tsn(1), ..*init(1) };
    capture.sent(10, 1, sent_by(1, Chunk::InitAck(init(1)))).sent(11, 0, packet(0, 0, Chunk::Init(init(0))));
    capture.sent(21, 1, sent_by(1, Chunk::InitAck(Box::new(other))));
    capture.sent(22, 0, sent_by(0, Chunk::CookieEcho(Bytes::from_static(b"cook"))));
    capture.sent(32, 1, sent_by(1, Chunk::CookieAck));
    capture
}

/// Section 9.2: the association is closed in order. The response's two messages are one byte stream.
#[test]
fn an_association_and_its_transaction_are_two_records() {
    let mut capture = association();
    capture.sent(50, 0, data(0, 0, 0, whole(), GET)).sent(65, 1, data(1, 0, 0, whole(), OK));
    capture.sent(66, 1, data(1, 1, 0, whole(), b"body"));
    capture.sent(80, 0, sent_by(0, Chunk::Shutdown { cumulative_tsn: Tsn(901) }));
    capture.sent(90, 1, sent_by(1, Chunk::ShutdownAck));
    let traffic = capture.traffic();
    let [association, transaction] = &traffic.records[..] else { panic!("{traffic:?}") };
    assert_eq!((association.outcome, association.size), (Outcome::Completed, 18 + 42));
    assert_eq!((transaction.parent, transaction.stream), (Some(0), 0));
    assert_eq!((transaction.request, transaction.reply), (leg([50, 50, 60, 60]), leg([66, 66, 76, 76])));
    let carried = traffic.totals.sctp;
    assert_eq!((carried.connections, carried.octets, carried.retransmitted), (1, [18, 42], 0));
}

/// Section 6.5: there is order within a stream, but not between streams. Section 6.3.3: a retransmitted chunk keeps its TSN.
#[test]
fn lost_chunk_blocks_only_its_own_stream() {
    let mut capture = association();
    capture.lost(50, 0, data(0, 0, 1, DataFlags::BEGIN, &GET[..9]));
    capture.sent(51, 0, data(0, 1, 1, DataFlags::END, &GET[9..])).sent(52, 0, data(0, 2, 2, whole(), GET));
    capture.sent(90, 0, data(0, 0, 1, DataFlags::BEGIN, &GET[..9]));
    let traffic = capture.traffic();
    let [first, second] = transactions(&traffic)[..] else { panic!("{traffic:?}") };
    assert_eq!((first.stream, first.request), (1, leg([51, 51, 61, 100])));
    assert_eq!((second.stream, second.request), (2, leg([52, 52, 62, 62])));
    assert_eq!((traffic.totals.sctp.retransmitted, traffic.totals.sctp.lost), (1, 1));
}

/// RFC 8260 section 2.2.2: a whole message of another stream is between the fragments of one.
#[test]
fn interleaved_messages_belong_to_their_streams() {
    let i_data = |place, stream, flags, fsn, payload: &[u8]| {
        let Chunk::Data(data) = data(0, place, stream, flags, payload).chunks.remove(0) else {
            unreachable!()
        };
        sent_by(0, Chunk::IData(Box::new(IData::new(&data, Mid(0), Fsn(fsn)))))
    };
    let mut capture = association();
    capture.sent(50, 0, i_data(0, 1, DataFlags::BEGIN, 0, &GET[..9])).sent(
        51,
        0,
        i_data(1, 2, whole(), 0, GET),
    );
    capture.sent(52, 0, i_data(2, 1, DataFlags::END, 1, &GET[9..]));
    let traffic = capture.traffic();
    let [first, second] = transactions(&traffic)[..] else { panic!("{traffic:?}") };
    assert_eq!((first.stream, first.request), (1, leg([52, 52, 62, 62])));
    assert_eq!((second.stream, second.request), (2, leg([51, 51, 61, 61])));
}

/// Section 3.3.3: the first number is that of the INIT ACK that the association uses, whatever chunk was captured first; section 6.4:
/// chunks may use two paths at once.
#[test]
fn positions_count_from_the_tsn_of_the_init_ack() {
    let mut capture = association();
    capture.sent(50, 0, data(0, 0, 0, whole(), GET)).sent(65, 1, data(1, 1, 0, whole(), b"body"));
    capture.sent(65, 1, data(1, 0, 0, whole(), OK));
    assert_eq!(transactions(&capture.traffic())[0].reply, leg([65, 65, 75, 75]));
}

/// Section 6.6: an unordered message has no position in the stream.
#[test]
fn unordered_messages_are_counted_but_not_parsed_as_http() {
    let mut capture = association();
    capture.sent(50, 0, data(0, 0, 0, whole() | DataFlags::UNORDERED, b"noise"));
    capture.sent(51, 0, data(0, 1, 0, whole(), GET));
    let traffic = capture.traffic();
    assert_eq!((traffic.totals.sctp.octets[0], transactions(&traffic)[0].size), (23, 18));
}

/// Sections 9.1 and 8.4: an ABORT may reflect the tag of the packet to which it replies (8.5.1).
#[test]
fn an_aborted_association_is_refused() {
    let abort = |reflected| Chunk::Abort { reflected, causes: vec![] };
    let mut refused = CaptureBuilder::default();
    refused.sent(0, 0, packet(0, 0, Chunk::Init(init(0)))).sent(10, 1, sent_by(1, abort(false)));
    let mut reflected = association();
    reflected.sent(60, 1, packet(1, TAGS[1], abort(true)));
    for capture in [refused, reflected] {
        let traffic = capture.traffic();
        assert_eq!(connections(&traffic)[0].outcome, Outcome::Refused);
        assert_eq!((traffic.records.len(), traffic.totals.unread), (1, 0));
    }
}

#[test]
fn packets_of_an_association_without_a_captured_init_are_unread() {
    let mut capture = CaptureBuilder::default();
    let traffic = capture.sent(0, 0, data(0, 0, 0, whole(), GET)).traffic();
    assert_eq!((traffic.records.len(), traffic.totals.unread), (0, 2));
}
