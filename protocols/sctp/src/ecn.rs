//! Explicit congestion notification (ECN) of RFC 4960 appendix A, as in Linux. RFC 9260 reserves its chunk types, but
//! does not describe it.

use hol_base::Time;
use hol_wire::Ecn;
use hol_wire::sctp::{Chunk, Tsn};

use crate::Endpoint;

/// The ECN state of an association.
#[derive(Debug, Default)]
pub(crate) struct EcnState {
    /// Whether both endpoints support ECN.
    agreed: bool,
    /// The first TSN of the last packet that arrived with a CE mark, which ECNE chunks report; `None` after the
    /// peer has reduced its window.
    echo: Option<Tsn>,
    /// The highest TSN in an ECNE chunk of the peer; our CWR chunks repeat it.
    pub(crate) answered_tsn: Tsn,
}

impl EcnState {
    /// Creates the initial state; `initial_tsn` is our first TSN.
    pub(crate) fn new(agreed: bool, initial_tsn: Tsn) -> Self {
        Self { agreed, echo: None, answered_tsn: initial_tsn - 1 }
    }

    /// Returns whether both endpoints support ECN.
    pub(crate) fn is_negotiated(&self) -> bool {
        self.agreed
    }

    /// Returns the ECN codepoint of our packets. As in Linux, all packets are ECN-capable, not only those with
    /// DATA.
    pub(crate) fn codepoint(&self) -> Ecn {
        if self.agreed { Ecn::Capable } else { Ecn::NotCapable }
    }

    /// Handles the ECN codepoint of a packet with DATA; `first` is the first TSN in it.
    pub(crate) fn on_data(&mut self, ecn: Ecn, first: Tsn) {
        if self.agreed && ecn == Ecn::Congested {
            self.echo = Some(first);
        }
    }

    /// Returns the ECNE chunk to put first into every packet until the peer has reduced its window; `None` if
    /// there is nothing to report. RFC 4960 appendix A.
    pub(crate) fn echo(&self) -> Option<Chunk> {
        self.echo.map(Chunk::Ecne)
    }

    /// Handles a CWR chunk: the peer has reduced its window for marks up to `tsn`.
    pub(crate) fn on_cwr(&mut self, tsn: Tsn) {
        self.echo = self.echo.filter(|echo| echo.after(tsn));
    }
}

impl Endpoint {
    /// Handles an ECNE chunk. Reduces the window of the marked packet's path once per round trip, and answers
    /// every ECNE with CWR. RFC 4960 appendix A.
    pub(crate) fn on_ecne(&mut self, now: Time, tsn: Tsn, from: usize) {
        if tsn.after(self.marks.answered_tsn) {
            self.marks.answered_tsn = tsn;
            let path = self.flight.iter().find(|sent| sent.data.tsn == tsn).map(|sent| sent.path);
            path.into_iter().for_each(|path| self.reduce_by_echo(now, path));
        }
        self.control.push_back((Some(from), Chunk::Cwr(self.marks.answered_tsn)));
    }

    fn reduce_by_echo(&mut self, now: Time, path: usize) {
        let (clock, path) = (self.clock, &mut self.paths.list[path]);
        let round_trip = clock.ticks(path.rtt.last().unwrap_or_default());
        // In ticks of the clock (sctp_transport_lower_cwnd: `time_after(jiffies, …)`).
        let is_later = |last| clock.tick_of(now) > clock.tick_of(last) + round_trip;
        if path.last_ecn_reduction.is_none_or(is_later) {
            path.last_ecn_reduction = Some(now);
            path.window.on_fast_retransmit();
            self.statistics.congestion_events += 1;
        } else {
            path.window.on_mark_again();
        }
    }
}
