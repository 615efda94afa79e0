//! Explicit congestion notification, as RFC 4960 appendix A has it; RFC 9260 keeps its numbers. Both as Linux does them.

use hol_base::Time;
use hol_wire::Ecn;
use hol_wire::sctp::{Chunk, Tsn};

use crate::Endpoint;

/// What an association knows of marks.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Both sides speak ECN.
    agreed: bool,
    /// The first TSN of the last packet that came marked, until the peer has heard of it.
    echo: Option<Tsn>,
    /// The last that a reduction answered.
    answered: Tsn,
}

impl Marks {
    /// Nothing is marked yet, and our first TSN will be `initial_tsn`.
    pub(crate) fn new(agreed: bool, initial_tsn: Tsn) -> Self {
        Self { agreed, echo: None, answered: initial_tsn - 1 }
    }

    /// Both sides speak ECN.
    pub(crate) fn are_agreed(&self) -> bool {
        self.agreed
    }

    /// What our packets say: Linux has all of them be marked, not those with DATA alone.
    pub(crate) fn codepoint(&self) -> Ecn {
        if self.agreed { Ecn::Capable } else { Ecn::NotCapable }
    }

    /// A packet came with `ecn`, and `first` is the first TSN in it.
    pub(crate) fn on_data(&mut self, ecn: Ecn, first: Tsn) {
        if self.agreed && ecn == Ecn::Congested {
            self.echo = Some(first);
        }
    }

    /// What stands before all else in a packet, until the peer has reduced its window. RFC 4960 appendix A.
    pub(crate) fn echo(&self) -> Option<Chunk> {
        self.echo.map(Chunk::Ecne)
    }

    /// The peer has reduced its window for marks up to `tsn`.
    pub(crate) fn on_cwr(&mut self, tsn: Tsn) {
        self.echo = self.echo.filter(|echo| echo.after(tsn));
    }
}

impl Endpoint {
    /// The packet with `tsn` was marked: its path's window shrinks once in a round trip, and the peer hears of it each time.
    /// RFC 4960 appendix A.
    pub(crate) fn on_ecne(&mut self, now: Time, tsn: Tsn, from: usize) {
        if tsn.after(self.marks.answered) {
            self.marks.answered = tsn;
            let path = self.flight.iter().find(|sent| sent.data.tsn == tsn).map(|sent| sent.path);
            path.into_iter().for_each(|path| self.reduce_by_echo(now, path));
        }
        self.control.push_back((Some(from), Chunk::Cwr(self.marks.answered)));
    }

    fn reduce_by_echo(&mut self, now: Time, path: usize) {
        let path = &mut self.paths.list[path];
        let round_trip = path.rtt.last().unwrap_or_default();
        if path.last_reduced.is_none_or(|last| now > last + round_trip) {
            path.last_reduced = Some(now);
            path.window.on_fast_retransmit();
            self.statistics.congestion_events += 1;
        }
    }
}
