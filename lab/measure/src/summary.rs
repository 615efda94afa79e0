//! The summary of one run: counts, latencies, delay components, digest.

use hol_base::{Digest, Digester, Duration};
use serde::{Deserialize, Serialize};

use crate::halves::HalvesBuilder;
use crate::nanoseconds;
use crate::playback::PlaybackBuilder;
use crate::{DelayBreakdown, Distribution, Outcome, Playback, Record, RecordKind, Recorder, RunHalves};

/// The summary of a run's records. It is so small that a study can store it for every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of messages that were to be sent.
    pub offered: u64,
    /// Number of messages that were delivered and, with replies, answered. Includes frames that arrived too late.
    pub completed: u64,
    /// Number of messages that were unfinished when the run ended.
    pub unfinished: u64,
    /// Number of messages that the transport abandoned (partial reliability).
    pub abandoned: u64,
    /// Number of messages that the peer refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// Number of octets in the completed messages. A transaction counts only with the direction that carries more
    /// octets.
    pub bytes: u64,
    /// Latencies of the messages, from the time at which each was scheduled.
    pub latency: Distribution,
    /// Sum of the completed messages' delays, by component.
    pub split: TotalDelayBreakdown,
    /// Longest time by which a message was behind its schedule when the transport accepted it. Messages that were
    /// never accepted do not count.
    #[serde(rename = "behind_ns", default, with = "nanoseconds")]
    pub behind: Duration,
    /// Latencies of the earlier half and of the later half of the messages.
    #[serde(default)]
    pub halves: RunHalves,
    /// Playback quality of frames; `None` for other records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub playback: Option<Playback>,
    /// Digest over all records: the same seed gives the same digest.
    #[serde(with = "as_text")]
    pub digest: Digest,
}

/// Sum of many messages' delays by component, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TotalDelayBreakdown {
    /// Time by which the messages were behind schedule when the transport accepted them.
    pub slip: u128,
    /// Time at the server, until the transport accepted the replies; results of older versions include it in `slip`.
    #[serde(default)]
    pub service: u128,
    /// Time in the senders' buffers.
    pub sender: u128,
    /// Time from the first transmission until the last transmission.
    pub recovery: u128,
    /// Time of the messages on the wire and in queues.
    pub network: u128,
    /// Head-of-line wait: time for which the messages were complete at the receiver, but data sent earlier were
    /// missing.
    pub head_of_line: u128,
}

/// Mean delay of a message by component, in ms; the components add up to the mean latency.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct MeanDelayBreakdown {
    /// Time by which the message was behind schedule when the transport accepted it.
    pub slip: f64,
    /// Time at the server, until the transport accepted the reply.
    #[serde(default)]
    pub service: f64,
    /// Time in the sender's buffer.
    pub sender: f64,
    /// Time from the first transmission until the last transmission.
    pub recovery: f64,
    /// Time of the message on the wire and in queues.
    pub network: f64,
    /// Head-of-line wait: time for which the message was complete at the receiver, but data sent earlier were
    /// missing.
    pub head_of_line: f64,
}

/// Builds a summary from records that are added one by one.
#[derive(Debug, Default)]
pub struct Summarizer {
    latency: Recorder,
    digester: Digester,
    split: TotalDelayBreakdown,
    behind: Duration,
    halves: HalvesBuilder,
    playback: Option<PlaybackBuilder>,
    /// Number of messages that were due.
    offered: u64,
    /// Number of completed messages.
    completed: u64,
    abandoned: u64,
    refused: u64,
    bytes: u64,
}

/// Summarises the records of a run.
pub fn summarize(records: &[Record]) -> Summary {
    let mut summarizer = Summarizer::default();
    records.iter().for_each(|record| summarizer.add(record));
    summarizer.finish()
}

impl Summarizer {
    /// Adds a record to all counts and sums.
    pub fn add(&mut self, record: &Record) {
        record.digest(&mut self.digester);
        self.offered += 1;
        match record.breakdown() {
            Some(parts) => {
                self.completed += 1;
                self.bytes += record.octets();
                self.split.add(&parts);
                self.latency.count_completed(parts.total());
                self.halves.add(Some(parts.total()));
            }
            None => {
                self.latency.count_failure();
                self.halves.add(None);
            }
        }
        if record.kind.has_schedule() {
            let written = record.request.map_or(record.scheduled, |request| request.written);
            self.behind = self.behind.max(written.saturating_since(record.scheduled));
        }
        if record.kind == RecordKind::Frame {
            match &mut self.playback {
                Some(playback) => playback.add(record),
                None => self.playback = Some(PlaybackBuilder::new(record)),
            }
        }
        self.abandoned += u64::from(record.outcome == Outcome::Abandoned);
        self.refused += u64::from(record.outcome == Outcome::Refused);
    }

    /// Returns the summary of all records added.
    pub fn finish(self) -> Summary {
        let Self { latency, digester, split, behind, halves, playback, .. } = self;
        let Self { offered, completed, abandoned, refused, bytes, .. } = self;
        Summary {
            offered,
            completed,
            unfinished: offered - completed - abandoned - refused,
            abandoned,
            refused,
            bytes,
            latency: latency.finish(),
            split,
            behind,
            halves: halves.finish(),
            playback: playback.map(PlaybackBuilder::finish),
            digest: digester.finish(),
        }
    }
}

/// If a run falls this far behind its schedule, it does not carry its load. IKR report 53, section 5.1.
const MAX_BEHIND: Duration = Duration::from_secs(1);

impl Summary {
    /// Returns whether a message was more than a second behind its schedule when the transport accepted it.
    pub fn has_fallen_behind(&self) -> bool {
        self.behind > MAX_BEHIND
    }

    /// Returns whether the backlog in the transport's buffers grew. It grew if the messages of the later half took
    /// more than a second, and if they took twice as long as those of the earlier half, or longer than those by a
    /// twentieth of `schedule`, the time for which messages were due. (In a flow that carries nine tenths of its
    /// load from the start, the difference is a twentieth of `schedule`.)
    pub fn has_growing_backlog(&self, schedule: Duration) -> bool {
        let limit = MAX_BEHIND.as_millis_f64();
        let grew = |(earlier, later): (f64, f64)| {
            later > limit && (later > 2.0 * earlier || later - earlier > schedule.as_millis_f64() / 20.0)
        };
        self.halves.means_ms().is_some_and(grew)
    }

    /// Returns the number of messages that were offered and not completed, for whatever reason.
    pub fn failed(&self) -> u64 {
        self.offered - self.completed
    }
}

impl TotalDelayBreakdown {
    /// Adds the components of the delay of one message.
    pub fn add(&mut self, split: &DelayBreakdown) {
        self.slip += u128::from(split.slip.as_nanos());
        self.service += u128::from(split.service.as_nanos());
        self.sender += u128::from(split.sender.as_nanos());
        self.recovery += u128::from(split.recovery.as_nanos());
        self.network += u128::from(split.network.as_nanos());
        self.head_of_line += u128::from(split.head_of_line.as_nanos());
    }

    /// Adds the sums of another run.
    pub fn merge(&mut self, other: &TotalDelayBreakdown) {
        self.slip += other.slip;
        self.service += other.service;
        self.sender += other.sender;
        self.recovery += other.recovery;
        self.network += other.network;
        self.head_of_line += other.head_of_line;
    }

    /// Returns the mean per message in ms, for this number of messages.
    pub fn mean(&self, messages: u64) -> MeanDelayBreakdown {
        let share = |total: u128| total as f64 / messages as f64 / 1e6;
        MeanDelayBreakdown {
            slip: share(self.slip),
            service: share(self.service),
            sender: share(self.sender),
            recovery: share(self.recovery),
            network: share(self.network),
            head_of_line: share(self.head_of_line),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Serializes and deserializes a digest as 32 hexadecimal digits.
mod as_text {
    use hol_base::Digest;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Serializes a digest as 32 hexadecimal digits.
    pub fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(digest)
    }
    /// Deserializes a digest from 32 hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use hol_base::{Duration, Time};

    use super::*;
    use crate::{RecordKind, TransferTimes};

    fn delivered(id: u64, scheduled: u64, times: [u64; 5]) -> Record {
        let [written, first_sent, last_sent, arrived, delivered] = times.map(Time::from_millis);
        let request = Some(TransferTimes { written, first_sent, last_sent, arrived, delivered });
        let scheduled = Time::from_millis(scheduled);
        Record {
            id,
            kind: RecordKind::Message,
            parent: None,
            stream: 0,
            size: 64,
            reply_size: 0,
            scheduled,
            request,
            reply: None,
            outcome: Outcome::Completed,
        }
    }

    fn lost(id: u64, outcome: Outcome) -> Record {
        Record { outcome, request: None, ..delivered(id, 0, [0; 5]) }
    }

    fn records() -> Vec<Record> {
        vec![
            delivered(0, 0, [0, 1, 31, 41, 41]),
            delivered(1, 10, [10, 10, 10, 20, 41]),
            lost(2, Outcome::Unfinished),
            lost(3, Outcome::Abandoned),
            lost(4, Outcome::Refused),
        ]
    }

    #[test]
    fn every_record_is_counted_once() {
        let summary = summarize(&records());
        assert_eq!((summary.offered, summary.completed, summary.failed()), (5, 2, 3));
        assert_eq!((summary.unfinished, summary.abandoned, summary.refused), (1, 1, 1));
        assert_eq!((summary.latency.offered(), summary.latency.mean_ms()), (5, Some(36.0)));
        assert_eq!((summary.bytes, summary.latency.quantile(0.75)), (128, None));
    }

    #[test]
    fn summary_has_the_maximum_delay_behind_schedule() {
        let records = [delivered(0, 0, [3, 3, 3, 9, 9]), delivered(1, 10, [18, 18, 18, 20, 20])];
        assert_eq!(summarize(&records).behind, Duration::from_millis(8));
        assert_eq!(summarize(&records).halves.means_ms(), Some((9.0, 10.0)));
    }

    #[test]
    fn mean_components_add_up_to_the_mean_latency() {
        let summary = summarize(&records());
        let parts = summary.split.mean(summary.completed);
        let expected = MeanDelayBreakdown {
            sender: 0.5,
            recovery: 15.0,
            network: 10.0,
            head_of_line: 10.5,
            ..MeanDelayBreakdown::default()
        };
        assert_eq!(parts, expected);
    }

    #[test]
    fn components_of_messages_and_runs_are_summed() {
        let ms = Duration::from_millis;
        let split = DelayBreakdown {
            slip: ms(1),
            service: ms(6),
            sender: ms(2),
            recovery: ms(3),
            network: ms(4),
            head_of_line: ms(5),
        };
        let mut total = TotalDelayBreakdown::default();
        total.add(&split);
        total.add(&split);
        let once = total;
        total.merge(&once);
        let expected = MeanDelayBreakdown {
            slip: 1.0,
            service: 6.0,
            sender: 2.0,
            recovery: 3.0,
            network: 4.0,
            head_of_line: 5.0,
        };
        assert_eq!((once.mean(2), total.mean(4)), (expected, expected));
    }

    #[test]
    fn the_digest_covers_every_record_and_survives_json() {
        let summary = summarize(&records());
        assert_ne!(summary.digest, summarize(&records()[..3]).digest);
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&json).unwrap(), summary);
    }

    /// A flow that completes 4.2 of 10 messages a second, while its send buffer accepts all at once.
    #[test]
    fn starved_flow_has_a_growing_backlog() {
        let starved = |interval: u64, late: u64| {
            let delivery = |n: u64| {
                let arrival = interval * n + late;
                delivered(n, 100 * n, [100 * n, 100 * n, 100 * n, arrival, arrival])
            };
            summarize(&(0..400).map(delivery).collect::<Vec<_>>())
        };
        let grew = |summary: &Summary| summary.has_growing_backlog(Duration::from_secs(40));
        assert!(grew(&starved(238, 20)) && !starved(238, 20).has_fallen_behind());
        assert!(!grew(&starved(100, 20)));
        // Held up at first, then 8.3 of 10 messages a second: the later half takes less than twice as long.
        assert!(grew(&starved(120, 5_000)));
        assert!(!grew(&starved(100, 5_000)), "late, but no later at the end");
    }

    /// IKR report 53, section 5.1; the longest wait of the three is 1.5 s.
    #[test]
    fn sender_more_than_a_second_late_fell_behind() {
        let with = |behind| Summary { behind, ..summarize(&records()) }.has_fallen_behind();
        assert!(!with(Duration::from_secs(1)) && with(Duration::from_millis(1001)));
        assert!(!with(Duration::ZERO));
    }
}
