//! Header prediction: fast processing of segments with only the next data, or only an acknowledgment. Linux:
//! net/ipv4/tcp_input.c tcp_rcv_established.

use hol_wire::tcp::{Flags, Segment};

use crate::{Endpoint, State};

/// Size in octets of a page, the unit in which memory is charged to a socket. Linux: sk_mem_pages.
const PAGE_OCTETS: usize = 4096;

impl Endpoint {
    /// Returns whether the segment contains the next data in order and nothing else. Linux then does not check
    /// whether it can send, unless it must charge another page for the data.
    pub(crate) fn is_only_data(&self, segment: &Segment) -> bool {
        !segment.payload.is_empty()
            && segment.ack == self.snd.una()
            && self.is_predicted(segment)
            && self.buffer.memory_of(segment.payload.len() as u32, segment.stamp.cut) as usize
                <= self.charged_ahead()
    }

    /// Returns whether the segment is only an acknowledgment. Linux then does not check whether to send an
    /// acknowledgment.
    pub(crate) fn is_pure_ack(&self, segment: &Segment) -> bool {
        segment.payload.is_empty()
            && segment.ack.at_or_after(self.snd.una())
            && segment.ack.at_or_before(self.snd.nxt())
            && self.is_predicted(segment)
    }

    /// Returns whether the header is the one that header prediction expects. Linux: pred_flags.
    fn is_predicted(&self, segment: &Segment) -> bool {
        segment.seq == self.rcv.nxt()
            && (segment.flags == Flags::ACK || segment.flags == Flags::ACK | Flags::PSH)
            && segment.options.sack.is_empty()
            && self.buffer.is_counted()
            && self.machine.state() == State::Established
            && self.reassembly.is_empty()
            && self.snd.announces_current_window(segment.window)
    }

    /// Returns the number of free octets in the pages that are charged. Linux: sk_forward_alloc, of which
    /// sk_mem_reclaim returns whole pages.
    fn charged_ahead(&self) -> usize {
        let used = self.send_memory() + self.buffer.unread() as usize;
        used.next_multiple_of(PAGE_OCTETS) - used
    }
}
