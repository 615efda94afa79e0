//! Pairs of UDP sockets.

use bytes::Bytes;
use hol_base::Duration;
use hol_measure::Outcome;
use hol_wire::SendTimes;
use hol_wire::udp::Datagram;

use crate::capture_builder::{CaptureBuilder, connections};

/// RFC 768: two ports at two addresses; both directions belong together.
#[test]
fn udp_packets_between_two_sockets_are_a_connection() {
    let datagram = |source_port, destination_port, length| Datagram {
        source_port,
        destination_port,
        payload: Bytes::from(vec![7; length]),
        stamp: SendTimes::default(),
    };
    let mut capture = CaptureBuilder::default();
    capture.sent(0, 0, datagram(4000, 53, 30)).sent(15, 1, datagram(53, 4000, 100));
    capture.sent(20, 0, datagram(4001, 53, 30)).lost(20, 0, datagram(4001, 53, 30));
    let traffic = capture.traffic();
    let of = |at: usize| (connections(&traffic)[at].size, connections(&traffic)[at].latency());
    assert_eq!(of(0), (130, Some(Duration::from_millis(25))));
    assert_eq!(of(1), (60, Some(Duration::from_millis(10))));
    assert!(traffic.records.iter().all(|record| record.outcome == Outcome::Completed));
    let carried = traffic.totals.udp;
    assert_eq!((carried.connections, carried.packets, carried.lost, carried.octets), (2, 4, 1, [90, 100]));
}
