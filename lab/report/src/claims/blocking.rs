//! The claim "Head-of-line blocking does not happen in case of using multiple streams", checked message by
//! message.

use hol_base::{Seed, Time};
use hol_lab::toml_reader::from_text;
use hol_measure::Record;
use hol_scenario::Scenario;
use serde::Deserialize;

use super::Finding;

/// The claim that streams prevent head-of-line blocking if messages belong to several files in turn: with one stream
/// per file no message waits for a message of another file; with a single stream some messages do. Each transport has a
/// run of its own in the model, at 5 % loss.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadOfLineCheck {
    /// Specifications with one stream for each file, such as `sctp:streams=2`.
    transports: Vec<String>,
    /// Specifications with a single stream.
    #[serde(rename = "than")]
    single_stream_transports: Vec<String>,
    /// The number of files.
    files: usize,
    /// The number of messages in a run.
    messages: u64,
}

/// Numbers of messages in a run that could have waited for another file, and that did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Waits {
    /// The number of messages that arrived while a message of another file was missing.
    exposed: usize,
    /// The number of exposed messages that waited for the missing message.
    waited: usize,
}

impl HeadOfLineCheck {
    /// Judges the claim from the waits of all messages.
    pub(super) fn evaluate(&self) -> Finding {
        let runs = |transports: &[String]| -> Result<Vec<(String, Waits)>, String> {
            transports.iter().map(|transport| Ok((transport.clone(), self.run(transport)?))).collect()
        };
        let (apart, together) = match (runs(&self.transports), runs(&self.single_stream_transports)) {
            (Ok(apart), Ok(together)) => (apart, together),
            (Err(problem), _) | (_, Err(problem)) => return Finding::unknown(problem),
        };
        let row = |(transport, waits): &(String, Waits)| {
            let Waits { exposed, waited } = waits;
            format!(
                "{transport}: {exposed} messages arrived while a message of another file was missing; {waited} of them waited for it"
            )
        };
        let rows = apart.iter().chain(&together).map(row).collect();
        let waited = |runs: &[(String, Waits)]| runs.iter().map(|(_, waits)| waits.waited).sum::<usize>();
        let is_exposed = apart.iter().all(|(_, waits)| waits.exposed > 0);
        let holds = waited(&apart) == 0 && together.iter().all(|(_, waits)| waits.waited > 0);
        let text = format!(
            "with one stream per file {} messages waited for a message of another stream; with a single stream {} waited for a message \
             of another file (in the model world, {} messages per run, 5 % loss)",
            waited(&apart),
            waited(&together),
            self.messages
        );
        let finding = if is_exposed { Finding::new(holds, text) } else { Finding::unknown(text) };
        finding.with_rows(rows)
    }

    fn run(&self, transport: &str) -> Result<Waits, String> {
        let problem = |e: &dyn std::fmt::Display| format!("{transport}: {e}");
        let network = from_text("loss = \"5%\"").map_err(|e| problem(&e))?;
        let workload =
            from_text("kind = \"oneway\"\nrate = \"200/s\"\nlate_limit = \"1h\"").map_err(|e| problem(&e))?;
        let transport = transport.parse().map_err(|e| problem(&e))?;
        let scenario = Scenario::with_single_flow(network, transport, workload, self.messages);
        let run = hol_model::run(&scenario, Seed(1), None).map_err(|e| problem(&e))?;
        Ok(count_waits(&run.records, self.files))
    }
}

/// Counts the messages that waited for another file: they were delivered later than the time at which they and all
/// earlier messages of their own file had arrived.
fn count_waits(records: &[Record], files: usize) -> Waits {
    // The time at which all messages so far had arrived, for each file.
    let mut arrived = vec![Time::ZERO; files];
    let mut waits = Waits::default();
    for (number, record) in records.iter().enumerate() {
        let Some(request) = record.request else { continue };
        let own = number % files;
        arrived[own] = arrived[own].max(request.arrived);
        let others = arrived.iter().enumerate().filter(|(file, _)| *file != own).map(|(_, arrived)| *arrived);
        waits.exposed += usize::from(others.max().is_some_and(|last| last > arrived[own]));
        waits.waited += usize::from(request.delivered > arrived[own]);
    }
    waits
}

#[cfg(test)]
mod tests {
    use hol_measure::{Outcome, TransferTimes};

    use super::*;

    fn records(times: &[(u64, u64)]) -> Vec<Record> {
        let record = |(id, &(arrived, delivered)): (usize, &(u64, u64))| {
            let [arrived, delivered] = [arrived, delivered].map(Time::from_millis);
            let request = Some(TransferTimes { arrived, delivered, ..TransferTimes::default() });
            let (id, stream, size) = (id as u64, (id % 2) as u16, 64);
            Record {
                id,
                kind: hol_measure::RecordKind::Message,
                parent: None,
                stream,
                size,
                reply_size: 0,
                scheduled: Time::ZERO,
                request,
                reply: None,
                outcome: Outcome::Completed,
            }
        };
        times.iter().enumerate().map(record).collect()
    }

    #[test]
    fn waiting_for_the_own_file_does_not_count() {
        // The first is lost and arrives at 50. Of those that wait for it, only the third belongs to its file.
        let apart = records(&[(50, 50), (11, 11), (12, 50), (13, 13)]);
        assert_eq!(count_waits(&apart, 2), Waits { exposed: 2, waited: 0 });
        let together = records(&[(50, 50), (11, 50), (12, 50), (13, 50)]);
        assert_eq!(count_waits(&together, 2), Waits { exposed: 2, waited: 2 });
    }

    #[test]
    fn stream_per_file_prevents_waiting_and_a_single_stream_does_not() {
        let check = |apart: &str, together: &str| HeadOfLineCheck {
            transports: vec![apart.into()],
            single_stream_transports: vec![together.into()],
            files: 2,
            messages: 1000,
        };
        assert_eq!(check("sctp:streams=2", "sctp").evaluate().holds, Some(true));
        assert_eq!(check("sctp", "tcp").evaluate().holds, Some(false));
        assert_eq!(check("sctp:streams=2", "sctp:streams=4").evaluate().holds, Some(false));
    }
}
