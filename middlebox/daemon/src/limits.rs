//! Limits of the resources that agents and hosts can make the daemon use.

use std::io;

use hol_base::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{DaemonError, SetupError};

/// Limits of the resources that agents and hosts can make the daemon use.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum number of connections. A further connection replaces the oldest one without a session, or else waits in
    /// the kernel's queue.
    pub connections: usize,
    /// Maximum number of octets queued for an agent that does not read. Its requests are read only when nothing
    /// is queued, so the queue holds notifications and the replies of one turn, for which half of this number is
    /// reserved.
    pub agent_backlog: usize,
    /// Maximum number of octets in memory for all agents together: queued messages, and received data of SCTP
    /// over UDP. If there are more, the agents with the most octets are disconnected.
    pub backlog: usize,
    /// Maximum time for which an agent may leave its queued octets unread.
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
    /// Open files besides connections: listeners, journal, packet filter and the like.
    const OTHER_FILES: u64 = 64;
    /// Octets of answers that end a turn, so that other agents need not wait longer.
    const MAX_TURN_OCTETS: usize = 1 << 20;
    /// The work after which a turn ends and its requests are answered, in units of about a nanosecond.
    ///
    /// The last request may add the maximum elements of a rule, which take 5.1 ms. Thus a turn costs at most
    /// 10 ms, unless its last request exchanges as many elements (a new lifetime), is compared with 50,000
    /// disable rules, or is announced to 8,000 sessions.
    pub(crate) const TURN_WORK: u64 = 4_700_000;
    /// The work of one agent before other agents get their turn, in the same units.
    pub(crate) const AGENT_SHARE: u64 = 1_000_000;
    /// Minimum of `agent_backlog`: half of it holds the longest list, which is the longest reply.
    pub(crate) const MIN_AGENT_BACKLOG: u64 = 2 << 16;

    /// Returns the number of octets of answers after which a turn ends. The other half of `agent_backlog` holds
    /// the longest answer and notifications, so no agent is disconnected for the volume of its own requests.
    pub(crate) fn turn_octets(&self) -> usize {
        (self.agent_backlog / 2).min(Self::MAX_TURN_OCTETS)
    }

    /// Raises the limit of open files to the maximum. Fails if that is too low for the connections and the
    /// sockets of SCTP over UDP.
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
