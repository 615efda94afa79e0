//! The send buffer, which limits the data that wait for transmission and acknowledgement.

use std::cell::Cell;

use hol_wire::sctp::DataFlags;

use crate::Config;

/// The state of the send buffer: how much of it is used, and the size of a message that was refused.
#[derive(Debug, Clone)]
pub(crate) struct SendBuffer {
    capacity: usize,
    overhead: usize,
    /// Whether the size of memory blocks counts, instead of octets of user data.
    counts_blocks: bool,
    small_block: usize,
    used_octets: usize,
    /// The number of acknowledged octets of partly acknowledged messages, by stream.
    begun: Vec<(u16, usize)>,
    /// Length in octets of the smallest message that has been refused since the buffer last had room.
    refused_size: Cell<Option<usize>>,
}

impl SendBuffer {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            capacity: config.send_buffer.0 as usize,
            overhead: config.send_buffer_overhead.0 as usize,
            counts_blocks: config.send_buffer_blocks,
            small_block: config.send_buffer_small_block.0 as usize,
            used_octets: 0,
            begun: Vec::new(),
            refused_size: Cell::new(None),
        }
    }

    /// Returns whether the buffer has room for a message of `length` octets. Linux accepts a message of any length
    /// if there is any room.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        let asked = if self.counts_blocks { 1 } else { length };
        let room = self.used_octets == 0 || self.used_octets + asked <= self.capacity;
        if !room {
            self.refused_size.set(Some(self.refused_size.get().map_or(length, |wanted| wanted.min(length))));
        }
        room
    }

    /// Returns whether the buffer has room again for a message that was refused. Returns true only once.
    pub(crate) fn has_room_again(&self) -> bool {
        let Some(wanted) = self.refused_size.take() else { return false };
        self.has_room(wanted)
    }

    /// Adds a chunk with `length` octets of user data.
    pub(crate) fn charge(&mut self, length: usize) {
        self.used_octets += self.cost(length);
    }

    /// Removes a chunk that is acknowledged or abandoned. As in Linux, a message's memory is freed with its last
    /// chunk.
    pub(crate) fn release(&mut self, stream: u16, flags: DataFlags, length: usize) {
        let cost = self.cost(length);
        if !self.counts_blocks || flags.contains(DataFlags::BEGIN | DataFlags::END) {
            self.used_octets -= cost;
            return;
        }
        let place = self.begun.iter().position(|(own, _)| *own == stream);
        match (place, flags.contains(DataFlags::END)) {
            (None, true) => self.used_octets -= cost,
            (Some(place), true) => self.used_octets -= cost + self.begun.swap_remove(place).1,
            (None, false) => self.begun.push((stream, cost)),
            (Some(place), false) => self.begun[place].1 += cost,
        }
    }

    /// Returns the number of octets in use, including overhead.
    pub(crate) fn used(&self) -> usize {
        self.used_octets
    }

    /// Empties the buffer.
    pub(crate) fn clear(&mut self) {
        self.used_octets = 0;
        self.begun.clear();
    }

    fn cost(&self, length: usize) -> usize {
        self.overhead + if self.counts_blocks { block(length, self.small_block) } else { length }
    }
}

/// Returns the size of the memory block in which Linux stores a DATA chunk: the header of 16 octets and the user
/// data, rounded up to cache lines, and 320 octets of `skb_shared_info`. Small blocks have a fixed size; others are
/// rounded up as by `kmalloc` (`net/core/skbuff.c` kmalloc_reserve).
fn block(length: usize, small: usize) -> usize {
    let needed = (16 + length).next_multiple_of(64) + 320;
    if needed <= small { small } else { needed.next_power_of_two() }
}

#[cfg(test)]
mod tests {
    use hol_base::ByteCount;

    use super::*;
    use crate::fixtures;

    #[test]
    fn linux_charges_blocks_of_memory() {
        // In runs of Linux 6.12, exactly this many messages fit into a buffer of 212,992 octets: of User-Mode
        // Linux, and of Debian's kernel, whose small blocks are larger (`SKB_SMALL_HEAD_CACHE_SIZE`).
        let held = |small_block, length| {
            let mut buffer =
                SendBuffer::new(&Config { send_buffer_small_block: small_block, ..fixtures::linux() });
            let fill = std::iter::repeat_with(|| buffer.has_room(length).then(|| buffer.charge(length)));
            fill.map_while(|room| room).count()
        };
        assert_eq!([240, 241, 500, 1452].map(|length| held(ByteCount(576), length)), [196, 139, 139, 84]);
        assert_eq!([368, 369, 500].map(|length| held(ByteCount(704), length)), [176, 139, 139]);
    }

    /// In captures of Linux 6.12 with messages of 128 KiB, the second message waits until the whole first one is
    /// acknowledged.
    #[test]
    fn linux_accepts_any_message_and_releases_whole_ones() {
        let mut buffer = SendBuffer::new(&fixtures::linux());
        let fragments = 90;
        let flags = |index| match index {
            0 => DataFlags::BEGIN,
            89 => DataFlags::END,
            _ => DataFlags::default(),
        };
        assert!(buffer.has_room(1_000_000));
        buffer.charge(500);
        assert!(buffer.has_room(1_000_000));
        (0..fragments).for_each(|_| buffer.charge(1452));
        assert!(!buffer.has_room(1));
        (0..fragments).for_each(|index| {
            assert!(!buffer.has_room_again(), "{index}");
            // Messages of another stream may lie between.
            buffer.charge(1452);
            buffer.release(1, DataFlags::default(), 1452);
            buffer.release(0, flags(index), 1452);
        });
        assert!(!buffer.has_room(1), "the other one has it all");
        buffer.charge(1452);
        buffer.release(1, DataFlags::END, 1452);
        assert!(buffer.has_room_again() && buffer.has_room(200_000));
        assert_eq!(buffer.used_octets, 1536);
    }

    #[test]
    fn refused_sender_is_told_once_when_there_is_room() {
        let mut config = fixtures::rfc();
        config.send_buffer.0 = 100;
        let mut buffer = SendBuffer::new(&config);
        buffer.charge(60);
        assert!(!buffer.has_room(50) && buffer.has_room(20));
        assert!(!buffer.has_room_again());
        buffer.release(0, DataFlags::BEGIN | DataFlags::END, 60);
        assert!(buffer.has_room_again() && !buffer.has_room_again());
    }
}
