//! Reads the time series of runs and selects the samples to be drawn.

use std::collections::BTreeMap;
use std::path::Path;

use hol_base::{QueueLimit, Time};
use hol_lab::{LabError, Point, Results, Row, SampledObject, Series};
use hol_network::{Disruption, Topology};

use super::sampled_line::{COLUMNS, SampledLine};
use super::{Run, RunsOverTime};
use crate::data::{Cell, Filter};

/// The largest number of conditions that are drawn; the others are only in the files.
const MAX_CONDITIONS: usize = 12;

/// The number of parts of a run over which goodput is averaged. Deliveries come in bursts, so the goodput of shorter
/// parts would vary too much.
const GOODPUT_PARTS: f64 = 64.0;

/// Reads the time series of the first run of each point in `dir`, by conditions.
pub(crate) fn gather<'f>(
    results: &Results,
    dir: &Path,
    conditions: impl Iterator<Item = (&'f str, &'f Filter)>,
) -> Result<Vec<RunsOverTime>, LabError> {
    if results.manifest.series.is_none() {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    for (description, filter) in conditions {
        if all.len() == MAX_CONDITIONS {
            break;
        }
        let points = results.points.iter().filter(|result| filter.selects(&Cell::from(&result.point)));
        let (mut found, mut disruptions) = (Vec::new(), None);
        for result in points {
            let Some(run) = result.runs.first() else { continue };
            if let Some(series) = Series::open(dir, run.key)? {
                disruptions.get_or_insert_with(|| result.point.network_of(run.key.repetition).disruptions());
                found.push((&result.point, series));
            }
        }
        let id = format!("over-time-{}", all.len() + 1);
        all.extend(over_time(id, description, &found, disruptions.unwrap_or_default())?);
    }
    Ok(all)
}

/// Totals of each sender, queue and flow of a run, which decide which flow, which sender and which queue are drawn.
#[derive(Default)]
struct ObjectTotals {
    /// Time of the last sample.
    end: Time,
    /// Delivered octets by flow.
    delivered: BTreeMap<u32, u64>,
    /// The sum over all samples: for a sender of its octets in flight (or a thousandth of its window, if that is more),
    /// for a queue of its packets.
    weights: BTreeMap<SampledObject, u64>,
}

impl ObjectTotals {
    fn of(series: &Series) -> Result<Self, LabError> {
        let mut totals = Self::default();
        series.for_each_row(|row| {
            totals.end = totals.end.max(row.at);
            let number = |column| row.number(column).unwrap_or(0);
            let weight = match row.subject {
                SampledObject::Flow(flow) => {
                    *totals.delivered.entry(flow).or_default() += number("delivered_octets");
                    return;
                }
                SampledObject::Sender { .. } => number("in_flight_octets").max(number("cwnd_octets") / 1000),
                SampledObject::Queue(_) => number("queue_packets"),
            };
            *totals.weights.entry(row.subject).or_default() += weight;
        })?;
        Ok(totals)
    }

    /// Returns the flow that delivered most octets; if several did, the one with the lowest index.
    fn flow(&self) -> u32 {
        let max = self.delivered.iter().max_by_key(|(flow, octets)| (**octets, std::cmp::Reverse(**flow)));
        max.map_or(0, |(flow, _)| *flow)
    }

    /// Returns the sender of a flow with the most octets in flight.
    fn sender(&self, wanted: u32) -> Option<&SampledObject> {
        let senders = self.weights.iter();
        let own = senders
            .filter(|(subject, _)| matches!(subject, SampledObject::Sender { flow, .. } if *flow == wanted));
        own.max_by_key(|(_, weight)| **weight).map(|(subject, _)| subject)
    }
}

fn over_time(
    id: String,
    conditions: &str,
    found: &[(&Point, Series)],
    disruptions: Vec<Disruption>,
) -> Result<Option<RunsOverTime>, LabError> {
    let totals = found.iter().map(|(_, series)| ObjectTotals::of(series)).collect::<Result<Vec<_>, _>>()?;
    let Some(interval) = found.iter().map(|(_, series)| series.interval()).max() else { return Ok(None) };
    let span = totals.iter().map(|totals| totals.end.as_secs_f64()).fold(0.0, f64::max);
    if span <= 0.0 {
        return Ok(None);
    }
    let queue = queue(found.iter().map(|(point, _)| *point).zip(&totals));
    let axis = TimeAxis { span, interval: interval.as_secs_f64() };
    let runs = found
        .iter()
        .zip(&totals)
        .map(|((point, series), totals)| run(point, series, totals, queue.as_ref(), axis));
    let runs = runs.collect::<Result<Vec<_>, _>>()?;
    let queue = queue.map(|queue| match queue {
        SampledObject::Queue(name) => {
            (name.to_string(), found.first().and_then(|(point, _)| queue_limit(point, &name)))
        }
        other => unreachable!("{other:?} is not a queue"),
    });
    let events = disruptions.into_iter().map(|event| event.at.as_secs_f64()).collect();
    Ok(Some(RunsOverTime {
        id,
        conditions: conditions.to_owned(),
        interval_s: interval.as_secs_f64(),
        queue,
        events,
        runs,
    }))
}

/// Returns the longest queue over all runs, except for the queues of the receiver's host: no data of the flow leave
/// through them.
fn queue<'s>(runs: impl Iterator<Item = (&'s Point, &'s ObjectTotals)>) -> Option<SampledObject> {
    let mut weights = BTreeMap::<&SampledObject, u64>::new();
    for (point, totals) in runs {
        let receiver = totals.sender(totals.flow()).and_then(|sender| receiver(point, sender));
        for (subject, weight) in &totals.weights {
            let SampledObject::Queue(name) = subject else { continue };
            if receiver.as_deref().is_none_or(|node| !name.starts_with(node)) {
                *weights.entry(subject).or_default() += weight;
            }
        }
    }
    weights.into_iter().max_by_key(|(_, weight)| *weight).map(|(subject, _)| subject.clone())
}

/// Returns the prefix of the interfaces of the host to which a sender sends, such as `server:`.
fn receiver(point: &Point, sender: &SampledObject) -> Option<String> {
    let SampledObject::Sender { path, .. } = sender else { return None };
    let network = Topology::new(&point.network).ok()?;
    let at = network
        .interfaces()
        .iter()
        .position(|interface| interface.address.to_string() == path.to_string())?;
    let name = network.interface_names().into_iter().nth(at)?;
    Some(format!("{}:", name.split(':').next()?))
}

/// Returns the limit of a queue in packets; `None` if its limit is in octets.
fn queue_limit(point: &Point, name: &str) -> Option<u64> {
    let network = Topology::new(&point.network).ok()?;
    let line = network.queues().iter().position(|queue| queue == name)?;
    match network.links()[line].settings.queue {
        QueueLimit::Packets(packets) => Some(packets),
        QueueLimit::Bytes(_) => None,
    }
}

/// The common time axis of all runs.
#[derive(Clone, Copy)]
struct TimeAxis {
    /// Duration of the longest run, in s.
    span: f64,
    /// Interval of the samples, in s.
    interval: f64,
}

fn run(
    point: &Point,
    series: &Series,
    totals: &ObjectTotals,
    queue: Option<&SampledObject>,
    axis: TimeAxis,
) -> Result<Run, LabError> {
    let flow = totals.flow();
    let sender = totals.sender(flow);
    let line = || SampledLine::new(axis.span, axis.interval);
    let mut run = Run {
        transport: point.label.clone(),
        sender: sender.and_then(describe_sender),
        flow,
        ended_s: totals.end.as_secs_f64(),
        goodput: Vec::new(),
        cwnd: line(),
        ssthresh: line(),
        in_flight: line(),
        srtt: line(),
        queued: line(),
        retransmissions: Vec::new(),
        dropped: Vec::new(),
    };
    let mut goodput = Goodput::new(axis);
    let (mut retransmissions, mut dropped) = (0, 0);
    series.for_each_row(|row| {
        let at = row.at.as_secs_f64();
        if row.subject == SampledObject::Flow(flow) {
            goodput.add(at, row.number("delivered_octets").unwrap_or(0));
        } else if Some(&row.subject) == sender {
            run.add_sender_row(&row);
            mark_growth(
                &mut run.retransmissions,
                at,
                axis,
                &mut retransmissions,
                row.number("sent_again").unwrap_or(0),
            );
        } else if Some(&row.subject) == queue {
            let number = |column| row.number(column).unwrap_or(0);
            run.queued.add(at, number("queue_packets") as f64);
            mark_growth(&mut run.dropped, at, axis, &mut dropped, number("dropped") + number("lost"));
        }
    })?;
    run.goodput = goodput.kbps(run.ended_s);
    Ok(run)
}

impl Run {
    fn add_sender_row(&mut self, row: &Row) {
        let at = row.at.as_secs_f64();
        let Self { cwnd, ssthresh, in_flight, srtt, .. } = self;
        for (line, column, unit) in [
            (cwnd, "cwnd_octets", 1.0),
            (ssthresh, "ssthresh_octets", 1.0),
            (in_flight, "in_flight_octets", 1.0),
            (srtt, "srtt_ns", 1e6),
        ] {
            if let Some(number) = row.number(column) {
                line.add(at, number as f64 / unit);
            }
        }
    }
}

/// Marks a time at which a counter has grown, at most once for a column of pixels.
fn mark_growth(marks: &mut Vec<f64>, at: f64, axis: TimeAxis, before: &mut u64, now: u64) {
    let column = axis.span / COLUMNS as f64;
    if now > *before && marks.last().is_none_or(|last| at - last >= column) {
        marks.push(at);
    }
    *before = now;
}

fn describe_sender(sender: &SampledObject) -> Option<String> {
    let SampledObject::Sender { connection, side, path, .. } = sender else { return None };
    let number = if *connection == 0 { String::new() } else { format!(", connection {connection}") };
    Some(format!("the {} to {path}{number}", side.name()))
}

/// The goodput of a run in parts, each several sampling intervals long.
struct Goodput {
    /// Duration of a part, in s.
    part_s: f64,
    /// Interval of the samples, in s.
    interval: f64,
    /// Octets delivered in each part.
    octets: Vec<u64>,
}

impl Goodput {
    fn new(TimeAxis { span, interval }: TimeAxis) -> Self {
        let part = interval * (span / GOODPUT_PARTS / interval).ceil().max(1.0);
        Self { part_s: part, interval, octets: Vec::new() }
    }

    /// Adds the octets of the interval that ends at time `at`, in seconds.
    fn add(&mut self, at: f64, octets: u64) {
        let end = (at / self.interval - 1e-6).ceil() * self.interval;
        let part = ((end - self.interval / 2.0) / self.part_s).max(0.0) as usize;
        if self.octets.len() <= part {
            self.octets.resize(part + 1, 0);
        }
        self.octets[part] += octets;
    }

    /// Returns the start of each part and its goodput; the last part ends with the run.
    fn kbps(self, ended: f64) -> Vec<(f64, f64)> {
        let Self { part_s: part, octets, .. } = self;
        let rate = |(number, octets): (usize, u64)| {
            let begins = number as f64 * part;
            let lasts = part.min(ended - begins);
            (lasts > 0.0).then(|| (begins, octets as f64 * 8e-3 / lasts))
        };
        octets.into_iter().enumerate().filter_map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use hol_lab::{Experiment, Source};
    use hol_scenario::Side;

    use super::*;

    #[test]
    fn the_drawn_queue_is_on_the_path_of_the_drawn_flow() {
        let text = "transports = ['tcp']\n[network]\npaths = [{}, {}]\n[workload]\nkind = 'bulk'";
        let experiment = Experiment::parse("two", &Source::new("two.toml", text)).unwrap();
        let sender = |path: &str| SampledObject::Sender {
            flow: 1,
            connection: 0,
            side: Side::Client,
            path: path.into(),
        };
        let queue_of = |name: &str| SampledObject::Queue(name.into());
        let weights = [
            (sender("10.0.2.2"), 9),
            (sender("10.0.1.2"), 3),
            (queue_of("client:1"), 20),
            (queue_of("client:2"), 30),
            (queue_of("server:1"), 500),
        ];
        let totals = ObjectTotals {
            end: Time::from_millis(1),
            delivered: [(0, 1), (1, 8)].into(),
            weights: weights.clone().into(),
        };
        assert_eq!(queue([(&experiment.points[0], &totals)].into_iter()), Some(queue_of("client:2")));
        let unsent = ObjectTotals { weights: weights[2..].iter().cloned().collect(), ..totals };
        assert_eq!(queue([(&experiment.points[0], &unsent)].into_iter()), Some(queue_of("server:1")));
    }

    #[test]
    fn goodput_is_octets_per_part_and_the_last_part_ends_with_the_run() {
        let axis = TimeAxis { span: 6.4, interval: 0.03 };
        let mut goodput = Goodput::new(axis);
        assert_eq!(goodput.part_s, 0.12, "the least number of whole intervals of which 64 span the run");
        (1..=8).for_each(|interval| goodput.add(0.03 * f64::from(interval), 1000));
        goodput.add(0.25, 500);
        let kbps = goodput.kbps(0.25);
        let close = |of: f64, to: f64| (of / to - 1.0).abs() < 1e-9;
        assert_eq!(kbps.len(), 3);
        assert!(
            close(kbps[0].1, 32.0 / 0.12) && close(kbps[1].1, 32.0 / 0.12) && close(kbps[2].1, 4.0 / 0.01)
        );
    }
}
