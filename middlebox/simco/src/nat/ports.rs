//! The ports of one protocol at one address of a NAT, and which of them are taken.
//!
//! Searches skip blocks of ports by their longest free runs, so their cost hardly depends on the number of
//! taken ports.

use std::array;
use std::ops::{Range, RangeInclusive};

use crate::ReservedParity;

/// The ports of an address and protocol: one bit for each port, which says whether it is used.
#[derive(Debug)]
pub(super) struct Ports {
    usable: Range<u32>,
    /// The blocks of ports; a block without used ports needs no memory.
    blocks: [Option<Box<Block>>; BLOCK_COUNT],
    /// Number of used ports.
    taken: u32,
    /// The port at which the next search starts. It moves on, so that a released port is not assigned again at once.
    next: u32,
}

const WORDS_PER_BLOCK: usize = 64;
/// Number of ports in a block.
const PORTS_PER_BLOCK: u32 = 64 * WORDS_PER_BLOCK as u32;
const BLOCK_COUNT: usize = (1 << 16) / PORTS_PER_BLOCK as usize;

/// A block of consecutive ports.
#[derive(Debug)]
struct Block {
    /// One bit per port of the block, which says whether the port is used.
    taken: [u64; WORDS_PER_BLOCK],
    runs: Runs,
}

/// The lengths of the runs of consecutive free ports in a block.
#[derive(Debug, Clone, Copy, Default)]
struct Runs {
    /// The length of the run of free ports at the start of the block.
    head: u32,
    /// The length of the run of free ports at the end of the block.
    tail: u32,
    /// The length of the longest run of free ports that starts at an even port, and of the longest that starts at an
    /// odd port.
    longest: [u32; 2],
}

/// A request for `count` consecutive ports; the first must have this parity.
#[derive(Debug, Clone, Copy)]
struct PortRequest {
    count: u32,
    parity: ReservedParity,
}

impl PortRequest {
    /// Returns the first port for the request in a run of free ports; `None` if the run is too short.
    fn fit(self, run: &Range<u32>) -> Option<u32> {
        let is_odd = run.start % 2 == 1;
        let first = run.start
            + u32::from(match self.parity {
                ReservedParity::Any => false,
                ReservedParity::Odd => !is_odd,
                ReservedParity::Even => is_odd,
            });
        (first + self.count <= run.end).then_some(first)
    }

    fn fits_into(self, runs: &Runs) -> bool {
        let [even, odd] = runs.longest;
        self.count
            <= match self.parity {
                ReservedParity::Any => even.max(odd),
                ReservedParity::Odd => odd,
                ReservedParity::Even => even,
            }
    }
}

impl Ports {
    pub fn new(usable: &RangeInclusive<u16>) -> Self {
        let usable = u32::from(*usable.start())..u32::from(*usable.end()) + 1;
        Self { usable, blocks: array::from_fn(|_| None), taken: 0, next: 0 }
    }

    /// Returns true if no port is used.
    pub fn are_free(&self) -> bool {
        self.taken == 0
    }

    /// Returns the first of `count` consecutive free ports; `None` if there are none. The search starts after the ports
    /// assigned last, and then continues from the first usable port.
    pub fn find(&self, count: u16, parity: ReservedParity) -> Option<u16> {
        let request = PortRequest { count: count.into(), parity };
        let next = self.next.max(self.usable.start);
        self.find_from(next, request).or_else(|| self.find_from(self.usable.start, request))
    }

    fn find_from(&self, from: u32, request: PortRequest) -> Option<u16> {
        let mut run = from..from;
        for block in (from / PORTS_PER_BLOCK) as usize..BLOCK_COUNT {
            let ports = block as u32 * PORTS_PER_BLOCK..(block as u32 + 1) * PORTS_PER_BLOCK;
            let runs = self.runs(block);
            let found = if ports.start < from || request.fits_into(&runs) {
                self.find_in(block, from, request, &mut run)
            } else {
                if run.end != ports.start {
                    run = ports.start..ports.start;
                }
                run.end += runs.head;
                let found = request.fit(&run);
                if runs.head < PORTS_PER_BLOCK {
                    run = ports.end - runs.tail..ports.end;
                }
                found
            };
            if found.is_some() {
                return found.and_then(|first| u16::try_from(first).ok());
            }
        }
        None
    }

    /// Searches a block from the port `from` on. Before the call, `run` is the last run of free ports before the block;
    /// after a search without result, it is the last run up to the end of the block.
    fn find_in(&self, block: usize, from: u32, request: PortRequest, run: &mut Range<u32>) -> Option<u32> {
        for word in 0..WORDS_PER_BLOCK {
            let first = block as u32 * PORTS_PER_BLOCK + word as u32 * 64;
            if first + 64 <= from {
                continue;
            }
            let mut free = self.free(block, word) & (u64::MAX << from.saturating_sub(first));
            while free != 0 {
                let start = free.trailing_zeros();
                let length = (free >> start).trailing_ones();
                if run.end != first + start {
                    *run = first + start..first + start;
                }
                run.end += length;
                if let Some(first) = request.fit(run) {
                    return Some(first);
                }
                free &= u64::MAX.checked_shl(start + length).unwrap_or(0);
            }
        }
        None
    }

    /// Returns true if none of these ports is used.
    pub fn is_range_free(&self, (first, last): (u32, u32)) -> bool {
        words(first, last).all(|(block, word, mask)| {
            self.blocks[block].as_ref().is_none_or(|block| block.taken[word] & mask == 0)
        })
    }

    /// Marks these ports as used, or as free.
    pub fn mark(&mut self, (first, last): (u32, u32), taken: bool) {
        for (block, word, mask) in words(first, last) {
            let block = self.blocks[block].get_or_insert_with(|| {
                Box::new(Block { taken: [0; WORDS_PER_BLOCK], runs: Runs::default() })
            });
            let word = &mut block.taken[word];
            let expected = if taken { 0 } else { mask };
            assert_eq!(*word & mask, expected, "ports from {first} on are taken and released alternately");
            *word ^= mask;
        }
        for block in (first / PORTS_PER_BLOCK) as usize..=(last / PORTS_PER_BLOCK) as usize {
            self.update_runs(block);
        }
        let ports = last - first + 1;
        if taken {
            self.taken += ports;
            self.next = last + 1;
        } else {
            self.taken -= ports;
        }
    }

    /// Updates the runs of free ports of a block after its ports have changed.
    fn update_runs(&mut self, block: usize) {
        let is_free = |block: &Block| block.taken.iter().all(|word| *word == 0);
        if self.blocks[block].as_deref().is_some_and(is_free) {
            self.blocks[block] = None;
        }
        let runs = (0..WORDS_PER_BLOCK)
            .fold(Runs::default(), |runs, word| runs.extended_by(word as u32 * 64, self.free(block, word)));
        if let Some(block) = &mut self.blocks[block] {
            block.runs = runs;
        }
    }

    fn runs(&self, block: usize) -> Runs {
        match &self.blocks[block] {
            Some(block) => block.runs,
            None => {
                let first = block as u32 * PORTS_PER_BLOCK;
                let inside = |port: u32| port.clamp(first, first + PORTS_PER_BLOCK) - first;
                Runs::of_one(inside(self.usable.start)..inside(self.usable.end))
            }
        }
    }

    /// Returns a bit for each port of a word, which is set if the port is free.
    fn free(&self, block: usize, word: usize) -> u64 {
        let first = block as u32 * PORTS_PER_BLOCK + word as u32 * 64;
        let below = |end: u32| !u64::MAX.checked_shl(end.saturating_sub(first)).unwrap_or(0);
        let usable = below(self.usable.end) & !below(self.usable.start);
        usable & !self.blocks[block].as_ref().map_or(0, |block| block.taken[word])
    }
}

impl Runs {
    /// Returns the runs of a block in which only the ports `free` are free, counted from the block's first port.
    fn of_one(free: Range<u32>) -> Self {
        let length = free.end - free.start;
        let mut longest = [length.saturating_sub(1); 2];
        longest[free.start as usize % 2] = length;
        let head = if free.start == 0 { length } else { 0 };
        let tail = if free.end == PORTS_PER_BLOCK { length } else { 0 };
        Self { head, tail, longest }
    }

    /// Returns the runs after 64 more ports have been added: `size` is the number of ports before, `free` has a bit for
    /// each added port.
    fn extended_by(mut self, size: u32, mut free: u64) -> Self {
        if self.head == size {
            self.head += free.trailing_ones();
        }
        let mut before = std::mem::take(&mut self.tail);
        if free & 1 == 0 {
            before = 0;
        }
        while free != 0 {
            let start = free.trailing_zeros();
            let length = (free >> start).trailing_ones();
            let (first, run) = (size + start - before, before + length);
            let parity = first as usize % 2;
            self.longest[parity] = self.longest[parity].max(run);
            self.longest[1 - parity] = self.longest[1 - parity].max(run - 1);
            if start + length == 64 {
                self.tail = run;
            }
            before = 0;
            free &= u64::MAX.checked_shl(start + length).unwrap_or(0);
        }
        self
    }
}

/// Returns the words with the bits of these ports: for each word the index of its block, its index in the block, and
/// the bits.
fn words(first: u32, last: u32) -> impl Iterator<Item = (usize, usize, u64)> {
    (first / 64..=last / 64).map(move |word| {
        let from = first.saturating_sub(word * 64);
        let to = (last - word * 64).min(63);
        let mask = u64::MAX << from & u64::MAX >> (63 - to);
        (word as usize / WORDS_PER_BLOCK, word as usize % WORDS_PER_BLOCK, mask)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns what [`Ports::find`] should return, by a search port by port.
    fn search(usable: &Range<u32>, taken: &[bool], next: u32, request: PortRequest) -> Option<u16> {
        let from = |from: u32| {
            (from..usable.end).find(|&first| {
                let is_odd = first % 2 == 1;
                let fits = match request.parity {
                    ReservedParity::Any => true,
                    ReservedParity::Odd => is_odd,
                    ReservedParity::Even => !is_odd,
                };
                fits && first + request.count <= usable.end
                    && (first..first + request.count).all(|port| !taken[port as usize])
            })
        };
        from(next.max(usable.start)).or_else(|| from(usable.start)).map(|port| port as u16)
    }

    fn counts() -> impl Strategy<Value = u16> {
        prop_oneof![6 => 1_u16..6, 3 => 1_u16..300, 2 => 3000_u16..9000, 1 => 1_u16..=u16::MAX]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        /// Both searches have the same result for all sequences of assigned and released ports, also at the edges of
        /// words and blocks.
        #[test]
        fn a_search_by_blocks_equals_a_search_port_by_port(
            first in prop_oneof![Just(1), Just(1024), Just(4095), Just(4096), Just(60_000)],
            length in prop_oneof![Just(u32::MAX), Just(64), Just(4096), 1_u32..9000],
            acts in prop::collection::vec((counts(), 0_u8..3, any::<bool>()), 1..20),
        ) {
            let last = u32::from(first).saturating_add(length).min(u32::from(u16::MAX)) as u16;
            let mut ports = Ports::new(&(first..=last));
            let (usable, mut taken, mut held) = (ports.usable.clone(), vec![false; 1 << 16], Vec::new());
            for (count, parity, gives_back) in acts {
                let parity = [ReservedParity::Any, ReservedParity::Odd, ReservedParity::Even][usize::from(parity)];
                let found = ports.find(count, parity);
                let request = PortRequest { count: count.into(), parity };
                prop_assert_eq!(found, search(&usable, &taken, ports.next, request));
                if let Some(first) = found {
                    let run = (u32::from(first), u32::from(first) + u32::from(count) - 1);
                    prop_assert!(ports.is_range_free(run));
                    ports.mark(run, true);
                    prop_assert!(!ports.is_range_free(run));
                    held.push(run);
                }
                if gives_back && !held.is_empty() {
                    ports.mark(held.swap_remove(held.len() / 2), false);
                }
                taken.fill(false);
                held.iter().for_each(|&(first, last)| taken[first as usize..=last as usize].fill(true));
                prop_assert_eq!(ports.are_free(), held.is_empty());
            }
        }
    }

    #[test]
    fn a_block_without_taken_ports_takes_no_memory() {
        let mut ports = Ports::new(&(1..=u16::MAX));
        ports.mark((5000, 12_000), true);
        assert_eq!(ports.blocks.iter().flatten().count(), 2);
        ports.mark((5000, 12_000), false);
        assert!(ports.are_free() && ports.blocks.iter().all(Option::is_none));
    }
}
