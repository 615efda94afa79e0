//! Synthetic points for tests.

use std::sync::Arc;

use hol_lab::{Experiment, PointResult, RunKey, RunResult, Source};
use hol_measure::Summary;

use super::{Compared, Validation};
use crate::metric::Metric;
use crate::testing::summary;

/// The only point of the experiment `text`, with repetitions of one message that took so many ms in each world.
pub fn compared(text: &str, kernel_ms: &[u64], model_ms: &[u64]) -> Compared {
    let experiment =
        Experiment::parse("test", &Source::new("test.toml", text)).expect("the test's text is right");
    let result = |millis: &[u64]| {
        let point = experiment.points[0].clone();
        let run = |(repetition, ms): (u32, &u64)| RunResult {
            key: RunKey { point: point.id, repetition },
            summary: Summary { bytes: 1000, ..summary(&[*ms as f64]) },
            other: Default::default(),
            span: hol_base::Duration::from_millis(*ms),
            connect_time: None,
            background: Vec::new(),
            packets: 2,
            packets_lost: None,
            counts: None,
            stopped: None,
            wall_s: 0.0,
            sees_passage: true,
            facts: None,
        };
        let runs = (0..).zip(millis).map(run).map(Arc::new).collect();
        PointResult { point, runs, complete: true }
    };
    Compared::of(&result(kernel_ms), &result(model_ms), Metric::ResponseTime)
}

/// Points as they come.
pub fn validation(points: Vec<Compared>) -> Validation {
    Validation {
        title: "A & B".to_owned(),
        metric: Metric::ResponseTime,
        points,
        missing: 0,
        kernel: String::new(),
        model: String::new(),
    }
}
