//! Error causes of ABORT and ERROR. RFC 9260 section 3.3.10.

use bytes::{Buf, BufMut, Bytes};

use super::{Tsn, tlv};

/// An error cause of ABORT and ERROR. RFC 9260 section 3.3.10.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |          Cause Code           |         Cause Length          |
/// +-------------------------------+-------------------------------+
/// |         Cause-Specific Information, padded to four            |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Cause 1: a DATA chunk named a stream that does not exist.
    InvalidStreamIdentifier(u16),
    /// Cause 2: a mandatory parameter of this type was missing.
    MissingMandatoryParameter(u16),
    /// Cause 3: the cookie had expired this many microseconds before.
    StaleCookie(u32),
    /// Cause 4: the sender is out of resources.
    OutOfResource,
    /// Cause 5: the address parameter that the sender could not resolve.
    UnresolvableAddress(Bytes),
    /// Cause 6: the chunk whose type the sender does not know.
    UnrecognizedChunk(Bytes),
    /// Cause 7: a mandatory parameter was invalid.
    InvalidMandatoryParameter,
    /// Cause 8: the parameters whose types the sender does not know.
    UnrecognizedParameters(Bytes),
    /// Cause 9: the TSN of a DATA chunk without user data.
    NoUserData(Tsn),
    /// Cause 10: a cookie arrived while the association was shutting down.
    CookieWhileShuttingDown,
    /// Cause 11: an INIT would have added the addresses in these parameters to an association.
    NewAddresses(Bytes),
    /// Cause 12: the user requested the abort, for this reason.
    UserInitiatedAbort(Bytes),
    /// Cause 13: the peer violated the protocol.
    ProtocolViolation(Bytes),
    /// Cause 160: a request to delete the last address. RFC 5061 section 4.3.1.
    DeleteLastAddress(Bytes),
    /// Cause 162: a request to delete the source address of the packet. RFC 5061 section 4.3.3.
    DeleteSourceAddress(Bytes),
    /// Cause 163: an ASCONF-ACK arrived although no request was outstanding. RFC 5061 section 4.3.4.
    IllegalAsconfAck,
    /// Cause 261: an AUTH chunk with an HMAC identifier that was not offered. RFC 4895 section 4.1.
    UnsupportedHmac(u16),
    /// Any other cause.
    Other {
        /// Cause code.
        code: u16,
        /// Cause-specific information.
        value: Bytes,
    },
}

impl Cause {
    /// Returns the length of the cause on the wire in octets, including padding.
    pub fn length(&self) -> usize {
        let value = match self {
            Self::InvalidStreamIdentifier(_) | Self::StaleCookie(_) | Self::NoUserData(_) => 4,
            Self::MissingMandatoryParameter(_) => 6,
            Self::UnsupportedHmac(_) => 2,
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieWhileShuttingDown
            | Self::IllegalAsconfAck => 0,
            Self::UnresolvableAddress(value)
            | Self::UnrecognizedChunk(value)
            | Self::UnrecognizedParameters(value)
            | Self::NewAddresses(value)
            | Self::DeleteLastAddress(value)
            | Self::DeleteSourceAddress(value)
            | Self::UserInitiatedAbort(value)
            | Self::ProtocolViolation(value)
            | Self::Other { value, .. } => value.len(),
        };
        tlv::HEADER_LENGTH + value.next_multiple_of(4)
    }

    /// Appends the cause without its padding.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        tlv::put(out, self.code(), |out| match self {
            Self::InvalidStreamIdentifier(stream) => {
                out.put_u16(*stream);
                out.put_u16(0);
            }
            Self::MissingMandatoryParameter(kind) => {
                out.put_u32(1);
                out.put_u16(*kind);
            }
            Self::StaleCookie(micros) => out.put_u32(*micros),
            Self::NoUserData(tsn) => out.put_u32(tsn.0),
            Self::UnsupportedHmac(identifier) => out.put_u16(*identifier),
            Self::OutOfResource
            | Self::InvalidMandatoryParameter
            | Self::CookieWhileShuttingDown
            | Self::IllegalAsconfAck => {}
            Self::UnresolvableAddress(value)
            | Self::UnrecognizedChunk(value)
            | Self::UnrecognizedParameters(value)
            | Self::NewAddresses(value)
            | Self::DeleteLastAddress(value)
            | Self::DeleteSourceAddress(value)
            | Self::UserInitiatedAbort(value)
            | Self::ProtocolViolation(value)
            | Self::Other { value, .. } => out.put_slice(value),
        });
    }

    /// Parses a cause. Causes are only for information, so a known cause with a wrong length is accepted as
    /// [`Other`](Self::Other).
    pub(super) fn parse(code: u16, value: Bytes) -> Self {
        let mut fields = value.clone();
        match (code, value.len()) {
            (1, 4) => Self::InvalidStreamIdentifier(fields.get_u16()),
            (2, 6) if fields.get_u32() == 1 => Self::MissingMandatoryParameter(fields.get_u16()),
            (3, 4) => Self::StaleCookie(fields.get_u32()),
            (4, 0) => Self::OutOfResource,
            (5, _) => Self::UnresolvableAddress(value),
            (6, _) => Self::UnrecognizedChunk(value),
            (7, 0) => Self::InvalidMandatoryParameter,
            (8, _) => Self::UnrecognizedParameters(value),
            (9, 4) => Self::NoUserData(Tsn(fields.get_u32())),
            (10, 0) => Self::CookieWhileShuttingDown,
            (11, _) => Self::NewAddresses(value),
            (12, _) => Self::UserInitiatedAbort(value),
            (13, _) => Self::ProtocolViolation(value),
            (0xA0, _) => Self::DeleteLastAddress(value),
            (0xA2, _) => Self::DeleteSourceAddress(value),
            (0xA3, 0) => Self::IllegalAsconfAck,
            (0x105, 2) => Self::UnsupportedHmac(fields.get_u16()),
            _ => Self::Other { code, value },
        }
    }

    fn code(&self) -> u16 {
        match self {
            Self::InvalidStreamIdentifier(_) => 1,
            Self::MissingMandatoryParameter(_) => 2,
            Self::StaleCookie(_) => 3,
            Self::OutOfResource => 4,
            Self::UnresolvableAddress(_) => 5,
            Self::UnrecognizedChunk(_) => 6,
            Self::InvalidMandatoryParameter => 7,
            Self::UnrecognizedParameters(_) => 8,
            Self::NoUserData(_) => 9,
            Self::CookieWhileShuttingDown => 10,
            Self::NewAddresses(_) => 11,
            Self::UserInitiatedAbort(_) => 12,
            Self::ProtocolViolation(_) => 13,
            Self::DeleteLastAddress(_) => 0xA0,
            Self::DeleteSourceAddress(_) => 0xA2,
            Self::IllegalAsconfAck => 0xA3,
            Self::UnsupportedHmac(_) => 0x105,
            Self::Other { code, .. } => *code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 9260 sections 3.3.10 and 3.3.10.1 to 3.3.10.13, RFC 4895 section 4.1, RFC 5061 section 4.3, by hand.
    #[test]
    fn every_cause_is_laid_out_as_its_section_says() {
        let causes = vec![
            Cause::InvalidStreamIdentifier(7),
            Cause::MissingMandatoryParameter(7),
            Cause::StaleCookie(1000),
            Cause::OutOfResource,
            Cause::UnresolvableAddress(Bytes::from_static(&[0, 11, 0, 4])),
            Cause::UnrecognizedChunk(Bytes::from_static(&[0xfe, 0, 0, 4])),
            Cause::InvalidMandatoryParameter,
            Cause::NoUserData(Tsn(9)),
            Cause::CookieWhileShuttingDown,
            Cause::UserInitiatedAbort(Bytes::from_static(b"bye")),
            Cause::NewAddresses(Bytes::from_static(&[0, 5, 0, 8, 10, 0, 0, 9])),
            Cause::Other { code: 14, value: Bytes::new() },
            Cause::ProtocolViolation(Bytes::from_static(b"x")),
            Cause::UnrecognizedParameters(Bytes::from_static(&[0xc0, 9, 0, 4])),
            Cause::DeleteLastAddress(Bytes::from_static(&[0xc0, 2, 0, 4])),
            Cause::DeleteSourceAddress(Bytes::from_static(&[0xc0, 2, 0, 4])),
            Cause::IllegalAsconfAck,
            Cause::UnsupportedHmac(9),
        ];
        #[rustfmt::skip]
        let octets = [
            9, 0, 0, 134,
            0, 1, 0, 8, 0, 7, 0, 0,
            0, 2, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0,
            0, 3, 0, 8, 0, 0, 3, 0xe8,
            0, 4, 0, 4,
            0, 5, 0, 8, 0, 11, 0, 4,
            0, 6, 0, 8, 0xfe, 0, 0, 4,
            0, 7, 0, 4,
            0, 9, 0, 8, 0, 0, 0, 9,
            0, 10, 0, 4,
            0, 12, 0, 7, b'b', b'y', b'e', 0,
            0, 11, 0, 12, 0, 5, 0, 8, 10, 0, 0, 9,
            0, 14, 0, 4,
            0, 13, 0, 5, b'x', 0, 0, 0,
            0, 8, 0, 8, 0xc0, 9, 0, 4,
            0, 0xa0, 0, 8, 0xc0, 2, 0, 4,
            0, 0xa2, 0, 8, 0xc0, 2, 0, 4,
            0, 0xa3, 0, 4,
            1, 5, 0, 6, 0, 9, 0, 0,
        ];
        Chunk::Error(causes).assert_octets(&octets);
    }

    #[test]
    fn cause_of_wrong_length_is_kept_unparsed() {
        let value = Bytes::from_static(&[1, 2, 3]);
        assert_eq!(Cause::parse(9, value.clone()), Cause::Other { code: 9, value });
        let two_missing = Bytes::from_static(&[0, 0, 0, 2, 0, 7]);
        assert_eq!(Cause::parse(2, two_missing.clone()), Cause::Other { code: 2, value: two_missing });
    }
}
