//! Named configurations: the `[sctp]` tables of the stack files, which give the source of each value.

use hol_transport::ConfigError;

use crate::Config;

impl Config {
    /// Returns the SCTP of Linux 6.12, from `stacks/linux-6.12.toml`.
    pub fn linux_6_12() -> Self {
        Self::read(include_str!("../stacks/linux-6.12.toml"))
    }

    /// Returns the SCTP of Linux 7.3, from `stacks/linux-7.3.toml`.
    pub fn linux_7_3() -> Self {
        Self::read(include_str!("../stacks/linux-7.3.toml"))
    }

    /// Returns the SCTP of Linux 2.6.16, from `stacks/linux-2.6.16.toml`.
    pub fn linux_2_6_16() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.16.toml"))
    }

    /// Returns the SCTP of Linux 2.6.15, from `stacks/linux-2.6.15.toml`.
    pub fn linux_2_6_15() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.15.toml"))
    }

    /// Returns the SCTP of Linux 2.6.10, from `stacks/linux-2.6.10.toml`.
    pub fn linux_2_6_10() -> Self {
        Self::read(include_str!("../stacks/linux-2.6.10.toml"))
    }

    /// Returns dcSCTP, the SCTP of WebRTC in Chromium, from `stacks/dcsctp.toml`.
    pub fn dcsctp() -> Self {
        Self::read(include_str!("../stacks/dcsctp.toml"))
    }

    /// Returns usrsctp, FreeBSD's SCTP as a library, from `stacks/usrsctp.toml`.
    pub fn usrsctp() -> Self {
        Self::read(include_str!("../stacks/usrsctp.toml"))
    }

    /// Returns the SCTP of RFC 9260 and of the RFCs that extend it, from `stacks/rfc.toml`.
    pub fn rfc9260() -> Self {
        Self::read(include_str!("../stacks/rfc.toml"))
    }

    fn read(stack: &str) -> Self {
        let stack: toml::Table = stack.parse().expect("a stack file is TOML");
        stack["sctp"].clone().try_into().expect("a stack file sets every option")
    }

    /// Returns a copy of the configuration, modified by `change`. The error names a value with which no endpoint
    /// can work.
    ///
    /// ```
    /// use hol_sctp::Config;
    ///
    /// let config = Config::rfc9260().with(|config| {
    ///     config.streams = 8;
    ///     config.interleaving = true;
    /// })?;
    /// assert_eq!(config.max_inbound_streams, 65_535);
    ///
    /// let error = config.with(|config| config.streams = 0).unwrap_err();
    /// assert_eq!(error.key, "streams");
    /// # Ok::<(), hol_sctp::ConfigError>(())
    /// ```
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Result<Self, ConfigError> {
        change(&mut self);
        self.check().map(|()| self)
    }
}
