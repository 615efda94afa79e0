//! Small segments wait for acknowledgments. RFC 9293 section 3.7.4.

use hol_wire::tcp::SeqNum;

use crate::Nagle;
use crate::send_sequence::SendSequence;

/// What the rules remember of small segments.
#[derive(Debug, Default)]
pub(crate) struct SmallSegments {
    /// The end of the last one.
    end: SeqNum,
}

impl SmallSegments {
    /// A connection begins at `una`.
    pub(crate) fn begin(una: SeqNum) -> Self {
        Self { end: una }
    }

    /// One left that ends at `end`.
    pub(crate) fn on_sent(&mut self, end: SeqNum) {
        self.end = end;
    }

    /// The next one has to wait.
    pub(crate) fn hold(&self, rule: Nagle, outstanding: bool, snd: &SendSequence) -> bool {
        match rule {
            Nagle::Off => false,
            Nagle::Classic => outstanding,
            Nagle::Minshall => outstanding && self.end.after(snd.una()) && self.end.at_or_before(snd.nxt()),
        }
    }
}
