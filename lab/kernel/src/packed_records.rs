//! The binary format of records between guest and host: fixed length, little-endian.

use hol_base::Time;
use hol_measure::{Outcome, Record, RecordKind, TransferTimes};

/// Length of a packed record in octets: identifier, scheduled time, five timestamps for each direction of the transfer,
/// both sizes, parent, stream, flow, kind, and flags.
const RECORD_LENGTH: usize = 8 * 12 + 4 + 4 + 4 + 2 + 2 + 1 + 1;
/// Value of the field `parent` in a record without a parent.
const NO_PARENT: u32 = u32::MAX;
const RECORD_KINDS: [RecordKind; 9] = [
    RecordKind::Message,
    RecordKind::Transaction,
    RecordKind::Object,
    RecordKind::Page,
    RecordKind::Head,
    RecordKind::Frame,
    RecordKind::Batch,
    RecordKind::Program,
    RecordKind::Connection,
];

const OUTCOME_MASK: u8 = 7;
const HAS_REQUEST: u8 = 8;
const HAS_REPLY: u8 = 16;

/// Packs the records of all flows, one flow after the other.
pub(crate) fn pack(flows: &[Vec<Record>]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(flows.iter().map(Vec::len).sum::<usize>() * RECORD_LENGTH);
    for (flow, record) in
        (0_u16..).zip(flows).flat_map(|(n, flow)| flow.iter().map(move |record| (n, record)))
    {
        let Record { id, kind, parent, stream, size, reply_size, scheduled, request, reply, outcome } =
            record;
        let present = |leg: &Option<TransferTimes>, flag| if leg.is_some() { flag } else { 0 };
        let flags = *outcome as u8 | present(request, HAS_REQUEST) | present(reply, HAS_REPLY);
        let legs = [request, reply].map(|leg| times(&leg.unwrap_or_default()));
        for number in [*id, scheduled.as_nanos()].iter().chain(legs.as_flattened()) {
            octets.extend_from_slice(&number.to_le_bytes());
        }
        octets.extend_from_slice(&size.to_le_bytes());
        octets.extend_from_slice(&reply_size.to_le_bytes());
        octets.extend_from_slice(&parent.unwrap_or(NO_PARENT).to_le_bytes());
        octets.extend_from_slice(&stream.to_le_bytes());
        octets.extend_from_slice(&flow.to_le_bytes());
        octets.push(*kind as u8);
        octets.push(flags);
    }
    octets
}

/// Reads the packed records of `flows` flows; `None` if `octets` is malformed.
pub(crate) fn unpack(octets: &[u8], flows: usize) -> Option<Vec<Vec<Record>>> {
    let mut all = vec![Vec::new(); flows];
    for octets in octets.chunks(RECORD_LENGTH) {
        let (flow, record) = record(octets)?;
        all.get_mut(usize::from(flow))?.push(record);
    }
    Some(all)
}

fn record(octets: &[u8]) -> Option<(u16, Record)> {
    let (numbers, rest) = octets.split_at_checked(8 * 12)?;
    let numbers: Vec<u64> = numbers
        .chunks_exact(8)
        .map(|n| u64::from_le_bytes(n.try_into().expect("the slice has 8 octets")))
        .collect();
    let [s0, s1, s2, s3, r0, r1, r2, r3, p0, p1, p2, p3, t0, t1, f0, f1, kind, flags] = *rest else {
        return None;
    };
    let outcome = match flags & OUTCOME_MASK {
        flag if flag == Outcome::Completed as u8 => Outcome::Completed,
        flag if flag == Outcome::Unfinished as u8 => Outcome::Unfinished,
        flag if flag == Outcome::Abandoned as u8 => Outcome::Abandoned,
        flag if flag == Outcome::Refused as u8 => Outcome::Refused,
        flag if flag == Outcome::Late as u8 => Outcome::Late,
        _ => return None,
    };
    let record = Record {
        id: numbers[0],
        kind: *RECORD_KINDS.get(usize::from(kind))?,
        parent: Some(u32::from_le_bytes([p0, p1, p2, p3])).filter(|parent| *parent != NO_PARENT),
        stream: u16::from_le_bytes([t0, t1]),
        size: u32::from_le_bytes([s0, s1, s2, s3]),
        reply_size: u32::from_le_bytes([r0, r1, r2, r3]),
        scheduled: Time::from_nanos(numbers[1]),
        request: (flags & HAS_REQUEST != 0).then(|| leg(&numbers[2..7])),
        reply: (flags & HAS_REPLY != 0).then(|| leg(&numbers[7..12])),
        outcome,
    };
    Some((u16::from_le_bytes([f0, f1]), record))
}

fn times(leg: &TransferTimes) -> [u64; 5] {
    let TransferTimes { written, first_sent, last_sent, arrived, delivered } = *leg;
    [written, first_sent, last_sent, arrived, delivered].map(Time::as_nanos)
}

fn leg(numbers: &[u64]) -> TransferTimes {
    let time = |index: usize| Time::from_nanos(numbers[index]);
    TransferTimes {
        written: time(0),
        first_sent: time(1),
        last_sent: time(2),
        arrived: time(3),
        delivered: time(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_encoding() {
        let time = Time::from_millis;
        let leg = TransferTimes {
            written: time(1),
            first_sent: time(2),
            last_sent: time(3),
            arrived: time(4),
            delivered: time(5),
        };
        let record = |id, request, reply, outcome| Record {
            id,
            kind: if id == 0 { RecordKind::Page } else { RecordKind::Object },
            parent: (id > 0).then_some(0),
            stream: 1023,
            size: 56,
            reply_size: 70_000,
            scheduled: time(id),
            request,
            reply,
            outcome,
        };
        let measured = vec![
            record(0, Some(leg), Some(leg), Outcome::Completed),
            record(1, Some(leg), None, Outcome::Unfinished),
            record(1_000_000, None, None, Outcome::Abandoned),
            record(1_000_001, Some(leg), Some(leg), Outcome::Refused),
            record(1_000_002, Some(leg), None, Outcome::Late),
        ];
        let flows = vec![measured, Vec::new(), vec![record(0, Some(leg), None, Outcome::Completed)]];
        assert_eq!(unpack(&pack(&flows), 3), Some(flows.clone()));
        assert_eq!(unpack(&pack(&flows)[1..], 3), None);
        assert_eq!(unpack(&pack(&flows), 2), None, "there is no such flow");
    }
}
