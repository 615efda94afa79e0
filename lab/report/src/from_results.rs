//! Converts a result directory to the points of the report.

use hol_base::Duration;
use hol_lab::metric::{MetricInfo, MetricSource, TABLE};
use hol_lab::{Metric, Point, PointResult, Results};
use hol_measure::{Distribution, MeanDelayBreakdown, Summary};
use hol_network::{Discipline, LossSpec, NetworkSpec, PathSpec, PoliceSpec, Settings, Topology};
use hol_workloads::{Arrivals, SizeClass};

use crate::ceiling::ceiling_kbps;
use crate::data::{Cell, Conditions, Dataset, Flows};

impl From<&Results> for Dataset {
    fn from(results: &Results) -> Self {
        let (measured, unmeasured): (Vec<_>, Vec<_>) =
            results.points.iter().partition(|result| !result.runs.is_empty());
        Self {
            cells: measured.into_iter().map(Cell::from).collect(),
            unmeasured: unmeasured.into_iter().map(|result| Cell::from(&result.point)).collect(),
            compared: None,
        }
    }
}

impl From<&PointResult> for Cell {
    fn from(result: &PointResult) -> Self {
        Self {
            conditions: Conditions { disruptions: disruptions(result), ..conditions(&result.point) },
            runs: result.runs.iter().map(|run| run.summary.clone()).collect(),
            classes: classes(result),
            timelines: result.runs.iter().filter_map(|run| run.timeline.clone()).collect(),
            outages: result.runs.iter().map(|run| run.outages.clone()).collect(),
            outage_curve: result.runs.first().and_then(|run| run.outage_curve.as_deref().cloned()),
            latency: result.latency(),
            delay_breakdown: delay_breakdown(result),
            stop_reason: result.stop_reason().map(str::to_owned),
            ended_early: result.runs.iter().map(|run| run.stop_reason.is_some()).collect(),
            load: result.load(),
            is_steady: result.is_steady(),
            timeouts: result.timeout_counts(),
            values: values(result),
            waterfall: result.runs.iter().find_map(|run| run.waterfall.as_deref().cloned()),
            flows: flows(result),
            ..Self::from(&result.point)
        }
    }
}

impl From<&Point> for Cell {
    /// Converts a planned point, without runs.
    fn from(point: &Point) -> Self {
        Self {
            experiment: point.experiment.clone(),
            transport: point.label.clone(),
            spec: point.transport.to_string(),
            kind: point.workload.record_kind(),
            streams: point.transport.streams(),
            conditions: conditions(point),
            runs: Vec::new(),
            classes: Vec::new(),
            timelines: Vec::new(),
            outages: Vec::new(),
            outage_curve: None,
            latency: Distribution::default(),
            delay_breakdown: None,
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
}

/// Returns the runs of each class of sizes; empty if a result has no classes, because an older version wrote it.
fn classes(result: &PointResult) -> Vec<(String, Vec<Summary>)> {
    let of_class = |(index, class): (usize, SizeClass)| {
        let runs: Option<Vec<Summary>> =
            result.runs.iter().map(|run| run.classes.get(index).cloned()).collect();
        Some((class.name, runs?))
    };
    result.point.workload.classes().into_iter().enumerate().filter_map(of_class).collect()
}

/// Returns the values of the metrics that are not in the summaries.
fn values(result: &PointResult) -> Vec<(Metric, Vec<Option<f64>>)> {
    let point = &result.point;
    // If a workload waits for replies, the response times determine its throughput, which then may have no steady state.
    let has_pace = result.is_steady() || !point.workload.waits_for_replies();
    let is_defined = |info: &&MetricInfo| {
        let is_met = info.needs.is_none_or(|need| (need.is_met)(point));
        is_met
            && matches!(info.extract, MetricSource::Run(_))
            && (has_pace || info.metric != Metric::Throughput)
    };
    let measured = TABLE.iter().filter(is_defined).map(|info| info.metric);
    measured
        .chain(result.program_metrics().map(Metric::Defined))
        .map(|metric| (metric, result.values(metric)))
        .collect()
}

/// Returns the metrics of flows; `None` for transactions without background traffic, whose throughput is the offered rate.
fn flows(result: &PointResult) -> Option<Flows> {
    let point = &result.point;
    point.has_flow_metrics().then(|| Flows {
        point: point.to_string(),
        ceiling_kbps: ceiling_kbps(point),
        background_kbps: result.background_kbps(),
    })
}

/// Returns the mean of each delay component; `None` unless the records contain the times at which messages were sent
/// and arrived.
fn delay_breakdown(result: &PointResult) -> Option<MeanDelayBreakdown> {
    result
        .runs
        .iter()
        .all(|run| run.has_delivery_times)
        .then(|| result.mean_delay_breakdown().unwrap_or_default())
}

fn conditions(point: &Point) -> Conditions {
    let workload = &point.workload;
    let [up, down] = point.network.directions();
    let loss = up.loss.long_run_loss().max(down.loss.long_run_loss());
    let [request, reply] = propagation_ms(point);
    Conditions {
        // Rounded, because converting the fraction to a percentage adds a small error.
        loss: (loss * 1e8).round() / 1e6,
        rate: point.offered_rate(),
        delay_ms: (request + reply) / 2.0,
        propagation_ms: has_one_delay(point)
            .then(|| request + if workload.has_replies() { reply } else { 0.0 }),
        workload: workload.to_string(),
        is_poisson: workload.arrivals() == Arrivals::Poisson,
        is_plain: is_plain(point),
        is_random: is_random(point),
        lasts: workload.sending_duration(),
        path_changes: point.path_changes(),
        disruptions: Vec::new(),
        axes: point.axes.clone(),
    }
}

/// Returns whether a link of the point's network draws random numbers for its packets.
fn is_random(point: &Point) -> bool {
    let is_random_loss = |loss: &LossSpec| {
        let share = loss.long_run_loss();
        share > 0.0 && share < 1.0
    };
    let network = point.network_of(0);
    let changes_randomly = network.events.iter().any(|event| event.loss.as_ref().is_some_and(is_random_loss));
    let Ok(topology) = Topology::new(&network) else { return changes_randomly };
    changes_randomly
        || topology.links().iter().map(|link| &link.settings).any(|settings| {
            let Settings { loss, jitter, duplicate, reorder, corrupt, .. } = settings;
            let ratios = [duplicate, reorder, corrupt];
            is_random_loss(loss) || !jitter.is_zero() || ratios.into_iter().any(|ratio| !ratio.is_zero())
        })
}

/// Returns the propagation delay from client to server and back, in ms: of all links between them in a network of nodes,
/// of the first path if there are several.
fn propagation_ms(point: &Point) -> [f64; 2] {
    let own = || point.network.directions().map(|settings| settings.delay.as_millis_f64());
    if point.network.links.is_empty() && point.network.lans.is_empty() {
        return own();
    }
    let Ok(topology) = Topology::new(&point.network_of(0)) else { return own() };
    let ends = [point.workload.client_node(), point.workload.server_node()].map(|name| topology.node(name));
    let [Some(client), Some(server)] = ends else { return own() };
    [(client, server), (server, client)].map(|(from, to)| {
        topology.path(from, to).into_iter().map(|link| link.settings.delay.as_millis_f64()).sum()
    })
}

/// Returns whether every packet of a direction has the same propagation delay.
fn has_one_delay(point: &Point) -> bool {
    let differs = |pair: &[PathSpec]| {
        let [one, other] = [&pair[0], &pair[1]].map(|path| (&path.path, path.delay, &path.up, &path.down));
        one != other
    };
    !point.path_changes() && !point.network.paths.windows(2).any(differs)
}

/// Returns the disruptions whose effect was measured in a run; if there are none, only the first planned one.
fn disruptions(result: &PointResult) -> Vec<(f64, String)> {
    let is_measured = |at| result.runs.iter().flat_map(|run| &run.outages).any(|outage| outage.at == at);
    let mut all = result.point.network.disruptions();
    if all.iter().any(|one| is_measured(one.at)) {
        all.retain(|one| is_measured(one.at));
    } else {
        all.truncate(1);
    }
    all.into_iter().map(|one| (one.at.as_secs_f64(), one.description)).collect()
}

/// Returns whether the closed form may apply to the point's network and load.
fn is_plain(point: &Point) -> bool {
    /// The utilisation above which queues are no longer rare.
    const EASY_UTILISATION: f64 = 0.3;
    /// The largest amount of user data that fits into one packet, in octets.
    const MAX_PACKET_DATA: u64 = 1400;
    /// The approximate size of the headers of a packet that is full of user data, in octets.
    const HEADER_OCTETS: u64 = 80;
    let network = &point.network;
    let NetworkSpec { loss, jitter, duplicate, reorder, corrupt, discipline, rate, police, channel, .. } =
        network;
    let is_one_line = network.paths.is_empty()
        && network.nodes.is_empty()
        && network.links.is_empty()
        && network.lans.is_empty()
        && network.events.is_empty()
        && network.trace.is_none()
        && network.up.is_none()
        && network.down.is_none();
    let size = point.workload.longest_message().unwrap_or(0);
    let load = point.workload.rate().map_or(0.0, |rate| rate.per_second())
        * f64::from(point.workload.source_count());
    let share = load * 8.0 * (size + HEADER_OCTETS) as f64 / rate.bits_per_second() as f64;
    is_one_line
        && point.workload.record_kind().has_schedule()
        && !point.has_playout_times()
        && matches!(loss, LossSpec::Independent(_))
        && *jitter == Duration::ZERO
        && [duplicate, reorder, corrupt].iter().all(|chance| chance.is_zero())
        && *discipline == Discipline::DropTail
        && *police == PoliceSpec::default()
        && channel == Settings::OWN_CHANNEL
        && size <= MAX_PACKET_DATA
        && share <= EASY_UTILISATION
}

#[cfg(test)]
mod tests {
    use hol_lab::{Experiment, Source};

    use super::*;

    #[test]
    fn path_whose_rate_changes_has_no_ceiling() {
        let traced = |network: &str| {
            let text = format!(
                "transports = ['tcp']\nmessages = 100\nworkload = {{ kind = 'oneway', rate = '10/s', size = '1kB' }}\n{network}"
            );
            let source = Source::new("t.toml", text)
                .with_file("up.csv", "0 4\n5 2\n")
                .with_file("down.csv", "0 2\n5 4\n");
            Experiment::parse("t", &source).unwrap().points.remove(0)
        };
        assert!(ceiling_kbps(&traced("")).is_some());
        assert!(ceiling_kbps(&traced("network.trace.down = 'down.csv'")).is_some());
        for network in [
            "network.trace = 'up.csv'",
            "[network]\ntrace = 'up.csv'\ntrace_start = 'random'",
            "network.events = [{ at = '1s', down = true }, { at = '2s', down = false }]",
        ] {
            assert_eq!(ceiling_kbps(&traced(network)), None, "{network}");
        }
    }

    #[test]
    fn propagation_delay_is_that_of_the_links_a_message_crosses() {
        let echo = "workload = { kind = 'simco', rate = '10/s' }";
        let oneway = "workload = { kind = 'oneway', rate = '10/s', size = '1kB' }";
        let nodes = "network.nodes = ['client', 'r', 'server']\nnetwork.links = [{ from = 'client', to = 'r', delay = '3ms' }, { from = 'r', to = 'server', delay = '4ms' }]";
        let uneven = "network = { up = { delay = '3ms' }, down = { delay = '8ms' } }";
        for (lines, expected) in [
            ([echo, "network.delay = '10ms'"], Some(20.0)),
            ([oneway, "network.delay = '10ms'"], Some(10.0)),
            ([echo, uneven], Some(11.0)),
            ([oneway, uneven], Some(3.0)),
            ([echo, nodes], Some(14.0)),
            ([oneway, nodes], Some(7.0)),
            ([echo, "network.paths = [{ delay = '2ms' }, { delay = '2ms' }]"], Some(4.0)),
            ([echo, "network.paths = [{ delay = '2ms' }, { delay = '9ms' }]"], None),
            ([echo, "network.events = [{ at = '1s', delay = '9ms' }]"], None),
        ] {
            let text = format!("transports = ['tcp']\nmessages = 100\n{}\n{}", lines[0], lines[1]);
            let source = Source::new("t.toml", text);
            let point = Experiment::parse("t", &source).unwrap().points.remove(0);
            assert_eq!(conditions(&point).propagation_ms, expected, "{lines:?}");
        }
    }

    #[test]
    fn network_is_random_if_a_link_draws_numbers() {
        let links = |loss: &str| {
            format!(
                "network.nodes = ['client', 'r', 'server']\nnetwork.links = [{{ from = 'client', to = 'r' }}, {{ from = 'r', to = 'server', loss = '{loss}' }}]"
            )
        };
        for (network, expected) in [
            (String::new(), false),
            ("network.loss = '1%'".to_owned(), true),
            ("network.loss = '100%'".to_owned(), false),
            ("network.loss = { drop = [3] }".to_owned(), false),
            ("network.duplicate = '0.01%'".to_owned(), true),
            ("network.down.jitter = '1ms'".to_owned(), true),
            ("network.events = [{ at = '1s', loss = '0.01%' }]".to_owned(), true),
            ("network.events = [{ at = '1s', loss = '100%' }]".to_owned(), false),
            (links("0%"), false),
            (links("0.01%"), true),
        ] {
            let text = format!("transports = ['tcp']\nmessages = 100\nworkload.kind = 'simco'\n{network}");
            let point = Experiment::parse("t", &Source::new("t.toml", text)).unwrap().points.remove(0);
            assert_eq!(is_random(&point), expected, "{network}");
        }
    }

    #[test]
    fn path_with_a_trace_has_no_closed_form() {
        let plain = |network: &str| {
            let text = format!(
                "transports = ['tcp']\nmessages = 100\nworkload = {{ kind = 'simco', rate = '10/s' }}\n{network}"
            );
            let source = Source::new("t.toml", text).with_file("a.csv", "0 1\n5 2\n");
            is_plain(&Experiment::parse("t", &source).unwrap().points[0])
        };
        assert!(plain(""));
        for start in ["0s", "random"] {
            assert!(!plain(&format!("network.trace = 'a.csv'\nnetwork.trace_start = '{start}'")), "{start}");
        }
    }
}
