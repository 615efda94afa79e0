//! The named configuration: the `[udp]` table of a stack file, which gives the source of each value.

use hol_transport::ConfigError;

use crate::Config;

impl Config {
    /// Returns UDP without retransmissions, and the timers of RFC 3261, from `stacks/rfc.toml`.
    pub fn rfc768() -> Self {
        let stack: toml::Table = include_str!("../stacks/rfc.toml").parse().expect("a stack file is TOML");
        stack["udp"].clone().try_into().expect("a stack file sets every option")
    }

    /// Returns the configuration with changes; an error if an endpoint cannot work with it.
    ///
    /// ```
    /// use hol_udp::{Config, SipTransaction};
    ///
    /// let config = Config::rfc768().with(|config| config.sip = SipTransaction::Invite)?;
    /// assert_eq!(config.t1.as_millis(), 500);
    /// # Ok::<(), hol_udp::ConfigError>(())
    /// ```
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Result<Self, ConfigError> {
        change(&mut self);
        self.check().map(|()| self)
    }
}
