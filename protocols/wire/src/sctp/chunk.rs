//! Chunks. RFC 9260 sections 3.2 and 3.3.

use bytes::{Buf, BufMut, Bytes};

use super::{
    Asconf, AsconfAck, Auth, Cause, Data, DataFlags, ForwardTsn, IData, IForwardTsn, Init, Reconfig, Sack,
    Tsn, tlv,
};
use crate::ParseError;

/// A chunk of an SCTP packet. RFC 9260 section 3.2.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Chunk Type   |  Chunk Flags  |         Chunk Length          |
/// +---------------+---------------+-------------------------------+
/// |                 Chunk Value, padded to four                   |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// DATA: user data, RFC 9260 section 3.3.1.
    Data(Data),
    /// INIT: initiation, RFC 9260 section 3.3.2.
    Init(Box<Init>),
    /// INIT ACK: initiation acknowledgement, RFC 9260 section 3.3.3.
    InitAck(Box<Init>),
    /// SACK: selective acknowledgement, RFC 9260 section 3.3.4.
    Sack(Sack),
    /// HEARTBEAT: heartbeat request with the sender's opaque information, RFC 9260 section 3.3.5.
    Heartbeat(Bytes),
    /// HEARTBEAT ACK: heartbeat acknowledgement, RFC 9260 section 3.3.6.
    HeartbeatAck(Bytes),
    /// ABORT, RFC 9260 section 3.3.7.
    Abort {
        /// The T bit: whether the verification tag is copied from the packet that this chunk answers.
        reflected: bool,
        /// The error causes.
        causes: Vec<Cause>,
    },
    /// SHUTDOWN, RFC 9260 section 3.3.8.
    Shutdown {
        /// Cumulative TSN ack: all TSNs up to this one have arrived.
        cumulative_tsn: Tsn,
    },
    /// SHUTDOWN ACK: shutdown acknowledgement, RFC 9260 section 3.3.9.
    ShutdownAck,
    /// ERROR: operation error, RFC 9260 section 3.3.10.
    Error(Vec<Cause>),
    /// COOKIE ECHO: the state cookie, RFC 9260 section 3.3.11.
    CookieEcho(Bytes),
    /// COOKIE ACK: cookie acknowledgement, RFC 9260 section 3.3.12.
    CookieAck,
    /// ECNE: explicit congestion notification echo, with the first TSN of a marked packet. RFC 4960
    /// appendix A.
    Ecne(Tsn),
    /// CWR: congestion window reduced, with the TSN of the ECNE that it answers. RFC 4960 appendix A.
    Cwr(Tsn),
    /// SHUTDOWN COMPLETE, RFC 9260 section 3.3.13.
    ShutdownComplete {
        /// The T bit: whether the verification tag is copied from the packet that this chunk answers.
        reflected: bool,
    },
    /// AUTH: authentication of the chunks that follow. RFC 4895 section 5.1.
    Auth(Box<Auth>),
    /// FORWARD TSN: skips abandoned data. RFC 3758 section 3.2.
    ForwardTsn(Box<ForwardTsn>),
    /// I-DATA: user data of messages that may be interleaved. RFC 8260 section 2.1.
    IData(Box<IData>),
    /// I-FORWARD-TSN: skips abandoned messages that may be interleaved. RFC 8260 section 2.3.1.
    IForwardTsn(Box<IForwardTsn>),
    /// ASCONF: address configuration change. RFC 5061 section 4.1.1.
    Asconf(Box<Asconf>),
    /// ASCONF-ACK: address configuration acknowledgement. RFC 5061 section 4.1.2.
    AsconfAck(Box<AsconfAck>),
    /// RE-CONFIG: stream resets, or additional streams. RFC 6525 section 3.1.
    Reconfig(Vec<Reconfig>),
    /// A chunk of unknown type, stored so that it can be reported. RFC 9260 section 3.2.
    Unknown {
        /// Chunk type; its top two bits determine how the receiver handles it.
        kind: u8,
        /// Chunk flags.
        flags: u8,
        /// Chunk value.
        value: Bytes,
    },
}

/// Chunk types.
mod kind {
    pub const DATA: u8 = 0;
    pub const INIT: u8 = 1;
    pub const INIT_ACK: u8 = 2;
    pub const SACK: u8 = 3;
    pub const HEARTBEAT: u8 = 4;
    pub const HEARTBEAT_ACK: u8 = 5;
    pub const ABORT: u8 = 6;
    pub const SHUTDOWN: u8 = 7;
    pub const SHUTDOWN_ACK: u8 = 8;
    pub const ERROR: u8 = 9;
    pub const COOKIE_ECHO: u8 = 10;
    pub const COOKIE_ACK: u8 = 11;
    pub const ECNE: u8 = 12;
    pub const CWR: u8 = 13;
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    pub const AUTH: u8 = super::Auth::KIND;
    pub const ASCONF_ACK: u8 = super::AsconfAck::KIND;
    pub const FORWARD_TSN: u8 = super::ForwardTsn::KIND;
    pub const RECONFIG: u8 = super::Reconfig::KIND;
    pub const ASCONF: u8 = super::Asconf::KIND;
    pub const I_DATA: u8 = super::IData::KIND;
    pub const I_FORWARD_TSN: u8 = super::IForwardTsn::KIND;
}

/// The T bit of ABORT and SHUTDOWN COMPLETE. RFC 9260 section 8.5.1.
const REFLECTED_TAG_BIT: u8 = 0x01;

/// Type of the only parameter of HEARTBEAT. RFC 9260 section 3.3.5.
const HEARTBEAT_INFO: u16 = 1;

/// The fields that DATA and I-DATA chunks have in common.
#[derive(Debug, Clone, Copy)]
pub struct UserData<'c> {
    /// The flag bits B, E, U and I.
    pub flags: DataFlags,
    /// Transmission sequence number (TSN).
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// The user data.
    pub payload: &'c Bytes,
}

impl Chunk {
    /// Returns the user data of a DATA or I-DATA chunk.
    pub fn user_data(&self) -> Option<UserData<'_>> {
        match self {
            Self::Data(Data { flags, tsn, stream, payload, .. }) => {
                Some(UserData { flags: *flags, tsn: *tsn, stream: *stream, payload })
            }
            Self::IData(data) => {
                let IData { flags, tsn, stream, payload, .. } = &**data;
                Some(UserData { flags: *flags, tsn: *tsn, stream: *stream, payload })
            }
            _ => None,
        }
    }

    /// Length of a chunk header in octets.
    pub const HEADER_LENGTH: usize = tlv::HEADER_LENGTH;

    /// Returns the length of the chunk on the wire in octets, including padding to a multiple of four.
    #[inline]
    pub fn length(&self) -> usize {
        match self {
            Self::Data(data) => data.length(),
            Self::Sack(sack) => sack.length(),
            // Nearly all chunks are DATA or SACK; the lengths of others are computed out of line.
            _ => Self::HEADER_LENGTH + self.value_length().next_multiple_of(4),
        }
    }

    fn value_length(&self) -> usize {
        let causes = |causes: &[Cause]| causes.iter().map(Cause::length).sum::<usize>();
        match self {
            Self::Data(data) => data.length() - Self::HEADER_LENGTH,
            Self::Sack(sack) => sack.length() - Self::HEADER_LENGTH,
            Self::Init(init) | Self::InitAck(init) => init.value_length(),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => tlv::HEADER_LENGTH + info.len(),
            Self::Abort { causes: list, .. } | Self::Error(list) => causes(list),
            Self::Shutdown { .. } | Self::Ecne(_) | Self::Cwr(_) => 4,
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => 0,
            Self::CookieEcho(cookie) => cookie.len(),
            Self::Auth(auth) => auth.value_length(),
            Self::ForwardTsn(forward) => forward.value_length(),
            Self::IData(data) => data.value_length(),
            Self::IForwardTsn(forward) => forward.value_length(),
            Self::Asconf(asconf) => asconf.value_length(),
            Self::AsconfAck(ack) => ack.value_length(),
            Self::Reconfig(parameters) => parameters.iter().map(Reconfig::length).sum(),
            Self::Unknown { value, .. } => value.len(),
        }
    }

    /// Returns the chunk type. RFC 9260 section 3.2.
    pub fn kind(&self) -> u8 {
        self.kind_and_flags().0
    }

    /// Appends the chunk and its padding, as a packet contains it and an HMAC covers it. RFC 4895 section
    /// 6.2.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (kind, flags) = self.kind_and_flags();
        tlv::put(out, u16::from_be_bytes([kind, flags]), |out| self.emit_value(out));
        tlv::pad(out, start);
    }

    fn emit_value(&self, out: &mut Vec<u8>) {
        match self {
            Self::Data(data) => data.emit_value(out),
            Self::Init(init) | Self::InitAck(init) => init.emit_value(out),
            Self::Sack(sack) => sack.emit_value(out),
            Self::Heartbeat(info) | Self::HeartbeatAck(info) => {
                tlv::put(out, HEARTBEAT_INFO, |out| out.put_slice(info));
            }
            Self::Abort { causes, .. } | Self::Error(causes) => tlv::put_all(out, causes, Cause::emit),
            Self::Shutdown { cumulative_tsn: tsn } | Self::Ecne(tsn) | Self::Cwr(tsn) => out.put_u32(tsn.0),
            Self::ShutdownAck | Self::CookieAck | Self::ShutdownComplete { .. } => {}
            Self::CookieEcho(cookie) => out.put_slice(cookie),
            Self::Auth(auth) => auth.emit_value(out),
            Self::ForwardTsn(forward) => forward.emit_value(out),
            Self::IData(data) => data.emit_value(out),
            Self::IForwardTsn(forward) => forward.emit_value(out),
            Self::Asconf(asconf) => asconf.emit_value(out),
            Self::AsconfAck(ack) => ack.emit_value(out),
            Self::Reconfig(parameters) => tlv::put_all(out, parameters, Reconfig::emit),
            Self::Unknown { value, .. } => out.put_slice(value),
        }
    }

    fn kind_and_flags(&self) -> (u8, u8) {
        let t_bit = |reflected: bool| if reflected { REFLECTED_TAG_BIT } else { 0 };
        match self {
            Self::Data(data) => (kind::DATA, data.flags.0),
            Self::Init(_) => (kind::INIT, 0),
            Self::InitAck(_) => (kind::INIT_ACK, 0),
            Self::Sack(_) => (kind::SACK, 0),
            Self::Heartbeat(_) => (kind::HEARTBEAT, 0),
            Self::HeartbeatAck(_) => (kind::HEARTBEAT_ACK, 0),
            Self::Abort { reflected, .. } => (kind::ABORT, t_bit(*reflected)),
            Self::Shutdown { .. } => (kind::SHUTDOWN, 0),
            Self::ShutdownAck => (kind::SHUTDOWN_ACK, 0),
            Self::Error(_) => (kind::ERROR, 0),
            Self::CookieEcho(_) => (kind::COOKIE_ECHO, 0),
            Self::CookieAck => (kind::COOKIE_ACK, 0),
            Self::Ecne(_) => (kind::ECNE, 0),
            Self::Cwr(_) => (kind::CWR, 0),
            Self::ShutdownComplete { reflected } => (kind::SHUTDOWN_COMPLETE, t_bit(*reflected)),
            Self::Auth(_) => (kind::AUTH, 0),
            Self::ForwardTsn(_) => (kind::FORWARD_TSN, 0),
            Self::IData(data) => (kind::I_DATA, data.flags.0),
            Self::IForwardTsn(_) => (kind::I_FORWARD_TSN, 0),
            Self::Asconf(_) => (kind::ASCONF, 0),
            Self::AsconfAck(_) => (kind::ASCONF_ACK, 0),
            Self::Reconfig(_) => (kind::RECONFIG, 0),
            Self::Unknown { kind, flags, .. } => (*kind, *flags),
        }
    }

    /// Removes one chunk and its padding from the front of `octets`, and parses the chunk.
    pub(super) fn parse(octets: &mut Bytes) -> Result<Self, ParseError> {
        let (head, mut value) = tlv::take(octets)?;
        let [kind, flags] = head.to_be_bytes();
        let reflected = flags & REFLECTED_TAG_BIT != 0;
        let causes = |value| tlv::take_all(value, |code, value| Ok(Cause::parse(code, value)));
        Ok(match kind {
            kind::DATA => Self::Data(Data::parse_value(flags, value)?),
            kind::INIT => Self::Init(Box::new(Init::parse_value(value)?)),
            kind::INIT_ACK => Self::InitAck(Box::new(Init::parse_value(value)?)),
            kind::SACK => Self::Sack(Sack::parse_value(value)?),
            kind::HEARTBEAT => Self::Heartbeat(heartbeat_info(value)?),
            kind::HEARTBEAT_ACK => Self::HeartbeatAck(heartbeat_info(value)?),
            kind::ABORT => Self::Abort { reflected, causes: causes(value)? },
            kind::SHUTDOWN => Self::Shutdown { cumulative_tsn: Tsn(value.try_get_u32()?) },
            kind::SHUTDOWN_ACK => Self::ShutdownAck,
            kind::ERROR => Self::Error(causes(value)?),
            kind::COOKIE_ECHO => Self::CookieEcho(value),
            kind::COOKIE_ACK => Self::CookieAck,
            kind::ECNE => Self::Ecne(Tsn(value.try_get_u32()?)),
            kind::CWR => Self::Cwr(Tsn(value.try_get_u32()?)),
            kind::SHUTDOWN_COMPLETE => Self::ShutdownComplete { reflected },
            kind::AUTH => Self::Auth(Box::new(Auth::parse_value(value)?)),
            kind::FORWARD_TSN => Self::ForwardTsn(Box::new(ForwardTsn::parse_value(value)?)),
            kind::I_DATA => Self::IData(Box::new(IData::parse_value(flags, value)?)),
            kind::I_FORWARD_TSN => Self::IForwardTsn(Box::new(IForwardTsn::parse_value(value)?)),
            kind::ASCONF => Self::Asconf(Box::new(Asconf::parse_value(value)?)),
            kind::ASCONF_ACK => Self::AsconfAck(Box::new(AsconfAck::parse_value(value)?)),
            kind::RECONFIG => Self::Reconfig(tlv::take_all(value, Reconfig::parse)?),
            _ => Self::Unknown { kind, flags, value },
        })
    }
}

fn heartbeat_info(mut value: Bytes) -> Result<Bytes, ParseError> {
    match tlv::take(&mut value)? {
        (HEARTBEAT_INFO, info) => Ok(info),
        _ => Err(ParseError::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Chunk {
        /// Checks that the chunk is emitted as `octets` and parsed from them, with its padding and without.
        #[track_caller]
        pub(in crate::sctp) fn assert_octets(&self, octets: &[u8]) {
            let mut out = Vec::new();
            self.emit(&mut out);
            assert_eq!(out, octets);
            assert_eq!(self.length(), octets.len());
            let length = usize::from(u16::from_be_bytes([octets[2], octets[3]]));
            for octets in [octets, &octets[..length]] {
                let mut octets = Bytes::copy_from_slice(octets);
                assert_eq!(Chunk::parse(&mut octets).as_ref(), Ok(self));
                assert!(octets.is_empty());
            }
        }
    }

    /// RFC 9260 sections 3.3.5 to 3.3.13, by hand.
    #[test]
    fn small_chunks_are_laid_out_as_their_sections_say() {
        let heartbeat = [4, 0, 0, 11, 0, 1, 0, 7, 1, 2, 3, 0];
        Chunk::Heartbeat(Bytes::from_static(&[1, 2, 3])).assert_octets(&heartbeat);
        let heartbeat_ack = [5, 0, 0, 8, 0, 1, 0, 4];
        Chunk::HeartbeatAck(Bytes::new()).assert_octets(&heartbeat_ack);
        let abort = [6, 1, 0, 8, 0, 4, 0, 4];
        Chunk::Abort { reflected: true, causes: vec![Cause::OutOfResource] }.assert_octets(&abort);
        Chunk::Shutdown { cumulative_tsn: Tsn(9) }.assert_octets(&[7, 0, 0, 8, 0, 0, 0, 9]);
        Chunk::ShutdownAck.assert_octets(&[8, 0, 0, 4]);
        Chunk::CookieEcho(Bytes::from_static(&[7])).assert_octets(&[10, 0, 0, 5, 7, 0, 0, 0]);
        Chunk::CookieAck.assert_octets(&[11, 0, 0, 4]);
        Chunk::ShutdownComplete { reflected: false }.assert_octets(&[14, 0, 0, 4]);
        // RFC 4960 appendix A.
        Chunk::Ecne(Tsn(9)).assert_octets(&[12, 0, 0, 8, 0, 0, 0, 9]);
        Chunk::Cwr(Tsn(9)).assert_octets(&[13, 0, 0, 8, 0, 0, 0, 9]);
    }

    /// RFC 9260 section 3.2: the receiver may have to report the whole chunk.
    #[test]
    fn unknown_chunk_is_kept_unparsed() {
        let unknown = Chunk::Unknown { kind: 0xfe, flags: 0x55, value: Bytes::from_static(&[1, 2]) };
        unknown.assert_octets(&[0xfe, 0x55, 0, 6, 1, 2, 0, 0]);
    }

    /// RFC 9260 section 3.2: the length includes the header, so it is at least four.
    #[test]
    fn impossible_chunk_lengths_are_refused() {
        let parse = |octets: &'static [u8]| Chunk::parse(&mut Bytes::from_static(octets)).unwrap_err();
        for length in 0..4 {
            let octets = [11, 0, 0, length];
            assert_eq!(Chunk::parse(&mut octets.to_vec().into()), Err(ParseError::Length));
        }
        assert_eq!(parse(&[11, 0, 0, 5]), ParseError::Truncated);
        assert_eq!(parse(&[11, 0, 0]), ParseError::Truncated);
        assert_eq!(parse(&[4, 0, 0, 8, 0, 2, 0, 4]), ParseError::Value);
        assert_eq!(parse(&[7, 0, 0, 6, 0, 0, 0, 0]), ParseError::Truncated);
    }
}
