//! Nagle's algorithm: small segments wait for acknowledgments. RFC 9293 section 3.7.4.

use hol_wire::tcp::SeqNum;

use crate::Nagle;
use crate::send_sequence::SendSequence;

/// The state of Nagle's algorithm.
#[derive(Debug, Default)]
pub(crate) struct NagleState {
    /// The sequence number that follows the last small segment.
    last_end: SeqNum,
}

impl NagleState {
    /// Creates the state of a connection whose SND.UNA is `una`.
    pub(crate) fn begin(una: SeqNum) -> Self {
        Self { last_end: una }
    }

    /// Records that a small segment was sent that ends before `end`.
    pub(crate) fn on_sent(&mut self, end: SeqNum) {
        self.last_end = end;
    }

    /// Returns whether the next small segment must wait for an acknowledgment.
    pub(crate) fn must_wait(&self, rule: Nagle, outstanding: bool, snd: &SendSequence) -> bool {
        match rule {
            Nagle::Off => false,
            Nagle::Classic => outstanding,
            Nagle::Minshall => {
                outstanding && self.last_end.after(snd.una()) && self.last_end.at_or_before(snd.nxt())
            }
        }
    }
}
