//! Messages over a byte stream. SCTP preserves message boundaries; an application of TCP must restore them.
//!
//! A function of the caller derives the length of a message from its first octets. The framer cuts the stream
//! accordingly, regardless of the segments.

use bytes::{Bytes, BytesMut};

use crate::DeliveryTimes;

/// A function that returns the length of the message that starts with the given octets; `None` if it needs more
/// octets.
pub type MessageLength = fn(&[u8]) -> Result<Option<usize>, FramingError>;

/// An error in the framing of messages: the octets do not start a valid message, so the connection cannot
/// continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid message: {0}")]
pub struct FramingError(pub &'static str);

/// A message that was cut from the byte stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramedMessage {
    /// The whole message.
    pub payload: Bytes,
    /// When the part that arrived last was sent and arrived.
    pub delivery_times: DeliveryTimes,
}

/// Cuts a byte stream into messages.
///
/// ```
/// use hol_transport::{Framer, DeliveryTimes};
///
/// // The first octet of a message is its length.
/// let mut framer = Framer::new(|octets| Ok(octets.first().map(|length| usize::from(*length))));
/// framer.push(vec![3, 7, 7, 2].into(), DeliveryTimes::default());
/// assert_eq!(framer.next()?.unwrap().payload, vec![3, 7, 7]);
/// assert_eq!(framer.next()?, None);
/// framer.push(vec![9].into(), DeliveryTimes::default());
/// assert_eq!(framer.next()?.unwrap().payload, vec![2, 9]);
/// # Ok::<(), hol_transport::FramingError>(())
/// ```
#[derive(Debug)]
pub struct Framer {
    length_of: MessageLength,
    /// Octets of the first message, which is incomplete.
    partial: BytesMut,
    partial_times: DeliveryTimes,
    /// Octets of the last piece that have not been parsed.
    rest: Bytes,
    rest_times: DeliveryTimes,
}

impl Framer {
    /// Maximum number of octets that are allocated in advance. The peer states the length of a message, and may
    /// be wrong.
    const MAX_RESERVED: usize = 64 << 10;

    /// Creates a framer; `length_of` returns the length of a message.
    pub fn new(length_of: MessageLength) -> Self {
        Self {
            length_of,
            partial: BytesMut::new(),
            partial_times: DeliveryTimes::default(),
            rest: Bytes::new(),
            rest_times: DeliveryTimes::default(),
        }
    }

    /// Adds the next octets of the stream. Before the next `push`, call [`next`](Self::next) until it returns
    /// `None`.
    pub fn push(&mut self, octets: Bytes, delivery_times: DeliveryTimes) {
        debug_assert!(self.rest.is_empty(), "every message must be taken before the next push");
        self.rest = octets;
        self.rest_times = delivery_times;
    }

    /// Returns whether there are octets that have not been parsed and may contain another message.
    pub fn has_unparsed_octets(&self) -> bool {
        !self.rest.is_empty()
    }

    /// Returns whether the octets received so far end within a message.
    pub fn is_within_message(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Returns the next complete message; `None` if more octets are needed.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would end, but the next push may complete another message"
    )]
    pub fn next(&mut self) -> Result<Option<FramedMessage>, FramingError> {
        if self.partial.is_empty() {
            if self.rest.is_empty() {
                return Ok(None);
            }
            // In the common case, one segment per message, nothing is copied.
            if let Some(length) = (self.length_of)(&self.rest)? {
                if length <= self.rest.len() {
                    let payload = self.rest.split_to(length);
                    return Ok(Some(FramedMessage { payload, delivery_times: self.rest_times }));
                }
                // The buffer grows at most once more, by the rest of the last segment.
                self.partial.reserve(length.min(Self::MAX_RESERVED));
            }
            self.partial_times = self.rest_times;
        }
        if !self.rest.is_empty() {
            self.partial_times = self.partial_times.join(self.rest_times);
            self.partial.extend_from_slice(&std::mem::take(&mut self.rest));
        }
        match (self.length_of)(&self.partial)? {
            Some(length) if length <= self.partial.len() => {
                let payload = self.partial.split_to(length).freeze();
                // The rest arrived with the last piece only.
                self.rest = std::mem::take(&mut self.partial).freeze();
                Ok(Some(FramedMessage { payload, delivery_times: self.partial_times }))
            }
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::Time;

    /// Returns a one-octet length that includes itself; zero is invalid.
    fn length_of(octets: &[u8]) -> Result<Option<usize>, FramingError> {
        match octets.first() {
            Some(0) => Err(FramingError("zero length")),
            first => Ok(first.map(|length| usize::from(*length))),
        }
    }

    #[test]
    fn messages_do_not_depend_on_how_the_stream_is_split() {
        let stream = Bytes::from_static(&[3, 7, 7, 1, 2, 9, 5, 1, 2, 3, 4]);
        let expected: [&[u8]; 4] = [&[3, 7, 7], &[1], &[2, 9], &[5, 1, 2, 3, 4]];
        for cuts in 0u32..1 << (stream.len() - 1) {
            let mut framer = Framer::new(length_of);
            let (mut messages, mut start) = (Vec::new(), 0);
            let ends = [3, 4, 6, stream.len()];
            for end in 1..=stream.len() {
                if end == stream.len() || cuts >> (end - 1) & 1 == 1 {
                    framer.push(stream.slice(start..end), DeliveryTimes::default());
                    while let Some(framed) = framer.next().unwrap() {
                        messages.push(framed.payload);
                    }
                    assert_eq!(
                        framer.is_within_message(),
                        !ends.contains(&end),
                        "cuts {cuts:b}, octet {end}"
                    );
                    start = end;
                }
            }
            assert_eq!(messages, expected, "cuts {cuts:b}");
        }
    }

    #[test]
    fn message_has_the_times_of_its_last_piece() {
        let mut framer = Framer::new(length_of);
        let at = |ms| DeliveryTimes { arrived: Time::from_millis(ms), ..DeliveryTimes::default() };
        framer.push(Bytes::from_static(&[2]), at(5));
        assert_eq!(framer.next(), Ok(None));
        framer.push(Bytes::from_static(&[9]), at(3));
        assert_eq!(framer.next().unwrap().unwrap().delivery_times, at(5));
    }

    #[test]
    fn message_within_one_piece_keeps_its_own_times() {
        let mut framer = Framer::new(length_of);
        let at = |ms| DeliveryTimes { arrived: Time::from_millis(ms), ..DeliveryTimes::default() };
        framer.push(Bytes::from_static(&[2]), at(5));
        assert_eq!(framer.next(), Ok(None));
        framer.push(Bytes::from_static(&[9, 1]), at(3));
        let times = [framer.next(), framer.next()].map(|message| message.unwrap().unwrap().delivery_times);
        assert_eq!(times, [at(5), at(3)]);
    }

    #[test]
    fn garbage_is_an_error() {
        let mut framer = Framer::new(length_of);
        framer.push(Bytes::from_static(&[0, 1]), DeliveryTimes::default());
        assert_eq!(framer.next(), Err(FramingError("zero length")));
    }
}
