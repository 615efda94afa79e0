//! The order of messages within each stream. RFC 9260 section 6.5.

use std::collections::VecDeque;

use hol_transport::ReceivedData;
use hol_wire::sctp::Ssn;

/// Ordered messages that wait for earlier messages of their stream.
#[derive(Debug)]
pub(crate) struct InboundStreams {
    streams: Vec<Stream>,
    /// Number of octets of user data in waiting messages.
    held_octets: usize,
}

/// The state of an incoming stream.
#[derive(Debug, Default, Clone)]
struct Stream {
    next_ssn: Ssn,
    /// Complete messages that wait for `next_ssn`, in ascending order.
    waiting: VecDeque<(Ssn, ReceivedData)>,
}

impl InboundStreams {
    pub(crate) fn new(streams: u16) -> Self {
        Self { streams: vec![Stream::default(); usize::from(streams)], held_octets: 0 }
    }

    pub(crate) fn count(&self) -> u16 {
        self.streams.len() as u16
    }

    /// Adds `more` incoming streams. RFC 6525 section 5.2.5.
    pub(crate) fn add(&mut self, more: u16) {
        let count = self.streams.len() + usize::from(more);
        self.streams.resize(count, Stream::default());
    }

    /// Resets a stream, and delivers its waiting messages, because the missing messages can no longer arrive. RFC
    /// 6525 section 5.2.2 E3.
    pub(crate) fn reset(&mut self, stream: u16, mut deliver: impl FnMut(ReceivedData)) {
        let Some(stream) = self.streams.get_mut(usize::from(stream)) else { return };
        while !stream.waiting.is_empty() {
            stream.release(&mut self.held_octets, &mut deliver);
        }
        stream.next_ssn = Ssn(0);
    }

    pub(crate) fn has_stream(&self, stream: u16) -> bool {
        usize::from(stream) < self.streams.len()
    }

    pub(crate) fn held_octets(&self) -> usize {
        self.held_octets
    }

    /// Returns the number of messages that wait for earlier ones.
    pub(crate) fn waiting_messages(&self) -> usize {
        self.streams.iter().map(|stream| stream.waiting.len()).sum()
    }

    /// Adds a complete message. Passes it, and waiting messages that are now in order, to `deliver`.
    pub(crate) fn push(&mut self, ssn: Ssn, message: ReceivedData, mut deliver: impl FnMut(ReceivedData)) {
        if message.unordered {
            return deliver(message);
        }
        let stream = &mut self.streams[usize::from(message.stream)];
        if ssn == stream.next_ssn {
            stream.next_ssn = ssn.next();
            deliver(message);
            stream.deliver_next(&mut self.held_octets, &mut deliver);
        } else if ssn.after(stream.next_ssn) {
            stream.hold(ssn, message, &mut self.held_octets);
        }
    }

    /// Skips the messages of a stream up to `ssn`, which the peer has abandoned. RFC 3758 section 3.6.
    pub(crate) fn skip(&mut self, stream: u16, ssn: Ssn, mut deliver: impl FnMut(ReceivedData)) {
        let Some(stream) = self.streams.get_mut(usize::from(stream)) else { return };
        if ssn.before(stream.next_ssn) {
            return;
        }
        while let Some((first, _)) = stream.waiting.front()
            && first.at_or_before(ssn)
        {
            stream.release(&mut self.held_octets, &mut deliver);
        }
        stream.next_ssn = ssn.next();
        stream.deliver_next(&mut self.held_octets, &mut deliver);
    }
}

impl Stream {
    fn hold(&mut self, ssn: Ssn, message: ReceivedData, held: &mut usize) {
        let at = self.waiting.partition_point(|(other, _)| other.before(ssn));
        if self.waiting.get(at).is_none_or(|(other, _)| *other != ssn) {
            *held += message.payload.len();
            self.waiting.insert(at, (ssn, message));
        }
    }

    /// Delivers the waiting messages of the stream that are now in order.
    fn deliver_next(&mut self, held: &mut usize, deliver: &mut impl FnMut(ReceivedData)) {
        while self.waiting.front().is_some_and(|(ssn, _)| *ssn == self.next_ssn) {
            self.next_ssn = self.next_ssn.next();
            self.release(held, deliver);
        }
    }

    fn release(&mut self, held: &mut usize, deliver: &mut impl FnMut(ReceivedData)) {
        if let Some((_, message)) = self.waiting.pop_front() {
            *held -= message.payload.len();
            deliver(message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use hol_transport::DeliveryTimes;

    fn message(stream: u16, number: u8, unordered: bool) -> ReceivedData {
        let payload = Bytes::from(vec![number]);
        ReceivedData { stream, unordered, ppid: 0, payload, delivery_times: DeliveryTimes::default() }
    }

    #[test]
    fn gap_on_one_stream_does_not_delay_others() {
        // RFC 9260 section 6.5 and 6.6.
        let mut streams = InboundStreams::new(2);
        let mut out = Vec::new();
        let mut push = |stream, ssn, number, unordered| {
            streams.push(Ssn(ssn), message(stream, number, unordered), |m| out.push(m.payload[0]));
        };
        push(0, 1, 1, false);
        push(0, 2, 2, false);
        push(1, 0, 10, false);
        push(0, 0, 99, true);
        push(0, 0, 0, false);
        assert_eq!(out, [10, 99, 0, 1, 2]);
        assert_eq!(streams.held_octets(), 0);
    }

    #[test]
    fn stream_sequence_numbers_wrap() {
        let mut streams = InboundStreams::new(1);
        streams.skip(0, Ssn(30_000), |_| {});
        streams.skip(0, Ssn(60_000), |_| {});
        streams.skip(0, Ssn(u16::MAX - 1), |_| {});
        let mut out = Vec::new();
        streams.push(Ssn(0), message(0, 1, false), |m| out.push(m.payload[0]));
        streams.push(Ssn(u16::MAX), message(0, 0, false), |m| out.push(m.payload[0]));
        assert_eq!(out, [0, 1]);
    }

    #[test]
    fn a_skipped_message_no_longer_holds_up_its_stream() {
        // RFC 3758 section 3.6.
        let mut streams = InboundStreams::new(1);
        let mut out = Vec::new();
        for number in [1, 3, 4] {
            streams.push(Ssn(number), message(0, number as u8, false), |m| out.push(m.payload[0]));
        }
        streams.skip(0, Ssn(2), |m| out.push(m.payload[0]));
        assert_eq!(out, [1, 3, 4]);
    }
}
