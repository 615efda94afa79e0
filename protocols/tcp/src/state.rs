//! The states of a connection. RFC 9293 section 3.3.2.

/// The state of a TCP connection. RFC 9293 section 3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// CLOSED: there is no connection.
    Closed,
    /// LISTEN: the endpoint waits for a SYN.
    Listen,
    /// SYN-SENT: our SYN has been sent.
    SynSent,
    /// SYN-RECEIVED: the peer's SYN has arrived and has been answered.
    SynReceived,
    /// ESTABLISHED: both endpoints can send data.
    Established,
    /// FIN-WAIT-1: our FIN has been sent and is not acknowledged.
    FinWait1,
    /// FIN-WAIT-2: our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// CLOSE-WAIT: the peer has sent its FIN; we may still send.
    CloseWait,
    /// CLOSING: both endpoints have sent a FIN; ours is not acknowledged.
    Closing,
    /// LAST-ACK: the peer sent its FIN first; ours has been sent and is not acknowledged.
    LastAck,
    /// TIME-WAIT: the endpoint waits until old segments have disappeared from the network.
    TimeWait,
}

impl State {
    /// Returns the name of the state in RFC 9293, such as `"SYN-SENT"`.
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

    /// Returns whether our data and FIN can be on the wire in this state.
    pub(crate) const fn is_sending(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait | Self::FinWait1 | Self::Closing | Self::LastAck)
    }

    /// Returns whether the peer may still send data.
    pub(crate) const fn is_receiving(self) -> bool {
        matches!(self, Self::SynReceived | Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}
