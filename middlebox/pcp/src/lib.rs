//! PCP (RFC 6887) and its predecessor NAT-PMP (RFC 6886): how a host asks its gateway to let others reach one of its ports.
//!
//! Datagrams to values and back. Both come to the same port of the gateway and are told apart by their first octet, the
//! version: [`hear`]. Who gets what is the gateway's affair; here are the formats, and what a server answers to a datagram
//! that is none.
//!
//! ```
//! use hol_pcp::{Heard, Operation, Refusal, hear, reply};
//!
//! let announce = [&[2, 0, 0, 0, 0, 0, 0, 0][..], &[0; 10], &[0xff, 0xff, 192, 0, 2, 7]].concat();
//! let Ok(Some(Heard::Pcp(request))) = hear(&announce) else { unreachable!() };
//! assert_eq!(request.operation, Operation::Announce);
//! assert_eq!(reply::refusal(&announce, Refusal::AddressMismatch, 7)[3], 12);
//! ```

mod address;
pub mod nat_pmp;
mod option;
mod refusal;
pub mod reply;
mod request;

pub use option::Filter;
pub use refusal::Refusal;
pub use request::{Mapping, Operation, Request};

/// The port of a gateway for both protocols. RFC 6887 section 19.1.
pub const PORT: u16 = 5351;

/// A request of either protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// PCP.
    Pcp(Request),
    /// NAT-PMP.
    NatPmp(nat_pmp::Request),
}

/// What a datagram asks for; `None` if it is to be passed over in silence. If it asks for nothing that there is, the answer
/// is [`reply::refusal`] for PCP and [`nat_pmp::refusal`] for version 0. RFC 6887 section 8.3.
pub fn hear(octets: &[u8]) -> Result<Option<Heard>, Refusal> {
    match octets {
        [] | [_] => Ok(None),
        // Another server's answer.
        [_, operation, ..] if operation & 0x80 != 0 => Ok(None),
        [nat_pmp::VERSION, ..] => nat_pmp::Request::parse(octets).map(|heard| heard.map(Heard::NatPmp)),
        [request::VERSION, ..] => Request::parse(octets).map(Heard::Pcp).map(Some),
        _ => Err(Refusal::UnsupportedVersion),
    }
}
