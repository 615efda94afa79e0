//! A flow as a whole: how much of it arrived in what time, and how fairly flows share a line.

use hol_base::{Duration, Time};

use crate::Record;

/// The time in which a flow's messages were carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When the first message was handed to the transport.
    pub first: Time,
    /// When the last was delivered (and answered).
    pub last: Time,
}

impl Transfer {
    /// From the first message to the last delivery; `None` if nothing was delivered.
    pub fn of(records: &[Record]) -> Option<Self> {
        // A message that never arrived left no note of when it was written: not before it was due.
        let sent = |record: &Record| record.request.map_or(record.scheduled, |leg| leg.written);
        let delivered = |record: &Record| Some(record.scheduled + record.latency()?);
        let last = records.iter().filter_map(delivered).max()?;
        Some(Self { first: records.iter().map(sent).min()?, last })
    }

    /// How long it took.
    pub fn span(&self) -> Duration {
        self.last.since(self.first)
    }

    /// Octets of the requests of (another flow's) `records` that were delivered meanwhile.
    pub fn octets(&self, records: &[Record]) -> u64 {
        let meanwhile = |record: &&Record| {
            record.request.is_some_and(|leg| (self.first..=self.last).contains(&leg.delivered))
        };
        records.iter().filter(meanwhile).map(|record| u64::from(record.size)).sum()
    }
}

/// Jain's fairness index of what flows got: 1 if all got the same, 1/n if one got everything; `None` if none got
/// anything. Jain, Chiu, Hawe: DEC-TR-301, 1984.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Leg, Outcome, RecordKind};

    fn record(scheduled: u64, written: u64, delivered: Option<u64>) -> Record {
        let [scheduled, written] = [scheduled, written].map(Time::from_millis);
        let delivered = delivered.map(Time::from_millis);
        let request = delivered.map(|delivered| Leg { written, delivered, ..Leg::default() });
        let outcome = if request.is_some() { Outcome::Completed } else { Outcome::Unfinished };
        Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 500,
            scheduled,
            request,
            reply: None,
            outcome,
        }
    }

    #[test]
    fn a_transfer_lasts_from_the_first_message_written_to_the_last_delivery() {
        let records = [record(5, 7, Some(40)), record(10, 11, Some(30)), record(15, 15, None)];
        let transfer = Transfer::of(&records).unwrap();
        assert_eq!((transfer.first, transfer.last), (Time::from_millis(7), Time::from_millis(40)));
        assert_eq!(transfer.span(), Duration::from_millis(33));
        assert_eq!(Transfer::of(&records[2..]), None);
    }

    #[test]
    fn only_what_arrives_meanwhile_counts_for_another_flow() {
        let transfer = Transfer { first: Time::from_millis(10), last: Time::from_millis(20) };
        let records =
            [record(0, 0, Some(9)), record(0, 0, Some(10)), record(0, 0, Some(20)), record(0, 0, None)];
        assert_eq!(transfer.octets(&records), 1000);
    }

    #[test]
    fn the_index_lies_between_one_flow_taking_all_and_all_taking_the_same() {
        assert_eq!(jain(&[3.0, 3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}
