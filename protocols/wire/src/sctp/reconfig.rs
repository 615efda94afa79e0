//! The RE-CONFIG chunk: stream resets, and additional streams. RFC 6525 sections 3.1 and 4.

use bytes::{Buf, BufMut, Bytes};
use hol_base::serial_number;

use super::{Tsn, tlv};
use crate::ParseError;

serial_number!(
    /// Sequence number of re-configuration requests. RFC 6525 section 4.1.
    ReconfigSerial, u32, i32
);

/// A re-configuration parameter: a request, or the response to one.
///
/// ```text
/// +-------------------------------+-------------------------------+
/// |        Parameter Type         |       Parameter Length        |
/// +-------------------------------+-------------------------------+
/// |      Re-configuration Request (or Response) Sequence Number   |
/// +---------------------------------------------------------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reconfig {
    /// Outgoing SSN Reset Request: reset of the sender's outgoing streams, RFC 6525 section 4.1.
    OutgoingReset {
        /// Sequence number of this request.
        serial: ReconfigSerial,
        /// Sequence number of the peer's request that this request answers. If it answers none, that of the
        /// peer's last completed request.
        response: ReconfigSerial,
        /// The last TSN that the sender has assigned.
        last_tsn: Tsn,
        /// The streams to reset; empty means all.
        streams: Vec<u16>,
    },
    /// Incoming SSN Reset Request: the peer shall reset its outgoing streams, RFC 6525 section 4.2.
    IncomingReset {
        /// Sequence number of this request.
        serial: ReconfigSerial,
        /// The streams to reset; empty means all.
        streams: Vec<u16>,
    },
    /// SSN/TSN Reset Request: reset of the TSNs and stream sequence numbers of both directions, RFC 6525
    /// section 4.3.
    TsnReset {
        /// Sequence number of this request.
        serial: ReconfigSerial,
    },
    /// The result of a request, RFC 6525 section 4.4.
    Response {
        /// Sequence number of the request.
        serial: ReconfigSerial,
        /// The result of the request.
        result: ReconfigResult,
        /// The sender's next TSN and the receiver's next TSN after a reset of TSNs; `None` in other
        /// responses.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// Add Outgoing Streams Request: the sender adds outgoing streams, RFC 6525 section 4.5.
    AddOutgoing {
        /// Sequence number of this request.
        serial: ReconfigSerial,
        /// Number of additional streams.
        streams: u16,
    },
    /// Add Incoming Streams Request: the peer shall add outgoing streams, RFC 6525 section 4.6.
    AddIncoming {
        /// Sequence number of this request.
        serial: ReconfigSerial,
        /// Number of additional streams.
        streams: u16,
    },
    /// A parameter of unknown type, or of wrong length.
    Unknown {
        /// Parameter type.
        kind: u16,
        /// Parameter value.
        value: Bytes,
    },
}

/// The result of a re-configuration request. RFC 6525 section 4.4, table 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconfigResult(pub u32);

impl ReconfigResult {
    /// Success: nothing to do.
    pub const NOTHING_TO_DO: Self = Self(0);
    /// Success: the request was performed.
    pub const PERFORMED: Self = Self(1);
    /// Denied: the peer refuses the request.
    pub const DENIED: Self = Self(2);
    /// Error: the stream does not exist.
    pub const WRONG_SSN: Self = Self(3);
    /// Error: another request is in progress.
    pub const ALREADY_IN_PROGRESS: Self = Self(4);
    /// Error: the sequence number of the request is neither the next one nor the last one.
    pub const BAD_SEQUENCE_NUMBER: Self = Self(5);
    /// In progress: the requester must send the request again.
    pub const IN_PROGRESS: Self = Self(6);

    /// Returns whether the request has taken effect.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::NOTHING_TO_DO | Self::PERFORMED)
    }
}

/// Types of the parameters of RE-CONFIG.
mod kind {
    pub const OUTGOING_RESET: u16 = 13;
    pub const INCOMING_RESET: u16 = 14;
    pub const TSN_RESET: u16 = 15;
    pub const RESPONSE: u16 = 16;
    pub const ADD_OUTGOING: u16 = 17;
    pub const ADD_INCOMING: u16 = 18;
}

impl Reconfig {
    /// The chunk type of RE-CONFIG.
    pub const KIND: u8 = 130;

    /// Returns the length of the parameter on the wire in octets, including padding.
    pub(super) fn length(&self) -> usize {
        let value = match self {
            Self::OutgoingReset { streams, .. } => 12 + 2 * streams.len(),
            Self::IncomingReset { streams, .. } => 4 + 2 * streams.len(),
            Self::TsnReset { .. } => 4,
            Self::Response { next_tsns, .. } => 8 + if next_tsns.is_some() { 8 } else { 0 },
            Self::AddOutgoing { .. } | Self::AddIncoming { .. } => 8,
            Self::Unknown { value, .. } => value.len(),
        };
        tlv::HEADER_LENGTH + value.next_multiple_of(4)
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::OutgoingReset { serial, response, last_tsn, streams } => {
                tlv::put(out, kind::OUTGOING_RESET, |out| {
                    [serial.0, response.0, last_tsn.0].iter().for_each(|word| out.put_u32(*word));
                    streams.iter().for_each(|stream| out.put_u16(*stream));
                });
            }
            Self::IncomingReset { serial, streams } => tlv::put(out, kind::INCOMING_RESET, |out| {
                out.put_u32(serial.0);
                streams.iter().for_each(|stream| out.put_u16(*stream));
            }),
            Self::TsnReset { serial } => tlv::put(out, kind::TSN_RESET, |out| out.put_u32(serial.0)),
            Self::Response { serial, result, next_tsns } => tlv::put(out, kind::RESPONSE, |out| {
                out.put_u32(serial.0);
                out.put_u32(result.0);
                if let Some((sender, receiver)) = next_tsns {
                    out.put_u32(sender.0);
                    out.put_u32(receiver.0);
                }
            }),
            Self::AddOutgoing { serial, streams } => put_add(out, kind::ADD_OUTGOING, *serial, *streams),
            Self::AddIncoming { serial, streams } => put_add(out, kind::ADD_INCOMING, *serial, *streams),
            Self::Unknown { kind, value } => tlv::put(out, *kind, |out| out.put_slice(value)),
        }
    }

    /// Parses a parameter; ignores the reserved field of a request to add streams.
    pub(super) fn parse(kind: u16, value: Bytes) -> Result<Self, ParseError> {
        let known = Self::parse_known(kind, &value);
        Ok(known.unwrap_or(Self::Unknown { kind, value }))
    }

    fn parse_known(kind: u16, value: &Bytes) -> Option<Self> {
        let mut rest = value.clone();
        let serial = ReconfigSerial(rest.try_get_u32().ok()?);
        Some(match (kind, rest.len()) {
            (kind::OUTGOING_RESET, length) if length >= 8 && length.is_multiple_of(2) => {
                let (response, last_tsn) = (ReconfigSerial(rest.get_u32()), Tsn(rest.get_u32()));
                Self::OutgoingReset { serial, response, last_tsn, streams: streams(rest) }
            }
            (kind::INCOMING_RESET, length) if length.is_multiple_of(2) => {
                Self::IncomingReset { serial, streams: streams(rest) }
            }
            (kind::TSN_RESET, 0) => Self::TsnReset { serial },
            (kind::RESPONSE, length @ (4 | 12)) => {
                let result = ReconfigResult(rest.get_u32());
                let next_tsns = (length == 12).then(|| (Tsn(rest.get_u32()), Tsn(rest.get_u32())));
                Self::Response { serial, result, next_tsns }
            }
            (kind::ADD_OUTGOING, 4) => Self::AddOutgoing { serial, streams: rest.get_u16() },
            (kind::ADD_INCOMING, 4) => Self::AddIncoming { serial, streams: rest.get_u16() },
            _ => return None,
        })
    }
}

fn put_add(out: &mut Vec<u8>, kind: u16, serial: ReconfigSerial, streams: u16) {
    tlv::put(out, kind, |out| {
        out.put_u32(serial.0);
        out.put_u16(streams);
        out.put_u16(0);
    });
}

fn streams(mut value: Bytes) -> Vec<u16> {
    (0..value.len() / 2).map(|_| value.get_u16()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Chunk;
    use super::*;

    /// RFC 6525 sections 3.1 and 4.1 to 4.6, by hand.
    #[test]
    fn every_request_and_response_is_laid_out_as_rfc_6525_says() {
        let (serial, response, last_tsn) = (ReconfigSerial(1), ReconfigSerial(2), Tsn(3));
        let laid_out = |parameters: Vec<Reconfig>, octets: &[u8]| {
            let length = 4 + octets.len().next_multiple_of(4) as u8;
            let unpadded = 4 + octets.len() as u8;
            let mut whole = [&[130, 0, 0, unpadded], octets].concat();
            whole.resize(length.into(), 0);
            Chunk::Reconfig(parameters).assert_octets(&whole);
        };
        let outgoing = [0, 13, 0, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 7];
        laid_out(vec![Reconfig::OutgoingReset { serial, response, last_tsn, streams: vec![7] }], &outgoing);
        let incoming = [0, 14, 0, 12, 0, 0, 0, 1, 0, 7, 1, 0];
        laid_out(vec![Reconfig::IncomingReset { serial, streams: vec![7, 256] }], &incoming);
        laid_out(vec![Reconfig::TsnReset { serial }], &[0, 15, 0, 8, 0, 0, 0, 1]);
        let result = ReconfigResult::DENIED;
        let response = Reconfig::Response { serial, result, next_tsns: None };
        laid_out(vec![response], &[0, 16, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2]);
        let result = ReconfigResult::PERFORMED;
        let response = Reconfig::Response { serial, result, next_tsns: Some((Tsn(4), Tsn(5))) };
        laid_out(vec![response], &[0, 16, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5]);
        let add = [0, 17, 0, 12, 0, 0, 0, 1, 0, 9, 0, 0, 0, 18, 0, 12, 0, 0, 0, 1, 0, 9, 0, 0];
        let (out, into) =
            (Reconfig::AddOutgoing { serial, streams: 9 }, Reconfig::AddIncoming { serial, streams: 9 });
        laid_out(vec![out, into], &add);
    }

    /// RFC 6525 section 4: it is not performed; section 4.4: both TSNs or none.
    #[test]
    fn request_of_wrong_length_is_kept_as_unknown() {
        for (kind, length) in [(13, 10), (13, 13), (14, 5), (15, 8), (16, 4), (16, 12), (17, 4), (19, 4)] {
            let value = Bytes::from(vec![0; length]);
            let parsed = Reconfig::parse(kind, value.clone());
            assert_eq!(parsed, Ok(Reconfig::Unknown { kind, value }));
        }
    }
}
