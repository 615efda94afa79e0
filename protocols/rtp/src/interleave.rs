//! Interleaves ADU frames, so that consecutive lost packets do not lose consecutive frames. RFC 3119 section
//! 6, appendix B.

use crate::ParseError;

/// The interleaving sequence number, which replaces a frame's syncword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterleavingNumber {
    /// Index of the frame within its cycle, an 8-bit number.
    pub index: u8,
    /// Number of the cycle, a 3-bit number.
    pub cycle: u8,
}

impl InterleavingNumber {
    /// The value that equals an ordinary syncword, which means that the frame is not interleaved.
    pub const SYNCWORD: Self = Self { index: 0xff, cycle: 7 };

    /// Replaces the first eleven bits of an ADU frame; returns the previous value.
    ///
    /// # Errors
    /// If the ADU frame has no header.
    pub fn put(self, adu: &mut [u8]) -> Result<Self, ParseError> {
        let [first, second, ..] = adu else { return Err(ParseError("an ADU frame has no header")) };
        let was = Self { index: *first, cycle: *second >> 5 };
        (*first, *second) = (self.index, self.cycle << 5 | *second & 0x1f);
        Ok(was)
    }
}

/// Returns the order of a cycle of this size: first odd numbers, then the others. Even if up to half a cycle of
/// consecutive packets is lost, no two adjacent units are missing.
pub fn odd_numbers_first(size: u8) -> Vec<u8> {
    (0..size).filter(|index| index % 2 == 1).chain((0..size).filter(|index| index % 2 == 0)).collect()
}

/// Orders ADU frames within each cycle. RFC 3119 appendix B.1.
#[derive(Debug)]
pub struct Interleaver {
    /// The indices of the frames in a cycle, in the order of transmission.
    order: Vec<u8>,
    /// The number of the current cycle, modulo 8.
    cycle: u8,
    /// The frames of the current cycle that have been added so far.
    waiting: Vec<Vec<u8>>,
}

impl Interleaver {
    /// Creates an interleaver with this order, a permutation of the numbers from 0 on. No index may equal the
    /// index of an ordinary syncword.
    ///
    /// # Panics
    /// If it is not a permutation.
    pub fn new(order: Vec<u8>) -> Self {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..sorted.len() as u8) && !order.is_empty(), "{order:?}");
        Self { order, cycle: 0, waiting: Vec::new() }
    }

    /// Takes the next ADU frame. If the cycle is then full, returns its frames in the order of transmission;
    /// otherwise returns none.
    ///
    /// # Errors
    /// If the ADU frame has no header.
    pub fn push(&mut self, mut adu: Vec<u8>) -> Result<Vec<Vec<u8>>, ParseError> {
        InterleavingNumber { index: self.waiting.len() as u8, cycle: self.cycle }.put(&mut adu)?;
        self.waiting.push(adu);
        Ok(if self.waiting.len() == self.order.len() { self.release() } else { Vec::new() })
    }

    /// Returns the remaining frames, which do not fill a cycle.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.release()
    }

    fn release(&mut self) -> Vec<Vec<u8>> {
        self.cycle = (self.cycle + 1) % 8;
        let mut cycle: Vec<_> = std::mem::take(&mut self.waiting).into_iter().map(Some).collect();
        self.order.iter().filter_map(|index| cycle.get_mut(usize::from(*index))?.take()).collect()
    }
}

/// Restores the order of ADU frames. Some of them may be missing, but not seven cycles in a row. RFC 3119
/// appendix B.2.
#[derive(Debug)]
pub struct Deinterleaver {
    last: InterleavingNumber,
    waiting: Vec<(u8, Vec<u8>)>,
}

impl Default for Deinterleaver {
    fn default() -> Self {
        Self { last: InterleavingNumber::SYNCWORD, waiting: Vec::new() }
    }
}

impl Deinterleaver {
    /// Takes the next ADU frame; returns the frames of the previous cycle when a new one starts.
    ///
    /// # Errors
    /// If the ADU frame has no header.
    pub fn push(&mut self, mut adu: Vec<u8>) -> Result<Vec<Vec<u8>>, ParseError> {
        let isn = InterleavingNumber::SYNCWORD.put(&mut adu)?;
        let is_new = isn.cycle != self.last.cycle || isn.index == self.last.index;
        let released = if is_new { self.release() } else { Vec::new() };
        self.last = isn;
        self.waiting.push((isn.index, adu));
        Ok(released)
    }

    /// Returns the frames of the last cycle.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        self.release()
    }

    fn release(&mut self) -> Vec<Vec<u8>> {
        self.waiting.sort_by_key(|(index, _)| *index);
        self.waiting.drain(..).map(|(_, adu)| adu).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_streams::{adus, frames};
    use proptest::prelude::*;

    fn interleaved(order: Vec<u8>, adus: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut interleaver = Interleaver::new(order);
        let mut sent: Vec<Vec<u8>> =
            adus.iter().flat_map(|adu| interleaver.push(adu.clone()).unwrap()).collect();
        sent.extend(interleaver.finish());
        sent
    }

    /// RFC 3119 section 6, the example.
    #[test]
    fn rfc_example_has_its_sequence_numbers() {
        assert_eq!(odd_numbers_first(8), [1, 3, 5, 7, 0, 2, 4, 6]);
        let sent = interleaved(odd_numbers_first(8), &adus(&frames(192, 16)));
        let isns: Vec<(u8, u8)> = sent.iter().map(|adu| (adu[0], adu[1] >> 5)).take(11).collect();
        let expected =
            [(1, 0), (3, 0), (5, 0), (7, 0), (0, 0), (2, 0), (4, 0), (6, 0), (1, 1), (3, 1), (5, 1)];
        assert_eq!(isns, expected);
        assert!(sent.iter().all(|adu| adu[1] & 0x1f == 0x1b), "the rest of the header is as it was");
    }

    /// RFC 3119 section 6: frames that are not interleaved pass one after the other.
    #[test]
    fn frames_without_interleaving_pass_in_order() {
        let sent = adus(&frames(192, 5));
        let mut deinterleaver = Deinterleaver::default();
        let mut come: Vec<Vec<u8>> =
            sent.iter().flat_map(|adu| deinterleaver.push(adu.clone()).unwrap()).collect();
        assert_eq!(come, sent[..4]);
        come.extend(deinterleaver.finish());
        assert_eq!(come, sent);
        assert!(Deinterleaver::default().push(vec![1]).is_err());
    }

    /// RFC 3119 section 6: up to four consecutive losses leave no gap of more than one.
    #[test]
    fn loss_of_half_a_cycle_leaves_no_two_adjacent_gaps() {
        for size in 2..=64_u8 {
            let order = odd_numbers_first(size);
            let run = usize::from(size) / 2;
            for lost in order.windows(run) {
                assert!(lost.iter().all(|index| !lost.contains(&(index + 1))), "{size}: {lost:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn received_frames_are_restored_to_their_order(
            order in Just((0..12).collect::<Vec<u8>>()).prop_shuffle(),
            // Up to six lost cycles, which the cycle count distinguishes.
            lost in proptest::collection::vec(any::<bool>(), 1..72),
        ) {
            let all = adus(&frames(64, lost.len()));
            let sent = interleaved(order, &all);
            let mut deinterleaver = Deinterleaver::default();
            let number = |adu: &[u8]| all.iter().position(|one| one[2..] == adu[2..]).unwrap();
            let survivors = sent.into_iter().filter(|adu| !lost[number(adu)]);
            let mut come: Vec<Vec<u8>> = survivors.flat_map(|adu| deinterleaver.push(adu).unwrap()).collect();
            come.extend(deinterleaver.finish());
            let kept: Vec<Vec<u8>> = all.iter().zip(&lost).filter(|(_, lost)| !**lost).map(|(adu, _)| adu.clone()).collect();
            prop_assert_eq!(come, kept);
        }
    }
}
