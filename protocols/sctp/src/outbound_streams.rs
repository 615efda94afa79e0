//! Messages before their first transmission. RFC 9260 sections 6.5 and 6.9.

use std::collections::VecDeque;

use bytes::Bytes;
use hol_base::Time;
use hol_transport::Message;
use hol_wire::SendTimes;
use hol_wire::sctp::{Data, DataFlags, Fsn, IData, Mid, Ssn, Tsn};

use crate::Config;
use crate::flight::ReliabilityLimit;
use crate::send_buffer::SendBuffer;
use crate::stream_queues::StreamQueues;

/// A fragment that has not been sent, so that it has no TSN yet.
#[derive(Debug)]
pub(crate) struct UnsentChunk {
    pub(crate) flags: DataFlags,
    pub(crate) stream: u16,
    pub(crate) ppid: u32,
    pub(crate) payload: Bytes,
    /// When the message of the chunk is abandoned.
    pub(crate) limit: ReliabilityLimit,
    /// Whether the message is so short that Nagle's algorithm can delay it.
    pub(crate) can_delay: bool,
}

/// The position of a fragment in its message, for I-DATA. RFC 8260 section 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FragmentId {
    pub(crate) mid: Mid,
    pub(crate) fsn: Fsn,
}

/// The numbers of the next messages and fragments of a stream.
#[derive(Debug, Clone, Default)]
struct NextNumbers {
    /// The number of the next ordered message; its lower half is the stream sequence number.
    ordered: u32,
    unordered: u32,
    fsn: u32,
}

/// Fragments of messages for streams whose reset was requested before. They wait until the reset is done. RFC 6525
/// section 5.1.2 A1.
#[derive(Debug)]
struct HeldMessages {
    /// The streams to reset; empty means all.
    streams: Vec<u16>,
    fragments: VecDeque<UnsentChunk>,
}

/// The fragments that have not been sent yet, of all streams.
#[derive(Debug)]
pub(crate) struct OutboundStreams {
    /// Fragments in the order in which they were queued; used without a scheduler.
    queue: VecDeque<UnsentChunk>,
    /// Queues of fragments by stream, which a scheduler uses in place of `queue`.
    queues: Option<Box<StreamQueues>>,
    numbers: Vec<NextNumbers>,
    /// Messages that wait until their streams have been reset, the earliest reset first.
    holds: VecDeque<HeldMessages>,
    /// Length in octets of a chunk's header before its user data.
    header: usize,
    /// Whether the second fragment of a message has the same FSN as the first.
    second_fsn_is_zero: bool,
    /// Number of octets of the unsent chunks, including their headers.
    queued: usize,
    pub(crate) buffer: SendBuffer,
}

impl OutboundStreams {
    pub(crate) fn new(config: &Config) -> Self {
        let streams = usize::from(config.streams);
        Self {
            queue: VecDeque::new(),
            queues: StreamQueues::new(config, streams),
            holds: VecDeque::new(),
            numbers: vec![NextNumbers::default(); streams],
            header: Data::HEADER_LENGTH,
            second_fsn_is_zero: config.second_fsn_is_zero,
            queued: 0,
            buffer: SendBuffer::new(config),
        }
    }

    pub(crate) fn count(&self) -> u16 {
        self.numbers.len() as u16
    }

    /// Limits the number of streams to what the peer accepts, and sets whether messages are interleaved. Returns the
    /// stream of each message that is dropped because of the limit. RFC 9260 section 5.1.1.
    pub(crate) fn negotiate(&mut self, streams: u16, interleaves: bool) -> Vec<u16> {
        self.numbers.truncate(usize::from(streams));
        self.header = if interleaves { IData::HEADER_LENGTH } else { Data::HEADER_LENGTH };
        if let Some(queues) = &mut self.queues {
            queues.set_interleaves(interleaves);
        }
        self.drop_from(streams)
    }

    /// Discards all unsent data, because the association has restarted; returns the stream of each message that
    /// was not completely sent. RFC 9260 section 5.2.4.
    pub(crate) fn clear(&mut self, config: &Config) -> Vec<u16> {
        let dropped = self.drop_from(0);
        self.buffer.clear();
        let (count, buffer) = (self.numbers.len(), self.buffer.clone());
        *self = Self { buffer, ..Self::new(config) };
        self.numbers.truncate(count);
        dropped
    }

    /// Discards the messages of all streams from number `first` on; returns the stream of each of these messages.
    fn drop_from(&mut self, first: u16) -> Vec<u16> {
        let queue = std::mem::take(&mut self.queue);
        let (kept, mut dropped): (VecDeque<UnsentChunk>, VecDeque<UnsentChunk>) =
            queue.into_iter().partition(|unsent| unsent.stream < first);
        self.queue = kept;
        dropped.extend(self.queues.iter_mut().flat_map(|queues| queues.drain_from(first)));
        dropped.extend(self.holds.drain(..).flat_map(|hold| hold.fragments));
        self.queued = self.unsent().map(|unsent| self.header + unsent.payload.len()).sum();
        dropped
            .iter()
            .for_each(|unsent| self.buffer.release(unsent.stream, unsent.flags, unsent.payload.len()));
        dropped
            .iter()
            .filter(|unsent| unsent.flags.contains(DataFlags::END))
            .map(|unsent| unsent.stream)
            .collect()
    }

    /// Queues a message in fragments of at most `max` octets, the first one at most `first`. RFC 9260 section 6.9.
    pub(crate) fn push(&mut self, message: Message, first: usize, max: usize, limit: ReliabilityLimit) {
        let Message { stream, unordered, ppid, payload: mut rest, .. } = message;
        let can_delay = rest.len() < first;
        let mut flags =
            if unordered { DataFlags::UNORDERED } else { DataFlags::default() } | DataFlags::BEGIN;
        while !rest.is_empty() {
            let room = if flags.contains(DataFlags::BEGIN) { first } else { max };
            let fragment = rest.split_to(rest.len().min(room));
            let end = if rest.is_empty() { DataFlags::END } else { DataFlags::default() };
            self.buffer.charge(fragment.len());
            let unsent =
                UnsentChunk { flags: flags | end, stream, ppid, payload: fragment, limit, can_delay };
            match self.held_messages_of(stream) {
                Some(hold) => hold.fragments.push_back(unsent),
                None => self.enqueue(unsent),
            }
            flags = DataFlags(flags.0 & !DataFlags::BEGIN.0);
        }
    }

    fn enqueue(&mut self, unsent: UnsentChunk) {
        self.queued += self.header + unsent.payload.len();
        match &mut self.queues {
            None => self.queue.push_back(unsent),
            Some(queues) => queues.push(unsent),
        }
    }

    /// Returns the messages that wait for the latest requested reset of this stream; `None` if no reset is
    /// pending.
    fn held_messages_of(&mut self, stream: u16) -> Option<&mut HeldMessages> {
        self.holds.iter_mut().rev().find(|hold| covers(&hold.streams, stream))
    }

    /// Lets messages for these streams wait from now on.
    pub(crate) fn hold(&mut self, streams: Vec<u16>) {
        self.holds.push_back(HeldMessages { streams, fragments: VecDeque::new() });
    }

    /// Releases the messages that wait for the earliest requested reset, which is done or has failed.
    pub(crate) fn release(&mut self) {
        let fragments = self.holds.pop_front().map(|hold| hold.fragments).unwrap_or_default();
        fragments.into_iter().for_each(|unsent| self.enqueue(unsent));
    }

    pub(crate) fn is_holding(&self) -> bool {
        !self.holds.is_empty()
    }

    /// Returns whether a message for one of these streams is unsent that was queued before the reset was
    /// requested.
    pub(crate) fn has_unsent_of(&self, streams: &[u16]) -> bool {
        self.unsent().any(|unsent| covers(streams, unsent.stream))
    }

    fn unsent(&self) -> impl Iterator<Item = &UnsentChunk> {
        self.queue.iter().chain(self.queues.iter().flat_map(|queues| queues.iter()))
    }

    /// Resets streams: their message numbers start again at zero. RFC 6525 section 5.2.7 H4, RFC 8260 section 2.1.
    pub(crate) fn reset(&mut self, streams: &[u16]) {
        for (stream, numbers) in self.numbers.iter_mut().enumerate() {
            if covers(streams, stream as u16) {
                *numbers = NextNumbers::default();
            }
        }
    }

    /// Adds `more` outgoing streams. RFC 6525 section 5.2.7 H6.
    pub(crate) fn add(&mut self, more: u16) {
        let count = self.numbers.len() + usize::from(more);
        self.numbers.resize(count, NextNumbers::default());
        if let Some(queues) = &mut self.queues {
            queues.set_stream_count(count);
        }
    }

    pub(crate) fn front(&self) -> Option<&UnsentChunk> {
        match &self.queues {
            None => self.queue.front(),
            Some(queues) => queues.front(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Returns the number of octets of all unsent chunks, including their headers.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns whether the next chunk must go into another packet, because it belongs to another stream than the
    /// data in the current packet. RFC 8260 section 3.3.
    pub(crate) fn wants_another_packet(&self) -> bool {
        self.queues.as_ref().is_some_and(|queues| queues.wants_another_packet())
    }

    /// Marks the start of a new packet, which may contain data of any stream.
    pub(crate) fn begin_packet(&mut self) {
        if let Some(queues) = &mut self.queues {
            queues.begin_packet();
        }
    }

    /// Removes the next fragment; also returns its stream sequence number (RFC 9260 section 6.5) and its position
    /// for I-DATA.
    pub(crate) fn pop(&mut self) -> Option<(UnsentChunk, Ssn, FragmentId)> {
        let unsent = match &mut self.queues {
            None => self.queue.pop_front()?,
            Some(queues) => queues.pop(self.header)?,
        };
        let (ssn, place) = self.assign_number(&unsent);
        Some((unsent, ssn, place))
    }

    fn assign_number(&mut self, unsent: &UnsentChunk) -> (Ssn, FragmentId) {
        self.queued -= self.header + unsent.payload.len();
        let NextNumbers { ordered, unordered, fsn } = &mut self.numbers[usize::from(unsent.stream)];
        let ssn = Ssn(*ordered as u16);
        let next = if unsent.flags.contains(DataFlags::UNORDERED) { unordered } else { ordered };
        let place = FragmentId { mid: Mid(*next), fsn: Fsn(*fsn) };
        if !(self.second_fsn_is_zero && unsent.begins()) {
            *fsn = fsn.wrapping_add(1);
        }
        if unsent.flags.contains(DataFlags::END) {
            *next = next.wrapping_add(1);
            *fsn = 0;
        }
        (ssn, place)
    }

    /// Returns the first unsent fragment of a stream or, without a scheduler, of all streams.
    fn first_of(&self, stream: u16) -> Option<&UnsentChunk> {
        match &self.queues {
            None => self.queue.front(),
            Some(queues) => queues.first_of(stream),
        }
    }

    fn drop_front(&mut self, stream: u16) -> Option<UnsentChunk> {
        match &mut self.queues {
            None => self.queue.pop_front(),
            Some(queues) => queues.drop_front(stream),
        }
    }

    /// Discards the rest of a partly sent message of `stream`, except for its last fragment, which is removed and
    /// returned.
    pub(crate) fn pop_last_of_message(&mut self, stream: u16) -> Option<(UnsentChunk, Ssn, FragmentId)> {
        if self.first_of(stream)?.begins() {
            return None;
        }
        loop {
            let unsent = self.drop_front(stream)?;
            if unsent.flags.contains(DataFlags::END) {
                let (ssn, place) = self.assign_number(&unsent);
                return Some((unsent, ssn, place));
            }
            self.queued -= self.header + unsent.payload.len();
            self.buffer.release(unsent.stream, unsent.flags, unsent.payload.len());
        }
    }

    /// Discards the first message, of which nothing has been sent, so that it uses no stream sequence number.
    pub(crate) fn drop_message(&mut self) {
        let Some(stream) = self.front().map(|unsent| unsent.stream) else { return };
        while let Some(unsent) = self.drop_front(stream) {
            self.queued -= self.header + unsent.payload.len();
            self.buffer.release(unsent.stream, unsent.flags, unsent.payload.len());
            if unsent.flags.contains(DataFlags::END) {
                return;
            }
        }
    }
}

/// Returns whether a request for `streams` affects this stream; an empty list means all streams. RFC 6525 sections
/// 4.1 and 4.2.
fn covers(streams: &[u16], stream: u16) -> bool {
    streams.is_empty() || streams.contains(&stream)
}

impl UnsentChunk {
    /// Returns whether this is the first fragment of its message.
    pub(crate) fn begins(&self) -> bool {
        self.flags.contains(DataFlags::BEGIN)
    }

    /// Converts the fragment to a DATA chunk with these numbers.
    pub(crate) fn into_chunk(self, tsn: Tsn, ssn: Ssn, now: Time) -> Data {
        let Self { flags, stream, ppid, payload, .. } = self;
        Data {
            flags,
            tsn,
            stream,
            ssn,
            ppid,
            payload,
            stamp: SendTimes { first_sent: now, sent: now, cut: false },
        }
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
        let mut streams = OutboundStreams::new(&Config { streams: 1, ..crate::fixtures::rfc() });
        streams.push(message(25), 10, 10, ReliabilityLimit::None);
        streams.push(message(5), 10, 10, ReliabilityLimit::None);
        let sent: Vec<(u8, u16)> =
            std::iter::from_fn(|| streams.pop()).map(|(unsent, ssn, _)| (unsent.flags.0, ssn.0)).collect();
        assert_eq!(sent, [(0b10, 0), (0b00, 0), (0b01, 0), (0b11, 1)]);
    }

    #[test]
    fn only_partly_sent_messages_use_up_a_sequence_number() {
        let mut streams = OutboundStreams::new(&Config { streams: 1, ..crate::fixtures::rfc() });
        for length in [25, 25, 5] {
            streams.push(message(length), 10, 10, ReliabilityLimit::None);
        }
        streams.pop();
        let (last, ssn, _) = streams.pop_last_of_message(0).unwrap();
        assert_eq!((last.flags, ssn), (DataFlags::END, Ssn(0)));
        streams.drop_message();
        assert_eq!(streams.pop().unwrap().1, Ssn(1));
    }
}
