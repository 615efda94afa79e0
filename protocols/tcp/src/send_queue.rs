//! What the application has handed over and is not sent: octets, and the FIN behind them. RFC 9293 section 3.10.4.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::send_buffer::SendBuffer;

/// The octets that wait, and what has become of our FIN.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    buffer: SendBuffer,
    /// How the octets are divided, where that matters.
    blocks: VecDeque<Block>,
    fin: Fin,
    /// PSH is set beside a FIN that leaves alone.
    fin_pushed: bool,
}

/// Octets that are handed to the network layer together and cut into segments there. Linux: an sk_buff of sk_write_queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) length: usize,
    /// A write ends here, or PSH is due for another reason.
    pub(crate) pushed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Fin {
    /// The application sends on.
    #[default]
    Open,
    /// It goes out behind the data.
    Queued,
    /// It has gone out.
    Sent,
}

impl SendQueue {
    /// The application has not closed.
    pub(crate) fn is_open(&self) -> bool {
        self.fin == Fin::Open
    }

    /// No octet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Octets that wait.
    pub(crate) fn length(&self) -> usize {
        self.buffer.length()
    }

    /// Something, data or FIN, has not been sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.buffer.is_empty() || self.fin == Fin::Queued
    }

    /// The application appends to the byte stream.
    pub(crate) fn push(&mut self, octets: Bytes) {
        self.buffer.push(octets);
    }

    /// How many blocks wait.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The block that is sent next.
    pub(crate) fn first_block(&self) -> Option<Block> {
        self.blocks.front().copied()
    }

    /// Octets that the last block has room for, if a block holds `most`.
    pub(crate) fn room(&self, most: usize) -> usize {
        self.blocks.back().map_or(0, |last| most.saturating_sub(last.length))
    }

    /// Appends octets to the last block, or as a new one.
    pub(crate) fn append(&mut self, octets: Bytes, is_new: bool) {
        match self.blocks.back_mut().filter(|_| !is_new) {
            Some(last) => last.length += octets.len(),
            None => self.blocks.push_back(Block { length: octets.len(), pushed: false }),
        }
        self.buffer.push(octets);
    }

    /// Whether PSH is set at the end of what waits.
    pub(crate) fn set_pushed(&mut self, pushed: bool) {
        if let Some(last) = self.blocks.back_mut() {
            last.pushed = pushed;
        }
    }

    /// The first block leaves in part, and PSH is set at the end of what is left of it, be that a FIN alone. Linux: tcp_write_wakeup
    /// sets it before tcp_fragment.
    pub(crate) fn push_rest(&mut self) {
        match self.blocks.front_mut() {
            Some(rest) => rest.pushed = true,
            None => self.fin_pushed = self.fin == Fin::Queued,
        }
    }

    /// PSH is set beside a FIN that leaves alone.
    pub(crate) fn fin_is_pushed(&self) -> bool {
        self.fin_pushed
    }

    /// Fills the first block up to `length` from the one behind it. Linux: tcp_grow_skb.
    pub(crate) fn grow_first_block(&mut self, length: usize) {
        let Some(second) = self.blocks.get(1).copied() else { return };
        let first = self.blocks[0];
        let moved = length.saturating_sub(first.length).min(second.length);
        if moved == second.length {
            self.blocks.remove(1);
            self.blocks[0] = Block { length: first.length + moved, pushed: first.pushed || second.pushed };
        } else {
            self.blocks[0].length += moved;
            self.blocks[1].length -= moved;
        }
    }

    /// The application has no more to send.
    pub(crate) fn close(&mut self) {
        self.fin = Fin::Queued;
    }

    /// The application has closed, and the FIN waits for its turn.
    pub(crate) fn fin_is_queued(&self) -> bool {
        self.fin == Fin::Queued
    }

    /// The FIN has gone out.
    pub(crate) fn fin_is_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// The FIN leaves with a segment of the next `size` octets.
    pub(crate) fn fin_follows(&self, size: usize) -> bool {
        self.fin == Fin::Queued && size == self.buffer.length()
    }

    /// Takes exactly `size` octets, within a block, and the FIN if it goes along.
    pub(crate) fn take(&mut self, size: usize, fin: bool) -> Bytes {
        if fin {
            self.fin = Fin::Sent;
        }
        if let Some(first) = self.blocks.front_mut() {
            first.length -= size;
            if first.length == 0 {
                self.blocks.pop_front();
            }
        }
        self.buffer.take(size)
    }

    /// Nothing of it will be sent.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(lengths: &[usize]) -> SendQueue {
        let mut queue = SendQueue::default();
        for length in lengths {
            queue.append(vec![0; *length].into(), true);
            queue.set_pushed(true);
        }
        queue
    }

    #[test]
    fn what_a_window_probe_leaves_of_a_block_is_pushed() {
        // net/ipv4/tcp_output.c tcp_write_wakeup: the octets behind the window, or the FIN.
        let mut queue = SendQueue::default();
        queue.append(vec![0; 30].into(), true);
        queue.take(10, false);
        queue.push_rest();
        assert_eq!(queue.first_block(), Some(Block { length: 20, pushed: true }));
        queue.close();
        queue.take(20, false);
        assert!(!queue.fin_is_pushed());
        queue.push_rest();
        assert!(queue.fin_is_pushed());
    }

    #[test]
    fn a_block_that_is_filled_leaves_the_rest_of_the_next_behind() {
        // net/ipv4/tcp_output.c tcp_grow_skb: from the next block alone, and PSH stays where its block ends.
        let mut queue = queue(&[10, 20, 30]);
        queue.grow_first_block(25);
        assert_eq!(queue.first_block(), Some(Block { length: 25, pushed: true }));
        assert_eq!((queue.take(25, false).len(), queue.blocks()), (25, 2));
        queue.grow_first_block(100);
        assert_eq!((queue.first_block(), queue.blocks()), (Some(Block { length: 35, pushed: true }), 1));
    }
}
