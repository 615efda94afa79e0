//! Plays a trace from a given position: converts the times of the trace to times of the run.

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::event::{EventSpec, LinkDirection};
use crate::event_rate::EventRate;
use crate::loss::LossSpec;

/// A trace that has been read, in one direction or both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TracePlayback {
    /// The direction of the link that the trace changes.
    pub(crate) direction: LinkDirection,
    /// Time of the last line of the trace file; if the trace repeats, the length of one pass.
    pub(crate) end: Duration,
    /// Number of times that a repeating trace is played; `None`: the trace is played once, and its last values stay in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rounds: Option<u64>,
    /// The changes of one pass through the trace.
    pub(crate) changes: Vec<EventSpec>,
}

impl TracePlayback {
    /// Returns the time of the last line; if the trace repeats, the length of one pass. It is the latest possible
    /// start.
    pub const fn end(&self) -> Duration {
        self.end
    }

    /// Returns the changes of one pass, with times from the beginning of the trace.
    pub fn changes(&self) -> &[EventSpec] {
        &self.changes
    }

    /// Returns the events of a run that begins at `start` of the trace. The values in force at `start` apply
    /// from the run's first packet. A trace that repeats is played for the same total time from every start,
    /// and a value that the first line of the next pass does not set remains in force. After the end of a
    /// trace that does not repeat, its last values remain in force.
    pub fn events_from(&self, start: Duration) -> Vec<EventSpec> {
        let start = match self.rounds {
            Some(_) => Duration::from_nanos(start.as_nanos() % self.end.as_nanos().max(1)),
            None => start,
        };
        // At the beginning of the trace no earlier values are in force, so its events remain as they are.
        let is_before = |event: &EventSpec| event.at <= start && !start.is_zero();
        let (before, after) = self.changes.split_at(self.changes.partition_point(is_before));
        let mut values = LinkValues::default();
        before.iter().for_each(|event| drop(values.replace(event.clone())));
        let mut events: Vec<EventSpec> = values.event(self.direction).into_iter().collect();
        let rounds = self.rounds.unwrap_or(1);
        let whole_rounds = (1..rounds).flat_map(|round| self.changes.iter().map(move |event| (round, event)));
        let last_part = before.iter().filter(|event| self.rounds.is_some() && event.at < start);
        let played = after.iter().map(|event| (0, event)).chain(whole_rounds);
        for (round, event) in played.chain(last_part.map(|event| (rounds, event))) {
            let at = event.at + self.end.saturating_mul(round) - start;
            events.extend(values.replace(EventSpec { at, ..event.clone() }));
        }
        events
    }
}

/// The values of a link that a trace has set.
#[derive(Debug, Default)]
pub(crate) struct LinkValues {
    rate: Option<EventRate>,
    delay: Option<Duration>,
    loss: Option<LossSpec>,
}

impl LinkValues {
    /// Takes over the values of an event. Returns the event without values that were in force already; `None` if it
    /// changes nothing.
    pub(crate) fn replace(&mut self, event: EventSpec) -> Option<EventSpec> {
        fn take_change<T: PartialEq + Clone>(held: &mut Option<T>, new: Option<T>) -> Option<T> {
            let new = new.filter(|new| held.as_ref() != Some(new));
            new.inspect(|new| *held = Some(new.clone()))
        }
        let (rate, delay) =
            (take_change(&mut self.rate, event.rate), take_change(&mut self.delay, event.delay));
        let loss = take_change(&mut self.loss, event.loss);
        let is_change = rate.is_some() || delay.is_some() || loss.is_some();
        is_change.then_some(EventSpec { rate, delay, loss, ..event })
    }

    /// Returns an event at the start of a run that sets all values in force; `None` if there are none.
    fn event(&self, direction: LinkDirection) -> Option<EventSpec> {
        let Self { rate, delay, ref loss } = *self;
        let event =
            EventSpec { rate, delay, loss: loss.clone(), ..EventSpec::empty(Duration::ZERO, direction) };
        (rate.is_some() || delay.is_some() || loss.is_some()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    /// Milliseconds, the rate in bit/s, the delay in ms and the loss in percent.
    type Event = (u64, Option<u64>, Option<u64>, Option<f64>);

    fn played(text: &str, start: &str) -> Vec<Event> {
        seen(&trace::read(text, LinkDirection::Down).unwrap(), start)
    }

    fn seen(trace: &TracePlayback, start: &str) -> Vec<Event> {
        let events = trace.events_from(start.parse().unwrap());
        assert!(events.iter().all(|event| event.direction == LinkDirection::Down && event.down.is_none()));
        let percent = |loss: LossSpec| match loss {
            LossSpec::Independent(ratio) => ratio.value() * 100.0,
            other => panic!("{other:?}"),
        };
        let event = |event: EventSpec| {
            let EventSpec { at, rate, delay, loss, .. } = event;
            let delay = delay.map(|delay| delay.as_millis());
            (at.as_millis(), rate.map(EventRate::bits_per_second), delay, loss.map(percent))
        };
        events.into_iter().map(event).collect()
    }

    fn rate(at: u64, rate: u64) -> Event {
        (at, Some(rate), None, None)
    }

    const TABLE: &str = "time_s,rate_Mbit,delay_ms,loss_%\n0,10,20,\n1,10,40,100\n2,3,40,0\n4,8,20,0\n";

    #[test]
    fn run_begins_with_the_values_in_force_at_its_start() {
        let whole = [
            (0, Some(10_000_000), Some(20), None),
            (1000, None, Some(40), Some(100.0)),
            (2000, Some(3_000_000), None, Some(0.0)),
            (4000, Some(8_000_000), Some(20), None),
        ];
        assert_eq!(played(TABLE, "0s"), whole);
        // Within the outage.
        let outage = (0, Some(10_000_000), Some(40), Some(100.0));
        assert_eq!(
            played(TABLE, "1500ms"),
            [outage, (500, Some(3_000_000), None, Some(0.0)), (2500, Some(8_000_000), Some(20), None)]
        );
        // At its beginning and at its end, on a line of the table.
        assert_eq!(played(TABLE, "1s")[0], outage);
        assert_eq!(played(TABLE, "2s")[0], (0, Some(3_000_000), Some(40), Some(0.0)));
        assert_eq!(played(TABLE, "2s").len(), 2);
    }

    #[test]
    fn last_line_of_a_table_stays_in_force() {
        let last = [(0, Some(8_000_000), Some(20), Some(0.0))];
        assert_eq!(played(TABLE, "4s"), last);
        assert_eq!(played(TABLE, "3999ms")[1..], [(1, Some(8_000_000), Some(20), None)]);
    }

    #[test]
    fn values_of_the_first_line_apply_before_it() {
        let late = "time,rate\n3s,1Mbit\n5s,2Mbit\n";
        for (start, change) in [("0s", 5000), ("1s", 4000), ("3s", 2000)] {
            assert_eq!(played(late, start), [rate(0, 1_000_000), rate(change, 2_000_000)], "{start}");
        }
    }

    fn repeated(text: &str, start: &str) -> Vec<Event> {
        seen(&trace::read_repeating(text, LinkDirection::Down).unwrap(), start)
    }

    /// Each format with the same rates: 10 ms at 12.112 Mbit/s as a packet each ms, and 5 and 10 Mbit/s for a second each in tables,
    /// whose last line holds as long as the one before it.
    #[test]
    fn every_format_goes_on_with_its_beginning() {
        let tables = [
            "time_s,rate_Mbit\n0,5\n1,10\n",
            "time,rate\n0s,5Mbit\n0s,5Mbit\n1s,10Mbit\n1s,10Mbit\n",
            "0 5\n1 10\n",
            "1331317200 5\n1331317201 10\n",
            "Timestamp,DL_bitrate,UL_bitrate\n2019.12.31_23.59.59,5000,1\n2020.01.01_00.00.00,10000,1\n",
        ];
        for text in tables {
            let of = |start| repeated(text, start)[..3].to_vec();
            let [slow, fast] = [5_000_000, 10_000_000];
            assert_eq!(of("0s"), [rate(0, slow), rate(1000, fast), rate(2000, slow)], "{text}");
            assert_eq!(of("500ms"), [rate(0, slow), rate(500, fast), rate(1500, slow)], "{text}");
            assert_eq!(of("1700ms"), [rate(0, fast), rate(300, slow), rate(1300, fast)], "{text}");
            assert_eq!(repeated(text, "2s"), repeated(text, "0s"), "its end is its beginning: {text}");
        }
        let opportunities = outage_at_the_end();
        assert_eq!(repeated(&opportunities, "650ms"), played(&opportunities, "650ms"));
    }

    #[test]
    fn all_values_of_a_table_go_on_with_its_beginning() {
        // A round of 6 s: the last line is 2 s after the one before it.
        let first = (500, Some(10_000_000), None, None);
        assert_eq!(
            repeated(TABLE, "5500ms")[..4],
            [
                (0, Some(8_000_000), Some(20), Some(0.0)),
                first,
                (1500, None, Some(40), Some(100.0)),
                (2500, Some(3_000_000), None, Some(0.0))
            ]
        );
        // The next round begins with the values of the first line.
        let late = "time,rate\n3s,1Mbit\n5s,2Mbit\n";
        assert_eq!(
            repeated(late, "6s")[..3],
            [rate(0, 2_000_000), rate(4000, 1_000_000), rate(9000, 2_000_000)]
        );
    }

    #[test]
    fn a_table_lasts_as_long_from_each_start_on() {
        for start in ["0s", "1ms", "1s", "3s", "5999ms"] {
            let events = repeated(TABLE, start);
            let outages = events.iter().filter(|event| event.3 == Some(100.0)).count();
            assert!((100..=101).contains(&outages), "{start}: {outages}");
            assert!((594_000..600_000).contains(&events.last().unwrap().0), "{start}");
        }
        let constant = "time,rate\n0s,1Mbit\n5s,1Mbit\n";
        assert_eq!(repeated(constant, "3s"), [rate(0, 1_000_000)]);
    }

    #[test]
    fn rate_of_0_at_the_end_of_a_table_lasts_until_its_beginning() {
        let text = "time_s,rate_Mbit,delay_ms\n0,5,20\n2,0,\n3,0,40\n4,,30\n";
        let events: Vec<_> = repeated(text, "1s")[1..].iter().map(|event| (event.0, event.1)).collect();
        assert_eq!(
            events[..4],
            [(1000, Some(0)), (2000, None), (3000, None), (4000, Some(5_000_000))],
            "the last line holds for a second"
        );
        let problem =
            "line 3: the rate is 0 from here to the end of the trace; add a later line with another rate";
        assert_eq!(trace::read(text, LinkDirection::Down).unwrap_err().to_string(), problem);
        // These repeat nothing, or nothing else.
        for text in
            ["0 0\n", "0 5\n0 0\n", "0 5\n0 0\n1 0\n", "0 0\n1 0\n", "time,rate,delay\n0s,0,1ms\n1s,,2ms\n"]
        {
            let refused = trace::read_repeating(text, LinkDirection::Down).map(drop);
            assert!(refused.unwrap_err().to_string().contains("the rate is 0 from here"), "{text}");
        }
    }

    /// A packet each ms from 400 to 699 ms, and one at the end: an outage begins at 700 ms and lasts until 400 ms of the next round,
    /// except for that packet.
    fn outage_at_the_end() -> String {
        (400..700).chain([1000]).map(|ms| format!("{ms}\n")).collect()
    }

    const BEFORE: u64 = 0;
    const FULL: u64 = 12_112_000;
    const AFTER: u64 = 0;
    const LAST: u64 = 12_112 * 1000 / 100;

    #[test]
    fn mahimahi_trace_repeats_from_its_beginning() {
        let text = outage_at_the_end();
        let round = [rate(0, BEFORE), rate(400, FULL), rate(700, AFTER), rate(900, LAST)];
        assert_eq!(played(&text, "0s")[..5], [&round[..], &[rate(1000, BEFORE)]].concat());
        // The outage goes on over the end of the trace.
        let from_the_middle = [
            rate(0, FULL),
            rate(50, AFTER),
            rate(250, LAST),
            rate(350, BEFORE),
            rate(750, FULL),
            rate(1050, AFTER),
        ];
        assert_eq!(played(&text, "650ms")[..6], from_the_middle);
        // A run that begins within it.
        assert_eq!(
            played(&text, "800ms")[..4],
            [rate(0, AFTER), rate(100, LAST), rate(200, BEFORE), rate(600, FULL)]
        );
        assert_eq!(played(&text, "1s"), played(&text, "0s"), "the trace repeats from its end");
    }

    #[test]
    fn value_that_is_the_same_after_a_repetition_causes_no_event() {
        // One packet in the first and in the last tenth of a second.
        let text = "50\n100\n110\n120\n300\n";
        let even = rate(0, 12_112 * 10);
        assert_eq!(
            played(text, "0s")[..4],
            [even, rate(100, 36_336 * 10), rate(200, 12_112 * 10), rate(400, 36_336 * 10)]
        );
        assert_eq!(played(text, "250ms")[..3], [even, rate(150, 36_336 * 10), rate(250, 12_112 * 10)]);
    }

    #[test]
    fn repeating_trace_lasts_equally_long_from_every_start() {
        let text = outage_at_the_end();
        let rounds = LASTS_ROUNDS;
        for start in ["0s", "1ms", "400ms", "500ms", "999ms"] {
            let events = played(&text, start);
            let full: Vec<u64> =
                events.iter().filter(|event| event.1 == Some(FULL)).map(|event| event.0).collect();
            assert!((rounds..=rounds + 1).contains(&full.len()), "{start}: {}", full.len());
            assert!(full.windows(2).all(|pair| pair[1] == pair[0] + 1000 || pair[0] == 0), "{start}");
            let last = events.last().unwrap().0;
            assert!(((rounds as u64 - 1) * 1000..rounds as u64 * 1000).contains(&last), "{start}: {last}");
        }
    }

    /// Ten minutes of a trace of a second.
    const LASTS_ROUNDS: usize = 600;

    /// A trace of more than ten minutes is not repeated if the run starts at its beginning. From another start it continues
    /// with its beginning.
    #[test]
    fn long_trace_is_played_once_from_every_start() {
        let text: String = (1..=700).map(|second| format!("{}\n", second * 1000)).collect();
        let from = |start| played(&text, start).last().unwrap().0;
        assert_eq!(from("0s"), 699_900);
        // The last change before its 650th second is at 649.1 s.
        assert_eq!(from("650s"), 699_100);
    }

    #[test]
    fn playback_survives_serialization() {
        for text in [TABLE, &outage_at_the_end()] {
            let trace = trace::read(text, LinkDirection::Up).unwrap();
            let written = toml::to_string(&trace).unwrap();
            assert_eq!(toml::from_str::<TracePlayback>(&written).unwrap(), trace);
        }
    }
}
