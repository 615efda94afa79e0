//! Rate limits of logins and registrations.
//!
//! Wrong passwords are counted for a name *and* the network they come from, so that no user can lock out another one.
//! Unknown names are counted like known ones.

use super::allowance::Allowance;
use crate::refusal::Refusal;

/// The attempts of each network.
#[derive(Debug)]
pub struct Attempts {
    /// Wrong passwords by network and name.
    names: Allowance,
    /// Wrong passwords by network, for all names.
    networks: Allowance,
    registrations: Allowance,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            names: Allowance::new(8, 30),
            networks: Allowance::new(64, 30),
            registrations: Allowance::new(10, 600),
        }
    }
}

impl Attempts {
    /// Counts a password for `name` before it is checked, so that concurrent attempts are counted, too.
    pub fn log_in(&mut self, network: &str, name: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many wrong passwords", seconds);
        self.names.take(&both(network, name), now).map_err(refused)?;
        self.networks.take(network, now).map_err(refused)
    }

    /// Resets the count of wrong passwords for `name` after the right one.
    pub fn right(&mut self, network: &str, name: &str) {
        self.names.forget(&both(network, name));
        self.networks.give_back(network);
    }

    /// Counts a registration, even if the name is already in use.
    pub fn register(&mut self, network: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many registrations from this address", seconds);
        self.registrations.take(network, now).map_err(refused)
    }
}

/// Returns the key of a name and a network; neither part contains a space.
fn both(network: &str, name: &str) -> String {
    format!("{network} {name}")
}
