//! Messages of any size that contain only their number: `echo`, `pingpong`, `oneway` and `bulk`.

use bytes::{Bytes, BytesMut};
use hol_base::Time;
use hol_measure::RecordKind;
use hol_transport::FramingError;

use crate::receiver::ReplySource;
use crate::sender::{RepliedRequest, RequestSource};
use crate::{ConnectionId, WorkloadError};

/// A mask that is combined with message numbers by XOR, so that protocol analysers do not mistake small numbers for
/// commands of a known protocol.
const NUMBER_MARK: u32 = u32::from_be_bytes(*b"hol\0");

/// A buffer of zeros, from which many messages are taken so that they share one allocation.
#[derive(Debug, Default)]
pub(crate) struct Zeros(BytesMut);

/// Builds messages: four octets of length, four octets of masked number, then zeros.
#[derive(Debug)]
pub(crate) struct Padding {
    size: usize,
    zeros: Zeros,
    /// The last long message. If nothing else refers to it, its buffer is reused for the next message, because its
    /// zeros are unchanged.
    last_message: Bytes,
}

impl Zeros {
    const SLAB_OCTETS: usize = 64 << 10;

    /// Returns a buffer of `octets` zeros that no other message shares.
    pub(crate) fn take(&mut self, octets: usize) -> BytesMut {
        if self.0.len() < octets {
            self.0 = BytesMut::zeroed(octets.max(Self::SLAB_OCTETS));
        }
        self.0.split_to(octets)
    }
}

impl Padding {
    /// Messages of at least this length have their own allocation.
    const LONG_MESSAGE: usize = 1024;

    /// Creates a builder of messages of `size` octets.
    pub(crate) fn new(size: usize) -> Self {
        Self { size, zeros: Zeros::default(), last_message: Bytes::new() }
    }

    /// Builds the message with this number.
    pub(crate) fn message(&mut self, number: u32) -> Bytes {
        if self.size < Self::LONG_MESSAGE {
            return message(&mut self.zeros, self.size, number);
        }
        let last = std::mem::take(&mut self.last_message).try_into_mut();
        let message = with_header(last.unwrap_or_else(|_| BytesMut::zeroed(self.size)), number);
        self.last_message = message.clone();
        message
    }
}

/// Builds a message of `octets` octets with this number.
pub(crate) fn message(zeros: &mut Zeros, octets: usize, number: u32) -> Bytes {
    with_header(zeros.take(octets), number)
}

/// Writes the length and the number into the start of a message.
pub(crate) fn with_header(mut message: BytesMut, number: u32) -> Bytes {
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_be_bytes());
    message[4..8].copy_from_slice(&(number ^ NUMBER_MARK).to_be_bytes());
    message.freeze()
}

/// Returns the number in a message.
pub(crate) fn number(message: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*message.get(4..)?.first_chunk()?) ^ NUMBER_MARK)
}

/// Returns the length of the message that starts with `octets`.
pub(crate) fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
    let Some(length) = octets.first_chunk().map(|length| u32::from_be_bytes(*length)) else {
        return Ok(None);
    };
    let possible = WorkloadError::MIN_SIZE..=WorkloadError::MAX_SIZE;
    if possible.contains(&u64::from(length)) {
        Ok(Some(length as usize))
    } else {
        Err(FramingError("an invalid length"))
    }
}

/// The requests of a workload whose messages contain only a number and zeros.
#[derive(Debug)]
pub(crate) struct NumberedRequests {
    padding: Padding,
    kind: RecordKind,
}

impl NumberedRequests {
    /// Creates the source of numbered requests of `size` octets.
    pub(crate) fn new(size: u64, kind: RecordKind) -> Self {
        Self { padding: Padding::new(size as usize), kind }
    }
}

impl RequestSource for NumberedRequests {
    fn kind(&self) -> RecordKind {
        self.kind
    }

    fn next(&mut self, _: Time, number: u32) -> (u32, Bytes) {
        (number, self.padding.message(number))
    }

    fn reply(&mut self, _: Time, payload: &Bytes) -> Result<RepliedRequest, &'static str> {
        number(payload).map(RepliedRequest::Message).ok_or("the message has no number")
    }
}

/// The replies of a workload whose messages contain only a number and zeros: the requests themselves, or none.
#[derive(Debug)]
pub(crate) struct PaddingReplies {
    pub(crate) is_echo: bool,
}

impl ReplySource for PaddingReplies {
    fn number(&self, request: &Bytes) -> Option<u32> {
        number(request)
    }

    fn answer(&mut self, _: Time, _: ConnectionId, request: Bytes) -> Result<Option<Bytes>, &'static str> {
        Ok(self.is_echo.then_some(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_has_its_length_and_number_and_then_zeros() {
        for size in [1000, 4096] {
            let mut padding = Padding::new(size);
            for message_number in 0..200 {
                let message = padding.message(message_number);
                assert_eq!(length_of(&message), Ok(Some(size)));
                assert_eq!((message.len(), number(&message)), (size, Some(message_number)));
                assert!(message[8..].iter().all(|octet| *octet == 0));
            }
        }
    }

    #[test]
    fn referenced_message_is_not_overwritten() {
        let mut padding = Padding::new(4096);
        let held: Vec<Bytes> = (0..3).map(|number| padding.message(number)).collect();
        let numbers: Vec<_> = held.iter().map(|message| number(message)).collect();
        assert_eq!(numbers, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn impossible_lengths_are_refused() {
        assert_eq!(length_of(&[0, 0, 0]), Ok(None));
        assert!(length_of(&[0, 0, 0, 7]).is_err());
        assert!(length_of(&[0xff; 4]).is_err());
    }
}
