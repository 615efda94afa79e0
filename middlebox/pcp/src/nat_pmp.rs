//! NAT-PMP, the predecessor of PCP. RFC 6886 section 3.

use std::net::Ipv4Addr;

use bytes::{Buf, BufMut};

use crate::ResultCode;

/// The version number of NAT-PMP.
pub(crate) const VERSION: u8 = 0;
/// The value that is added to a request's opcode in its answer.
const ANSWER_BIT: u8 = 128;
const UDP: u8 = 17;
const TCP: u8 = 6;

/// A request of a host to the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Requests the gateway's outside address.
    Address,
    /// Requests a mapping of one of the host's ports.
    Map {
        /// IP protocol number: TCP or UDP.
        protocol: u8,
        /// The host's port. Port 0 with lifetime 0 means all ports.
        port: u16,
        /// The preferred outside port; 0 means any.
        external: u16,
        /// Lifetime in seconds; 0 deletes the mapping.
        lifetime: u32,
    },
}

impl Request {
    /// Parses a request; `None` if the datagram is too short. It may not be a request, so it gets no answer.
    pub(crate) fn parse(octets: &[u8]) -> Result<Option<Self>, ResultCode> {
        let mut rest = octets;
        let (_, operation) = (rest.get_u8(), rest.get_u8());
        let protocol = match operation {
            0 => return Ok(Some(Self::Address)),
            1 => UDP,
            2 => TCP,
            _ => return Err(ResultCode::UnsupportedOpcode),
        };
        if rest.len() < 10 {
            return Ok(None);
        }
        rest.advance(2);
        let (port, external) = (rest.get_u16(), rest.get_u16());
        Ok(Some(Self::Map { protocol, port, external, lifetime: rest.get_u32() }))
    }

    /// Encodes the request as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        match *self {
            Self::Address => vec![VERSION, 0],
            Self::Map { protocol, port, external, lifetime } => {
                let mut out = vec![VERSION, operation(protocol), 0, 0];
                put_mapping(&mut out, port, external, lifetime);
                out
            }
        }
    }
}

fn operation(protocol: u8) -> u8 {
    if protocol == UDP { 1 } else { 2 }
}

fn put_mapping(out: &mut Vec<u8>, port: u16, external: u16, lifetime: u32) {
    out.put_u16(port);
    out.put_u16(external);
    out.put_u32(lifetime);
}

/// Returns the answer with the gateway's address. `epoch` is the time since the gateway's state was last lost, in
/// seconds.
pub fn address_response(address: Ipv4Addr, epoch: u32) -> Vec<u8> {
    let mut out = header(0, 0, epoch);
    out.put_slice(&address.octets());
    out
}

/// Returns the answer about a mapping, with its outside port and its lifetime in seconds; both are 0 if the mapping was
/// deleted.
pub fn mapping_response(protocol: u8, port: u16, external: u16, lifetime: u32, epoch: u32) -> Vec<u8> {
    let mut out = header(operation(protocol), 0, epoch);
    put_mapping(&mut out, port, external, lifetime);
    out
}

/// Returns the answer that refuses a request. NAT-PMP has fewer result codes than PCP. RFC 6886 section 3.5.
pub fn error_response(request: &[u8], refusal: ResultCode, epoch: u32) -> Vec<u8> {
    let code = match refusal {
        ResultCode::UnsupportedVersion => 1,
        ResultCode::NotAuthorized | ResultCode::AddressMismatch => 2,
        ResultCode::NoResources | ResultCode::UserExceedsQuota => 4,
        ResultCode::UnsupportedOpcode | ResultCode::UnsupportedProtocol => 5,
        _ => 3,
    };
    let mut out = header(request.get(1).copied().unwrap_or_default(), code, epoch);
    if let Some(mapping) = request.get(4..12) {
        out.put_slice(mapping);
    }
    out
}

fn header(operation: u8, result: u16, epoch: u32) -> Vec<u8> {
    let mut out = vec![VERSION, operation | ANSWER_BIT];
    out.put_u16(result);
    out.put_u32(epoch);
    out
}
