//! The ECN field of the IP header, which reports congestion without loss. RFC 3168 section 5.

/// The ECN codepoint of a packet: whether its endpoints support ECN, and whether a queue has marked
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ecn {
    /// Not-ECT: the endpoints do not support ECN.
    #[default]
    NotCapable,
    /// ECT(1): a queue may mark the packet instead of dropping it. Endpoints that use L4S send it.
    Capable1,
    /// ECT(0): a queue may mark the packet instead of dropping it.
    Capable,
    /// CE: a queue has marked the packet.
    Congested,
}

impl Ecn {
    /// Returns the two bits of the codepoint. RFC 3168 section 5, figure 1.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::Capable1 => 0b01,
            Self::Capable => 0b10,
            Self::Congested => 0b11,
        }
    }

    /// Returns the codepoint in the lower two bits of the IP header's second octet, formerly Type of
    /// Service.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotCapable,
            0b01 => Self::Capable1,
            0b10 => Self::Capable,
            _ => Self::Congested,
        }
    }

    /// Marks a packet as CE if its endpoints support ECN. If not, returns `false`, and the packet must
    /// be dropped. RFC 3168 section 5.
    #[must_use]
    pub fn mark(&mut self) -> bool {
        let capable = *self != Self::NotCapable;
        if capable {
            *self = Self::Congested;
        }
        capable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3168_5_the_codepoints() {
        for bits in 0..4 {
            assert_eq!(Ecn::from_bits(bits).bits(), bits);
            assert_eq!(Ecn::from_bits(bits | 0xb8), Ecn::from_bits(bits), "the other six bits are the DSCP");
        }
    }

    #[test]
    fn rfc3168_5_only_capable_packets_are_marked() {
        let after = [Ecn::NotCapable, Ecn::Capable1, Ecn::Capable, Ecn::Congested].map(|mut ecn| {
            let marked = ecn.mark();
            (marked, ecn)
        });
        let marked = (true, Ecn::Congested);
        assert_eq!(after, [(false, Ecn::NotCapable), marked, marked, marked]);
    }
}
