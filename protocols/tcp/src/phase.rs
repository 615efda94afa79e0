//! How much trouble a connection is in.

/// How much trouble there is; later ones are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// All is well.
    Open,
    /// Something was delivered out of order, or sent twice.
    Disorder,
    /// The window is being reduced without a retransmission.
    Reduced,
    /// Fast recovery. RFC 5681 section 3.2.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl Phase {
    /// cwnd is on its way down to ssthresh.
    pub(crate) fn is_reducing(self) -> bool {
        matches!(self, Self::Reduced | Self::Recovery)
    }
}
