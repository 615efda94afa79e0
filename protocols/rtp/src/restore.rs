//! Converts ADU frames back to frames for ordinary decoders. RFC 3119 section 3.5, appendix A.2.

use std::collections::VecDeque;

use crate::{FrameHeader, ParseError};

/// Converts a sequence of ADU frames, some of which may be missing, to MP3 frames. Where a missing frame leaves a
/// gap in the main data, an empty frame fills it.
#[derive(Debug, Default)]
pub struct FrameRestorer {
    pending: VecDeque<PendingUnit>,
}

/// A unit whose frame has not been written yet.
#[derive(Debug)]
struct PendingUnit {
    header: FrameHeader,
    /// The octets of the header, the CRC if there is one, and the side information.
    main_data_offset: Vec<u8>,
    reaches_back: usize,
    unit: Vec<u8>,
}

impl PendingUnit {
    fn read(adu: &[u8]) -> Result<Self, ParseError> {
        let header = FrameHeader::read(adu)?;
        let (main_data_offset, rest) =
            adu.split_at_checked(header.main_data_offset()).ok_or(ParseError("an ADU frame is too short"))?;
        let unit = rest.get(..header.main_data_length(adu)).ok_or(ParseError("an ADU frame is too short"))?;
        let (reaches_back, unit) = (header.main_data_begin(adu), unit.to_vec());
        Ok(Self { header, main_data_offset: main_data_offset.to_vec(), reaches_back, unit })
    }

    /// Returns an empty unit with the format of this one, whose main data begin where the previous unit ends,
    /// since the octets that follow belong to the next unit. RFC 5219 appendix A.2. (In RFC 3119 the empty unit
    /// reaches back to nothing, so these octets are lost.)
    fn dummy(&self, reaches_back: usize) -> Self {
        let mut main_data_offset = self.main_data_offset.clone();
        self.header.set_main_data_fields(&mut main_data_offset, reaches_back, 0);
        Self { header: self.header, main_data_offset, reaches_back, unit: Vec::new() }
    }

    /// Returns the number of octets between the end of the unit's main data and the end of its frame. The next
    /// unit may begin there.
    fn free_octets(&self) -> usize {
        (self.reaches_back + self.header.main_data_room()).saturating_sub(self.unit.len())
    }
}

impl FrameRestorer {
    /// Adds the next ADU frame; returns the MP3 frames that are now complete.
    ///
    /// # Errors
    /// If the ADU frame is incomplete.
    pub fn push(&mut self, adu: &[u8]) -> Result<Vec<Vec<u8>>, ParseError> {
        let adu = PendingUnit::read(adu)?;
        let mut left = self.pending.back().map_or(0, PendingUnit::free_octets);
        while adu.reaches_back > left {
            self.pending.push_back(adu.dummy(left));
            left += adu.header.main_data_room();
        }
        self.pending.push_back(adu);
        Ok(std::iter::from_fn(|| self.next_full()).collect())
    }

    /// Returns the remaining frames, padded with zeros.
    pub fn finish(mut self) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| self.write()).collect()
    }

    fn next_full(&mut self) -> Option<Vec<u8>> {
        let slot = self.pending.front()?.header.main_data_room();
        let is_full = self.positions().any(|(begin, adu)| begin + adu.unit.len() as isize >= slot as isize);
        if is_full { self.write() } else { None }
    }

    /// Returns the units whose frames are pending. Each has its position in the main data, counted from the first
    /// frame; it may be negative.
    fn positions(&self) -> impl Iterator<Item = (isize, &PendingUnit)> {
        self.pending.iter().scan(0, |frame: &mut isize, adu| {
            let begin = *frame - adu.reaches_back as isize;
            *frame += adu.header.main_data_room() as isize;
            Some((begin, adu))
        })
    }

    /// Writes the first pending frame, with the part of each unit that lies in it.
    fn write(&mut self) -> Option<Vec<u8>> {
        let first = self.pending.front()?;
        let mut data = vec![0; first.header.main_data_room()];
        for (begin, adu) in self.positions() {
            let from = begin.clamp(0, data.len() as isize) as usize;
            let skipped = (from as isize - begin) as usize;
            let part = adu.unit.get(skipped..).unwrap_or_default();
            let octets = part.len().min(data.len() - from);
            data[from..from + octets].copy_from_slice(&part[..octets]);
        }
        let written = self.pending.pop_front()?;
        Some([written.main_data_offset, data].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AduConverter;
    use crate::test_streams::{adus, frames};
    use proptest::prelude::*;

    fn restored(adus: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut restore = FrameRestorer::default();
        let mut frames: Vec<Vec<u8>> = adus.iter().flat_map(|adu| restore.push(adu).unwrap()).collect();
        frames.extend(restore.finish());
        frames
    }

    proptest! {
        /// RFC 3119 section 3.5: no information is lost. The last frames contain the beginning of units that are
        /// cut off.
        #[test]
        fn frames_are_restored_exactly(rate in 0usize..14, count in 20usize..60) {
            let original = frames(crate::BIT_RATES[rate], count);
            let again = restored(&adus(&original));
            prop_assert_eq!(again.len(), count);
            prop_assert_eq!(&again[..count - 10], &original[..count - 10]);
        }

        /// RFC 3119 appendix A.2: whichever frames are missing, the received units can be decoded.
        #[test]
        fn missing_frames_do_not_spoil_received_ones(rate in 0usize..14, lost in proptest::collection::vec(any::<bool>(), 10..60)) {
            let all = adus(&frames(crate::BIT_RATES[rate], lost.len()));
            let kept: Vec<Vec<u8>> = all.into_iter().zip(&lost).filter(|(_, lost)| !**lost).map(|(adu, _)| adu).collect();
            let mut reader = AduConverter::default();
            let again: Vec<Vec<u8>> = restored(&kept).iter().filter_map(|frame| reader.next(frame).unwrap()).collect();
            let is_dummy = |adu: &&Vec<u8>| FrameHeader::read(adu).unwrap().main_data_length(adu) == 0;
            prop_assert_eq!(again.iter().filter(|adu| !is_dummy(adu)).collect::<Vec<_>>(), kept.iter().collect::<Vec<_>>());
        }

        #[test]
        fn arbitrary_adus_do_not_panic(octets: Vec<Vec<u8>>) {
            let mut restore = FrameRestorer::default();
            octets.iter().for_each(|octets| drop(restore.push(octets)));
            restore.finish();
        }
    }
}
