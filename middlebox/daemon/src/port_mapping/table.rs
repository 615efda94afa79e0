//! Granted port mappings. Each is a rule.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hol_base::Time;
use hol_pcp::Filter;
use hol_simco::{Action, AddressTuple, Addresses, AgentId, Pid, Rule};

/// What identifies a mapping. RFC 6887 sections 11.3 and 12.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub host: IpAddr,
    pub protocol: u8,
    pub port: u16,
    /// The remote peer of a mapping requested with PEER; `None` for other mappings.
    pub remote: Option<SocketAddr>,
}

/// A mapping that a host has been granted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GrantedMapping {
    pub pid: Pid,
    /// The nonce that a request to change the mapping must contain. `None` until a request with a nonce arrives:
    /// NAT-PMP has no nonces, and the journal does not record them.
    pub nonce: Option<[u8; 12]>,
    /// The outside address and port of the mapping.
    pub outside: SocketAddr,
    /// The hosts that may use the mapping; `None` means all hosts.
    pub filter: Option<Filter>,
    /// When the mapping expires.
    pub until: Time,
    /// The agent to which the host belongs.
    pub agent: AgentId,
}

/// All port mappings, by key and by rule.
#[derive(Debug, Default)]
pub(crate) struct Table {
    mappings: BTreeMap<Key, GrantedMapping>,
    keys: BTreeMap<Pid, Key>,
    /// Number of mappings that the hosts of each agent have.
    counts: BTreeMap<AgentId, usize>,
}

impl Table {
    pub fn get(&self, key: &Key) -> Option<&GrantedMapping> {
        self.mappings.get(key)
    }

    pub fn insert(&mut self, key: Key, granted: GrantedMapping) {
        self.remove(&key);
        self.keys.insert(granted.pid, key);
        *self.counts.entry(granted.agent).or_default() += 1;
        self.mappings.insert(key, granted);
    }

    pub fn remove(&mut self, key: &Key) {
        if let Some(granted) = self.mappings.remove(key) {
            self.keys.remove(&granted.pid);
            *self.counts.get_mut(&granted.agent).expect("an agent with a mapping has a count") -= 1;
        }
    }

    /// Removes the mapping whose rule has ended.
    pub fn end(&mut self, pid: Pid) {
        if let Some(key) = self.keys.get(&pid).copied() {
            self.remove(&key);
        }
    }

    /// Updates the time at which a mapping expires, after its rule was extended.
    pub fn extend(&mut self, pid: Pid, until: Time) {
        if let Some(granted) = self.keys.get(&pid).and_then(|key| self.mappings.get_mut(key)) {
            granted.until = until;
        }
    }

    /// Returns the mappings of a host, with their keys.
    pub fn mappings_of(&self, host: IpAddr) -> impl Iterator<Item = (&Key, &GrantedMapping)> {
        let first = Key { host, protocol: 0, port: 0, remote: None };
        self.mappings.range(first..).take_while(move |(key, _)| key.host == host)
    }

    pub fn len(&self) -> usize {
        self.mappings.len()
    }

    /// Returns the number of mappings that the hosts of an agent have.
    pub fn count_of(&self, agent: AgentId) -> usize {
        self.counts.get(&agent).copied().unwrap_or_default()
    }

    /// Restores the mapping of a rule from the journal, if the rule belongs to a mapping.
    pub fn restore(&mut self, rule: &Rule) {
        if let Some((key, granted)) = mapping_of(rule) {
            self.insert(key, granted);
        }
    }
}

fn mapping_of(rule: &Rule) -> Option<(Key, GrantedMapping)> {
    let Action::Enable { internal, external, binding, .. } = rule.action else { return None };
    let inner = host_of(&internal)?;
    let outside = host_of(&binding.outside.unwrap_or(internal))?;
    let remote = host_of(&external);
    let filter = if remote.is_none() { filter_of(&external) } else { None };
    let key = Key { host: inner.ip(), protocol: internal.protocol, port: inner.port(), remote };
    Some((
        key,
        GrantedMapping {
            pid: rule.pid,
            nonce: None,
            outside,
            filter,
            until: rule.expires,
            agent: rule.owner,
        },
    ))
}

/// Returns the host and port of a tuple if it consists of a single host and a single port.
pub(crate) fn host_of(tuple: &AddressTuple) -> Option<SocketAddr> {
    match tuple.addresses {
        Addresses::Full { address, port: port @ 1.., port_range: 1 } if !tuple.has_address_wildcard() => {
            Some(SocketAddr::new(address, port))
        }
        _ => None,
    }
}

fn filter_of(external: &AddressTuple) -> Option<Filter> {
    match external.addresses {
        Addresses::Full { address, port, .. } => {
            Some(Filter { prefix_length: external.prefix_length, address, port })
        }
        Addresses::ProtocolsOnly(_) => None,
    }
}
