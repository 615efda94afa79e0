//! The SACK chunk. RFC 9260 section 3.3.4.

use smallvec::SmallVec;

use super::Tsn;

/// What has arrived, and how much more may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sack {
    /// Cumulative TSN ack: everything up to here has arrived.
    pub cumulative_tsn: Tsn,
    /// Advertised receiver window credit in octets.
    pub a_rwnd: u32,
    /// What has arrived beyond the cumulative TSN, in ascending order.
    pub gaps: SmallVec<[GapAckBlock; 4]>,
    /// TSNs that arrived more than once since the last SACK.
    pub duplicates: SmallVec<[Tsn; 2]>,
}

/// A run of TSNs that has arrived, as offsets from the cumulative TSN; both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapAckBlock {
    /// Offset of the first TSN.
    pub start: u16,
    /// Offset of the last TSN.
    pub end: u16,
}

impl Sack {
    /// Octets on the wire.
    pub fn length(&self) -> usize {
        16 + 4 * (self.gaps.len() + self.duplicates.len())
    }
}
