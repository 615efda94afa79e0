//! Queues of unsent messages, one per stream, for schedulers. RFC 8260 section 3.

use std::collections::VecDeque;

use hol_wire::sctp::DataFlags;

use crate::Config;
use crate::outbound_streams::UnsentChunk;
use crate::scheduler::Scheduler;
use crate::service_order::ServiceOrder;

/// The unsent chunks of each stream, and the scheduler's state.
#[derive(Debug)]
pub(crate) struct StreamQueues {
    streams: Vec<VecDeque<UnsentChunk>>,
    turn: ServiceOrder,
    /// Whether chunks of several messages may alternate, because I-DATA identifies them.
    interleaves: bool,
    /// Whether each packet contains data of only one stream.
    one_stream_per_packet: bool,
    /// Whether fair schedulers count only the last chunk of a message that is not interleaved.
    counts_last_only: bool,
    /// The stream whose message must be completed before another starts, and the octets of the message sent so
    /// far.
    unfinished: Option<(u16, u64)>,
    /// The stream whose data are in the current packet; `None` if the packet has no data yet.
    packet: Option<u16>,
}

impl StreamQueues {
    /// Creates the queues; `None` if messages are sent in the order in which they were written, without a
    /// scheduler.
    pub(crate) fn new(config: &Config, streams: usize) -> Option<Box<Self>> {
        let queues = || Self {
            streams: (0..streams).map(|_| VecDeque::new()).collect(),
            turn: ServiceOrder::new(config, streams),
            interleaves: config.interleaving,
            one_stream_per_packet: config.scheduler == Scheduler::RrPacket,
            counts_last_only: config.fair_counts_last_fragment,
            unfinished: None,
            packet: None,
        };
        (config.scheduler != Scheduler::Fcfs).then(|| Box::new(queues()))
    }

    /// Sets whether the peer supports I-DATA.
    pub(crate) fn set_interleaves(&mut self, interleaves: bool) {
        self.interleaves = interleaves;
    }

    /// Sets the number of streams.
    pub(crate) fn set_stream_count(&mut self, streams: usize) {
        if streams > self.streams.len() {
            self.streams.resize_with(streams, VecDeque::new);
            self.turn.set_stream_count(streams);
        }
    }

    fn has_some(&self, stream: u16) -> bool {
        self.streams.get(usize::from(stream)).is_some_and(|queue| !queue.is_empty())
    }

    /// Returns the stream that sends the next chunk.
    fn next(&self) -> Option<u16> {
        let unfinished = self.unfinished.map(|(stream, _)| stream);
        let of_packet = || self.packet.filter(|stream| self.one_stream_per_packet && self.has_some(*stream));
        unfinished.or_else(of_packet).or_else(|| self.turn.next())
    }

    pub(crate) fn front(&self) -> Option<&UnsentChunk> {
        self.next().and_then(|stream| self.streams[usize::from(stream)].front())
    }

    /// Returns whether the next chunk must go into another packet, because it belongs to another stream than the
    /// data in the current packet. RFC 8260 section 3.3.
    pub(crate) fn wants_another_packet(&self) -> bool {
        self.one_stream_per_packet && self.next() != self.packet
    }

    /// Marks the start of a new packet, which may contain data of any stream.
    pub(crate) fn begin_packet(&mut self) {
        self.packet = None;
    }

    pub(crate) fn push(&mut self, unsent: UnsentChunk) {
        let stream = unsent.stream;
        if !self.has_some(stream) {
            self.turn.join(stream);
        }
        self.streams[usize::from(stream)].push_back(unsent);
    }

    /// Removes and returns the next chunk. The scheduler counts its user data and the `header` octets before it.
    pub(crate) fn pop(&mut self, header: usize) -> Option<UnsentChunk> {
        let stream = self.next()?;
        let unsent = self.streams[usize::from(stream)].pop_front()?;
        let unfinished = self.unfinished.take().filter(|_| !self.counts_last_only);
        let before = unfinished.map_or(0, |(_, octets)| octets);
        let octets = before + (header + unsent.payload.len()) as u64;
        if self.one_stream_per_packet {
            // A message that is completed first takes several packets but one turn.
            if self.packet.replace(stream) != Some(stream) && self.turn.next() == Some(stream) {
                self.turn.end_turn(stream, octets);
            }
        } else if self.interleaves || unsent.flags.contains(DataFlags::END) {
            self.turn.end_turn(stream, octets);
        }
        if !self.interleaves && !unsent.flags.contains(DataFlags::END) {
            self.unfinished = Some((stream, octets));
        }
        self.leave_if_empty(stream);
        Some(unsent)
    }

    /// Removes the first chunk of a stream, because it is abandoned.
    pub(crate) fn drop_front(&mut self, stream: u16) -> Option<UnsentChunk> {
        let unsent = self.streams.get_mut(usize::from(stream))?.pop_front()?;
        if unsent.flags.contains(DataFlags::END) {
            self.unfinished.take_if(|(unfinished, _)| *unfinished == stream);
        }
        self.leave_if_empty(stream);
        Some(unsent)
    }

    fn leave_if_empty(&mut self, stream: u16) {
        if !self.has_some(stream) {
            self.turn.leave(stream);
        }
    }

    /// Returns the first unsent chunk of a stream.
    pub(crate) fn first_of(&self, stream: u16) -> Option<&UnsentChunk> {
        self.streams.get(usize::from(stream)).and_then(VecDeque::front)
    }

    /// Removes all chunks of the streams from number `first` on.
    pub(crate) fn drain_from(&mut self, first: u16) -> Vec<UnsentChunk> {
        let dropped =
            self.streams.iter_mut().skip(usize::from(first)).flat_map(|queue| queue.drain(..)).collect();
        (first..self.streams.len() as u16).for_each(|stream| self.turn.leave(stream));
        self.unfinished.take_if(|(stream, _)| *stream >= first);
        dropped
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UnsentChunk> {
        self.streams.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::ReliabilityLimit;
    use crate::{fixtures, outbound_streams::UnsentChunk};

    /// Queues messages of two fragments of 1000 octets on stream 0, and of one on stream 1; returns the
    /// streams of the chunks in sending order.
    fn order(fair_counts_last_fragment: bool) -> Vec<u16> {
        let config =
            Config { scheduler: Scheduler::Fc, fair_counts_last_fragment, streams: 2, ..fixtures::rfc() };
        let mut queues = StreamQueues::new(&config, 2).unwrap();
        let unsent = |stream, flags| {
            let payload = vec![0; 1000].into();
            UnsentChunk { flags, stream, ppid: 0, payload, limit: ReliabilityLimit::None, can_delay: false }
        };
        for _ in 0..4 {
            queues.push(unsent(1, DataFlags::BEGIN | DataFlags::END));
            queues.push(unsent(0, DataFlags::BEGIN));
            queues.push(unsent(0, DataFlags::END));
        }
        (0..9).filter_map(|_| queues.pop(16)).map(|unsent| unsent.stream).collect()
    }

    #[test]
    fn fair_scheduler_counts_the_message_or_in_linux_its_last_fragment() {
        // RFC 8260 section 3.5: two messages for one of twice the length; net/sctp/stream_sched.c: one for one.
        assert_eq!(order(false), [0, 0, 1, 1, 1, 0, 0, 1, 0]);
        assert_eq!(order(true), [0, 0, 1, 1, 0, 0, 0, 0, 1]);
    }
}
