//! The results of a point: a line of a table, or a JSON object.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hol_lab::metric::TABLE;
use hol_lab::{Metric, PointResult, RunResult};
use hol_measure::{CONFIDENCE, ConfidenceInterval, Interval, MeanDelayBreakdown};
use hol_report::data::Cell;
use hol_scenario::MetricReader;
use hol_workloads::WorkloadSpec;
use serde::{Serialize, Serializer};

pub use crate::terminal::json;
use crate::terminal::{group_digits, table};
use crate::unmarked_path;

/// The results of one transport under one set of conditions; unknown numbers are null.
#[derive(Debug, Serialize)]
pub struct Row<'r> {
    world: String,
    transport: String,
    stack: String,
    workload: &'static str,
    /// Whether the mean reached the requested precision; null if none was requested.
    precise: Option<bool>,
    offered: u64,
    completed: u64,
    failed: u64,
    /// Mean response time in ms; null if the point has no steady state.
    mean_ms: Option<f64>,
    /// Half the width of the symmetric 95 % confidence interval of the mean, in ms.
    ci95_ms: Option<f64>,
    /// Lower end of the mean's 95 % confidence interval in ms; this interval accounts for the skewness of the
    /// repetitions.
    mean_low_ms: Option<f64>,
    /// Upper end of the confidence interval that begins at `mean_low_ms`, in ms.
    mean_high_ms: Option<f64>,
    /// Whether longer runs would have the same mean, as far as these runs show.
    steady: bool,
    /// Median of the repetitions' means, in ms.
    run_median_ms: Option<f64>,
    /// Number of repetitions that did not carry their load.
    runs_collapsed: usize,
    repetitions: usize,
    /// Number of expiries of the retransmission timer; null if the world does not count them. If they are few, the
    /// mean is unreliable.
    timeouts: Option<u64>,
    /// Number of expiries of the retransmission timer that directly followed another expiry; null if the world does not
    /// count them.
    backoffs: Option<u64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
    max_ms: Option<f64>,
    #[serde(flatten)]
    measured: PrintedMetrics<'r>,
    /// User-defined metrics by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<&'static str, DefinedMetric>,
    seed: u64,
    digest: String,
    run_wall_s: f64,
}

impl<'r> Row<'r> {
    /// Creates the row of a point from its results.
    pub fn of(result: &'r PointResult) -> Self {
        let point = &result.point;
        let latency = result.latency();
        let quantile = |p| latency.quantile(p).map(|d| d.as_millis_f64());
        let steady = result.is_steady();
        let mean = result.mean_ms().filter(|_| steady);
        let shaped = result.skew_adjusted_mean_ms().filter(|bounds| steady && bounds.low.is_finite());
        Self {
            world: point.world.to_string(),
            transport: point.transport.to_string(),
            stack: point.transport.stack().to_owned(),
            workload: point.workload.kind.workload().name(),
            precise: result.is_precise(),
            offered: result.offered(),
            completed: result.completed(),
            failed: result.failed(),
            mean_ms: mean.map(|m| m.mean),
            ci95_ms: half_width(mean),
            mean_low_ms: shaped.map(|bounds| bounds.low),
            mean_high_ms: shaped.map(|bounds| bounds.high),
            steady,
            run_median_ms: result.median_run_ms().map(|median| median.value).filter(|ms| ms.is_finite()),
            runs_collapsed: result.collapsed_runs(),
            repetitions: result.runs.len(),
            timeouts: result.timeouts().map(|[timeouts, _]| timeouts),
            backoffs: result.timeouts().map(|[_, backoffs]| backoffs),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: latency.max().map(|d| d.as_millis_f64()),
            measured: PrintedMetrics(result),
            metrics: result
                .program_metrics()
                .map(|defined| (defined.name, DefinedMetric::of(result, defined)))
                .collect(),
            seed: point.seed,
            digest: result.digest().to_string(),
            run_wall_s: result.wall_s(),
        }
    }
}

/// A metric that the experiment defines.
#[derive(Debug, Serialize)]
struct DefinedMetric {
    mean: Option<f64>,
    ci95: Option<f64>,
    /// Value of each repetition; null if the program's output has none.
    runs: Vec<Option<f64>>,
}

impl DefinedMetric {
    fn of(result: &PointResult, defined: hol_lab::DefinedMetric) -> Self {
        let metric = Metric::Defined(defined);
        let mean = result.mean_of(metric);
        Self { mean: mean.map(|m| m.mean), ci95: half_width(mean), runs: result.values(metric) }
    }
}

/// The built-in metrics that have a column in the output.
#[derive(Debug)]
struct PrintedMetrics<'r>(&'r PointResult);

impl Serialize for PrintedMetrics<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let columns = TABLE.iter().flat_map(|info| info.columns).filter(|column| column.is_printed);
        to.collect_map(columns.map(|column| (column.name, (column.value_of)(self.0))))
    }
}

/// Returns half the length of an interval; `None` with fewer than two samples.
fn half_width(interval: Option<Interval>) -> Option<f64> {
    interval.map(|interval| interval.half_width).filter(|half| half.is_finite())
}

/// A row of a sweep: the point, and its results.
#[derive(Debug, Serialize)]
pub struct SweepRow<'r> {
    experiment: &'r str,
    label: &'r str,
    /// The swept keys with their values as written.
    axes: BTreeMap<&'r str, &'r str>,
    #[serde(flatten)]
    row: Row<'r>,
}

impl<'r> SweepRow<'r> {
    /// Creates the row of a point from its results.
    pub fn of(result: &'r PointResult) -> Self {
        let point = &result.point;
        let axes = point.axes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Self { experiment: &point.experiment, label: &point.label, axes, row: Row::of(result) }
    }
}

/// Returns a table of points, times in ms, and further tables for metrics that only some points have. The first column
/// has the heading `head`, and contains the `label` of each point.
pub fn points_table(head: &str, results: &[PointResult], label: impl Fn(&PointResult) -> String) -> String {
    let tabulate = |heads: &[&str], cells: &dyn Fn(&PointResult) -> Vec<String>| {
        let heads = [head].iter().chain(heads).map(|head| (*head).to_owned()).collect();
        let row = |result| [vec![label(result)], cells(result)].concat();
        table(&[heads].into_iter().chain(results.iter().map(row)).collect::<Vec<_>>())
    };
    let collapsing: BTreeSet<_> =
        results.iter().filter(|result| result.collapsed_runs() > 0).map(conditions).collect();
    let latencies = |result: &PointResult| latency_cells(result, collapsing.contains(&conditions(result)));
    let mut text = tabulate(&["mean ± 95 % ms", "median", "p99", "p99.9", "max", "failed"], &latencies);
    if results.iter().any(is_skewed) {
        text += "\n";
        text += &tabulate(&["median run ± 95 % ms", "fastest", "slowest", "runs collapsed"], &run_cells);
    }
    if results.iter().any(|result| result.point.metrics().next().is_some()) {
        text += "\n";
        text += &defined_table(head, results, &label);
    }
    if results.iter().any(has_outage) {
        text += "\n";
        text += &tabulate(
            &[
                "outage ms ± 95 %",
                "late messages",
                "first late after ms",
                "last late after ms",
                "error after ms",
            ],
            &outage_cells,
        );
    }
    if results.iter().any(|result| result.point.has_playout_times()) {
        text += "\n";
        text += &tabulate(&["playable % ± 95 %", "glitches/min ± 95 %"], &playback_cells);
    }
    if results.iter().any(|result| result.point.has_flow_metrics()) {
        text += "\n";
        text += &tabulate(
            &["kbit/s ± 95 %", "messages/s ± 95 %", "connect ms", "unconnected", "fairness"],
            &flow_cells,
        );
    }
    if results.iter().any(has_flows_between_nodes) {
        text += "\n";
        text += &flows_table(head, results, &label);
    }
    text
}

/// Returns whether a point has background flows between named nodes, as the flows of an ns script are.
fn has_flows_between_nodes(result: &PointResult) -> bool {
    let has_nodes =
        |workload: &WorkloadSpec| (workload.client_node(), workload.server_node()) != DEFAULT_NODES;
    result.point.background.iter().any(|background| has_nodes(&background.workload))
}

/// The default nodes of a workload.
const DEFAULT_NODES: (&str, &str) = ("client", "server");

/// Returns a table of throughputs: one column for the measured flow, and one for all flows of each background
/// together.
fn flows_table(head: &str, results: &[PointResult], label: &impl Fn(&PointResult) -> String) -> String {
    let nodes = |workload: &WorkloadSpec| format!("{} to {}", workload.client_node(), workload.server_node());
    // Background flows may begin later or last longer than the measured flow.
    let heads = [head, "flow", "transport", "kbit/s ± 95 % during the measured flow"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for result in results {
        let point = &result.point;
        let measured = (nodes(&point.workload), &point.transport, result.mean_of(Metric::Throughput));
        let others = result.throughput_of_background().map(|(background, kbps)| {
            (nodes(&background.workload), background.transport.as_ref().unwrap_or(&point.transport), kbps)
        });
        for (flow, transport, kbps) in [measured].into_iter().chain(others) {
            rows.push(vec![label(result), flow, transport.to_string(), interval(Metric::Throughput, kbps)]);
        }
    }
    table(&rows)
}

/// Returns a table of one class of message sizes, times in ms, one row for each transport.
pub fn class_table(name: &str, cells: &[Cell]) -> String {
    let heads = [name, "mean ± 95 % ms", "median", "p99", "p99.9", "failed"].map(str::to_owned);
    let row = |cell: &Cell| {
        let quantile =
            |p| cell.latency.quantile(p).map_or("-".to_owned(), |d| three_digits(d.as_millis_f64()));
        let mean =
            cell.mean_with_bounds(Metric::ResponseTime).map_or("-".to_owned(), |mean| mean.to_string());
        let failed = group_digits(cell.lost_messages());
        vec![cell.transport.clone(), mean, quantile(0.5), quantile(0.99), quantile(0.999), failed]
    };
    table(&[heads.to_vec()].into_iter().chain(cells.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the conditions of a point: everything but the transport.
fn conditions(result: &PointResult) -> (&str, &[(String, String)]) {
    (&result.point.experiment, &result.point.axes)
}

/// Returns the cells of a point's latencies, for the row of a table. If runs of any transport collapse under the same conditions, the mean has no
/// interval.
fn latency_cells(result: &PointResult, runs_collapse: bool) -> Vec<String> {
    let latency = result.latency();
    let ms = |at: Option<hol_base::Duration>| at.map_or("-".to_owned(), |d| three_digits(d.as_millis_f64()));
    vec![
        mean(result, runs_collapse),
        ms(latency.quantile(0.5)),
        ms(latency.quantile(0.99)),
        ms(latency.quantile(0.999)),
        ms(latency.max()),
        group_digits(result.failed()),
    ]
}

/// Returns whether a few runs dominate the mean. In this case the table also shows the means of single runs.
fn is_skewed(result: &PointResult) -> bool {
    let means: Vec<f64> = result.means_ms().into_iter().flatten().collect();
    let shape = ConfidenceInterval::of_mean(&means, CONFIDENCE);
    let is_asymmetric = shape.is_some_and(|bounds| bounds.low.is_finite() && bounds.is_asymmetric());
    is_asymmetric || result.collapsed_runs() > 0
}

/// Returns a table of the user-defined metrics, one column each.
fn defined_table(head: &str, results: &[PointResult], label: &impl Fn(&PointResult) -> String) -> String {
    let mut metrics: Vec<hol_lab::DefinedMetric> = Vec::new();
    for defined in results.iter().flat_map(PointResult::program_metrics) {
        if metrics.iter().all(|known| known.name != defined.name) {
            metrics.push(defined);
        }
    }
    let named = |defined: &hol_lab::DefinedMetric| {
        format!("{} ± 95 %", format!("{} {}", defined.name, defined.unit).trim_end())
    };
    let heads = [head.to_owned()].into_iter().chain(metrics.iter().map(named)).collect();
    let row = |result: &PointResult| {
        let mean = |defined: &hol_lab::DefinedMetric| result.mean_of(Metric::Defined(*defined));
        let cells =
            metrics.iter().map(|defined| mean(defined).map_or("-".to_owned(), |mean| mean.to_string()));
        [label(result)].into_iter().chain(cells).collect()
    };
    table(&[heads].into_iter().chain(results.iter().map(row)).collect::<Vec<_>>())
}

/// Returns the table cells for the means of a point's repetitions.
fn run_cells(result: &PointResult) -> Vec<String> {
    let means = result.sorted_means_ms();
    let ms = |at: Option<&f64>| at.filter(|ms| ms.is_finite()).map_or("-".to_owned(), |ms| three_digits(*ms));
    let median = result.median_run_ms().filter(|median| median.value.is_finite() && result.is_steady());
    vec![
        median.map_or("-".to_owned(), |median| median.to_string()),
        ms(means.first()),
        ms(means.last()),
        format!("{} of {}", result.collapsed_runs(), result.runs.len()),
    ]
}

/// Returns whether a disruption delayed messages or failed a connection.
fn has_outage(result: &PointResult) -> bool {
    [Metric::LateMessages, Metric::Noticed]
        .iter()
        .any(|metric| result.values(*metric).iter().any(Option::is_some))
}

/// Returns the table cells for the outage metrics.
fn outage_cells(result: &PointResult) -> Vec<String> {
    let of = |metric| interval(metric, result.mean_of(metric));
    let outage = match result.unrecovered_runs() {
        0 => of(Metric::Outage),
        missing => format!("not over in {missing} of {} runs", result.runs.len()),
    };
    vec![
        outage,
        of(Metric::LateMessages),
        of(Metric::BacklogFirst),
        of(Metric::BacklogLast),
        of(Metric::Noticed),
    ]
}

/// Returns the table cells for the playback quality.
fn playback_cells(result: &PointResult) -> Vec<String> {
    vec![
        interval(Metric::Playable, result.mean_of(Metric::Playable)),
        interval(Metric::Glitches, result.mean_of(Metric::Glitches)),
    ]
}

/// Returns the table cells for throughput, connect time and fairness.
fn flow_cells(result: &PointResult) -> Vec<String> {
    vec![
        interval(Metric::Throughput, result.mean_of(Metric::Throughput)),
        interval(Metric::Throughput, result.messages_per_s()),
        interval(Metric::ConnectTime, result.mean_of(Metric::ConnectTime)),
        group_digits(result.unconnected_runs() as u64),
        interval(Metric::Fairness, result.mean_of(Metric::Fairness)),
    ]
}

fn mean(result: &PointResult, runs_collapse: bool) -> String {
    match result.skew_adjusted_mean_ms() {
        None => "-".to_owned(),
        Some(mean) if !result.is_steady() => format!("{} (not steady)", three_digits(mean.value)),
        Some(mean) if runs_collapse => format!("{} (runs collapse)", three_digits(mean.value)),
        Some(mean) => mean.to_string(),
    }
}

/// Formats the interval of a metric.
fn interval(metric: Metric, interval: Option<Interval>) -> String {
    interval.map_or("-".to_owned(), |interval| metric.limit(interval.into()).to_string())
}

/// Maximum number of warnings of one kind that have a line each. If there are more, only the first one is shown.
const MAX_WARNING_LINES: usize = 3;

/// Returns the warnings about the results, for example about runs that ended early or means that are less
/// precise than requested. There is one line for each point, or one for all points if many have the same kind
/// of warning.
pub fn warnings(results: &[PointResult]) -> String {
    let kinds: [fn(&PointResult) -> Vec<String>; 6] = [
        |result| unmarked_path::warning(&result.point).into_iter().collect(),
        |result| ended_early(result).into_iter().collect(),
        |result| change_after_the_end(result).into_iter().collect(),
        |result| imprecise(result).into_iter().collect(),
        |result| unsteady(result).into_iter().collect(),
        missing_metrics,
    ];
    let of_kind = |of: fn(&PointResult) -> Vec<String>| {
        let all = results.iter().flat_map(|result| of(result).into_iter().map(|text| (&result.point, text)));
        warning_lines(&all.collect::<Vec<_>>())
    };
    kinds.into_iter().map(of_kind).collect()
}

/// Returns lines of text for warnings of one kind.
fn warning_lines(warnings: &[(&impl std::fmt::Display, String)]) -> String {
    let more = warnings.len().saturating_sub(1);
    let shown = if warnings.len() > MAX_WARNING_LINES { 1 } else { warnings.len() };
    let others = if warnings.len() > MAX_WARNING_LINES {
        format!(" (and {more} more warnings like it)")
    } else {
        String::new()
    };
    warnings[..shown].iter().map(|(point, text)| format!("warning: {point}: {text}{others}\n")).collect()
}

fn ended_early(result: &PointResult) -> Option<String> {
    let reason = result.stop_reason()?;
    let early = result.runs.iter().filter(|run| run.stop_reason.is_some()).count();
    Some(format!("{early} of {} runs ended early: {reason}", result.runs.len()))
}

/// Warns of an outage, or of the first change of a path, that is due only after the end of all runs. Ignores a
/// trace with `trace_start`, which repeats.
fn change_after_the_end(result: &PointResult) -> Option<String> {
    let begin = result.point.workload.start;
    let end_of = |run: &Arc<RunResult>| begin + run.connect_time.unwrap_or_default() + run.span;
    let end = result.runs.iter().filter(|run| run.stop_reason.is_none()).map(end_of).max()?;
    let network = &result.point.network;
    let (what, at) = match network.disruptions().into_iter().next() {
        Some(disruption) => (disruption.description, disruption.at),
        None => {
            let changes = network.events.iter().map(|event| event.at).filter(|at| !at.is_zero());
            ("the first change of the path".to_owned(), changes.min()?)
        }
    };
    let [end_s, at_s] = [end, at].map(|time| three_digits(time.as_secs_f64()));
    (at > end).then(|| format!("{what} at {at_s} s has no effect, because the runs end after {end_s} s"))
}

fn imprecise(result: &PointResult) -> Option<String> {
    let asked = result.point.precision.filter(|_| result.is_precise() == Some(false))?;
    let count = result.runs.len();
    let reached =
        match result.mean_ms().map(|mean| mean.relative_half_width()).filter(|share| share.is_finite()) {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => "unknown".to_owned(),
        };
    Some(format!("the precision of the mean is {reached} after {count} repetitions; {asked} was requested"))
}

fn unsteady(result: &PointResult) -> Option<String> {
    let halves = result.runs.iter().filter_map(|run| run.summary.halves.means_ms());
    let (earlier, later): (Vec<f64>, Vec<f64>) = halves.unzip();
    let mean = |halves: &[f64]| three_digits(halves.iter().sum::<f64>() / halves.len() as f64);
    // Messages of a greedy workload have no due time, so their waiting time is not worth a warning.
    let needs_warning = !result.is_steady() && !result.point.workload.is_greedy();
    let cause = if result.point.path_changes() { "the path changes, so the mean" } else { "the mean" };
    needs_warning.then(|| {
        format!(
            "no steady state: {} ms in the first half of the runs, {} ms in the second; {cause} depends on the length of the runs",
            mean(&earlier),
            mean(&later)
        )
    })
}

/// Returns a warning for each metric that is missing although the programs finished.
fn missing_metrics(result: &PointResult) -> Vec<String> {
    let ended = result.runs.iter().filter(|run| run.stop_reason.is_none());
    let of = |(name, reading): (&str, &MetricReader)| {
        let missing = ended.clone().filter(|run| run.program_metric(name).is_none()).count();
        (missing > 0).then(|| {
            let runs = result.runs.len();
            format!("metric {name}: {} finds no number in {missing} of {runs} runs", reading.find)
        })
    };
    result.point.metrics().filter_map(of).collect()
}

/// Describes the delay components of a message, the largest first.
pub fn describe_breakdown(split: &MeanDelayBreakdown) -> String {
    let total =
        split.slip + split.service + split.sender + split.recovery + split.network + split.head_of_line;
    let mut parts = [
        ("network", split.network),
        ("loss recovery", split.recovery),
        ("head of line", split.head_of_line),
        ("sender", split.sender),
        ("schedule slip", split.slip),
        ("at the server", split.service),
    ];
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown = parts.iter().filter(|(_, ms)| *ms >= total / 1000.0);
    shown.map(|(name, ms)| format!("{name} {} ms", three_digits(*ms))).collect::<Vec<_>>().join(" + ")
}

/// Formats a number with three significant digits.
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a JSON value without the quotes of a string.
pub fn unquoted(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_equal_warnings_become_one_line() {
        let warnings = |count: usize| vec![(&"a: tcp", "no steady state".to_owned()); count];
        assert_eq!(warning_lines(&warnings(0)), "");
        assert_eq!(warning_lines(&warnings(2)), "warning: a: tcp: no steady state\n".repeat(2));
        assert_eq!(
            warning_lines(&warnings(9)),
            "warning: a: tcp: no steady state (and 8 more warnings like it)\n"
        );
    }
}
