//! Named configurations: the `[quic]` tables of the stack files, which give the source of each value.

use hol_transport::ConfigError;

use crate::Config;

impl Config {
    /// Returns the defaults of quinn 0.11, from `stacks/quinn-0.11.toml`.
    pub fn quinn_0_11() -> Self {
        Self::read(include_str!("../stacks/quinn-0.11.toml"))
    }

    /// Returns the recommendations of RFC 9000 and RFC 9002, from `stacks/rfc.toml`.
    pub fn rfc9000() -> Self {
        Self::read(include_str!("../stacks/rfc.toml"))
    }

    fn read(stack: &str) -> Self {
        let stack: toml::Table = stack.parse().expect("a stack file is TOML");
        stack["quic"].clone().try_into().expect("a stack file sets every option")
    }

    /// Returns the configuration with changes; an error if an endpoint cannot work with it.
    ///
    /// ```
    /// use hol_quic::Config;
    ///
    /// let config = Config::quinn_0_11().with(|config| config.streams = 8)?;
    /// let error = config.with(|config| config.time_threshold = 0.5).unwrap_err();
    /// assert_eq!(error.key, "time_threshold");
    /// # Ok::<(), hol_quic::ConfigError>(())
    /// ```
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Result<Self, ConfigError> {
        change(&mut self);
        self.check().map(|()| self)
    }
}
