//! Rate limits of logins and registrations.
//!
//! Wrong passwords are counted for a name *and* the network they come from, so that no user can lock out another user.
//! Unknown names are counted like known names.

use super::rate_limit::RateLimit;
use crate::refusal::Refusal;

/// The attempts of each network.
#[derive(Debug)]
pub struct Attempts {
    /// Wrong passwords by network and name.
    names: RateLimit,
    /// Wrong passwords by network, for all names.
    networks: RateLimit,
    registrations: RateLimit,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            names: RateLimit::new(8, 30),
            networks: RateLimit::new(64, 30),
            registrations: RateLimit::new(10, 600),
        }
    }
}

impl Attempts {
    /// Counts a password for `name` before it is checked, so that concurrent attempts are counted, too.
    pub fn log_in(&mut self, network: &str, name: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many wrong passwords", seconds);
        self.names.count_event(&name_at_network(network, name), now).map_err(refused)?;
        self.networks.count_event(network, now).map_err(refused)
    }

    /// Resets the count of wrong passwords for `name` after the right one.
    pub fn log_in_succeeded(&mut self, network: &str, name: &str) {
        self.names.reset(&name_at_network(network, name));
        self.networks.uncount_event(network);
    }

    /// Counts a registration, even if the name is already in use.
    pub fn register(&mut self, network: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many registrations from this address", seconds);
        self.registrations.count_event(network, now).map_err(refused)
    }
}

/// Returns the key of a name and a network; neither part contains a space.
fn name_at_network(network: &str, name: &str) -> String {
    format!("{network} {name}")
}
