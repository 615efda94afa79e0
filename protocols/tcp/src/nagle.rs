//! Nagle's algorithm: small segments wait for acknowledgments. RFC 9293 section 3.7.4.

use hol_wire::tcp::SeqNum;

use crate::Nagle;
use crate::send_sequence::SendSequence;

/// The state of Nagle's algorithm.
#[derive(Debug, Default)]
pub(crate) struct NagleState {
    /// The end of the last small segment.
    last_end: SeqNum,
}

impl NagleState {
    /// Creates the state of a connection that starts at `una`.
    pub(crate) fn begin(una: SeqNum) -> Self {
        Self { last_end: una }
    }

    /// Records that a small segment with this `end` was sent.
    pub(crate) fn on_sent(&mut self, end: SeqNum) {
        self.last_end = end;
    }

    /// Returns whether the next small segment must wait.
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
