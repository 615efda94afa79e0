//! Subflows of one connection. RFC 8684.

use hol_measure::Outcome;
use hol_passive::TrafficMeasurement;
use hol_wire::tcp::{DataSeq, Flags, Mapping, Mptcp, Segment};
use sha2::{Digest, Sha256};

use crate::capture_builder::{CaptureBuilder, connections, leg, segment, subflow, syn, transactions, with};

const KEYS: [u64; 2] = [0x1a0b_8e6d_8742_5b09, 0x04e0_5dd0_f47c_3728];
const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";

fn capable(sender_key: Option<u64>, receiver_key: Option<u64>, data_length: Option<u16>) -> Mptcp {
    Mptcp::Capable { flags: 1, sender_key, receiver_key, data_length }
}

/// Returns a data sequence number. Section 3.1: the data begins after the last 64 bits of the key's hash.
fn number(direction: usize, place: u64) -> u64 {
    let hash: [u8; 32] = Sha256::digest(KEYS[direction].to_be_bytes()).into();
    u64::from_be_bytes(*hash.last_chunk().unwrap()).wrapping_add(1 + place)
}

/// Returns a segment with octets at a position of the data and of the subflow.
fn data(direction: usize, place: u64, at: u32, octets: &[u8], port: u16) -> Segment {
    let mapping = Mapping {
        data: DataSeq::Whole(number(direction, place)),
        subflow: at + 1,
        length: octets.len() as u16,
    };
    let signal = Mptcp::Signal { data_fin: false, ack: None, mapping: Some(mapping) };
    subflow(port, signal, segment(direction, at, octets))
}

/// Returns the option MP_JOIN. Section 3.2: the token is the first 32 bits of the hash of the receiver's key.
fn join(receiver: usize) -> Mptcp {
    let hash: [u8; 32] = Sha256::digest(KEYS[receiver].to_be_bytes()).into();
    Mptcp::Join {
        backup: false,
        address: 1,
        token: u32::from_be_bytes(*hash.first_chunk().unwrap()),
        nonce: 3,
    }
}

/// Returns a connection from port 1, and a subflow from port 2 that joins it.
fn handshakes() -> CaptureBuilder {
    let mut capture = CaptureBuilder::default();
    capture.sent(0, 0, subflow(1, capable(None, None, None), syn(0)));
    capture.sent(10, 1, subflow(1, capable(Some(KEYS[1]), None, None), syn(1)));
    capture.sent(20, 0, subflow(1, capable(Some(KEYS[0]), Some(KEYS[1]), None), segment(0, 0, b"")));
    capture.sent(30, 0, subflow(2, join(1), syn(0)));
    capture.sent(40, 1, Segment { destination_port: 2, ..syn(1) });
    capture
}

fn the_transaction(traffic: &TrafficMeasurement) -> hol_measure::Record {
    let [transaction] = transactions(traffic)[..] else { panic!("{traffic:?}") };
    transaction
}

/// Sections 3.2 and 3.3: a loss on one subflow delays the data that arrived on the other.
#[test]
fn subflows_carry_one_stream() {
    let mut capture = handshakes();
    // Section 3.1: the first data may come with both keys instead of a mapping.
    let first = subflow(1, capable(Some(KEYS[0]), Some(KEYS[1]), Some(10)), segment(0, 0, &GET[..10]));
    capture.lost(50, 0, first.clone()).sent(51, 0, data(0, 10, 0, &GET[10..], 2));
    capture.sent(80, 0, first).sent(100, 1, data(1, 0, 0, OK, 2));
    let traffic = capture.traffic();
    assert_eq!(connections(&traffic).len(), 1);
    let transaction = the_transaction(&traffic);
    assert_eq!((transaction.request, transaction.reply), (leg([51, 51, 61, 90]), leg([100, 100, 110, 110])));
    assert_eq!((transaction.scheduled.as_millis(), transaction.parent), (50, Some(0)));
    let carried = traffic.totals.mptcp;
    assert_eq!((carried.connections, carried.octets, carried.retransmitted), (1, [18, OK.len() as u64], 1));
    assert_eq!(traffic.totals.tcp.connections, 0);
}

/// Section 3.2: either side may open a subflow; the side that opened the connection stays the client.
#[test]
fn subflow_opened_by_the_server_carries_requests() {
    let mut capture = handshakes();
    capture.sent(50, 1, Segment { flags: Flags::SYN, ..subflow(3, join(0), syn(1)) });
    capture.sent(60, 0, Segment { flags: Flags::SYN | Flags::ACK, source_port: 3, ..syn(0) });
    let traffic = capture.sent(80, 0, data(0, 0, 0, GET, 3)).traffic();
    assert_eq!((connections(&traffic).len(), traffic.totals.mptcp.octets), (1, [18, 0]));
    assert_eq!(the_transaction(&traffic).request, leg([80, 80, 90, 90]));
}

/// Section 3.3.1: one mapping covers several segments. Section 3.3: a number may be shortened to 32 bits.
#[test]
fn mapping_covers_later_segments() {
    let mut capture = handshakes();
    let whole = number(0, 0);
    let mapping = Mapping { data: DataSeq::Half(whole as u32), subflow: 1, length: 18 };
    let signal = Mptcp::Signal { data_fin: false, ack: None, mapping: Some(mapping) };
    capture.sent(50, 0, subflow(2, signal, segment(0, 0, &GET[..4])));
    capture.sent(51, 0, Segment { source_port: 2, ..segment(0, 4, &GET[4..]) });
    assert_eq!(the_transaction(&capture.traffic()).request, leg([51, 51, 61, 61]));
}

/// Section 3.3.6: data that is retransmitted on another subflow counts once.
#[test]
fn data_reinjected_on_another_subflow_count_once() {
    let mut capture = handshakes();
    capture.lost(50, 0, data(0, 0, 0, GET, 1)).sent(150, 0, data(0, 0, 0, GET, 2));
    let traffic = capture.traffic();
    assert_eq!(the_transaction(&traffic).request, leg([50, 150, 160, 160]));
    assert_eq!((traffic.totals.mptcp.octets[0], traffic.totals.mptcp.retransmitted), (18, 1));
}

/// Section 3.3.3: DATA_FINs close the connection; a subflow's FIN or reset does not.
#[test]
fn data_fins_close_the_connection_and_a_reset_subflow_does_not() {
    let fin = |direction, place, port| {
        let mapping = Mapping { data: DataSeq::Whole(number(direction, place)), subflow: 0, length: 1 };
        let signal = Mptcp::Signal { data_fin: true, ack: None, mapping: Some(mapping) };
        subflow(port, signal, segment(direction, 0, b""))
    };
    let outcome = |capture: &CaptureBuilder| connections(&capture.traffic())[0].outcome;
    let reset = |port| Segment { source_port: port, ..with(Flags::RST, segment(0, 0, b"")) };
    let mut capture = handshakes();
    assert_eq!(outcome(capture.sent(60, 0, reset(1))), Outcome::Completed);
    assert_eq!(outcome(handshakes().sent(60, 0, reset(1)).sent(61, 0, reset(2))), Outcome::Refused);
    let mut closed = handshakes();
    closed.sent(60, 0, fin(0, 0, 2)).sent(61, 1, fin(1, 0, 2)).sent(80, 0, reset(1)).sent(81, 0, reset(2));
    assert_eq!((outcome(&closed), closed.traffic().totals.mptcp.octets), (Outcome::Completed, [0, 0]));
}

/// Section 3.1: a server that does not reply with MP_CAPABLE uses TCP. Section 3.7: so does data without the option.
#[test]
fn connection_that_falls_back_counts_as_tcp() {
    let mut declined = CaptureBuilder::default();
    declined.sent(0, 0, subflow(1, capable(None, None, None), syn(0)));
    declined.sent(10, 1, Segment { destination_port: 1, ..syn(1) });
    for mut capture in [declined, handshakes()] {
        let get = Segment { source_port: 1, ..segment(0, 0, GET) };
        let traffic = capture.sent(50, 0, get).traffic();
        assert_eq!((traffic.totals.tcp.octets[0], transactions(&traffic).len()), (18, 1));
    }
}
