//! Explicit congestion notification: who may be marked, who echoes a mark, and how long. RFC 3168 section 6.1; as DCTCP has
//! it, RFC 8257 section 3.

use hol_base::Time;
use hol_congestion::Algorithm;
use hol_wire::Ecn;
use hol_wire::tcp::{Flags, Segment};

use crate::news::News;
use crate::phase::Phase;
use crate::{Config, Endpoint};

/// ECN-setup. RFC 3168 section 6.1.1.
const SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// What a connection knows of marks.
#[derive(Debug)]
pub(crate) struct Marks {
    /// We would speak ECN.
    offered: bool,
    /// We do if the peer asks for it.
    if_offered: bool,
    /// Every packet may be marked, and echoes tell of each: DCTCP.
    precise: bool,
    /// Both sides speak it.
    agreed: bool,
    /// A SYN without the offer ends it.
    minds_plain_syn: bool,
    /// One was sent, or came.
    plain_syn: bool,
    /// A packet that could be marked has come.
    seen: bool,
    /// The peer is to hear of a mark.
    echoing: bool,
    /// The window was reduced, and the peer is to hear of that.
    reduced: bool,
}

impl Marks {
    /// Nothing is settled.
    pub(crate) fn new(config: &Config) -> Self {
        let precise = config.congestion == Algorithm::Dctcp;
        let offered = config.ecn || precise;
        Self {
            offered,
            if_offered: offered || config.ecn_if_offered,
            precise,
            agreed: false,
            minds_plain_syn: !config.ecn_after_plain_syn,
            plain_syn: false,
            seen: false,
            echoing: false,
            reduced: false,
        }
    }

    /// Both sides speak it.
    pub(crate) fn are_agreed(&self) -> bool {
        self.agreed
    }

    /// The flags beside SYN, or SYN and ACK. RFC 3168 section 6.1.1.
    pub(crate) fn in_syn(&self, syn: Flags) -> Flags {
        match syn.contains(Flags::ACK) {
            true if self.agreed => syn | Flags::ECE,
            false if self.offered => syn | SETUP,
            _ => syn,
        }
    }

    /// The flags of a segment that is sent again: a SYN that offers ECN may have been lost for that. RFC 3168 section 6.1.1.1.
    pub(crate) fn in_syn_again(&mut self, flags: Flags) -> Flags {
        let offers = flags.contains(SETUP) && flags.contains(Flags::SYN);
        self.plain_syn |= offers;
        let refuses = self.plain_syn && self.minds_plain_syn && flags.contains(Flags::SYN | Flags::ACK);
        if offers || refuses { flags.without(SETUP) } else { flags }
    }

    /// The peer's SYN comes again, and may not offer ECN any more.
    pub(crate) fn on_syn_again(&mut self, syn: Flags) {
        self.plain_syn |= !syn.contains(SETUP);
        self.agreed &= !(self.plain_syn && self.minds_plain_syn);
    }

    /// The peer's SYN or SYN-ACK settles it. RFC 3168 section 6.1.1.
    pub(crate) fn negotiate(&mut self, syn: Flags) {
        let answers = syn.contains(Flags::ACK);
        let speaks = syn.contains(Flags::ECE) && syn.contains(Flags::CWR) != answers;
        let accepts = if answers { self.offered } else { self.if_offered };
        self.agreed = accepts && speaks && !(self.plain_syn && self.minds_plain_syn);
    }

    /// The window has been reduced: the next new data say so. RFC 3168 section 6.1.2.
    pub(crate) fn on_reduction(&mut self) {
        self.reduced = self.agreed;
    }

    /// The reduction was needless.
    pub(crate) fn forget_reduction(&mut self) {
        self.reduced = false;
    }

    /// What a segment that leaves says of congestion. Of all that RFC 3168 has sent, `new` data alone may be marked: not what
    /// is sent again (section 6.1.5), no window probe (6.1.6), no bare acknowledgment (6.1.4).
    pub(crate) fn on_send(&mut self, flags: Flags, new: bool) -> (Flags, Ecn) {
        if flags.contains(Flags::SYN) {
            return (
                flags,
                if self.precise && flags.contains(Flags::ECE) { Ecn::Capable } else { Ecn::NotCapable },
            );
        }
        if !self.agreed {
            return (flags, Ecn::NotCapable);
        }
        let tells = if new && std::mem::take(&mut self.reduced) { flags | Flags::CWR } else { flags };
        let flags = if self.echoing { tells | Flags::ECE } else { tells };
        (flags, if new || self.precise { Ecn::Capable } else { Ecn::NotCapable })
    }

    /// Whether a segment echoes a mark of what we sent. RFC 3168 section 6.1.2.
    pub(crate) fn hears_echo(&self, segment: &Segment) -> bool {
        self.agreed && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::SYN)
    }

    /// The peer has reduced its window, if `flags` say so: no more echoes. RFC 3168 section 6.1.3.
    pub(crate) fn hears_of_reduction(&mut self, flags: Flags) -> bool {
        let reduced = self.agreed && flags.contains(Flags::CWR);
        if reduced && !self.precise {
            self.echoing = false;
        }
        reduced
    }

    /// Data came with `ecn`; whether the peer should hear of that soon.
    fn on_data(&mut self, ecn: Ecn) -> bool {
        if self.agreed && self.precise {
            self.echoing = ecn == Ecn::Congested;
            return false;
        }
        let is_first = ecn == Ecn::Congested && !self.echoing;
        // What could not be marked, though others could, is likely to have been sent again.
        let is_again = ecn == Ecn::NotCapable && self.seen;
        self.echoing |= self.agreed && ecn == Ecn::Congested;
        self.seen |= ecn != Ecn::NotCapable;
        self.agreed && (is_first || is_again)
    }

    /// Whether the echo changes with data that come with `ecn`. RFC 8257 section 3.2.
    fn is_changed_by(&self, ecn: Ecn) -> bool {
        self.agreed && self.precise && self.echoing != (ecn == Ecn::Congested)
    }
}

impl Endpoint {
    /// Data come, and are not delivered yet: what a delayed acknowledgment has to say of marks it says before the echo changes.
    /// RFC 8257 section 3.2, figure 1.
    pub(crate) fn tell_of_marks_before(&mut self, now: Time, ecn: Ecn) {
        if self.marks.is_changed_by(ecn) {
            if self.timers.is_ack_delayed() {
                self.send_ack(now);
            }
            self.acks.hasten(true);
        }
    }

    /// Data came with `ecn`.
    pub(crate) fn data_marked(&mut self, ecn: Ecn) {
        if self.marks.on_data(ecn) {
            self.acks.on_mark(self.rcv.offered());
        }
    }

    /// The window is reduced once in a round trip, without anything sent again. RFC 3168 section 6.1.2.
    pub(crate) fn reduce_by_echo(&mut self) {
        if self.episode.phase() < Phase::Reduced {
            self.episode.undo.forget();
            self.begin_reduction();
            self.episode.turn(Phase::Reduced);
        }
        self.episode.undo.forget_window();
    }

    /// DCTCP counts how much of what is delivered was marked. RFC 8257 section 3.3.
    pub(crate) fn count_marks(&mut self, news: &News) {
        let (una, nxt) = (self.snd.una(), self.snd.nxt());
        self.cwnd.on_delivered(news.delivered, news.echoes, (una.0, nxt.0));
    }
}
