//! Rate limits of logins and registrations.
//!
//! Wrong passwords are counted for a name *and* the network they come from. Many of them delay further attempts
//! instead of preventing them, so that nobody in another network can lock out a user. Unknown names are counted like known names.

use super::rate_limit::RateLimit;
use crate::refusal::Refusal;

/// Maximum delay of an attempt in seconds.
const MAX_DELAY: u32 = 30;
/// Maximum number of characters of a name in a key; names of accounts are shorter.
const MAX_NAME_LENGTH: usize = 100;

/// Counts the logins and registrations that clients attempt, by network.
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
    /// Counts an attempt to log in as `name`. Returns how many seconds must pass before the password may be
    /// checked.
    pub fn count_login(&mut self, network: &str, name: &str, now: i64) -> u32 {
        let excess = self.names.count_excess_event(&name_at_network(network, name), now);
        match excess.max(self.networks.count_excess_event(network, now)) {
            0 => 0,
            excess => MAX_DELAY.min(1 << (excess - 1)),
        }
    }

    /// Resets the count of wrong passwords for `name` after the right one.
    pub fn reset_login_count(&mut self, network: &str, name: &str) {
        self.names.reset(&name_at_network(network, name));
        self.networks.uncount_event(network);
    }

    /// Counts a registration, even if the name is already in use.
    pub fn count_registration(&mut self, network: &str, now: i64) -> Result<(), Refusal> {
        let refused = |seconds| Refusal::too_many("too many registrations from this address", seconds);
        self.registrations.count_event(network, now).map_err(refused)
    }
}

/// Returns the key of a name and a network, which contains no space. Names that differ only in upper and lower case
/// have the same key.
pub fn name_at_network(network: &str, name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_LENGTH).collect();
    format!("{network} {}", name.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One attempt after another gets slower, up to one in 30 s.
    #[test]
    fn delay_grows_with_wrong_passwords_and_ends_with_the_right_one() {
        let mut attempts = Attempts::default();
        let mut now = 1000;
        let mut log_in = |attempts: &mut Attempts| {
            let delay = attempts.count_login("192.0.2.1", "ann", now);
            now += i64::from(delay);
            delay
        };
        let delays: Vec<u32> = (0..20).map(|_| log_in(&mut attempts)).collect();
        assert_eq!(delays[..13], [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16]);
        assert!(delays[13..].iter().all(|delay| [16, 30].contains(delay)), "{delays:?}");
        assert_eq!(attempts.count_login("192.0.2.2", "ann", now), 0);
        attempts.reset_login_count("192.0.2.1", "ANN");
        assert_eq!(attempts.count_login("192.0.2.1", "ann", now), 0);
    }
}
