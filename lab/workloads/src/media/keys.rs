//! The keys of a medium.

use hol_base::{BitRate, ByteCount, Duration};
use hol_rtp::Header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fec::Fec;

/// A medium and how it is packed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Media {
    /// Of the MP3, one of MPEG-1 layer III: 32 to 320 kbit/s. Default 192 kbit/s.
    pub bitrate: BitRate,
    /// What a packet carries. Default `mpa`.
    pub packing: Packing,
    /// Units of a cycle of interleaving, first those with an odd number, then the others; 1: in their order. Default 1.
    pub interleave: u8,
    /// Packets of parity: `"5/7"` are two for each five, `"ulpfec:5/6"` is one for each five by RFC 5109. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub fec: Option<Fec>,
    /// From the first packet that comes until what it has is played. Default 200 ms.
    pub buffer: Duration,
    /// Octets of the longest packet, RTP's header included. Default 1400.
    pub packet: ByteCount,
}

/// What a packet carries: one, or a part of one that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// A frame of MP3 as it is, which may need those before it. RFC 2250.
    #[default]
    Mpa,
    /// A unit that needs no other. RFC 3119.
    Adu,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            bitrate: BitRate::from_bits_per_second(192_000).expect("it is more than none"),
            packing: Packing::default(),
            interleave: 1,
            fec: None,
            buffer: Duration::from_millis(200),
            packet: ByteCount(1400),
        }
    }
}

impl Packing {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mpa => "mpa",
            Self::Adu => "adu",
        }
    }
}

impl Media {
    /// Octets of a packet's payload: one of parity is longer than those that it stands for.
    pub(super) fn room(&self) -> usize {
        self.packet.0 as usize - Header::OCTETS - self.fec.map_or(0, Fec::overhead)
    }
}
