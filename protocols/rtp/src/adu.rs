//! Converts MP3 frames to self-contained units. RFC 3119 sections 2 and 3.1, appendix A.1.

use crate::{FrameHeader, ParseError};

/// Converts MP3 frames to ADU (application data unit) frames. An ADU frame consists of a frame's header and
/// side information, and of all main data of its unit, even those stored in earlier frames. Ancillary data
/// are dropped.
#[derive(Debug, Default)]
pub struct AduConverter {
    /// The latest main data, as much as a frame may refer back to.
    earlier_data: Vec<u8>,
}

impl AduConverter {
    /// Returns the ADU frame of the next frame; `None` if its unit begins before the first frame.
    ///
    /// # Errors
    /// If the frame or its unit is incomplete.
    pub fn next(&mut self, frame: &[u8]) -> Result<Option<Vec<u8>>, ParseError> {
        let header = FrameHeader::read(frame)?;
        let (main_data_offset, data) = frame
            .split_at_checked(header.main_data_offset())
            .filter(|_| frame.len() == header.frame_length())
            .ok_or(ParseError("the length of a frame contradicts its header"))?;
        let begin = self.earlier_data.len().checked_sub(header.main_data_begin(frame));
        self.earlier_data.extend_from_slice(data);
        let adu = begin.map(|begin| {
            let unit = self.earlier_data.get(begin..begin + header.main_data_length(frame));
            unit.map(|unit| [main_data_offset, unit].concat())
                .ok_or(ParseError("a unit ends beyond its frame"))
        });
        self.earlier_data.drain(..self.earlier_data.len().saturating_sub(FrameHeader::MAX_DATA_REACH));
        adu.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_streams::{adus, frames};

    /// RFC 3119 section 3.1.
    #[test]
    fn adus_carry_the_main_data_of_the_stream() {
        let frames = frames(192, 200);
        let adus = adus(&frames);
        let header = |octets: &[u8]| FrameHeader::read(octets).unwrap();
        let of_frames: Vec<u8> =
            frames.iter().flat_map(|frame| frame[header(frame).main_data_offset()..].to_vec()).collect();
        let of_adus: Vec<u8> =
            adus.iter().flat_map(|adu| adu[header(adu).main_data_offset()..].to_vec()).collect();
        assert_eq!(of_adus, of_frames[..of_adus.len()]);
        assert!(adus.iter().zip(&frames).all(|(adu, frame)| adu[..36] == frame[..36]));
    }

    #[test]
    fn late_start_yields_no_adu_for_earlier_data() {
        let frames = frames(192, 20);
        let header = FrameHeader::read(&frames[9]).unwrap();
        assert!(header.main_data_begin(&frames[9]) > 0);
        let mut late = AduConverter::default();
        assert_eq!(late.next(&frames[9]), Ok(None));
        assert_eq!(late.next(&frames[10]).unwrap().as_ref(), adus(&frames).get(10));
        assert!(late.next(&frames[11][..100]).is_err());
        assert!(late.next(b"no frame").is_err());
    }
}
