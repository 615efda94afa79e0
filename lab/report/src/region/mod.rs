//! The region in the plane of two swept keys in which a transport meets a requirement.

mod draw;

use hol_measure::{CONFIDENCE, Interval};
use serde::Deserialize;

use crate::data::{Cell, Dataset};
use crate::plot::SeriesStyle;
use crate::survey::{Axis, Survey};
use hol_lab::Metric;

/// A requirement: a threshold of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The metric that has to reach the threshold.
    pub metric: Metric,
    /// Threshold, in the unit of the metric.
    pub from: f64,
}

/// A drawing, for a study, of the points at which transports meet a requirement.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionSpec {
    /// Caption of the drawing.
    pub caption: String,
    /// Experiment whose points the drawing shows.
    pub experiment: String,
    /// The labels of the transports, with their stacks.
    pub transports: Vec<String>,
    /// The swept keys of the horizontal and the vertical axis.
    pub axes: [String; 2],
    /// The requirement that a point has to meet.
    #[serde(rename = "enough")]
    pub requirement: Requirement,
}

/// The regions of some transports: where each meets a requirement, in a plane of two axes.
#[derive(Debug, Clone)]
pub struct Region {
    /// File name and anchor of the drawing.
    pub id: String,
    /// Caption of the drawing.
    pub caption: String,
    requirement: Requirement,
    axes: [Axis; 2],
    transports: Vec<TransportRegion>,
}

/// The region of one transport: the points at which it meets the requirement.
#[derive(Debug, Clone)]
struct TransportRegion {
    label: String,
    style: SeriesStyle,
    /// The share of the points at which the transport meets the requirement, in percent.
    area: Option<Interval>,
    /// The points row by row from the lowest value; `None` if a point was not measured.
    points: Vec<Vec<Option<RegionPoint>>>,
}

/// The result at a point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RegionPoint {
    mean: f64,
    /// The worse end of the mean's confidence interval.
    worse_end: f64,
}

impl Requirement {
    /// Returns whether a value meets the requirement.
    pub fn is_met_by(&self, value: f64) -> bool {
        self.metric.gain(value - self.from) >= 0.0
    }

    /// Describes the requirement: `playable frames of at least 99 %`.
    pub fn describe(&self) -> String {
        let bound = if self.metric.gain(1.0) > 0.0 { "at least" } else { "at most" };
        format!("{} of {bound} {} {}", self.metric.info().title, self.from, self.metric.info().unit)
    }

    /// Returns the share of the points that meet the requirement, in percent, for each repetition that all
    /// points have. A point without a value does not meet it.
    pub fn shares_met_by_repetition(&self, cells: &[&Cell]) -> Vec<f64> {
        let values: Vec<Vec<Option<f64>>> =
            cells.iter().map(|cell| cell.values_by_run(self.metric)).collect();
        let repetitions = cells.iter().map(|cell| cell.runs.len()).min().unwrap_or(0);
        let is_good = |values: &&Vec<Option<f64>>, repetition: usize| {
            values.get(repetition).copied().flatten().is_some_and(|value| self.is_met_by(value))
        };
        let area = |repetition| {
            let good = values.iter().filter(|values| is_good(values, repetition)).count();
            100.0 * good as f64 / cells.len() as f64
        };
        (0..repetitions).map(area).collect()
    }
}

/// Returns the regions of a study; regions without a point are omitted.
pub fn gather(specs: &[RegionSpec], data: &Dataset) -> Vec<Region> {
    specs.iter().zip(1..).filter_map(|(spec, number)| region(spec, number, data)).collect()
}

fn region(spec: &RegionSpec, number: usize, data: &Dataset) -> Option<Region> {
    let points: Vec<&[(String, String)]> = data
        .planned_points()
        .filter(|(cell, _)| cell.experiment == spec.experiment)
        .map(|(cell, _)| cell.conditions.axes.as_slice())
        .collect();
    let survey = Survey::new(&spec.experiment, &points, data);
    let survey = survey.with_axes_first(&spec.axes.each_ref().map(String::as_str), data);
    let [across, up] = survey.axes.get(..2)?.to_vec().try_into().ok()?;
    let labels: Vec<&str> = spec.transports.iter().map(String::as_str).collect();
    let styles = SeriesStyle::of_transports(&labels);
    let of = |(label, style): (&&str, SeriesStyle)| {
        let transport = survey.transports.iter().position(|known| known == label)?;
        let cell = |x: usize, y: usize| survey.at(transport, &[x, y]);
        let steps =
            || up.ascending().into_iter().map(|y| across.ascending().into_iter().map(move |x| (x, y)));
        let cells: Vec<&Cell> = steps().flatten().filter_map(|(x, y)| cell(x, y)).collect();
        let point = |(x, y)| spec.requirement.evaluate(cell(x, y)?);
        let area = Interval::of(&spec.requirement.shares_met_by_repetition(&cells), CONFIDENCE);
        let points = steps().map(|row| row.map(point).collect()).collect();
        Some(TransportRegion { label: (*label).to_owned(), style, area, points })
    };
    let transports: Vec<TransportRegion> = labels.iter().zip(styles).filter_map(of).collect();
    (!transports.is_empty()).then(|| Region {
        id: format!("region-{number}"),
        caption: spec.caption.clone(),
        requirement: spec.requirement,
        axes: [across, up],
        transports,
    })
}

impl Requirement {
    fn evaluate(&self, cell: &Cell) -> Option<RegionPoint> {
        let mean = cell.mean_with_bounds(self.metric)?;
        let ends = [mean.low, mean.high];
        let worse_end =
            ends.into_iter().min_by(|a, b| self.metric.gain(*a).total_cmp(&self.metric.gain(*b)))?;
        Some(RegionPoint { mean: mean.value, worse_end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{cell, dataset};

    const REQUIREMENT: Requirement = Requirement { metric: Metric::ResponseTime, from: 30.0 };

    fn point(transport: &str, loss: &str, rate: &str, means: &[f64]) -> Cell {
        let mut cell = cell(transport, 1.0, 100.0, means);
        cell.conditions.axes = [("network.rate", rate), ("network.loss", loss)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        cell
    }

    #[test]
    fn area_is_the_share_of_points_that_meet_the_requirement() {
        let cells = [
            point("TCP", "1%", "1Mbit", &[20.0, 40.0]),
            point("TCP", "2%", "1Mbit", &[30.0, 29.0]),
            point("TCP", "1%", "2Mbit", &[31.0, 20.0, 20.0]),
            point("TCP", "2%", "2Mbit", &[31.0, 32.0]),
        ];
        assert_eq!(REQUIREMENT.shares_met_by_repetition(&cells.each_ref()), [50.0, 50.0]);
        assert!(
            REQUIREMENT.shares_met_by_repetition(&[&cells[0], &point("TCP", "3%", "1Mbit", &[])]).is_empty()
        );
    }

    #[test]
    fn drawing_has_both_axes_and_the_area_of_each_region() {
        let mut cells = Vec::new();
        for (transport, ms) in [("TCP", 20.0), ("SCTP-8", 40.0)] {
            for loss in ["2%", "1%"] {
                for rate in ["1Mbit", "2Mbit"] {
                    let slow = if (loss, rate) == ("2%", "1Mbit") { 100.0 } else { 0.0 };
                    cells.push(point(transport, loss, rate, &[ms + slow, ms + slow]));
                }
            }
        }
        let spec = RegionSpec {
            caption: "Where it is fast".into(),
            experiment: "exp1".into(),
            transports: vec!["TCP".into(), "SCTP-8".into(), "none".into()],
            axes: ["network.loss".into(), "network.rate".into()],
            requirement: REQUIREMENT,
        };
        let [region] = gather(&[spec], &dataset(cells)).try_into().expect("one");
        let areas: Vec<f64> =
            region.transports.iter().map(|t| t.area.expect("two repetitions").mean).collect();
        assert_eq!(areas, [75.0, 0.0]);
        let svg = region.draw().inline();
        assert_eq!((svg.matches("field sure").count(), svg.matches("field tie").count()), (3, 5), "{svg}");
        assert!(svg.contains("TCP: 75.000 ± 0 %") && svg.contains("loss (%)"), "{svg}");
        assert_eq!(region.csv().lines().nth(1), Some("TCP,1,1,20.0000,20.0000,yes"));
    }
}
