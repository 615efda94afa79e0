//! The order in which a scheduler serves streams. RFC 8260 section 3.

use std::collections::BTreeMap;

use crate::Config;
use crate::scheduler::{Scheduler, StreamValues};

/// The streams that have data to send, in the order in which the scheduler serves them.
#[derive(Debug)]
pub(crate) enum ServiceOrder {
    /// Rings of streams that are served in turn, one ring per priority, the smallest number first; without
    /// priorities, a single ring. With `joins_last` a stream that joins is the last in the current round.
    Rings { values: StreamValues, rings: BTreeMap<u16, StreamRing>, joins_last: bool },
    /// Streams ordered by the octets that they have sent divided by their weight, the smallest result first.
    Fair { values: StreamValues, order: Vec<u16>, served: Vec<u64> },
}

/// A ring of streams that are served in turn, and the stream to serve next.
#[derive(Debug, Default)]
pub(crate) struct StreamRing {
    streams: Vec<u16>,
    /// Index in the ring of the stream to serve next.
    next: usize,
}

impl ServiceOrder {
    pub(crate) fn new(config: &Config, streams: usize) -> Self {
        let values = config.stream_values.clone();
        match config.scheduler {
            Scheduler::Fc | Scheduler::Wfq => {
                Self::Fair { values, order: Vec::new(), served: vec![0; streams] }
            }
            // With priorities, Linux inserts a stream before the one whose turn it is; without them, at the end of the
            // list.
            scheduler => {
                Self::Rings { values, rings: BTreeMap::new(), joins_last: scheduler == Scheduler::Prio }
            }
        }
    }

    /// Sets the number of streams.
    pub(crate) fn set_stream_count(&mut self, streams: usize) {
        if let Self::Fair { served, .. } = self {
            served.resize(streams, 0);
        }
    }

    /// Returns the stream to serve next.
    pub(crate) fn next(&self) -> Option<u16> {
        match self {
            Self::Rings { rings, .. } => {
                rings.first_key_value().and_then(|(_, ring)| ring.streams.get(ring.next)).copied()
            }
            Self::Fair { order, .. } => order.first().copied(),
        }
    }

    /// Adds a stream that has data to send again.
    pub(crate) fn join(&mut self, stream: u16) {
        match self {
            Self::Rings { values, rings, joins_last } => {
                let ring = rings.entry(values.of(stream).unwrap_or(0)).or_default();
                if *joins_last && !ring.streams.is_empty() {
                    ring.streams.insert(ring.next, stream);
                    ring.next += 1;
                } else {
                    ring.streams.push(stream);
                }
            }
            Self::Fair { .. } => self.insert_by_share(stream, 0),
        }
    }

    /// Counts the octets that a stream has sent, and ends its turn.
    pub(crate) fn end_turn(&mut self, stream: u16, octets: u64) {
        match self {
            Self::Rings { values, rings, .. } => {
                if let Some(ring) = rings.get_mut(&values.of(stream).unwrap_or(0)) {
                    ring.next = (ring.next + 1) % ring.streams.len();
                }
            }
            Self::Fair { order, served, .. } => {
                served[usize::from(stream)] += octets;
                if let Some(at) = order.iter().position(|other| *other == stream) {
                    order.remove(at);
                    self.insert_by_share(stream, at);
                }
            }
        }
    }

    /// Removes a stream that has no more data to send.
    pub(crate) fn leave(&mut self, stream: u16) {
        match self {
            Self::Rings { values, rings, .. } => {
                let priority = values.of(stream).unwrap_or(0);
                let Some(ring) = rings.get_mut(&priority) else { return };
                ring.remove(stream);
                if ring.streams.is_empty() {
                    rings.remove(&priority);
                }
            }
            Self::Fair { order, .. } => order.retain(|other| *other != stream),
        }
    }

    /// Inserts a stream before the first one (from index `from` on) that has sent at least as much in proportion
    /// to its weight.
    fn insert_by_share(&mut self, stream: u16, from: usize) {
        let Self::Fair { values, order, served } = self else { return };
        let weight = |stream: u16| u128::from(values.of(stream).unwrap_or(1));
        let had = |stream: u16| u128::from(served[usize::from(stream)]);
        let behind = |other: &u16| had(*other) * weight(stream) >= had(stream) * weight(*other);
        let at = order[from..].iter().position(behind).map_or(order.len(), |at| from + at);
        order.insert(at, stream);
    }
}

impl StreamRing {
    fn remove(&mut self, stream: u16) {
        let Some(at) = self.streams.iter().position(|other| *other == stream) else { return };
        self.streams.remove(at);
        self.next -= usize::from(at < self.next);
        if self.next == self.streams.len() {
            self.next = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn turn(scheduler: Scheduler, values: &str) -> ServiceOrder {
        let config = Config { scheduler, stream_values: values.parse().unwrap(), ..fixtures::rfc() };
        ServiceOrder::new(&config, 4)
    }

    /// Serves streams that always have data, with these octets per chunk, `times` times; returns the order.
    fn served(turn: &mut ServiceOrder, octets: [u64; 3], times: usize) -> Vec<u16> {
        let mut serve = || {
            let stream = turn.next().unwrap();
            turn.end_turn(stream, octets[usize::from(stream)]);
            stream
        };
        (0..times).map(|_| serve()).collect()
    }

    fn with_three(scheduler: Scheduler, values: &str) -> ServiceOrder {
        let mut turn = turn(scheduler, values);
        (0..3).for_each(|stream| turn.join(stream));
        turn
    }

    #[test]
    fn rr_serves_streams_in_turn_and_skips_those_that_leave() {
        // RFC 8260 section 3.2.
        let mut turn = with_three(Scheduler::Rr, "");
        assert_eq!(served(&mut turn, [1; 3], 4), [0, 1, 2, 0]);
        turn.leave(1);
        assert_eq!(served(&mut turn, [1; 3], 3), [2, 0, 2]);
        turn.leave(2);
        turn.leave(0);
        assert_eq!(turn.next(), None);
        turn.join(2);
        assert_eq!(turn.next(), Some(2));
    }

    #[test]
    fn prio_serves_the_smallest_value_and_equals_in_turn() {
        // RFC 8260 sections 3.4 and 4.3.2.
        let mut turn = with_three(Scheduler::Prio, "7/3");
        assert_eq!(served(&mut turn, [1; 3], 3), [1, 2, 1]);
        turn.leave(1);
        turn.leave(2);
        assert_eq!(served(&mut turn, [1; 3], 2), [0, 0]);
        turn.join(2);
        assert_eq!(turn.next(), Some(2), "it goes before one that has waited");
    }

    #[test]
    fn stream_joins_the_ring_where_linux_inserts_it() {
        // net/sctp/stream_sched_rr.c and stream_sched_prio.c: at the end of the list, and before the stream whose turn it is.
        for (scheduler, expected) in [(Scheduler::Rr, [1, 2, 3, 0]), (Scheduler::Prio, [1, 2, 0, 3])] {
            let mut turn = with_three(scheduler, "");
            turn.end_turn(0, 1);
            turn.join(3);
            let next: Vec<u16> = (0..4)
                .map(|_| {
                    let stream = turn.next().unwrap();
                    turn.end_turn(stream, 1);
                    stream
                })
                .collect();
            assert_eq!(next, expected, "{scheduler:?}");
        }
    }

    #[test]
    fn capacity_is_shared_by_octets() {
        // RFC 8260 section 3.5: a stream with chunks half as long sends twice as many.
        let mut turn = with_three(Scheduler::Fc, "");
        let all = served(&mut turn, [100, 50, 50], 500);
        let count = |stream| all.iter().filter(|served| **served == stream).count();
        assert_eq!([0, 1, 2].map(count), [100, 200, 200]);
    }

    #[test]
    fn capacity_is_shared_by_weight() {
        // RFC 8260 section 3.6: n times the weight gives n times the capacity.
        let mut turn = with_three(Scheduler::Wfq, "3/1/1");
        let all = served(&mut turn, [100; 3], 500);
        let count = |stream| all.iter().filter(|served| **served == stream).count();
        assert_eq!([0, 1, 2].map(count), [300, 100, 100]);
    }
}
