//! The report of an experiment that is not a study: figures, maps and sentences that follow from its axes by rules.
//!
//! The first numeric axis is horizontal, transports are curves, the second axis gives panels, and each combination of the others gives
//! another figure. No line joins points that differ in more than their position on the horizontal axis.

mod axes;
mod axis_numbers;
mod carrier;
mod comparison_text;
mod figures;
mod halves;
mod headline;
mod map;
mod outages;
mod over_time;
mod quantiles;
mod size;
mod size_classes;
mod transport_comparison;

use std::collections::{BTreeMap, BTreeSet};

use hol_lab::{DefinedMetric, FigureRequest};

use crate::data::{Cell, Dataset, Filter};
use crate::figures::Figure;
use crate::plot::SeriesStyle;
use hol_lab::Metric;

pub use axes::Axis;
pub use axes::axes;
pub use axis_numbers::AxisNumbers;
pub use comparison_text::verdict;
pub use headline::Headline;
pub use map::Map;
pub use outages::describe_outage;
pub use size_classes::prefix_with_class;
pub use transport_comparison::{NEGLIGIBLE, Outcome, TransportComparison};

/// The results of one experiment that is not a study, by transport and axis values.
#[derive(Debug)]
pub struct Survey<'d> {
    /// Name of the experiment.
    pub experiment: String,
    /// The labels of the transports, the reference first.
    pub transports: Vec<&'d str>,
    /// The axes, the horizontal one first.
    pub axes: Vec<Axis>,
    /// The point of each transport at each combination of steps. A point is at all steps of an axis that has no effect
    /// on it.
    cells: BTreeMap<(usize, Vec<usize>), &'d Cell>,
    main_metric: Metric,
}

/// The results of a survey, for the report.
#[derive(Debug, Clone)]
pub struct SurveyResults {
    /// Name of the experiment.
    pub experiment: String,
    /// The sentences of the answer.
    pub headline: Headline,
    /// The maps of the best transport, one for each combination of further axes.
    pub maps: Vec<Map>,
    /// The axes.
    pub axes: Vec<Axis>,
    /// The filter of each set of conditions, with a description.
    pub conditions: Vec<(String, Filter)>,
}

impl<'d> Survey<'d> {
    /// Creates the survey of `experiment`; `points` are the axes of all planned points, measured or not.
    pub fn new(experiment: &str, points: &[&[(String, String)]], data: &'d Dataset) -> Self {
        let mut axes = axes::axes(points);
        // The first numeric axis comes first; the others keep their order.
        if let Some(index) = axes.iter().position(|axis| axis.numbers.is_some()) {
            axes[..=index].rotate_right(1);
        }
        Self::over(experiment, axes, &data.cells)
    }

    /// Returns the survey with the axes of these keys first, in this order.
    pub fn with_axes_first(&self, keys: &[&str], data: &'d Dataset) -> Self {
        let mut axes = self.axes.clone();
        let place = |axis: &Axis| keys.iter().position(|key| axis.keys.iter().any(|known| known == key));
        axes.sort_by_key(|axis| place(axis).unwrap_or(keys.len()));
        Self::over(&self.experiment, axes, &data.cells)
    }

    fn over(experiment: &str, axes: Vec<Axis>, cells: impl IntoIterator<Item = &'d Cell>) -> Self {
        let mut survey = Self {
            experiment: experiment.to_owned(),
            transports: Vec::new(),
            axes,
            cells: BTreeMap::new(),
            main_metric: Metric::ResponseTime,
        };
        for cell in cells.into_iter().filter(|cell| cell.experiment == experiment) {
            let transport = survey.transport(&cell.transport);
            let steps = survey.steps(cell);
            survey.cells.extend(steps.into_iter().map(|steps| ((transport, steps), cell)));
        }
        survey.main_metric = main_metric(survey.cells());
        survey
    }

    /// Returns the survey of the reference and a challenger, over the axes that have an effect on one of them.
    fn pair(&self, challenger: usize) -> Self {
        let of = |wanted: usize| self.cells.iter().filter(move |((transport, _), _)| *transport == wanted);
        let cells: Vec<&Cell> = of(0).chain(of(challenger)).map(|(_, cell)| *cell).collect();
        let is_seen = |axis: &&Axis| cells.iter().any(|cell| axis.affects(cell));
        let axes = self.axes.iter().filter(is_seen).cloned().collect();
        Self { main_metric: self.main_metric, ..Self::over(&self.experiment, axes, cells) }
    }

    fn transport(&mut self, label: &'d str) -> usize {
        let known = self.transports.iter().position(|known| *known == label);
        known.unwrap_or_else(|| {
            self.transports.push(label);
            self.transports.len() - 1
        })
    }

    /// Returns the combinations of steps to which a point belongs.
    fn steps(&self, cell: &Cell) -> Vec<Vec<usize>> {
        let steps_of = |axis: &Axis| {
            if !axis.affects(cell) {
                return (0..axis.steps.len()).collect();
            }
            let is_at = |step: &Vec<String>| {
                axis.keys.iter().zip(step).all(|(key, value)| cell.conditions.axis_value(key) == Some(value))
            };
            axis.steps.iter().position(is_at).into_iter().collect::<Vec<usize>>()
        };
        combine(self.axes.iter().map(steps_of))
    }

    /// Returns the point of a transport at a step of each axis.
    pub fn at(&self, transport: usize, steps: &[usize]) -> Option<&'d Cell> {
        self.cells.get(&(transport, steps.to_vec())).copied()
    }

    /// Returns every combination of steps of the axes, starting with the axis of index `from`; the last axis changes
    /// fastest.
    pub fn combinations(&self, from: usize) -> Vec<Vec<usize>> {
        combine(self.axes.iter().skip(from).map(Axis::ascending))
    }

    /// Describes the `steps` of the axes, starting with the axis of index `from`.
    pub fn describe_steps(&self, from: usize, steps: &[usize]) -> String {
        let parts = self.axes.iter().skip(from).zip(steps).map(|(axis, step)| axis.describe_step(*step));
        parts.collect::<Vec<_>>().join(", ")
    }

    /// Returns all points, transport by transport.
    pub fn cells(&self) -> impl Iterator<Item = &'d Cell> {
        let mut seen = BTreeSet::new();
        self.cells.values().copied().filter(move |cell| seen.insert(std::ptr::from_ref::<Cell>(cell)))
    }

    /// Returns the looks of the transports.
    pub fn styles(&self) -> Vec<SeriesStyle> {
        SeriesStyle::of_transports(&self.transports)
    }

    /// Returns the metric of the headline.
    pub const fn main_metric(&self) -> Metric {
        self.main_metric
    }

    /// Returns the results apart from the figures.
    pub fn results(&self) -> SurveyResults {
        let mut headline = Headline::of(self);
        headline.lines.extend(size_classes::describe_classes(self));
        SurveyResults {
            experiment: self.experiment.clone(),
            headline,
            maps: map::maps(self),
            axes: self.axes.clone(),
            conditions: self.combinations(0).into_iter().map(|steps| self.condition(&steps)).collect(),
        }
    }

    /// Returns the metric of this name: one that a program reports, or else a built-in one.
    fn metric(&self, name: &str) -> Metric {
        let own = defined_metrics(self.cells())
            .into_iter()
            .find(|defined| defined.name == name)
            .map(Metric::Defined);
        own.or_else(|| Metric::from_name(name)).unwrap_or_default()
    }

    fn condition(&self, steps: &[usize]) -> (String, Filter) {
        let values = |(axis, step): (&Axis, &usize)| {
            let values = axis.steps[*step].iter().map(|value| vec![value.clone()]);
            axis.keys.iter().cloned().zip(values).collect::<Vec<_>>()
        };
        let axes = self.axes.iter().zip(steps).flat_map(values).collect();
        (
            self.describe_steps(0, steps),
            Filter { experiments: vec![self.experiment.clone()], axes, ..Filter::default() },
        )
    }

    /// Returns the figures, numbered from `first`. These are the figures that the experiment requests, or otherwise
    /// those that its axes determine.
    pub fn figures(&self, requests: &[FigureRequest], data: &'d Dataset, first: usize) -> Vec<Figure> {
        if requests.is_empty() {
            return figures::figures(self, first);
        }
        let drawn = requests.iter().flat_map(|wish| {
            let keys: Vec<&str> =
                [Some(wish.over.as_str()), wish.panels.as_deref()].into_iter().flatten().collect();
            figures::metric_figures(&self.with_axes_first(&keys, data), self.metric(&wish.metric))
        });
        let around = over_time::figures_over_time(self).into_iter();
        figures::number_figures(
            around.chain(drawn).chain(figures::distribution_figures(self)).collect(),
            first,
        )
    }
}

/// Returns every combination of one step of each axis; the last axis changes fastest.
pub fn combine(axes: impl Iterator<Item = Vec<usize>>) -> Vec<Vec<usize>> {
    let extend = |done: Vec<Vec<usize>>, steps: Vec<usize>| {
        let with = |done: &Vec<usize>| steps.iter().map(|step| [&done[..], &[*step]].concat()).collect();
        done.iter().flat_map::<Vec<Vec<usize>>, _>(with).collect()
    };
    axes.fold(vec![Vec::new()], extend)
}

/// Returns the metrics that programs report at these points.
pub(crate) fn defined_metrics<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<DefinedMetric> {
    let mut all: Vec<DefinedMetric> = Vec::new();
    for (metric, _) in cells.flat_map(|cell| &cell.values) {
        if let Metric::Defined(defined) = metric
            && !all.contains(defined)
        {
            all.push(*defined);
        }
    }
    all
}

/// Returns the first metric that a program reports and that has a value.
fn first_defined_metric(cell: &Cell) -> Option<Metric> {
    let is_defined = |metric: Metric| matches!(metric, Metric::Defined(_));
    let mut known = cell.values.iter();
    known
        .find(|(metric, values)| is_defined(*metric) && values.iter().any(Option::is_some))
        .map(|(metric, _)| *metric)
}

/// Returns the main metric of the points, by the first rule that applies: a metric that the experiment
/// defines; the outage, if the path is disrupted in every run; the playable share, for frames; the
/// throughput, if only the transport limits the rate; the response time.
pub fn main_metric<'c>(mut cells: impl Iterator<Item = &'c Cell>) -> Metric {
    let usual = |cell: &Cell| match cell {
        _ if cell.is_always_disrupted() => Metric::Outage,
        _ if cell.has_playout_times() => Metric::Playable,
        _ if cell.flows.is_some() && cell.conditions.rate <= 0.0 => Metric::Throughput,
        _ => Metric::ResponseTime,
    };
    let of = |cell: &Cell| first_defined_metric(cell).unwrap_or_else(|| usual(cell));
    let first = cells.next().map_or(Metric::ResponseTime, of);
    if cells.all(|cell| of(cell) == first) { first } else { Metric::ResponseTime }
}
