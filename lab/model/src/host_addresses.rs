//! The addresses of hosts during a run.

use hol_base::Time;
use hol_network::{AddressChange, Topology};
use hol_wire::Address;

/// The addresses that hosts have at the current time of the run.
#[derive(Debug)]
pub(crate) struct HostAddresses {
    absent_addresses: Vec<Address>,
    /// Future changes; the last entry happens next.
    changes: Vec<AddressChange>,
}

impl HostAddresses {
    /// Returns the addresses at the start of the run. Addresses that are added later are not included.
    pub(crate) fn new(topology: &Topology) -> Self {
        let changes: Vec<_> = topology.address_changes().iter().rev().copied().collect();
        let absent = changes.iter().filter(|change| change.is_added).map(|change| change.address).collect();
        Self { absent_addresses: absent, changes }
    }

    /// Returns the time of the next change; [`Time::MAX`] if there is none.
    pub(crate) fn next_change(&self) -> Time {
        self.changes.last().map_or(Time::MAX, |change| change.at)
    }

    /// Applies the next change and returns it.
    pub(crate) fn apply_next_change(&mut self) -> Option<AddressChange> {
        let change = self.changes.pop()?;
        self.absent_addresses.retain(|absent| *absent != change.address);
        if !change.is_added {
            self.absent_addresses.push(change.address);
        }
        Some(change)
    }

    /// Returns the address that will be added next; `None` if none will be.
    pub(crate) fn next_address(&self) -> Option<Address> {
        self.changes.iter().rev().find(|change| change.is_added).map(|change| change.address)
    }

    /// Returns whether the host to which this address belongs has it at present.
    pub(crate) fn has(&self, address: Address) -> bool {
        !self.absent_addresses.contains(&address)
    }
}
