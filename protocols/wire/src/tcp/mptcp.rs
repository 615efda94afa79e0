//! The MPTCP options that identify the connection of a subflow, and map its octets to the connection's data.
//! RFC 8684.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};

/// An MPTCP option that assigns a subflow, or octets of it, to a connection. Other MPTCP options, and checksums, are
/// ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mptcp {
    /// MP_CAPABLE option, on the first subflow of a connection. RFC 8684 section 3.1.
    Capable {
        /// The flag bits A to H.
        flags: u8,
        /// The sender's key; `None` in the first SYN, which has none.
        sender_key: Option<u64>,
        /// The receiver's key, which only the third packet of the handshake and the first data contain.
        receiver_key: Option<u64>,
        /// Number of octets of data in this segment, if it contains both keys and the connection's first data.
        data_length: Option<u16>,
    },
    /// MP_JOIN option, on the SYN of an additional subflow. RFC 8684 section 3.2.
    Join {
        /// Bit B: use this subflow only if there is no other.
        backup: bool,
        /// Identifier that the sender gives its address.
        address: u8,
        /// Token of the connection: the first 32 bits of the SHA-256 hash of the receiver's key.
        token: u32,
        /// A random number that prevents replay attacks.
        nonce: u32,
    },
    /// DSS (data sequence signal) option. RFC 8684 section 3.3.
    Signal {
        /// Whether the sender has no more data after those of the mapping (DATA_FIN).
        data_fin: bool,
        /// The data sequence number that the sender expects next.
        ack: Option<DataSeq>,
        /// The mapping of octets of the subflow to octets of the connection's data.
        mapping: Option<Mapping>,
    },
}

/// Maps octets of a subflow to octets of the connection's data. RFC 8684 section 3.3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Data sequence number of the first octet.
    pub data: DataSeq,
    /// Position of the first octet in the subflow, where the SYN has position 0. A DATA_FIN without data also has
    /// 0.
    pub subflow: u32,
    /// Number of octets, where a DATA_FIN counts as one.
    pub length: u16,
}

/// A data sequence number: all 64 bits, or only the lower 32. RFC 8684 section 3.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSeq {
    /// The lower 32 bits of the number.
    Half(u32),
    /// All 64 bits of the number.
    Whole(u64),
}

const CAPABLE_SUBTYPE: u8 = 0;
const JOIN_SUBTYPE: u8 = 1;
const SIGNAL_SUBTYPE: u8 = 2;

/// The version of MPTCP that RFC 8684 defines.
const VERSION: u8 = 1;
/// Bit B (backup) of MP_JOIN.
const BACKUP_BIT: u8 = 1;

/// The flag bits of a data sequence signal (DSS). RFC 8684 section 3.3.
mod signal {
    pub const ACK: u8 = 1;
    pub const WHOLE_ACK: u8 = 2;
    pub const MAPPING: u8 = 4;
    pub const WHOLE_SEQ: u8 = 8;
    pub const FIN: u8 = 16;
}

impl Mptcp {
    /// Returns the length in octets of the option, including its kind and length, but without padding.
    pub(super) fn length(&self) -> usize {
        let when = |there: bool, octets| if there { octets } else { 0 };
        match self {
            Self::Capable { sender_key, receiver_key, data_length, .. } => {
                let keys = when(sender_key.is_some(), 8) + when(receiver_key.is_some(), 8);
                4 + keys + when(data_length.is_some(), 2)
            }
            Self::Join { .. } => 12,
            Self::Signal { ack, mapping, .. } => {
                4 + ack.map_or(0, DataSeq::length) + mapping.map_or(0, |mapping| mapping.data.length() + 6)
            }
        }
    }

    /// Appends the option, without its kind and length.
    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Capable { flags, sender_key, receiver_key, data_length } => {
                out.put_slice(&[CAPABLE_SUBTYPE << 4 | VERSION, flags]);
                [sender_key, receiver_key].into_iter().flatten().for_each(|key| out.put_u64(key));
                data_length.into_iter().for_each(|length| out.put_u16(length));
            }
            Self::Join { backup, address, token, nonce } => {
                out.put_slice(&[JOIN_SUBTYPE << 4 | if backup { BACKUP_BIT } else { 0 }, address]);
                out.put_u32(token);
                out.put_u32(nonce);
            }
            Self::Signal { data_fin, ack, mapping } => {
                out.put_slice(&[SIGNAL_SUBTYPE << 4, signal_flags(data_fin, ack, mapping)]);
                ack.into_iter().for_each(|ack| ack.emit(out));
                mapping.into_iter().for_each(|mapping| mapping.emit(out));
            }
        }
    }

    /// Parses the option after its kind and length. Returns `None` for another subtype or version, or if the
    /// option is too short.
    pub(super) fn parse_value(mut value: Bytes) -> Option<Self> {
        let [first, flags] = value.try_get_u16().ok()?.to_be_bytes();
        match (first >> 4, first & 0x0f, value.len()) {
            // RFC 8684 section 3.1: the length determines the parts.
            (CAPABLE_SUBTYPE, VERSION, length @ (0 | 8 | 16 | 18 | 20)) => Some(Self::Capable {
                flags,
                sender_key: (length >= 8).then(|| value.get_u64()),
                receiver_key: (length >= 16).then(|| value.get_u64()),
                data_length: (length >= 18).then(|| value.get_u16()),
            }),
            // Section 3.2: a longer MP_JOIN belongs to a SYN/ACK or ACK and does not identify a connection.
            (JOIN_SUBTYPE, bits, 8) => Some(Self::Join {
                backup: bits & BACKUP_BIT != 0,
                address: flags,
                token: value.get_u32(),
                nonce: value.get_u32(),
            }),
            (SIGNAL_SUBTYPE, _, _) => Self::parse_signal(flags, value),
            _ => None,
        }
    }

    fn parse_signal(flags: u8, mut value: Bytes) -> Option<Self> {
        let has = |bit| flags & bit != 0;
        let ack = match has(signal::ACK) {
            true => Some(DataSeq::parse(has(signal::WHOLE_ACK), &mut value)?),
            false => None,
        };
        let mapping = match has(signal::MAPPING) {
            true => Some(Mapping {
                data: DataSeq::parse(has(signal::WHOLE_SEQ), &mut value)?,
                subflow: value.try_get_u32().ok()?,
                length: value.try_get_u16().ok()?,
            }),
            false => None,
        };
        Some(Self::Signal { data_fin: has(signal::FIN), ack, mapping })
    }
}

fn signal_flags(data_fin: bool, ack: Option<DataSeq>, mapping: Option<Mapping>) -> u8 {
    let bit = |is: bool, bit| if is { bit } else { 0 };
    let ack_bits = ack.map_or(0, |ack| signal::ACK | bit(ack.is_whole(), signal::WHOLE_ACK));
    let mapping_bits =
        mapping.map_or(0, |mapping| signal::MAPPING | bit(mapping.data.is_whole(), signal::WHOLE_SEQ));
    ack_bits | mapping_bits | bit(data_fin, signal::FIN)
}

impl Mapping {
    fn emit(self, out: &mut Vec<u8>) {
        self.data.emit(out);
        out.put_u32(self.subflow);
        out.put_u16(self.length);
    }
}

impl DataSeq {
    const fn is_whole(self) -> bool {
        matches!(self, Self::Whole(_))
    }

    const fn length(self) -> usize {
        if self.is_whole() { 8 } else { 4 }
    }

    fn emit(self, out: &mut Vec<u8>) {
        match self {
            Self::Half(number) => out.put_u32(number),
            Self::Whole(number) => out.put_u64(number),
        }
    }

    fn parse(whole: bool, value: &mut Bytes) -> Option<Self> {
        if whole {
            value.try_get_u64().ok().map(Self::Whole)
        } else {
            value.try_get_u32().ok().map(Self::Half)
        }
    }
}

impl fmt::Display for Mptcp {
    /// Formats the option much as tcpdump does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Capable { .. } => f.write_str("mptcp capable"),
            Self::Join { address, token, .. } => write!(f, "mptcp join id {address} token {token:#x}"),
            Self::Signal { data_fin, mapping, .. } => {
                f.write_str(if *data_fin { "mptcp dss fin" } else { "mptcp dss" })?;
                let Some(Mapping { data, subflow, length }) = mapping else { return Ok(()) };
                write!(f, " seq {data} subseq {subflow} len {length}")
            }
        }
    }
}

impl fmt::Display for DataSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Half(number) => number.fmt(f),
            Self::Whole(number) => number.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_octets(option: Mptcp, octets: &[u8]) {
        let mut out = Vec::new();
        option.emit_value(&mut out);
        assert_eq!(out, octets);
        assert_eq!(option.length(), octets.len() + 2);
        assert_eq!(Mptcp::parse_value(Bytes::copy_from_slice(octets)), Some(option));
    }

    /// RFC 8684 section 3.1, from a capture of Linux 6.12: SYN, SYN/ACK, ACK with data.
    #[test]
    fn mp_capable_keys_follow_from_its_length() {
        let capable = |sender_key, receiver_key, data_length| Mptcp::Capable {
            flags: 1,
            sender_key,
            receiver_key,
            data_length,
        };
        assert_octets(capable(None, None, None), &[1, 1]);
        let (client, server) = (0x1a0b_8e6d_8742_5b09, 0x04e0_5dd0_f47c_3728);
        assert_octets(
            capable(Some(server), None, None),
            &[1, 1, 4, 0xe0, 0x5d, 0xd0, 0xf4, 0x7c, 0x37, 0x28],
        );
        #[rustfmt::skip]
        let third = [
            1, 1,
            0x1a, 0x0b, 0x8e, 0x6d, 0x87, 0x42, 0x5b, 0x09,
            0x04, 0xe0, 0x5d, 0xd0, 0xf4, 0x7c, 0x37, 0x28,
            0x0f, 0xa0,
        ];
        assert_octets(capable(Some(client), Some(server), Some(4000)), &third);
    }

    /// RFC 8684 section 3.2.
    #[test]
    fn mp_join_carries_token_and_nonce() {
        let join = Mptcp::Join { backup: true, address: 3, token: 0x0102_0304, nonce: 5 };
        assert_octets(join, &[0x11, 3, 1, 2, 3, 4, 0, 0, 0, 5]);
    }

    /// RFC 8684 section 3.3, from a capture of Linux 6.12: half an acknowledgment, a whole sequence number.
    #[test]
    fn mptcp_dss_has_numbers_of_32_or_64_bits() {
        #[rustfmt::skip]
        let octets = [
            0x20, 0x0d,
            0x2f, 0xcc, 0xf5, 0xb3,
            0x48, 0x55, 0xf7, 0x6c, 0xc5, 0xf3, 0x9d, 0x43,
            0, 0, 0, 1,
            0x0f, 0xa0,
        ];
        let mapping = Mapping { data: DataSeq::Whole(0x4855_f76c_c5f3_9d43), subflow: 1, length: 4000 };
        let ack = Some(DataSeq::Half(0x2fcc_f5b3));
        assert_octets(Mptcp::Signal { data_fin: false, ack, mapping: Some(mapping) }, &octets);
        let ack = Some(DataSeq::Whole(7));
        assert_octets(
            Mptcp::Signal { data_fin: true, ack, mapping: None },
            &[0x20, 0x13, 0, 0, 0, 0, 0, 0, 0, 7],
        );
    }

    /// RFC 8684 section 3.1: version 0 had another layout. Section 3.2: MP_JOIN in an ACK does not identify a
    /// connection.
    #[test]
    fn unsupported_and_truncated_mptcp_options_are_ignored() {
        for octets in [&[0, 1][..], &[0x10; 22], &[0x30, 0], &[0x20, 4, 1, 2, 3], &[0x20], &[]] {
            assert_eq!(Mptcp::parse_value(Bytes::copy_from_slice(octets)), None, "{octets:?}");
        }
    }
}
