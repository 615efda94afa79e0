//! Limits of the resources that agents and hosts can make the daemon use.

use std::io;

use hol_base::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{DaemonError, SetupError};

/// Limits on the resources of the daemon that agents and hosts can use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of connections. A further connection replaces the oldest connection without a session; if all
    /// have sessions, it waits in the kernel's queue.
    pub connections: usize,
    /// Maximum number of octets queued for an agent that does not read. The agent's requests are read only when nothing
    /// is queued; so the queue contains notifications and the replies of one turn, for which half of this number is
    /// reserved.
    pub agent_backlog: usize,
    /// Maximum number of octets in memory for all agents together: queued messages, and received data of SCTP
    /// over UDP. If there are more, the agents with the most octets are disconnected.
    pub backlog: usize,
    /// Maximum time for which an agent may leave queued octets unread.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            agent_backlog: 1 << 20,
            backlog: 32 << 20,
            patience: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// Number of open files other than connections: listeners, journal, packet filter and the like.
    const OTHER_FILES: u64 = 64;
    /// A turn ends after this many octets of answers, so that other agents need not wait longer.
    const MAX_TURN_OCTETS: usize = 1 << 20;
    /// A turn ends after this much work, in units of about a nanosecond of processor time, and its requests are
    /// answered.
    ///
    /// The last request may add a rule with the maximum number of elements, which takes 5.1 ms. Thus a turn takes at
    /// most 10 ms, unless its last request is compared with 50,000 disable rules, or is announced to 8,000 sessions.
    pub(crate) const TURN_WORK: u64 = 4_700_000;
    /// The work for one agent after which other agents get their turn, in units of about a nanosecond of processor
    /// time.
    pub(crate) const AGENT_SHARE: u64 = 1_000_000;
    /// Minimum of `agent_backlog`, in octets: twice the longest reply, which is the longest list of rules.
    pub(crate) const MIN_AGENT_BACKLOG: u64 = 2 << 16;

    /// Returns the number of octets of answers after which a turn ends. The other half of `agent_backlog` is for the
    /// longest answer and for notifications, so no agent is disconnected because of the answers to its own requests.
    pub(crate) fn turn_octets(&self) -> usize {
        (self.agent_backlog / 2).min(Self::MAX_TURN_OCTETS)
    }

    /// Raises the limit of open files to its maximum. Returns an error if the maximum is too low for the connections
    /// and the sockets of SCTP over UDP.
    pub(crate) fn within_open_files(self, udp_sockets: usize) -> Result<Self, DaemonError> {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(io::Error::from)?;
        let (connections, files) = (self.connections, maximum.unwrap_or(u64::MAX));
        let others = Self::OTHER_FILES + udp_sockets as u64;
        let needed = (connections as u64).saturating_add(others);
        if needed <= files {
            return Ok(self);
        }
        let max = files.saturating_sub(others);
        Err(SetupError::TooFewFiles { connections, files, needed, max }.into())
    }
}
