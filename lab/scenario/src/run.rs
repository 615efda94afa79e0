//! The result of a run.

use std::ops::Deref;

use hol_base::{Digest, Digester, Duration, Time};
use hol_measure::{BackgroundTransfer, Record, Transfer};
use hol_network::Drops;
use hol_transport::Statistics;

use crate::{Observer, RunEnd, Sample, WorldReport};

/// The result of a run, without its records.
#[derive(Debug, Clone)]
pub struct RunSummary {
    /// Whether the records contain when the first packet of a message was sent and when the last one
    /// arrived. If not, the interval from `last_sent` to `arrived` covers all the time from `written` to
    /// `delivered`.
    pub has_delivery_times: bool,
    /// Packets that hosts transmitted.
    pub packets: u64,
    /// Packets that did not arrive, by cause; `None` if the world does not know the number.
    pub drops: Option<Drops>,
    /// How often a queue set a packet's ECN field to CE instead of dropping the packet; `None` if unknown.
    pub marked: Option<u64>,
    /// The counters of the client's and the server's endpoint, summed over all connections; `None` if unknown.
    pub endpoints: Option<[Statistics; 2]>,
    /// The time from the workload's start until every connection was open and the schedule began; `None` if that never happened.
    pub connect_time: Option<Duration>,
    /// The time when the last message was settled or the run was aborted. Connections close later.
    pub ended: Time,
    /// The time when every connection had closed gracefully; `None` if one did not, or if the world does not
    /// observe it.
    pub closed: Option<Time>,
    /// Why the run ended.
    pub run_end: RunEnd,
    /// How each background flow ended, in the order of the scenario.
    pub background: Vec<BackgroundRun>,
    /// What a kernel, or the machines of a live run, report; `None` in the model.
    pub world_report: Option<Box<WorldReport>>,
    /// The files that programs wrote for the user, as a tar archive with a directory for each node; empty if
    /// there are none.
    pub files: Vec<u8>,
}

/// The result of a background flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundRun {
    /// Time from the flow's start until it was connected.
    pub connect_time: Option<Duration>,
    /// Octets of the flow's messages that were delivered during the measured
    /// [`Transfer`](hol_measure::Transfer).
    pub octets: u64,
    /// Why the flow ended, if it ended before the measured workload.
    pub run_end: Option<RunEnd>,
}

impl BackgroundRun {
    /// Returns the result of a flow with these `records` during the measured `transfer`.
    pub fn from_records(
        transfer: Option<Transfer>,
        records: &[Record],
        connect_time: Option<Duration>,
        run_end: Option<RunEnd>,
    ) -> Self {
        let mut background = BackgroundTransfer::new(Time::ZERO);
        records.iter().for_each(|record| background.add(record));
        transfer.into_iter().for_each(|transfer| background.count(transfer));
        Self { connect_time, octets: background.octets(), run_end }
    }
}

/// A run with all its records, for short runs.
#[derive(Debug, Clone)]
pub struct Run {
    /// The result without records.
    pub summary: RunSummary,
    /// One record for each message of the schedule, in the order of the schedule, including messages that
    /// never arrived.
    pub records: Vec<Record>,
    /// The records of each background flow until the measured workload ended.
    pub background_records: Vec<Vec<Record>>,
    /// The samples of the time series, if one was recorded; ascending in time.
    pub samples: Vec<Sample>,
}

impl Run {
    /// Performs a run and collects all its records.
    pub fn collect<E>(follow: impl FnOnce(&mut dyn Observer) -> Result<RunSummary, E>) -> Result<Self, E> {
        let mut collector = RecordCollector::default();
        let summary = follow(&mut collector)?;
        collector.0.resize_with(collector.0.len().max(1 + summary.background.len()), Vec::new);
        let background_records = collector.0.split_off(1);
        let records = collector.0.pop().unwrap_or_default();
        Ok(Self { summary, records, background_records, samples: Vec::new() })
    }

    /// Passes the records and samples of a finished run to an observer.
    pub fn replay_to(self, observer: &mut dyn Observer) -> RunSummary {
        for (flow, records) in std::iter::once(&self.records).chain(&self.background_records).enumerate() {
            records.iter().for_each(|record| observer.record(flow, record));
        }
        self.samples.iter().for_each(|sample| observer.sample(sample));
        self.summary
    }

    /// Returns the digest of all records: the same scenario and seed in the same world give the same digest.
    pub fn digest(&self) -> Digest {
        let mut digester = Digester::new();
        self.records.iter().for_each(|record| record.digest(&mut digester));
        digester.finish()
    }
}

impl Deref for Run {
    type Target = RunSummary;
    fn deref(&self) -> &RunSummary {
        &self.summary
    }
}

/// Collects records by flow.
#[derive(Debug, Default)]
struct RecordCollector(Vec<Vec<Record>>);

impl Observer for RecordCollector {
    fn record(&mut self, flow: usize, record: &Record) {
        if self.0.len() <= flow {
            self.0.resize_with(flow + 1, Vec::new);
        }
        self.0[flow].push(*record);
    }
}
