//! A request of a host in either protocol, and its answer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use hol_base::Time;
use hol_pcp::{Filter, Mapping, Operation, Request, ResultCode, nat_pmp, reply};
use hol_simco::{
    AddressTuple, Addresses, Direction, Enable, IpVersion, Lifetime, Location, PerParameters, PortMapping,
    PortParity,
};

use super::table::{GrantedMapping, Key};

/// A host's request for a port mapping.
#[derive(Debug, Clone)]
pub(crate) struct MappingRequest {
    pub key: Key,
    /// Requested lifetime in seconds; 0 deletes the mapping.
    pub lifetime: u32,
    pub nonce: Option<[u8; 12]>,
    pub outside: PortMapping,
    pub filter: Option<Filter>,
    /// The request as the host sent it, which determines the form of the answer.
    pub original: OriginalRequest,
}

/// The request as the host sent it, with PCP or NAT-PMP.
#[derive(Debug, Clone)]
pub(crate) enum OriginalRequest {
    Pcp(Operation),
    NatPmp,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

impl MappingRequest {
    /// The minimum lifetime of a mapping in seconds. RFC 6887 section 15.
    const MIN_LIFETIME: u32 = 120;

    /// Converts a PCP request of a host to a request for a mapping; `None` for ANNOUNCE.
    pub fn from_pcp(
        Request { lifetime, client, operation }: Request,
        host: IpAddr,
    ) -> Result<Option<Self>, ResultCode> {
        if client != host {
            return Err(ResultCode::AddressMismatch);
        }
        let (mapping, remote, filter, is_exact) = match &operation {
            Operation::Announce => return Ok(None),
            Operation::Map { mapping, prefer_failure, filters } => {
                (*mapping, None, single_filter(filters)?, *prefer_failure && mapping.external.port() != 0)
            }
            Operation::Peer { mapping, remote } => (*mapping, Some(*remote), None, false),
        };
        let Mapping { nonce, protocol, port, external } = mapping;
        let others = remote.map(|remote| remote.ip()).into_iter().chain(filter.map(|filter| filter.address));
        if others.into_iter().any(|other| other.is_ipv4() != host.is_ipv4()) {
            return Err(ResultCode::UnsupportedProtocol);
        }
        let key = Key { host, protocol, port, remote };
        let outside = PortMapping { outside: external, is_exact };
        Ok(Some(Self {
            key,
            lifetime,
            nonce: Some(nonce),
            outside,
            filter,
            original: OriginalRequest::Pcp(operation),
        }))
    }

    /// Converts a NAT-PMP request of a host to a request for a mapping.
    pub fn from_nat_pmp(host: IpAddr, protocol: u8, port: u16, external: u16, lifetime: u32) -> Self {
        let key = Key { host, protocol, port, remote: None };
        let outside = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), external);
        let outside = PortMapping { outside, is_exact: false };
        Self { key, lifetime, nonce: None, outside, filter: None, original: OriginalRequest::NatPmp }
    }

    /// Returns true if the request is for a single port of a protocol with ports.
    pub fn is_single_port(&self) -> bool {
        let Key { protocol, port, remote, .. } = self.key;
        matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
            && port > 0
            && remote.is_none_or(|remote| remote.port() > 0)
    }

    pub fn seconds(&self) -> Lifetime {
        Lifetime(self.lifetime.max(Self::MIN_LIFETIME))
    }

    /// Returns the direction of data that the SIMCO request enables. For MAP with TCP, SCTP or DCCP these are inbound
    /// connections, because the gateway lets the replies pass in any case; otherwise they are data in both directions.
    pub fn enable(&self) -> Enable {
        let Key { host, protocol, port, remote } = self.key;
        let internal = AddressTuple::of_host(Location::Internal, protocol, SocketAddr::new(host, port));
        let is_inbound = remote.is_none() && !matches!(protocol, UDP | UDP_LITE);
        let direction = if is_inbound { Direction::Inbound } else { Direction::BiDirectional };
        let parameters = PerParameters { parity: PortParity::Any, direction };
        Enable { parameters, internal, external: self.external(), lifetime: self.seconds() }
    }

    /// Returns the external address tuple (A3): the peer, the hosts of a filter, or all hosts.
    fn external(&self) -> AddressTuple {
        let of_host = |host| AddressTuple::of_host(Location::External, self.key.protocol, host);
        match (self.key.remote, self.filter) {
            (Some(remote), _) => of_host(remote),
            (None, Some(Filter { prefix_length, address, port })) => {
                AddressTuple { prefix_length, ..of_host(SocketAddr::new(address, port)) }
            }
            (None, None) => {
                let anybody = Addresses::ProtocolsOnly(IpVersion::of(self.key.host));
                let host = SocketAddr::new(self.key.host, 0);
                AddressTuple { prefix_length: 0, addresses: anybody, ..of_host(host) }
            }
        }
    }

    /// Returns the encoded answer that grants the request.
    pub fn grant(&self, granted: &GrantedMapping, now: Time, epoch: u32) -> Vec<u8> {
        let lifetime = granted.until.saturating_since(now).as_nanos().div_ceil(1_000_000_000);
        self.answer(granted.outside, u32::try_from(lifetime).unwrap_or(u32::MAX), epoch)
    }

    /// Returns the encoded answer that confirms the deletion of the mapping.
    pub fn confirm_deletion(&self, epoch: u32) -> Vec<u8> {
        let nothing = match self.original {
            OriginalRequest::Pcp(_) => self.outside.outside,
            OriginalRequest::NatPmp => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        self.answer(nothing, 0, epoch)
    }

    fn answer(&self, outside: SocketAddr, lifetime: u32, epoch: u32) -> Vec<u8> {
        match &self.original {
            OriginalRequest::NatPmp => {
                nat_pmp::mapping_response(self.key.protocol, self.key.port, outside.port(), lifetime, epoch)
            }
            OriginalRequest::Pcp(operation) => {
                let mut granted = operation.clone();
                granted.mapping_mut().into_iter().for_each(|mapping| mapping.external = outside);
                reply::success_response(&granted, lifetime, epoch)
            }
        }
    }
}

/// Returns the filter if there is exactly one, `None` if there is none. Several filters are refused, because a rule has
/// only one set of external hosts.
fn single_filter(filters: &[Filter]) -> Result<Option<Filter>, ResultCode> {
    match filters {
        [] => Ok(None),
        [filter] => Ok(Some(*filter)),
        _ => Err(ResultCode::ExcessiveRemotePeers),
    }
}
