//! The states of an association. RFC 9260 section 4.

/// A state of RFC 9260 section 4.
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

    /// The application may hand over messages: they wait until the association is up.
    pub(crate) const fn takes_messages(self) -> bool {
        matches!(self, Self::Closed | Self::CookieWait | Self::CookieEchoed | Self::Established)
    }

    /// DATA may leave in any packet. RFC 9260 section 9.2 lets what is queued go out first.
    pub(crate) const fn sends_data(self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// DATA is accepted. RFC 9260 section 6.
    pub(crate) const fn receives_data(self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent)
    }

    /// SACKs and heartbeats mean something.
    pub(crate) const fn is_up(self) -> bool {
        !matches!(self, Self::Closed | Self::CookieWait | Self::CookieEchoed)
    }
}
