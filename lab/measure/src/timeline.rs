//! The deliveries of a run over time, in equal intervals as iperf prints them.

use hol_base::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::{LatencySum, Record, nanoseconds};

/// Maximum number of intervals in a timeline; deliveries after the last interval are discarded.
const MAX_PARTS: usize = 1 << 16;

/// The deliveries in each interval of a run, from the time at which its first message was due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// When the first message was due, relative to the start of the run; zero in results of older versions.
    #[serde(default, rename = "begin_ns", with = "nanoseconds")]
    pub begin: Duration,
    /// Length of an interval.
    #[serde(rename = "part_ns", with = "nanoseconds")]
    pub interval: Duration,
    /// The intervals that were complete when the run ended, in order.
    pub parts: Vec<TimelinePart>,
}

/// The deliveries of one interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimelinePart {
    /// The messages that were delivered (and answered) in the interval: their number, and the sum of their
    /// latencies.
    pub messages: LatencySum,
    /// Number of octets delivered in the interval: those of requests or those of replies, whichever are larger
    /// ([`Record::octets`]).
    pub octets: u64,
}

/// Builds a [`Timeline`] from messages that are added one by one.
#[derive(Debug)]
pub struct TimelineBuilder {
    timeline: Timeline,
    /// When the first message was due, and when the last one was delivered.
    times: Option<(Time, Time)>,
}

impl TimelineBuilder {
    /// Creates a builder of a timeline with intervals of this length, which must not be zero.
    pub const fn new(interval: Duration) -> Self {
        Self { timeline: Timeline { begin: Duration::ZERO, interval, parts: Vec::new() }, times: None }
    }

    /// Adds the next message, in the order of the schedule.
    pub fn add(&mut self, record: &Record) {
        let (begin, last) = self.times.unwrap_or((record.scheduled, record.scheduled));
        let Some(split) = record.breakdown() else {
            self.times = Some((begin, last));
            return;
        };
        let delivered = record.scheduled + split.total();
        self.times = Some((begin, last.max(delivered)));
        if let Some(part) = self.part(delivered.since(begin)) {
            part.messages.count += 1;
            part.messages.nanos += u128::from(split.total().as_nanos());
        }
        if let Some(part) = record.delivered_at().and_then(|at| self.part(at.since(begin))) {
            part.octets += record.octets();
        }
    }

    /// Returns the interval at the time `since_begin`; `None` if it is after the last interval that a timeline can
    /// have.
    fn part(&mut self, since_begin: Duration) -> Option<&mut TimelinePart> {
        let parts = &mut self.timeline.parts;
        let number = since_begin.as_nanos() / self.timeline.interval.as_nanos();
        let at = usize::try_from(number).ok().filter(|at| *at < MAX_PARTS)?;
        parts.resize(parts.len().max(at + 1), TimelinePart::default());
        parts.get_mut(at)
    }

    /// Returns the timeline of all complete intervals. The interval in which the run ended is not complete.
    pub fn finish(mut self) -> Timeline {
        let span = self.times.map_or(Duration::ZERO, |(begin, last)| last.since(begin));
        self.timeline.begin = self.times.map_or(Duration::ZERO, |(begin, _)| begin.since(Time::ZERO));
        self.timeline.parts.truncate((span.as_nanos() / self.timeline.interval.as_nanos()) as usize);
        self.timeline
    }
}

impl Timeline {
    /// Returns the middle of an interval, in seconds since the first message was due.
    pub fn middle_s(&self, part: usize) -> f64 {
        (part as f64 + 0.5) * self.interval.as_secs_f64()
    }

    /// Returns the middle of an interval, in seconds since the start of the run.
    pub fn middle_since_start_s(&self, part: usize) -> f64 {
        self.begin.as_secs_f64() + self.middle_s(part)
    }

    /// Returns the mean latency of the messages delivered in an interval, in ms; `None` if there were none.
    pub fn mean_ms(&self, part: usize) -> Option<f64> {
        self.parts.get(part)?.messages.mean_ms()
    }

    /// Returns the goodput of an interval, in kbit/s.
    pub fn kbps(&self, part: usize) -> Option<f64> {
        Some(self.parts.get(part)?.octets as f64 * 8e-3 / self.interval.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, RecordKind, TransferTimes};

    fn sent(scheduled: u64, ms: Option<u64>) -> Record {
        let at = |ms| Time::from_millis(scheduled + ms);
        let leg = |ms| TransferTimes {
            written: at(0),
            first_sent: at(0),
            last_sent: at(0),
            arrived: at(ms),
            delivered: at(ms),
        };
        Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 1000,
            reply_size: 0,
            scheduled: Time::from_millis(scheduled),
            request: ms.map(leg),
            reply: None,
            outcome: if ms.is_some() { Outcome::Completed } else { Outcome::Unfinished },
        }
    }

    #[test]
    fn message_counts_at_its_delivery_and_incomplete_parts_are_dropped() {
        let mut timeline = TimelineBuilder::new(Duration::from_secs(1));
        // The first is due after 0.2 s; the second part goes from 1.2 to 2.2 s.
        for record in [
            sent(200, Some(10)),
            sent(300, Some(20)),
            sent(900, Some(600)),
            sent(1000, None),
            sent(2300, Some(10)),
        ] {
            timeline.add(&record);
        }
        let timeline = timeline.finish();
        assert_eq!(timeline.parts.len(), 2, "the third was not over at 2.31 s");
        assert_eq!([0, 1, 2].map(|part| timeline.mean_ms(part)), [Some(15.0), Some(600.0), None]);
        assert_eq!([0, 1, 2].map(|part| timeline.kbps(part)), [Some(16.0), Some(8.0), None]);
        assert_eq!([0, 1].map(|part| timeline.middle_s(part)), [0.5, 1.5]);
    }

    #[test]
    fn octets_of_the_larger_direction_count_when_they_are_delivered() {
        let reply = sent(500, Some(1000)).request;
        let exchange = |size, reply_size| Record {
            kind: RecordKind::Transaction,
            size,
            reply_size,
            reply,
            ..sent(0, Some(500))
        };
        for (record, kbps) in [(exchange(100, 64_000), [0.0, 512.0]), (exchange(64_000, 100), [512.0, 0.0])] {
            let mut timeline = TimelineBuilder::new(Duration::from_secs(1));
            timeline.add(&record);
            timeline.add(&sent(2000, Some(0)));
            let timeline = timeline.finish();
            assert_eq!([0, 1].map(|part| timeline.kbps(part)), kbps.map(Some));
            assert_eq!(timeline.mean_ms(1), Some(1500.0));
        }
    }

    #[test]
    fn timeline_has_no_parts_without_deliveries_and_a_maximum_number() {
        let of = |records: &[Record]| {
            let mut timeline = TimelineBuilder::new(Duration::from_millis(1));
            records.iter().for_each(|record| timeline.add(record));
            timeline.finish().parts.len()
        };
        assert_eq!(of(&[sent(0, None)]), 0);
        assert_eq!(of(&[sent(0, Some(1)), sent(1_000_000_000, Some(1))]), 2);
    }

    #[test]
    fn parts_shorter_than_a_second_have_their_middle_and_rate() {
        let mut timeline = TimelineBuilder::new(Duration::from_millis(250));
        for record in [sent(0, Some(10)), sent(260, Some(10)), sent(2000, Some(1))] {
            timeline.add(&record);
        }
        let octets = f64::from(sent(0, None).size);
        let timeline = timeline.finish();
        assert_eq!((timeline.middle_s(0), timeline.middle_s(3)), (0.125, 0.875));
        assert!((timeline.kbps(1).unwrap() - octets * 8.0 / 250.0).abs() < 1e-9);
    }
}
