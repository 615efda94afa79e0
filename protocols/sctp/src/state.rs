//! The states of an association. RFC 9260 section 4.

/// A state of an association. RFC 9260 section 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Closed,
    CookieWait,
    CookieEchoed,
    Established,
    ShutdownPending,
    ShutdownSent,
    ShutdownReceived,
    ShutdownAckSent,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::CookieWait => "COOKIE-WAIT",
            Self::CookieEchoed => "COOKIE-ECHOED",
            Self::Established => "ESTABLISHED",
            Self::ShutdownPending => "SHUTDOWN-PENDING",
            Self::ShutdownSent => "SHUTDOWN-SENT",
            Self::ShutdownReceived => "SHUTDOWN-RECEIVED",
            Self::ShutdownAckSent => "SHUTDOWN-ACK-SENT",
        }
    }

    /// Returns whether the endpoint accepts messages to send. They wait until the association is
    /// established.
    pub(crate) const fn takes_messages(self) -> bool {
        matches!(self, Self::Closed | Self::CookieWait | Self::CookieEchoed | Self::Established)
    }

    /// Returns whether the endpoint may send DATA. In a shutdown it first sends the queued data. RFC 9260
    /// section 9.2.
    pub(crate) const fn sends_data(self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Returns whether the endpoint accepts received DATA. RFC 9260 section 6.
    pub(crate) const fn receives_data(self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent)
    }

    /// Returns whether the endpoint processes SACKs and heartbeats.
    pub(crate) const fn is_established_or_shutting_down(self) -> bool {
        !matches!(self, Self::Closed | Self::CookieWait | Self::CookieEchoed)
    }
}
