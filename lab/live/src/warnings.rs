//! Warnings that limit the validity of a run's results, with the remedy.

use std::collections::BTreeMap;

use hol_base::Duration;
use hol_measure::Record;
use hol_scenario::{ReadDelays, RunEnd, Side};

/// Returns a warning if more than half of the median latency passed before the message was written to the socket.
pub(crate) fn warn_of_host_load(records: &[Record]) -> Option<String> {
    let slip = |record: &Record| Some(record.request?.written.saturating_since(record.scheduled));
    let slip = median(records.iter().filter_map(slip))?;
    let latency = median(records.iter().filter_map(Record::latency))?;
    (slip > latency / 2).then(|| {
        "more than half of the median latency passed before this host had written the message (slip in runs.jsonl): \
         the run measured the host, not the path; use a less busy host, fewer messages, or a path with a longer delay"
            .to_owned()
    })
}

/// Returns a warning if requests and replies together waited in sockets for more than half of the median latency,
/// by the medians of both.
pub(crate) fn warn_of_socket_waits(
    records: &[Record],
    waited: &BTreeMap<Side, ReadDelays>,
) -> Option<String> {
    let waited = waited.values().fold(0u64, |sum, waits| sum.saturating_add(waits.median));
    let latency = median(records.iter().filter_map(Record::latency))?;
    (waited > latency.as_nanos() / 2).then(|| {
        "more than half of the median latency was spent in sockets, where messages waited to be read (facts.waited_ns in runs.jsonl): the run measured the hosts, not the path; use less busy hosts, fewer messages, or a path with a longer delay"
            .to_owned()
    })
}

/// Returns a warning if the median one-way latency is less than the uncertainty of the clocks.
pub(crate) fn warn_of_clock_uncertainty(records: &[Record], uncertainty: Duration) -> Option<String> {
    let one_way = records.iter().filter(|record| record.reply.is_none());
    (median(one_way.filter_map(Record::latency))? < uncertainty).then(|| {
        "one-way latencies are shorter than the uncertainty of the two clocks (facts.peer.uncertainty in runs.jsonl): use them only to compare transports, or measure a workload with replies"
            .to_owned()
    })
}

/// Returns a warning if nothing arrived at the other host.
pub(crate) fn warn_of_unreached_server(records: &[Record], run_end: &RunEnd, host: &str) -> Option<String> {
    let is_lost = !records.is_empty() && records.iter().all(|record| record.request.is_none());
    let is_cut = matches!(run_end, RunEnd::NotConnected { .. });
    (is_lost || is_cut).then(|| {
        format!(
            "no message arrived at {host}: check that its firewall accepts the transport's protocol (TCP, UDP or SCTP) on the ports of \
            sysctl net.ipv4.ip_local_port_range. If only some ports are open, start `hol live serve --ports FIRST-LAST` there"
        )
    })
}

/// Returns the warning that no message of the background flow between two nodes arrived.
pub(crate) fn background_not_reached([from, to]: [&str; 2]) -> String {
    format!(
        "no message of the flow from {from:?} to {to:?} arrived: check that a firewall between these two hosts accepts the ports of \
        servers (`hol live serve --ports FIRST-LAST`)"
    )
}

fn median(times: impl Iterator<Item = Duration>) -> Option<Duration> {
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use hol_base::Time;
    use hol_measure::{Outcome, RecordKind, TransferTimes};

    use super::*;

    /// Returns messages that took this many µs one way, and as long back if they have replies; `None`: they never arrived.
    fn records(took: Option<u64>, has_replies: bool) -> Vec<Record> {
        let at = |us: u64| Time::from_nanos((1000 + us) * 1000);
        let leg = |from, to| TransferTimes {
            written: at(from),
            first_sent: at(from),
            last_sent: at(from),
            arrived: at(to),
            delivered: at(to),
        };
        let record = |id: u64| {
            let due = 1000 * id;
            let middle = took.map(|us| due + if has_replies { us / 2 } else { us });
            Record {
                id,
                kind: RecordKind::Message,
                parent: None,
                stream: 0,
                size: 100,
                reply_size: 0,
                scheduled: at(due),
                request: middle.map(|middle| leg(due, middle)),
                reply: middle.zip(took).filter(|_| has_replies).map(|(middle, us)| leg(middle, due + us)),
                outcome: if took.is_some() { Outcome::Completed } else { Outcome::Unfinished },
            }
        };
        (0..9).map(record).collect()
    }

    #[test]
    fn clock_uncertainty_affects_only_one_way_times() {
        let of = |took, has_replies, unsure_by| {
            warn_of_clock_uncertainty(&records(Some(took), has_replies), Duration::from_micros(unsure_by))
                .is_some()
        };
        assert!(of(40, false, 41));
        assert!(!of(40, false, 40));
        assert!(!of(40, true, 1000), "a round trip has one clock");
        assert_eq!(
            warn_of_clock_uncertainty(&records(None, false), Duration::from_micros(1000)),
            None,
            "nothing was measured"
        );
    }

    #[test]
    fn a_run_without_deliveries_mentions_the_firewall() {
        let told = |took, run_end| warn_of_unreached_server(&records(took, true), &run_end, "192.0.2.7");
        assert_eq!(told(Some(40), RunEnd::Finished), None);
        for caution in [
            told(None, RunEnd::Finished),
            told(Some(40), RunEnd::NotConnected { within: Duration::from_secs(20) }),
        ] {
            assert!(caution.unwrap().contains("192.0.2.7: check that its firewall"));
        }
    }

    #[test]
    fn long_waits_in_sockets_are_reported() {
        let waited = |us: [u64; 2]| {
            let waits = us.map(|us| ReadDelays { messages: 9, median: us * 1000, ..ReadDelays::default() });
            let waited = [Side::Client, Side::Server].into_iter().zip(waits).collect();
            warn_of_socket_waits(&records(Some(40), true), &waited).is_some()
        };
        assert!(!waited([10, 10]) && waited([10, 11]) && waited([u64::MAX / 1000; 2]));
        assert_eq!(
            warn_of_socket_waits(&records(Some(40), true), &BTreeMap::new()),
            None,
            "the kernel does not tell"
        );
        assert_eq!(
            warn_of_socket_waits(&records(None, true), &BTreeMap::new()),
            None,
            "nothing was measured"
        );
    }

    #[test]
    fn a_slow_host_is_reported() {
        let late = |us: u64| {
            let mut records = records(Some(40), true);
            for record in &mut records {
                record.scheduled = Time::from_nanos(record.scheduled.as_nanos().saturating_sub(us * 1000));
            }
            warn_of_host_load(&records).is_some()
        };
        // The messages take 40 µs plus their waiting time before.
        assert!(!late(0) && !late(40) && late(41));
        assert_eq!(warn_of_host_load(&records(None, true)), None, "nothing was measured");
    }
}
