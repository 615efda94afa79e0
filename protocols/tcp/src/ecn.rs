//! Explicit congestion notification: which packets may be marked, and how marks are echoed. RFC 3168 section 6.1; for DCTCP, RFC 8257
//! section 3; counted marks are in [`crate::accurate_ecn`].

use hol_base::Time;
use hol_congestion::Algorithm;
use hol_wire::Ecn;
use hol_wire::tcp::{EcnCounters, Flags, Segment, SeqNum};

use crate::accurate_ecn::{AccurateEcn, NewlyAcked};
use crate::ack_info::AckInfo;
use crate::recovery_phase::Phase;
use crate::{Config, Endpoint};

/// The flags of an ECN-setup SYN. RFC 3168 section 6.1.1.
const ECN_SETUP: Flags = Flags(Flags::ECE.0 | Flags::CWR.0);

/// The ECN state of a connection.
#[derive(Debug)]
pub(crate) struct EcnState {
    /// Whether we offer ECN in our SYN.
    offered: bool,
    /// Whether we accept ECN if the peer offers it.
    if_offered: bool,
    /// Whether all packets are ECN-capable and each mark is echoed, as in DCTCP.
    precise: bool,
    /// Whether both endpoints support ECN.
    negotiated: bool,
    /// Whether a SYN that does not offer ECN disables it.
    plain_syn_disables: bool,
    /// Whether a SYN that does not offer ECN was sent or received.
    plain_syn: bool,
    /// Whether an ECN-capable packet has arrived.
    seen: bool,
    /// Whether the receiver must echo a mark to the peer.
    echoing: bool,
    /// Whether the next data segment must tell the peer that the window was reduced (CWR).
    reduced: bool,
    /// The state of accurate ECN, in which marks are counted instead of echoed.
    accurate: AccurateEcn,
}

impl EcnState {
    /// Creates the state before the handshake.
    pub(crate) fn new(config: &Config) -> Self {
        let precise = config.congestion == Algorithm::Dctcp;
        // Prague does not use classic ECN. RFC 9331 section 4.1.
        let scalable = config.congestion == Algorithm::Prague;
        let offered = !scalable && (config.ecn || config.accurate_ecn || precise);
        Self {
            offered,
            if_offered: !scalable && (offered || config.ecn_if_offered),
            precise,
            negotiated: false,
            plain_syn_disables: !config.ecn_after_plain_syn,
            plain_syn: false,
            seen: false,
            echoing: false,
            reduced: false,
            accurate: AccurateEcn::new(config),
        }
    }

    /// Returns whether both endpoints support ECN.
    pub(crate) fn is_negotiated(&self) -> bool {
        self.negotiated || self.accurate.is_negotiated()
    }

    /// Returns whether accurate ECN is in use, in which marks are counted instead of echoed. RFC 9768.
    pub(crate) fn counts_marks(&self) -> bool {
        self.accurate.is_negotiated()
    }

    /// Returns the ECN flags of our SYN or SYN-ACK. RFC 3168 section 6.1.1.
    pub(crate) fn syn_flags(&self, syn: Flags) -> Flags {
        match syn.contains(Flags::ACK) {
            true if self.accurate.is_negotiated() => self.accurate.syn_ack_flags(syn),
            true if self.negotiated => syn | Flags::ECE,
            true => syn,
            false => {
                let classic = if self.offered { ECN_SETUP } else { Flags::default() };
                syn | self.accurate.request_flags().unwrap_or(classic)
            }
        }
    }

    /// Returns the ECN flags of a retransmitted SYN or SYN-ACK, after a timeout or because the peer has
    /// retransmitted its own.
    pub(crate) fn retransmitted_syn_flags(&mut self, flags: Flags, timed_out: bool) -> Flags {
        if !flags.contains(Flags::SYN) {
            return flags;
        }
        let is_accurate = self.accurate.is_offered_in_retransmitted_syn(flags);
        if timed_out {
            self.accurate.on_syn_timeout();
        }
        if is_accurate {
            return if flags.contains(Flags::ACK) { self.accurate.syn_ack_flags(flags) } else { flags };
        }
        self.in_plain_syn(flags)
    }

    /// Returns the flags of a retransmitted SYN without ECN, because the offer of ECN may have caused the loss.
    /// RFC 3168 section 6.1.1.1.
    fn in_plain_syn(&mut self, flags: Flags) -> Flags {
        if self.accurate.is_negotiated() {
            return self.accurate.plain_syn_ack_flags(flags);
        }
        let offers = flags.contains(ECN_SETUP | Flags::SYN) && !flags.contains(Flags::ACK);
        self.plain_syn |= offers;
        let refuses = self.plain_syn && self.plain_syn_disables && flags.contains(Flags::SYN | Flags::ACK);
        if offers || refuses { flags.without(ECN_SETUP | Flags::AE) } else { flags }
    }

    /// Handles a SYN that the peer has retransmitted. It may no longer offer ECN.
    pub(crate) fn on_retransmitted_syn(&mut self, syn: Flags, ecn: Ecn) {
        if self.accurate.is_negotiated() {
            return self.accurate.on_retransmitted_syn(syn, ecn);
        }
        self.plain_syn |= !syn.contains(ECN_SETUP);
        self.negotiated &= !(self.plain_syn && self.plain_syn_disables);
    }

    /// Negotiates ECN from the peer's SYN or SYN-ACK, which arrived with the codepoint `ecn`. RFC 3168 section
    /// 6.1.1.
    pub(crate) fn negotiate(&mut self, syn: Flags, ecn: Ecn) {
        self.accurate.negotiate(syn, ecn);
        if self.accurate.is_negotiated() {
            return;
        }
        let answers = syn.contains(Flags::ACK);
        let speaks = syn.contains(Flags::ECE) && syn.contains(Flags::CWR) != answers;
        let accepts = if answers { self.offered } else { self.if_offered };
        self.negotiated = accepts && speaks && !(self.plain_syn && self.plain_syn_disables);
    }

    /// Handles a SYN-ACK that the peer has retransmitted. The answer reports its ECN codepoint. Linux:
    /// `tcp_send_challenge_ack`.
    pub(crate) fn on_retransmitted_syn_ack(&mut self, segment: &Segment, ecn: Ecn) {
        if self.accurate.is_negotiated() {
            self.accurate.on_retransmitted_syn_ack(ecn);
            self.accurate.on_first_option(segment.options.accurate_ecn.as_deref());
        }
    }

    /// Tells accurate ECN that duplicate data arrived that begin at `start`.
    pub(crate) fn on_duplicate(&mut self, start: SeqNum) {
        self.accurate.on_duplicate(start);
    }

    /// Returns the numbers of octets that the peer has reported as delivered with ECT(1), ECT(0) and CE.
    pub(crate) fn reported_octets(&self) -> [u32; 3] {
        self.accurate.reported_octets()
    }

    /// Returns the number of our packets that the peer has reported as marked; 0 without accurate ECN.
    pub(crate) fn reported_marks(&self) -> u32 {
        self.accurate.reported_marks()
    }

    /// Returns the state of accurate ECN.
    pub(crate) fn accurate(&mut self) -> &mut AccurateEcn {
        &mut self.accurate
    }

    /// Returns the AccECN option of the first SYN-ACK.
    pub(crate) fn option_of_syn_ack(&self) -> Option<Box<EcnCounters>> {
        self.accurate.option_of_syn_ack()
    }

    /// Returns how many AccECN counters fit into `space` octets together with `blocks` SACK blocks, and how
    /// many of the blocks remain. `None` if the segment has no AccECN option.
    pub(crate) fn fit_counters(&self, space: usize, blocks: usize) -> Option<(usize, usize)> {
        self.accurate.counters_that_fit(space, blocks)
    }

    /// With accurate ECN, counts a received segment by its codepoint; returns whether the segment must be
    /// acknowledged at once.
    pub(crate) fn on_packet(&mut self, ecn: Ecn, octets: u32) -> bool {
        self.accurate.is_negotiated() && self.accurate.on_packet(ecn, octets)
    }

    /// Records a reduction of the window, which the next new data report with CWR. RFC 3168 section 6.1.2.
    pub(crate) fn on_reduction(&mut self) {
        self.reduced = self.negotiated;
    }

    /// Cancels the report (CWR) of a reduction that was undone.
    pub(crate) fn forget_reduction(&mut self) {
        self.reduced = false;
    }

    /// Returns the flags and the ECN codepoint of a segment. With RFC 3168, only segments with `new` data are
    /// ECN-capable: not retransmissions (section 6.1.5), window probes (6.1.6) or pure acknowledgments (6.1.4). A
    /// closed connection (`is_connected` is false) counts no marks (Linux: `tcp_v4_timewait_ack`).
    pub(crate) fn on_send(&mut self, flags: Flags, new: bool, is_connected: bool) -> (Flags, Ecn) {
        if flags.contains(Flags::SYN) {
            return (flags, self.codepoint_of_syn(flags));
        }
        if self.accurate.is_negotiated() {
            return if is_connected {
                self.accurate.on_send(flags, new)
            } else {
                (flags, self.accurate.codepoint())
            };
        }
        if !self.negotiated {
            return (flags, Ecn::NotCapable);
        }
        let tells = if new && std::mem::take(&mut self.reduced) { flags | Flags::CWR } else { flags };
        let flags = if self.echoing { tells | Flags::ECE } else { tells };
        (flags, if new || self.precise { Ecn::Capable } else { Ecn::NotCapable })
    }

    /// Returns the ECN codepoint of a SYN or SYN-ACK; only one that offers or accepts ECN may be ECN-capable.
    fn codepoint_of_syn(&self, flags: Flags) -> Ecn {
        if self.accurate.is_negotiated() || flags.contains(Flags::AE) {
            return self.accurate.codepoint_of_syn();
        }
        if self.precise && flags.contains(Flags::ECE) { Ecn::Capable } else { Ecn::NotCapable }
    }

    /// Returns whether a segment echoes an ECN mark of one of our packets. RFC 3168 section 6.1.2.
    pub(crate) fn is_mark_echo(&self, segment: &Segment) -> bool {
        self.negotiated && segment.flags.contains(Flags::ECE) && !segment.flags.contains(Flags::SYN)
    }

    /// Stops echoing marks if `flags` report that the peer has reduced its window (CWR); returns whether they do.
    /// RFC 3168 section 6.1.3.
    pub(crate) fn on_reduction_report(&mut self, flags: Flags) -> bool {
        let reduced = self.negotiated && flags.contains(Flags::CWR);
        if reduced && !self.precise {
            self.echoing = false;
        }
        reduced
    }

    /// Handles the ECN codepoint of received data; returns whether they must be acknowledged soon.
    fn on_data(&mut self, ecn: Ecn) -> bool {
        if self.echoes_each_change() {
            self.echoing = ecn == Ecn::Congested;
            return false;
        }
        let is_first = ecn == Ecn::Congested && !self.echoing;
        // A packet that is not ECN-capable, although others were, is probably a retransmission.
        let is_again = ecn == Ecn::NotCapable && self.seen;
        self.echoing |= self.negotiated && ecn == Ecn::Congested;
        self.seen |= ecn != Ecn::NotCapable;
        self.negotiated && (is_first || is_again)
    }

    /// Returns whether data with the codepoint `ecn` change the echo. RFC 8257 section 3.2.
    fn is_changed_by(&self, ecn: Ecn) -> bool {
        self.echoes_each_change() && self.echoing != (ecn == Ecn::Congested)
    }

    /// Returns whether the receiver of DCTCP acknowledges at each change between marked and unmarked data. As in
    /// Linux, it also does so with accurate ECN: `tcp_data_ecn_check` (net/ipv4/tcp_input.c).
    fn echoes_each_change(&self) -> bool {
        self.precise && self.is_negotiated()
    }
}

impl Endpoint {
    /// If the data that arrive now change the echo, first sends the delayed acknowledgment of the data below
    /// `nxt`. RFC 8257 section 3.2, figure 1. As in Linux (`dctcp_ece_ack_update`), the window in that
    /// acknowledgment already takes the new data into account.
    pub(crate) fn acknowledge_before_marks(&mut self, now: Time, ecn: Ecn, nxt: SeqNum) {
        if self.marks.is_changed_by(ecn) {
            if self.timers.is_ack_delayed() {
                self.send_ack_of(now, nxt);
            }
            self.acks.make_immediate_if(true);
        }
    }

    /// Handles the ECN codepoint of received data.
    pub(crate) fn on_data_ecn(&mut self, ecn: Ecn) {
        if self.marks.on_data(ecn) {
            self.acks.on_mark(self.rcv.offered());
        }
    }

    /// Reduces the congestion window after an echoed mark, at most once per round trip, without retransmissions.
    /// RFC 3168 section 6.1.2.
    pub(crate) fn reduce_by_echo(&mut self) {
        if self.episode.phase() < Phase::Reduced {
            self.episode.undo.forget();
            self.begin_reduction();
            self.cwnd.on_mark();
            self.episode.set_phase(Phase::Reduced);
        }
        self.episode.undo.forget_window();
    }

    /// With accurate ECN, reads the number of newly marked packets from an acknowledgment. Acknowledgments of the
    /// handshake contain no such number. RFC 9768 section 3.2.2.
    pub(crate) fn take_marks(&mut self, segment: &Segment, info: &mut AckInfo) {
        let progresses = info.advanced || info.delivered > 0 || self.timestamps.has_advanced();
        if !self.marks.counts_marks() || !progresses || info.syn_acked {
            return;
        }
        let delivered = NewlyAcked {
            packets: info.delivered.div_ceil(self.cwnd.quantum()),
            octets: info.delivered_octets,
            mss: self.negotiated.mss(),
            is_exact: self.negotiated.uses_sack()
                || matches!(self.episode.phase(), Phase::Open | Phase::Reduced),
        };
        let option = segment.options.accurate_ecn.as_deref();
        info.marked = self.marks.accurate.newly_marked(segment.flags, option, delivered);
        info.echoes |= info.marked > 0;
    }

    /// Counts delivered data, and the marked part of them, for DCTCP. RFC 8257 section 3.3.
    pub(crate) fn count_marks(&mut self, info: &AckInfo) {
        let marked = match info.echoes {
            true if self.marks.counts_marks() => info.marked * self.cwnd.quantum(),
            true => info.delivered,
            false => 0,
        };
        let (una, nxt) = (self.snd.una(), self.snd.nxt());
        self.cwnd.on_delivered(info.delivered, marked, (una.0, nxt.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the receiver of a connection over which both ends use this congestion control and accurate ECN.
    fn receiver(congestion: Algorithm) -> EcnState {
        let config = Config { congestion, accurate_ecn: true, ..Config::linux_7_3() };
        let [mut client, mut server] = [EcnState::new(&config), EcnState::new(&config)];
        let syn = client.syn_flags(Flags::SYN);
        server.negotiate(syn, client.on_send(syn, false, false).1);
        assert!(server.counts_marks());
        server
    }

    /// `dctcp_ece_ack_update` is called in both modes of ECN. Pingpong over DualPI2 took twice as long as in Linux 7.3.
    #[test]
    fn linux_dctcp_acknowledges_each_change_of_marks_with_accurate_ecn() {
        let mut dctcp = receiver(Algorithm::Dctcp);
        let changes = [Ecn::Capable, Ecn::Congested, Ecn::Congested, Ecn::Capable].map(|ecn| {
            let changed = dctcp.is_changed_by(ecn);
            dctcp.on_data(ecn);
            changed
        });
        assert_eq!(changes, [false, true, false, true]);
        assert!(!receiver(Algorithm::Cubic).is_changed_by(Ecn::Congested));
    }

    #[test]
    fn linux_syns_of_dctcp_are_ecn_capable_in_both_modes() {
        for (congestion, accurate_ecn, expected) in [
            (Algorithm::Dctcp, false, Ecn::Capable),
            (Algorithm::Dctcp, true, Ecn::Capable),
            (Algorithm::Cubic, true, Ecn::NotCapable),
            (Algorithm::Prague, true, Ecn::Capable1),
        ] {
            let mut state = EcnState::new(&Config { congestion, accurate_ecn, ..Config::linux_7_3() });
            let syn = state.syn_flags(Flags::SYN);
            assert_eq!(state.on_send(syn, false, false).1, expected, "{congestion:?} {accurate_ecn}");
        }
    }
}
