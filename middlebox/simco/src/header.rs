//! The message header. RFC 4540 section 4.2.

use bytes::BufMut;

use crate::Challenge;

/// The TCP and SCTP port of a middlebox. RFC 4540 section 3.
pub const PORT: u16 = 7626;

/// SCTP payload protocol identifier of SIMCO. Messages are ordered; each is sent on the stream whose number is its TID
/// modulo the number of streams.
pub const PAYLOAD_PROTOCOL: u32 = 15;

/// A transaction identifier (TID). A reply has the TID of its request. RFC 4540 section 4.2.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tid(pub u32);

/// The eight octets that start every message.
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +---------------+---------------+-------------------------------+
/// |  basic type   |   sub-type    |  message length (octets after) |
/// +---------------+---------------+-------------------------------+
/// |                   transaction identifier (TID)                |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The basic type: request, positive reply, negative reply or notification, as encoded in the message.
    pub basic_type: u8,
    /// The sub-type: the kind of request, reply or notification, as encoded in the message.
    pub sub_type: u8,
    /// Number of octets that follow the header.
    pub body_length: u16,
    /// The transaction identifier of the message.
    pub tid: Tid,
}

/// Basic message types. RFC 4540 section 4.2.1.
pub(crate) mod basic_type {
    pub const REQUEST: u8 = 0x01;
    pub const POSITIVE_REPLY: u8 = 0x02;
    pub const NEGATIVE_REPLY: u8 = 0x03;
    pub const NOTIFICATION: u8 = 0x04;
}

/// Sub-types of requests and positive replies. RFC 4540 section 4.2.2.
pub(crate) mod sub_type {
    /// SE: session establishment.
    pub const SE: u8 = 0x01;
    /// SA: session authentication.
    pub const SA: u8 = 0x02;
    /// ST: session termination.
    pub const ST: u8 = 0x03;
    /// PRR: policy reserve rule.
    pub const PRR: u8 = 0x11;
    /// PER: policy enable rule.
    pub const PER: u8 = 0x12;
    /// PEA: policy enable rule after reservation; requests only.
    pub const PEA: u8 = 0x13;
    /// PDR: policy disable rule.
    pub const PDR: u8 = 0x14;
    /// PLC: policy rule lifetime change.
    pub const PLC: u8 = 0x15;
    /// PRD: policy rule deletion; positive replies only.
    pub const PRD: u8 = 0x16;
    /// PRS: policy rule status.
    pub const PRS: u8 = 0x21;
    /// PRL: policy rule list.
    pub const PRL: u8 = 0x22;
    /// PES: policy enable rule status; positive replies only.
    pub const PES: u8 = 0x23;
    /// PDS: policy disable rule status; positive replies only.
    pub const PDS: u8 = 0x24;
}

impl Header {
    /// Length of the header in octets.
    pub const LENGTH: usize = 8;

    /// Length of the longest request in octets: SE with a challenge.
    pub const LONGEST_REQUEST: usize = {
        const VERSION: usize = 8;
        const CHALLENGE_LENGTH: usize = 4 + Challenge::LIMIT;
        Self::LENGTH + VERSION + CHALLENGE_LENGTH
    };

    /// Parses the header of the message that starts with `octets`; `None` if these are too few.
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let [basic_type, sub_type, l0, l1, t0, t1, t2, t3] = *octets.first_chunk()?;
        Some(Self {
            basic_type,
            sub_type,
            body_length: u16::from_be_bytes([l0, l1]),
            tid: Tid(u32::from_be_bytes([t0, t1, t2, t3])),
        })
    }

    /// Returns the length of the whole message in octets.
    pub fn message_length(&self) -> usize {
        Self::LENGTH + usize::from(self.body_length)
    }

    /// Returns false if the message is too long to be a request.
    pub fn may_be_request(&self) -> bool {
        self.message_length() <= Self::LONGEST_REQUEST
    }

    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        let [length, tid] = [u64::from(self.body_length), u64::from(self.tid.0)];
        out.put_u64(u64::from(self.basic_type) << 56 | u64::from(self.sub_type) << 48 | length << 32 | tid);
    }
}

/// Returns the length of the message that starts with `octets`, in octets; `None` if these are too few to determine it.
pub fn length_of(octets: &[u8]) -> Option<usize> {
    Header::parse(octets).map(|header| header.message_length())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The length in a header does not include the header itself. RFC 4540 section 4.2.
    #[test]
    fn the_length_of_a_message_counts_its_header() {
        let octets = [0x01, 0x12, 0x00, 0x30, 0, 0, 0, 7];
        assert_eq!(length_of(&octets), Some(0x38));
        assert_eq!(length_of(&octets[..7]), None);
        assert_eq!(length_of(&[0xff; 8]), Some(65_543));
    }
}
