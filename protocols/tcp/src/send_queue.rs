//! The data that the application has written and TCP has not sent: octets, and the FIN after them. RFC 9293 section 3.10.4.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::send_buffer::SendBuffer;

/// The data to send, and whether our FIN is queued or sent.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    buffer: SendBuffer,
    /// The blocks into which the queued octets are divided; empty if segments are sent one by one.
    blocks: VecDeque<Block>,
    fin: Fin,
    /// Whether a FIN without data gets PSH.
    fin_pushed: bool,
}

/// Octets that are passed to the network layer together and split into segments there. Linux: an sk_buff of
/// sk_write_queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Length of the block in octets.
    pub(crate) length: usize,
    /// Whether PSH is set at the end of the block.
    pub(crate) pushed: bool,
}

/// The state of our FIN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Fin {
    /// No FIN: the application may still write.
    #[default]
    Open,
    /// The FIN is queued behind the data.
    Queued,
    /// The FIN was sent.
    Sent,
}

impl SendQueue {
    /// Returns whether the application may still write, because it has not closed the stream.
    pub(crate) fn is_open(&self) -> bool {
        self.fin == Fin::Open
    }

    /// Returns whether the queue contains no data.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Returns the number of queued octets.
    pub(crate) fn length(&self) -> usize {
        self.buffer.length()
    }

    /// Returns whether data or a FIN are unsent.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.buffer.is_empty() || self.fin == Fin::Queued
    }

    /// Appends octets to the byte stream.
    pub(crate) fn push(&mut self, octets: Bytes) {
        self.buffer.push(octets);
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the block that is sent next.
    pub(crate) fn first_block(&self) -> Option<Block> {
        self.blocks.front().copied()
    }

    /// Returns how many octets may be added to the last block if the maximum length of a block is `max`; 0 if
    /// there is no block.
    pub(crate) fn room(&self, max: usize) -> usize {
        self.blocks.back().map_or(0, |last| max.saturating_sub(last.length))
    }

    /// Appends octets to the last block or, with `is_new`, as a new block.
    pub(crate) fn append(&mut self, octets: Bytes, is_new: bool) {
        match self.blocks.back_mut().filter(|_| !is_new) {
            Some(last) => last.length += octets.len(),
            None => self.blocks.push_back(Block { length: octets.len(), pushed: false }),
        }
        self.buffer.push(octets);
    }

    /// Sets whether the last block has PSH set at its end.
    pub(crate) fn set_pushed(&mut self, pushed: bool) {
        if let Some(last) = self.blocks.back_mut() {
            last.pushed = pushed;
        }
    }

    /// Sets PSH at the end of the first block, which has been sent partly, or in the FIN that follows it. Linux:
    /// tcp_write_wakeup sets it before tcp_fragment.
    pub(crate) fn set_psh_on_rest(&mut self) {
        match self.blocks.front_mut() {
            Some(rest) => rest.pushed = true,
            None => self.fin_pushed = self.fin == Fin::Queued,
        }
    }

    /// Returns whether a FIN without data gets PSH.
    pub(crate) fn fin_is_pushed(&self) -> bool {
        self.fin_pushed
    }

    /// Moves octets from the next block to the first one until it has the length `length`. Linux: tcp_grow_skb.
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

    /// Closes the stream: the application has no more data.
    pub(crate) fn close(&mut self) {
        self.fin = Fin::Queued;
    }

    /// Returns whether the FIN is queued and has not been sent.
    pub(crate) fn fin_is_queued(&self) -> bool {
        self.fin == Fin::Queued
    }

    /// Returns whether the FIN was sent.
    pub(crate) fn fin_is_sent(&self) -> bool {
        self.fin == Fin::Sent
    }

    /// Returns whether a segment with the next `size` octets also contains the FIN.
    pub(crate) fn fin_follows(&self, size: usize) -> bool {
        self.fin == Fin::Queued && size == self.buffer.length()
    }

    /// Removes exactly `size` octets, all from the same block, and with `fin` also the FIN.
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

    /// Discards all data that have not been sent.
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
    fn rest_of_a_block_after_a_window_probe_is_pushed() {
        // net/ipv4/tcp_output.c tcp_write_wakeup: the octets beyond the window, or the FIN.
        let mut queue = SendQueue::default();
        queue.append(vec![0; 30].into(), true);
        queue.take(10, false);
        queue.set_psh_on_rest();
        assert_eq!(queue.first_block(), Some(Block { length: 20, pushed: true }));
        queue.close();
        queue.take(20, false);
        assert!(!queue.fin_is_pushed());
        queue.set_psh_on_rest();
        assert!(queue.fin_is_pushed());
    }

    #[test]
    fn growing_a_block_takes_octets_only_from_the_next() {
        // net/ipv4/tcp_output.c tcp_grow_skb: octets move only from the next block, and PSH stays at the end of each block.
        let mut queue = queue(&[10, 20, 30]);
        queue.grow_first_block(25);
        assert_eq!(queue.first_block(), Some(Block { length: 25, pushed: true }));
        assert_eq!((queue.take(25, false).len(), queue.blocks()), (25, 2));
        queue.grow_first_block(100);
        assert_eq!((queue.first_block(), queue.blocks()), (Some(Block { length: 35, pushed: true }), 1));
    }
}
