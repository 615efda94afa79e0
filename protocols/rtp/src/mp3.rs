//! The header and the side information of an MPEG-1 layer III frame. ISO/IEC 11172-3 section 2.4.1; RFC 3119
//! section 2.

use crate::ParseError;

/// The header of an MP3 frame: its first four octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader([u8; 4]);

/// Bit rates in kbit/s for the values 1 to 14 of the header's bit rate field.
pub(crate) const BIT_RATES_KBPS: [u16; 14] = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const SAMPLING_RATES: [u32; 3] = [44_100, 48_000, 32_000];

impl FrameHeader {
    /// Length of the frame header in octets.
    pub const OCTETS: usize = 4;
    /// Maximum number of octets by which a unit's main data may begin before its frame; the field has nine bits.
    pub const MAX_DATA_REACH: usize = 511;

    /// Returns the header of a stereo frame of 44.1 kHz without CRC, at one of the bit rates of [`BIT_RATES_KBPS`].
    pub(crate) fn stereo(rate: usize, has_padding: bool) -> Self {
        Self([0xff, 0xfb, (rate as u8 + 1) << 4 | u8::from(has_padding) << 1, 0])
    }

    /// Parses the start of a frame; an ADU frame may have another syncword (RFC 3119 section 6).
    ///
    /// # Errors
    /// If it is not MPEG-1 layer III, or has the free bit rate, whose frames do not contain their length.
    pub fn read(octets: &[u8]) -> Result<Self, ParseError> {
        let header = Self(*octets.first_chunk().ok_or(SHORT_FRAME)?);
        let Self([_, version, rates, _]) = header;
        if version & 0x1e != 0x1a {
            return Err(ParseError("a frame is not MPEG-1 layer III"));
        }
        if !matches!(rates >> 4, 1..=14) || rates >> 2 & 3 == 3 {
            return Err(ParseError("the bit rate or sampling rate of a frame is undefined"));
        }
        Ok(header)
    }

    /// Encodes the header as octets.
    pub const fn octets(self) -> [u8; 4] {
        self.0
    }

    /// Returns the length of the whole frame in octets.
    pub fn frame_length(self) -> usize {
        let Self([_, _, rates, _]) = self;
        let bits_per_s = 1000 * u32::from(BIT_RATES_KBPS[usize::from(rates >> 4) - 1]);
        let padding = u32::from(rates >> 1 & 1);
        (144 * bits_per_s / SAMPLING_RATES[usize::from(rates >> 2 & 3)] + padding) as usize
    }

    /// Returns the offset of the main data in octets: the length of the header, the CRC if there is one, and the
    /// side information.
    pub fn main_data_offset(self) -> usize {
        Self::OCTETS + self.crc_length() + if self.is_mono() { 17 } else { 32 }
    }

    /// Returns the number of octets in the frame for main data.
    pub fn main_data_room(self) -> usize {
        self.frame_length() - self.main_data_offset()
    }

    /// Returns `main_data_begin`: the number of octets of main data by which the unit begins before this frame.
    pub fn main_data_begin(self, frame: &[u8]) -> usize {
        self.bits(frame, 0, 9)
    }

    /// Returns the length of the unit's main data in octets: the sum of `part2_3_length` over all granules and
    /// channels.
    pub fn main_data_length(self, frame: &[u8]) -> usize {
        self.lengths().map(|at| self.bits(frame, at, 12)).sum::<usize>().div_ceil(8)
    }

    /// Sets `main_data_begin` and the length of the unit, both in octets. Each channel of a granule gets at most
    /// 4095 bits.
    pub(crate) fn set_main_data_fields(self, frame: &mut [u8], reaches_back: usize, main_data: usize) {
        const MAX_GRANULE_BITS: usize = 4095;
        self.set_bits(frame, 0, 9, reaches_back);
        let (mut left, parts) = (8 * main_data, self.lengths().count());
        for (index, at) in self.lengths().enumerate() {
            let part = left.div_ceil(parts - index).min(MAX_GRANULE_BITS);
            self.set_bits(frame, at, 12, part);
            left -= part;
        }
    }

    const fn is_mono(self) -> bool {
        self.0[3] >> 6 == 3
    }

    const fn crc_length(self) -> usize {
        if self.0[1] & 1 == 0 { 2 } else { 0 }
    }

    /// Returns the offsets of the lengths of both granules, in bits from the start of the side information.
    fn lengths(self) -> impl Iterator<Item = usize> {
        const GRANULE_BITS: usize = 59;
        // After main_data_begin, private_bits, and scfsi of each channel.
        let (first, count) = if self.is_mono() { (9 + 5 + 4, 2) } else { (9 + 3 + 8, 4) };
        (0..count).map(move |index| first + GRANULE_BITS * index)
    }

    fn bits(self, frame: &[u8], at: usize, count: usize) -> usize {
        let side = &frame[Self::OCTETS + self.crc_length()..];
        (at..at + count).fold(0, |bits, at| bits << 1 | usize::from(side[at / 8] >> (7 - at % 8) & 1))
    }

    fn set_bits(self, frame: &mut [u8], at: usize, count: usize, value: usize) {
        let side = &mut frame[Self::OCTETS + self.crc_length()..];
        for bit in 0..count {
            let (place, mask) = ((at + bit) / 8, 0x80 >> ((at + bit) % 8));
            let is_set = value >> (count - 1 - bit) & 1 == 1;
            side[place] = if is_set { side[place] | mask } else { side[place] & !mask };
        }
    }
}

const SHORT_FRAME: ParseError = ParseError("a frame has no header");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// ISO/IEC 11172-3 section 2.4.3.1: 144 x bit rate / sampling rate octets, and one of padding.
    #[test]
    fn frame_length_follows_from_the_header() {
        let frame = |octets: [u8; 4]| {
            FrameHeader::read(&octets).map(|header| (header.frame_length(), header.main_data_room()))
        };
        assert_eq!(frame([0xff, 0xfb, 0xb0, 0x00]), Ok((626, 590)), "192 kbit/s, 44.1 kHz, stereo");
        assert_eq!(frame([0xff, 0xfb, 0xb2, 0x00]), Ok((627, 591)), "padded");
        assert_eq!(frame([0xff, 0xfa, 0x94, 0xc0]), Ok((384, 361)), "128 kbit/s, 48 kHz, mono, CRC");
        assert_eq!(frame([0xff, 0xfb, 0xe8, 0x00]), Ok((1440, 1404)), "320 kbit/s, 32 kHz: the longest");
        for other in [
            [0xff, 0xf3, 0xb0, 0],
            [0xff, 0xfd, 0xb0, 0],
            [0xff, 0xfb, 0x00, 0],
            [0xff, 0xfb, 0xf0, 0],
            [0xff, 0xfb, 0xbc, 0],
        ] {
            assert!(frame(other).is_err(), "{other:x?}: MPEG-2, layer II, free, no rate, no sampling rate");
        }
    }

    /// ISO/IEC 11172-3 section 2.4.1.7: nine bits, three private ones, eight of scfsi, then twelve of part2_3_length.
    #[test]
    fn side_information_is_at_its_standard_position() {
        let header = FrameHeader([0xff, 0xfb, 0x90, 0x00]);
        let mut frame = vec![0; header.frame_length()];
        // main_data_begin = 0x155, then 3 + 8 bits, then part2_3_length = 0xabc.
        frame[4..9].copy_from_slice(&[0xaa, 0x80, 0x0a, 0xbc, 0x00]);
        assert_eq!(header.main_data_begin(&frame), 0x155);
        assert_eq!(header.main_data_length(&frame), 0xabc_usize.div_ceil(8));
    }

    proptest! {
        #[test]
        fn set_fields_are_read_back(rate in 0usize..14, reaches_back in 0usize..512, main_data in 0usize..2047) {
            let header = FrameHeader::stereo(rate, true);
            let mut frame = vec![0xff; header.frame_length()];
            header.set_main_data_fields(&mut frame, reaches_back, main_data);
            let fields = (header.main_data_begin(&frame), header.main_data_length(&frame));
            prop_assert_eq!(fields, (reaches_back, main_data));
        }

        #[test]
        fn arbitrary_header_octets_do_not_panic(octets: Vec<u8>) {
            if let Ok(header) = FrameHeader::read(&octets) {
                prop_assert!(header.main_data_room() > 0 && header.main_data_offset() < header.frame_length());
            }
        }
    }
}
