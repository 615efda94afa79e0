//! What the packets of programs tell beside what the guest tells of them.

use hol_measure::Record;
use hol_passive::{Sighting, Traffic, measure};

use crate::captured::Captured;

/// The records of programs, then those of their connections and requests, and how often something was sent again.
pub(crate) fn records(programs: Vec<Record>, packets: &[Captured]) -> (Vec<Record>, u64) {
    let sightings = packets.iter().map(|Captured { time, fate, octets, .. }| Sighting {
        time: *time,
        fate: *fate,
        octets,
    });
    let Traffic { records, totals } = measure(sightings);
    let (first, mut all) = (programs.len(), programs);
    // Numbers go on where those of the programs end.
    let later = |record: Record| Record {
        id: record.id + first as u64,
        parent: record.parent.map(|parent| parent + first as u32),
        ..record
    };
    all.extend(records.into_iter().map(later));
    let sent_again = [totals.tcp, totals.mptcp, totals.sctp, totals.udp].map(|carried| carried.retransmitted);
    (all, sent_again.iter().sum())
}
