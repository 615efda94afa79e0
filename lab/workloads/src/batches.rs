//! Batches: consecutive messages with a common record in addition to their own. The record starts when the
//! first message is due, and ends with the reply to the last.

use hol_base::Time;
use hol_measure::RecordKind;

use crate::ledger::{DueMessage, EntryId, Ledger, MessageArrival};

/// A batch of consecutive messages, which has a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Number of messages in the batch.
    pub(crate) messages: u64,
    /// Octets stated in the record of the batch.
    pub(crate) octets: u32,
}

/// The sequence of a workload's batches, which is empty if the workload has none.
#[derive(Debug)]
pub(crate) struct Batches {
    batch: Option<Batch>,
    /// The entry of the current batch in the ledger, and the number of its messages that have no reply yet.
    current: Option<(EntryId, u64)>,
}

impl Batches {
    /// Creates the sequence of batches of a workload.
    pub(crate) fn new(batch: Option<Batch>) -> Self {
        Self { batch, current: None }
    }

    /// Returns the number of the current batch, to which the message belongs that comes due now. Starts a batch if none
    /// is in progress; `None` if the workload has no batches.
    pub(crate) fn batch_number(&mut self, ledger: &mut Ledger, now: Time, scheduled: Time) -> Option<u32> {
        let Batch { messages, octets } = self.batch?;
        let (entry, _) = *self.current.get_or_insert_with(|| {
            let first = ledger.messages_due() as u32 + 1;
            let due = DueMessage {
                scheduled,
                lane: 0,
                size: octets,
                reply_size: 0,
                kind: RecordKind::Batch,
                parent: None,
            };
            (ledger.note_composite_due(now, due, first), messages)
        });
        Some(entry.number())
    }

    /// Handles the reply to message `number`; returns whether it completed the batch.
    pub(crate) fn on_reply(&mut self, ledger: &mut Ledger, number: u32, reply: MessageArrival) -> bool {
        let Some((entry, left)) = &mut self.current else { return false };
        *left -= 1;
        let is_over = *left == 0;
        if is_over {
            ledger.end_composite(*entry, number, reply);
            self.current = None;
        }
        is_over
    }

    /// Skips a batch at the end of a run. If a batch is in progress, it stays incomplete; otherwise the next batch is
    /// recorded as never started. Returns how many of the `left` unsent messages belong to the skipped batch; `None` if
    /// the workload has no batches.
    pub(crate) fn skip(&mut self, ledger: &mut Ledger, now: Time, left: u64) -> Option<u64> {
        let messages = self.batch?.messages;
        let of_current = left % messages;
        if of_current == 0 {
            self.current = None;
            self.batch_number(ledger, now, now);
        }
        Some(if of_current == 0 { messages } else { of_current })
    }
}
