//! Named configurations: the `[tcp]` tables of the stack files, which give the source of each value.

use hol_transport::ConfigError;

use crate::Config;

impl Config {
    /// Returns the TCP of Linux 6.12, from `stacks/linux-6.12.toml`.
    pub fn linux_6_12() -> Self {
        Self::read(include_str!("../stacks/linux-6.12.toml"))
    }

    /// Returns the TCP of Linux 7.3, from `stacks/linux-7.3.toml`.
    pub fn linux_7_3() -> Self {
        Self::read(include_str!("../stacks/linux-7.3.toml"))
    }

    /// Returns the TCP of Linux 2.6.16, from `stacks/linux-2.6.16.toml`.
    pub fn linux_2_6_16() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.16.toml"))
    }

    /// Returns the TCP of Linux 2.6.15, from `stacks/linux-2.6.15.toml`.
    pub fn linux_2_6_15() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.15.toml"))
    }

    /// Returns the TCP of Linux 2.6.10, from `stacks/linux-2.6.10.toml`.
    pub fn linux_2_6_10() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.10.toml"))
    }

    /// Returns the TCP of RFC 9293 and related RFCs, from `stacks/rfc.toml`.
    pub fn rfc9293() -> Self {
        Self::read(include_str!("../stacks/rfc.toml"))
    }

    fn read(stack: &str) -> Self {
        let stack: toml::Table = stack.parse().expect("a stack file is TOML");
        stack["tcp"].clone().try_into().expect("a stack file sets every option")
    }

    /// Returns the configuration with changes; an error if an endpoint cannot work with it.
    ///
    /// ```
    /// use hol_base::Duration;
    /// use hol_tcp::{Algorithm, Config};
    ///
    /// let config = Config::linux_6_12().with(|config| {
    ///     config.congestion = Algorithm::Bbr;
    ///     config.rto_min = Duration::from_millis(50);
    /// })?;
    /// assert_eq!(config.mss, 1460);
    ///
    /// let error = config.with(|config| config.mss = 12).unwrap_err();
    /// assert_eq!(error.to_string(), "mss must be at least 88 octets");
    /// # Ok::<(), hol_tcp::ConfigError>(())
    /// ```
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Result<Self, ConfigError> {
        change(&mut self);
        self.check().map(|()| self)
    }
}
