//! Messages that wait for their first transmission, a queue a stream. RFC 8260 section 3.

use std::collections::VecDeque;

use hol_wire::sctp::DataFlags;

use crate::Config;
use crate::scheduler::Scheduler;
use crate::streams_out::Unsent;
use crate::turn::Turn;

/// What waits, by stream, and whose turn it is.
#[derive(Debug)]
pub(crate) struct Queues {
    streams: Vec<VecDeque<Unsent>>,
    turn: Turn,
    /// Chunks of several messages may alternate: I-DATA says where each belongs.
    interleaves: bool,
    /// A packet has the data of one stream.
    of_packets: bool,
    /// The stream of a message that has to go to its end first, and what of it has gone.
    unfinished: Option<(u16, u64)>,
    /// The stream that the packet in the making has data of.
    packet: Option<u16>,
}

impl Queues {
    /// `None` where messages go as they come.
    pub(crate) fn new(config: &Config, streams: usize) -> Option<Box<Self>> {
        let queues = Self {
            streams: (0..streams).map(|_| VecDeque::new()).collect(),
            turn: Turn::new(config, streams),
            interleaves: config.interleaving,
            of_packets: config.scheduler == Scheduler::RrPacket,
            unfinished: None,
            packet: None,
        };
        (config.scheduler != Scheduler::Fcfs).then(|| Box::new(queues))
    }

    /// Whether the peer takes I-DATA.
    pub(crate) fn set_interleaves(&mut self, interleaves: bool) {
        self.interleaves = interleaves;
    }

    fn has_some(&self, stream: u16) -> bool {
        self.streams.get(usize::from(stream)).is_some_and(|queue| !queue.is_empty())
    }

    /// The stream whose chunk goes next.
    fn next(&self) -> Option<u16> {
        let unfinished = self.unfinished.map(|(stream, _)| stream);
        let of_packet = || self.packet.filter(|stream| self.of_packets && self.has_some(*stream));
        unfinished.or_else(of_packet).or_else(|| self.turn.next())
    }

    pub(crate) fn front(&self) -> Option<&Unsent> {
        self.next().and_then(|stream| self.streams[usize::from(stream)].front())
    }

    /// The next chunk does not go into a packet that has data already. RFC 8260 section 3.3.
    pub(crate) fn wants_another_packet(&self) -> bool {
        self.of_packets && self.next() != self.packet
    }

    /// A packet has left.
    pub(crate) fn begin_packet(&mut self) {
        self.packet = None;
    }

    pub(crate) fn push(&mut self, unsent: Unsent) {
        let stream = unsent.stream;
        if !self.has_some(stream) {
            self.turn.join(stream);
        }
        self.streams[usize::from(stream)].push_back(unsent);
    }

    /// Takes the next chunk, of `header` octets and its user data.
    pub(crate) fn pop(&mut self, header: usize) -> Option<Unsent> {
        let stream = self.next()?;
        let unsent = self.streams[usize::from(stream)].pop_front()?;
        let before = self.unfinished.take().map_or(0, |(_, octets)| octets);
        let octets = before + (header + unsent.payload.len()) as u64;
        if self.of_packets {
            // A message that goes to its end takes several packets and one turn.
            if self.packet.replace(stream) != Some(stream) && self.turn.next() == Some(stream) {
                self.turn.pass(stream, octets);
            }
        } else if self.interleaves || unsent.flags.contains(DataFlags::END) {
            self.turn.pass(stream, octets);
        }
        if !self.interleaves && !unsent.flags.contains(DataFlags::END) {
            self.unfinished = Some((stream, octets));
        }
        self.leave_if_empty(stream);
        Some(unsent)
    }

    /// Takes the first chunk of a stream out of turn: it is given up.
    pub(crate) fn drop_front(&mut self, stream: u16) -> Option<Unsent> {
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

    /// The first chunk that waits for a stream.
    pub(crate) fn first_of(&self, stream: u16) -> Option<&Unsent> {
        self.streams.get(usize::from(stream)).and_then(VecDeque::front)
    }

    /// Takes all that waits for streams from `first` on.
    pub(crate) fn drain_from(&mut self, first: u16) -> Vec<Unsent> {
        let dropped =
            self.streams.iter_mut().skip(usize::from(first)).flat_map(|queue| queue.drain(..)).collect();
        (first..self.streams.len() as u16).for_each(|stream| self.turn.leave(stream));
        self.unfinished.take_if(|(stream, _)| *stream >= first);
        dropped
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Unsent> {
        self.streams.iter().flatten()
    }
}
