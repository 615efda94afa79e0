//! Connections that have not authenticated yet, limited per source address.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use hol_simco::SessionId;

/// The connections that have not authenticated, by source; each has a number by order of arrival.
#[derive(Debug, Default)]
pub(crate) struct UnauthenticatedConnections {
    arrivals: BTreeMap<SessionId, (Source, u64)>,
    sources: BTreeMap<Source, BTreeMap<u64, SessionId>>,
    /// The sources in the order of their number of connections. Of sources with equally many, that with the oldest
    /// connection is last.
    ranks: BTreeSet<(usize, Reverse<u64>, Source)>,
    /// The number of connections that have arrived so far.
    count: u64,
}

/// The source of a connection: an IPv4 address, or an IPv6 network with a prefix of 64 bits, because a single host may
/// have such a network.
type Source = IpAddr;

fn source_of(address: IpAddr) -> Source {
    match address {
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => v4.into(),
            None => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        },
        v4 => v4,
    }
}

impl UnauthenticatedConnections {
    pub fn add(&mut self, id: SessionId, address: IpAddr) {
        let source = source_of(address);
        self.count += 1;
        let number = self.count;
        self.arrivals.insert(id, (source, number));
        self.change(source, |connections| connections.insert(number, id));
    }

    /// Removes a connection that has authenticated or ended.
    pub fn remove(&mut self, id: SessionId) {
        if let Some((source, number)) = self.arrivals.remove(&id) {
            self.change(source, |connections| connections.remove(&number));
        }
    }

    pub fn has(&self, id: SessionId) -> bool {
        self.arrivals.contains_key(&id)
    }

    pub fn len(&self) -> usize {
        self.arrivals.len()
    }

    /// Returns the connection to be closed in favour of a new one: the oldest connection of the source with the most
    /// connections.
    pub fn next_to_displace(&self) -> Option<SessionId> {
        let (_, _, source) = self.ranks.last()?;
        self.sources.get(source)?.values().next().copied()
    }

    fn change<R>(&mut self, source: Source, change: impl FnOnce(&mut BTreeMap<u64, SessionId>) -> R) {
        let rank = |connections: &BTreeMap<u64, SessionId>| {
            Some((connections.len(), Reverse(*connections.first_key_value()?.0), source))
        };
        let connections = self.sources.entry(source).or_default();
        let before = rank(connections);
        change(connections);
        let after = rank(connections);
        if let Some(before) = before {
            self.ranks.remove(&before);
        }
        if after.is_none() {
            self.sources.remove(&source);
        }
        self.ranks.extend(after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_oldest_connection_of_the_largest_source_is_displaced() {
        let mut connections = UnauthenticatedConnections::default();
        connections.add(SessionId(0), address("192.0.2.1"));
        (1..4).for_each(|id| connections.add(SessionId(id), address("192.0.2.66")));
        connections.add(SessionId(4), address("192.0.2.2"));
        let displaced: Vec<u32> = std::iter::from_fn(|| {
            let id = connections.next_to_displace()?;
            connections.remove(id);
            Some(id.0)
        })
        .collect();
        assert_eq!(displaced, [1, 2, 0, 3, 4], "of equal shares the oldest of all goes first");
        assert!(connections.sources.is_empty() && connections.ranks.is_empty());
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_are_one_source() {
        let mut connections = UnauthenticatedConnections::default();
        connections.add(SessionId(0), address("2001:db8::1"));
        connections.add(SessionId(1), address("2001:db8:0:1::1"));
        connections.add(SessionId(2), address("2001:db8:0:1:ffff::2"));
        assert_eq!(connections.next_to_displace(), Some(SessionId(1)));
        connections.add(SessionId(3), address("::ffff:192.0.2.1"));
        connections.remove(SessionId(1));
        connections.add(SessionId(4), address("192.0.2.1"));
        assert_eq!(connections.next_to_displace(), Some(SessionId(3)));
    }
}
