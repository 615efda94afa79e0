//! TCP options. RFC 9293 section 3.2, RFC 2018, RFC 7323, RFC 8684, RFC 9768.

use std::fmt;

use bytes::{Buf, BufMut, Bytes};
use smallvec::SmallVec;

use super::{EcnCounters, Mptcp, SeqNum};
use crate::ParseError;

/// The TCP options that this implementation supports. An absent option uses no octets on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// Maximum segment size; only in a SYN. RFC 9293 section 3.7.1.
    pub mss: Option<u16>,
    /// Window scale shift; only in a SYN. RFC 7323 section 2.
    pub window_scale: Option<u8>,
    /// SACK permitted; only in a SYN. RFC 2018 section 2.
    pub sack_permitted: bool,
    /// The timestamps option. RFC 7323 section 3.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks, at most 4 (3 with timestamps); the first may be a D-SACK. RFC 2018, RFC 2883.
    pub sack: SackBlocks,
    /// The AccECN option: the counters of accurate ECN. RFC 9768 section 3.2.3.
    pub accurate_ecn: Option<Box<EcnCounters>>,
    /// Multipath TCP, which our endpoints neither send nor process. RFC 8684.
    pub mptcp: Option<Box<Mptcp>>,
}

/// A list of SACK blocks. Two blocks are stored inline: they take no more memory than the pointer and length of a
/// longer list.
pub type SackBlocks = SmallVec<[SackBlock; 2]>;

/// The timestamps option. RFC 7323 section 3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the reading of the sender's clock.
    pub value: u32,
    /// TSecr: the echo of the peer's TSval.
    pub echo: u32,
}

/// A block of data that have arrived out of order or, in a D-SACK, twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SackBlock {
    /// First sequence number of the block.
    pub left: SeqNum,
    /// Sequence number that follows the last octet of the block.
    pub right: SeqNum,
}

/// Kinds of TCP options.
mod kind {
    pub const END: u8 = 0;
    pub const NOP: u8 = 1;
    pub const MSS: u8 = 2;
    pub const WINDOW_SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
    pub const TIMESTAMPS: u8 = 8;
    pub const MPTCP: u8 = 30;
}

impl Options {
    /// Maximum length of all options in octets, because of the data offset field. RFC 9293 section 3.1.
    pub const MAX_OCTETS: usize = 40;

    /// Returns the length of the options on the wire in octets, padded to a multiple of four as Linux lays them
    /// out.
    pub fn length(&self) -> usize {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let window_scale = if self.window_scale.is_some() { 4 } else { 0 };
        // SACK permitted fits into the padding before the timestamps.
        let (timestamps, sack_permitted) = match (self.timestamps.is_some(), self.sack_permitted) {
            (true, _) => (12, 0),
            (false, permitted) => (0, if permitted { 4 } else { 0 }),
        };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() };
        let counters = self.accurate_ecn.as_ref().map_or(0, |counters| {
            EcnCounters::padded_length(counters.values.len(), self.padding_beside_counters())
        });
        let mptcp = self.mptcp.as_ref().map_or(0, |option| option.length().next_multiple_of(4));
        mss + window_scale + timestamps + sack_permitted + sack + counters + mptcp
    }

    /// Returns the number of octets of padding beside other options that the AccECN option may use instead. Linux:
    /// `tcp_synack_options_combine_saving`, `tcp_options_fit_accecn`.
    pub fn padding_beside_counters(&self) -> usize {
        match () {
            () if !self.sack.is_empty() || (self.sack_permitted && self.timestamps.is_none()) => 2,
            () if self.window_scale.is_some() => 1,
            () => 0,
        }
    }

    /// Appends the options, aligned to 32 bits. RFC 7323 appendix A.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        use kind::{MPTCP, MSS, NOP, SACK, SACK_PERMITTED, TIMESTAMPS, WINDOW_SCALE};
        if let Some(mss) = self.mss {
            out.put_slice(&[MSS, 4]);
            out.put_u16(mss);
        }
        if self.timestamps.is_some() {
            out.put_slice(if self.sack_permitted { &[SACK_PERMITTED, 2] } else { &[NOP, NOP] });
        }
        if let Some(Timestamps { value, echo }) = self.timestamps {
            out.put_slice(&[TIMESTAMPS, 10]);
            out.put_u32(value);
            out.put_u32(echo);
        }
        // The octets of the counters beyond a multiple of four replace the NOPs before the next option.
        let mut spare = UnalignedOctets::default();
        if let Some(counters) = &self.accurate_ecn {
            let start = out.len();
            counters.emit(out);
            spare = UnalignedOctets(out.split_off(start + (out.len() - start) / 4 * 4));
            if spare.0.len() == 3 {
                spare.emit(4, out);
            }
        }
        if self.sack_permitted && self.timestamps.is_none() {
            spare.emit(2, out);
            out.put_slice(&[SACK_PERMITTED, 2]);
        }
        if let Some(shift) = self.window_scale {
            if spare.0.len() == 2 {
                out.put_u8(NOP);
            } else {
                spare.emit(1, out);
            }
            out.put_slice(&[WINDOW_SCALE, 3, shift]);
        }
        if !self.sack.is_empty() {
            spare.emit(2, out);
            out.put_slice(&[SACK, 2 + 8 * self.sack.len() as u8]);
            for SackBlock { left, right } in &self.sack {
                out.put_u32(left.0);
                out.put_u32(right.0);
            }
        }
        if !spare.0.is_empty() {
            spare.emit(4, out);
        }
        if let Some(mptcp) = &self.mptcp {
            let length = mptcp.length();
            out.put_slice(&[MPTCP, length as u8]);
            mptcp.emit_value(out);
            out.put_bytes(NOP, length.next_multiple_of(4) - length);
        }
    }

    /// Parses the options of a segment. Ignores unknown options, options of wrong length, and options that must
    /// not occur in a segment with SYN or in one without SYN. RFC 9293 section 3.1 (MUST-6), RFC 7323 section 2.2.
    pub(super) fn parse(mut octets: Bytes, syn: bool) -> Result<Self, ParseError> {
        let mut options = Self::default();
        while octets.has_remaining() {
            match octets.get_u8() {
                kind::END => break,
                kind::NOP => {}
                kind => {
                    // The length includes kind and length. RFC 9293 section 3.2 (MUST-7).
                    let length = octets.try_get_u8()?.checked_sub(2).ok_or(ParseError::Length)?;
                    if octets.len() < usize::from(length) {
                        return Err(ParseError::Truncated);
                    }
                    options.take(kind, octets.split_to(usize::from(length)), syn);
                }
            }
        }
        Ok(options)
    }

    fn take(&mut self, kind: u8, mut value: Bytes, syn: bool) {
        match (kind, value.len(), syn) {
            (kind::MSS, 2, true) => self.mss = Some(value.get_u16()),
            (kind::WINDOW_SCALE, 1, true) => self.window_scale = Some(value.get_u8()),
            (kind::SACK_PERMITTED, 0, true) => self.sack_permitted = true,
            (kind::TIMESTAMPS, 8, _) => {
                self.timestamps = Some(Timestamps { value: value.get_u32(), echo: value.get_u32() });
            }
            (kind::SACK, length, false) if length % 8 == 0 => {
                self.sack.clear();
                while value.has_remaining() {
                    let (left, right) = (SeqNum(value.get_u32()), SeqNum(value.get_u32()));
                    self.sack.push(SackBlock { left, right });
                }
            }
            (kind, _, _) if EcnCounters::KINDS.contains(&kind) => {
                self.accurate_ecn = Some(Box::new(EcnCounters::parse(kind, value)));
            }
            // Of several MPTCP options, the first one that parses is used.
            (kind::MPTCP, _, _) if self.mptcp.is_none() => {
                self.mptcp = Mptcp::parse_value(value).map(Box::new);
            }
            _ => {}
        }
    }
}

/// The last octets of an option that is not aligned.
#[derive(Default)]
struct UnalignedOctets(Vec<u8>);

impl UnalignedOctets {
    /// Appends the octets to `out`, padded to `length` octets.
    fn emit(&mut self, length: usize, out: &mut Vec<u8>) {
        self.0.resize(length, kind::NOP);
        out.append(&mut self.0);
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.mss.map(|mss| format!("mss {mss}")));
        parts.extend(self.sack_permitted.then(|| "sackOK".to_owned()));
        parts.extend(self.timestamps.map(|t| format!("TS val {} ecr {}", t.value, t.echo)));
        parts.extend(self.window_scale.map(|shift| format!("wscale {shift}")));
        if !self.sack.is_empty() {
            let blocks = self.sack.iter().map(|block| format!("{{{}:{}}}", block.left, block.right));
            parts.push(format!("sack {} {}", self.sack.len(), blocks.collect::<String>()));
        }
        parts.extend(self.accurate_ecn.as_ref().map(ToString::to_string));
        parts.extend(self.mptcp.as_ref().map(ToString::to_string));
        write!(f, "[{}]", parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn emitted(options: &Options) -> Vec<u8> {
        let mut out = Vec::new();
        options.emit(&mut out);
        assert_eq!(out.len(), options.length(), "{options:?}");
        out
    }

    fn parse(octets: &[u8], syn: bool) -> Result<Options, ParseError> {
        Options::parse(Bytes::copy_from_slice(octets), syn)
    }

    /// The options of a Linux SYN: RFC 9293 section 3.2, RFC 2018 section 2, RFC 7323 sections 2.2 and 3.2.
    #[test]
    fn a_syn_carries_its_options_in_twenty_octets() {
        let options = Options {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 0x0102_0304, echo: 0 }),
            ..Options::default()
        };
        let octets = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7];
        assert_eq!(emitted(&options), octets);
        assert_eq!(parse(&octets, true), Ok(options));
    }

    /// RFC 7323 appendix A, RFC 2018 section 3: NOP NOP before the timestamps, NOP NOP before SACK.
    #[test]
    fn an_acknowledgment_carries_timestamps_then_sack() {
        let options = Options {
            timestamps: Some(Timestamps { value: 1, echo: 2 }),
            sack: smallvec![SackBlock { left: SeqNum(3), right: SeqNum(4) }],
            ..Options::default()
        };
        let octets = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 3, 0, 0, 0, 4];
        assert_eq!(emitted(&options), octets);
        assert_eq!(parse(&octets, false), Ok(options));
    }

    /// RFC 2018 section 2 without timestamps: two NOPs take their place.
    #[test]
    fn sack_permitted_alone_is_padded_in_front() {
        let options = Options { sack_permitted: true, ..Options::default() };
        assert_eq!(emitted(&options), [1, 1, 4, 2]);
    }

    /// RFC 9768 section 3.2.3; the positions are those of Linux (tcp_options_write): the rest of the counters
    /// replaces NOPs.
    #[test]
    fn accurate_ecn_counters_replace_padding() {
        let counters = |values: &[u32]| {
            Some(Box::new(EcnCounters { begins_with_ect1: true, values: SmallVec::from_slice(values) }))
        };
        let sack = smallvec![SackBlock { left: SeqNum(3), right: SeqNum(4) }];
        let block = [5, 10, 0, 0, 0, 3, 0, 0, 0, 4];
        let cases: [(Options, Vec<u8>); 6] = [
            (
                Options { accurate_ecn: counters(&[1, 0, 0x01_02_03]), ..Options::default() },
                vec![174, 11, 0, 0, 1, 0, 0, 0, 1, 2, 3, 1],
            ),
            (
                Options { accurate_ecn: counters(&[1, 9]), ..Options::default() },
                vec![174, 8, 0, 0, 1, 0, 0, 9],
            ),
            (
                Options { accurate_ecn: counters(&[7]), sack: sack.clone(), ..Options::default() },
                [&[174, 5, 0, 0, 7, 1][..], &block].concat(),
            ),
            (
                Options { accurate_ecn: counters(&[]), sack, ..Options::default() },
                [&[174, 2][..], &block].concat(),
            ),
            (Options { accurate_ecn: counters(&[]), ..Options::default() }, vec![174, 2, 1, 1]),
            (
                Options { accurate_ecn: counters(&[7]), window_scale: Some(8), ..Options::default() },
                vec![174, 5, 0, 0, 7, 3, 3, 8],
            ),
        ];
        for (options, octets) in cases {
            assert_eq!(emitted(&options), octets);
            assert_eq!(parse(&octets, options.window_scale.is_some()), Ok(options));
        }
        let reversed = parse(&[172, 8, 0, 0, 5, 0, 0, 6], false).unwrap().accurate_ecn.unwrap();
        assert_eq!(reversed.to_string(), "ECN e0b 5 ceb 6");
        let counters_of = |octets: &[u8]| parse(octets, false).unwrap().accurate_ecn.unwrap().values.to_vec();
        assert_eq!(counters_of(&[174, 6, 0, 0, 5, 0]), [5], "only complete counters are parsed");
        assert_eq!(counters_of(&[174, 14, 0, 0, 5, 0, 0, 6, 0, 0, 7, 0, 0, 8]), [5, 6, 7], "there are three");
    }

    /// RFC 8684 section 3: kind 30; a SYN's option takes four octets. RFC 9293 section 3.1: padded to 32 bits.
    #[test]
    fn mptcp_is_padded_behind() {
        let join = Mptcp::Join { backup: false, address: 1, token: 2, nonce: 3 };
        let keys =
            Mptcp::Capable { flags: 1, sender_key: Some(1), receiver_key: Some(2), data_length: Some(3) };
        let options = |mptcp| Options { mptcp: Some(Box::new(mptcp)), ..Options::default() };
        assert_eq!(emitted(&options(join)), [30, 12, 0x10, 1, 0, 0, 0, 2, 0, 0, 0, 3]);
        let padded = emitted(&options(keys));
        assert_eq!((padded.len(), padded[1], &padded[20..]), (24, 22, &[0, 3, 1, 1][..]));
        assert_eq!(parse(&padded, false), Ok(options(keys)));
        let behind_another = [&[30, 4, 0x40, 0][..], &emitted(&options(join))].concat();
        assert_eq!(parse(&behind_another, true), Ok(options(join)));
    }

    /// RFC 9293 section 3.1 (MUST-6), RFC 7323 section 2.2, RFC 2018 section 2.
    #[test]
    fn options_in_the_wrong_segment_are_ignored() {
        let syn_only = [2, 4, 5, 0xb4, 3, 3, 7, 4, 2, 1];
        assert_eq!(parse(&syn_only, false), Ok(Options::default()));
        let unknown = [254, 4, 0, 0, 2, 3, 9, 2, 4, 5, 0xb4];
        assert_eq!(parse(&unknown, true).unwrap().mss, Some(1460));
        let behind_the_end = [0, 2, 4, 5, 0xb4];
        assert_eq!(parse(&behind_the_end, true), Ok(Options::default()));
    }

    /// RFC 9293 section 3.2 (MUST-7): illegal option lengths must not cause a crash.
    #[test]
    fn an_illegal_option_length_is_an_error() {
        assert_eq!(parse(&[2, 1, 0], true), Err(ParseError::Length));
        assert_eq!(parse(&[2, 4, 5], true), Err(ParseError::Truncated));
        assert_eq!(parse(&[2], true), Err(ParseError::Truncated));
    }
}
