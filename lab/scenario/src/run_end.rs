//! Why a run ended.

use std::borrow::Cow;
use std::fmt;

use hol_base::{Duration, Time};
use hol_workloads::AbortReason;
use serde::{Deserialize, Serialize};

/// The reason why a run, or one of its flows, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunEnd {
    /// Every message was delivered, or abandoned by the transport.
    Finished,
    /// The transport did not accept a message in time: the load exceeds its throughput.
    BehindSchedule {
        /// Number of the message, from 0.
        message: u64,
        /// The time at which the message was due.
        scheduled: Time,
        /// The time at which the run was aborted.
        at: Time,
    },
    /// Messages were in flight, but nothing was delivered for longer than the transport takes to fail.
    Stalled {
        /// The time of the last delivery.
        since: Time,
        /// The time at which the run was aborted.
        at: Time,
        /// Messages that were due and not settled.
        outstanding: u64,
    },
    /// The connections were not open within the workload's connect timeout.
    NotConnected {
        /// The connect timeout.
        within: Duration,
    },
    /// Messages were still in flight when the late limit, but at least 120 s, had passed after the last message was due.
    OutOfTime {
        /// Messages that were due and not settled.
        outstanding: u64,
    },
    /// A connection was reset, refused or timed out, or received invalid octets.
    Failed {
        /// The reason, in the RFC's words.
        reason: Cow<'static, str>,
    },
    /// One of the user's programs failed.
    Program {
        /// The program, how it ended, and its last output.
        problem: String,
    },
}

impl RunEnd {
    /// Returns why the run ended early; `None` if it finished.
    pub fn reason(&self) -> Option<String> {
        (*self != Self::Finished).then(|| self.to_string())
    }

    /// Returns the end with its times on a clock that started `by` earlier.
    pub fn shifted_by(self, by: Duration) -> Self {
        match self {
            Self::BehindSchedule { message, scheduled, at } => {
                Self::BehindSchedule { message, scheduled: scheduled + by, at: at + by }
            }
            Self::Stalled { since, at, outstanding } => {
                Self::Stalled { since: since + by, at: at + by, outstanding }
            }
            other => other,
        }
    }

    /// Returns the end of a run whose application aborted at `at`.
    pub(crate) fn from_abort(abort_reason: AbortReason, at: Time) -> Self {
        match abort_reason {
            AbortReason::BehindSchedule { message, scheduled } => {
                Self::BehindSchedule { message, scheduled, at }
            }
            AbortReason::Connection(reason) | AbortReason::InvalidData(reason) => {
                Self::Failed { reason: reason.into() }
            }
        }
    }
}

impl fmt::Display for RunEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => f.write_str("finished"),
            Self::BehindSchedule { message, scheduled, at } => {
                let (due, at) = (scheduled.as_secs_f64(), at.as_secs_f64());
                write!(
                    f,
                    "behind schedule: the transport had not accepted message {message}, due at {due:.2} s, by {at:.2} s (without \
                    workload.late_limit there is no limit)"
                )
            }
            Self::Stalled { since, at, outstanding } => {
                write!(
                    f,
                    "stalled: no message was delivered from {since} to {at}; {outstanding} messages are outstanding"
                )
            }
            Self::NotConnected { within } => write!(f, "not connected within {within}"),
            Self::OutOfTime { outstanding } => write!(
                f,
                "time limit reached with {outstanding} outstanding messages (without workload.late_limit there is no limit)"
            ),
            Self::Failed { reason } => write!(f, "connection failed: {reason}"),
            Self::Program { problem } => f.write_str(problem),
        }
    }
}
