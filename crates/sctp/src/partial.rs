//! Giving messages up. RFC 3758 section 3.5 and 3.6, RFC 7496.

use hol_base::Time;
use hol_transport::Event;
use hol_wire::sctp::{Chunk, DataFlags, ForwardTsn, Ssn};
use smallvec::SmallVec;

use crate::Endpoint;
use crate::acknowledge::DataSeen;
use crate::flight::{Fate, Limit, Sent};

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
        streams.extend(self.streams_out.clear());
        streams.into_iter().for_each(|stream| self.event(Event::Abandoned { stream }));
    }

    /// Gives up the whole message that the chunk at `index` belongs to. RFC 3758 section 3.5 A3.
    fn give_up(&mut self, now: Time, index: usize) {
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
        self.abandon_rest(now);
    }

    /// The last fragment takes a TSN though it is never sent: a FORWARD TSN over what was sent alone could
    /// find everything received, and say nothing.
    fn abandon_rest(&mut self, now: Time) {
        if let Some((unsent, ssn)) = self.streams_out.pop_last_of_message() {
            let limit = unsent.limit;
            let data = unsent.into_chunk(self.flight.next_tsn(), ssn, now);
            self.flight.push(Sent::new(data, self.paths.active, false, limit));
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
        let mut new_cumulative_tsn = self.flight.cumulative();
        let mut skipped: SmallVec<[(u16, Ssn); 2]> = SmallVec::new();
        let most = self.largest_chunk() / ForwardTsn::SKIPPED - 2;
        for chunk in
            self.flight.iter().take_while(|chunk| matches!(chunk.fate, Fate::Abandoned | Fate::GapAcked))
        {
            if chunk.fate != Fate::Abandoned {
                continue;
            }
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
        if new_cumulative_tsn != self.flight.cumulative() {
            let forward = Chunk::ForwardTsn(Box::new(ForwardTsn { new_cumulative_tsn, skipped }));
            self.control.push_back((None, forward));
        }
    }

    /// The peer has given something up. RFC 3758 section 3.6.
    pub(crate) fn on_forward_tsn(&mut self, now: Time, forward: &ForwardTsn, seen: &mut DataSeen) -> bool {
        if !self.state.receives_data() {
            return true;
        }
        seen.any = true;
        if forward.new_cumulative_tsn.at_or_before(self.tsn_map.cumulative()) {
            seen.at_once = true;
            return true;
        }
        self.tsn_map.advance_to(forward.new_cumulative_tsn);
        let Self { reassembly, streams_in, reader, .. } = self;
        reassembly.discard_through(forward.new_cumulative_tsn, |ssn, message| {
            streams_in.push(ssn, message, |message| reader.receive(now, message));
        });
        for (stream, ssn) in &forward.skipped {
            streams_in.skip(*stream, *ssn, |message| reader.receive(now, message));
        }
        true
    }
}
