//! Which addresses of the hosts are there, and when that changes.

use hol_base::Time;
use hol_network::{AddressChange, Topology};
use hol_wire::Address;

/// Addresses that come and go.
#[derive(Debug)]
pub(crate) struct Presence {
    absent: Vec<Address>,
    /// The next one last.
    changes: Vec<AddressChange>,
}

impl Presence {
    /// At the start of the run: what comes is not there yet.
    pub(crate) fn new(topology: &Topology) -> Self {
        let changes: Vec<_> = topology.address_changes().iter().rev().copied().collect();
        let absent = changes.iter().filter(|change| change.comes).map(|change| change.address).collect();
        Self { absent, changes }
    }

    /// When the next one comes or goes.
    pub(crate) fn next_change(&self) -> Time {
        self.changes.last().map_or(Time::MAX, |change| change.at)
    }

    /// What comes or goes now.
    pub(crate) fn change(&mut self) -> Option<AddressChange> {
        let change = self.changes.pop()?;
        self.absent.retain(|absent| *absent != change.address);
        if !change.comes {
            self.absent.push(change.address);
        }
        Some(change)
    }

    /// The next address that comes.
    pub(crate) fn coming(&self) -> Option<Address> {
        self.changes.iter().rev().find(|change| change.comes).map(|change| change.address)
    }

    /// Whether its host has it.
    pub(crate) fn has(&self, address: Address) -> bool {
        !self.absent.contains(&address)
    }
}
