//! The ASCONF-ACK chunk. RFC 5061 sections 4.1.2, 4.2.3 and 4.2.5.

use bytes::{Buf, BufMut, Bytes};

use super::{AsconfSerial, Cause, tlv};
use crate::ParseError;

/// Address configuration acknowledgement. RFC 5061 section 4.1.2.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 0x80  |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                        Sequence Number                        |
/// +---------------------------------------------------------------+
/// |                 ASCONF Parameter Responses                    |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsconfAck {
    /// Sequence number of the ASCONF that this chunk answers.
    pub serial: AsconfSerial,
    /// The results of the requests. Requests that are not listed have succeeded.
    pub responses: Vec<Response>,
}

/// The result of one request of an ASCONF.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |        Parameter Type         |       Parameter Length        |
/// +-------------------------------+-------------------------------+
/// |                ASCONF-Response Correlation ID                 |
/// +---------------------------------------------------------------+
/// |                         Error Causes                          |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// Success Indication, RFC 5061 section 4.2.5.
    Success {
        /// The correlation ID of the request.
        correlation: u32,
    },
    /// Error Cause Indication, RFC 5061 section 4.2.3.
    Error {
        /// The correlation ID of the request.
        correlation: u32,
        /// The error causes.
        causes: Vec<Cause>,
    },
}

/// Types of the parameters of ASCONF-ACK.
mod kind {
    pub const ERROR_CAUSE_INDICATION: u16 = 0xC003;
    pub const SUCCESS_INDICATION: u16 = 0xC005;
}

impl AsconfAck {
    /// The chunk type of ASCONF-ACK.
    pub const KIND: u8 = 0x80;

    pub(super) fn value_length(&self) -> usize {
        4 + self.responses.iter().map(Response::length).sum::<usize>()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.serial.0);
        tlv::put_all(out, &self.responses, Response::emit);
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        let serial = AsconfSerial(value.try_get_u32()?);
        Ok(Self { serial, responses: tlv::take_all(value, Response::parse)? })
    }
}

impl Response {
    fn length(&self) -> usize {
        let causes = match self {
            Self::Success { .. } => 0,
            Self::Error { causes, .. } => causes.iter().map(Cause::length).sum(),
        };
        tlv::HEADER_LENGTH + 4 + causes
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Success { correlation } => {
                tlv::put(out, kind::SUCCESS_INDICATION, |out| out.put_u32(*correlation));
            }
            Self::Error { correlation, causes } => tlv::put(out, kind::ERROR_CAUSE_INDICATION, |out| {
                out.put_u32(*correlation);
                tlv::put_all(out, causes, Cause::emit);
            }),
        }
    }

    /// Parses a response; invalid content is an error. RFC 5061 section 4.2.
    fn parse(kind: u16, mut value: Bytes) -> Result<Self, ParseError> {
        let correlation = value.try_get_u32()?;
        match (kind, value.len()) {
            (kind::SUCCESS_INDICATION, 0) => Ok(Self::Success { correlation }),
            (kind::SUCCESS_INDICATION, _) => Err(ParseError::Length),
            (kind::ERROR_CAUSE_INDICATION, _) => {
                let causes = tlv::take_all(value, |code, value| Ok(Cause::parse(code, value)))?;
                Ok(Self::Error { correlation, causes })
            }
            _ => Err(ParseError::Value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AddressOperation, Chunk, Request};
    use super::*;

    /// RFC 5061 sections 4.1.2 and 4.2.5, with the example of section 4.3.1.
    #[test]
    fn responses_are_laid_out_as_the_examples_of_the_rfc() {
        let change = AddressOperation::Delete(crate::ipv4(192, 0, 2, 1));
        let refused = Request { correlation: 0x0102_3476, change };
        let causes = vec![Cause::DeleteLastAddress(refused.to_bytes())];
        let ack = AsconfAck {
            serial: AsconfSerial(258),
            responses: vec![
                Response::Success { correlation: 0x0102_3474 },
                Response::Error { correlation: 0x0102_3476, causes },
            ],
        };
        #[rustfmt::skip]
        let octets = [
            0x80, 0, 0, 44,
            0, 0, 1, 2,
            0xc0, 5, 0, 8, 1, 2, 0x34, 0x74,
            0xc0, 3, 0, 28, 1, 2, 0x34, 0x76,
            0, 0xa0, 0, 20, 0xc0, 2, 0, 16, 1, 2, 0x34, 0x76, 0, 5, 0, 8, 0xc0, 0, 2, 1,
        ];
        Chunk::AsconfAck(Box::new(ack)).assert_octets(&octets);
        let nothing_failed = AsconfAck { serial: AsconfSerial(1), responses: Vec::new() };
        Chunk::AsconfAck(Box::new(nothing_failed)).assert_octets(&[0x80, 0, 0, 8, 0, 0, 0, 1]);
    }

    #[test]
    fn invalid_response_is_refused() {
        let parse = |kind, octets: &'static [u8]| Response::parse(kind, Bytes::from_static(octets));
        assert_eq!(parse(kind::SUCCESS_INDICATION, &[0, 0, 0, 1, 0]), Err(ParseError::Length));
        assert_eq!(parse(kind::ERROR_CAUSE_INDICATION, &[0, 0]), Err(ParseError::Truncated));
        assert_eq!(parse(0xC001, &[0, 0, 0, 1]), Err(ParseError::Value));
    }
}
