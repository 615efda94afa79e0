//! `network.trace_start`: the position at which a run begins in its trace.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use hol_base::{Duration, Seed, deserialize_text, nearest_word};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::event::EventSpec;
use crate::spec::NetworkSpec;
use crate::trace::TraceSpec;
use crate::trace_playback::TracePlayback;

const RANDOM_START: &str = "random";

/// The position at which a run begins in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceStart {
    /// Each run draws a position from its seed: `"random"`.
    Random,
    /// A time from the beginning of the trace on: `"12s"`.
    At(Duration),
}

impl TraceStart {
    /// Returns the position in a trace that ends at `end`. Apart from the trace, the position depends only on the seed,
    /// so that all transports of a repetition begin at the same position.
    pub(crate) fn position(self, end: Duration, seed: Seed) -> Duration {
        match self {
            Self::At(position) => position,
            Self::Random if end.is_zero() => Duration::ZERO,
            Self::Random => Duration::from_nanos(seed.derive("trace_start").rng().below(end.as_nanos())),
        }
    }
}

impl NetworkSpec {
    /// Returns the network of the run with this seed. A trace whose start is drawn for each run becomes events.
    pub fn of_run(&self, seed: Seed) -> Cow<'_, Self> {
        let Some(traces) = self.trace.as_ref().and_then(TraceSpec::playbacks) else {
            return Cow::Borrowed(self);
        };
        let mut network = self.clone();
        (network.trace, network.trace_start) = (None, None);
        let start = self.trace_start_of_run(seed).unwrap_or_default();
        network.events.extend(traces.iter().flat_map(|trace| trace.events_from(start)));
        Cow::Owned(network)
    }

    /// Returns the position in the trace at which the run with this seed begins; `None` if the start is not drawn for each run.
    pub fn trace_start_of_run(&self, seed: Seed) -> Option<Duration> {
        let traces = self.trace.as_ref().and_then(TraceSpec::playbacks)?;
        // Files of two directions were recorded together, so they begin at the same time.
        let end = traces.iter().map(TracePlayback::end).min().unwrap_or_default();
        self.trace_start.map(|start| start.position(end, seed))
    }

    /// Returns the changes of a trace whose start is drawn for each run, with times from the beginning of the trace.
    pub fn changes_of_trace(&self) -> impl Iterator<Item = &EventSpec> {
        let traces = self.trace.as_ref().and_then(TraceSpec::playbacks).unwrap_or_default();
        traces.iter().flat_map(TracePlayback::changes)
    }
}

impl FromStr for TraceStart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == RANDOM_START {
            return Ok(Self::Random);
        }
        text.parse().map(Self::At).map_err(|problem| match nearest_word(text, [RANDOM_START]) {
            Some(near) => format!("{text:?} is not a position in a trace; did you mean {near:?}?"),
            None => format!("{problem}, nor {RANDOM_START:?}"),
        })
    }
}

impl fmt::Display for TraceStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str(RANDOM_START),
            Self::At(position) => position.fmt(f),
        }
    }
}

impl Serialize for TraceStart {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceStart {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize_text(from, "a time such as \"12s\", or \"random\"")
    }
}

impl JsonSchema for TraceStart {
    fn schema_name() -> Cow<'static, str> {
        "TraceStart".into()
    }

    fn json_schema(of: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "const": RANDOM_START }, of.subschema_for::<Duration>()] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::LinkDirection;
    use crate::trace;

    #[test]
    fn trace_start_is_a_time_or_random() {
        for (text, start) in [
            ("random", TraceStart::Random),
            ("12s", TraceStart::At(Duration::from_secs(12))),
            ("12 s", TraceStart::At(Duration::from_secs(12))),
            ("0s", TraceStart::At(Duration::ZERO)),
        ] {
            assert_eq!(text.parse(), Ok(start), "{text}");
            assert_eq!(start.to_string().parse(), Ok(start), "{text}");
        }
    }

    #[test]
    fn invalid_trace_start_is_refused_with_valid_examples() {
        for (text, words) in [
            ("randm", "did you mean \"random\"?"),
            (
                "middle",
                "\"middle\" is not a time such as \"10ms\" (units: ns, us, ms, s, min, h, d), nor \"random\"",
            ),
            ("12", "is not a time such as"),
            ("12Mbit", "is not a time such as"),
            ("-3s", "is not a time such as"),
            ("", "is not a time such as"),
        ] {
            let problem = text.parse::<TraceStart>().unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    #[test]
    fn random_start_depends_on_the_seed_and_lies_within_the_trace() {
        let end = Duration::from_secs(60);
        let drawn: Vec<Duration> =
            (0..1000).map(|seed| TraceStart::Random.position(end, Seed(seed))).collect();
        assert_eq!(drawn[7], TraceStart::Random.position(end, Seed(7)));
        assert!(drawn.iter().all(|position| *position < end));
        // The standard deviation of the mean of 1000 uniform values is 60 s / √12 / √1000, 0.55 s.
        let mean = drawn.iter().map(|position| position.as_secs_f64()).sum::<f64>() / 1000.0;
        assert!((mean - 30.0).abs() < 4.0 * 0.55, "{mean}");
        assert_eq!(TraceStart::At(end).position(end, Seed(1)), end);
        assert_eq!(TraceStart::Random.position(Duration::ZERO, Seed(1)), Duration::ZERO);
    }

    fn network(start: TraceStart) -> NetworkSpec {
        let up = trace::read("0 1\n2 5\n9 1\n", LinkDirection::Up).unwrap();
        let down = trace::read("0 7\n1 8\n20 9\n", LinkDirection::Down).unwrap();
        let trace = Some(TraceSpec::from_playbacks(vec![up, down]));
        let own =
            EventSpec { down: Some(true), ..EventSpec::empty(Duration::from_secs(3), LinkDirection::Both) };
        NetworkSpec { trace, trace_start: Some(start), events: vec![own], ..NetworkSpec::default() }
    }

    /// Own events keep their time, and both directions begin at the same time, which the shorter file has too.
    #[test]
    fn run_has_the_events_that_follow_its_start() {
        let spec = network(TraceStart::At(Duration::from_secs(1)));
        let run = spec.of_run(Seed(1));
        assert!(run.trace.is_none() && run.trace_start.is_none());
        let seen: Vec<(u64, String)> = run
            .events
            .iter()
            .map(|event| {
                (event.at.as_millis(), event.rate.map_or("down".to_owned(), |rate| rate.to_string()))
            })
            .collect();
        let expected =
            [(3000, "down"), (0, "1Mbit"), (1000, "5Mbit"), (8000, "1Mbit"), (0, "8Mbit"), (19_000, "9Mbit")];
        assert_eq!(seen, expected.map(|(at, what)| (at, what.to_owned())));

        let spec = network(TraceStart::Random);
        for seed in (0..100).map(Seed) {
            let run = spec.of_run(seed);
            let last = |direction| run.events.iter().rfind(|event| event.direction == direction).unwrap().at;
            let starts = [9, 20].map(Duration::from_secs);
            let starts = [starts[0] - last(LinkDirection::Up), starts[1] - last(LinkDirection::Down)];
            assert!(starts[0] == starts[1] && starts[0] < Duration::from_secs(9), "{starts:?}");
            assert_eq!(spec.trace_start_of_run(seed), Some(starts[0]));
            assert_eq!(spec.of_run(seed), run);
        }
        assert_ne!(spec.of_run(Seed(1)), spec.of_run(Seed(2)));
    }

    #[test]
    fn network_without_a_trace_is_the_same_in_every_run() {
        let spec = NetworkSpec::default();
        assert!(matches!(spec.of_run(Seed(1)), Cow::Borrowed(same) if *same == spec));
        assert_eq!(spec.trace_start_of_run(Seed(1)), None);
    }

    /// A trace with an outage disrupts some runs, whatever position each run begins at.
    #[test]
    fn a_network_is_disrupted_if_its_trace_is() {
        let trace = |loss| trace::read(&format!("time_s,loss_%\n0,0\n5,{loss}\n9,0\n"), LinkDirection::Both);
        let spec = |loss| NetworkSpec {
            trace: Some(TraceSpec::from_playbacks(vec![trace(loss).unwrap()])),
            trace_start: Some(TraceStart::Random),
            ..NetworkSpec::default()
        };
        assert!(spec(100).is_disrupted() && !spec(50).is_disrupted());
        assert_eq!(spec(100).disruptions(), [], "the time of the outage differs between runs");
    }
}
