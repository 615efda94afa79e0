//! The memory of a packet in a socket's buffer, because Linux limits memory (truesize), not payload.

/// Memory of a packet's descriptor in octets: sizeof(struct sk_buff), in whole cache lines.
const DESCRIPTOR_OCTETS: u32 = 256;
/// Length of a cache line in octets.
const CACHE_LINE: u32 = 64;
/// Number of octets of room that are added when data are copied after the headers. Linux: __pskb_pull_tail.
const SPARE_OCTETS: u32 = 128;

/// Computes how much memory packets use, if their buffers begin with room for headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketMemory {
    /// Number of octets for headers and for the structure after the data (struct skb_shared_info); 0: only octets
    /// of payload are counted.
    overhead: u32,
}

impl PacketMemory {
    pub(crate) fn new(overhead: hol_base::ByteCount) -> Self {
        Self { overhead: u32::try_from(overhead.0).unwrap_or(u32::MAX) }
    }

    /// Returns whether memory is counted instead of octets of payload.
    pub(crate) fn is_counted(self) -> bool {
        self.overhead > 0
    }

    /// Returns the memory in octets of a packet whose data are in separate pages, without these data. Linux:
    /// tcp_stream_alloc_skb, and SKB_SMALL_HEAD_CACHE_SIZE, which has NET_SKB_PAD of room before the headers and
    /// is not a power of two.
    pub(crate) fn without_data(self) -> u32 {
        match self.overhead + CACHE_LINE {
            CACHE_LINE => 0,
            small if small.is_power_of_two() => small + CACHE_LINE + DESCRIPTOR_OCTETS,
            small => small + DESCRIPTOR_OCTETS,
        }
    }

    /// Returns the memory in octets of a packet with its data in one buffer. If the packet arrived alone, its data
    /// were copied from pages into the buffer; if it was `cut` from a block, they were created in the buffer.
    pub(crate) fn with_data(self, octets: u32, cut: bool) -> u32 {
        if self.overhead == 0 { octets } else { self.buffer(octets, cut) + DESCRIPTOR_OCTETS }
    }

    /// Returns the number of free octets in the buffer after the data.
    pub(crate) fn tailroom(self, octets: u32, cut: bool) -> u32 {
        if self.overhead == 0 { 0 } else { self.buffer(octets, cut) - self.overhead - octets }
    }

    /// Returns the size of a packet's buffer in octets: a power of two, as allocators provide it (Linux:
    /// kmalloc_size_roundup), unless it is very small.
    fn buffer(self, octets: u32, cut: bool) -> u32 {
        let smallest = self.without_data() - DESCRIPTOR_OCTETS;
        match self.overhead + octets {
            length if length <= smallest => smallest,
            length if cut => length.next_power_of_two(),
            length => (length + SPARE_OCTETS).next_power_of_two(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_sized_frame_takes_a_buffer_of_2_kib() {
        // SKB_TRUESIZE of 1448 octets after MAX_TCP_HEADER = 192, as in drivers that split a page in two.
        let memory = PacketMemory::new(hol_base::ByteCount(512));
        assert_eq!((memory.without_data(), memory.with_data(1448, true)), (832, 2304));
        // SKB_SMALL_HEAD_CACHE_SIZE of a distribution's kernel is 704.
        let wider = PacketMemory::new(hol_base::ByteCount(640));
        assert_eq!((wider.without_data(), wider.with_data(1448, true)), (960, 4352));
        let none = PacketMemory::new(hol_base::ByteCount(0));
        assert_eq!((none.without_data(), none.with_data(1448, true), none.tailroom(9, false)), (0, 1448, 0));
    }

    #[test]
    fn small_packet_leaves_tailroom() {
        // __pskb_pull_tail of 10, 500 and 1448 octets in pages: buffers of 576, 2048 and 4096.
        let memory = PacketMemory::new(hol_base::ByteCount(512));
        assert_eq!([10, 500, 1448].map(|octets| memory.with_data(octets, false)), [832, 2304, 4352]);
        assert_eq!([10, 500, 1448].map(|octets| memory.tailroom(octets, false)), [54, 1036, 2136]);
        assert_eq!(memory.tailroom(1448, true), 88);
    }
}
