//! The INIT and INIT ACK chunks. RFC 9260 sections 3.3.2 and 3.3.3.

use bytes::{Buf, BufMut, Bytes};

use super::{Parameter, Tsn, tlv};
use crate::ParseError;

/// The fixed part and the parameters of INIT and INIT ACK. RFC 9260 sections 3.3.2 and 3.3.3.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 1, 2  |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                         Initiate Tag                          |
/// +---------------------------------------------------------------+
/// |           Advertised Receiver Window Credit (a_rwnd)          |
/// +-------------------------------+-------------------------------+
/// |  Number of Outbound Streams   |   Number of Inbound Streams   |
/// +-------------------------------+-------------------------------+
/// |                          Initial TSN                          |
/// +---------------------------------------------------------------+
/// |             Optional / variable-length parameters             |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// The verification tag that the peer must put into its packets; never zero.
    pub initiate_tag: u32,
    /// Advertised receiver window credit in octets.
    pub a_rwnd: u32,
    /// Number of outbound streams that the sender requests.
    pub outbound_streams: u16,
    /// Maximum number of inbound streams that the sender accepts.
    pub inbound_streams: u16,
    /// The sender's first TSN.
    pub initial_tsn: Tsn,
    /// Optional and variable-length parameters, in the order of transmission.
    pub parameters: Vec<Parameter>,
}

impl Init {
    /// Length in octets of the fields between the chunk header and the parameters.
    pub const FIXED_OCTETS: usize = 16;

    pub(super) fn value_length(&self) -> usize {
        Self::FIXED_OCTETS + self.parameters.iter().map(Parameter::length).sum::<usize>()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.initiate_tag);
        out.put_u32(self.a_rwnd);
        out.put_u16(self.outbound_streams);
        out.put_u16(self.inbound_streams);
        out.put_u32(self.initial_tsn.0);
        tlv::put_all(out, &self.parameters, Parameter::emit);
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        Ok(Self {
            initiate_tag: value.try_get_u32()?,
            a_rwnd: value.try_get_u32()?,
            outbound_streams: value.try_get_u16()?,
            inbound_streams: value.try_get_u16()?,
            initial_tsn: Tsn(value.try_get_u32()?),
            parameters: tlv::take_all(value, Parameter::parse)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 9260 section 3.3.3 by hand. Section 3.3.2: the chunk length counts the padding between parameters
    /// (one octet after the cookie's nine) but not after the last (two octets after the extensions' six).
    #[test]
    fn the_chunk_length_leaves_out_the_last_padding() {
        let init = Chunk::InitAck(Box::new(Init {
            initiate_tag: 0x0102_0304,
            a_rwnd: 0x0001_0000,
            outbound_streams: 8,
            inbound_streams: 2048,
            initial_tsn: Tsn(5),
            parameters: vec![
                Parameter::StateCookie(Bytes::from_static(b"cookie!")),
                Parameter::SupportedExtensions(vec![192, 130]),
            ],
        }));
        #[rustfmt::skip]
        let octets = [
            2, 0, 0, 38,
            1, 2, 3, 4,
            0, 1, 0, 0,
            0, 8, 8, 0,
            0, 0, 0, 5,
            0, 7, 0, 11, b'c', b'o', b'o', b'k', b'i', b'e', b'!', 0,
            0x80, 8, 0, 6, 192, 130, 0, 0,
        ];
        init.assert_octets(&octets);
    }

    #[test]
    fn an_init_that_is_too_short_is_refused() {
        let mut octets = Bytes::from_static(&[1, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1]);
        assert_eq!(Chunk::parse(&mut octets), Err(ParseError::Truncated));
    }
}
