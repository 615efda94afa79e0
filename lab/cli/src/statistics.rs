//! `hol statistics`: counts how often the conclusions of `hol compare` are right, where the truth is known.
//!
//! The truth is a pool of many runs. A trial draws repetitions from the pool and evaluates them as `hol compare` does.
//! The interval of the trial has to contain the mean of the pool, and both have to have the same winner.

use clap::Args;
use hol_base::Seed;
use hol_lab::{Archive, Experiment, Metric, PointResult, Source};
use hol_measure::{CONFIDENCE, ConfidenceInterval};
use hol_report::data::Cell;
use hol_report::survey::{Outcome, TransportComparison, main_metric};

use crate::compare::run_experiment;
use crate::comparison_steps::with_repetitions;
use crate::failure::Failure;
use crate::number::parse_positive_number;
use crate::terminal::print;

/// Number of repetitions so far after each step of a comparison.
const STEP_REPETITIONS: [usize; 4] = [10, 20, 40, 80];

/// Permitted share of conclusions that name the wrong winner.
const WRONG_WINNERS: f64 = 0.01;
/// Permitted share of conclusions that claim a difference where none exists: 5 %, plus an allowance for repeated tests.
const FALSE_DIFFERENCES: f64 = 0.06;

/// A comparison whose true result is known.
struct Truth {
    name: &'static str,
    /// Text of the experiment in TOML. It names two transports: the reference, then the challenger.
    keys: &'static str,
    /// Number of messages in a run.
    messages_per_run: u64,
    /// Whether a transport is compared with itself.
    is_self_comparison: bool,
    /// Index of the size class that is judged; `None`: all messages.
    class: Option<usize>,
    /// Numbers of repetitions after which the conclusion is evaluated. The comparison ends when the conclusion is
    /// clear.
    steps: &'static [usize],
}

const COLLAPSE_SETTINGS: &str = "network = { rate = '20Mbit', queue = '60p', loss = '3%', delay = '50ms' }
    workload = { kind = 'echo', rate = '80/s', arrivals = 'poisson', size = '8kB' }";

/// The keys of an experiment with replies of 1 kB and of 200 kB over LTE.
const TWO_SIZES: &str = "transports = ['tcp:tls', 'quic:per_message']
    workload = { kind = 'rpc', rate = '4/s', reply = { '1kB' = 9, '200kB' = 1 } }
    network.path = 'lte'";

const TRUTHS: [Truth; 11] = [
    Truth {
        name: "equal",
        keys: "transports = ['tcp']",
        messages_per_run: 20_000,
        is_self_comparison: true,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "small",
        keys: "transports = ['tcp', 'sctp:streams=8,rto_min=200ms']",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "tails cross",
        keys: "transports = ['tcp', 'sctp:streams=8']",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "tails cross, 1,000 messages",
        keys: "transports = ['tcp', 'sctp:streams=8']",
        messages_per_run: 100,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "large",
        keys: "transports = ['tcp', 'sctp']",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "crossover",
        keys: "transports = ['tcp', 'sctp:streams=8,rto_min=200ms']\nworkload = { kind = 'simco', rate = '42/s' }",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    // The question of the README, and the first example of `hol --help`.
    Truth {
        name: "rpc over sctp",
        keys: "transports = ['tcp', 'sctp:streams=8']\nworkload = { kind = 'rpc' }",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "rpc over quic",
        keys: "transports = ['tcp', 'quic']\nworkload = { kind = 'rpc' }",
        messages_per_run: 20_000,
        is_self_comparison: false,
        class: None,
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "short replies beside long ones",
        keys: TWO_SIZES,
        messages_per_run: 400,
        is_self_comparison: false,
        class: Some(0),
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "long replies beside short ones",
        keys: TWO_SIZES,
        messages_per_run: 400,
        is_self_comparison: false,
        class: Some(1),
        steps: &STEP_REPETITIONS,
    },
    Truth {
        name: "collapse",
        keys: "transports = ['tcp', 'tcp:cc=bbr']",
        messages_per_run: 1_250,
        is_self_comparison: false,
        class: None,
        steps: &[8],
    },
];

/// Count how often `hol compare` draws a wrong conclusion in cases whose true result is known.
///
/// The true mean is that of all runs of a case. The coverage is the share of trials whose confidence interval contains the true mean or, if
/// runs collapse, the true median run; like the means, it has two values, one for each transport. Takes minutes; docs/statistics.md has the tables.
#[derive(Debug, Args)]
pub struct Statistics {
    /// Number of trials per case
    #[arg(long, value_name = "N", value_parser = parse_positive_number, default_value = "1000")]
    trials: usize,
    /// Number of runs per case; each trial draws its repetitions from these runs
    #[arg(long, value_name = "N", value_parser = parse_positive_number, default_value = "400")]
    pool: usize,
    /// Run only the cases whose name contains this text
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Fail if more than 1 % of the conclusions name the wrong winner, or more than 6 % find a difference where there is none
    #[arg(long)]
    require: bool,
}

/// The counts of results over the trials of one case.
#[derive(Debug, Default)]
struct Tally {
    trials: usize,
    /// Number of trials with the right verdict.
    right_verdicts: usize,
    /// Number of trials that name the wrong winner, or that name a winner where there is none.
    wrong_winners: usize,
    /// Number of trials in which the true difference is more than twice the half width of the confidence interval.
    clear_trials: usize,
    /// Number of trials with the right verdict among those counted in `clear_trials`.
    right_clear_verdicts: usize,
    /// Number of confidence intervals that contain the true mean: after the first round of repetitions and after the last,
    /// each for the reference and the challenger.
    covering_intervals: [[usize; 2]; 2],
    /// Number of repetitions in all trials together.
    repetitions: usize,
}

impl Statistics {
    /// Runs the pools, draws from them, and prints the table.
    pub fn run(&self) -> Result<(), Failure> {
        let heads = [
            "case",
            "means ms",
            "right",
            "wrong",
            "right if the difference is clear",
            "coverage of the 95 % CIs after the first round of repetitions",
            "coverage of the 95 % CIs after the last round",
            "repetitions",
        ];
        print(&format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len())));
        let mut is_right = true;
        let wanted =
            |truth: &&Truth| self.only.as_ref().is_none_or(|only| truth.name.contains(only.as_str()));
        for truth in TRUTHS.iter().filter(wanted) {
            let pool = self.run_pool(truth)?;
            let tally = self.tally(truth, &pool);
            let wrong = tally.wrong_winners as f64 / tally.trials as f64;
            is_right &= wrong <= if truth.is_self_comparison { FALSE_DIFFERENCES } else { WRONG_WINNERS };
            print(&format!("| {} |\n", tally.row(truth, &pool).join(" | ")));
        }
        match is_right || !self.require {
            true => Ok(()),
            false => Err(Failure::Failed("more conclusions are wrong than the limits permit".to_owned())),
        }
    }

    /// Performs a pool of runs for each of the two transports. If a transport is compared with itself, there is
    /// only one pool, which is used twice.
    fn run_pool(&self, truth: &Truth) -> Result<[PointResult; 2], Failure> {
        let network = if truth.name == "collapse" { COLLAPSE_SETTINGS } else { "network.loss = '1%'" };
        let source = Source::new(truth.name, format!("{}\n{network}", truth.keys));
        let runs = u32::try_from(self.pool).unwrap_or(u32::MAX);
        let experiment =
            with_repetitions(&Experiment::parse("statistics", &source)?, truth.messages_per_run, runs);
        let (mut points, _) = run_experiment(&experiment, &Archive::default(), None, true)?;
        let first = points.remove(0);
        let second = points.pop().unwrap_or_else(|| first.clone());
        Ok([first, second])
    }

    fn tally(&self, truth: &Truth, pool: &[PointResult; 2]) -> Tally {
        let mut rng = Seed(1).derive(truth.name).rng();
        let whole = [0, 1].map(|of| cell(&pool[of], truth.class));
        let means = [mean(&whole[0]), mean(&whole[1])];
        let medians = [0, 1].map(|of| median_interval(&whole[of]).map_or(f64::NAN, |median| median.value));
        let mut tally = Tally { trials: self.trials, ..Tally::default() };
        for _ in 0..self.trials {
            let max = truth.steps[truth.steps.len() - 1];
            let mut draw = || (0..max).map(|_| rng.below(self.pool as u64) as usize).collect::<Vec<_>>();
            let first = draw();
            let second = if truth.is_self_comparison { draw() } else { first.clone() };
            for (at, repetitions) in truth.steps.iter().enumerate() {
                let drawn = [&first, &second].map(|drawn| &drawn[..*repetitions]);
                let mut cells = [0, 1].map(|of| cell(&with_drawn_runs(&pool[of], drawn[of]), truth.class));
                cells[1].transport += " ";
                let contest = TransportComparison::new(main_metric(cells.iter()), &cells[1], &cells[0]);
                let runs_collapse = cells.iter().any(|cell| cell.collapsed_runs() > 0);
                let covers = |of: usize| match runs_collapse {
                    false => mean_interval(&cells[of]).is_some_and(|bounds| bounds.contains(means[of])),
                    true => median_interval(&cells[of]).is_some_and(|bounds| bounds.contains(medians[of])),
                };
                let add = |into: &mut [usize; 2]| {
                    (0..2).for_each(|of| into[of] += usize::from(covers(of)));
                };
                if at == 0 {
                    add(&mut tally.covering_intervals[0]);
                }
                if contest.is_decisive() || at + 1 == truth.steps.len() {
                    add(&mut tally.covering_intervals[1]);
                    tally.repetitions += repetitions;
                    tally.judge(truth, &contest, means);
                    break;
                }
            }
        }
        tally
    }
}

impl Tally {
    fn judge(&mut self, truth: &Truth, contest: &TransportComparison<'_>, [reference, challenger]: [f64; 2]) {
        let is_better = challenger < reference;
        let claimed = match contest.outcome() {
            Outcome::Better => Some(true),
            Outcome::Worse => Some(false),
            Outcome::Same | Outcome::Undecided | Outcome::Unknown => None,
        };
        let is_right = claimed == Some(is_better) && !truth.is_self_comparison;
        self.right_verdicts += usize::from(is_right);
        self.wrong_winners += usize::from(claimed.is_some() && !is_right);
        let half_width = contest.half_width();
        if !truth.is_self_comparison
            && half_width.is_none_or(|half| (challenger / reference).ln().abs() > 2.0 * half)
        {
            self.clear_trials += 1;
            self.right_clear_verdicts += usize::from(is_right);
        }
    }

    fn row(&self, truth: &Truth, pool: &[PointResult; 2]) -> Vec<String> {
        let percent = |count: usize, of: usize| match of {
            0 => "-".to_owned(),
            of => format!("{:.1} %", 100.0 * count as f64 / of as f64),
        };
        let of = |count| percent(count, self.trials);
        let both = |[a, b]: [usize; 2]| format!("{}, {}", of(a), of(b));
        vec![
            truth.name.to_owned(),
            [0, 1].map(|of| format!("{:.2}", mean(&cell(&pool[of], truth.class)))).join(", "),
            of(self.right_verdicts),
            of(self.wrong_winners),
            percent(self.right_clear_verdicts, self.clear_trials),
            both(self.covering_intervals[0]),
            both(self.covering_intervals[1]),
            format!("{:.0}", self.repetitions as f64 / self.trials as f64),
        ]
    }
}

/// Returns the point, with the runs of the pool that were drawn as its repetitions.
fn with_drawn_runs(pool: &PointResult, drawn: &[usize]) -> PointResult {
    let runs = drawn.iter().filter_map(|at| pool.runs.get(*at).cloned()).collect();
    PointResult { runs, ..pool.clone() }
}

/// Returns the results of a point or, with `class`, only those of this class of message sizes.
fn cell(result: &PointResult, class: Option<usize>) -> Cell {
    let whole = Cell::from(result);
    match class {
        None => whole,
        Some(class) => whole.by_class().swap_remove(class).1,
    }
}

/// Returns the mean of each run, including runs without a steady state.
fn means_ms(cell: &Cell) -> Vec<f64> {
    cell.runs.iter().filter_map(|run| run.latency.mean_ms()).collect()
}

/// Returns the interval of the mean that `hol compare` prints.
fn mean_interval(cell: &Cell) -> Option<ConfidenceInterval> {
    let bounds = ConfidenceInterval::of_mean(&means_ms(cell), CONFIDENCE)?;
    Some(bounds.with_allowance(cell.timeout_allowance(Metric::ResponseTime)))
}

/// Returns the interval of the median run, which `hol compare` prints instead if runs of a transport collapse.
fn median_interval(cell: &Cell) -> Option<ConfidenceInterval> {
    ConfidenceInterval::of_median(&means_ms(cell), CONFIDENCE)
}

fn mean(pool: &Cell) -> f64 {
    let means = means_ms(pool);
    means.iter().sum::<f64>() / means.len() as f64
}
