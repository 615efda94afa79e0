//! Compares the runs of one scenario in two worlds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hol_base::Time;
use hol_lab::{InputError, Point};
use hol_measure::{RankSum, RecordKind, quantile};
use hol_scenario::{Run, RunError, World};

use crate::random_scenario::{RandomScenario, has_instant_computation};
use crate::run_values::RunValues;
use crate::trace::{Difference, TIME_TOLERANCE, Trace};

/// Number of runs of a random scenario in the first and in the second world; the worlds use different seeds.
const RUNS_PER_WORLD: [u32; 2] = [20, 6];
/// Maximum size of a trace, sent and received, in octets. The packets of a scenario with a longer trace are not
/// compared, because a guest captures at most 48 MiB.
const MAX_TRACE: usize = 32 << 20;
/// Further repetitions, each with its own seed, that show which parts of a run are random; the compared run itself
/// is repetition 0.
const OTHER_REPETITIONS: std::ops::Range<u32> = 1..6;
/// Significance level of the comparison. A value differs if the p-value of a rank test is below this level (one false
/// alarm in 200 scenarios), and the medians differ by more than `MIN_DIFFERENCE`.
const SIGNIFICANCE: f64 = 0.005;
/// Two medians differ if their difference exceeds both this fraction of the larger one, and this amount in the unit
/// of the value (ms, kbit/s, messages). They also differ if only one of them is finite.
const MIN_DIFFERENCE: (f64, f64) = (0.05, 0.5);

/// How the runs of a scenario were compared, and with which result.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The packets were compared, up to the first packet that depends on the seed.
    Packets {
        /// The first packet that differs between the worlds in content or time; `None` if no packet differs.
        /// Up to this packet each world sends the same packets with every seed.
        difference: Option<Box<Difference>>,
        /// Whether the values in the two worlds, such as latency and throughput, agree
        /// ([`RunValues::agrees_with`]).
        values_agree: bool,
    },
    /// The values depend on the seed, so the ranks of the values in several runs of both worlds were compared.
    Ranks {
        /// Whether no value differs significantly.
        values_agree: bool,
    },
    /// A world cannot run the scenario; contains the reason.
    Refused(String),
    /// A run failed, or an assertion did not hold; contains the reason.
    Failed(String),
}

impl Verdict {
    /// Returns whether the values of both worlds agree; false if a run failed.
    pub fn agrees(&self) -> bool {
        matches!(self, Self::Packets { values_agree: true, .. } | Self::Ranks { values_agree: true })
    }

    /// Returns the first packet that differs between the worlds; `None` if none does.
    pub fn difference(&self) -> Option<&Difference> {
        match self {
            Self::Packets { difference, .. } => difference.as_deref(),
            _ => None,
        }
    }
}

/// A scenario and the result of its comparison.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The scenario.
    pub scenario: RandomScenario,
    /// The result.
    pub verdict: Verdict,
    /// The values in both worlds, if both ran the scenario: the values of one run each, or the medians of
    /// several runs.
    pub values: Option<[RunValues; 2]>,
}

/// Runs a scenario in both worlds and compares the results. The packets are compared if they do not depend on
/// the seed, otherwise the ranks of several runs.
pub fn compare(scenario: &RandomScenario, first: &dyn World, second: &dyn World) -> Comparison {
    // A failed assertion is a result too, and the comparison continues.
    let outcome = catch_unwind(AssertUnwindSafe(|| compare_runs(scenario, first, second)));
    let (verdict, values) = match outcome {
        Ok(Ok((verdict, values))) => (verdict, Some(values)),
        Ok(Err(RunError::Refused(problem))) => (Verdict::Refused(problem), None),
        Ok(Err(problem)) => (Verdict::Failed(problem.to_string()), None),
        Err(_) => (Verdict::Failed("an assertion failed; see its message above".to_owned()), None),
    };
    Comparison { scenario: scenario.clone(), verdict, values }
}

fn compare_runs(
    scenario: &RandomScenario,
    first: &dyn World,
    second: &dyn World,
) -> Result<(Verdict, [RunValues; 2]), RunError> {
    let refused = |problem: InputError| RunError::Refused(problem.to_string());
    let (first_point, point) =
        (scenario.point_with_assumed_options().map_err(refused)?, scenario.point().map_err(refused)?);
    first.check(&first_point.scenario(0))?;
    second.check(&point.scenario(0))?;
    let both = [(&first_point, first), (&point, second)];
    let (run, mut trace) = run_traced(&first_point, first, 0)?;
    let is_comparable = !scenario.has_randomness() && trace.octets() <= MAX_TRACE;
    if !is_comparable || run.digest() != run_traced(&first_point, first, 1)?.0.digest() {
        return compare_ranks(both);
    }
    let (other_run, mut other) = run_traced(&point, second, 0)?;
    let end = run.ended.min(other_run.ended);
    trace.remove_after(end);
    other.remove_after(end);
    let kind = point.workload.record_kind();
    let values = [RunValues::of(&run, kind), RunValues::of(&other_run, kind)];
    let values_agree = values[0].agrees_with(&values[1]);
    let instant = [first, second].into_iter().all(|world| has_instant_computation(&world.name()));
    let mut difference =
        if instant { trace.first_difference(&other) } else { trace.first_difference_in_order(&other) };
    if difference.is_none() && values_agree {
        return Ok((Verdict::Packets { difference: None, values_agree }, values));
    }
    let mut start = Time::MAX;
    for (of, own, values) in [(both[0], &trace, &values[0]), (both[1], &other, &values[1])] {
        let parts = RandomParts::of(of, own, end, values)?;
        if !values_agree && parts.affects_values {
            return compare_ranks(both);
        }
        start = start.min(parts.start);
    }
    // Differences from the first random packet on are by chance. The other world may send this packet a little earlier.
    difference.take_if(|difference| difference.time() + TIME_TOLERANCE >= start);
    Ok((Verdict::Packets { difference: difference.map(Box::new), values_agree }, values))
}

/// The parts of a run that depend on the seed. SCTP's HEARTBEATs, for example, are sent at random times.
struct RandomParts {
    /// The time of the first packet that depends on the seed.
    start: Time,
    /// Whether the values of the run depend on the seed.
    affects_values: bool,
}

impl RandomParts {
    /// Repeats a run with other seeds, and returns which parts differ. `own` are the packets of the run until
    /// `end`.
    fn of(
        (point, world): (&Point, &dyn World),
        own: &Trace,
        end: Time,
        values: &RunValues,
    ) -> Result<Self, RunError> {
        let mut parts = Self { start: Time::MAX, affects_values: false };
        for repetition in OTHER_REPETITIONS {
            let (run, mut trace) = run_traced(point, world, repetition)?;
            trace.remove_after(end);
            let start = own.first_difference(&trace).map_or(Time::MAX, |difference| difference.time());
            parts.start = parts.start.min(start);
            parts.affects_values |= !RunValues::of(&run, point.workload.record_kind()).agrees_with(values);
        }
        Ok(parts)
    }
}

/// Runs the first repetition of `point` in `world` and returns the packets that its hosts sent until the run ended.
pub fn trace(point: &Point, world: &dyn World) -> Result<Trace, RunError> {
    let (run, mut trace) = run_traced(point, world, 0)?;
    trace.remove_after(run.ended);
    Ok(trace)
}

/// Performs a repetition of `point`. Returns the run, and all packets that its hosts sent.
fn run_traced(point: &Point, world: &dyn World, repetition: u32) -> Result<(Run, Trace), RunError> {
    let mut trace = Trace::of_kind(point.transport.kind());
    let run = world.trace(&point.scenario(repetition), point.seed_of(repetition), &mut trace)?;
    Ok((run, trace))
}

fn compare_ranks([first, second]: [(&Point, &dyn World); 2]) -> Result<(Verdict, [RunValues; 2]), RunError> {
    let kind: RecordKind = first.0.workload.record_kind();
    let runs = |(point, world): (&Point, &dyn World), repetitions: std::ops::Range<u32>| {
        let run = |repetition| world.run(&point.scenario(repetition), point.seed_of(repetition));
        repetitions
            .map(|repetition| run(repetition).map(|run| RunValues::of(&run, kind)))
            .collect::<Result<Vec<RunValues>, RunError>>()
    };
    // The worlds use different seeds, so that two worlds of one kind are independent, too.
    let values = [
        runs(first, 0..RUNS_PER_WORLD[0])?,
        runs(second, RUNS_PER_WORLD[0]..RUNS_PER_WORLD[0] + RUNS_PER_WORLD[1])?,
    ];
    let differs = METRICS.iter().any(|metric| {
        let [a, b] = values.each_ref().map(|values| values.iter().map(metric).collect::<Vec<f64>>());
        let [low, high] = [median(&a), median(&b)];
        let is_large = low.is_finite() != high.is_finite()
            || (low - high).abs() > (MIN_DIFFERENCE.0 * low.max(high)).max(MIN_DIFFERENCE.1);
        is_large && RankSum::of(&a, &b).p < SIGNIFICANCE
    });
    Ok((Verdict::Ranks { values_agree: !differs }, values.map(|values| medians(&values))))
}

/// The values of a run that are compared by their ranks. The latency of a run that delivers nothing is infinite.
const METRICS: [fn(&RunValues) -> f64; 4] = [
    |values| values.median_ms.unwrap_or(f64::INFINITY),
    |values| values.p99_ms.unwrap_or(f64::INFINITY),
    |values| values.throughput_kbps,
    |values| values.failed as f64,
];

/// Returns the median of each value.
fn medians(runs: &[RunValues]) -> RunValues {
    let [latency, p99, throughput_kbps, failed] =
        METRICS.map(|metric| median(&runs.iter().map(metric).collect::<Vec<f64>>()));
    let finite = |value: f64| value.is_finite().then_some(value);
    RunValues { median_ms: finite(latency), p99_ms: finite(p99), throughput_kbps, failed: failed as u64 }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use hol_base::Seed;
    use hol_model::Model;
    use hol_scenario::{Cost, Observer, PacketObserver, RunSummary, Scenario};
    use serde_json::Value;

    use super::*;
    use crate::generator::Generator;
    use crate::shrink::shrink;

    /// The model with other seeds.
    #[derive(Debug)]
    struct Reseeded;

    impl World for Reseeded {
        fn name(&self) -> String {
            Model.name()
        }

        fn provenance(&self) -> Result<String, RunError> {
            Model.provenance()
        }

        fn recorded_settings(&self, scenario: &Scenario) -> Value {
            Model.recorded_settings(scenario)
        }

        fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
            Model.check(scenario)
        }

        fn cost(&self) -> Cost {
            Model.cost()
        }

        fn follow(
            &self,
            scenario: &Scenario,
            seed: Seed,
            observer: &mut dyn Observer,
        ) -> Result<RunSummary, RunError> {
            Model.follow(scenario, seed.derive("other"), observer)
        }

        fn trace(
            &self,
            scenario: &Scenario,
            seed: Seed,
            witness: &mut dyn PacketObserver,
        ) -> Result<Run, RunError> {
            Model.trace(scenario, seed.derive("other"), witness)
        }
    }

    /// Returns a scenario; its first world uses the `assumed` options in addition to the common ones.
    fn scenario(protocol: &str, assumed: &[(&str, &str)], settings: &[(&str, &str)]) -> RandomScenario {
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        RandomScenario {
            name: "known".to_owned(),
            protocol: protocol.to_owned(),
            options: Vec::new(),
            assumed: owned(assumed),
            settings: owned(settings),
        }
    }

    const ONEWAY: [(&str, &str); 4] = [
        ("workload.kind", "\"oneway\""),
        ("workload.rate", "\"20/s\""),
        ("messages", "40"),
        ("network.up.loss", "{ drop = [9] }"),
    ];
    const LOSSY: [(&str, &str); 3] =
        [("workload.kind", "\"echo\""), ("messages", "200"), ("network.loss", "\"3%\"")];

    fn verdict(scenario: &RandomScenario) -> Verdict {
        compare(scenario, &Model, &Model).verdict
    }

    /// A guest could not capture these packets, but runs of the scenario have values.
    #[test]
    fn packets_that_exceed_a_capture_are_not_compared() {
        let transfer = [("workload.kind", "\"bulk\""), ("workload.size", "\"60kB\""), ("messages", "300")];
        assert_eq!(verdict(&scenario("tcp", &[], &transfer)), Verdict::Ranks { values_agree: true });
        assert_eq!(
            verdict(&scenario("udp", &[], &ONEWAY)),
            Verdict::Packets { difference: None, values_agree: true }
        );
    }

    #[test]
    fn a_world_agrees_with_itself() {
        let same = Verdict::Packets { difference: None, values_agree: true };
        for protocol in ["tcp", "sctp"] {
            assert_eq!(verdict(&scenario(protocol, &[], &ONEWAY)), same);
            assert_eq!(verdict(&scenario(protocol, &[], &LOSSY)), Verdict::Ranks { values_agree: true });
        }
    }

    #[test]
    fn a_changed_option_is_found_and_named() {
        for (protocol, option, family) in [
            ("tcp", ("sack", "false"), "sackOK of [S]"),
            ("tcp", ("receive_buffer", "65536B"), "win of [S]"),
            ("sctp", ("sack_delay", "20ms"), "ack of SACK"),
            ("sctp", ("receive_buffer", "50000B"), "rwnd of INIT"),
        ] {
            let verdict = verdict(&scenario(protocol, &[option], &ONEWAY));
            assert_eq!(verdict.difference().map(Difference::category).as_deref(), Some(family), "{option:?}");
        }
        // Without fast retransmit each loss waits for T3-rtx.
        let slower = scenario("sctp", &[("missing_reports", "100")], &LOSSY);
        assert_eq!(verdict(&slower), Verdict::Ranks { values_agree: false });
    }

    #[test]
    fn random_heartbeats_are_ignored_but_earlier_differences_are_found() {
        // RFC 9260 section 8.3: after a timeout a HEARTBEAT is sent within an RTO, at a random time.
        let settings = [
            ("workload.kind", "\"pingpong\""),
            ("messages", "43"),
            ("network.delay", "\"5ms\""),
            ("network.down.loss", "{ drop = [25, 35] }"),
        ];
        let (same, other) =
            (scenario("sctp", &[], &settings), scenario("sctp", &[("receive_buffer", "50000B")], &settings));
        let point = same.point().unwrap();
        let traces = [&Model as &dyn World, &Reseeded].map(|world| run_traced(&point, world, 0).unwrap().1);
        let by_chance = traces[0].first_difference(&traces[1]).unwrap();
        assert!(by_chance.category().contains("HB REQ"), "{by_chance:?}");
        let agreed = Verdict::Packets { difference: None, values_agree: true };
        assert_eq!(compare(&same, &Model, &Reseeded).verdict, agreed);
        let found = compare(&other, &Model, &Reseeded).verdict;
        assert!(found.difference().is_some_and(|found| found.time() < by_chance.time()), "{found:?}");
    }

    #[test]
    fn random_scenarios_of_one_world_cause_no_false_alarms() {
        let generator = Generator::new(1, None, vec![&Model]);
        let all = (0..200).map(|number| generator.scenario(number).unwrap().0);
        let by_chance: Vec<RandomScenario> = all.filter(RandomScenario::has_randomness).take(40).collect();
        let alarms = by_chance.iter().filter(|scenario| !verdict(scenario).agrees()).count();
        // Four values with a p-value of 0.005 each, if they were independent: 0.8 false alarms in 40 scenarios.
        assert!(by_chance.len() == 40 && alarms <= 1, "{alarms} of {}", by_chance.len());
    }

    #[test]
    fn a_difference_is_shrunk_to_its_necessary_settings() {
        let more = [&ONEWAY[..], &[("network.delay", "\"30ms\""), ("network.mtu", "\"1400B\"")]].concat();
        let found = compare(&scenario("tcp", &[("receive_buffer", "65536B")], &more), &Model, &Model);
        let smallest = shrink(found, &Model, &Model);
        assert_eq!(smallest.verdict.difference().unwrap().category(), "win of [S]");
        assert_eq!(smallest.scenario.settings, [("messages".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn unsupported_and_contradictory_scenarios_are_refused() {
        let contradiction = scenario("tcp", &[], &[("network.jitter_correlation", "\"5%\"")]);
        assert!(matches!(verdict(&contradiction), Verdict::Refused(_)));
        assert!(matches!(verdict(&scenario("mptcp", &[], &ONEWAY)), Verdict::Refused(_)));
    }
}
