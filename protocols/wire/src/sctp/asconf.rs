//! The ASCONF chunk and its requests. RFC 5061 sections 4.1.1 and 4.2.

use bytes::{Buf, BufMut, Bytes};
use hol_base::serial_number;

use super::{Parameter, tlv};
use crate::{Address, ParseError};

serial_number!(
    /// Sequence number of ASCONF chunks. RFC 5061 section 4.1.1.
    AsconfSerial, u32, i32
);

/// Address configuration change. RFC 5061 section 4.1.1.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Type = 0xC1  |  Flags = 0    |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                        Sequence Number                        |
/// +---------------------------------------------------------------+
/// |                       Address Parameter                       |
/// +---------------------------------------------------------------+
/// |                      ASCONF Parameters                        |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asconf {
    /// Sequence number of the ASCONF.
    pub serial: AsconfSerial,
    /// An address of the sender that the peer already knows, by which the peer finds the association.
    pub lookup: Address,
    /// The requests, in the order of processing.
    pub requests: Vec<Request>,
}

/// One ASCONF parameter.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |        Parameter Type         |       Parameter Length        |
/// +-------------------------------+-------------------------------+
/// |                ASCONF-Request Correlation ID                  |
/// +---------------------------------------------------------------+
/// |                       Address Parameter                       |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Correlation ID, which the response repeats.
    pub correlation: u32,
    /// The requested change.
    pub change: AddressOperation,
}

/// A change of the sender's addresses. `0.0.0.0` and `::` mean the source address of the packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressOperation {
    /// Add IP Address request, RFC 5061 section 4.2.1.
    Add(Address),
    /// Delete IP Address request, RFC 5061 section 4.2.2.
    Delete(Address),
    /// Set Primary Address request, RFC 5061 section 4.2.4.
    SetPrimary(Address),
    /// A request with a parameter of unknown type, or without an address.
    Unknown {
        /// Type of the parameter.
        kind: u16,
        /// The octets of the parameter after the correlation ID.
        value: Bytes,
    },
}

/// Types of the parameters of ASCONF.
mod kind {
    pub const ADD: u16 = 0xC001;
    pub const DELETE: u16 = 0xC002;
    pub const SET_PRIMARY: u16 = 0xC004;
}

impl Asconf {
    /// The chunk type of ASCONF.
    pub const KIND: u8 = 0xC1;

    pub(super) fn value_length(&self) -> usize {
        let requests = self.requests.iter().map(|request| request.length().next_multiple_of(4));
        4 + Parameter::of_address(self.lookup).length() + requests.sum::<usize>()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.serial.0);
        Parameter::of_address(self.lookup).emit(out);
        tlv::put_all(out, &self.requests, Request::emit);
    }

    pub(super) fn parse_value(mut value: Bytes) -> Result<Self, ParseError> {
        let serial = AsconfSerial(value.try_get_u32()?);
        let (kind, address) = tlv::take(&mut value)?;
        let lookup = Parameter::parse(kind, address)?.address().ok_or(ParseError::Value)?;
        Ok(Self { serial, lookup, requests: tlv::take_all(value, Request::parse)? })
    }
}

impl Request {
    fn length(&self) -> usize {
        let value = match &self.change {
            AddressOperation::Unknown { value, .. } => value.len(),
            AddressOperation::Add(address)
            | AddressOperation::Delete(address)
            | AddressOperation::SetPrimary(address) => Parameter::of_address(*address).length(),
        };
        tlv::HEADER_LENGTH + 4 + value
    }

    /// Encodes the request as in its ASCONF chunk, for an error cause. RFC 5061 section 4.3.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.length());
        self.emit(&mut out);
        out.into()
    }

    fn emit(&self, out: &mut Vec<u8>) {
        let (kind, address) = match &self.change {
            AddressOperation::Add(address) => (kind::ADD, address),
            AddressOperation::Delete(address) => (kind::DELETE, address),
            AddressOperation::SetPrimary(address) => (kind::SET_PRIMARY, address),
            AddressOperation::Unknown { kind, value } => {
                return tlv::put(out, *kind, |out| {
                    out.put_u32(self.correlation);
                    out.put_slice(value);
                });
            }
        };
        tlv::put(out, kind, |out| {
            out.put_u32(self.correlation);
            Parameter::of_address(*address).emit(out);
        });
    }

    fn parse(kind: u16, mut value: Bytes) -> Result<Self, ParseError> {
        let correlation = value.try_get_u32()?;
        let address = || {
            let mut rest = value.clone();
            let (kind, address) = tlv::take(&mut rest).ok()?;
            Parameter::parse(kind, address).ok().filter(|_| rest.is_empty())?.address()
        };
        let change = match (kind, address()) {
            (kind::ADD, Some(address)) => AddressOperation::Add(address),
            (kind::DELETE, Some(address)) => AddressOperation::Delete(address),
            (kind::SET_PRIMARY, Some(address)) => AddressOperation::SetPrimary(address),
            _ => AddressOperation::Unknown { kind, value },
        };
        Ok(Self { correlation, change })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 5061 section 4.1.1, with the examples of sections 4.2.1, 4.2.2 and 4.2.4.
    #[test]
    fn requests_are_laid_out_as_the_examples_of_the_rfc() {
        let address = crate::ipv4(192, 0, 2, 1);
        let request = |correlation, change| Request { correlation, change };
        let asconf = Asconf {
            serial: AsconfSerial(258),
            lookup: crate::ipv4(10, 0, 0, 1),
            requests: vec![
                request(0x0102_3474, AddressOperation::Add(address)),
                request(0x0102_3476, AddressOperation::Delete(address)),
                request(0x0102_3479, AddressOperation::SetPrimary(address)),
                request(1, AddressOperation::Unknown { kind: 0xC009, value: Bytes::from_static(&[5]) }),
            ],
        };
        #[rustfmt::skip]
        let octets = [
            0xc1, 0, 0, 73,
            0, 0, 1, 2,
            0, 5, 0, 8, 10, 0, 0, 1,
            0xc0, 1, 0, 16, 1, 2, 0x34, 0x74, 0, 5, 0, 8, 0xc0, 0, 2, 1,
            0xc0, 2, 0, 16, 1, 2, 0x34, 0x76, 0, 5, 0, 8, 0xc0, 0, 2, 1,
            0xc0, 4, 0, 16, 1, 2, 0x34, 0x79, 0, 5, 0, 8, 0xc0, 0, 2, 1,
            0xc0, 9, 0, 9, 0, 0, 0, 1, 5, 0, 0, 0,
        ];
        Chunk::Asconf(Box::new(asconf)).assert_octets(&octets);
    }

    /// RFC 5061 section 4.1.1: the address parameter is mandatory, of either version. An ASCONF without a valid
    /// address is an error; a request without one is stored unparsed.
    #[test]
    fn invalid_asconf_address_is_refused_and_unknown_request_kept() {
        let parse = |octets: &'static [u8]| Asconf::parse_value(Bytes::from_static(octets));
        assert_eq!(parse(&[0, 0, 0, 1]), Err(ParseError::Truncated));
        let asconf = Asconf {
            serial: AsconfSerial(1),
            lookup: Address::from([0x20, 0x01, 0x0d, 0xb8, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
            requests: Vec::new(),
        };
        #[rustfmt::skip]
        let octets = [
            0xc1, 0, 0, 28,
            0, 0, 0, 1,
            0, 6, 0, 20, 0x20, 0x01, 0x0d, 0xb8, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ];
        Chunk::Asconf(Box::new(asconf)).assert_octets(&octets);
        assert_eq!(parse(&[0, 0, 0, 1, 0, 6, 0, 8, 1, 2, 3, 4]), Err(ParseError::Length));
        assert_eq!(parse(&[0, 0, 0, 1, 0, 11, 0, 8, b'h', b'o', b'l', 0]), Err(ParseError::Value), "a name");
        let value = Bytes::from_static(&[0, 6, 0, 8, 1, 2, 3, 4]);
        let octets = Bytes::from([&[0, 0, 0, 9][..], &value].concat());
        let kept = Request { correlation: 9, change: AddressOperation::Unknown { kind: kind::ADD, value } };
        assert_eq!(Request::parse(kind::ADD, octets), Ok(kept));
    }
}
