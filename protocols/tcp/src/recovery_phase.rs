//! The phases of loss recovery.

/// The phase of loss recovery, in ascending order of severity. Linux: tcp_ca_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Open: no loss is suspected.
    Open,
    /// Disorder: a segment was delivered out of order, or was sent twice.
    Disorder,
    /// Reduced: the window is being reduced without a retransmission, as after an ECN echo. Linux: TCP_CA_CWR.
    Reduced,
    /// Fast recovery: lost segments are being retransmitted. RFC 5681 section 3.2.
    Recovery,
    /// Loss: a retransmission timeout has occurred.
    Loss,
}

impl Phase {
    /// Returns whether cwnd is being reduced to ssthresh in this phase.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, Self::Reduced | Self::Recovery)
    }
}
