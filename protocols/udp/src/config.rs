//! The configuration of an endpoint.

use hol_base::{ByteCount, Duration};
use hol_transport::ConfigError;
use serde::{Deserialize, Serialize};

/// The configuration of a UDP endpoint. It has no defaults: a stack sets every field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether messages are SIP requests, which are repeated until they are answered, and of which kind.
    pub sip: SipTransaction,
    /// T1: the estimated round-trip time. RFC 3261 section 17.1.1.1.
    pub t1: Duration,
    /// T2: the maximum time between two copies of a request other than INVITE. RFC 3261 section 17.1.2.2.
    pub t2: Duration,
    /// Size of the response to a SIP request, in octets.
    pub response: ByteCount,
}

/// The kind of SIP transaction by which messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SipTransaction {
    /// Messages are plain datagrams, without retransmission.
    Off,
    /// Messages are INVITEs, repeated after T1, then after twice that time, and so on. RFC 3261 section
    /// 17.1.1.2.
    Invite,
    /// Messages are other requests, repeated like an INVITE, but with at most T2 between two copies. RFC
    /// 3261 section 17.1.2.2.
    Request,
}

impl Config {
    /// Checks the configuration; the error names a value with which no transaction can work.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::check([
            (!self.t1.is_zero(), "t1", "must be longer than zero"),
            (self.t2 >= self.t1, "t2", "is shorter than t1; raise t2 or lower t1"),
            (self.response.0 >= Self::SHORTEST_RESPONSE, "response", "must be at least 16 octets"),
        ])
    }

    /// Number of octets that a response needs to identify itself and its request.
    pub(crate) const SHORTEST_RESPONSE: u64 = 16;
}
