//! The address and port pools of a NAT. RFC 4540 sections 8.2.3 and 8.3.3.

mod ports;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use self::ports::Ports;
use crate::{
    AddressTuple, Addresses, Binding, Change, IpVersion, Location, PortMapping, Refusal, ReservedParity, Rule,
};

/// The addresses of a NAT on both sides.
#[derive(Debug)]
pub(crate) struct Nat {
    pub outside: Pool,
    pub inside: Pool,
}

/// The addresses on one side of the NAT.
#[derive(Debug)]
pub(crate) struct Pool {
    location: Location,
    ports: RangeInclusive<u16>,
    addresses: Vec<(IpAddr, Address)>,
    /// Index of each address in `addresses`.
    indices: BTreeMap<IpAddr, usize>,
}

/// What rules use of an address: the whole address, or ports of protocols.
#[derive(Debug, Default)]
struct Address {
    is_taken: bool,
    /// Whether ports outside the pool's range serve flows without a rule, so that no rule gets the address as a whole.
    is_shared: bool,
    protocols: BTreeMap<u8, Ports>,
}

/// The address and ports that a rule needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolRequest {
    pub version: IpVersion,
    /// IP protocol number; 0 means the whole address.
    pub protocol: u8,
    pub ports: RequestedPorts,
}

/// The ports that a rule needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RequestedPorts {
    /// All ports of the protocol.
    All,
    /// A number of consecutive ports, and the parity of the first one.
    Range(u16, ReservedParity),
}

impl PoolRequest {
    /// Returns true if a whole address is needed: for all protocols, or for all ports of one protocol.
    fn takes_address(&self) -> bool {
        self.protocol == 0 || matches!(self.ports, RequestedPorts::All)
    }
}

impl Nat {
    /// Returns the number of addresses, which is the maximum that a search examines.
    pub fn len(&self) -> usize {
        self.outside.addresses.len() + self.inside.addresses.len()
    }

    /// Releases the addresses and ports of the rule before the change, and assigns those of the rule after it.
    pub fn apply(&mut self, change: &Change) {
        if self.outside.addresses.is_empty() {
            return;
        }
        let binding = |rule: Option<Rule>| rule.map_or(Binding::default(), |rule| rule.binding());
        let (before, after) = (binding(change.before), binding(change.after));
        if before != after {
            before.outside.iter().for_each(|tuple| self.outside.set_taken(tuple, false));
            before.inside.iter().for_each(|tuple| self.inside.set_taken(tuple, false));
            after.outside.iter().for_each(|tuple| self.outside.set_taken(tuple, true));
            after.inside.iter().for_each(|tuple| self.inside.set_taken(tuple, true));
        }
    }

    /// Returns true if no rule uses any of these addresses and ports. Addresses that no longer belong to the NAT count
    /// as free.
    pub fn is_free(&self, binding: &Binding) -> bool {
        let is_free =
            |pool: &Pool, tuple: &Option<AddressTuple>| tuple.as_ref().is_none_or(|t| pool.is_free(t));
        is_free(&self.outside, &binding.outside) && is_free(&self.inside, &binding.inside)
    }
}

impl Pool {
    pub fn new(location: Location, addresses: &[IpAddr], ports: RangeInclusive<u16>) -> Self {
        let indices = addresses.iter().copied().zip(0..).collect();
        let addresses = addresses.iter().map(|address| (*address, Address::default())).collect();
        Self { location, ports, addresses, indices }
    }

    /// Returns the pool with these addresses marked as shared, which means that their ports outside the pool's range
    /// serve flows without a rule.
    pub fn with_shared(mut self, addresses: &[IpAddr]) -> Self {
        for (address, state) in &mut self.addresses {
            state.is_shared = addresses.contains(address);
        }
        self
    }

    /// Returns an address and ports that are free. RFC 4540 names the refusals "lack of IP addresses" and "lack of port
    /// numbers", but not when they apply. Here ports are lacking if the request is for some ports of an address, and
    /// there is an address of its version that is not assigned as a whole; otherwise addresses are lacking.
    pub fn find(&self, request: PoolRequest) -> Result<AddressTuple, Refusal> {
        let mut refusal = Refusal::LackOfAddresses;
        for (address, taken) in &self.addresses {
            if IpVersion::of(*address) != request.version || taken.is_taken {
                continue;
            }
            if let Some((port, port_range)) = taken.find(request, &self.ports) {
                let addresses = Addresses::Full { address: *address, port, port_range };
                let (location, protocol) = (self.location, request.protocol);
                let prefix_length = request.version.address_bits();
                return Ok(AddressTuple { location, protocol, prefix_length, addresses });
            }
            if !request.takes_address() {
                refusal = Refusal::LackOfPorts;
            }
        }
        Err(refusal)
    }

    /// Returns the address and port that a port mapping requests. If they are not free, returns others, or a refusal if
    /// the mapping requires exactly these.
    pub fn find_for_mapping(
        &self,
        mapping: Option<PortMapping>,
        request: PoolRequest,
    ) -> Result<AddressTuple, Refusal> {
        let Some(mapping) = mapping else { return self.find(request) };
        match self.find_suggested(mapping.outside, request) {
            Some(tuple) => Ok(tuple),
            None if mapping.is_exact => Err(Refusal::LackOfPorts),
            None => self.find(request),
        }
    }

    fn find_suggested(&self, outside: SocketAddr, request: PoolRequest) -> Option<AddressTuple> {
        let RequestedPorts::Range(1, ReservedParity::Any) = request.ports else { return None };
        let matches_request = |address: IpAddr| {
            IpVersion::of(address) == request.version
                && (outside.ip().is_unspecified() || outside.ip() == address)
        };
        let addresses =
            self.addresses.iter().map(|(address, _)| *address).filter(|address| matches_request(*address));
        let mut tuples = addresses.map(|address| {
            AddressTuple::of_host(self.location, request.protocol, SocketAddr::new(address, outside.port()))
        });
        tuples.find(|tuple| self.ports.contains(&outside.port()) && self.is_free(tuple))
    }

    /// Returns true if the pool has an address of this version, whether free or not.
    pub fn has_version(&self, version: IpVersion) -> bool {
        self.addresses.iter().any(|(address, _)| IpVersion::of(*address) == version)
    }

    fn is_free(&self, tuple: &AddressTuple) -> bool {
        let Addresses::Full { address, .. } = tuple.addresses else { return false };
        let Some(index) = self.indices.get(&address) else { return true };
        let (_, state) = &self.addresses[*index];
        let (first, last) = tuple.ports();
        let is_ours = first >= u32::from(*self.ports.start()) && last <= u32::from(*self.ports.end());
        !state.is_taken
            && (is_ours || !state.is_shared)
            && last <= u32::from(u16::MAX)
            && match state.protocols.get(&tuple.protocol) {
                _ if tuple.has_protocol_wildcard() => state.is_free(),
                ports => ports.is_none_or(|ports| ports.is_range_free((first, last))),
            }
    }

    fn set_taken(&mut self, tuple: &AddressTuple, taken: bool) {
        let Addresses::Full { address, .. } = tuple.addresses else { return };
        let Some(index) = self.indices.get(&address) else { return };
        let (_, state) = &mut self.addresses[*index];
        if tuple.has_protocol_wildcard() {
            state.is_taken = taken;
            return;
        }
        let ports = state.protocols.entry(tuple.protocol).or_insert_with(|| Ports::new(&self.ports));
        ports.mark(tuple.ports(), taken);
    }
}

impl Address {
    /// Returns true if rules use no port of any protocol.
    fn is_free(&self) -> bool {
        self.protocols.values().all(Ports::are_free)
    }

    /// Returns the first port and the number of ports, where port 0 means all ports; `None` if the address does not
    /// have enough free ports.
    fn find(&self, request: PoolRequest, usable: &RangeInclusive<u16>) -> Option<(u16, u16)> {
        const ALL_PORTS: (u16, u16) = (0, 1);
        if request.takes_address() && self.is_shared {
            return None;
        }
        if request.protocol == 0 {
            return self.is_free().then_some(ALL_PORTS);
        }
        let ports = self.protocols.get(&request.protocol);
        match request.ports {
            RequestedPorts::All => ports.is_none_or(Ports::are_free).then_some(ALL_PORTS),
            RequestedPorts::Range(count, parity) => {
                let first = match ports {
                    Some(ports) => ports.find(count, parity),
                    None => Ports::new(usable).find(count, parity),
                };
                Some((first?, count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(ports: RangeInclusive<u16>) -> Pool {
        Pool::new(Location::Outside, &["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()], ports)
    }

    fn udp(count: u16, parity: ReservedParity) -> PoolRequest {
        PoolRequest { version: IpVersion::V4, protocol: 17, ports: RequestedPorts::Range(count, parity) }
    }

    fn take(pool: &mut Pool, request: PoolRequest) -> Result<String, Refusal> {
        let tuple = pool.find(request)?;
        pool.set_taken(&tuple, true);
        let Addresses::Full { address, port, .. } = tuple.addresses else { unreachable!() };
        Ok(format!("{address}:{port}"))
    }

    /// RFC 4540 section 4.3.9.
    #[test]
    fn consecutive_ports_have_the_requested_parity() {
        let mut pool = pool(1001..=1010);
        assert_eq!(take(&mut pool, udp(2, ReservedParity::Even)), Ok("192.0.2.1:1002".into()));
        assert_eq!(take(&mut pool, udp(1, ReservedParity::Odd)), Ok("192.0.2.1:1005".into()));
        assert_eq!(take(&mut pool, udp(4, ReservedParity::Any)), Ok("192.0.2.1:1006".into()));
        assert_eq!(take(&mut pool, udp(4, ReservedParity::Any)), Ok("192.0.2.2:1001".into()));
        assert_eq!(take(&mut pool, udp(1, ReservedParity::Any)), Ok("192.0.2.1:1010".into()));
    }

    /// RFC 4540 section 4.2.3, codes 0x48 and 0x49.
    #[test]
    fn missing_ports_and_missing_addresses_are_distinguished() {
        let mut pool = pool(1..=2);
        assert_eq!(take(&mut pool, udp(3, ReservedParity::Any)), Err(Refusal::LackOfPorts));
        let v6 = PoolRequest { version: IpVersion::V6, ..udp(1, ReservedParity::Any) };
        assert_eq!(take(&mut pool, v6), Err(Refusal::LackOfAddresses));
        let is_taken = PoolRequest { protocol: 0, ..udp(1, ReservedParity::Any) };
        assert_eq!(take(&mut pool, is_taken), Ok("192.0.2.1:0".into()));
        let all_ports = PoolRequest { ports: RequestedPorts::All, ..udp(1, ReservedParity::Any) };
        assert_eq!(take(&mut pool, all_ports), Ok("192.0.2.2:0".into()));
        assert_eq!(take(&mut pool, is_taken), Err(Refusal::LackOfAddresses));
        assert_eq!(take(&mut pool, all_ports), Err(Refusal::LackOfAddresses));
        assert_eq!(take(&mut pool, udp(1, ReservedParity::Any)), Err(Refusal::LackOfPorts));
    }

    /// A rule does not get a shared address as a whole, because other ports of the address serve flows without a rule.
    #[test]
    fn a_shared_address_is_not_assigned_as_a_whole() {
        let mut pool = pool(1001..=1010).with_shared(&["192.0.2.1".parse().unwrap()]);
        let is_taken = PoolRequest { protocol: 0, ..udp(1, ReservedParity::Any) };
        let all_ports = PoolRequest { ports: RequestedPorts::All, ..udp(1, ReservedParity::Any) };
        let [of_shared, other] = ["192.0.2.1:1000", "192.0.2.2:1000"]
            .map(|host| AddressTuple::of_host(Location::Outside, 17, host.parse().unwrap()));
        assert!(!pool.is_free(&of_shared), "recorded when the pool was larger");
        assert!(pool.is_free(&other));
        for request in [is_taken, all_ports] {
            let tuple = pool.find(request).unwrap();
            let Addresses::Full { address, .. } = tuple.addresses else { unreachable!() };
            assert_eq!(address.to_string(), "192.0.2.2");
            let on_shared = Addresses::Full { address: "192.0.2.1".parse().unwrap(), port: 0, port_range: 1 };
            assert!(!pool.is_free(&AddressTuple { addresses: on_shared, ..tuple }));
        }
        assert_eq!(take(&mut pool, udp(1, ReservedParity::Any)), Ok("192.0.2.1:1001".into()));
    }

    #[test]
    fn a_released_port_is_found_again() {
        let mut pool = pool(60_000..=65_535);
        let one = udp(1, ReservedParity::Any);
        let first = pool.find(one).unwrap();
        for _ in 0..2 * 5536 {
            take(&mut pool, one).unwrap();
        }
        assert_eq!(take(&mut pool, one), Err(Refusal::LackOfPorts));
        pool.set_taken(&first, false);
        assert_eq!(take(&mut pool, one), Ok("192.0.2.1:60000".into()));
    }
}
