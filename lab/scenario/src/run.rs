//! What a world answers.

use std::ops::Deref;

use hol_base::{Digest, Digester, Duration, Time};
use hol_measure::{Meanwhile, Record, Transfer};
use hol_network::Drops;
use hol_transport::Statistics;

use crate::{Facts, Observer, Sample, Stopped};

/// What one run measured beside its records.
#[derive(Debug, Clone)]
pub struct Course {
    /// Whether the records tell when a message left and when it arrived. Where they do not, all the time from `written`
    /// to `delivered` is between `last_sent` and `arrived`.
    pub sees_passage: bool,
    /// Packets that hosts put on their links.
    pub packets: u64,
    /// Packets that did not arrive, where that is known by cause.
    pub drops: Option<Drops>,
    /// How often a queue marked a packet with congestion instead of dropping it, where that is known.
    pub marked: Option<u64>,
    /// What the endpoints of the client and of the server counted, all connections together, where they tell.
    pub endpoints: Option<[Statistics; 2]>,
    /// From the workload's start until every connection was open for sending, where the schedule starts; `None`
    /// if that never was.
    pub connect_time: Option<Duration>,
    /// When the last message was settled, or the run was given up; closing comes after it and is not counted.
    pub ended: Time,
    /// When every connection had closed in an orderly way; `None` if one did not, or if nobody looked.
    pub closed: Option<Time>,
    /// Why the run ended.
    pub stopped: Stopped,
    /// What became of each flow of the background, in the order of the scenario.
    pub background: Vec<BackgroundRun>,
    /// What a world that is not ours tells of itself.
    pub facts: Option<Box<Facts>>,
    /// What programs wrote for the user: a tar archive, by node; empty if there is nothing.
    pub files: Vec<u8>,
}

/// What became of a flow of the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundRun {
    /// From its start until it was connected.
    pub connect_time: Option<Duration>,
    /// Octets of its messages that were delivered during the measured [`Transfer`](hol_measure::Transfer).
    pub octets: u64,
    /// Why it ended, if it did before the measured workload.
    pub stopped: Option<Stopped>,
}

impl BackgroundRun {
    /// What became of a flow whose `records` are known, during the measured `transfer`.
    pub fn during(
        transfer: Option<Transfer>,
        records: &[Record],
        connect_time: Option<Duration>,
        stopped: Option<Stopped>,
    ) -> Self {
        let mut meanwhile = Meanwhile::new(Time::ZERO);
        records.iter().for_each(|record| meanwhile.add(record));
        transfer.into_iter().for_each(|transfer| meanwhile.count(transfer));
        Self { connect_time, octets: meanwhile.octets(), stopped }
    }
}

/// A run with all its records: for runs that are short.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is measured beside them.
    pub course: Course,
    /// One record for each message of the schedule, in its order, also for those that never arrived.
    pub records: Vec<Record>,
    /// The same of each flow of the background, until the measured workload had ended.
    pub background_records: Vec<Vec<Record>>,
    /// How it stood from time to time, if anybody wanted to know; ascending in time.
    pub samples: Vec<Sample>,
}

impl Run {
    /// Does a run with an observer that keeps every record.
    pub fn keep<E>(follow: impl FnOnce(&mut dyn Observer) -> Result<Course, E>) -> Result<Self, E> {
        let mut kept = Kept::default();
        let course = follow(&mut kept)?;
        kept.0.resize_with(kept.0.len().max(1 + course.background.len()), Vec::new);
        let background_records = kept.0.split_off(1);
        let records = kept.0.pop().unwrap_or_default();
        Ok(Self { course, records, background_records, samples: Vec::new() })
    }

    /// Shows a run that is over to an observer.
    pub fn show(self, observer: &mut dyn Observer) -> Course {
        for (flow, records) in std::iter::once(&self.records).chain(&self.background_records).enumerate() {
            records.iter().for_each(|record| observer.record(flow, record));
        }
        self.samples.iter().for_each(|sample| observer.sample(sample));
        self.course
    }

    /// Over all records: same scenario and seed in the same world, same digest.
    pub fn digest(&self) -> Digest {
        let mut digester = Digester::new();
        self.records.iter().for_each(|record| record.digest(&mut digester));
        digester.finish()
    }
}

impl Deref for Run {
    type Target = Course;
    fn deref(&self) -> &Course {
        &self.course
    }
}

/// Records by flow.
#[derive(Debug, Default)]
struct Kept(Vec<Vec<Record>>);

impl Observer for Kept {
    fn record(&mut self, flow: usize, record: &Record) {
        if self.0.len() <= flow {
            self.0.resize_with(flow + 1, Vec::new);
        }
        self.0[flow].push(*record);
    }
}
