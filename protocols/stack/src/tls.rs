//! TLS over a byte stream.

use std::str::FromStr;

/// The handshake with which connections start TLS 1.3 (RFC 8446).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tls {
    /// A full handshake with certificates: one round trip before the first message (RFC 8446 section
    /// 2).
    Full,
    /// Resumption with a ticket of an earlier connection: one round trip, without certificates (RFC
    /// 8446 section 2.2).
    Resumed,
    /// Resumption with 0-RTT: messages are sent in the first flight, without a round trip before (RFC
    /// 8446 section 2.3).
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
