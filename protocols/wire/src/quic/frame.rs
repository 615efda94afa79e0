//! Frames. RFC 9000 section 19, RFC 9221 section 4, draft-ietf-quic-ack-frequency.

use smallvec::{SmallVec, smallvec};

use super::varint::{skip, take};
use crate::ParseError;

/// A QUIC frame, without the content that only an endpoint needs. RFC 9000 section 19.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// PADDING frames, as their number of octets. RFC 9000 section 19.1.
    Padding(usize),
    /// PING frame. RFC 9000 section 19.2.
    Ping,
    /// ACK frame. RFC 9000 section 19.3.
    Ack {
        /// The acknowledged ranges of packet numbers, each with its first and last number, the
        /// largest range first.
        ranges: SmallVec<[(u64, u64); 4]>,
    },
    /// RESET_STREAM frame. RFC 9000 section 19.4.
    ResetStream {
        /// Number of the stream.
        id: u64,
        /// The application's error code.
        error: u64,
        /// The final size of the stream in octets.
        final_size: u64,
    },
    /// STOP_SENDING frame. RFC 9000 section 19.5.
    StopSending {
        /// Number of the stream.
        id: u64,
        /// The application's error code.
        error: u64,
    },
    /// CRYPTO frame. RFC 9000 section 19.6.
    Crypto {
        /// Offset of the first octet in the handshake messages.
        offset: u64,
        /// Length of the data in octets.
        length: u64,
    },
    /// NEW_TOKEN frame. RFC 9000 section 19.7.
    NewToken,
    /// STREAM frame. RFC 9000 section 19.8.
    Stream {
        /// Number of the stream.
        id: u64,
        /// Offset of the first octet in the stream.
        offset: u64,
        /// Length of the data in octets.
        length: u64,
        /// Whether the stream ends with this frame.
        fin: bool,
    },
    /// MAX_DATA frame, with the maximum number of octets on all streams. RFC 9000 section 19.9.
    MaxData(u64),
    /// MAX_STREAM_DATA frame, with the stream and the maximum number of octets on it. RFC 9000
    /// section 19.10.
    MaxStreamData(u64, u64),
    /// MAX_STREAMS frame, with the kind of streams and their maximum number. RFC 9000 section
    /// 19.11.
    MaxStreams(StreamKind, u64),
    /// DATA_BLOCKED frame, with the limit that blocks the sender, in octets. RFC 9000 section
    /// 19.12.
    DataBlocked(u64),
    /// STREAM_DATA_BLOCKED frame, with the stream and the limit that blocks the sender, in octets.
    /// RFC 9000 section 19.13.
    StreamDataBlocked(u64, u64),
    /// STREAMS_BLOCKED frame, with the kind of streams and the limit of their number. RFC 9000
    /// section 19.14.
    StreamsBlocked(StreamKind, u64),
    /// NEW_CONNECTION_ID frame. RFC 9000 section 19.15.
    NewConnectionId {
        /// The sequence number of the connection ID.
        sequence: u64,
        /// The peer must retire all connection IDs whose sequence number is below this.
        retire_prior_to: u64,
        /// The connection ID.
        id: SmallVec<[u8; 8]>,
    },
    /// RETIRE_CONNECTION_ID frame, with the sequence number of the connection ID. RFC 9000 section
    /// 19.16.
    RetireConnectionId(u64),
    /// PATH_CHALLENGE frame. RFC 9000 section 19.17.
    PathChallenge,
    /// PATH_RESPONSE frame. RFC 9000 section 19.18.
    PathResponse,
    /// CONNECTION_CLOSE frame. RFC 9000 section 19.19.
    ConnectionClose {
        /// Whether the application closes the connection, not the transport.
        by_application: bool,
        /// The error code.
        error: u64,
    },
    /// HANDSHAKE_DONE frame. RFC 9000 section 19.20.
    HandshakeDone,
    /// DATAGRAM frame, with its length in octets. RFC 9221 section 4.
    Datagram(u64),
    /// ACK_FREQUENCY frame, which asks the peer to acknowledge less often.
    /// draft-ietf-quic-ack-frequency, section 4.
    AckFrequency {
        /// Number of ack-eliciting packets that may arrive before the peer must acknowledge.
        threshold: u64,
        /// Maximum delay of an acknowledgment in microseconds.
        max_ack_delay: u64,
    },
    /// IMMEDIATE_ACK frame, which asks the peer to acknowledge at once.
    /// draft-ietf-quic-ack-frequency, section 5.
    ImmediateAck,
}

/// The kinds of streams. RFC 9000 section 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// Both endpoints send on the stream.
    Bidirectional,
    /// Only the endpoint that opens the stream sends on it.
    Unidirectional,
}

/// The frames of a packet.
#[derive(Debug, Clone)]
pub struct Frames<'a>(&'a [u8]);

impl<'a> Frames<'a> {
    /// Returns the frames in the payload of a packet.
    pub(super) fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let frame = Frame::take(&mut self.0);
        if frame.is_err() {
            self.0 = &[];
        }
        Some(frame)
    }
}

impl Frame {
    fn take(octets: &mut &[u8]) -> Result<Self, ParseError> {
        let kind = take(octets)?;
        Ok(match kind {
            0x00 => Self::Padding(1 + skip_padding(octets)),
            0x01 => Self::Ping,
            0x02 | 0x03 => parse_ack(kind == 0x03, octets)?,
            0x04 => {
                let [id, error, final_size] = numbers(octets)?;
                Self::ResetStream { id, error, final_size }
            }
            0x05 => {
                let [id, error] = numbers(octets)?;
                Self::StopSending { id, error }
            }
            0x06 => {
                let [offset, length] = numbers(octets)?;
                skip(octets, length)?;
                Self::Crypto { offset, length }
            }
            0x07 => {
                let length = take(octets)?;
                skip(octets, length)?;
                Self::NewToken
            }
            0x08..=0x0f => parse_stream(kind, octets)?,
            0x10 => Self::MaxData(take(octets)?),
            0x11 => {
                let [id, maximum] = numbers(octets)?;
                Self::MaxStreamData(id, maximum)
            }
            0x12 => Self::MaxStreams(StreamKind::Bidirectional, take(octets)?),
            0x13 => Self::MaxStreams(StreamKind::Unidirectional, take(octets)?),
            0x14 => Self::DataBlocked(take(octets)?),
            0x15 => {
                let [id, limit] = numbers(octets)?;
                Self::StreamDataBlocked(id, limit)
            }
            0x16 => Self::StreamsBlocked(StreamKind::Bidirectional, take(octets)?),
            0x17 => Self::StreamsBlocked(StreamKind::Unidirectional, take(octets)?),
            0x18 => new_connection_id(octets)?,
            0x19 => Self::RetireConnectionId(take(octets)?),
            0x1a => {
                skip(octets, 8)?;
                Self::PathChallenge
            }
            0x1b => {
                skip(octets, 8)?;
                Self::PathResponse
            }
            0x1c | 0x1d => connection_close(kind == 0x1d, octets)?,
            0x1e => Self::HandshakeDone,
            0x1f => Self::ImmediateAck,
            0x30 => Self::Datagram(skip(octets, octets.len() as u64)?.len() as u64),
            0x31 => {
                let length = take(octets)?;
                skip(octets, length)?;
                Self::Datagram(length)
            }
            0xaf => {
                let [_sequence, threshold, max_ack_delay, _reordering] = numbers(octets)?;
                Self::AckFrequency { threshold, max_ack_delay }
            }
            _ => return Err(ParseError::Value),
        })
    }
}

fn numbers<const N: usize>(octets: &mut &[u8]) -> Result<[u64; N], ParseError> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = take(octets)?;
    }
    Ok(numbers)
}

/// Skips octets of zero, and returns their number.
fn skip_padding(octets: &mut &[u8]) -> usize {
    let zeros = octets.iter().take_while(|octet| **octet == 0).count();
    *octets = &octets[zeros..];
    zeros
}

/// Parses an ACK frame. Its gaps and range lengths count down from the largest packet number. RFC
/// 9000 section 19.3.1.
fn parse_ack(has_ecn: bool, octets: &mut &[u8]) -> Result<Frame, ParseError> {
    let [largest, _delay, count, first] = numbers(octets)?;
    let below = |high: u64, by: u64| high.checked_sub(by).ok_or(ParseError::Value);
    let mut ranges = smallvec![(below(largest, first)?, largest)];
    let mut smallest = largest - first;
    for _ in 0..count {
        let [gap, length] = numbers(octets)?;
        let high = below(below(smallest, gap)?, 2)?;
        smallest = below(high, length)?;
        ranges.push((smallest, high));
    }
    if has_ecn {
        let [_ect_0, _ect_1, _ce] = numbers(octets)?;
    }
    Ok(Frame::Ack { ranges })
}

/// Parses a STREAM frame, whose type determines its fields. RFC 9000 section 19.8.
fn parse_stream(kind: u64, octets: &mut &[u8]) -> Result<Frame, ParseError> {
    const OFFSET_BIT: u64 = 4;
    const LENGTH_BIT: u64 = 2;
    const FIN_BIT: u64 = 1;
    let id = take(octets)?;
    let offset = if kind & OFFSET_BIT == 0 { 0 } else { take(octets)? };
    let length = if kind & LENGTH_BIT == 0 { octets.len() as u64 } else { take(octets)? };
    skip(octets, length)?;
    Ok(Frame::Stream { id, offset, length, fin: kind & FIN_BIT != 0 })
}

fn new_connection_id(octets: &mut &[u8]) -> Result<Frame, ParseError> {
    const RESET_TOKEN: u64 = 16;
    let [sequence, retire_prior_to] = numbers(octets)?;
    let length = skip(octets, 1)?[0];
    let id = SmallVec::from_slice(skip(octets, length.into())?);
    skip(octets, RESET_TOKEN)?;
    Ok(Frame::NewConnectionId { sequence, retire_prior_to, id })
}

/// Parses a CONNECTION_CLOSE frame; only the transport's variant contains a frame type. RFC 9000
/// section 19.19.
fn connection_close(by_application: bool, octets: &mut &[u8]) -> Result<Frame, ParseError> {
    let error = take(octets)?;
    if !by_application {
        take(octets)?;
    }
    let reason = take(octets)?;
    skip(octets, reason)?;
    Ok(Frame::ConnectionClose { by_application, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(octets: &[u8]) -> Vec<Result<Frame, ParseError>> {
        Frames::new(octets).collect()
    }

    /// RFC 9000 section 19.8: the type determines whether offset, length and fin are present.
    #[test]
    fn a_stream_frame_without_a_length_takes_the_rest() {
        let whole = Frame::Stream { id: 6, offset: 0, length: 3, fin: false };
        assert_eq!(read(&[0x08, 6, 1, 2, 3]), [Ok(whole)]);
        let first = Frame::Stream { id: 6, offset: 16, length: 2, fin: true };
        assert_eq!(read(&[0x0f, 6, 16, 2, 1, 2, 1]), [Ok(first), Ok(Frame::Ping)]);
    }

    /// RFC 9000 section 19.3.1: smallest = previous smallest - gap - 2 - length.
    #[test]
    fn the_ranges_of_an_ack_count_down() {
        let ack = Frame::Ack { ranges: smallvec![(8, 10), (2, 4)] };
        assert_eq!(read(&[0x02, 10, 0, 1, 2, 2, 2]), [Ok(ack)]);
        assert_eq!(read(&[0x02, 1, 0, 0, 2]), [Err(ParseError::Value)]);
        assert_eq!(read(&[0x02, 10, 0, 1, 2, 7, 0]), [Err(ParseError::Value)]);
    }

    /// RFC 9000 section 12.4: a frame of an unknown type is an error.
    #[test]
    fn an_unknown_frame_ends_the_packet() {
        assert_eq!(read(&[0, 0, 0x40, 0x2f, 1]), [Ok(Frame::Padding(2)), Err(ParseError::Value)]);
    }
}
