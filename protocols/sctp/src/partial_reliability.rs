//! Partial reliability: abandons messages. RFC 3758 sections 3.5 and 3.6, RFC 7496.

use hol_base::Time;
use hol_transport::Event;
use hol_wire::sctp::{Chunk, DataFlags, ForwardTsn, IForwardTsn, SkippedMessages, Ssn, Tsn};
use smallvec::SmallVec;

use crate::Endpoint;
use crate::acknowledge::SackRequest;
use crate::flight::{ChunkState, ReliabilityLimit, SentChunk};
use crate::receive::{deliver_in_order, deliver_interleaved_message};
use crate::tsn_map::Arrival;

impl Endpoint {
    /// Abandons the message of a lost chunk if the message has reached its limit; returns whether it did.
    pub(crate) fn abandon_if_due(&mut self, now: Time, index: usize) -> bool {
        let chunk = self.flight.get(index);
        if chunk.is_message_abandoned {
            self.abandon(index);
            return true;
        }
        let useless = self.partial_reliability && chunk.limit.is_reached(chunk.transmissions, now);
        if useless {
            self.abandon_message(now, index);
        }
        useless
    }

    /// Abandons messages that have reached their limit, even if the current SACK acknowledges them. The order
    /// follows the lists in `net/sctp/outqueue.c` sctp_check_transmitted, so earlier chunks of such a message
    /// are abandoned only at the next SACK.
    pub(crate) fn abandon_at_limits(&mut self, now: Time) {
        if !self.partial_reliability || !self.flight.has_limits() {
            return;
        }
        let place = |index: &usize| {
            let chunk = self.flight.get(*index);
            let path = if chunk.state == ChunkState::Lost {
                None
            } else {
                Some((chunk.path, chunk.data.stamp.sent))
            };
            (path, *index)
        };
        let mut order: SmallVec<[usize; 32]> = (0..self.flight.len()).collect();
        order.sort_by_key(place);
        for index in order {
            let chunk = self.flight.get(index);
            let is_due = !chunk.is_message_abandoned && chunk.limit.is_reached(chunk.transmissions, now);
            if chunk.state == ChunkState::Abandoned {
                continue;
            }
            if is_due {
                self.mark_message_abandoned(now, index);
            }
            if self.flight.get(index).is_message_abandoned {
                self.abandon(index);
            }
        }
    }

    /// Marks the message of a chunk as abandoned. Its sent chunks are abandoned when they are processed, and its
    /// unsent fragments are dropped at once.
    fn mark_message_abandoned(&mut self, now: Time, index: usize) {
        let (stream, chunks) = (self.flight.get(index).data.stream, self.chunks_of_message(index));
        for index in &chunks {
            self.flight.get_mut(*index).is_message_abandoned = true;
        }
        if self.abandon_rest(now, stream, &chunks) {
            self.push_event(Event::Abandoned { stream });
        }
    }

    /// Abandons every message in flight that has not been acknowledged and whose deadline has passed.
    pub(crate) fn abandon_expired(&mut self, now: Time) {
        if !self.partial_reliability || !self.flight.has_limits() {
            return;
        }
        for index in 0..self.flight.len() {
            let chunk = self.flight.get(index);
            let is_open = matches!(chunk.state, ChunkState::InFlight | ChunkState::Lost);
            if is_open && matches!(chunk.limit, ReliabilityLimit::Deadline(at) if now >= at) {
                self.abandon_message(now, index);
            }
        }
    }

    /// Abandons the first message in the queue, of which nothing has been sent.
    pub(crate) fn abandon_unsent(&mut self) {
        if let Some(stream) = self.streams_out.front().map(|unsent| unsent.stream) {
            self.streams_out.drop_message();
            self.push_event(Event::Abandoned { stream });
            self.offer_room();
        }
    }

    /// Abandons all data that have not been acknowledged, because the peer has restarted. RFC 9260 section 5.2.4
    /// A.
    pub(crate) fn abandon_all(&mut self) {
        let lost = |sent: &&SentChunk| {
            matches!(sent.state, ChunkState::InFlight | ChunkState::Lost)
                && sent.data.flags.contains(DataFlags::END)
        };
        let mut streams: Vec<u16> = self.flight.iter().filter(lost).map(|sent| sent.data.stream).collect();
        streams.extend(self.streams_out.clear(&self.config));
        streams.into_iter().for_each(|stream| self.push_event(Event::Abandoned { stream }));
    }

    /// Abandons the whole message of the chunk at `index`. RFC 3758 section 3.5 A3.
    ///
    /// The application is told, unless the whole message was sent and may still arrive. That happens with
    /// `sack_checks_limits_first`, which may abandon messages that the peer has received.
    fn abandon_message(&mut self, now: Time, index: usize) {
        let (stream, chunks) = (self.flight.get(index).data.stream, self.chunks_of_message(index));
        let mut is_missing = false;
        for index in &chunks {
            is_missing |= self.abandon(*index);
        }
        if self.abandon_rest(now, stream, &chunks) || is_missing {
            self.push_event(Event::Abandoned { stream });
        }
    }

    /// Returns the chunks of the message at `index` that the cumulative TSN does not acknowledge.
    fn chunks_of_message(&self, index: usize) -> SmallVec<[usize; 8]> {
        let flags = |index| self.flight.get(index).data.flags;
        if self.interleaving {
            // Chunks of other messages may lie between them.
            let message = |index| {
                let chunk = self.flight.get(index);
                (chunk.data.stream, flags(index).contains(DataFlags::UNORDERED), chunk.place.mid)
            };
            return (0..self.flight.len()).filter(|other| message(*other) == message(index)).collect();
        }
        let first = (1..=index).rev().find(|index| flags(*index).contains(DataFlags::BEGIN)).unwrap_or(0);
        let last = (index..self.flight.len()).find(|index| flags(*index).contains(DataFlags::END));
        (first..last.map_or(self.flight.len(), |last| last + 1)).collect()
    }

    /// Abandons the unsent fragments of a message whose chunks `sent` have been sent; returns false if it has no
    /// unsent fragments.
    fn abandon_rest(&mut self, now: Time, stream: u16, sent: &[usize]) -> bool {
        let Some(last) = sent.last().copied() else { return false };
        if self.flight.get(last).data.flags.contains(DataFlags::END) {
            return false;
        }
        let Some((unsent, ssn, place)) = self.streams_out.pop_last_of_message(stream) else { return false };
        if self.config.sack_checks_limits_first {
            // `net/sctp/outqueue.c` sctp_outq_flush_data frees the fragment. The message ends with its sent part, and
            // so does its use of the send buffer.
            self.streams_out.buffer.release(stream, DataFlags::default(), unsent.payload.len());
            let chunk = self.flight.get_mut(last);
            chunk.data.flags = chunk.data.flags | DataFlags::END;
        } else {
            // The last fragment gets a TSN although it is never sent: after a FORWARD TSN over the sent
            // fragments only, the receiver might have nothing missing and not report the abandoned message.
            let limit = unsent.limit;
            let data = unsent.into_chunk(self.flight.next_tsn(), ssn, now);
            self.flight.push(SentChunk::new(data, place, self.paths.active, false, limit));
            self.flight.set_state(self.flight.len() - 1, ChunkState::Abandoned);
        }
        true
    }

    /// Abandons a chunk that was sent; returns whether it counts as lost.
    fn abandon(&mut self, index: usize) -> bool {
        let limits_first = self.config.sack_checks_limits_first;
        let was = self.flight.get(index).state;
        let size = self.flight.set_state(index, ChunkState::Abandoned);
        let chunk = self.flight.get_mut(index);
        let path = &mut self.paths.list[chunk.path];
        if std::mem::take(&mut chunk.measures_rtt) && !limits_first {
            path.rtt_pending = false;
        }
        if was == ChunkState::InFlight {
            path.remove_in_flight(size, std::mem::take(&mut chunk.inherited));
            self.peer_rwnd += size;
        }
        matches!(was, ChunkState::Lost | ChunkState::InFlight) && !limits_first
    }

    /// Queues a FORWARD TSN that skips the abandoned chunks at the head of the flight. RFC 3758 section 3.5 C.
    pub(crate) fn queue_forward_tsn(&mut self) {
        if self.flight.abandoned() == 0 {
            return;
        }
        let (new_cumulative_tsn, forward) =
            if self.interleaving { self.i_forward_tsn() } else { self.forward_tsn() };
        if new_cumulative_tsn != self.flight.cumulative() {
            self.control.push_back((None, forward));
        }
    }

    /// Returns the abandoned chunks at the head of the flight, up to the first chunk that is not abandoned. RFC
    /// 3758 section 3.5 C2.
    fn abandoned_chunks(&self) -> impl Iterator<Item = &SentChunk> {
        self.flight.iter().take_while(|chunk| chunk.state == ChunkState::Abandoned)
    }

    /// Returns the FORWARD TSN to send, and the cumulative TSN that it gives the peer. RFC 3758 section 3.5 C.
    fn forward_tsn(&self) -> (Tsn, Chunk) {
        let mut new_cumulative_tsn = self.flight.cumulative();
        let mut skipped: SmallVec<[(u16, Ssn); 2]> = SmallVec::new();
        let max = self.max_chunk_size() / ForwardTsn::ENTRY_OCTETS - 2;
        for chunk in self.abandoned_chunks() {
            if !chunk.data.flags.contains(DataFlags::UNORDERED) {
                let full = skipped.len() == max;
                match skipped.iter_mut().find(|(stream, _)| *stream == chunk.data.stream) {
                    Some((_, ssn)) => *ssn = chunk.data.ssn,
                    // C4: while there is room in a packet.
                    None if full => break,
                    None => skipped.push((chunk.data.stream, chunk.data.ssn)),
                }
            }
            new_cumulative_tsn = chunk.data.tsn;
        }
        (new_cumulative_tsn, Chunk::ForwardTsn(Box::new(ForwardTsn { new_cumulative_tsn, skipped })))
    }

    /// Returns the I-FORWARD-TSN to send, with the MIDs of ordered and unordered messages, and the cumulative TSN
    /// that it gives the peer. RFC 8260 section 2.3.1.
    fn i_forward_tsn(&self) -> (Tsn, Chunk) {
        let mut new_cumulative_tsn = self.flight.cumulative();
        let mut skipped: SmallVec<[SkippedMessages; 2]> = SmallVec::new();
        let max = self.max_chunk_size() / IForwardTsn::ENTRY_OCTETS - 1;
        for chunk in self.abandoned_chunks() {
            let unordered = chunk.data.flags.contains(DataFlags::UNORDERED);
            let (stream, mid) = (chunk.data.stream, chunk.place.mid);
            let full = skipped.len() == max;
            match skipped.iter_mut().find(|known| (known.stream, known.unordered) == (stream, unordered)) {
                Some(known) => known.mid = mid,
                None if full => break,
                None => skipped.push(SkippedMessages { stream, unordered, mid }),
            }
            new_cumulative_tsn = chunk.data.tsn;
        }
        (new_cumulative_tsn, Chunk::IForwardTsn(Box::new(IForwardTsn { new_cumulative_tsn, skipped })))
    }

    /// Processes a FORWARD TSN. RFC 3758 section 3.6.
    pub(crate) fn on_forward_tsn(&mut self, now: Time, forward: &ForwardTsn, seen: &mut SackRequest) {
        if self.is_too_far(forward.new_cumulative_tsn) {
            return;
        }
        if self.advance_cumulative(forward.new_cumulative_tsn) {
            let Self { reassembly, streams_in, reader, .. } = self;
            reassembly.discard_through(forward.new_cumulative_tsn, |delivery| {
                deliver_in_order(streams_in, reader, now, delivery);
            });
            for (stream, ssn) in &forward.skipped {
                streams_in.skip(*stream, *ssn, |message| reader.receive(now, message));
            }
        }
        self.count_forward_tsn(now, seen);
    }

    /// Processes an I-FORWARD-TSN. RFC 8260 section 2.3.1.
    pub(crate) fn on_i_forward_tsn(&mut self, now: Time, forward: &IForwardTsn, seen: &mut SackRequest) {
        if self.is_too_far(forward.new_cumulative_tsn) {
            return;
        }
        if self.advance_cumulative(forward.new_cumulative_tsn) {
            let Self { interleaved, streams_in, reader, .. } = self;
            for skipped in forward.skipped.iter().filter(|skipped| streams_in.has_stream(skipped.stream)) {
                interleaved
                    .skip(*skipped, &mut |delivery| deliver_interleaved_message(reader, now, delivery));
            }
        }
        self.count_forward_tsn(now, seen);
    }

    fn is_too_far(&self, new_cumulative_tsn: Tsn) -> bool {
        !self.state.receives_data() || self.tsn_map.classify(new_cumulative_tsn) == Arrival::TooFar
    }

    /// Advances the cumulative TSN to that of a FORWARD TSN. Returns whether the rest of the FORWARD TSN must be
    /// processed: if it is new and, with `forward_tsn_always_counts`, also if it is outdated, because it may
    /// abandon a message whose sent chunks have all arrived (`net/sctp/sm_statefuns.c` sctp_sf_eat_fwd_tsn).
    fn advance_cumulative(&mut self, new_cumulative_tsn: Tsn) -> bool {
        let is_new = new_cumulative_tsn.after(self.tsn_map.cumulative());
        self.tsn_map.advance_to(new_cumulative_tsn);
        is_new || self.config.forward_tsn_always_counts
    }

    /// Requests the acknowledgement of a FORWARD TSN, outdated or not, as for DATA.
    fn count_forward_tsn(&mut self, now: Time, seen: &mut SackRequest) {
        if self.config.forward_tsn_always_counts {
            // `net/sctp/sm_statefuns.c` sctp_sf_eat_fwd_tsn.
            self.acknowledge_packet(now, SackRequest { has_data: true, ..SackRequest::default() });
        } else {
            seen.has_data = true;
        }
    }
}
