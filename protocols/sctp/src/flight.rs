//! The sent chunks whose TSNs are after the cumulative TSN ack point.

use std::collections::VecDeque;

use hol_base::Time;
use hol_transport::Reliability;
use hol_wire::sctp::{Chunk, Data, IData, Tsn};

use crate::clock::Clock;
use crate::outbound_streams::FragmentId;

/// The state of a data chunk that has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkState {
    /// The chunk was sent, and is neither acknowledged nor considered lost.
    InFlight,
    /// The chunk is considered lost, and is to be retransmitted.
    Lost,
    /// The chunk is acknowledged by a gap ack block; the receiver may still renege.
    GapAcked,
    /// The chunk is abandoned. RFC 3758 section 3.5.
    Abandoned,
}

/// Whether a chunk can be fast-retransmitted. RFC 9260 section 7.2.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FastRetransmit {
    /// Miss indications may trigger a fast retransmit.
    Eligible,
    /// Miss indications have triggered a fast retransmit, which is pending.
    Marked,
    /// The chunk was fast-retransmitted; only a timeout detects a further loss.
    Done,
}

/// When a message with partial reliability is abandoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReliabilityLimit {
    None,
    /// The message is abandoned at this point in time.
    Deadline(Time),
    /// The message is abandoned after this number of retransmissions.
    Retransmissions(u32),
}

/// A chunk that has been sent.
#[derive(Debug)]
pub(crate) struct SentChunk {
    /// The content of the chunk as on the wire.
    pub(crate) data: Data,
    /// The position of the chunk in its message, for I-DATA.
    pub(crate) place: FragmentId,
    pub(crate) state: ChunkState,
    /// The path on which the chunk was last sent.
    pub(crate) path: usize,
    /// Whether the chunk was sent to an address that the peer has deleted since, and was moved to `path`. It then
    /// counts in that path's `inherited_flight_size`.
    pub(crate) inherited: bool,
    /// Number of times the chunk has been sent.
    pub(crate) transmissions: u32,
    /// Number of miss indications: TSN.Missing.Report.
    pub(crate) missing_reports: u32,
    pub(crate) fast_retransmit: FastRetransmit,
    /// Only acknowledgements of this TSN or later ones indicate that the latest copy of the chunk is missing.
    pub(crate) recover: Tsn,
    /// Whether the acknowledgement of the chunk gives a round-trip sample. RFC 9260 section 6.3.1 C4 and C5.
    pub(crate) measures_rtt: bool,
    /// When the chunk's message is abandoned.
    pub(crate) limit: ReliabilityLimit,
    /// Whether the chunk's message was abandoned, so that the chunk must be abandoned too.
    pub(crate) is_message_abandoned: bool,
}

/// The sent chunks in TSN order, from the first chunk after the cumulative TSN ack point to the last chunk
/// sent.
#[derive(Debug)]
pub(crate) struct Flight {
    chunks: VecDeque<SentChunk>,
    /// The cumulative TSN ack point.
    cumulative: Tsn,
    /// Number of octets of user data in flight on all paths.
    outstanding: u64,
    /// Number of chunks marked as lost.
    lost_count: usize,
    /// Number of chunks acknowledged by gap ack blocks.
    gap_acked: usize,
    /// Number of abandoned chunks.
    abandoned: usize,
    /// Number of chunks of messages with a reliability limit.
    limited: usize,
}

impl ReliabilityLimit {
    /// Creates the limit of a message. A lifetime ends when the clock reaches a later tick (`net/sctp/chunk.c`
    /// sctp_chunk_abandoned).
    pub(crate) fn new(reliability: Reliability, now: Time, clock: Clock) -> Self {
        match reliability {
            Reliability::Full => Self::None,
            Reliability::Lifetime(lifetime) => Self::Deadline(clock.first_after(now, lifetime)),
            Reliability::Retransmissions(count) => Self::Retransmissions(count),
        }
    }

    /// Returns whether a message that was sent `transmissions` times must now be abandoned instead of being sent
    /// again.
    pub(crate) fn is_reached(self, transmissions: u32, now: Time) -> bool {
        match self {
            Self::None => false,
            Self::Deadline(at) => now >= at,
            Self::Retransmissions(max) => transmissions > max,
        }
    }
}

/// Returns user data as a DATA chunk or, with `interleaving`, as an I-DATA chunk.
#[inline]
pub(crate) fn chunk_of(data: &Data, place: FragmentId, interleaving: bool) -> Chunk {
    if interleaving {
        Chunk::IData(Box::new(IData::new(data, place.mid, place.fsn)))
    } else {
        Chunk::Data(data.clone())
    }
}

impl SentChunk {
    /// Creates the entry of a chunk that is sent for the first time.
    pub(crate) fn new(
        data: Data,
        place: FragmentId,
        path: usize,
        measures_rtt: bool,
        limit: ReliabilityLimit,
    ) -> Self {
        Self {
            state: ChunkState::InFlight,
            path,
            inherited: false,
            transmissions: 1,
            missing_reports: 0,
            fast_retransmit: FastRetransmit::Eligible,
            recover: data.tsn,
            measures_rtt,
            limit,
            is_message_abandoned: false,
            place,
            data,
        }
    }

    /// Returns another copy of the chunk to send, as I-DATA if messages are interleaved.
    pub(crate) fn to_chunk(&self, interleaving: bool) -> Chunk {
        chunk_of(&self.data, self.place, interleaving)
    }

    /// Returns the number of octets of user data in the chunk, which the windows count.
    pub(crate) fn size(&self) -> u64 {
        self.data.payload.len() as u64
    }
}

impl Flight {
    /// Creates the list of sent chunks before any is sent; the first chunk will have the TSN `initial`.
    pub(crate) fn new(initial: Tsn) -> Self {
        Self {
            chunks: VecDeque::new(),
            cumulative: initial - 1,
            outstanding: 0,
            lost_count: 0,
            gap_acked: 0,
            abandoned: 0,
            limited: 0,
        }
    }

    pub(crate) fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    pub(crate) fn next_tsn(&self) -> Tsn {
        self.cumulative + (self.chunks.len() as u32 + 1)
    }

    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    pub(crate) fn lost(&self) -> usize {
        self.lost_count
    }

    pub(crate) fn gap_acked(&self) -> usize {
        self.gap_acked
    }

    pub(crate) fn abandoned(&self) -> usize {
        self.abandoned
    }

    pub(crate) fn has_limits(&self) -> bool {
        self.limited > 0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn get(&self, index: usize) -> &SentChunk {
        &self.chunks[index]
    }

    /// Returns a chunk to change any of its fields except `state`, which only [`set_state`](Self::set_state) may
    /// change.
    pub(crate) fn get_mut(&mut self, index: usize) -> &mut SentChunk {
        &mut self.chunks[index]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SentChunk> {
        self.chunks.iter()
    }

    /// Adds a chunk in flight, with the TSN that follows the last one.
    pub(crate) fn push(&mut self, sent: SentChunk) {
        debug_assert_eq!((sent.data.tsn, sent.state), (self.next_tsn(), ChunkState::InFlight));
        self.outstanding += sent.size();
        self.limited += usize::from(sent.limit != ReliabilityLimit::None);
        self.chunks.push_back(sent);
    }

    /// Changes a chunk's state and the counters that depend on it; returns its size in octets.
    pub(crate) fn set_state(&mut self, index: usize, state: ChunkState) -> u64 {
        let size = self.chunks[index].size();
        let old = std::mem::replace(&mut self.chunks[index].state, state);
        self.count(old, size, false);
        self.count(state, size, true);
        size
    }

    /// Removes the earliest chunk, which the cumulative TSN now acknowledges.
    pub(crate) fn pop(&mut self) -> Option<SentChunk> {
        let sent = self.chunks.pop_front()?;
        self.cumulative = sent.data.tsn;
        self.count(sent.state, sent.size(), false);
        self.limited -= usize::from(sent.limit != ReliabilityLimit::None);
        Some(sent)
    }

    fn count(&mut self, state: ChunkState, size: u64, enters: bool) {
        let step = |counter: &mut usize| if enters { *counter += 1 } else { *counter -= 1 };
        match state {
            ChunkState::InFlight if enters => self.outstanding += size,
            ChunkState::InFlight => self.outstanding -= size,
            ChunkState::Lost => step(&mut self.lost_count),
            ChunkState::GapAcked => step(&mut self.gap_acked),
            ChunkState::Abandoned => step(&mut self.abandoned),
        }
    }

    /// Returns the index of the first lost chunk at or after index `from`.
    pub(crate) fn next_lost(&self, from: usize) -> Option<usize> {
        if self.lost_count == 0 {
            return None;
        }
        (from..self.chunks.len()).find(|index| self.chunks[*index].state == ChunkState::Lost)
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Duration;
    use hol_wire::SendTimes;
    use hol_wire::sctp::{DataFlags, Fsn, Mid, Ssn};

    use super::*;

    fn chunk(tsn: u32) -> Data {
        let (flags, payload) = (DataFlags::BEGIN | DataFlags::END, vec![0; 100].into());
        Data { flags, tsn: Tsn(tsn), stream: 0, ssn: Ssn(0), ppid: 0, payload, stamp: SendTimes::default() }
    }

    /// The counters of windows and timers follow the changes of the chunks. RFC 9260 section 6.1; RFC 3758 section 3.5.
    #[test]
    fn flight_counts_chunks_by_state() {
        let mut flight = Flight::new(Tsn(5));
        assert_eq!((flight.cumulative(), flight.next_tsn()), (Tsn(4), Tsn(5)));
        for tsn in 5..9 {
            let limit = if tsn == 6 {
                ReliabilityLimit::Deadline(Time::from_millis(50))
            } else {
                ReliabilityLimit::None
            };
            let place = FragmentId { mid: Mid(0), fsn: Fsn(0) };
            flight.push(SentChunk::new(chunk(tsn), place, 0, true, limit));
        }
        let counts = |flight: &Flight| {
            (flight.outstanding(), flight.lost(), flight.gap_acked(), flight.abandoned(), flight.has_limits())
        };
        assert_eq!(counts(&flight), (400, 0, 0, 0, true));
        assert_eq!(flight.set_state(1, ChunkState::Lost), 100);
        flight.set_state(2, ChunkState::GapAcked);
        flight.set_state(3, ChunkState::Abandoned);
        assert_eq!(counts(&flight), (100, 1, 1, 1, true));
        assert_eq!((flight.next_lost(0), flight.next_lost(1), flight.next_lost(2)), (Some(1), Some(1), None));
        flight.set_state(1, ChunkState::InFlight);
        assert_eq!((flight.outstanding(), flight.next_lost(0)), (200, None));
        flight.pop();
        assert_eq!(
            (flight.cumulative(), flight.next_tsn(), counts(&flight)),
            (Tsn(5), Tsn(9), (100, 0, 1, 1, true))
        );
        flight.pop();
        assert_eq!(counts(&flight), (0, 0, 1, 1, false), "the removed chunk had the deadline");
        flight.pop();
        flight.pop();
        assert_eq!((counts(&flight), flight.is_empty()), ((0, 0, 0, 0, false), true));
    }

    /// RFC 3758 section 3.5 and RFC 7496 section 3.1: after the lifetime, or after more retransmissions than permitted.
    #[test]
    fn limit_is_reached_only_beyond_its_value() {
        let now = Time::from_millis(100);
        let exact = Clock::new(Duration::ZERO, false);
        let lifetime = Reliability::Lifetime(Duration::from_millis(20));
        let passes = |clock, at| ReliabilityLimit::new(lifetime, now, clock).is_reached(1, at);
        assert!(!passes(exact, Time::from_millis(120)) && passes(exact, Time::from_nanos(120_000_001)));
        // In jiffies of 4 ms, as in `net/sctp/chunk.c` sctp_chunk_abandoned: 25 + 5, and 31 is later.
        let jiffies = Clock::new(Duration::from_millis(4), true);
        assert!(!passes(jiffies, Time::from_nanos(123_999_999)) && passes(jiffies, Time::from_millis(124)));
        let retransmissions = ReliabilityLimit::new(Reliability::Retransmissions(2), now, exact);
        assert!(!retransmissions.is_reached(2, now) && retransmissions.is_reached(3, now));
        assert!(!ReliabilityLimit::new(Reliability::Full, now, exact).is_reached(99, Time::MAX));
    }
}
