//! Giving messages up. RFC 3758 section 3.5 and 3.6, RFC 7496.

use hol_base::Time;
use hol_transport::Event;
use hol_wire::sctp::{Chunk, DataFlags, ForwardTsn, IForwardTsn, Skipped, Ssn, Tsn};
use smallvec::SmallVec;

use crate::Endpoint;
use crate::acknowledge::DataSeen;
use crate::flight::{Fate, Limit, Sent};
use crate::receive::take;

impl Endpoint {
    /// Gives the message of a lost chunk up if its limit is reached; true if it was given up.
    pub(crate) fn give_up_if_useless(&mut self, now: Time, index: usize) -> bool {
        let chunk = self.flight.get(index);
        let useless = self.partial_reliability && chunk.limit.is_reached(chunk.transmissions, now);
        if useless {
            self.give_up(now, index);
        }
        useless
    }

    /// Gives up every message in flight whose deadline has passed.
    pub(crate) fn give_up_expired(&mut self, now: Time) {
        if !self.partial_reliability || !self.flight.has_deadlines() {
            return;
        }
        for index in 0..self.flight.len() {
            let chunk = self.flight.get(index);
            let alive = matches!(chunk.fate, Fate::InFlight | Fate::Lost);
            if alive && matches!(chunk.limit, Limit::Deadline(at) if now > at) {
                self.give_up(now, index);
            }
        }
    }

    /// Gives up the message at the head of the queue, which has not been sent.
    pub(crate) fn give_up_unsent(&mut self) {
        if let Some(stream) = self.streams_out.front().map(|unsent| unsent.stream) {
            self.streams_out.drop_message();
            self.event(Event::Abandoned { stream });
        }
    }

    /// Gives up all that was not acknowledged: the peer has forgotten it. RFC 9260 section 5.2.4 A.
    pub(crate) fn abandon_all(&mut self) {
        let lost = |sent: &&Sent| {
            matches!(sent.fate, Fate::InFlight | Fate::Lost) && sent.data.flags.contains(DataFlags::END)
        };
        let mut streams: Vec<u16> = self.flight.iter().filter(lost).map(|sent| sent.data.stream).collect();
        streams.extend(self.streams_out.clear(&self.config));
        streams.into_iter().for_each(|stream| self.event(Event::Abandoned { stream }));
    }

    /// Gives up the whole message that the chunk at `index` belongs to. RFC 3758 section 3.5 A3.
    fn give_up(&mut self, now: Time, index: usize) {
        if self.interleaving {
            return self.give_up_interleaved(now, index);
        }
        let mut first = index;
        while first > 0 && !self.flight.get(first).data.flags.contains(DataFlags::BEGIN) {
            first -= 1;
        }
        let stream = self.flight.get(index).data.stream;
        self.event(Event::Abandoned { stream });
        for index in first..self.flight.len() {
            self.abandon(index);
            if self.flight.get(index).data.flags.contains(DataFlags::END) {
                return;
            }
        }
        self.abandon_rest(now, stream);
    }

    /// The same where the chunks of other messages may stand between.
    fn give_up_interleaved(&mut self, now: Time, index: usize) {
        let message =
            |sent: &Sent| (sent.data.stream, sent.data.flags.contains(DataFlags::UNORDERED), sent.place.mid);
        let given_up = message(self.flight.get(index));
        self.event(Event::Abandoned { stream: given_up.0 });
        let mut is_sent_whole = false;
        for index in 0..self.flight.len() {
            if message(self.flight.get(index)) == given_up {
                self.abandon(index);
                is_sent_whole |= self.flight.get(index).data.flags.contains(DataFlags::END);
            }
        }
        if !is_sent_whole {
            self.abandon_rest(now, given_up.0);
        }
    }

    /// The last fragment takes a TSN though it is never sent: a FORWARD TSN over what was sent alone could
    /// find everything received, and say nothing.
    fn abandon_rest(&mut self, now: Time, stream: u16) {
        if let Some((unsent, ssn, place)) = self.streams_out.pop_last_of_message(stream) {
            let limit = unsent.limit;
            let data = unsent.into_chunk(self.flight.next_tsn(), ssn, now);
            self.flight.push(Sent::new(data, place, self.paths.active, false, limit));
            self.flight.set_fate(self.flight.len() - 1, Fate::Abandoned);
        }
    }

    fn abandon(&mut self, index: usize) {
        let was = self.flight.get(index).fate;
        let size = self.flight.set_fate(index, Fate::Abandoned);
        let chunk = self.flight.get_mut(index);
        let path = &mut self.paths.list[chunk.path];
        if std::mem::take(&mut chunk.measures_rtt) {
            path.rtt_pending = false;
        }
        if was == Fate::InFlight {
            path.land(size, std::mem::take(&mut chunk.inherited));
            self.peer_rwnd += size;
        }
    }

    /// Tells the peer to move on over what was given up at the head of the flight. RFC 3758 section 3.5 C.
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

    /// What was given up at the head of the flight.
    fn given_up(&self) -> impl Iterator<Item = &Sent> {
        let is_behind = |chunk: &&Sent| matches!(chunk.fate, Fate::Abandoned | Fate::GapAcked);
        self.flight.iter().take_while(is_behind).filter(|chunk| chunk.fate == Fate::Abandoned)
    }

    /// Where the peer's cumulative TSN is to go, and the FORWARD TSN that says so. RFC 3758 section 3.5 C.
    fn forward_tsn(&self) -> (Tsn, Chunk) {
        let mut new_cumulative_tsn = self.flight.cumulative();
        let mut skipped: SmallVec<[(u16, Ssn); 2]> = SmallVec::new();
        let most = self.largest_chunk() / ForwardTsn::SKIPPED - 2;
        for chunk in self.given_up() {
            if !chunk.data.flags.contains(DataFlags::UNORDERED) {
                let full = skipped.len() == most;
                match skipped.iter_mut().find(|(stream, _)| *stream == chunk.data.stream) {
                    Some((_, ssn)) => *ssn = chunk.data.ssn,
                    // C4: as far as fits into a packet.
                    None if full => break,
                    None => skipped.push((chunk.data.stream, chunk.data.ssn)),
                }
            }
            new_cumulative_tsn = chunk.data.tsn;
        }
        (new_cumulative_tsn, Chunk::ForwardTsn(Box::new(ForwardTsn { new_cumulative_tsn, skipped })))
    }

    /// The same by the messages' own numbers, of unordered ones too. RFC 8260 section 2.3.1.
    fn i_forward_tsn(&self) -> (Tsn, Chunk) {
        let mut new_cumulative_tsn = self.flight.cumulative();
        let mut skipped: SmallVec<[Skipped; 2]> = SmallVec::new();
        let most = self.largest_chunk() / IForwardTsn::SKIPPED - 1;
        for chunk in self.given_up() {
            let unordered = chunk.data.flags.contains(DataFlags::UNORDERED);
            let (stream, mid) = (chunk.data.stream, chunk.place.mid);
            let full = skipped.len() == most;
            match skipped.iter_mut().find(|known| (known.stream, known.unordered) == (stream, unordered)) {
                Some(known) => known.mid = mid,
                None if full => break,
                None => skipped.push(Skipped { stream, unordered, mid }),
            }
            new_cumulative_tsn = chunk.data.tsn;
        }
        (new_cumulative_tsn, Chunk::IForwardTsn(Box::new(IForwardTsn { new_cumulative_tsn, skipped })))
    }

    /// The peer has given something up. RFC 3758 section 3.6.
    pub(crate) fn on_forward_tsn(&mut self, now: Time, forward: &ForwardTsn, seen: &mut DataSeen) -> bool {
        if !self.moves_on(forward.new_cumulative_tsn, seen) {
            return true;
        }
        let Self { reassembly, streams_in, reader, .. } = self;
        reassembly.discard_through(forward.new_cumulative_tsn, |ssn, message| {
            streams_in.push(ssn, message, |message| reader.receive(now, message));
        });
        for (stream, ssn) in &forward.skipped {
            streams_in.skip(*stream, *ssn, |message| reader.receive(now, message));
        }
        true
    }

    /// The same where messages are interleaved. RFC 8260 section 2.3.1.
    pub(crate) fn on_i_forward_tsn(&mut self, now: Time, forward: &IForwardTsn, seen: &mut DataSeen) -> bool {
        if !self.moves_on(forward.new_cumulative_tsn, seen) {
            return true;
        }
        let Self { interleaved, streams_in, reader, .. } = self;
        for skipped in forward.skipped.iter().filter(|skipped| streams_in.serves(skipped.stream)) {
            interleaved.skip(*skipped, &mut |delivery| take(reader, now, delivery));
        }
        true
    }

    /// Whether a new cumulative TSN is one.
    fn moves_on(&mut self, new_cumulative_tsn: Tsn, seen: &mut DataSeen) -> bool {
        if !self.state.receives_data() {
            return false;
        }
        seen.any = true;
        if new_cumulative_tsn.at_or_before(self.tsn_map.cumulative()) {
            seen.at_once = true;
            return false;
        }
        self.tsn_map.advance_to(new_cumulative_tsn);
        true
    }
}
