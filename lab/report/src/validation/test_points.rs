//! Synthetic points for tests.

use std::sync::Arc;

use hol_lab::{Experiment, Point, PointResult, RunKey, RunResult, Source};
use hol_measure::Summary;

use super::{ComparedPoint, Validation};
use crate::testing::summary;
use hol_lab::Metric;

/// Returns the only point of the experiment `text`. In each repetition one message took the given time, in
/// ms.
pub fn compared(text: &str, kernel_ms: &[u64], model_ms: &[u64]) -> ComparedPoint {
    let [kernel, model] = [kernel_ms, model_ms].map(|millis| measured("test", text, millis).remove(0));
    ComparedPoint::of(&kernel, &model, Metric::ResponseTime)
}

/// Returns every point of the experiment `text`. In each repetition one message took the given time, in ms.
pub fn measured(name: &str, text: &str, millis: &[u64]) -> Vec<PointResult> {
    let source = Source::new("test.toml", text).with_file("trace.csv", "0 2\n5 9\n20 2\n");
    let experiment = Experiment::parse(name, &source).expect("the test's text is right");
    let result = |point: &Point| {
        let point = point.clone();
        let run = |(repetition, ms): (u32, &u64)| RunResult {
            key: RunKey { point: point.id, repetition },
            trace_start: None,
            summary: Summary { bytes: 1000, ..summary(&[*ms as f64]) },
            classes: Vec::new(),
            other: Default::default(),
            span: hol_base::Duration::from_millis(*ms),
            connect_time: None,
            timeline: None,
            outages: Vec::new(),
            outage_curve: None,
            failed_at: None,
            waterfall: None,
            background: Vec::new(),
            packets: 2,
            packets_lost: None,
            packets_marked: None,
            counts: None,
            stop_reason: None,
            wall_s: 0.0,
            has_delivery_times: true,
            world_report: None,
        };
        let runs = (0..).zip(millis).map(run).map(Arc::new).collect();
        PointResult { point, runs, complete: true }
    };
    experiment.points.iter().map(result).collect()
}

/// Returns a validation of points in this order.
pub fn validation(points: Vec<ComparedPoint>) -> Validation {
    Validation {
        title: "A & B".to_owned(),
        metric: Metric::ResponseTime,
        points,
        missing: 0,
        kernel: String::new(),
        model_version: String::new(),
    }
}
