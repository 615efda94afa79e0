//! Messages on their way to their first transmission. RFC 9260 sections 6.5 and 6.9.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Message;
use hol_wire::Stamp;
use hol_wire::sctp::{Data, DataFlags, Ssn, Tsn};

use crate::flight::Limit;
use crate::send_buffer::SendBuffer;

/// A fragment that has no TSN yet.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) flags: DataFlags,
    pub(crate) stream: u16,
    pub(crate) ppid: u32,
    pub(crate) payload: Bytes,
    pub(crate) limit: Limit,
    /// The message is short enough for Nagle's rule.
    pub(crate) can_delay: bool,
}

/// Messages that wait, in the order in which they were handed over.
#[derive(Debug)]
pub(crate) struct StreamsOut {
    queue: VecDeque<Unsent>,
    next_ssn: Vec<Ssn>,
    /// Octets of the chunks in the queue, headers included.
    queued: usize,
    pub(crate) buffer: SendBuffer,
}

impl StreamsOut {
    pub(crate) fn new(streams: u16, buffer: SendBuffer) -> Self {
        Self { queue: VecDeque::new(), next_ssn: vec![Ssn(0); usize::from(streams)], queued: 0, buffer }
    }

    pub(crate) fn count(&self) -> u16 {
        self.next_ssn.len() as u16
    }

    /// Keeps the first `streams` streams: the peer serves no more. Gives the stream of each message that has to go. RFC 9260
    /// section 5.1.1.
    pub(crate) fn negotiate(&mut self, streams: u16) -> Vec<u16> {
        self.next_ssn.truncate(usize::from(streams));
        self.drop_from(streams)
    }

    /// Forgets everything: the association has restarted. Gives the stream of each message that was not sent to its end.
    /// RFC 9260 section 5.2.4.
    pub(crate) fn clear(&mut self) -> Vec<u16> {
        let dropped = self.drop_from(0);
        self.buffer.clear();
        *self = Self::new(self.count(), self.buffer.clone());
        dropped
    }

    /// Drops what waits for streams from `first` on.
    fn drop_from(&mut self, first: u16) -> Vec<u16> {
        let queue = std::mem::take(&mut self.queue);
        let (kept, dropped): (VecDeque<Unsent>, VecDeque<Unsent>) =
            queue.into_iter().partition(|unsent| unsent.stream < first);
        self.queue = kept;
        self.queued = self.queue.iter().map(Unsent::length).sum();
        dropped.iter().for_each(|unsent| self.buffer.release(unsent.payload.len()));
        dropped
            .iter()
            .filter(|unsent| unsent.flags.contains(DataFlags::END))
            .map(|unsent| unsent.stream)
            .collect()
    }

    /// Takes a message in fragments of at most `most` octets. Section 6.9.
    pub(crate) fn push(&mut self, message: Message, most: usize, now: Time) {
        let Message { stream, unordered, reliability, ppid, payload: mut rest } = message;
        let (limit, can_delay) = (Limit::new(reliability, now), rest.len() < most);
        let mut flags =
            if unordered { DataFlags::UNORDERED } else { DataFlags::default() } | DataFlags::BEGIN;
        while !rest.is_empty() {
            let fragment = rest.split_to(rest.len().min(most));
            let end = if rest.is_empty() { DataFlags::END } else { DataFlags::default() };
            self.buffer.charge(fragment.len());
            let unsent = Unsent { flags: flags | end, stream, ppid, payload: fragment, limit, can_delay };
            self.queued += unsent.length();
            self.queue.push_back(unsent);
            flags = DataFlags(flags.0 & !DataFlags::BEGIN.0);
        }
    }

    pub(crate) fn front(&self) -> Option<&Unsent> {
        self.queue.front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Octets of all chunks in the queue, headers included.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Takes the next fragment and its stream sequence number. Section 6.5.
    pub(crate) fn pop(&mut self) -> Option<(Unsent, Ssn)> {
        let unsent = self.queue.pop_front()?;
        self.queued -= unsent.length();
        let next = &mut self.next_ssn[usize::from(unsent.stream)];
        let ssn = *next;
        let ordered = !unsent.flags.contains(DataFlags::UNORDERED);
        if ordered && unsent.flags.contains(DataFlags::END) {
            *next = next.next();
        }
        Some((unsent, ssn))
    }

    /// Drops the message at the front but for its last fragment.
    pub(crate) fn pop_last_of_message(&mut self) -> Option<(Unsent, Ssn)> {
        while let Some(unsent) = self.queue.front()
            && !unsent.flags.contains(DataFlags::END)
        {
            let length = unsent.payload.len();
            self.queued -= unsent.length();
            self.queue.pop_front();
            self.buffer.release(length);
        }
        self.pop()
    }

    /// Drops the message at the front, of which nothing was sent: it takes no stream sequence number.
    pub(crate) fn drop_message(&mut self) {
        while let Some(unsent) = self.queue.pop_front() {
            self.queued -= unsent.length();
            self.buffer.release(unsent.payload.len());
            if unsent.flags.contains(DataFlags::END) {
                return;
            }
        }
    }
}

impl Unsent {
    /// It is the first of its message, so nothing of the message has been sent.
    pub(crate) fn begins(&self) -> bool {
        self.flags.contains(DataFlags::BEGIN)
    }

    /// The chunk as it goes on the wire.
    pub(crate) fn into_chunk(self, tsn: Tsn, ssn: Ssn, now: Time) -> Data {
        let Self { flags, stream, ppid, payload, .. } = self;
        Data { flags, tsn, stream, ssn, ppid, payload, stamp: Stamp { first_sent: now, sent: now } }
    }

    /// Octets of the chunk without padding.
    pub(crate) fn length(&self) -> usize {
        Data::HEADER + self.payload.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_transport::Reliability;

    fn message(length: usize) -> Message {
        let payload = Bytes::from(vec![7; length]);
        Message { stream: 0, unordered: false, reliability: Reliability::Full, ppid: 0, payload }
    }

    #[test]
    fn fragments_share_a_stream_sequence_number() {
        // RFC 9260 section 6.9.
        let mut streams = StreamsOut::new(1, SendBuffer::new(&crate::fixtures::rfc()));
        streams.push(message(25), 10, Time::ZERO);
        streams.push(message(5), 10, Time::ZERO);
        let sent: Vec<(u8, u16)> =
            std::iter::from_fn(|| streams.pop()).map(|(unsent, ssn)| (unsent.flags.0, ssn.0)).collect();
        assert_eq!(sent, [(0b10, 0), (0b00, 0), (0b01, 0), (0b11, 1)]);
    }

    #[test]
    fn a_partly_sent_message_uses_up_its_sequence_number_and_an_unsent_one_does_not() {
        let mut streams = StreamsOut::new(1, SendBuffer::new(&crate::fixtures::rfc()));
        for length in [25, 25, 5] {
            streams.push(message(length), 10, Time::ZERO);
        }
        streams.pop();
        let (last, ssn) = streams.pop_last_of_message().unwrap();
        assert_eq!((last.flags, ssn), (DataFlags::END, Ssn(0)));
        streams.drop_message();
        assert_eq!(streams.pop().unwrap().1, Ssn(1));
    }
}
