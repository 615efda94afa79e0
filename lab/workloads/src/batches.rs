//! Messages that follow each other and are recorded together, beside each of them: from when the first was due to the reply to the last.

use hol_base::Time;
use hol_measure::RecordKind;

use crate::ledger::{Arrived, Due, EntryId, Ledger};

/// What messages make up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Batch {
    /// How many they are.
    pub(crate) messages: u64,
    /// What stands in the record.
    pub(crate) octets: u32,
}

/// One batch after the other, if messages make any up.
#[derive(Debug)]
pub(crate) struct Batches {
    batch: Option<Batch>,
    /// The one that has begun, and the messages that it still has.
    begun: Option<(EntryId, u64)>,
}

impl Batches {
    pub(crate) fn of(batch: Option<Batch>) -> Self {
        Self { batch, begun: None }
    }

    /// A message is about to come due: the number of the batch that it is part of, which may begin with it.
    pub(crate) fn number(&mut self, ledger: &mut Ledger, now: Time, scheduled: Time) -> Option<u32> {
        let Batch { messages, octets } = self.batch?;
        let (entry, _) = *self.begun.get_or_insert_with(|| {
            let first = ledger.due() as u32 + 1;
            let due = Due { scheduled, lane: 0, size: octets, kind: RecordKind::Batch, parent: None };
            (ledger.note_whole_due(now, due, first), messages)
        });
        Some(entry.number())
    }

    /// A message is answered; true if the batch has ended with it.
    pub(crate) fn answered(&mut self, ledger: &mut Ledger, number: u32, reply: Arrived) -> bool {
        let Some((entry, left)) = &mut self.begun else { return false };
        *left -= 1;
        let is_over = *left == 0;
        if is_over {
            ledger.note_whole(*entry, number, reply);
            self.begun = None;
        }
        is_over
    }

    /// Notes the next batch as one that never began, or leaves the one that did; how many of the `left` messages are not to be
    /// asked for.
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
