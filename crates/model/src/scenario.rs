//! What a run is made of, and what comes out of it.

use std::fmt;

use hol_base::{Digest, Duration, Seed, Time};
use hol_measure::Record;
use hol_network::{Drops, NetworkError, NetworkSpec};
use hol_stack::TransportSpec;
use hol_transport::Statistics;
use hol_workloads::{ENDLESS, WorkloadError, WorkloadSpec};

/// One point of an experiment: a workload over a transport over a network, and what else goes on there.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What lies between the endpoints.
    pub network: NetworkSpec,
    /// How the messages travel.
    pub transport: TransportSpec,
    /// What the application does.
    pub workload: WorkloadSpec,
    /// How many messages (or transactions) it sends.
    pub messages: u64,
    /// What competes with it.
    pub background: Vec<Background>,
}

/// Traffic that is not what the run is about, though it is counted.
#[derive(Debug, Clone)]
pub struct Background {
    /// How its messages travel.
    pub transport: TransportSpec,
    /// What each of the applications does.
    pub workload: WorkloadSpec,
    /// How many messages each sends before it closes; `None`: it goes on until the measured workload has ended.
    pub messages: Option<u64>,
    /// How many there are.
    pub count: u16,
    /// Each starts at random up to this long after the workload's `start`: flows that start together stay in step
    /// (Floyd and Jacobson 1992, on phase effects), and every repetition would be the same.
    pub spread: Duration,
}

/// A flow of the background, with what is its own.
#[derive(Debug, Clone)]
pub struct BackgroundFlow<'s> {
    /// How its messages travel.
    pub transport: &'s TransportSpec,
    /// What the application does; its start is drawn.
    pub workload: WorkloadSpec,
    /// How many messages it sends before it closes, or [`ENDLESS`].
    pub messages: u64,
    /// Where its randomness comes from: no other flow's numbers depend on it.
    pub seed: Seed,
}

impl Scenario {
    /// Every flow of the background in a run with this seed.
    pub fn background_flows(&self, seed: Seed) -> impl Iterator<Item = BackgroundFlow<'_>> {
        let seed = seed.derive("background");
        self.background.iter().enumerate().flat_map(move |(number, entry)| {
            let seed = seed.derive_index(number as u64);
            (0..entry.count).map(move |copy| entry.flow(seed.derive_index(copy.into())))
        })
    }
}

impl Background {
    fn flow(&self, seed: Seed) -> BackgroundFlow<'_> {
        let spread = self.spread.as_nanos().saturating_add(1);
        let late = Duration::from_nanos(seed.derive("start").rng().below(spread));
        let workload = WorkloadSpec { start: self.workload.start + late, ..self.workload.clone() };
        BackgroundFlow {
            transport: &self.transport,
            workload,
            messages: self.messages.unwrap_or(ENDLESS),
            seed,
        }
    }
}

/// What one run measured.
#[derive(Debug, Clone)]
pub struct Run {
    /// One record for each message of the schedule, in its order, also for those that never arrived.
    pub records: Vec<Record>,
    /// Over all records: same scenario and seed, same digest.
    pub digest: Digest,
    /// Packets that hosts put on their links.
    pub packets: u64,
    /// Packets that did not arrive.
    pub drops: Drops,
    /// What the client's endpoints counted, all connections together.
    pub client: Statistics,
    /// What the server's endpoints counted.
    pub server: Statistics,
    /// From the workload's start until every connection was open for sending, where the schedule starts; `None`
    /// if that never was.
    pub connect_time: Option<Duration>,
    /// When the last message was settled, or the run was given up; closing comes after it and is not counted.
    pub ended: Time,
    /// When every connection had closed in an orderly way; `None` if one did not.
    pub closed: Option<Time>,
    /// Why the run ended.
    pub stopped: Stopped,
    /// What became of each flow of the background, in the order of the scenario.
    pub background: Vec<BackgroundRun>,
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
    /// One record for each message of its schedule until the measured workload had ended.
    pub records: Vec<Record>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Every message was delivered or given up by the transport.
    Finished,
    /// A message could not be handed to the transport in time: the load is more than it carries.
    BehindSchedule {
        /// The message.
        message: u64,
        /// When it was to be sent.
        scheduled: Time,
        /// When the run was given up.
        at: Time,
    },
    /// Messages were under way, but nothing was delivered for three times the longest retransmission timeout.
    Stalled {
        /// The last delivery.
        since: Time,
        /// When the run was given up.
        at: Time,
        /// Messages not settled.
        outstanding: u64,
    },
    /// The connections were not open in the time that the workload gives them.
    NotConnected {
        /// That time.
        within: Duration,
    },
    /// The schedule was over for the [`grace`](crate::grace) time, and still messages were under way.
    OutOfTime {
        /// Messages not settled.
        outstanding: u64,
    },
    /// A connection was reset, refused or timed out, or its octets made no sense.
    Failed {
        /// Why, in RFC words.
        reason: &'static str,
    },
}

impl Stopped {
    /// Why the run ended before everything was done; `None`: it did not.
    pub fn reason(self) -> Option<String> {
        (self != Self::Finished).then(|| self.to_string())
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::BehindSchedule { message, scheduled, at } => {
                let (due, at) = (scheduled.as_secs_f64(), at.as_secs_f64());
                write!(
                    f,
                    "behind schedule: message {message}, due at {due:.2} s, was not accepted by {at:.2} s \
                     (--set workload.late_limit=1h lets it wait)"
                )
            }
            Self::Stalled { since, at, outstanding } => {
                write!(f, "stalled: nothing delivered from {since} to {at}, {outstanding} messages under way")
            }
            Self::NotConnected { within } => write!(f, "not connected within {within}"),
            Self::OutOfTime { outstanding } => write!(
                f,
                "out of time with {outstanding} messages under way (--set workload.late_limit=1h gives them an hour)"
            ),
            Self::Failed { reason } => write!(f, "connection failed: {reason}"),
        }
    }
}

/// A scenario that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The network table contradicts itself.
    #[error("in [network]: {0}")]
    Network(#[from] NetworkError),
    /// The workload table contradicts itself.
    #[error("in [workload]: {0}")]
    Workload(#[from] WorkloadError),
    /// The workload runs from or to a node that is not there.
    #[error(
        "`{key}` is {node:?}, which is not in the network; name one of {known}, as in {key} = {example:?}"
    )]
    UnknownEnd {
        /// `from` or `to`.
        key: &'static str,
        /// The node.
        node: String,
        /// The nodes that are there.
        known: String,
        /// One of them.
        example: String,
    },
    /// A workload runs between two nodes.
    #[error("`from` and `to` are both {0:?}; name two nodes")]
    SameEnds(String),
    /// Too many connections for the ports.
    #[error("{0} connections are more than the {1} dynamic ports (RFC 6335 section 6); lower a `count`")]
    TooManyConnections(usize, usize),
    /// A flow of the background cannot be run.
    #[error("in [[background]] number {}: {problem}", .index + 1)]
    Background {
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong.
        problem: Box<ScenarioError>,
    },
    /// A protocol, or an option of a transport, that the model world does not have.
    #[error("the model world has no {0}; the kernel world has (--world kernel)")]
    NotInModel(&'static str),
    /// The model world has no packet filter.
    #[error(
        "the model world has no packet filter; the kernel world has (--world kernel), or take filter = \"none\""
    )]
    NoFilter,
    /// The transport would take any number of messages at once.
    #[error("UDP does not set the pace of a greedy sender; give `interval` or `rate` a value above zero")]
    NothingSetsThePace,
    /// A datagram is not cut into fragments.
    #[error(
        "a message of {size} octets and its headers do not fit into {mtu} octets, and the model world has no \
         fragmentation; lower `size`"
    )]
    TooLongForDatagram {
        /// Octets of a message.
        size: u64,
        /// The smallest MTU of the network.
        mtu: u64,
    },
    /// The next message waits for a reply that may never come.
    #[error(
        "pingpong over a transport that gives messages up would end with the first one; \
         use echo, or leave out lifetime and retransmissions"
    )]
    PingpongWithoutReliability,
    /// There is nothing to send.
    #[error("`messages` is 0; a run needs at least one")]
    NoMessages,
}
