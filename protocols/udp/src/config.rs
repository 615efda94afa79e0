//! Every behaviour of an endpoint.

use hol_base::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

/// How an endpoint behaves; there are no defaults, a stack names every field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Whether messages are SIP requests.
    pub sip: Sip,
    /// T1: what a round trip is taken for. RFC 3261 section 17.1.1.1.
    pub t1: Duration,
    /// T2: the longest time between two copies of a request that is no INVITE. RFC 3261 section 17.1.2.2.
    pub t2: Duration,
    /// Octets of a response.
    pub response: ByteCount,
}

/// What the messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sip {
    /// Datagrams; those that are lost stay lost.
    Off,
    /// INVITEs: repeated after T1, and then after twice the time, again and again. RFC 3261 section 17.1.1.2.
    Invite,
    /// Other requests: as an INVITE, but never after more than T2. RFC 3261 section 17.1.2.2.
    Request,
}

impl Config {
    /// Refuses values that no transaction could work with: the field and what it has to be.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.t1.is_zero() {
            return Err(("t1", "has to be longer than zero"));
        }
        if self.t2 < self.t1 {
            return Err(("t2", "is shorter than t1; lower t1 too"));
        }
        if self.response.0 < Self::SHORTEST_RESPONSE {
            return Err(("response", "has to be 16 octets at least"));
        }
        Ok(())
    }

    /// Octets that name a response and the request that it answers.
    pub(crate) const SHORTEST_RESPONSE: u64 = 16;
}
