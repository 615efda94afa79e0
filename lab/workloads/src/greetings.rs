//! Greetings: messages on each connection that must be answered before the first message of the workload.

use std::collections::BTreeSet;

use hol_base::{Duration, Time};

use crate::ConnectionId;

/// The greetings without an answer. On an unreliable transport each is repeated after a second, then after
/// twice that time, and so on (RFC 8085 section 3.1.1).
#[derive(Debug)]
pub(crate) struct Greetings {
    /// Maximum attempts per greeting.
    times: u32,
    /// The current attempt, from 0.
    attempt: u32,
    /// Connections not yet greeted in this attempt.
    to_say: BTreeSet<u32>,
    unanswered: BTreeSet<u32>,
    /// When unanswered greetings are repeated.
    again: Time,
}

impl Greetings {
    const FIRST: Duration = Duration::from_secs(1);

    /// Creates an empty set; each greeting will be sent at most `times` times.
    pub(crate) fn new(times: u32) -> Self {
        let (to_say, unanswered) = (BTreeSet::new(), BTreeSet::new());
        Self { times, attempt: 0, to_say, unanswered, again: Time::MAX }
    }

    /// Makes greetings due on this many connections.
    pub(crate) fn begin(&mut self, now: Time, connections: u32) {
        self.unanswered = (0..connections).collect();
        self.say(now);
    }

    fn say(&mut self, now: Time) {
        self.to_say.clone_from(&self.unanswered);
        let is_last = self.attempt + 1 >= self.times;
        self.again = if is_last { Time::MAX } else { now + Self::FIRST * (1 << self.attempt) };
    }

    /// Returns the next connection to greet, and how often it was greeted before.
    pub(crate) fn next(&mut self, now: Time) -> Option<(ConnectionId, u32)> {
        if now >= self.again && !self.unanswered.is_empty() {
            self.attempt += 1;
            self.say(now);
        }
        self.to_say.pop_first().map(|connection| (ConnectionId(connection), self.attempt))
    }

    /// Returns when to repeat greetings if none is answered.
    pub(crate) fn due(&self) -> Time {
        if self.unanswered.is_empty() { Time::MAX } else { self.again }
    }

    /// Notes an answer; returns whether it was the last one.
    pub(crate) fn answered(&mut self, ConnectionId(connection): ConnectionId) -> bool {
        self.to_say.remove(&connection);
        self.unanswered.remove(&connection) && self.unanswered.is_empty()
    }

    /// Returns whether a refusal can only mean that an earlier greeting arrived and that the answer to it
    /// was lost.
    pub(crate) fn may_be_known(&self, ConnectionId(connection): ConnectionId) -> bool {
        self.attempt > 0 || !self.unanswered.contains(&connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Time {
        Time::from_millis(1000 * secs)
    }

    fn said(greetings: &mut Greetings, now: Time) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| greetings.next(now))
            .map(|(connection, attempt)| (connection.0, attempt))
            .collect()
    }

    /// RFC 8085 section 3.1.1: an initial second, and an exponential backoff.
    #[test]
    fn what_is_not_answered_is_said_again_after_twice_the_time() {
        let mut greetings = Greetings::new(4);
        greetings.begin(secs(10), 2);
        assert_eq!(said(&mut greetings, secs(10)), [(0, 0), (1, 0)]);
        assert_eq!(greetings.due(), secs(11));
        assert!(!greetings.answered(ConnectionId(0)) && !greetings.may_be_known(ConnectionId(1)));
        assert_eq!(said(&mut greetings, secs(11)), [(1, 1)]);
        assert_eq!((said(&mut greetings, secs(12)), greetings.due()), (vec![], secs(13)));
        assert_eq!(said(&mut greetings, secs(13)), [(1, 2)]);
        assert_eq!((said(&mut greetings, secs(17)), greetings.due()), (vec![(1, 3)], Time::MAX));
        assert!(greetings.answered(ConnectionId(1)));
        assert!(!greetings.answered(ConnectionId(1)), "a second answer is none");
    }

    #[test]
    fn over_a_reliable_transport_it_is_said_once() {
        let mut greetings = Greetings::new(1);
        greetings.begin(secs(0), 1);
        assert_eq!((said(&mut greetings, secs(0)), greetings.due()), (vec![(0, 0)], Time::MAX));
        assert_eq!(said(&mut greetings, secs(500)), []);
    }
}
