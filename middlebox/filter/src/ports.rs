//! Splits ranges of ports into blocks for hash tables. A port is a number of four hexadecimal digits, and a
//! block contains all ports with the same first digits, like a prefix of addresses.
//!
//! A range of 4,096 ports is one block or at most 76, never 4,096 elements. Blocks of all sixteen sizes would
//! be fewer, but each packet would be looked up in a table for each size.

/// A block of consecutive ports. Their number is a power of 16 and divides the first port, so all ports of a block have
/// the same first bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PortBlock {
    /// The first port of the block.
    first: u16,
    bits: u8,
}

/// Ranges of at most this many ports are split into single ports, which need no sets for blocks.
const MAX_SPLIT_RANGE: u32 = 16;

impl PortBlock {
    /// Number of bits of a port number.
    pub const PORT_BITS: u8 = 16;

    pub fn of_port(port: u16) -> Self {
        Self { first: port, bits: Self::PORT_BITS }
    }

    /// Returns the first port of the block.
    pub fn first(self) -> u16 {
        self.first
    }

    /// Returns the number of first bits that all ports of the block have in common.
    pub fn prefix_length(self) -> u8 {
        self.bits
    }

    /// Returns blocks that together contain exactly these ports; the last port is at most 65,535.
    pub fn cover(first: u16, count: u16) -> Vec<Self> {
        let (mut next, end) = (u32::from(first), u32::from(first) + u32::from(count));
        let mut blocks = Vec::new();
        while next < end {
            let mut size = 1;
            while u32::from(count) > MAX_SPLIT_RANGE && next % (size * 16) == 0 && next + size * 16 <= end {
                size *= 16;
            }
            blocks.push(Self { first: next as u16, bits: Self::PORT_BITS - size.trailing_zeros() as u8 });
            next += size;
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn blocks_have_the_ports_of_the_range_and_no_others(first: u16, count in 0_u16..=u16::MAX) {
            let count = count.min(u16::MAX - first);
            let blocks = PortBlock::cover(first, count);
            let ports = |block: &PortBlock| {
                let size = 1_u32 << (PortBlock::PORT_BITS - block.bits);
                u32::from(block.first)..u32::from(block.first) + size
            };
            let covered: Vec<u32> = blocks.iter().flat_map(ports).collect();
            prop_assert_eq!(covered, (u32::from(first)..u32::from(first) + u32::from(count)).collect::<Vec<_>>());
            prop_assert!(blocks.iter().all(|block| block.first.trailing_zeros() >= u32::from(PortBlock::PORT_BITS - block.bits)));
            prop_assert!(blocks.len() <= 106);
        }
    }

    #[test]
    fn short_ranges_are_ports_and_long_ones_are_few_blocks() {
        assert_eq!(PortBlock::cover(5004, 2), [5004, 5005].map(PortBlock::of_port));
        assert_eq!(PortBlock::cover(4096, 4096), [PortBlock { first: 4096, bits: 4 }]);
        assert_eq!(PortBlock::cover(1025, 4096).len(), 46);
        assert!((0..16).all(|offset| PortBlock::cover(4095 + offset, 4096).len() <= 76));
    }
}
