//! The load of a point, and the rate of the path that carries it.

use std::sync::Arc;

use hol_base::Duration;
use hol_measure::Summary;
use hol_network::Topology;

use crate::point::Point;
use crate::point_result::PointResult;
use crate::run_result::RunResult;

/// The offered and the delivered load of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PointLoad {
    /// Offered load in Mbit/s.
    pub offered: f64,
    /// Delivered load in Mbit/s, from the first message sent to the last message delivered, averaged over all
    /// runs.
    pub carried: f64,
    /// Mean rate of the path in Mbit/s during the runs; `None` if the rate does not change.
    pub path_rate: Option<f64>,
}

impl PointLoad {
    /// Returns whether the rate of the path changes and the load exceeds its mean.
    pub fn exceeds_path(&self) -> bool {
        self.path_rate.is_some_and(|rate| self.offered > rate)
    }
}

/// The rule that decides whether a run carried the load of its point.
#[derive(Debug, Clone, Copy)]
pub struct CollapseRule {
    counts_lateness: bool,
    counts_growth: bool,
    /// Scheduled messages per second; zero if messages are sent as fast as possible.
    rate: f64,
}

impl CollapseRule {
    /// Creates the rule for a point with `rate` messages per second. The rate is zero if messages are sent as fast
    /// as the transport accepts them, so that none can be late.
    ///
    /// On a path whose rate changes, a run may fall behind for a time and recover. There, lateness does not count
    /// if the load is known to be within the mean rate of the path.
    pub fn new(path_changes: bool, rate: f64, load: Option<PointLoad>) -> Self {
        Self {
            counts_lateness: rate > 0.0 && (!path_changes || load.is_none_or(|load| load.exceeds_path())),
            counts_growth: !path_changes && rate > 0.0,
            rate,
        }
    }

    /// Returns whether a run was more than a second behind its schedule, or had a growing backlog.
    pub fn is_overloaded(&self, run: &Summary) -> bool {
        let schedule = || Duration::from_secs_f64(run.offered as f64 / self.rate);
        (self.counts_lateness && run.has_fallen_behind())
            || (self.counts_growth && run.has_growing_backlog(schedule()))
    }
}

impl PointResult {
    /// Returns the offered and the delivered load if all messages have the same size and are scheduled at a fixed
    /// rate. Returns `None` if the path changes and has no mean rate, because the load in these runs then says
    /// nothing about other times.
    pub fn load(&self) -> Option<PointLoad> {
        let (point, workload) = (&self.point, &self.point.workload);
        let each = 8e-6 * workload.size()? as f64;
        let rate = point.offered_rate() * f64::from(workload.source_count());
        let of_run = |run: &RunResult| {
            let seconds = run.span.as_secs_f64();
            (seconds > 0.0).then(|| run.summary.bytes as f64 * 8e-6 / seconds)
        };
        let carried = mean(self.runs.iter().filter_map(|run| of_run(run)))?;
        let path_rate = match point.path_changes() {
            true => Some(mean(self.runs.iter().filter_map(|run| path_rate(point, run)))?),
            false => None,
        };
        (rate > 0.0).then_some(PointLoad { offered: rate * each, carried, path_rate })
    }

    /// Returns the number of runs that did not carry their load: they ended early or were overloaded.
    pub fn collapsed_runs(&self) -> usize {
        let rule = CollapseRule::new(self.point.path_changes(), self.point.offered_rate(), self.load());
        let collapsed = |run: &&Arc<RunResult>| run.stop_reason.is_some() || rule.is_overloaded(&run.summary);
        self.runs.iter().filter(collapsed).count()
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the mean rate of the path during a run, in Mbit/s; `None` if the rate does not change, or if traffic may
/// take several paths.
fn path_rate(point: &Point, run: &RunResult) -> Option<f64> {
    let network = point.network_of(run.key.repetition);
    if !network.paths.is_empty() {
        return None;
    }
    let topology = Topology::new(&network).ok()?;
    let [from, to] =
        [point.workload.client_node(), point.workload.server_node()].map(|name| topology.node(name));
    let (from, to) = (from?, to?);
    let begin = point.workload.start + run.connect_time.unwrap_or_default();
    topology
        .has_variable_rate(from, to)
        .then(|| topology.mean_rate(from, to, begin..begin + run.span))?
        .map(|rate| rate / 1e6)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::experiment::Experiment;
    use crate::point::RunKey;
    use crate::source::Source;

    /// A point with 1 Mbit/s of messages, and traces of 5 s at 4 and 5 s at 2 Mbit/s upwards, the opposite downwards.
    fn result(network: &str, seconds: u64, behind: u64) -> PointResult {
        let text = format!(
            "transports = ['tcp']\nmessages = 100\nworkload.kind = 'oneway'\nworkload.rate = '125/s'\nworkload.size = '1000B'\n{network}"
        );
        let source = Source::new("t.toml", text)
            .with_file("up.csv", "0 4\n5 2\n")
            .with_file("down.csv", "0 2\n5 4\n")
            .with_file("slow.csv", "0 1\n5 0.5\n");
        let point = Experiment::parse("t", &source).unwrap().points.remove(0);
        let mut run = RunResult::with_mean(RunKey { point: point.id, repetition: 0 }, 1000 * seconds);
        run.summary.behind = Duration::from_secs(behind);
        PointResult { point, runs: vec![Arc::new(run)], complete: true }
    }

    const BOTH: &str = "[network]\ntrace = { up = 'up.csv', down = 'down.csv' }\n";

    #[test]
    fn the_rate_of_a_path_with_a_trace_is_its_mean_in_the_time_of_the_run() {
        let rate = |network: &str, seconds| result(network, seconds, 0).load().unwrap().path_rate.unwrap();
        assert_eq!(rate(BOTH, 5), 4.0);
        assert_eq!(rate(BOTH, 10), 3.0);
        assert_eq!(rate(BOTH, 20), 2.5, "the last line holds");
        // Two whole rounds, from any start.
        for start in ["0s", "7s", "random"] {
            let repeating = rate(&format!("{BOTH}trace_start = '{start}'"), 20);
            assert!((repeating - 3.0).abs() < 1e-9, "{start}: {repeating}");
        }
    }

    #[test]
    fn only_messages_that_are_due_at_a_time_can_be_late() {
        let mut late = result("", 5, 2);
        assert_eq!(late.collapsed_runs(), 1);
        late.point.workload = Experiment::parse(
            "t",
            &Source::new("t.toml", "transports = ['tcp']\nmessages = 100\nworkload.kind = 'bulk'"),
        )
        .unwrap()
        .points
        .remove(0)
        .workload;
        assert_eq!(late.collapsed_runs(), 0);
    }

    #[test]
    fn the_rate_of_a_path_counts_from_the_start_of_the_workload() {
        let late = result(&format!("workload.start = '5s'\n{BOTH}"), 5, 0);
        assert_eq!(late.load().unwrap().path_rate, Some(2.0));
    }

    #[test]
    fn a_load_is_compared_only_with_the_rate_of_one_path_that_changes() {
        assert_eq!(result("", 10, 0).load().map(|load| load.path_rate), Some(None));
        for network in [
            "[network]\ntrace = { down = 'down.csv' }",
            "[network]\ntrace = 'up.csv'\npaths = [{}, {}]",
            "[network]\nevents = [{ at = '1s', delay = '9ms' }]",
        ] {
            assert_eq!(result(network, 10, 0).load(), None, "{network}");
        }
    }

    /// A slow part of a trace delays messages of every transport. That a send buffer is full meanwhile, and another one not, does not
    /// mean that only one of the transports carries the load.
    #[test]
    fn a_run_that_falls_behind_in_a_slow_part_of_a_trace_carries_its_load() {
        let collapsed = |network: &str, behind| result(network, 10, behind).collapsed_runs();
        assert_eq!((collapsed("", 0), collapsed("", 2)), (0, 1));
        assert_eq!((collapsed(BOTH, 0), collapsed(BOTH, 2)), (0, 0));
        let slow = "network.trace = 'slow.csv'";
        assert_eq!((collapsed(slow, 0), collapsed(slow, 2)), (0, 1), "1 Mbit/s are more than 0.75");
        let outage = "network.events = [{ at = '1s', down = true }, { at = '4s', down = false }]";
        assert_eq!(collapsed(outage, 2), 0);
    }
}
