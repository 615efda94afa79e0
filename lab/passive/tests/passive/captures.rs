//! Captures of Linux 6.18: a client and a server in network namespaces, joined by a router that drops every ninth packet.
//!
//! Both sent HTTP/1.1 with Python 3.11's `http.client` and `http.server`, over TCP and over MPTCP with a second subflow.

use hol_base::Time;
use hol_measure::Outcome;
use hol_network::TapEvent;
use hol_passive::{ObservedPacket, Totals, TrafficMeasurement, measure};

use crate::capture_builder::{connections, transactions};

/// The client's requests, by octets and outcome: GET, HEAD, POST, a missing file; over a second connection one in chunks, one by its length
/// and one that ends with the connection.
const REQUESTS: [(u32, Outcome); 7] = [
    (65, Outcome::Completed),
    (66, Outcome::Completed),
    (4085, Outcome::Completed),
    (68, Outcome::Refused),
    (72, Outcome::Completed),
    (65, Outcome::Completed),
    (71, Outcome::Completed),
];

/// Octets of the connections from the client and to it, according to `tshark -z follow,tcp,raw` for the capture over TCP.
const OCTETS: [[u64; 2]; 2] = [[4284, 8836], [208, 12978]];

/// Measures a pcapng of this directory: enhanced packet blocks of raw IPv4. Interface 0 is the client's, in 10.9.1.0/24.
fn traffic(pcapng: &[u8]) -> TrafficMeasurement {
    let number = |octets: &[u8]| u32::from_le_bytes(octets.try_into().unwrap()) as usize;
    let (mut packets, mut rest) = (Vec::new(), pcapng);
    while !rest.is_empty() {
        let (block, behind) = rest.split_at(number(&rest[4..8]));
        if number(&block[..4]) == 6 {
            let time = (number(&block[12..16]) as u64) << 32 | number(&block[16..20]) as u64;
            packets.push((time, number(&block[8..12]), &block[28..28 + number(&block[20..24])]));
        }
        rest = behind;
    }
    packets.sort_by_key(|(time, ..)| *time);
    let begin = packets[0].0;
    measure(packets.iter().map(|(time, interface, octets)| {
        let is_clients = octets[14] == 1;
        let event = if is_clients == (*interface == 0) { TapEvent::Sent } else { TapEvent::Received };
        ObservedPacket { time: Time::from_nanos(time - begin), event, octets }
    }))
}

fn requests(traffic: &TrafficMeasurement) -> Vec<(u32, Outcome)> {
    transactions(traffic).iter().map(|record| (record.size, record.outcome)).collect()
}

#[test]
fn http_over_tcp_is_reconstructed() {
    let traffic = traffic(include_bytes!("captures/tcp.pcapng"));
    assert_eq!(requests(&traffic), REQUESTS);
    let [first, second] = &connections(&traffic)[..] else { panic!("{traffic:?}") };
    assert_eq!(
        [first, second].map(|c| (c.outcome, u64::from(c.size))),
        OCTETS.map(|[to, from]| { (Outcome::Completed, to + from) })
    );
    let parents = transactions(&traffic).iter().filter(|record| record.parent == Some(0)).count();
    assert_eq!((parents, first.id, second.id), (4, 0, 5));
    // Counted with tshark: the packets of each side at its own interface, and those whose numbers and length occur again.
    let tcp = traffic.totals.tcp;
    assert_eq!((tcp.packets, tcp.retransmitted, traffic.totals.unread), (40 + 42, 2 + 6, 0));
    assert_eq!(tcp.octets, [0, 1].map(|direction| OCTETS[0][direction] + OCTETS[1][direction]));
}

/// RFC 8684: data that was sent over two subflows, and more than once, equals that sent over one. The second connection is TCP.
#[test]
fn http_over_mptcp_is_reconstructed_as_over_tcp() {
    let traffic = traffic(include_bytes!("captures/mptcp.pcapng"));
    assert_eq!(requests(&traffic), REQUESTS);
    let Totals { tcp, mptcp, unread, .. } = traffic.totals;
    assert_eq!([mptcp.octets, tcp.octets], OCTETS);
    assert_eq!((mptcp.connections, tcp.connections, unread), (1, 1, 0));
    assert!(connections(&traffic).iter().all(|connection| connection.outcome == Outcome::Completed));
    // The first response waited 200 ms for octets that were lost on the other subflow.
    let wait = transactions(&traffic)[0].breakdown().unwrap().head_of_line;
    assert_eq!(wait.as_millis(), 200);
}
