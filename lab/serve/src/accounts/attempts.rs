//! Limits of what people without a session may try.
//!
//! Wrong passwords count for a name *and* the network they come from: nobody can lock out somebody else. Names that
//! nobody has count like others.

use super::allowance::Allowance;
use crate::refusal::Refusal;

/// What each network has tried.
#[derive(Debug)]
pub struct Attempts {
    /// Wrong passwords for one name.
    names: Allowance,
    /// Wrong passwords for any names.
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
    /// Counts a password for `name` before it is checked: attempts at the same time count, too.
    pub fn log_in(&mut self, network: &str, name: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many wrong passwords", seconds);
        self.names.take(&both(network, name), now).map_err(refused)?;
        self.networks.take(network, now).map_err(refused)
    }

    /// Forgets wrong passwords for `name` after the right one.
    pub fn right(&mut self, network: &str, name: &str) {
        self.names.forget(&both(network, name));
        self.networks.give_back(network);
    }

    /// Counts a registration, also of a name that is taken.
    pub fn register(&mut self, network: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many registrations from this address", seconds);
        self.registrations.take(network, now).map_err(refused)
    }
}

/// Neither has a space.
fn both(network: &str, name: &str) -> String {
    format!("{network} {name}")
}
