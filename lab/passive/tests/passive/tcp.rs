//! Connections of TCP, and HTTP over them.

use hol_base::{Duration, Time};
use hol_measure::Outcome;
use hol_wire::tcp::Flags;

use crate::capture_builder::{CaptureBuilder, connections, leg, segment, syn, transactions, with};

const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n";

/// RFC 9293 section 3.6: the connection is closed in order. RFC 9112 section 2.1: a request and its response.
#[test]
fn a_connection_and_its_transaction_are_two_records() {
    let mut capture = CaptureBuilder::tcp();
    capture.sent(30, 0, segment(0, 0, GET)).sent(45, 1, segment(1, 0, &[OK, &[b'x'; 20]].concat()));
    let traffic = capture.fin(60, [18, 59]).traffic();
    let [connection, transaction] = &traffic.records[..] else { panic!("{traffic:?}") };
    assert_eq!((connection.id, connection.parent, connection.outcome), (0, None, Outcome::Completed));
    assert_eq!((connection.size, connection.latency()), (18 + 59, Some(Duration::from_millis(80))));
    assert_eq!((transaction.id, transaction.parent, transaction.outcome), (1, Some(0), Outcome::Completed));
    assert_eq!((transaction.size, transaction.scheduled), (18, Time::from_millis(30)));
    assert_eq!((transaction.request, transaction.reply), (leg([30, 30, 40, 40]), leg([45, 45, 55, 55])));
    assert_eq!(transaction.breakdown().unwrap().service, Duration::from_millis(5));
    let carried = traffic.totals.tcp;
    assert_eq!((carried.connections, carried.packets, carried.octets), (1, 7, [18, 59]));
    assert_eq!((carried.lost, carried.retransmitted, traffic.totals.unread), (0, 0, 0));
}

/// RFC 9293 section 3.8.1: a lost segment is retransmitted; the data behind it waits. Here the first half of the response is lost.
#[test]
fn a_loss_causes_recovery_and_head_of_line_blocking() {
    let mut capture = CaptureBuilder::tcp();
    let body = [OK, &[b'x'; 20]].concat();
    capture.sent(30, 0, segment(0, 0, GET));
    capture.lost(40, 1, segment(1, 0, &body[..30])).sent(41, 1, segment(1, 30, &body[30..]));
    capture.sent(70, 1, segment(1, 0, &body[..30]));
    let traffic = capture.traffic();
    assert_eq!(transactions(&traffic)[0].reply, leg([41, 41, 51, 80]));
    assert_eq!((traffic.totals.tcp.lost, traffic.totals.tcp.retransmitted), (1, 1));
    assert_eq!(traffic.totals.tcp.octets, [18, 59]);

    let mut capture = CaptureBuilder::tcp();
    capture.lost(30, 0, segment(0, 0, GET)).sent(230, 0, segment(0, 0, GET)).sent(
        240,
        1,
        segment(1, 0, &body),
    );
    assert_eq!(transactions(&capture.traffic())[0].request, leg([30, 230, 240, 240]));
}

/// RFC 9293 section 3.8.1: a retransmission may have other boundaries; the first arrival of an octet counts.
#[test]
fn overlapping_retransmissions_count_once() {
    let mut capture = CaptureBuilder::tcp();
    let body = [OK, &[b'x'; 20]].concat();
    capture.sent(30, 0, segment(0, 0, GET));
    capture.sent(40, 1, segment(1, 0, &body[..30])).lost(41, 1, segment(1, 30, &body[30..50]));
    capture.sent(60, 1, segment(1, 20, &body[20..]));
    let traffic = capture.traffic();
    assert_eq!((traffic.totals.tcp.octets[1], traffic.totals.tcp.retransmitted), (59, 1));
    assert_eq!(transactions(&traffic)[0].reply, leg([60, 60, 70, 70]));
}

/// RFC 9293 section 3.4: the client's numbers wrap within the request's octets (see `INITIAL`), and a probe before the stream carries no
/// data: section 3.8.4.
#[test]
fn sequence_numbers_wrap_and_probes_carry_no_data() {
    let mut capture = CaptureBuilder::tcp();
    let probe = segment(0, u32::MAX, b"?");
    capture.sent(30, 0, segment(0, 0, &GET[..5])).sent(31, 0, probe).sent(32, 0, segment(0, 5, &GET[5..]));
    let traffic = capture.traffic();
    assert_eq!((transactions(&traffic)[0].size, traffic.totals.tcp.octets), (18, [18, 0]));
}

/// RFC 9293 section 3.5.3.
#[test]
fn a_reset_connection_is_refused_and_its_response_unfinished() {
    let mut capture = CaptureBuilder::tcp();
    capture.sent(30, 0, segment(0, 0, GET)).sent(45, 1, segment(1, 0, OK));
    capture.sent(60, 1, with(Flags::RST, segment(1, 39, b"")));
    let traffic = capture.traffic();
    assert_eq!(connections(&traffic)[0].outcome, Outcome::Refused);
    let transaction = transactions(&traffic)[0];
    assert_eq!((transaction.outcome, transaction.reply), (Outcome::Unfinished, None));
    assert_eq!(transaction.request, leg([30, 30, 40, 40]));
}

#[test]
fn reset_after_both_fins_changes_nothing() {
    let mut capture = CaptureBuilder::tcp();
    capture.fin(30, [0, 0]).sent(60, 0, with(Flags::RST, segment(0, 1, b"")));
    assert_eq!(connections(&capture.traffic())[0].outcome, Outcome::Completed);
}

#[test]
fn open_connection_is_completed_when_all_sent_data_have_arrived() {
    let outcome = |capture: &CaptureBuilder| connections(&capture.traffic())[0].outcome;
    let mut capture = CaptureBuilder::tcp();
    assert_eq!(outcome(&capture), Outcome::Completed);
    assert_eq!(outcome(capture.lost(30, 0, segment(0, 0, b"abc"))), Outcome::Unfinished);
    assert_eq!(outcome(capture.sent(50, 0, segment(0, 0, b"abc"))), Outcome::Completed);
    assert_eq!(outcome(CaptureBuilder::default().sent(0, 0, syn(0))), Outcome::Unfinished);
}

/// RFC 9293 section 3.4.1: a SYN with another number is another connection; the same one is a retransmission.
#[test]
fn reused_sockets_start_another_connection() {
    let mut capture = CaptureBuilder::default();
    capture.lost(0, 0, syn(0)).sent(5, 0, syn(0)).sent(15, 1, syn(1)).sent(25, 0, segment(0, 0, GET));
    capture.sent(40, 0, hol_wire::tcp::Segment { seq: hol_wire::tcp::SeqNum(77), ..syn(0) });
    let traffic = capture.traffic();
    assert_eq!(connections(&traffic).iter().map(|c| (c.id, c.size)).collect::<Vec<_>>(), [(0, 18), (2, 0)]);
    assert_eq!(traffic.totals.tcp.retransmitted, 1);
}

/// RFC 9112 section 6.3, item 8: the response that ends with its connection ends with the FIN, not with a reset.
#[test]
fn a_response_without_a_length_ends_with_the_fin() {
    let head = b"HTTP/1.0 200 OK\r\n\r\nsome";
    let mut capture = CaptureBuilder::tcp();
    capture.sent(30, 0, segment(0, 0, GET)).sent(45, 1, segment(1, 0, head)).sent(
        55,
        1,
        segment(1, 23, b" text"),
    );
    assert_eq!(transactions(&capture.traffic())[0].outcome, Outcome::Unfinished);
    let transaction = transactions(&capture.fin(60, [18, 28]).traffic())[0];
    assert_eq!((transaction.outcome, transaction.reply), (Outcome::Completed, leg([55, 55, 65, 65])));
}

/// RFC 9112 section 9.3: a server may reply before it has the whole request. No time counts twice.
#[test]
fn early_response_starts_when_the_request_has_arrived() {
    let post = b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n";
    let mut capture = CaptureBuilder::tcp();
    let no = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
    capture.sent(30, 0, segment(0, 0, post)).sent(41, 1, segment(1, 0, no));
    capture.sent(60, 0, segment(0, post.len() as u32, b"data"));
    let transaction = transactions(&capture.traffic())[0];
    assert_eq!(transaction.outcome, Outcome::Refused);
    assert_eq!((transaction.request, transaction.reply), (leg([60, 60, 70, 70]), leg([70, 70, 70, 70])));
}

/// A request that was never delivered is still a request.
#[test]
fn a_request_that_was_lost_is_unfinished() {
    let mut capture = CaptureBuilder::tcp();
    capture.lost(30, 0, segment(0, 0, GET));
    let transaction = transactions(&capture.traffic())[0];
    assert_eq!((transaction.scheduled, transaction.outcome), (Time::from_millis(30), Outcome::Unfinished));
    assert_eq!((transaction.size, transaction.request, transaction.reply), (18, None, None));
}

/// RFC 9293 section 3.1: a segment with a wrong checksum is not received.
#[test]
fn a_corrupted_segment_did_not_arrive() {
    let mut capture = CaptureBuilder::tcp();
    capture.corrupted(30, 0, segment(0, 0, GET)).sent(230, 0, segment(0, 0, GET));
    let traffic = capture.traffic();
    assert_eq!(transactions(&traffic)[0].request, leg([30, 230, 240, 240]));
    assert_eq!((traffic.totals.tcp.lost, traffic.totals.unread), (1, 0));
}

/// With a capture at one end only, a packet counts as sent when it was received; duplicates made by the network are not retransmissions.
#[test]
fn a_packet_captured_only_on_arrival_counts_as_sent_then() {
    let mut capture = CaptureBuilder::tcp();
    let get = capture.packet(0, segment(0, 0, GET).into());
    capture.received(50, &get).received(55, &get).received(60, &[0x45; 40]);
    let traffic = capture.traffic();
    assert_eq!(transactions(&traffic)[0].request, leg([50, 50, 50, 50]));
    assert_eq!(
        (traffic.totals.tcp.retransmitted, traffic.totals.tcp.packets, traffic.totals.unread),
        (0, 3, 1)
    );
}
