//! The phases of loss recovery.

/// The phase of loss recovery, in ascending order of severity. Linux: tcp_ca_state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// No loss is suspected.
    Open,
    /// A segment was delivered out of order, or sent twice.
    Disorder,
    /// The window is being reduced without a retransmission.
    Reduced,
    /// Fast recovery. RFC 5681 section 3.2.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl Phase {
    /// Returns whether cwnd is being reduced to ssthresh.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, Self::Reduced | Self::Recovery)
    }
}
