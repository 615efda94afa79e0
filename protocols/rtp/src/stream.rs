//! A synthetic stream of MP3 frames. Its frame sizes and bit reservoir are like those of a constant-bit-rate
//! encoder; its main data are random but reproducible.

use std::collections::VecDeque;

use hol_base::{Rng, Seed};

use crate::FrameHeader;
use crate::mp3::BIT_RATES_KBPS;

/// Number of audio samples per second.
pub const SAMPLING_RATE: u32 = 44_100;
/// Number of audio samples in each frame.
pub const SAMPLES_PER_FRAME: u32 = 1152;
/// The supported bit rates in kbit/s.
pub const BIT_RATES: [u16; 14] = BIT_RATES_KBPS;

/// An endless MP3 test stream, in stereo at 44.1 kHz.
///
/// The bit rate determines the length of all frames. The size of a unit is a random number, uniformly distributed
/// between 0.5 and 1.5 times the room of a frame, but limited by the bit reservoir: the unit begins at most 511
/// octets of main data before its own frame, and ends in it. There is no stuffing.
#[derive(Debug)]
pub struct Stream {
    /// Index of the bit rate in [`BIT_RATES_KBPS`].
    rate: usize,
    rng: Rng,
    /// The fraction of an octet that padding has not compensated yet, in units of an octet divided by the sampling
    /// rate.
    rest: u32,
    /// Octets free for main data before the next unit's frame.
    reservoir: usize,
    /// The main data of units whose frames are not full yet.
    planned: VecDeque<Vec<u8>>,
    main_data: VecDeque<u8>,
}

impl Stream {
    /// Creates a stream of `kbps` kbit/s; `None` if that is not one of [`BIT_RATES`].
    pub fn new(kbps: u16) -> Option<Self> {
        let rate = BIT_RATES_KBPS.iter().position(|known| *known == kbps)?;
        let (planned, main_data) = (VecDeque::new(), VecDeque::new());
        Some(Self { rate, rng: Seed(3119).rng(), rest: 0, reservoir: 0, planned, main_data })
    }

    /// Returns the header of the next frame, padded by an octet where the bit rate requires it.
    fn header(&mut self) -> FrameHeader {
        self.rest += 144_000 * u32::from(BIT_RATES_KBPS[self.rate]) % SAMPLING_RATE;
        let has_padding = self.rest >= SAMPLING_RATE;
        self.rest %= SAMPLING_RATE;
        FrameHeader::stereo(self.rate, has_padding)
    }

    /// Plans the size and the position of the next unit.
    fn plan(&mut self) {
        let header = self.header();
        let slot = header.main_data_room();
        let room = self.reservoir + slot;
        let wanted = slot / 2 + self.rng.below(slot as u64 + 1) as usize;
        let octets = wanted.clamp(room.saturating_sub(FrameHeader::MAX_DATA_REACH), room);
        let mut main_data_offset = vec![0; header.main_data_offset()];
        main_data_offset[..FrameHeader::OCTETS].copy_from_slice(&header.octets());
        header.set_main_data_fields(&mut main_data_offset, self.reservoir, octets);
        self.planned.push_back(main_data_offset);
        let noise = std::iter::repeat_with(|| self.rng.next_u64().to_be_bytes()).flatten();
        self.main_data.extend(noise.take(octets));
        self.reservoir = room - octets;
    }
}

impl Iterator for Stream {
    type Item = Vec<u8>;

    /// Returns the next frame of the endless stream.
    fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(mut frame) = self.planned.pop_front() {
                let slot =
                    FrameHeader::read(&frame).expect("the encoder wrote a valid header").main_data_room();
                if self.main_data.len() >= slot {
                    frame.extend(self.main_data.drain(..slot));
                    return Some(frame);
                }
                self.planned.push_front(frame);
            }
            self.plan();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(frame: &[u8]) -> FrameHeader {
        FrameHeader::read(frame).expect("a frame")
    }

    #[test]
    fn the_bit_rate_is_kept_to_the_octet() {
        for kbps in BIT_RATES {
            let frames: Vec<Vec<u8>> = Stream::new(kbps).unwrap().take(1225).collect();
            assert!(frames.iter().all(|frame| frame.len() == header(frame).frame_length()));
            // 1225 frames of 1152 samples are 32 s.
            let octets: usize = frames.iter().map(Vec::len).sum();
            assert_eq!(octets, 32 * 125 * usize::from(kbps), "{kbps}");
        }
        assert!(Stream::new(193).is_none());
    }

    /// ISO/IEC 11172-3 section 2.4.3.4: the main data of a frame end in it, and begin at most 511 octets before.
    #[test]
    fn main_data_is_contiguous_and_ends_in_its_frame() {
        for kbps in BIT_RATES {
            let (mut begin, mut reservoir, mut reaching) = (0, 0, 0);
            for frame in Stream::new(kbps).unwrap().take(1000) {
                let header = header(&frame);
                let (reaches_back, octets) =
                    (header.main_data_begin(&frame), header.main_data_length(&frame));
                assert_eq!(reaches_back, reservoir, "{kbps}");
                assert!(octets <= reservoir + header.main_data_room());
                reservoir = reservoir + header.main_data_room() - octets;
                reaching += u32::from(reaches_back > 0);
                begin += octets;
            }
            assert!(begin > 0 && reservoir <= FrameHeader::MAX_DATA_REACH);
            assert!((500..1000).contains(&reaching), "most frames need others: {reaching} of 1000 at {kbps}");
        }
    }

    #[test]
    fn stream_is_deterministic() {
        let [one, other] = [(), ()].map(|()| Stream::new(192).unwrap().take(50).collect::<Vec<_>>());
        assert_eq!(one, other);
    }
}
