//! Synthetic points for tests of claims and figures.

use hol_base::{Digest, Duration};
use hol_lab::Metric;
use hol_lab::Origin;
use hol_lab::fidelity::Fidelity;
use hol_measure::{
    Distribution, MeanDelayBreakdown, RecordKind, Recorder, RunHalves, Summary, TotalDelayBreakdown,
};

use crate::claims::View;
use crate::data::{Cell, Conditions, Dataset, Flows};
use crate::figures::StackView;
use crate::provenance::Provenance;
use crate::survey::Survey;

/// Returns a point of `exp1` (10 ms one-way delay), one transaction for each repetition.
pub fn cell(transport: &str, loss: f64, rate: f64, means: &[f64]) -> Cell {
    let runs: Vec<Summary> = means.iter().map(|mean| summary(&[*mean])).collect();
    of_runs(transport, loss, rate, runs)
}

/// Returns a point with many transactions in each repetition.
pub fn cell_with(transport: &str, loss: f64, rate: f64, runs: &[Vec<f64>]) -> Cell {
    of_runs(transport, loss, rate, runs.iter().map(|latencies| summary(latencies)).collect())
}

/// Returns a point of one-way messages with these swept keys and the throughput of each repetition.
pub fn flow(transport: &str, axes: &[(&str, &str)], throughputs: &[f64], ceiling_kbps: f64) -> Cell {
    let mut cell = cell(transport, 0.0, 0.0, &vec![10.0; throughputs.len()]);
    cell.conditions.axes = axes.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    cell.flows = Some(Flows {
        point: cell.describe_conditions(),
        ceiling_kbps: Some(ceiling_kbps),
        background_kbps: None,
    });
    set(&mut cell, Metric::ConnectTime, vec![Some(100.0); throughputs.len()]);
    set(&mut cell, Metric::Throughput, throughputs.iter().copied().map(Some).collect());
    cell
}

/// Sets the values of a metric of a point.
pub fn set(cell: &mut Cell, metric: Metric, values: Vec<Option<f64>>) {
    cell.values.retain(|(known, _)| *known != metric);
    cell.values.push((metric, values));
}

/// Returns the data with these points.
pub fn dataset(cells: Vec<Cell>) -> Dataset {
    Dataset { cells, ..Dataset::default() }
}

/// Returns the view of the stack without a suffix.
pub fn view(data: &Dataset) -> View<'_> {
    const STACK: &StackView = &StackView { title: String::new(), suffix: String::new() };
    View { data, stack: STACK }
}

fn of_runs(transport: &str, loss: f64, rate: f64, runs: Vec<Summary>) -> Cell {
    let mut latency = Distribution::default();
    runs.iter().for_each(|run| latency.merge(&run.latency));
    let streams = transport.strip_prefix("SCTP-").and_then(|k| k.parse().ok()).unwrap_or(1);
    let kind = if transport == "TCP" { "tcp".to_owned() } else { format!("sctp:streams={streams}") };
    Cell {
        experiment: "exp1".into(),
        transport: transport.into(),
        spec: kind,
        kind: RecordKind::Transaction,
        streams,
        conditions: Conditions {
            loss,
            rate,
            delay_ms: 10.0,
            propagation_ms: Some(20.0),
            is_plain: true,
            is_random: loss > 0.0 && loss < 100.0,
            workload: "simco".into(),
            axes: vec![("network.loss".to_owned(), format!("{loss}%"))],
            ..Conditions::default()
        },
        runs,
        classes: Vec::new(),
        timelines: Vec::new(),
        outages: Vec::new(),
        outage_curve: None,
        latency,
        delay_breakdown: Some(MeanDelayBreakdown::default()),
        stop_reason: None,
        ended_early: Vec::new(),
        load: None,
        is_steady: true,
        timeouts: None,
        values: Vec::new(),
        waterfall: None,
        flows: None,
    }
}

/// Returns the summary of a run with these transactions.
pub fn summary(latencies_ms: &[f64]) -> Summary {
    let mut recorder = Recorder::new();
    for ms in latencies_ms {
        recorder.count_completed(Duration::from_secs_f64(ms / 1000.0));
    }
    let count = latencies_ms.len() as u64;
    Summary {
        offered: count,
        completed: count,
        unfinished: 0,
        abandoned: 0,
        refused: 0,
        bytes: 0,
        latency: recorder.finish(),
        split: TotalDelayBreakdown::default(),
        behind: Duration::ZERO,
        halves: RunHalves::default(),
        playback: None,
        digest: Digest(0),
    }
}

/// Returns the provenance of a run that was never performed.
pub fn provenance() -> Provenance {
    Provenance {
        version: "0".into(),
        origin: Origin {
            commit: "0123456789abcdef".into(),
            program: "fedcba98".into(),
            files: [("exp1.toml".to_owned(), "76543210".to_owned())].into(),
        },
        command: "hol run".into(),
        world: "model".into(),
        host: "a machine".into(),
        seeds: vec![1],
        digest: "0".into(),
        complete: true,
        repeatable: true,
        experiments: vec![("exp1".into(), "Loss".into(), 4, 12)],
        transports: vec![("TCP".into(), "tcp".into())],
        transactions: 12,
        packets: 48,
        wall_s: 0.1,
        fidelity: Some(Fidelity::default()),
    }
}

/// Returns the survey of `exp1`, with all of its points planned.
pub fn swept(data: &Dataset) -> Survey<'_> {
    let axes: Vec<&[(String, String)]> =
        data.cells.iter().map(|cell| cell.conditions.axes.as_slice()).collect();
    Survey::new("exp1", &axes, data)
}
