//! Records of the connections and requests of the user's programs, measured from a packet capture.

use hol_measure::Record;
use hol_passive::{ObservedPacket, TrafficMeasurement, measure};

use crate::captured_packet::CapturedPacket;

/// Appends records of connections and requests, as seen in the captured packets, to the records `programs`. Also
/// returns the number of retransmissions.
pub(crate) fn add_captured(programs: Vec<Record>, packets: &[CapturedPacket]) -> (Vec<Record>, u64) {
    let observed_packets = packets.iter().map(|CapturedPacket { time, event, octets, .. }| ObservedPacket {
        time: *time,
        event: *event,
        octets,
    });
    let TrafficMeasurement { records, totals } = measure(observed_packets);
    let (first, mut all) = (programs.len(), programs);
    // The numbers continue after those of the programs.
    let later = |record: Record| Record {
        id: record.id + first as u64,
        parent: record.parent.map(|parent| parent + first as u32),
        ..record
    };
    all.extend(records.into_iter().map(later));
    let sent_again = [totals.tcp, totals.mptcp, totals.sctp, totals.udp].map(|carried| carried.retransmitted);
    (all, sent_again.iter().sum())
}
