//! Samples points along one axis for a comparison of two transports, everything else being equal.

use std::sync::atomic::{AtomicBool, Ordering};

use hol_lab::Metric;
use hol_lab::{Archive, Experiment, Plan, Point, PointResult, Repetitions, RunResults, Source, execute};
use hol_measure::{CrossoverSearch, Probe, Winner, brackets};
use hol_report::data::Cell;
use hol_report::survey::{Axis, Outcome, TransportComparison, main_metric};

use super::search_answer::{ProbeNumbers, SearchAnswer};
use super::{SearchResult, map, without_axis};
use crate::failure::Failure;

/// Number of tests for which the Bonferroni correction adjusts the significance level, so that all verdicts of a
/// comparison are correct together with 95 % confidence.
const TEST_COUNT: usize = 100;
/// Minimum number of repetitions before a point is judged; with fewer, rare events might not occur.
const MIN_REPETITIONS: u32 = 64;
/// Default maximum number of repetitions of a point. If 16 times the repetitions in the file are more, that is the
/// maximum.
const DEFAULT_MAX_REPETITIONS: u32 = 400;
/// Maximum number of points sampled in addition to those of the file.
const MAX_ADDED_POINTS: usize = 24;
/// Maximum number of ends of crossover intervals that are confirmed with more repetitions.
const MAX_CONFIRMED_ENDS: usize = 16;

/// Samples the points of one comparison.
pub(super) struct Sampler<'a> {
    pub source: &'a Source,
    pub axis: &'a Axis,
    /// Precision of the crossover as a share, from the option `--precision`.
    pub precision: f64,
    /// Maximum number of repetitions of a point.
    pub max_repetitions: Option<usize>,
    pub threads: usize,
    pub stop: &'a AtomicBool,
    /// The results of all runs so far, so that no run is performed twice.
    pub finished: RunResults,
}

/// The two transports that are compared, and the values of the other axes.
#[derive(Clone, Copy)]
struct ComparedTransports<'a> {
    other_values: &'a [(String, String)],
    transport: &'a str,
    reference: &'a str,
}

impl Sampler<'_> {
    /// Searches one axis for the points at which the better of two transports changes.
    pub(super) fn search_line(
        &mut self,
        other_values: &[(String, String)],
        transport: &str,
        reference: &str,
    ) -> Result<SearchResult, Failure> {
        let axis = self.axis;
        let Some((_, numbers)) = &axis.numbers else { unreachable!("the axis was chosen for its numbers") };
        let search = CrossoverSearch {
            logarithmic: numbers.suits_log_scale(),
            precision: self.precision,
            max_points: MAX_ADDED_POINTS,
        };
        let grid: Vec<f64> = axis.ascending().into_iter().map(|step| axis.position(step)).collect();
        let compared = ComparedTransports { other_values, transport, reference };
        let mut measurements: Vec<ProbeNumbers> = Vec::new();
        let mut measure = |x: f64, confirm: bool| {
            let (probe, probe_numbers) = self.probe(x, &numbers.text(x), compared, confirm)?;
            measurements.retain(|known| known.x != x);
            measurements.push(probe_numbers);
            Ok::<_, Failure>(probe)
        };
        let round = |x| numbers.round(x);
        let mut probes = search.run(&grid, round, |x| measure(x, false))?;
        // The first repetitions may have missed rare events: the ends of each crossover are measured again with all
        // repetitions, and the search is refined if a result changes.
        let mut confirmed: Vec<f64> = Vec::new();
        let next = |probes: &[Probe], confirmed: &[f64]| {
            crossover_ends(probes).into_iter().find(|x| !confirmed.contains(x))
        };
        while let Some(x) = next(&probes, &confirmed).filter(|_| confirmed.len() < MAX_CONFIRMED_ENDS) {
            let again = measure(x, true)?;
            probes.iter_mut().filter(|probe| probe.x == x).for_each(|probe| *probe = again);
            confirmed.push(x);
            search.refine(&mut probes, round, |x| measure(x, false))?;
        }
        let at: Vec<String> = other_values.iter().map(|(key, value)| format!("{key} {value}")).collect();
        let at = at.join(", ");
        let metric = measurements.last().map_or(Metric::ResponseTime, |measured| measured.metric);
        let answer = SearchAnswer {
            transport,
            reference,
            axis,
            unit: numbers.unit,
            metric,
            measurements: &measurements,
        };
        let sentence = answer.sentence(&probes);
        Ok(SearchResult {
            axis: axis.keys[0].clone(),
            unit: numbers.unit,
            sentence: if at.is_empty() { sentence } else { format!("{at}: {sentence}") },
            at,
            transport: transport.to_owned(),
            than: reference.to_owned(),
            metric: metric.info().title,
            crossovers: brackets(&probes).into_iter().map(|bracket| answer.to_crossover(bracket)).collect(),
            map: map::axis_letters(&probes, search.logarithmic),
        })
    }

    /// Adds repetitions at one value of the axis until the result is significant or the maximum is reached. If
    /// `confirm` is true, performs the maximum number of repetitions at once.
    fn probe(
        &mut self,
        x: f64,
        text: &str,
        compared: ComparedTransports<'_>,
        confirm: bool,
    ) -> Result<(Probe, ProbeNumbers), Failure> {
        let points = self.points(text, compared)?;
        let repetitions_in_file = points.first().map_or(1, |point| point.repetitions.min);
        let max = self.max_repetitions.map_or(DEFAULT_MAX_REPETITIONS.max(16 * repetitions_in_file), |max| {
            u32::try_from(max).unwrap_or(u32::MAX)
        });
        let mut repetitions = if confirm { max } else { MIN_REPETITIONS.max(repetitions_in_file).min(max) };
        loop {
            let results = self.perform_runs(&points, repetitions)?;
            let cells: Vec<Cell> = results.iter().map(Cell::from).collect();
            let of = |label: &str| cells.iter().find(|cell| cell.transport == label);
            let (Some(cell), Some(reference)) = (of(compared.transport), of(compared.reference)) else {
                let key = &self.axis.keys[0];
                return Err(Failure::Failed(format!(
                    "{key} = {text}: one of the two transports has no point with this value; give both the \
                    same axes"
                )));
            };
            let metric = main_metric(cells.iter());
            let contest = TransportComparison::with_margin(metric, cell, reference).corrected_for(TEST_COUNT);
            let (winner, is_comparable) = (winner(&contest), contest.outcome() != Outcome::Unknown);
            if winner != Winner::Unsure || repetitions >= max || !is_comparable {
                let (difference, losses) =
                    (contest.describe_difference(), contest.describe_losses().filter(|_| is_comparable));
                let loss_difference = contest.loss_difference();
                let numbers = ProbeNumbers { x, metric, difference, losses, loss_difference, is_comparable };
                return Ok((Probe { x, winner }, numbers));
            }
            repetitions = (repetitions * 2).min(max);
        }
    }

    /// Returns the points of both transports at one value of the axis.
    fn points(&self, text: &str, compared: ComparedTransports<'_>) -> Result<Vec<Point>, Failure> {
        let key = &self.axis.keys[0];
        let mut source = self.source.clone();
        source.set(&format!("{key} = {text}"), key, text)?;
        let mut points = Experiment::parse(&self.source.stem(), &source)?.points;
        points.retain(|point| {
            let others = without_axis(&point.axes, self.axis);
            others.iter().all(|value| compared.other_values.contains(value))
                && [compared.transport, compared.reference].contains(&point.label.as_str())
        });
        Ok(points)
    }

    /// Performs `repetitions` runs of each point. Each run has as many messages as a run of the experiment file.
    fn perform_runs(&mut self, points: &[Point], repetitions: u32) -> Result<Vec<PointResult>, Failure> {
        let longer = |point: &Point| {
            let mut point = point.clone();
            let each = point.messages.div_ceil(point.repetitions.min.into()).max(1);
            point.repetitions = Repetitions::fixed(repetitions);
            point.messages = each * u64::from(repetitions);
            point.precision = None;
            point.id = point.identity();
            point
        };
        let plan = Plan::of_points(points.iter().map(longer).collect());
        execute(&plan, &mut self.finished, self.threads, self.stop, &Archive::default(), |_, _, _| Ok(()))?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(Failure::Failed("interrupted".to_owned()));
        }
        if let Some(first) = self.finished.failed().next() {
            return Err(Failure::Failed(format!("a run failed: {first}")));
        }
        Ok(plan.point_results(&self.finished))
    }
}

/// Returns which transport is significantly better: `First` is the reference, `Second` the challenger.
fn winner(contest: &TransportComparison<'_>) -> Winner {
    match contest.outcome() {
        Outcome::Better => Winner::Second,
        Outcome::Worse => Winner::First,
        Outcome::Same => Winner::Tie,
        Outcome::Undecided | Outcome::Unknown => Winner::Unsure,
    }
}

/// Returns the ends of the intervals of all crossovers.
fn crossover_ends(probes: &[Probe]) -> Vec<f64> {
    brackets(probes).into_iter().flat_map(|bracket| [bracket.low, bracket.high]).collect()
}
