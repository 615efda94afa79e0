//! The AccECN option: octets received with each ECN codepoint. RFC 9768 section 3.2.3.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use crate::Ecn;

/// The counters of an AccECN option, modulo 2²⁴. The last counters may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EcnCounters {
    /// Whether the first counter counts ECT(1) and the third ECT(0) (kind 174), or the reverse (kind 172).
    pub begins_with_ect1: bool,
    /// The counters, at most three. The second one counts CE.
    pub values: SmallVec<[u32; 3]>,
}

impl EcnCounters {
    /// Kinds of the AccECN option. RFC 9768 section 3.2.3, figure 4.
    pub(super) const KINDS: [u8; 2] = [172, 174];

    /// Returns the ECN codepoint that each of the three counters counts.
    pub const fn codepoints(&self) -> [Ecn; 3] {
        match self.begins_with_ect1 {
            true => [Ecn::Capable1, Ecn::Congested, Ecn::Capable],
            false => [Ecn::Capable, Ecn::Congested, Ecn::Capable1],
        }
    }

    /// Returns the length in octets of an AccECN option with `fields` counters, without padding.
    pub const fn length(fields: usize) -> usize {
        2 + 3 * fields
    }

    /// Returns by how many octets the AccECN option lengthens the options of a segment. The option may use
    /// `padding` octets that would otherwise be NOPs beside another option. Linux: `tcp_options_fit_accecn`.
    pub const fn padded_length(fields: usize, padding: usize) -> usize {
        let length = Self::length(fields);
        if length % 4 > padding { length.next_multiple_of(4) } else { length / 4 * 4 }
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.put_slice(&[
            Self::KINDS[usize::from(self.begins_with_ect1)],
            Self::length(self.values.len()) as u8,
        ]);
        self.values.iter().for_each(|value| out.put_slice(&value.to_be_bytes()[1..]));
    }

    /// Parses the value of an AccECN option whose kind is one of [`Self::KINDS`]. If its length is unusual,
    /// uses only the complete counters. RFC 9768 section 3.2.3.
    pub(super) fn parse(kind: u8, mut value: Bytes) -> Self {
        let fields = (value.len() / 3).min(3);
        let mut next = || u32::from(value.get_u8()) << 16 | u32::from(value.get_u16());
        Self { begins_with_ect1: kind == Self::KINDS[1], values: (0..fields).map(|_| next()).collect() }
    }
}

impl fmt::Display for EcnCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ECN")?;
        let name = |ecn| match ecn {
            Ecn::Capable1 => "e1b",
            Ecn::Capable => "e0b",
            Ecn::Congested | Ecn::NotCapable => "ceb",
        };
        let fields = self.codepoints().into_iter().zip(&self.values);
        fields.into_iter().try_for_each(|(ecn, value)| write!(f, " {} {value}", name(ecn)))
    }
}
