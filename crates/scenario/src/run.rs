//! What a world answers.

use hol_base::{Digest, Digester, Duration, Time};
use hol_measure::{Record, Transfer};
use hol_network::Drops;
use hol_transport::Statistics;

use crate::{Facts, Stopped};

/// What one run measured.
#[derive(Debug, Clone)]
pub struct Run {
    /// One record for each message of the schedule, in its order, also for those that never arrived.
    pub records: Vec<Record>,
    /// Over all records: same scenario and seed in the same world, same digest.
    pub digest: Digest,
    /// Whether the records tell when a message left and when it arrived. Where they do not, all the time from `written`
    /// to `delivered` is between `last_sent` and `arrived`.
    pub sees_passage: bool,
    /// Packets that hosts put on their links.
    pub packets: u64,
    /// Packets that did not arrive, where that is known by cause.
    pub drops: Option<Drops>,
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
}

/// What became of a flow of the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundRun {
    /// From its start until it was connected.
    pub connect_time: Option<Duration>,
    /// Octets of its messages that were delivered during the measured [`Transfer`].
    pub octets: u64,
    /// Why it ended, if it did before the measured workload.
    pub stopped: Option<Stopped>,
    /// One record for each message of its schedule until the measured workload had ended.
    pub records: Vec<Record>,
}

impl Run {
    /// The digest of records.
    pub fn digest_of(records: &[Record]) -> Digest {
        let mut digester = Digester::new();
        records.iter().for_each(|record| record.digest(&mut digester));
        digester.finish()
    }
}

impl BackgroundRun {
    /// A flow of the background beside the `measured` records.
    pub fn beside(
        measured: &[Record],
        records: Vec<Record>,
        connect_time: Option<Duration>,
        stopped: Option<Stopped>,
    ) -> Self {
        let octets = Transfer::of(measured).map_or(0, |meanwhile| meanwhile.octets(&records));
        Self { connect_time, octets, stopped, records }
    }
}
