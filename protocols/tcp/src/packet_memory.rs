//! What a packet takes of a socket's buffer beside its octets: a system counts the memory, not the payload (Linux: truesize).

/// What describes a packet: sizeof(struct sk_buff) in whole cache lines.
const DESCRIPTOR: u32 = 256;
/// A cache line.
const LINE: u32 = 64;

/// The memory of packets whose buffers begin with room for headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketMemory {
    /// Room for headers, and what stands behind the data (struct skb_shared_info); 0: octets alone are counted.
    head: u32,
}

impl PacketMemory {
    pub(crate) fn new(head: hol_base::ByteCount) -> Self {
        Self { head: u32::try_from(head.0).unwrap_or(u32::MAX) }
    }

    /// Whether more than octets are counted.
    pub(crate) fn is_counted(self) -> bool {
        self.head > 0
    }

    /// Of a packet whose data lie in pages of their own, those apart. Linux: tcp_stream_alloc_skb, and SKB_SMALL_HEAD_CACHE_SIZE,
    /// which is no power of two.
    pub(crate) fn without_data(self) -> u32 {
        match self.head {
            0 => 0,
            head if head.is_power_of_two() => head + LINE + DESCRIPTOR,
            head => head + DESCRIPTOR,
        }
    }

    /// Of a packet with its data in one buffer: a power of two, as allocators have it. Linux: kmalloc_size_roundup.
    pub(crate) fn with_data(self, octets: u32) -> u32 {
        if self.head == 0 { octets } else { (self.head + octets).next_power_of_two() + DESCRIPTOR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_sized_frame_takes_a_buffer_of_2_kib() {
        // SKB_TRUESIZE of 1448 octets behind MAX_TCP_HEADER = 192, which is what drivers have that split a page in two.
        let memory = PacketMemory::new(hol_base::ByteCount(512));
        assert_eq!((memory.without_data(), memory.with_data(1448)), (832, 2304));
        let wider = PacketMemory::new(hol_base::ByteCount(640));
        assert_eq!((wider.without_data(), wider.with_data(1448)), (896, 4352));
        let none = PacketMemory::new(hol_base::ByteCount(0));
        assert_eq!((none.without_data(), none.with_data(1448)), (0, 1448));
    }
}
