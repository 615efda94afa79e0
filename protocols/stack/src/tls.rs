//! TLS over a byte stream.

use std::str::FromStr;

/// How connections begin with TLS 1.3 (RFC 8446).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tls {
    /// With certificates: a round trip before the first message (section 2).
    Full,
    /// With a ticket of an earlier connection: the same round trip, without certificates (section 2.2).
    Resumed,
    /// With such a ticket and messages in the first flight: no round trip (section 2.3, 0-RTT).
    Early,
}

impl FromStr for Tls {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "full" | "true" => Ok(Self::Full),
            "resumed" => Ok(Self::Resumed),
            "early" => Ok(Self::Early),
            _ => Err(
                "use full (with certificates), resumed (with a ticket) or early (with a ticket and 0-RTT data)",
            ),
        }
    }
}
