//! Session setups: a message on each connection before the first message of the workload. The server must
//! reply to it.

use std::collections::BTreeSet;

use hol_base::{Duration, Time};

use crate::ConnectionId;

/// The session setups that have not been answered. On an unreliable transport each is repeated after one second, then
/// after two, four and so on (RFC 8085 section 3.1.1).
#[derive(Debug)]
pub(crate) struct SessionSetups {
    /// Maximum number of attempts per connection.
    max_attempts: u32,
    /// The number of the current attempt, from 0.
    attempt: u32,
    /// Connections on which the setup of the current attempt has not been sent.
    unsent: BTreeSet<u32>,
    unanswered: BTreeSet<u32>,
    /// When the setups that have not been answered are repeated.
    repeat_at: Time,
}

impl SessionSetups {
    const FIRST_TIMEOUT: Duration = Duration::from_secs(1);

    /// Creates an empty set. Each setup will be sent at most `max_attempts` times.
    pub(crate) fn new(max_attempts: u32) -> Self {
        let (unsent, unanswered) = (BTreeSet::new(), BTreeSet::new());
        Self { max_attempts, attempt: 0, unsent, unanswered, repeat_at: Time::MAX }
    }

    /// Starts the setup of sessions on this many connections.
    pub(crate) fn start(&mut self, now: Time, connections: u32) {
        self.unanswered = (0..connections).collect();
        self.make_due(now);
    }

    fn make_due(&mut self, now: Time) {
        self.unsent.clone_from(&self.unanswered);
        let is_last = self.attempt + 1 >= self.max_attempts;
        self.repeat_at = if is_last { Time::MAX } else { now + Self::FIRST_TIMEOUT * (1 << self.attempt) };
    }

    /// Returns the connection on which to send the next setup, and the number of earlier attempts; `None` if none is
    /// due.
    pub(crate) fn next(&mut self, now: Time) -> Option<(ConnectionId, u32)> {
        if now >= self.repeat_at && !self.unanswered.is_empty() {
            self.attempt += 1;
            self.make_due(now);
        }
        self.unsent.pop_first().map(|connection| (ConnectionId(connection), self.attempt))
    }

    /// Returns when the setups that have not been answered are repeated.
    pub(crate) fn repeat_time(&self) -> Time {
        if self.unanswered.is_empty() { Time::MAX } else { self.repeat_at }
    }

    /// Handles the reply to the setup on a connection; returns whether all setups have been answered now.
    pub(crate) fn on_reply(&mut self, ConnectionId(connection): ConnectionId) -> bool {
        self.unsent.remove(&connection);
        self.unanswered.remove(&connection) && self.unanswered.is_empty()
    }

    /// Returns whether a refusal must mean that the session is already open, because the reply to an earlier setup was
    /// lost.
    pub(crate) fn is_open_already(&self, ConnectionId(connection): ConnectionId) -> bool {
        self.attempt > 0 || !self.unanswered.contains(&connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_millis(1000 * secs)
    }

    fn sent(setups: &mut SessionSetups, now: Time) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| setups.next(now)).map(|(connection, attempt)| (connection.0, attempt)).collect()
    }

    /// The first repetition is after one second, and later intervals grow exponentially. RFC 8085 section 3.1.1.
    #[test]
    fn unanswered_setup_is_repeated_with_exponential_backoff() {
        let mut setups = SessionSetups::new(4);
        setups.start(secs(10), 2);
        assert_eq!(sent(&mut setups, secs(10)), [(0, 0), (1, 0)]);
        assert_eq!(setups.repeat_time(), secs(11));
        assert!(!setups.on_reply(ConnectionId(0)) && !setups.is_open_already(ConnectionId(1)));
        assert_eq!(sent(&mut setups, secs(11)), [(1, 1)]);
        assert_eq!((sent(&mut setups, secs(12)), setups.repeat_time()), (vec![], secs(13)));
        assert_eq!(sent(&mut setups, secs(13)), [(1, 2)]);
        assert_eq!((sent(&mut setups, secs(17)), setups.repeat_time()), (vec![(1, 3)], Time::MAX));
        assert!(setups.on_reply(ConnectionId(1)));
        assert!(!setups.on_reply(ConnectionId(1)), "a second reply is not the last one");
    }

    #[test]
    fn setup_is_sent_once_over_a_reliable_transport() {
        let mut setups = SessionSetups::new(1);
        setups.start(secs(0), 1);
        assert_eq!((sent(&mut setups, secs(0)), setups.repeat_time()), (vec![(0, 0)], Time::MAX));
        assert_eq!(sent(&mut setups, secs(500)), []);
    }
}
