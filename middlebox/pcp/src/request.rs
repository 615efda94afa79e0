//! Requests of PCP. RFC 6887 sections 7.1, 11.1, 12.1 and 14.1.

use std::net::{IpAddr, SocketAddr};

use bytes::{Buf, BufMut};

use crate::option::{Filter, Options};
use crate::{ResultCode, address};

/// The version number of PCP. RFC 6887 section 7.
pub(crate) const VERSION: u8 = 2;
/// Length of the header of every message, in octets.
pub(crate) const HEADER_LENGTH: usize = 24;
/// Maximum length of a message, in octets.
pub(crate) const MAX_MESSAGE: usize = 1100;
const MAP_LENGTH: usize = 36;
const PEER_LENGTH: usize = 20;

/// A request that a host sends to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Requested lifetime in seconds; 0 deletes the mapping.
    pub lifetime: u32,
    /// The host's address as the host itself knows it. If it differs from the source address of the datagram, there is
    /// a NAT in between.
    pub client: IpAddr,
    /// The requested operation.
    pub operation: Operation,
}

/// An operation of PCP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Requests the epoch time, which shows whether the gateway has lost its state. RFC 6887 section 14.1.
    Announce,
    /// Makes a port of the host reachable from outside. RFC 6887 section 11.
    Map {
        /// The port of the host and its outside address.
        mapping: Mapping,
        /// Whether the request fails if the suggested address and port are not available. RFC 6887 section 13.2.
        prefer_failure: bool,
        /// The hosts that may use the mapping; empty: all hosts.
        filters: Vec<Filter>,
    },
    /// Keeps the mapping of a flow to a peer alive. RFC 6887 section 12.
    Peer {
        /// The port of the host and its outside address.
        mapping: Mapping,
        /// The address and port of the peer.
        remote: SocketAddr,
    },
}

/// A port of a host, and its outside address and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// A number that later requests must repeat to change or delete the mapping.
    pub nonce: [u8; 12],
    /// IP protocol number; 0 means all protocols.
    pub protocol: u8,
    /// The host's port; 0 means all ports.
    pub port: u16,
    /// The requested outside address and port. The unspecified address means any address, port 0 any port.
    pub external: SocketAddr,
}

impl Request {
    /// Parses a datagram of PCP version 2. RFC 6887 section 8.3.
    pub(crate) fn parse(octets: &[u8]) -> Result<Self, ResultCode> {
        if octets.len() > MAX_MESSAGE || octets.len() < HEADER_LENGTH || !octets.len().is_multiple_of(4) {
            return Err(ResultCode::MalformedRequest);
        }
        let mut rest = octets;
        let (_, operation) = (rest.get_u8(), rest.get_u8());
        rest.advance(2);
        let lifetime = rest.get_u32();
        let client = take_address(&mut rest);
        let operation = match operation {
            0 => Options::parse(rest, false).map(|_| Operation::Announce)?,
            1 => {
                let mapping = Mapping::parse(&mut rest, MAP_LENGTH)?;
                let Options { prefer_failure, filters } = Options::parse(rest, true)?;
                Operation::Map { mapping, prefer_failure, filters }
            }
            2 => {
                let mapping = Mapping::parse(&mut rest, MAP_LENGTH + PEER_LENGTH)?;
                let port = rest.get_u16();
                rest.advance(2);
                let remote = SocketAddr::new(take_address(&mut rest), port);
                Options::parse(rest, false)?;
                Operation::Peer { mapping, remote }
            }
            _ => return Err(ResultCode::UnsupportedOpcode),
        };
        Ok(Self { lifetime, client, operation })
    }

    /// Encodes the request as a datagram.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION, self.operation.code(), 0, 0];
        out.put_u32(self.lifetime);
        address::put(&mut out, self.client);
        self.operation.put(&mut out);
        out
    }
}

impl Operation {
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Announce => 0,
            Self::Map { .. } => 1,
            Self::Peer { .. } => 2,
        }
    }

    /// Appends the part after the header, which has the same format in a request and in its answer.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Announce => {}
            Self::Map { mapping, prefer_failure, filters } => {
                mapping.put(out);
                Options { prefer_failure: *prefer_failure, filters: filters.clone() }.put(out);
            }
            Self::Peer { mapping, remote } => {
                mapping.put(out);
                out.put_u16(remote.port());
                out.put_u16(0);
                address::put(out, remote.ip());
            }
        }
    }

    /// Returns the mapping of the operation, to fill in the granted values; `None` for ANNOUNCE.
    pub fn mapping_mut(&mut self) -> Option<&mut Mapping> {
        match self {
            Self::Announce => None,
            Self::Map { mapping, .. } | Self::Peer { mapping, .. } => Some(mapping),
        }
    }
}

impl Mapping {
    /// Parses the mapping in an operation whose part before the options has `length` octets.
    fn parse(rest: &mut &[u8], length: usize) -> Result<Self, ResultCode> {
        if rest.len() < length {
            return Err(ResultCode::MalformedRequest);
        }
        let mut nonce = [0; 12];
        rest.copy_to_slice(&mut nonce);
        let protocol = rest.get_u8();
        rest.advance(3);
        let (port, external) = (rest.get_u16(), rest.get_u16());
        Ok(Self { nonce, protocol, port, external: SocketAddr::new(take_address(rest), external) })
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.put_slice(&self.nonce);
        out.put_slice(&[self.protocol, 0, 0, 0]);
        out.put_u16(self.port);
        out.put_u16(self.external.port());
        address::put(out, self.external.ip());
    }
}

fn take_address(rest: &mut &[u8]) -> IpAddr {
    let mut octets = [0; 16];
    rest.copy_to_slice(&mut octets);
    address::parse(octets)
}
