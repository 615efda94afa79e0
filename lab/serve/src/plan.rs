//! The plan of an experiment: its axes, and the points that combine their values.

use std::collections::BTreeMap;

use hol_lab::{Experiment, Point};
use hol_report::survey::{Axis, axes, combine};
use serde::Serialize;
use utoipa::ToSchema;

/// Key of the axis of transports, which has no key in the file.
const TRANSPORT_AXIS: &str = "transport";

/// The axes and the points of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ExperimentPlan)]
pub struct Plan {
    /// Axes with more than one value: the transports, then the axes of the file in its order.
    pub axes: Vec<PlanAxis>,
    /// Points in the order of their indices. A point that lacks the key of an axis, because it is an option of another
    /// transport, is listed with each value of the axis.
    pub points: Vec<PlanPoint>,
}

/// An axis of the plan, with its values.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanAxis {
    /// Dotted keys of the experiment file, or `transport`. Keys whose values advance together are one axis.
    pub keys: Vec<String>,
    /// Name of the axis, as in reports.
    pub name: String,
    /// Unit of the numbers; empty if there are no numbers, or they have no unit.
    pub unit: &'static str,
    /// Values in the order of the file.
    pub values: Vec<PlanValue>,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlanValue {
    /// The value as in the file; the values of several keys are separated by commas.
    pub text: String,
    /// The value as a number in the unit of the axis; for a zip, the number of the first key that distinguishes its
    /// values. None if the values have no scale.
    pub number: Option<f64>,
}

/// A point of the plan: one value on each axis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlanPoint {
    /// Index of the point, from 0, as in `hol run --plan`. Animations and terminals select the point by this index.
    pub index: usize,
    /// Index of the point's value on each axis, from 0.
    pub values: Vec<usize>,
    /// Maximum number of repetitions.
    pub repetitions: u32,
}

impl Plan {
    /// Returns the plan of an experiment.
    pub fn of(experiment: &Experiment) -> Self {
        let settings: Vec<Vec<(String, String)>> = experiment.points.iter().map(settings).collect();
        let axes = axes(&settings.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let steps: Vec<BTreeMap<Vec<&str>, usize>> = axes.iter().map(indices_of_steps).collect();
        let points = experiment.points.iter().zip(&settings).enumerate();
        let listed = points.flat_map(|(index, (point, settings))| {
            let steps = axes.iter().zip(&steps).map(|(axis, steps)| {
                let own = steps.get(&values_on_axis(axis, settings));
                own.map_or_else(|| (0..axis.steps.len()).collect(), |step| vec![*step])
            });
            let repetitions = point.repetitions.max;
            combine(steps).into_iter().map(move |values| PlanPoint { index, values, repetitions })
        });
        Self { points: listed.collect(), axes: named_axes(&axes) }
    }
}

impl PlanAxis {
    fn of(axis: &Axis) -> Self {
        let numbers = axis.numbers.as_ref().map(|(_, numbers)| numbers);
        let value = |step| {
            let number = numbers.map(|numbers| numbers.values[step]);
            PlanValue { text: axis.format_values(step), number }
        };
        Self {
            keys: axis.keys.clone(),
            name: axis.key_names(),
            unit: numbers.map_or("", |numbers| numbers.unit),
            values: (0..axis.steps.len()).map(value).collect(),
        }
    }
}

/// Returns the point at `index` of an experiment's plan.
pub fn point_of(experiment: &Experiment, index: usize) -> Result<&Point, String> {
    let count = experiment.points.len();
    experiment
        .points
        .get(index)
        .ok_or_else(|| format!("no point {index}: the experiment has {count} points; the first is number 0"))
}

/// Returns the axes. Axes with the same name, such as the loss of two links, are named by their keys instead.
fn named_axes(axes: &[Axis]) -> Vec<PlanAxis> {
    let mut named: Vec<PlanAxis> = axes.iter().map(PlanAxis::of).collect();
    for (at, axis) in axes.iter().enumerate() {
        let is_shared =
            axes.iter().enumerate().any(|(other, own)| other != at && own.key_names() == axis.key_names());
        if is_shared {
            named[at].name = axis.keys.join(", ");
        }
    }
    named
}

/// Returns the settings that distinguish a point from others: its transport, and its swept keys with their values.
fn settings(point: &Point) -> Vec<(String, String)> {
    let transport = (TRANSPORT_AXIS.to_owned(), point.label.clone());
    std::iter::once(transport).chain(point.axes.iter().cloned()).collect()
}

/// Returns a map from the values of each step of an axis to its index.
fn indices_of_steps(axis: &Axis) -> BTreeMap<Vec<&str>, usize> {
    let steps = axis.steps.iter().enumerate();
    steps.map(|(index, step)| (step.iter().map(String::as_str).collect(), index)).collect()
}

/// Returns the values that a point has on an axis.
fn values_on_axis<'s>(axis: &Axis, settings: &'s [(String, String)]) -> Vec<&'s str> {
    let value =
        |key: &String| settings.iter().find(|(own, _)| own == key).map_or("", |(_, value)| value.as_str());
    axis.keys.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use hol_lab::Source;

    use super::*;

    fn plan(text: &str) -> Plan {
        let text = format!("messages = 1000\nrepetitions = 2\n{text}");
        Plan::of(&Experiment::parse_for_any_machine("test", &Source::new("test.toml", text)).unwrap())
    }

    fn texts(axis: &PlanAxis) -> Vec<&str> {
        axis.values.iter().map(|value| value.text.as_str()).collect()
    }

    fn names(plan: &Plan) -> Vec<(&str, &str, Vec<&str>)> {
        plan.axes.iter().map(|axis| (axis.name.as_str(), axis.unit, texts(axis))).collect()
    }

    #[test]
    fn each_point_of_a_grid_has_a_value_on_each_axis() {
        let plan = plan(
            "transports = ['tcp', 'sctp']\n[sweep]\n'network.rtt' = ['10ms', '0.2s']\n'network.loss' = ['0%', '1%', '2%']\n",
        );
        assert_eq!(
            names(&plan),
            [
                ("transport", "", vec!["tcp", "sctp"]),
                ("RTT", "ms", vec!["10ms", "0.2s"]),
                ("loss", "%", vec!["0%", "1%", "2%"]),
            ]
        );
        assert_eq!(plan.axes[1].values[1].number, Some(200.0));
        assert_eq!(plan.axes[0].values[1].number, None);
        let points: Vec<_> = plan.points.iter().map(|point| point.values.clone()).collect();
        let expected = (0..2).flat_map(|a| (0..2).flat_map(move |b| (0..3).map(move |c| vec![a, b, c])));
        assert_eq!(points, expected.collect::<Vec<_>>());
        assert!(
            plan.points.iter().enumerate().all(|(at, point)| (point.index, point.repetitions) == (at, 2))
        );
    }

    #[test]
    fn a_point_without_the_option_is_listed_with_each_of_its_values() {
        let plan = plan("transports = ['tcp', 'sctp']\n[sweep]\n'sctp.rto_min' = ['100ms', '1s']\n");
        assert_eq!(names(&plan)[1], ("sctp.rto_min", "ms", vec!["100ms", "1s"]));
        let points: Vec<_> = plan.points.iter().map(|point| (point.index, point.values.clone())).collect();
        assert_eq!(points, [(0, vec![0, 0]), (0, vec![0, 1]), (1, vec![1, 0]), (2, vec![1, 1])]);
    }

    #[test]
    fn lists_that_advance_together_are_one_axis() {
        let plan = plan(
            "transports = ['tcp']\n[[zip]]\n'network.delay' = ['1ms', '2ms', '3ms']\n'network.rate' = ['1Mbit', '1Mbit', '5Mbit']\n",
        );
        assert_eq!(
            names(&plan),
            [("delay, bandwidth", "ms", vec!["1ms, 1Mbit", "2ms, 1Mbit", "3ms, 5Mbit"])]
        );
        assert_eq!(plan.points.iter().map(|point| point.values[0]).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn three_lists_that_pairwise_form_grids_are_axes_without_all_points() {
        let plan = plan(
            "transports = ['tcp']\n[zip]\n'network.rtt' = ['10ms', '10ms', '80ms', '80ms']\n\
            'network.loss' = ['0%', '3%', '0%', '3%']\n'network.rate' = ['1Mbit', '2Mbit', '2Mbit', '1Mbit']\n",
        );
        assert_eq!(plan.axes.len(), 3);
        let points: Vec<_> = plan.points.iter().map(|point| point.values.as_slice()).collect();
        assert_eq!(points, [[0, 0, 0], [1, 1, 0], [0, 1, 1], [1, 0, 1]]);
    }

    #[test]
    fn axes_of_the_same_name_are_named_by_their_keys() {
        let plan = plan(
            "transports = ['tcp']\nworkload = { kind = 'oneway', size = '100B', from = 'a', to = 'c' }\n\
            network.nodes = ['a', 'b', 'c']\nnetwork.links = [{ from = 'a', to = 'b' }, { from = 'b', to = 'c' }]\n\
            [sweep]\n'network.links.0.loss' = ['0%', '1%']\n'network.links.1.loss' = ['0%', '1%']\n",
        );
        let names: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(names, ["network.links.0.loss", "network.links.1.loss"]);
    }

    #[test]
    fn duplicate_transport_is_two_values_and_one_point_has_no_axis() {
        assert_eq!(
            names(&plan("transports = ['tcp', 'tcp']\n")),
            [("transport", "", vec!["tcp", "tcp (2)"])]
        );
        let one = plan("transports = ['tcp']\n");
        assert_eq!((one.axes, one.points[0].values.clone()), (vec![], vec![]));
    }
}
