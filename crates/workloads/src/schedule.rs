//! When messages are due: the load generator's clock.

use hol_base::{Duration, Rng, Time};

use crate::spec::Pace;
use crate::{Arrivals, WorkloadSpec};

/// The due time of one message after the other.
///
/// Open loop: the times are fixed by the rate alone, whatever the transport does, so a slow transport cannot
/// hide its delay by slowing the load down. Closed loop (`pingpong`): the next is due when the reply came. Greedy
/// (`bulk`): the next is due when the transport has taken the last. Several sources keep step: as many messages are
/// due at a time.
#[derive(Debug)]
pub(crate) struct Schedule {
    gaps: Gaps,
    sources: u16,
    /// How many of them have had their message of this step.
    served: u16,
    left: u64,
    next: Time,
}

#[derive(Debug)]
enum Gaps {
    Constant(Duration),
    Exponential { mean: Duration, rng: Rng },
    UntilTaken,
    UntilReply,
}

impl Schedule {
    /// A schedule of `messages` messages that has not started.
    pub(crate) fn new(spec: &WorkloadSpec, messages: u64, rng: Rng) -> Self {
        let gaps = match (spec.pace(), spec.arrivals()) {
            (Pace::Replied, _) => Gaps::UntilReply,
            (Pace::Taken, _) => Gaps::UntilTaken,
            (Pace::Every(interval), Arrivals::Periodic) => Gaps::Constant(interval),
            (Pace::Every(mean), Arrivals::Poisson) => Gaps::Exponential { mean, rng },
        };
        Self { gaps, sources: spec.sources, served: 0, left: messages, next: Time::MAX }
    }

    /// The first message is due one gap from now; now, if not time alone makes it due.
    pub(crate) fn start(&mut self, now: Time) {
        self.next = if self.left == 0 { Time::MAX } else { now + self.gap() };
    }

    /// How many messages have not come due.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// When the next message is due; [`Time::MAX`] if none is.
    pub(crate) fn next(&self) -> Time {
        self.next
    }

    /// The message that is due is made at `now`; returns when it was due. When each source has had its own, the next is
    /// due a gap after it was.
    pub(crate) fn advance(&mut self, now: Time) -> Time {
        self.left -= 1;
        // Who asks at the transport's pace asks when the last message has been taken.
        let due = if matches!(self.gaps, Gaps::UntilTaken) { now } else { self.next };
        self.served = (self.served + 1) % self.sources;
        self.next = match self.gaps {
            Gaps::UntilReply => Time::MAX,
            _ if self.left == 0 => Time::MAX,
            _ if self.served > 0 => due,
            _ => due + self.gap(),
        };
        due
    }

    /// Whether messages can be late: only what time makes due.
    pub(crate) fn is_open_loop(&self) -> bool {
        matches!(self.gaps, Gaps::Constant(_) | Gaps::Exponential { .. })
    }

    /// A reply came.
    pub(crate) fn replied(&mut self, now: Time) {
        if matches!(self.gaps, Gaps::UntilReply) && self.left > 0 {
            self.next = now;
        }
    }

    fn gap(&mut self) -> Duration {
        match &mut self.gaps {
            Gaps::Constant(gap) => *gap,
            Gaps::Exponential { mean, rng } => Duration::from_secs_f64(rng.exponential(mean.as_secs_f64())),
            Gaps::UntilTaken | Gaps::UntilReply => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use hol_base::{Frequency, Seed};

    fn due_times(arrivals: Arrivals, rate: f64, count: u64) -> Vec<Time> {
        let spec = WorkloadSpec {
            rate: Frequency::new(rate),
            arrivals: Some(arrivals),
            ..WorkloadSpec::new(Kind::Oneway)
        };
        let mut schedule = Schedule::new(&spec, count, Seed(2).rng());
        schedule.start(Time::from_millis(20));
        let due = (0..count).map(|_| schedule.advance(Time::ZERO)).collect();
        assert_eq!(schedule.next(), Time::MAX);
        due
    }

    #[test]
    fn periodic_messages_start_one_period_after_the_connection() {
        let expected = [30, 40, 50].map(Time::from_millis);
        assert_eq!(due_times(Arrivals::Periodic, 100.0, 3), expected);
    }

    #[test]
    fn sources_in_step_have_a_message_due_each_at_a_time() {
        let spec = WorkloadSpec { sources: 2, ..WorkloadSpec::new(Kind::Oneway) };
        let mut schedule = Schedule::new(&spec, 5, Seed(2).rng());
        schedule.start(Time::ZERO);
        let due: Vec<Time> = (0..5).map(|_| schedule.advance(Time::ZERO)).collect();
        assert_eq!(due, [10, 10, 20, 20, 30].map(Time::from_millis));
        assert_eq!(schedule.next(), Time::MAX);
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
    fn at_the_transports_pace_a_message_is_due_when_it_is_asked_for() {
        let mut schedule = Schedule::new(&WorkloadSpec::new(Kind::Bulk), 3, Seed(2).rng());
        schedule.start(Time::from_millis(1));
        let due = [1, 1, 8].map(|ms| schedule.advance(Time::from_millis(ms)));
        assert_eq!((due, schedule.next()), ([1, 1, 8].map(Time::from_millis), Time::MAX));
    }

    #[test]
    fn a_closed_loop_waits_for_the_reply() {
        let mut schedule = Schedule::new(&WorkloadSpec::new(Kind::Pingpong), 2, Seed(2).rng());
        schedule.start(Time::from_millis(1));
        assert_eq!(schedule.next(), Time::from_millis(1));
        schedule.advance(Time::ZERO);
        assert_eq!(schedule.next(), Time::MAX);
        schedule.replied(Time::from_millis(5));
        assert_eq!(schedule.next(), Time::from_millis(5));
        schedule.advance(Time::ZERO);
        schedule.replied(Time::from_millis(9));
        assert_eq!(schedule.next(), Time::MAX);
    }
}
