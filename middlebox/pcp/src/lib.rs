//! PCP (RFC 6887) and its predecessor NAT-PMP (RFC 6886): a host asks its gateway to make one of its ports
//! reachable.
//!
//! Converts datagrams to values and back. Both protocols use the same port of the gateway and differ in their
//! first octet, the version: [`parse`]. The gateway decides about requests; this crate has the formats, and
//! the answers to invalid datagrams.
//!
//! ```
//! use hol_pcp::{DatagramRequest, Operation, ResultCode, parse, reply};
//!
//! let announce = [&[2, 0, 0, 0, 0, 0, 0, 0][..], &[0; 10], &[0xff, 0xff, 192, 0, 2, 7]].concat();
//! let Ok(Some(DatagramRequest::Pcp(request))) = parse(&announce) else { unreachable!() };
//! assert_eq!(request.operation, Operation::Announce);
//! assert_eq!(reply::error_response(&announce, ResultCode::AddressMismatch, 7)[3], 12);
//! ```

mod address;
pub mod nat_pmp;
mod option;
pub mod reply;
mod request;
mod result_code;

pub use option::Filter;
pub use request::{Mapping, Operation, Request};
pub use result_code::ResultCode;

/// The UDP port at which gateways accept PCP and NAT-PMP. RFC 6887 section 19.1.
pub const PORT: u16 = 5351;

/// A request of PCP or NAT-PMP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatagramRequest {
    /// A request of PCP.
    Pcp(Request),
    /// A request of NAT-PMP.
    NatPmp(nat_pmp::Request),
}

/// Parses a datagram; `None` if it must be ignored. For an invalid request returns the result code, which
/// [`reply::error_response`] encodes for PCP and [`nat_pmp::error_response`] for version 0. RFC 6887 section 8.3.
pub fn parse(octets: &[u8]) -> Result<Option<DatagramRequest>, ResultCode> {
    match octets {
        [] | [_] => Ok(None),
        // Another server's answer.
        [_, operation, ..] if operation & 0x80 != 0 => Ok(None),
        [nat_pmp::VERSION, ..] => {
            nat_pmp::Request::parse(octets).map(|request| request.map(DatagramRequest::NatPmp))
        }
        [request::VERSION, ..] => Request::parse(octets).map(DatagramRequest::Pcp).map(Some),
        _ => Err(ResultCode::UnsupportedVersion),
    }
}
