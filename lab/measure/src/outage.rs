//! The cost of an event on the path: the time without a delivery, and the backlog of messages that were late
//! because of the event.

use hol_base::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::{Distribution, Record, Recorder, nanoseconds};

/// Maximum number of messages that are examined after the first event.
const MAX_MESSAGES: usize = 1 << 22;

/// Number of messages after an event that must be on time, with no late message before them, to conclude that the
/// event made no message late.
const ON_TIME_MESSAGES: u32 = 10;

/// Number of messages before the event in a drawing of response times.
const MESSAGES_BEFORE: usize = 64;
/// Number of equal parts into which a drawing of response times divides the time until the end of the backlog.
const PARTS_TO_RECOVERY: u64 = 256;
/// The factor by which, after the end of the backlog, each part of a drawing is longer than the previous part.
const PART_GROWTH: f64 = 1.05;

/// The effect of an event on the application.
///
/// A silence is a time without a delivery. The usual response time and the usual silence are those that 99 of 100 did
/// not exceed before the run's first event. A silence is long if it exceeds two usual silences plus the usual response
/// time.
///
/// A message is late because of the event if it never arrived, if it had already taken longer than usual when a long
/// silence ended, or if it took longer than usual and more than twice as long as the fastest message after this event.
/// So a path that is merely longer makes no message late. The late messages are the backlog. It ends with a message on
/// time that was due after the last late message had been delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// Time of the event, since the start of the run.
    #[serde(rename = "at_ns", with = "nanoseconds")]
    pub at: Duration,
    /// Start of the longest silence: the time of the last delivery before it.
    #[serde(rename = "since_ns", with = "nanoseconds")]
    pub since: Duration,
    /// Longest silence: the longest time without a delivery that ended after the event and began before the
    /// end of the backlog.
    #[serde(rename = "longest_ns", with = "nanoseconds")]
    pub longest: Duration,
    /// Whether anything was delivered after the longest silence; otherwise the silence lasted until the run ended.
    pub is_over: bool,
    /// Number of late messages, which are the backlog.
    pub late: u64,
    /// Number of late messages that were never delivered.
    pub lost: u64,
    /// Time from the event until the first late message was delivered; `None` if no late message was.
    #[serde(rename = "first_ns", with = "nanoseconds::optional")]
    pub first: Option<Duration>,
    /// Time from the event until the last late message was delivered; `None` if no late message was, or if the outage
    /// lasted until the run ended.
    #[serde(rename = "last_ns", with = "nanoseconds::optional")]
    pub last: Option<Duration>,
}

/// The response times around the first event of a run, for a drawing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OutageCurve {
    /// For each message: when it was due, in ns since the event, and its response time in ns; `None` if it never
    /// arrived.
    pub messages: Vec<(i64, Option<u64>)>,
}

/// A message that had not been delivered when the first event happened.
#[derive(Debug, Clone, Copy)]
struct PendingMessage {
    /// When the message was due.
    scheduled: Time,
    /// When the message was delivered; `None` if it never was.
    delivered: Option<Time>,
}

impl PendingMessage {
    fn response_time(&self) -> Option<Duration> {
        self.delivered.map(|delivered| delivered.saturating_since(self.scheduled))
    }
}

/// Finds the outages of a run from records that are added one by one.
#[derive(Debug, Default)]
pub struct OutagesBuilder {
    /// Times of the events, in ascending order.
    events: Vec<Time>,
    latencies_before: Recorder,
    /// The times between successive deliveries before the first event.
    silences: Recorder,
    /// The last messages before the first event: when each was due, and its response time.
    messages_before: std::collections::VecDeque<(Time, Duration)>,
    /// Time of the last delivery before the first event.
    last_delivery: Option<Time>,
    messages_after: Vec<PendingMessage>,
}

impl OutagesBuilder {
    /// Creates a builder for a run with events at these times.
    pub fn new(mut events: Vec<Time>) -> Self {
        events.sort();
        Self { events, ..Self::default() }
    }

    /// Adds the next message, in the order of the schedule.
    pub fn add(&mut self, record: &Record) {
        let Some(first) = self.events.first() else { return };
        let due = record.scheduled;
        match record.latency() {
            Some(latency) if due + latency <= *first => {
                self.latencies_before.count_completed(latency);
                if let Some(last) = self.last_delivery.filter(|last| *last < due + latency) {
                    self.silences.count_completed((due + latency).since(last));
                }
                self.last_delivery = self.last_delivery.max(Some(due + latency));
                if self.messages_before.len() == MESSAGES_BEFORE {
                    self.messages_before.pop_front();
                }
                self.messages_before.push_back((due, latency));
            }
            latency if self.messages_after.len() < MAX_MESSAGES => {
                self.messages_after
                    .push(PendingMessage { scheduled: due, delivered: latency.map(|latency| due + latency) });
            }
            _ => {}
        }
    }

    /// Returns the outages that the events caused in a run that ended at `ended`, and the response times around the
    /// first event. Both are empty if nothing was delivered before the first event. An event after the last message has
    /// no outage.
    pub fn finish(self, ended: Time) -> (Vec<Outage>, OutageCurve) {
        let Self {
            events,
            latencies_before: before,
            silences,
            messages_before,
            last_delivery: last,
            mut messages_after,
        } = self;
        let (Some(first), Some(last)) = (events.first().copied(), last) else { return Default::default() };
        // A message that was never due is not missing.
        messages_after.retain(|message| message.delivered.is_some() || message.scheduled <= ended);
        let mut deliveries: Vec<Time> =
            messages_after.iter().filter_map(|message| message.delivered).collect();
        deliveries.push(last);
        deliveries.sort();
        let (usual, silence) = (usual(&before.finish()), usual(&silences.finish()));
        let long = |pair: &[Time]| (pair[1].since(pair[0]) > silence + silence + usual).then_some(pair[1]);
        let ends = deliveries.windows(2).filter_map(long).collect();
        let run = RunAfterEvent { usual, ends, deliveries, messages_after, ended };
        let ends = events.iter().skip(1).copied().chain([Time::MAX]);
        let outages: Vec<Outage> =
            events.iter().zip(ends).filter_map(|(at, until)| run.outage(*at, until)).collect();
        let gone = outages.iter().filter_map(|outage| Some(outage.at + outage.last?)).max();
        let curve = run.curve(first, messages_before, gone.map_or(ended, |gone| Time::ZERO + gone));
        (outages, curve)
    }
}

/// Returns the latency that 99 of 100 messages before the event did not exceed.
fn usual(before: &Distribution) -> Duration {
    before.quantile(0.99).unwrap_or(Duration::ZERO)
}

/// The part of a run that begins with its first event.
struct RunAfterEvent {
    /// The usual response time before the first event.
    usual: Duration,
    /// Times at which long silences ended, in ascending order.
    ends: Vec<Time>,
    /// Times of deliveries, in ascending order, beginning with the last delivery before the first event.
    deliveries: Vec<Time>,
    messages_after: Vec<PendingMessage>,
    /// When the run ended.
    ended: Time,
}

/// The late messages of an event, counted.
#[derive(Default)]
struct Backlog {
    /// Number of late messages.
    late: u64,
    /// Number of late messages that were never delivered.
    lost: u64,
    first_delivery: Option<Time>,
    last_delivery: Option<Time>,
}

impl RunAfterEvent {
    /// Returns the outage caused by the event at time `at`, up to the next event at time `until`.
    fn outage(&self, at: Time, until: Time) -> Option<Outage> {
        let backlog = self.backlog(at, until);
        let is_after = |delivery: &Time| *delivery > at;
        let next = self.deliveries.iter().copied().find(is_after);
        if next.is_none() && backlog.late == 0 {
            return None;
        }
        let gone = backlog.last_delivery.max(next).unwrap_or(self.ended);
        let gaps = self.deliveries.windows(2).map(|pair| (pair[0], pair[1]));
        let gaps = gaps.filter(|(begin, end)| *end > at && *begin < gone);
        let longest = gaps.max_by_key(|(begin, end)| end.since(*begin));
        let last = self.deliveries.last().copied()?;
        // If the backlog is never delivered, and nothing after it, the outage lasts until the end.
        let is_open = backlog.lost > 0 && self.is_dead_after(last);
        let (since, end) = if is_open { (last, self.ended) } else { longest? };
        let after = |time: Time| time.saturating_since(at);
        Some(Outage {
            at: at.since(Time::ZERO),
            since: since.since(Time::ZERO),
            longest: end.saturating_since(since),
            is_over: !is_open,
            late: backlog.late,
            lost: backlog.lost,
            first: backlog.first_delivery.map(after),
            last: backlog.last_delivery.filter(|_| !is_open).map(after),
        })
    }

    /// Returns whether messages were due after the time `last` of the last delivery, but none of them arrived.
    fn is_dead_after(&self, last: Time) -> bool {
        self.messages_after.iter().any(|message| message.scheduled > last)
    }

    /// Returns whether the message was overdue when a long silence ended, and arrived at that time or later.
    fn was_overdue(&self, message: &PendingMessage) -> bool {
        let next = self.ends.partition_point(|end| *end <= message.scheduled + self.usual);
        self.ends.get(next).is_some_and(|end| message.delivered.is_none_or(|delivered| *end <= delivered))
    }

    fn backlog(&self, at: Time, until: Time) -> Backlog {
        // A message that was already overdue at the event and never arrived was lost before, perhaps because of an earlier event.
        let touched = |message: &&PendingMessage| {
            message.scheduled < until
                && message.delivered.map_or(message.scheduled + self.usual > at, |delivered| delivered > at)
        };
        let fastest =
            self.messages_after.iter().filter(|message| message.scheduled > at && message.scheduled < until);
        let fastest = fastest.filter_map(PendingMessage::response_time).min().unwrap_or(Duration::ZERO);
        let usual = self.usual.max(fastest + fastest);
        let mut backlog = Backlog::default();
        let (mut on_time, mut end) = (0, at);
        for message in self.messages_after.iter().filter(touched) {
            match message.response_time() {
                Some(took) if took <= usual && !self.was_overdue(message) => {
                    on_time += u32::from(message.scheduled > at);
                    if backlog.late == 0 && on_time == ON_TIME_MESSAGES
                        || backlog.late > 0 && message.scheduled > end
                    {
                        break;
                    }
                }
                _ => {
                    backlog.late += 1;
                    backlog.lost += u64::from(message.delivered.is_none());
                    end = end.max(message.delivered.unwrap_or(message.scheduled));
                    let times = [backlog.first_delivery, message.delivered];
                    backlog.first_delivery = times.into_iter().flatten().min();
                    backlog.last_delivery = backlog.last_delivery.max(message.delivered);
                }
            }
        }
        backlog
    }

    /// Returns the messages to draw: all messages before the event and, from each part of the time after it, the
    /// slowest message. A message that never arrived counts as the slowest.
    fn curve(
        &self,
        first: Time,
        messages_before: impl IntoIterator<Item = (Time, Duration)>,
        gone: Time,
    ) -> OutageCurve {
        let since = |due: Time| due.as_nanos() as i64 - first.as_nanos() as i64;
        let before = messages_before.into_iter().map(|(due, took)| (since(due), Some(took.as_nanos())));
        let mut messages: Vec<(i64, Option<u64>)> = before.collect();
        let part = (gone.saturating_since(first).as_nanos() / PARTS_TO_RECOVERY).max(1);
        let place = |due: i64| match (due / part as i64) as u64 {
            // After the backlog, the parts grow.
            at if at >= PARTS_TO_RECOVERY => {
                PARTS_TO_RECOVERY + ((at as f64 / PARTS_TO_RECOVERY as f64).ln() / PART_GROWTH.ln()) as u64
            }
            at => at,
        };
        let mut at = None;
        for message in &self.messages_after {
            let one = (since(message.scheduled), message.response_time().map(Duration::as_nanos));
            let own = (one.0 >= 0).then(|| place(one.0));
            let is_slower =
                |last: &(i64, Option<u64>)| one.1.is_none_or(|took| last.1.is_some_and(|l| took > l));
            match messages.last_mut() {
                Some(last) if own.is_some() && own == at => {
                    if is_slower(last) {
                        *last = one;
                    }
                }
                _ => messages.push(one),
            }
            at = own;
        }
        OutageCurve { messages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Outcome, RecordKind, TransferTimes};

    /// Returns a message due at `due` ms with a response time of `took` ms.
    fn message(due: u64, took: Option<u64>) -> Record {
        let at = Time::from_millis(due);
        let leg = |ms| TransferTimes { delivered: Time::from_millis(due + ms), ..TransferTimes::default() };
        Record {
            id: 0,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 64,
            reply_size: 0,
            scheduled: at,
            request: took.map(leg),
            reply: None,
            outcome: if took.is_some() { Outcome::Completed } else { Outcome::Unfinished },
        }
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Sends a message every 50 ms, which takes 40 ms; `of` returns the response time of a message after the event at 1 s.
    fn outages(events: &[u64], of: impl Fn(u64) -> Option<u64>) -> (Vec<Outage>, OutageCurve) {
        let mut outages = OutagesBuilder::new(events.iter().map(|at| Time::from_millis(*at)).collect());
        for due in (0..200).map(|count| 50 * count) {
            outages.add(&message(due, if due + 40 <= 1000 { Some(40) } else { of(due) }));
        }
        outages.finish(Time::from_millis(20_000))
    }

    #[test]
    fn outage_ends_at_the_next_delivery_and_backlog_at_the_last_late_one() {
        // Messages due from 1000 ms to 2000 ms arrive over a path that is 20 ms longer, one per ms from 2000 ms on.
        let of = |due: u64| Some(if due < 2000 { 2000 + (due - 1000) / 50 - due } else { 60 });
        let (all, curve) = outages(&[1000], of);
        let expected = Outage {
            at: ms(1000),
            since: ms(990),
            longest: ms(1010),
            is_over: true,
            late: 20,
            lost: 0,
            first: Some(ms(1000)),
            last: Some(ms(1019)),
        };
        assert_eq!(all, [expected], "those due in the last 40 ms are not late");
        assert!(curve.messages.iter().any(|(due, took)| (*due, *took) == (0, Some(1_000_000_000))));
        assert!(curve.messages.iter().any(|(due, _)| *due < 0), "and something before the event");
    }

    /// New messages are sent on the dead path until the transport gives it up; each timeout is twice as long as the one before.
    #[test]
    fn outage_with_several_gaps_is_the_longest_gap() {
        let ends = [2000, 4000, 8000];
        let of = |due: u64| Some(ends.into_iter().find(|end| due < *end).map_or(60, |end| end + 60 - due));
        let (all, _) = outages(&[1000], of);
        assert_eq!((all[0].longest, all[0].since), (ms(4000), ms(4060)));
        assert_eq!((all[0].first, all[0].last), (Some(ms(1060)), Some(ms(7060))));
        assert!(all[0].late > 130, "{all:?}");
    }

    /// The run ends before the last timeout, so no message after the event is as fast as before: that is no evidence of a slower path.
    #[test]
    fn backlog_that_lasts_until_the_end_of_the_run_counts() {
        let ends = [2000, 4000, 8000, 16_000];
        let of = |due: u64| Some(ends.into_iter().find(|end| due < *end).map_or(60, |end| end + 60 - due));
        let (all, _) = outages(&[1000], |due| of(due).map(|took| took + 8000));
        assert!(all[0].late > 170, "{all:?}");
    }

    #[test]
    fn outage_without_later_delivery_lasts_until_the_end() {
        let (all, curve) = outages(&[1000], |_| None);
        assert_eq!((all[0].is_over, all[0].longest, all[0].late), (false, ms(19_010), 180));
        assert_eq!((all[0].lost, all[0].first, all[0].last), (180, None, None));
        assert!(curve.messages.iter().any(|(_, took)| took.is_none()));
    }

    #[test]
    fn datagrams_lost_in_an_outage_count_as_lost_backlog() {
        let (all, _) = outages(&[1000], |due| (due >= 3000).then_some(40));
        let Outage { longest, is_over, late, lost, first, .. } = all[0];
        assert_eq!((longest, is_over, late, lost, first), (ms(2050), true, 40, 40, None));
    }

    #[test]
    fn event_without_effect_has_no_backlog() {
        // The path is three times as long afterwards, and much later a message is lost.
        let of = |due: u64| Some(if due == 9000 { 900 } else { 120 });
        let (all, _) = outages(&[1000], of);
        assert_eq!((all[0].late, all[0].last), (0, None));
        assert_eq!(all[0].longest, ms(130), "from the last of the short path to the first of the long one");
    }

    #[test]
    fn each_event_has_its_own_outage() {
        let of = |due: u64| {
            let gone = [(1000, 1500), (4000, 6000)];
            Some(
                gone.iter()
                    .find(|(begin, end)| due >= *begin && due < *end)
                    .map_or(40, |(_, end)| end + 40 - due),
            )
        };
        let (all, _) = outages(&[4000, 1000], of);
        let seen: Vec<_> = all.iter().map(|outage| (outage.at, outage.longest)).collect();
        assert_eq!(seen, [(ms(1000), ms(550)), (ms(4000), ms(2050))]);
    }

    #[test]
    fn message_that_never_arrives_is_lost_because_of_one_event() {
        let (all, _) = outages(&[1000, 4000, 9000, 15_000], |_| None);
        let seen: Vec<_> = all.iter().map(|outage| (outage.at, outage.late, outage.lost)).collect();
        assert_eq!(seen, [(ms(1000), 60, 60), (ms(4000), 100, 100), (ms(9000), 20, 20)]);
        // Datagrams that the path loses at random, before and after.
        let (all, _) = outages(&[4000], |due| (due % 1000 != 800).then_some(40));
        assert_eq!((all[0].late, all[0].lost), (0, 0));
    }

    #[test]
    fn no_outage_without_an_earlier_delivery_or_a_later_message() {
        assert_eq!(outages(&[10], |_| Some(40)).0, []);
        assert_eq!(outages(&[15_000], |_| Some(40)).0, []);
        assert_eq!(outages(&[], |_| Some(40)).0, []);
    }
}
