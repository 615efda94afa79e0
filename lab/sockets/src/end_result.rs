//! The result of one end of a flow. The results of both ends, which may come from two hosts, are joined.

use hol_base::Time;
use hol_measure::{Record, TransferTimes};
use hol_scenario::{FilterReport, ReadDelays, RunEnd, Sample, Side};
use hol_workloads::{Ledger, LedgerJoin};
use serde::{Deserialize, Serialize};

use crate::clock::epoch_of;
use crate::compact_sample::CompactSenderSample;
use crate::flow_parameters::{FlowRun, PathChange, SocketCounters};

/// The result of one end of a finished flow: plain data that can be sent to the host where the ends are
/// joined.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EndResult {
    /// Ledger of the end's application, in times since `origin`.
    pub ledger: Ledger,
    /// Start of the end's clock, on the monotonic clock of its host.
    pub origin: u64,
    /// The kernel's counters of the end's sockets.
    pub counts: SocketCounters,
    /// How long messages waited in the end's sockets before delivery, if the kernel reported it.
    pub waits: Option<ReadDelays>,
    /// How the flow ended; only the client's end, which decides it, reports this.
    pub verdict: Option<FlowOutcome>,
    /// Data that only this host uses; samples are sent separately, by [`Self::sender_samples`].
    #[serde(skip)]
    pub(crate) local: LocalData,
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// When every connection was open for sending.
    pub connected: Option<Time>,
    /// Time at which the flow ended.
    pub ended: Time,
    /// The reason why the flow ended.
    pub run_end: RunEnd,
    /// Whether another thread stopped the flow.
    pub was_stopped: bool,
}

/// Data of [`FlowRun`] that stay on this host.
#[derive(Debug, Clone, Default)]
pub(crate) struct LocalData {
    pub(crate) paths: Vec<PathChange>,
    pub(crate) secrets: String,
    pub(crate) filter: Option<FilterReport>,
    pub(crate) samples: Vec<Sample>,
}

impl EndResult {
    /// Returns the samples of the end's senders, which are sent in parts because of their number.
    pub fn sender_samples(&self) -> impl Iterator<Item = CompactSenderSample> {
        self.local.samples.iter().filter_map(CompactSenderSample::of)
    }

    /// Adds a sample of a sender, timed by the clock of its host.
    pub fn add_sender_sample(&mut self, sample: CompactSenderSample) {
        let side = if self.verdict.is_some() { Side::Client } else { Side::Server };
        self.local.samples.push(sample.sample(side));
    }

    /// Converts the result of another host to this host's clock with `clock`; `None` if the result is
    /// impossible for an end of a flow.
    pub fn from_remote(self, clock: impl Fn(u64) -> u64) -> Option<Self> {
        let Self { ledger, origin, counts, waits, verdict, mut local } = self;
        let (mut ledger, own) = (ledger.validated()?, clock(origin));
        let time =
            |time: Time| Time::from_nanos(clock(origin.saturating_add(time.as_nanos())).saturating_sub(own));
        ledger.convert_times(time);
        local.samples.iter_mut().for_each(|sample| sample.at = time(sample.at));
        let verdict = verdict.map(|verdict| FlowOutcome {
            connected: verdict.connected.map(time),
            ended: time(verdict.ended),
            ..verdict
        });
        Some(Self { ledger, origin: own, counts, waits, verdict, local })
    }

    /// Joins the client's end with the `server` end, both on this host's clock; `None` if the client's result has no
    /// verdict. Also returns how many of the records' times had to be changed because they were out of order.
    pub fn join(self, server: Self, reading: LedgerJoin) -> Option<(FlowRun, u64)> {
        let (mut client, mut server) = (self, server);
        let FlowOutcome { connected, ended, run_end, was_stopped } = client.verdict?;
        let are_apart = client.origin != server.origin;
        if are_apart {
            let (from, to) = (server.origin, client.origin);
            let time = |time: Time| Time::from_nanos(time.as_nanos().saturating_add(from).saturating_sub(to));
            server.ledger.convert_times(time);
            server.local.samples.iter_mut().for_each(|sample| sample.at = time(sample.at));
        }
        let (mut records, mut wrong) = (Vec::new(), 0);
        reading.settle_all(&mut client.ledger, &mut server.ledger, |record| {
            let record = if are_apart { in_order(record, &mut wrong) } else { record };
            records.push(without_packet_times(record));
        });
        let (own, other) = (client.local, server.local);
        let run = FlowRun {
            records,
            epoch: epoch_of(client.origin),
            connected,
            ended,
            run_end,
            was_stopped,
            client: client.counts,
            server: server.counts,
            waits: [client.waits, server.waits],
            paths: [own.paths, other.paths].concat(),
            secrets: own.secrets,
            filter: other.filter,
            samples: [own.samples, other.samples].concat(),
        };
        Some((run, wrong))
    }
}

/// Enforces the order of the times of a record, which differing clocks may violate: written, delivered,
/// answered.
fn in_order(record: Record, wrong: &mut u64) -> Record {
    let mut between = |time: Time, min: Time, max: Time| {
        let right = time.max(min).min(max);
        *wrong += u64::from(time != right);
        right
    };
    // The client's clock measured the start of a request and the end of its reply, the server's clock the
    // times between.
    let begin = record.request.map_or(record.scheduled, |leg| leg.written.max(record.scheduled));
    let end = record.reply.map_or(Time::MAX, |reply| reply.delivered.max(begin));
    let request = record.request.map(|leg| TransferTimes {
        written: begin,
        delivered: between(leg.delivered, begin, end),
        ..leg
    });
    let heard = request.map_or(begin, |leg| leg.delivered);
    let reply = record.reply.map(|leg| TransferTimes {
        written: between(leg.written, heard, end),
        delivered: end,
        ..leg
    });
    Record { request, reply, ..record }
}

/// Replaces the times of packets by those that sockets report: when a message was written, and when it was delivered.
fn without_packet_times(record: Record) -> Record {
    let unseen = |TransferTimes { written, delivered, .. }| TransferTimes {
        written,
        first_sent: written,
        last_sent: written,
        arrived: delivered,
        delivered,
    };
    Record { request: record.request.map(unseen), reply: record.reply.map(unseen), ..record }
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_measure::{Outcome, RecordKind};
    use hol_scenario::SampleValue;
    use hol_transport::DeliveryTimes;
    use hol_workloads::{DueMessage, MessageArrival};

    use super::*;

    const READING: LedgerJoin = LedgerJoin { has_replies: true, may_lose_messages: false };

    fn us(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn half(ledger: Ledger, origin: u64, has_rules: bool) -> EndResult {
        let verdict = FlowOutcome {
            connected: Some(us(5)),
            ended: us(900),
            run_end: RunEnd::Finished,
            was_stopped: false,
        };
        let verdict = has_rules.then_some(verdict);
        EndResult {
            ledger,
            origin,
            counts: SocketCounters::default(),
            waits: None,
            verdict,
            local: LocalData::default(),
        }
    }

    /// Returns the results of a transaction that was due after 100 µs, reached the server 50 µs later, and
    /// was answered 10 µs after that; the answer took 50 µs. The server's clock began `later` µs after the
    /// client's.
    fn halves(later: u64) -> [EndResult; 2] {
        let arrived = |at| MessageArrival { delivery_times: DeliveryTimes::default(), delivered: at };
        let (mut client, mut server) = (Ledger::default(), Ledger::default());
        let due = DueMessage {
            scheduled: us(100),
            lane: 0,
            size: 56,
            reply_size: 0,
            kind: RecordKind::Transaction,
            parent: None,
        };
        client.note_due(us(100), due);
        assert!(client.note_reply(0, arrived(us(210)), false));
        let entry = server.note_request(0, arrived(us(150 - later)));
        server.note_reply_written(entry, us(160 - later));
        [half(client, 1_000_000, true), half(server, 1_000_000 + later * 1000, false)]
    }

    fn legs(record: &Record) -> [[Time; 2]; 2] {
        [record.request, record.reply].map(|leg| leg.map(|leg| [leg.written, leg.delivered]).unwrap())
    }

    #[test]
    fn ends_are_joined_by_the_start_times_of_their_clocks() {
        for later in [0, 30] {
            let [client, server] = halves(later);
            let (run, wrong) = client.join(server, READING).unwrap();
            assert_eq!((run.records.len(), run.records[0].outcome, wrong), (1, Outcome::Completed, 0));
            assert_eq!(legs(&run.records[0]), [[us(100), us(150)], [us(160), us(210)]], "{later}");
            assert_eq!((run.connected, run.ended), (Some(us(5)), us(900)));
        }
    }

    #[test]
    fn a_remote_result_is_converted_to_the_local_clock() {
        // The other host started a minute earlier.
        const UP: u64 = 60_000_000_000;
        let [client, server] = halves(30);
        let there = EndResult { origin: server.origin + UP, ..server };
        let text = serde_json::to_string(&there).unwrap();
        let there: EndResult = serde_json::from_str(&text).unwrap();
        let here = there.from_remote(|time| time - UP).unwrap();
        let (run, wrong) = client.join(here, READING).unwrap();
        assert_eq!((legs(&run.records[0]), wrong), ([[us(100), us(150)], [us(160), us(210)]], 0));
    }

    #[test]
    fn remote_sender_samples_are_converted_to_the_local_clock() {
        const UP: u64 = 60_000_000_000;
        let [client, server] = halves(30);
        let mut there = EndResult { origin: server.origin + UP, ..server };
        let sample = r#"[120000,1,"192.0.2.7",[14480,null,40000,null,1448,2]]"#;
        there.add_sender_sample(serde_json::from_str(sample).unwrap());
        let samples: Vec<String> =
            there.sender_samples().map(|sample| serde_json::to_string(&sample).unwrap()).collect();
        assert_eq!(samples, [sample]);
        let here = there.from_remote(|time| time - UP).unwrap();
        let (run, _) = client.join(here, READING).unwrap();
        let [Sample { at, value: SampleValue::Sender(sender) }] = run.samples[..] else {
            panic!("there is one")
        };
        assert_eq!((at, sender.side, sender.connection), (us(150), Side::Server, 1));
        assert_eq!((sender.path.cwnd, sender.sent_again), (Some(14_480), Some(2)));
    }

    /// The client's clock alone measures the round trip; only the times in between may be wrong.
    #[test]
    fn joined_records_stay_ordered_if_clocks_differ_by_more_than_the_delay() {
        for (ahead, legs_then, wrongs) in [
            (-80, [[us(100), us(100)], [us(100), us(210)]], 2),
            (80, [[us(100), us(210)], [us(210), us(210)]], 2),
        ] {
            let [client, server] = halves(0);
            let origin = server.origin.saturating_add_signed(ahead * 1000);
            let (run, wrong) = client.join(EndResult { origin, ..server }, READING).unwrap();
            assert_eq!(legs(&run.records[0]), legs_then, "{ahead}");
            assert_eq!(run.records[0].latency(), Some(Duration::from_micros(110)));
            assert_eq!(wrong, wrongs, "{ahead}");
            run.records[0].breakdown().expect("no part of the delay is negative");
        }
    }

    #[test]
    fn records_are_consistent_for_any_remote_origin() {
        for origin in [0, 1, 999_999, u64::MAX / 2, u64::MAX] {
            let [client, server] = halves(0);
            let there = EndResult { origin, ..server }.from_remote(|time| time).unwrap();
            let (run, _) = client.join(there, READING).unwrap();
            run.records[0].breakdown().expect("the transaction was answered");
        }
        let [client, _] = halves(0);
        let [server, _] = halves(0);
        assert!(
            EndResult { verdict: None, ..client }.join(server, READING).is_none(),
            "neither end has the rules"
        );
    }
}
