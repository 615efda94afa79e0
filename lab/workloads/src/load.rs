//! Load generation: when messages are due. One open loop and two closed loops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hol_base::{Duration, Frequency, Rng, Seed, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::exchanges::Exchanges;
use crate::{ENDLESS, OnwardClient, WorkloadError};

/// Settings of a workload that sends messages on a schedule: keys of `[workload]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Load {
    /// Message rate of each source. Default 100/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Frequency>,
    /// Time between messages, instead of `rate`; `"0s"`: as fast as the transport accepts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// Distribution of message intervals. Default `"periodic"`; for rpc `"poisson"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Number of sources, which send at the same times, each at `rate`. Default 1.
    #[serde(skip_serializing_if = "is_one")]
    pub sources: u16,
    /// Abort the run if a due message waits longer than this until the transport accepts it. A run ends at
    /// the latest this long (or 120 s if that is longer) after its last message was due. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_limit: Option<Duration>,
}

/// Distribution of the intervals between messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Intervals between messages are equal.
    #[default]
    Periodic,
    /// Intervals between messages are exponentially distributed: arrivals are a Poisson process.
    Poisson,
}

/// What makes the next message of a workload due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Time alone makes messages due, at this interval: an open loop.
    Interval(Duration),
    /// A message is due when the transport has accepted the previous one: a greedy sender.
    Accepted,
    /// A message is due when the reply to the previous one has arrived: a closed loop.
    Replied,
}

impl Default for Load {
    fn default() -> Self {
        Self { rate: None, interval: None, arrivals: None, sources: 1, late_limit: None }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_one(number: &u16) -> bool {
    *number == 1
}

impl Load {
    /// The names of the keys that all workloads with a schedule have.
    pub(crate) const KEYS: [&'static str; 5] = ["rate", "interval", "arrivals", "sources", "late_limit"];

    /// Returns what makes the next message of the workload due.
    pub fn pace(&self) -> Pace {
        const DEFAULT_INTERVAL: Duration = Duration::from_millis(10);
        match self.interval {
            Some(Duration::ZERO) => Pace::Accepted,
            Some(interval) => Pace::Interval(interval),
            None => Pace::Interval(self.rate.map_or(DEFAULT_INTERVAL, Frequency::period)),
        }
    }

    /// Returns the message rate of each source; `None` if the transport sets the pace.
    pub fn rate(&self) -> Option<Frequency> {
        match (self.pace(), self.rate) {
            (Pace::Interval(_), Some(rate)) => Some(rate),
            (Pace::Interval(interval), None) => Frequency::new(1.0 / interval.as_secs_f64()),
            (Pace::Accepted | Pace::Replied, _) => None,
        }
    }

    /// Returns the distribution of the intervals between messages.
    pub fn arrivals(&self) -> Arrivals {
        self.arrivals.unwrap_or_default()
    }

    /// Replaces each missing key by its default.
    pub(crate) fn set_defaults(&mut self) {
        self.arrivals = self.rate().map(|_| self.arrivals());
        self.rate = self.rate().filter(|_| self.interval.is_none());
    }

    /// Returns an error if keys contradict each other.
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        let greedy = self.pace() == Pace::Accepted;
        match self {
            Self { rate: Some(_), interval: Some(_), .. } => Err(WorkloadError::RateAndInterval),
            Self { arrivals: Some(_), .. } if greedy => Err(WorkloadError::Paced("arrivals")),
            Self { sources: 2.., .. } if greedy => Err(WorkloadError::Paced("sources")),
            Self { sources: 0, .. } => Err(WorkloadError::NoSources),
            _ => Ok(()),
        }
    }

    /// Returns the due times of `messages` messages. Random intervals derive from the run's `seed`.
    pub(crate) fn pacer(&self, messages: u64, seed: Seed) -> Pacer {
        match (self.pace(), self.arrivals()) {
            (Pace::Interval(interval), Arrivals::Periodic) => {
                Pacer::new(Gaps::Constant(interval), self.sources, messages)
            }
            (Pace::Interval(mean), Arrivals::Poisson) => {
                let rng = seed.derive("workload/arrivals").rng();
                Pacer::new(Gaps::Exponential { mean, rng }, self.sources, messages)
            }
            (pace, _) => Pacer::untimed(pace, messages),
        }
    }
}

/// The due times of messages, one after the other.
///
/// Open loop: the rate alone determines the times, so a slow transport cannot hide its delay by slowing the load down.
/// Closed loop (`pingpong`, users of `rpc`): a user's next message is due when the reply to the previous one has
/// arrived, after a think time. Greedy (`bulk`): the next message is due when the transport has accepted the previous
/// one. With several sources, each has a message due at each of these times.
#[derive(Debug)]
pub(crate) struct Pacer {
    gaps: Gaps,
    sources: u16,
    /// Number of sources whose message at the current due time has been sent.
    sources_served: u16,
    messages_left: u64,
    /// When the next message is due.
    next: Time,
    /// Time from the start after which no more messages become due; `None`: unlimited.
    max_duration: Option<Duration>,
    /// The time from which on no message is due.
    end: Time,
}

/// What determines the times between messages.
#[derive(Debug)]
enum Gaps {
    Constant(Duration),
    Exponential {
        mean: Duration,
        rng: Rng,
    },
    UntilAccepted,
    UntilReply(Users),
    /// A message is due whenever a request of a server waits for this client to send it.
    Onward(OnwardClient),
    /// Messages are due at the times of the exchanges; `done` of them have come due.
    Scripted {
        exchanges: Exchanges,
        done: u64,
    },
}

/// The users of a closed loop, who send a message after each reply.
#[derive(Debug)]
pub(crate) struct Users {
    /// Number of users.
    number: u32,
    /// The mean think time, from a reply to the next message. Think times are exponentially distributed.
    think: Duration,
    rng: Rng,
    /// When the users who are not waiting for a reply send their next messages.
    next_sends: BinaryHeap<Reverse<Time>>,
}

impl Users {
    /// Creates users who start at the same time.
    pub(crate) fn new(number: u32, think: Duration, seed: Seed) -> Self {
        Self { number, think, rng: seed.derive("workload/think").rng(), next_sends: BinaryHeap::new() }
    }

    fn next(&self) -> Time {
        self.next_sends.peek().map_or(Time::MAX, |Reverse(next)| *next)
    }

    fn think(&mut self) -> Duration {
        if self.think == Duration::ZERO {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(self.rng.exponential(self.think.as_secs_f64()))
    }
}

impl Pacer {
    /// Creates a pacer without a schedule: a message is due when the transport has accepted the previous one, or when
    /// it was answered.
    pub(crate) fn untimed(pace: Pace, messages: u64) -> Self {
        match pace {
            Pace::Replied => Self::closed(Users::new(1, Duration::ZERO, Seed(0)), messages),
            Pace::Interval(_) | Pace::Accepted => Self::new(Gaps::UntilAccepted, 1, messages),
        }
    }

    /// Creates a pacer for the users of a closed loop, who wait for replies.
    pub(crate) fn closed(users: Users, messages: u64) -> Self {
        Self::new(Gaps::UntilReply(users), 1, messages)
    }

    /// Creates a pacer that makes a message due whenever a request of a server waits for this client to send it.
    pub(crate) fn for_onward_requests(client: OnwardClient) -> Self {
        Self::new(Gaps::Onward(client), 1, ENDLESS)
    }

    /// Creates a pacer with messages due at given times.
    pub(crate) fn scripted(exchanges: Exchanges, messages: u64) -> Self {
        Self::new(Gaps::Scripted { exchanges, done: 0 }, 1, messages)
    }

    /// Creates a pacer of `messages` messages, none due before the start.
    fn new(gaps: Gaps, sources: u16, messages: u64) -> Self {
        Self {
            gaps,
            sources,
            sources_served: 0,
            messages_left: messages,
            next: Time::MAX,
            max_duration: None,
            end: Time::MAX,
        }
    }

    /// Returns the pacer with this limit on the time from its start to the last due message.
    pub(crate) fn with_max_duration(self, max_duration: Option<Duration>) -> Self {
        Self { max_duration, ..self }
    }

    /// Makes no more messages due once the maximum time has passed.
    pub(crate) fn stop_at_end(&mut self, now: Time) {
        if now >= self.end {
            (self.messages_left, self.next) = (0, Time::MAX);
        }
    }

    /// Starts the load. The first message is due one interval from now, or now if no interval determines the due times.
    pub(crate) fn start(&mut self, now: Time) {
        if let Gaps::UntilReply(users) = &mut self.gaps {
            for _ in 0..users.number {
                // The first message of a lone user without pauses is due at once.
                let after = users.think();
                users.next_sends.push(Reverse(now + after));
            }
        }
        self.next = if self.messages_left == 0 { Time::MAX } else { self.due_after(now) };
        self.end = self.max_duration.map_or(Time::MAX, |duration| now + duration);
    }

    /// Returns the number of messages that have not come due yet.
    pub(crate) fn messages_left(&self) -> u64 {
        self.messages_left
    }

    /// Returns when the next message is due; [`Time::MAX`] if that is not known, or if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        match &self.gaps {
            Gaps::Onward(client) if !client.is_due() => Time::MAX,
            _ => self.next,
        }
    }

    /// Returns whether the next message comes due only after a reply, so that the run stalls if no reply arrives.
    pub(crate) fn waits_for_reply(&self) -> bool {
        self.messages_left > 0 && self.next == Time::MAX
    }

    /// Returns when the message that is due at `now` was due, and advances to the next message. After each source has
    /// sent, the next message is due one interval later.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        self.messages_left -= 1;
        // If the transport sets the pace, a message is due when the last one was accepted.
        let due = if matches!(self.gaps, Gaps::UntilAccepted) { now } else { self.next };
        if let Gaps::Onward(client) = &mut self.gaps {
            client.take_request();
            return now;
        }
        self.sources_served = (self.sources_served + 1) % self.sources;
        if let Gaps::UntilReply(users) = &mut self.gaps {
            users.next_sends.pop();
        }
        self.next = match self.sources_served {
            _ if self.messages_left == 0 => Time::MAX,
            0 => self.due_after(due),
            _ => due,
        };
        due
    }

    /// Returns when the message after the one at `due` is due.
    fn due_after(&mut self, due: Time) -> Time {
        match &self.gaps {
            Gaps::UntilReply(users) => users.next(),
            _ => due + self.gap(),
        }
    }

    /// Skips the next `messages` messages, which never come due.
    pub(crate) fn skip(&mut self, messages: u64) {
        self.messages_left = self.messages_left.saturating_sub(messages);
    }

    /// Returns whether messages can be sent late, which is possible only if they are due at given times.
    pub(crate) fn is_open_loop(&self) -> bool {
        !matches!(self.gaps, Gaps::UntilAccepted | Gaps::UntilReply(_))
    }

    /// Handles the reply to a message, which may make a message of a closed loop due.
    pub(crate) fn on_reply(&mut self, now: Time, number: u32) {
        match &mut self.gaps {
            Gaps::UntilReply(users) if self.messages_left > 0 => {
                let after = users.think();
                users.next_sends.push(Reverse(now + after));
                self.next = users.next();
            }
            Gaps::Onward(client) => client.on_reply(number),
            _ => (),
        }
    }

    fn gap(&mut self) -> Duration {
        match &mut self.gaps {
            Gaps::Constant(gap) => *gap,
            Gaps::Exponential { mean, rng } => Duration::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Gaps::Scripted { exchanges, done } => {
                let before = done.checked_sub(1).map_or(Duration::ZERO, |last| exchanges.due_time(last));
                *done += 1;
                exchanges.due_time(*done - 1).saturating_sub(before)
            }
            Gaps::UntilAccepted | Gaps::UntilReply(_) | Gaps::Onward(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_a_load_is_listed() {
        let load = Load {
            rate: Frequency::new(1.0),
            interval: Some(Duration::ZERO),
            arrivals: Some(Arrivals::Poisson),
            sources: 2,
            late_limit: Some(Duration::ZERO),
        };
        let json = serde_json::to_value(&load).expect("it is plain data");
        let keys: Vec<&str> = json.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        let mut listed = Load::KEYS.to_vec();
        listed.sort_unstable();
        assert_eq!(keys, listed);
    }

    fn due_times(arrivals: Arrivals, rate: f64, count: u64) -> Vec<Time> {
        let load = Load { rate: Frequency::new(rate), arrivals: Some(arrivals), ..Load::default() };
        let mut pacer = load.pacer(count, Seed(2));
        pacer.start(Time::from_millis(20));
        let due = (0..count).map(|_| pacer.advance(Time::ZERO)).collect();
        assert_eq!(pacer.next(), Time::MAX);
        due
    }

    #[test]
    fn periodic_messages_start_one_period_after_the_connection() {
        let expected = [30, 40, 50].map(Time::from_millis);
        assert_eq!(due_times(Arrivals::Periodic, 100.0, 3), expected);
    }

    #[test]
    fn synchronous_sources_send_at_the_same_times() {
        let mut pacer = Load { sources: 2, ..Load::default() }.pacer(5, Seed(2));
        pacer.start(Time::ZERO);
        let due: Vec<Time> = (0..5).map(|_| pacer.advance(Time::ZERO)).collect();
        assert_eq!(due, [10, 10, 20, 20, 30].map(Time::from_millis));
        assert_eq!(pacer.next(), Time::MAX);
    }

    #[test]
    fn poisson_gaps_have_their_mean_and_their_deviation() {
        let due = due_times(Arrivals::Poisson, 200.0, 100_000);
        let gaps: Vec<f64> = due.windows(2).map(|pair| pair[1].since(pair[0]).as_millis_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 5.0).abs() < 0.05 && (variance.sqrt() - 5.0).abs() < 0.1, "{mean} {variance}");
    }

    #[test]
    fn greedy_message_is_due_when_the_transport_has_room() {
        let mut pacer = Pacer::untimed(Pace::Accepted, 3);
        pacer.start(Time::from_millis(1));
        let due = [1, 1, 8].map(|ms| pacer.advance(Time::from_millis(ms)));
        assert_eq!((due, pacer.next()), ([1, 1, 8].map(Time::from_millis), Time::MAX));
    }

    #[test]
    fn a_closed_loop_waits_for_the_reply() {
        let mut pacer = Pacer::untimed(Pace::Replied, 2);
        pacer.start(Time::from_millis(1));
        assert_eq!(pacer.next(), Time::from_millis(1));
        pacer.advance(Time::ZERO);
        assert_eq!(pacer.next(), Time::MAX);
        pacer.on_reply(Time::from_millis(5), 0);
        assert_eq!(pacer.next(), Time::from_millis(5));
        pacer.advance(Time::ZERO);
        pacer.on_reply(Time::from_millis(9), 1);
        assert_eq!(pacer.next(), Time::MAX);
    }

    #[test]
    fn interval_sets_the_rate_and_zero_leaves_it_to_the_transport() {
        let every = |interval| Load { interval: Some(interval), ..Load::default() };
        let (twenty, none) = (every(Duration::from_millis(20)), every(Duration::ZERO));
        assert_eq!((twenty.rate(), none.rate()), (Frequency::new(50.0), None));
        for mut load in [twenty.clone(), none.clone()] {
            load.set_defaults();
            assert_eq!(load.check(), Ok(()));
        }
        let both = Load { rate: Frequency::new(50.0), ..twenty };
        assert_eq!(both.check(), Err(WorkloadError::RateAndInterval));
        let poisson = Load { arrivals: Some(Arrivals::Poisson), ..none };
        assert_eq!(poisson.check(), Err(WorkloadError::Paced("arrivals")));
        assert_eq!(Load { sources: 2, ..none }.check(), Err(WorkloadError::Paced("sources")));
        assert_eq!(Load { sources: 0, ..twenty }.check(), Err(WorkloadError::NoSources));
    }
}
