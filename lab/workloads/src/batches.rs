//! Batches: consecutive messages that are also recorded together, from the time at which the first was due
//! to the reply to the last.

use hol_base::Time;
use hol_measure::RecordKind;

use crate::ledger::{DueMessage, EntryId, Ledger, MessageArrival};

/// A batch of consecutive messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Number of messages.
    pub(crate) messages: u64,
    /// Octets in the record of the batch.
    pub(crate) octets: u32,
}

/// The sequence of batches, if the workload has any.
#[derive(Debug)]
pub(crate) struct Batches {
    batch: Option<Batch>,
    /// The current batch, and its remaining messages.
    begun: Option<(EntryId, u64)>,
}

impl Batches {
    /// Creates the sequence of batches of a workload.
    pub(crate) fn of(batch: Option<Batch>) -> Self {
        Self { batch, begun: None }
    }

    /// Returns the number of the batch of the message that is about to come due, which may start the batch.
    pub(crate) fn number(&mut self, ledger: &mut Ledger, now: Time, scheduled: Time) -> Option<u32> {
        let Batch { messages, octets } = self.batch?;
        let (entry, _) = *self.begun.get_or_insert_with(|| {
            let first = ledger.due() as u32 + 1;
            let due = DueMessage {
                scheduled,
                lane: 0,
                size: octets,
                reply_size: 0,
                kind: RecordKind::Batch,
                parent: None,
            };
            (ledger.note_whole_due(now, due, first), messages)
        });
        Some(entry.number())
    }

    /// Notes that a message was answered; returns whether that ended the batch.
    pub(crate) fn answered(&mut self, ledger: &mut Ledger, number: u32, reply: MessageArrival) -> bool {
        let Some((entry, left)) = &mut self.begun else { return false };
        *left -= 1;
        let is_over = *left == 0;
        if is_over {
            ledger.note_whole(*entry, number, reply);
            self.begun = None;
        }
        is_over
    }

    /// Notes the next batch as never started, or abandons the current one. Returns how many of the `left`
    /// messages are not requested.
    pub(crate) fn skip(&mut self, ledger: &mut Ledger, now: Time, left: u64) -> Option<u64> {
        let messages = self.batch?.messages;
        let of_begun = left % messages;
        if of_begun == 0 {
            self.begun = None;
            self.number(ledger, now, now);
        }
        Some(if of_begun == 0 { messages } else { of_begun })
    }
}
