//! The claim "The outbound stream number is chosen as TID modulo number of streams", checked message by
//! message.

use std::collections::BTreeMap;

use hol_base::{Seed, Time};
use hol_lab::toml_reader::from_text;
use hol_measure::Record;
use hol_scenario::Scenario;
use serde::Deserialize;

use super::Finding;

/// The claim that every message uses the stream that follows from its number, and that no stream delivers out of order.
/// Each transport is checked in a run of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamAssignment {
    /// Specifications, such as `sctp:streams=8`.
    transports: Vec<String>,
    /// The number of messages in a run.
    messages: u64,
}

impl StreamAssignment {
    /// Judges the claim from the stream of every message.
    pub(super) fn evaluate(&self) -> Finding {
        let mut rows = Vec::new();
        let mut wrong = 0;
        for transport in &self.transports {
            match self.run(transport) {
                Ok((streams, records)) => {
                    let (misplaced, disordered) =
                        (count_misplaced(&records, streams), count_disordered(&records));
                    wrong += misplaced + disordered;
                    rows.push(format!(
                        "{transport}: {} messages, of which {misplaced} used a wrong stream and {disordered} were delivered out of order in their stream",
                        records.len()
                    ));
                }
                Err(problem) => return Finding::unknown(format!("{transport}: {problem}")),
            }
        }
        Finding::new(
            wrong == 0,
            format!("{wrong} violations in {} runs of the model world at 5 % loss", rows.len()),
        )
        .with_rows(rows)
    }

    fn run(&self, transport: &str) -> Result<(u16, Vec<Record>), String> {
        let transport: hol_stack::TransportSpec = transport.parse().map_err(|e| format!("{e}"))?;
        let streams = transport.streams();
        let network = from_text("loss = \"5%\"").map_err(|e| format!("{e}"))?;
        let workload = from_text("kind = \"simco\"").map_err(|e| format!("{e}"))?;
        let scenario = Scenario::with_single_flow(network, transport, workload, self.messages);
        let run = hol_model::run(&scenario, Seed(1), None).map_err(|e| e.to_string())?;
        Ok((streams, run.records))
    }
}

/// Counts the messages that did not use the stream that follows from their number: each message uses the stream after
/// that of the message before, in turn, starting with the stream of the first message.
fn count_misplaced(records: &[Record], streams: u16) -> usize {
    let Some(first) = records.first() else { return 0 };
    let k = u64::from(streams);
    // Transaction identifiers start at any number and increase by one.
    let offset = (u64::from(first.stream) + k - first.id % k) % k;
    records.iter().filter(|r| u64::from(r.stream) != (r.id + offset) % k).count()
}

/// Counts the requests that overtook an earlier one of their stream.
fn count_disordered(records: &[Record]) -> usize {
    let mut last: BTreeMap<u16, Time> = BTreeMap::new();
    let mut count = 0;
    for record in records {
        let Some(request) = record.request else { continue };
        let before = last.entry(record.stream).or_insert(request.delivered);
        count += usize::from(request.delivered < *before);
        *before = request.delivered.max(*before);
    }
    count
}

#[cfg(test)]
mod tests {
    use hol_measure::{Outcome, TransferTimes};

    use super::*;

    fn record(id: u64, stream: u16, delivered: u64) -> Record {
        let delivered = Time::from_millis(delivered);
        let request = Some(TransferTimes { delivered, ..TransferTimes::default() });
        let scheduled = Time::ZERO;
        Record {
            id,
            kind: hol_measure::RecordKind::Message,
            parent: None,
            stream,
            size: 64,
            reply_size: 0,
            scheduled,
            request,
            reply: None,
            outcome: Outcome::Completed,
        }
    }

    #[test]
    fn a_message_on_the_wrong_stream_is_found() {
        let mut records: Vec<Record> = (0..8).map(|id| record(id, (id % 4) as u16, id)).collect();
        assert_eq!(count_misplaced(&records, 4), 0);
        records[5].stream = 0;
        assert_eq!(count_misplaced(&records, 4), 1);
    }

    #[test]
    fn order_matters_within_a_stream_only() {
        let records = [record(0, 0, 50), record(1, 1, 20), record(2, 0, 51)];
        assert_eq!(count_disordered(&records), 0);
        let records = [record(0, 0, 50), record(1, 1, 20), record(2, 0, 49)];
        assert_eq!(count_disordered(&records), 1);
    }
}
