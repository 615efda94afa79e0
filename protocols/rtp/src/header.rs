//! The header of an RTP packet. RFC 3550 section 5.1.

use crate::ParseError;

/// The fields of an RTP header without contributing sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The type of the payload.
    pub payload_type: u8,
    /// The marker bit, whose meaning depends on the payload type.
    pub marker: bool,
    /// Sequence number, which increases by one with each packet.
    pub sequence: u16,
    /// The RTP timestamp, in units of the payload type's clock. RFC 3550 section 5.1.
    pub timestamp: u32,
    /// The synchronisation source (SSRC), which identifies the sender.
    pub source: u32,
}

const VERSION: u8 = 2;
const PADDING_BIT: u8 = 0x20;
const EXTENSION_BIT: u8 = 0x10;
const MARKER_BIT: u8 = 0x80;

impl Header {
    /// Length of the RTP header in octets.
    pub const OCTETS: usize = 12;

    /// Encodes the header as octets.
    pub fn octets(&self) -> [u8; Self::OCTETS] {
        let mut octets = [0; Self::OCTETS];
        octets[0] = VERSION << 6;
        octets[1] = self.payload_type & !MARKER_BIT | if self.marker { MARKER_BIT } else { 0 };
        octets[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        octets[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        octets[8..].copy_from_slice(&self.source.to_be_bytes());
        octets
    }

    /// Parses a packet: its header, and its payload without extension and padding.
    ///
    /// # Errors
    /// If the version is wrong, or lengths do not fit.
    pub fn read(packet: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, rest) = packet.split_first_chunk::<{ Self::OCTETS }>().ok_or(SHORT_PACKET)?;
        if header[0] >> 6 != VERSION {
            return Err(ParseError("the version of RTP is not 2"));
        }
        let contributors = 4 * usize::from(header[0] & 0x0f);
        let mut payload = rest.get(contributors..).ok_or(SHORT_PACKET)?;
        if header[0] & EXTENSION_BIT != 0 {
            payload = extended(payload).ok_or(SHORT_PACKET)?;
        }
        if header[0] & PADDING_BIT != 0 {
            payload = remove_padding(payload)?;
        }
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let read = Self {
            payload_type: header[1] & !MARKER_BIT,
            marker: header[1] & MARKER_BIT != 0,
            sequence: u16::from_be_bytes([header[2], header[3]]),
            timestamp: word(4),
            source: word(8),
        };
        Ok((read, payload))
    }
}

const SHORT_PACKET: ParseError = ParseError("an RTP packet is too short");

/// Returns the octets that follow the header extension. RFC 3550 section 5.3.1.
fn extended(octets: &[u8]) -> Option<&[u8]> {
    let [_, _, high, low] = *octets.first_chunk()?;
    octets.get(4 + 4 * usize::from(u16::from_be_bytes([high, low]))..)
}

/// Removes the padding; the last octet is the length of the padding, including itself.
fn remove_padding(octets: &[u8]) -> Result<&[u8], ParseError> {
    let padding = octets.last().map(|last| usize::from(*last)).filter(|padding| *padding > 0);
    let left = padding.and_then(|padding| octets.len().checked_sub(padding));
    left.map(|left| &octets[..left]).ok_or(ParseError("the padding of an RTP packet is invalid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: Header = Header {
        payload_type: 14,
        marker: true,
        sequence: 0x0102,
        timestamp: 0x0304_0506,
        source: 0x0708_090a,
    };

    /// RFC 3550 section 5.1.
    #[test]
    fn header_layout_matches_the_rfc() {
        assert_eq!(HEADER.octets(), [0x80, 0x8e, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    /// RFC 3550 sections 5.1 and 5.3.1.
    #[test]
    fn contributors_extension_and_padding_are_not_payload() {
        let mut packet = HEADER.octets().to_vec();
        packet[0] |= 0x20 | 0x10 | 2;
        packet.extend([[0; 8].as_slice(), &[0xbe, 0xde, 0, 1], &[0; 4], b"payload", &[0, 0, 3]].concat());
        assert_eq!(Header::read(&packet), Ok((HEADER, b"payload".as_slice())));
        for lacking in 1..packet.len() {
            let _ = Header::read(&packet[..lacking]);
        }
        *packet.last_mut().unwrap() = 0;
        assert!(Header::read(&packet).is_err(), "a padding length of zero");
        packet[0] = 0x40;
        assert!(Header::read(&packet).is_err(), "version 1");
    }

    proptest! {
        #[test]
        fn header_round_trips(payload_type in 0u8..128, marker: bool, sequence: u16, timestamp: u32, source: u32, payload: Vec<u8>) {
            let header = Header { payload_type, marker, sequence, timestamp, source };
            let packet = [&header.octets()[..], &payload].concat();
            prop_assert_eq!(Header::read(&packet), Ok((header, &payload[..])));
        }
    }
}
