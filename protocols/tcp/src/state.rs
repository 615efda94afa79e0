//! The states of a connection. RFC 9293 section 3.3.2.

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No connection.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// A SYN is sent.
    SynSent,
    /// A SYN is received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// A FIN is sent, not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer has sent its FIN; we may still send.
    CloseWait,
    /// Both ends have sent a FIN; ours is not acknowledged.
    Closing,
    /// The peer sent its FIN first; ours waits for its acknowledgment.
    LastAck,
    /// Waiting until old segments have disappeared from the network.
    TimeWait,
}

impl State {
    /// Returns the name of the state in the RFC.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
        }
    }

    /// Returns whether the application may still write data.
    pub(crate) const fn may_send(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived | Self::Established | Self::CloseWait)
    }

    /// Returns whether our data and FIN may be on the wire.
    pub(crate) const fn is_sending(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// Returns whether the peer may still send data.
    pub(crate) const fn is_receiving(self) -> bool {
        matches!(self, Self::SynReceived | Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
