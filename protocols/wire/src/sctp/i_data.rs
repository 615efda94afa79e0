//! The I-DATA chunk. RFC 8260 section 2.1.

use bytes::{Buf, BufMut, Bytes};
use hol_base::serial_number;

use super::{Data, DataFlags, Ssn, Tsn};
use crate::{ParseError, SendTimes};

serial_number!(
    /// Message identifier (MID): one per message of a stream. Ordered and unordered messages are numbered
    /// separately. RFC 8260 section 2.1.
    Mid, u32, i32
);
serial_number!(
    /// Fragment sequence number (FSN): one for each fragment of a message. RFC 8260 section 2.1.
    Fsn, u32, i32
);

/// User data, or a fragment of it, with its position in the message, so that fragments of other messages may come in
/// between.
///
/// ```text
/// +---------------+-------+-+-+-+-+-------------------------------+
/// |   Type = 64   |  Res  |I|U|B|E|         Chunk Length          |
/// +---------------+-------+-+-+-+-+-------------------------------+
/// |                              TSN                              |
/// +-------------------------------+-------------------------------+
/// |       Stream Identifier       |           Reserved            |
/// +-------------------------------+-------------------------------+
/// |                      Message Identifier                       |
/// +---------------------------------------------------------------+
/// |    B: Payload Protocol Identifier; else: Fragment Number      |
/// +---------------------------------------------------------------+
/// |                           User Data                           |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IData {
    /// The flag bits B, E, U and I.
    pub flags: DataFlags,
    /// Transmission sequence number (TSN).
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Message identifier (MID), the same in all fragments of a message.
    pub mid: Mid,
    /// Fragment sequence number (FSN); 0 for the first fragment, which does not contain the field on the wire.
    pub fsn: Fsn,
    /// Payload protocol identifier. On the wire only the first fragment contains it; 0 in all others.
    pub ppid: u32,
    /// User data; never empty on the wire.
    pub payload: Bytes,
    /// When the payload was sent; for measurement only, not on the wire.
    pub stamp: SendTimes,
}

impl IData {
    /// The chunk type of I-DATA.
    pub const KIND: u8 = 64;
    /// Length in octets of the chunk before the user data.
    pub const HEADER_LENGTH: usize = 20;

    /// Converts user data to an I-DATA chunk with these numbers.
    pub fn new(data: &Data, mid: Mid, fsn: Fsn) -> Self {
        let Data { flags, tsn, stream, ppid, ref payload, stamp, .. } = *data;
        let (fsn, ppid) = if flags.contains(DataFlags::BEGIN) { (Fsn(0), ppid) } else { (fsn, 0) };
        Self { flags, tsn, stream, mid, fsn, ppid, payload: payload.clone(), stamp }
    }

    /// Converts the chunk to a DATA chunk, whose stream sequence number is the lower half of the MID. RFC 8260
    /// section 4.1.
    pub fn to_data(&self) -> Data {
        let Self { flags, tsn, stream, mid, ppid, ref payload, stamp, .. } = *self;
        Data { flags, tsn, stream, ssn: Ssn(mid.0 as u16), ppid, payload: payload.clone(), stamp }
    }

    pub(super) fn value_length(&self) -> usize {
        Self::HEADER_LENGTH - super::Chunk::HEADER_LENGTH + self.payload.len()
    }

    pub(super) fn emit_value(&self, out: &mut Vec<u8>) {
        out.put_u32(self.tsn.0);
        out.put_u16(self.stream);
        out.put_u16(0);
        out.put_u32(self.mid.0);
        out.put_u32(if self.flags.contains(DataFlags::BEGIN) { self.ppid } else { self.fsn.0 });
        out.put_slice(&self.payload);
    }

    pub(super) fn parse_value(flags: u8, mut value: Bytes) -> Result<Self, ParseError> {
        let flags = DataFlags(flags);
        let (tsn, stream) = (Tsn(value.try_get_u32()?), value.try_get_u16()?);
        // Reserved: "ignored by the receiver".
        value.try_get_u16()?;
        let mid = Mid(value.try_get_u32()?);
        let last = value.try_get_u32()?;
        let (fsn, ppid) = if flags.contains(DataFlags::BEGIN) { (0, last) } else { (last, 0) };
        Ok(Self { flags, tsn, stream, mid, fsn: Fsn(fsn), ppid, payload: value, stamp: SendTimes::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    fn fragment(flags: DataFlags, fsn: u32, ppid: u32) -> IData {
        IData {
            flags,
            tsn: Tsn(0x0102_0304),
            stream: 7,
            mid: Mid(0x0a0b_0c0d),
            fsn: Fsn(fsn),
            ppid,
            payload: Bytes::from_static(b"hello"),
            stamp: SendTimes::default(),
        }
    }

    /// RFC 8260 section 2.1 by hand: the first fragment has the PPID, the others have their number there.
    #[test]
    fn i_data_layout_has_mid_and_ppid_or_fsn() {
        let mut octets = vec![64, 0x02, 0, 25, 1, 2, 3, 4, 0, 7, 0, 0, 10, 11, 12, 13, 0, 0, 0, 15];
        octets.extend(b"hello\0\0\0");
        Chunk::IData(Box::new(fragment(DataFlags::BEGIN, 0, 15))).assert_octets(&octets);
        octets[1] = 0x0d;
        let rest = fragment(DataFlags::END | DataFlags::UNORDERED | DataFlags::IMMEDIATE, 15, 0);
        Chunk::IData(Box::new(rest)).assert_octets(&octets);
    }

    #[test]
    fn reserved_bits_are_ignored_and_a_cut_header_is_refused() {
        let octets = [0, 0, 0, 1, 0, 2, 0xff, 0xff, 0, 0, 0, 3, 0, 0, 0, 4, 9];
        let parsed = IData::parse_value(0, Bytes::copy_from_slice(&octets)).unwrap();
        assert_eq!((parsed.mid, parsed.fsn, parsed.ppid, &parsed.payload[..]), (Mid(3), Fsn(4), 0, &[9][..]));
        for length in 0..16 {
            let value = Bytes::copy_from_slice(&octets[..length]);
            assert_eq!(IData::parse_value(0, value), Err(ParseError::Truncated), "{length}");
        }
        // A chunk without user data parses, because the receiver must answer it.
        assert!(IData::parse_value(3, Bytes::copy_from_slice(&octets[..16])).unwrap().payload.is_empty());
    }

    #[test]
    fn data_and_i_data_convert_into_each_other() {
        let first = fragment(DataFlags::BEGIN, 0, 15);
        assert_eq!(IData::new(&first.to_data(), first.mid, Fsn(3)), first);
        let rest = fragment(DataFlags::END, 3, 0);
        assert_eq!(IData::new(&Data { ppid: 15, ..rest.to_data() }, rest.mid, Fsn(3)), rest);
        assert_eq!(rest.to_data().ssn, Ssn(0x0c0d));
    }
}
