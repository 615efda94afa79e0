//! The throughput of whole flows, and how fairly they share a link.

use std::collections::BTreeMap;

use hol_base::{Duration, Time};

use crate::Record;

/// The time during which a flow carried its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// When the first message was passed to the transport.
    pub start: Time,
    /// When the last message was delivered (and answered). If messages were lost that were due later, when the
    /// last of these was due.
    pub end: Time,
}

/// Computes a [`Transfer`] from records that are added one by one.
#[derive(Debug, Clone, Copy, Default)]
pub struct TransferBuilder {
    first_written: Option<Time>,
    last_delivered: Option<Time>,
    /// When the last one of those messages was due that never arrived.
    last_missed: Option<Time>,
}

/// Counts the octets that a background flow delivers during the transfer of the measured flow.
#[derive(Debug, Clone)]
pub struct BackgroundTransfer {
    /// Earliest possible start of the measured flow's transfer.
    earliest_start: Time,
    octets: u64,
    /// Octets delivered outside the measured flow's transfer as far as it is known, by the time of delivery.
    octets_outside: BTreeMap<Time, u64>,
}

impl Transfer {
    /// Returns the transfer to which the records belong; `None` if nothing was delivered.
    pub fn of(records: &[Record]) -> Option<Self> {
        let mut so_far = TransferBuilder::default();
        records.iter().for_each(|record| so_far.add(record));
        so_far.transfer()
    }

    /// Returns the duration of the transfer.
    pub fn span(&self) -> Duration {
        self.end.since(self.start)
    }
}

impl TransferBuilder {
    /// Adds a record of the transfer.
    pub fn add(&mut self, record: &Record) {
        // A message that never arrived has no time of writing; it was not written before it was due.
        let sent = record.request.map_or(record.scheduled, |leg| leg.written);
        self.first_written = Some(self.first_written.map_or(sent, |first| first.min(sent)));
        let delivered = record.latency().map(|latency| record.scheduled + latency);
        self.last_delivered = self.last_delivered.max(delivered);
        if delivered.is_none() {
            self.last_missed = self.last_missed.max(Some(record.scheduled));
        }
    }

    /// Returns the transfer that the records added so far give; `None` if nothing was delivered.
    pub fn transfer(&self) -> Option<Transfer> {
        let (first, last) = (self.first_written?, self.last_delivered?);
        Some(Transfer { start: first, end: self.last_missed.map_or(last, |missed| last.max(missed)) })
    }
}

impl BackgroundTransfer {
    /// Creates a counter for a transfer that does not start before `earliest_start`.
    pub const fn new(earliest_start: Time) -> Self {
        Self { earliest_start, octets: 0, octets_outside: BTreeMap::new() }
    }

    /// Adds the next record of the background flow.
    pub fn add(&mut self, record: &Record) {
        if let Some(delivered) = record.delivered_at().filter(|delivered| *delivered >= self.earliest_start) {
            *self.octets_outside.entry(delivered).or_default() += record.octets();
        }
    }

    /// Adds the octets delivered during `transfer`, which must contain the transfer of the previous call.
    pub fn count(&mut self, transfer: Transfer) {
        let during = transfer.start..=transfer.end;
        let inside: Vec<Time> = self.octets_outside.range(during).map(|(delivered, _)| *delivered).collect();
        self.octets +=
            inside.iter().filter_map(|delivered| self.octets_outside.remove(delivered)).sum::<u64>();
    }

    /// Returns the number of octets delivered during the transfer.
    pub const fn octets(&self) -> u64 {
        self.octets
    }
}

/// Returns Jain's fairness index of the flows' shares: 1 if all shares are equal, 1/n if one of n flows got
/// everything. `None` if no flow got anything. Jain, Chiu, Hawe: DEC-TR-301, 1984.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, RecordKind, TransferTimes};

    fn record(scheduled: u64, written: u64, delivered: Option<u64>) -> Record {
        let [scheduled, written] = [scheduled, written].map(Time::from_millis);
        let delivered = delivered.map(Time::from_millis);
        let request =
            delivered.map(|delivered| TransferTimes { written, delivered, ..TransferTimes::default() });
        let outcome = if request.is_some() { Outcome::Completed } else { Outcome::Unfinished };
        Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 500,
            reply_size: 0,
            scheduled,
            request,
            reply: None,
            outcome,
        }
    }

    #[test]
    fn transfer_lasts_from_the_first_write_to_the_last_delivery() {
        let records = [record(5, 7, Some(40)), record(10, 11, Some(30)), record(15, 15, None)];
        let transfer = Transfer::of(&records).unwrap();
        assert_eq!((transfer.start, transfer.end), (Time::from_millis(7), Time::from_millis(40)));
        assert_eq!(transfer.span(), Duration::from_millis(33));
        // Of 400 messages in 20 s two arrive, both in the first 20 ms.
        let starved = [record(0, 0, Some(20)), record(10, 10, Some(20)), record(20_000, 20_000, None)];
        assert_eq!(Transfer::of(&starved).unwrap().span(), Duration::from_secs(20));
        assert_eq!(Transfer::of(&records[2..]), None);
    }

    #[test]
    fn background_octets_count_only_during_the_transfer() {
        let until = |ms| Transfer { start: Time::from_millis(10), end: Time::from_millis(ms) };
        let mut background = BackgroundTransfer::new(Time::from_millis(5));
        let mut octets_until = |last, delivered: &[Option<u64>]| {
            delivered.iter().for_each(|delivered| background.add(&record(0, 0, *delivered)));
            background.count(until(last));
            (background.octets(), background.octets_outside.len())
        };
        assert_eq!(octets_until(20, &[Some(4), Some(9), Some(10), Some(20), None, Some(21)]), (1000, 2));
        assert_eq!(octets_until(20, &[]), (1000, 2), "nothing counts twice");
        assert_eq!(octets_until(30, &[Some(20), Some(31)]), (2000, 2));
    }

    #[test]
    fn jain_index_ranges_from_one_nth_to_one() {
        assert_eq!(jain_index(&[3.0, 3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain_index(&[7.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }
}
