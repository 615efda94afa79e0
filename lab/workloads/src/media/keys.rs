//! Settings of the workload `media`.

use hol_base::{BitRate, ByteCount, Duration};
use hol_rtp::Header;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fec::Fec;

/// Settings of the workload `media`: the keys of `[workload] kind = "media"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Media {
    /// Bit rate of MPEG-1 layer III, 32 to 320 kbit/s. Default 192 kbit/s.
    pub bitrate: BitRate,
    /// Content of RTP packets: MP3 frames (`mpa`, RFC 2250) or self-contained units (`adu`, RFC 3119). Default `mpa`.
    pub packing: Packing,
    /// Self-contained units per interleaving cycle; those with odd numbers are sent first. Needs `packing = "adu"`.
    /// Default 1: no interleaving.
    #[schemars(range(min = 1))]
    pub interleave: u8,
    /// Parity packets: `"5/7"` sends two for every five, `"ulpfec:5/6"` one (RFC 5109). Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub fec: Option<Fec>,
    /// Jitter buffer: time between the first packet's arrival and playout. Default 200 ms.
    pub buffer: Duration,
    /// Longest packet, including the RTP header. Default 1400 B.
    pub packet: ByteCount,
}

/// What an RTP packet contains: one unit of this kind, or a fragment of one that is too long for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// An MP3 frame, which may need data in earlier frames. RFC 2250.
    #[default]
    Mpa,
    /// An application data unit (ADU): a frame with all data that its decoding needs. RFC 3119.
    Adu,
}

impl Default for Media {
    fn default() -> Self {
        Self {
            bitrate: BitRate::from_bits_per_second(192_000).expect("the rate is above zero"),
            packing: Packing::default(),
            interleave: 1,
            fec: None,
            buffer: Duration::from_millis(200),
            packet: ByteCount(1400),
        }
    }
}

impl Packing {
    /// Returns the name of the packing in experiments.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mpa => "mpa",
            Self::Adu => "adu",
        }
    }
}

impl Media {
    /// Returns the maximum length of a media packet's payload in octets. It leaves room for parity packets, which are
    /// longer than the packets that they protect.
    pub(super) fn max_payload(&self) -> usize {
        self.packet.0 as usize - Header::OCTETS - self.fec.map_or(0, Fec::overhead)
    }
}
