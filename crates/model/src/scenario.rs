//! What a run is made of, and what comes out of it.

use std::fmt;

use hol_base::{Digest, Time};
use hol_measure::Record;
use hol_network::{Drops, NetworkError, NetworkSpec};
use hol_stack::TransportSpec;
use hol_transport::Statistics;
use hol_workloads::{WorkloadError, WorkloadSpec};

/// One point of an experiment: a workload over a transport over a network.
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
    /// When every connection was open for sending; the schedule starts here.
    pub connected: Option<Time>,
    /// When the last message was settled, or the run was given up; closing comes after it and is not counted.
    pub ended: Time,
    /// When every connection had closed in an orderly way; `None` if one did not.
    pub closed: Option<Time>,
    /// Why the run ended.
    pub stopped: Stopped,
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
    /// The schedule was over for [`GRACE`](crate::GRACE), and still messages were under way.
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
            Self::OutOfTime { outstanding } => write!(f, "out of time with {outstanding} messages under way"),
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
    /// The model world has no endpoints of this protocol.
    #[error("the model world has no {0}; the kernel world has (--world kernel)")]
    NoProtocol(&'static str),
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
