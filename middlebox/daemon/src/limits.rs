//! How much others may make the daemon hold.

use std::io;

use hol_base::Duration;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{DaemonError, SetupError};

/// How much others may make the daemon hold.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at a time. One more takes the place of the oldest that has opened no session, or else waits in the
    /// kernel's queue.
    pub connections: usize,
    /// Octets that may wait for an agent that does not read them. It is heard again when none do, so these are replies
    /// of one turn, for which half of them are, and notifications.
    pub output: usize,
    /// Octets that may wait for all agents together. If more do, those for whom most waits lose their connections.
    pub backlog: usize,
    /// How long an agent may take none of what waits for it.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 10_000, output: 1 << 20, backlog: 32 << 20, patience: Duration::from_secs(60) }
    }
}

impl Limits {
    /// Files that are open beside the connections: listeners, journal, packet filter and the like.
    const OTHER_FILES: u64 = 64;
    /// The others shall not wait longer than it takes to write so many octets.
    const LONGEST_TURN: usize = 1 << 20;
    /// What a turn may cost before those who have asked in it are answered, in units of about a nanosecond; and how much of
    /// that one agent may use before others are heard.
    pub(crate) const TURN_WORK: u64 = 10_000_000;
    pub(crate) const SHARE: u64 = 1_000_000;
    /// The least `output`: half of it has room for the longest list, which is the longest reply.
    pub(crate) const LEAST_OUTPUT: u64 = 2 << 16;

    /// Octets of answers that are enough for a turn. The other half of `output` has room for the longest answer, and for
    /// notifications: so nobody is given up for what was asked at once, however much that is.
    pub(crate) fn turn(&self) -> usize {
        (self.output / 2).min(Self::LONGEST_TURN)
    }

    /// Raises the number of files that the process may have open to the most that it may ask for. An error if the
    /// connections may be more.
    pub(crate) fn within_open_files(self) -> Result<Self, DaemonError> {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).map_err(io::Error::from)?;
        let (connections, files) = (self.connections, maximum.unwrap_or(u64::MAX));
        let needed = (connections as u64).saturating_add(Self::OTHER_FILES);
        if needed <= files {
            return Ok(self);
        }
        let most = files.saturating_sub(Self::OTHER_FILES);
        Err(SetupError::TooFewFiles { connections, files, needed, most }.into())
    }
}
