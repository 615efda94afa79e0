//! Accurate ECN: the receiver counts marked packets in three bits of each header (ACE) instead of echoing
//! one bit. RFC 9768, as in Linux 7.3 (`include/net/tcp_ecn.h`, net/ipv4/tcp_input.c).

use hol_congestion::Algorithm;
use hol_wire::Ecn;
use hol_wire::tcp::{EcnCounters, Flags, SeqNum};

use crate::Config;
use crate::ecn_octets::EcnOctets;

/// The three bits of the ACE field. RFC 9768 section 3.2.2.
const ACE: Flags = Flags(Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);
/// Initial value of the counters r.cep and s.cep of marked packets. RFC 9768 section 3.2.1.
const INITIAL_COUNT: u32 = 5;
/// Mask of the bits of the ACE field, which is also the field's maximum.
const ACE_MASK: u32 = 0b111;
/// Maximum number of newly marked packets that one acknowledgment may report; more could wrap the field. RFC 9768
/// section 3.2.2.5.1; `TCP_ACCECN_ACE_MAX_DELTA`.
const MAX_PENDING: u32 = 6;
/// If acknowledgments cover on average more packets than this, ACK compression is likely: an acknowledgment that
/// covers many packets and has no usable AccECN option is not taken as a sign that the ACE field has wrapped.
/// `ACK_COMP_THRESH`.
const ACK_COMPRESSION_THRESHOLD: u32 = 4;
/// Threshold for a wrap of the ACE field, if the number of packets in the field is enough to explain the octets
/// that the AccECN option reports as marked. The field is taken as wrapped only if these octets are at least
/// 1/2^SAFETY_SHIFT of those of the largest possible number of full-sized packets. `TCP_ACCECN_SAFETY_SHIFT`.
const SAFETY_SHIFT: u32 = 1;
/// Number of fraction bits of the average. A new value has the weight 1/64. `PKTS_ACKED_PREC`,
/// `PKTS_ACKED_WEIGHT`.
const FRACTION_BITS: u32 = 6;

/// The state of accurate ECN feedback.
#[derive(Debug)]
pub(crate) struct AccurateEcn {
    /// Whether we request accurate ECN in our SYN.
    requested: bool,
    /// Whether we accept accurate ECN that the peer requests.
    accepted: bool,
    /// Whether both endpoints support accurate ECN.
    agreed: bool,
    /// The ECN codepoint of our packets.
    codepoint: Ecn,
    /// Whether our SYN and SYN-ACK also have the ECN codepoint `codepoint`.
    marks_syn: bool,
    /// The ECN codepoint with which the peer's SYN or SYN-ACK arrived.
    handshake: Ecn,
    /// Whether our next segment is the ACK that completes the handshake. Its ACE field reports `handshake`.
    reflects: bool,
    /// Number of marked packets received (r.cep minus its initial value).
    received_marks: u32,
    /// Number of marked packets received since we last sent a segment.
    pending_marks: u32,
    /// Number of marked packets that the peer has reported (s.cep minus its initial value).
    reported: u32,
    /// The ECN codepoint of the last packet received.
    last_codepoint: Ecn,
    /// Average number of packets per acknowledgment, in 64ths.
    per_acknowledgment: u32,
    /// Whether the path has been found to change the ACE field or the ECN codepoints. Our packets are then not
    /// ECN-capable. `TCP_ACCECN_ACE_FAIL_RECV`.
    is_broken: bool,
    /// Whether we send the AccECN option.
    has_option: bool,
    /// Start of the duplicate data that our last segment with the AccECN option reported.
    option_with_duplicate: Option<SeqNum>,
    octets: EcnOctets,
    /// Number of times that the retransmission timer has sent the SYN or SYN-ACK again.
    syn_timeouts: u32,
}

/// The packets and octets that an acknowledgment newly delivers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewlyAcked {
    /// Number of newly delivered packets.
    pub(crate) packets: u32,
    /// Number of newly delivered octets.
    pub(crate) octets: u32,
    /// Maximum payload of a segment in octets.
    pub(crate) mss: u32,
    /// Whether the numbers are exact: SACK is used, or no recovery is in progress.
    pub(crate) is_exact: bool,
}

impl AccurateEcn {
    /// Creates the state before the handshake.
    pub(crate) fn new(config: &Config) -> Self {
        // RFC 9331 sections 4.1 and 4.2: the codepoint of L4S on every packet, and accurate feedback.
        let is_scalable = config.congestion == Algorithm::Prague;
        Self {
            requested: config.accurate_ecn || is_scalable,
            accepted: config.accurate_ecn || config.accurate_ecn_if_offered || is_scalable,
            agreed: false,
            codepoint: if is_scalable { Ecn::Capable1 } else { Ecn::Capable },
            // Linux: `tcp_ca_needs_ecn` in `tcp_ecn_send_syn` (include/net/tcp_ecn.h).
            marks_syn: is_scalable || config.congestion == Algorithm::Dctcp,
            handshake: Ecn::NotCapable,
            reflects: false,
            received_marks: 0,
            pending_marks: 0,
            reported: 0,
            last_codepoint: Ecn::NotCapable,
            per_acknowledgment: 0,
            is_broken: false,
            has_option: config.accurate_ecn_option,
            option_with_duplicate: None,
            octets: EcnOctets::new(),
            syn_timeouts: 0,
        }
    }

    /// Returns whether both endpoints support accurate ECN.
    pub(crate) fn is_negotiated(&self) -> bool {
        self.agreed
    }

    /// Returns the number of our packets that the peer has reported as marked.
    pub(crate) fn reported_marks(&self) -> u32 {
        self.reported
    }

    /// Returns the flags with which our SYN requests accurate ECN; `None` if we do not request it. RFC 9768
    /// section 3.1.1.
    pub(crate) fn request_flags(&self) -> Option<Flags> {
        self.requested.then_some(ACE)
    }

    /// Returns the ECN codepoint for our SYN or SYN-ACK.
    pub(crate) fn codepoint_of_syn(&self) -> Ecn {
        if self.marks_syn { self.codepoint } else { Ecn::NotCapable }
    }

    /// Negotiates accurate ECN from the flags of the peer's SYN or SYN-ACK, which arrived with the codepoint
    /// `ecn`. RFC 9768 sections 3.1.2, table 2, and 3.1.3.
    pub(crate) fn negotiate(&mut self, syn: Flags, ecn: Ecn) {
        let (answers, ace) = (syn.contains(Flags::ACK), ace(syn));
        let speaks =
            if answers { !matches!(ace, 0b000 | 0b001 | 0b111) } else { !matches!(ace, 0b000 | 0b011) };
        self.agreed = speaks && if answers { self.requested } else { self.accepted };
        if !self.agreed {
            return;
        }
        (self.handshake, self.last_codepoint, self.reflects) = (ecn, ecn, answers);
        if answers && ecn == Ecn::Congested && self.is_plausible(ace) {
            self.count_mark();
        }
    }

    /// Handles a SYN that the peer retransmits, which arrived with the codepoint `ecn`. RFC 9768 section 3.1.4;
    /// `tcp_check_req`.
    pub(crate) fn on_retransmitted_syn(&mut self, syn: Flags, ecn: Ecn) {
        self.handshake = ecn;
        self.is_broken |= ace(syn) == 0;
    }

    /// Handles the client's ACK of the handshake, which reports the codepoint with which our SYN-ACK arrived. RFC
    /// 9768 section 3.2.2.1; `tcp_accecn_third_ack`.
    pub(crate) fn on_handshake_acknowledged(&mut self, flags: Flags, is_data: bool) {
        match ace(flags) {
            _ if !self.agreed => {}
            0 => self.is_broken = true,
            0b001 | 0b101 | 0b111 => {}
            ace if !is_data && self.is_plausible(ace) && ace == reflection(Ecn::Congested) => {
                self.reported = self.reported.max(1);
            }
            _ => {}
        }
    }

    /// Returns whether our SYN or SYN-ACK can have arrived with the codepoint that `ace` reports: a correct path
    /// changes a codepoint only to CE. RFC 9768 section 3.2.2.3; `tcp_accecn_validate_syn_feedback`.
    fn is_plausible(&mut self, ace: u32) -> bool {
        let (sent, arrived) = (self.codepoint_of_syn(), reflected(ace));
        let is_valid = arrived == sent || (arrived != Ecn::NotCapable && sent != Ecn::NotCapable);
        self.is_broken |= !is_valid;
        is_valid
    }

    /// Returns the flags of a SYN-ACK, which report the codepoint with which the peer's SYN arrived. RFC 9768
    /// section 3.1.1, table 2.
    pub(crate) fn syn_ack_flags(&self, flags: Flags) -> Flags {
        with_ace(flags, reflection(self.handshake))
    }

    /// Returns the flags of a SYN-ACK that reports nothing about the peer's SYN.
    pub(crate) fn plain_syn_ack_flags(&self, flags: Flags) -> Flags {
        flags.without(ACE)
    }

    /// Returns whether a further copy of a SYN or SYN-ACK offers accurate ECN: only until the retransmission timer
    /// has sent one. RFC 9768 sections 3.1.4.1 and 3.1.4.2; `tcp_retransmit_skb`, `tcp_ecn_make_synack`.
    pub(crate) fn is_offered_in_retransmitted_syn(&self, flags: Flags) -> bool {
        let was_in_first = if flags.contains(Flags::ACK) { self.agreed } else { flags.contains(ACE) };
        was_in_first && self.syn_timeouts == 0
    }

    /// Counts a SYN or SYN-ACK that the retransmission timer sends again.
    pub(crate) fn on_syn_timeout(&mut self) {
        self.syn_timeouts += 1;
    }

    /// Handles a SYN-ACK that the peer has retransmitted.
    pub(crate) fn on_retransmitted_syn_ack(&mut self, ecn: Ecn) {
        (self.handshake, self.reflects) = (ecn, true);
    }

    /// Handles duplicate data that begin at `start`. If our last segment with the AccECN option already reported
    /// this duplicate, the path probably drops segments with this option, and we stop sending it. RFC 9768 section
    /// 3.2.3.2.2; `tcp_rcv_spurious_retrans`.
    pub(crate) fn on_duplicate(&mut self, start: SeqNum) {
        self.has_option &= self.option_with_duplicate != Some(start);
    }

    /// Returns the ECN codepoint of our packets.
    pub(crate) fn codepoint(&self) -> Ecn {
        if self.is_broken { Ecn::NotCapable } else { self.codepoint }
    }

    /// Returns the numbers of octets that the peer has reported as delivered with ECT(1), ECT(0) and CE.
    pub(crate) fn reported_octets(&self) -> [u32; 3] {
        self.octets.delivered()
    }

    /// Returns the flags and the ECN codepoint of a segment after the handshake. RFC 9768 section 3.2.2.
    pub(crate) fn on_send(&mut self, flags: Flags, is_data: bool) -> (Flags, Ecn) {
        let reflects = std::mem::take(&mut self.reflects) && !is_data;
        let value = if reflects {
            reflection(self.handshake)
        } else {
            (self.received_marks + INITIAL_COUNT) & ACE_MASK
        };
        self.pending_marks = 0;
        (with_ace(flags, value), self.codepoint())
    }

    /// Counts a received packet with `octets` of data; returns whether it must be acknowledged at once. RFC 9768
    /// section 3.2.2.5.1; `tcp_ecn_received_counters`.
    pub(crate) fn on_packet(&mut self, ecn: Ecn, octets: u32) -> bool {
        self.octets.on_data(ecn, octets);
        let is_changed = std::mem::replace(&mut self.last_codepoint, ecn) != ecn;
        if ecn == Ecn::Congested {
            self.count_mark();
        }
        is_changed || self.pending_marks >= MAX_PENDING
    }

    fn count_mark(&mut self) {
        self.received_marks = self.received_marks.wrapping_add(1);
        self.pending_marks += 1;
    }

    /// Handles the first AccECN option of the peer, in its SYN-ACK or in the ACK of our SYN-ACK.
    pub(crate) fn on_first_option(&mut self, option: Option<&EcnCounters>) {
        if let (true, Some(option)) = (self.agreed, option) {
            self.octets.on_first_option(option);
        }
    }

    /// Returns the AccECN option of our first SYN-ACK. RFC 9768 section 3.2.3.2.1.
    pub(crate) fn option_of_syn_ack(&self) -> Option<Box<EcnCounters>> {
        (self.agreed && self.has_option).then(|| Box::new(EcnOctets::first_option()))
    }

    /// Returns how many counters of the AccECN option fit into `space` octets of options together with `blocks`
    /// SACK blocks, and how many of the blocks remain. `None` if the segment has no AccECN option.
    pub(crate) fn counters_that_fit(&self, space: usize, blocks: usize) -> Option<(usize, usize)> {
        let is_due = self.agreed && self.has_option && self.octets.peer_sends_option();
        if is_due { self.octets.counters_that_fit(space, blocks) } else { None }
    }

    /// Returns the AccECN option of a segment, with `fields` counters; `duplicate` is the start of the data that
    /// the segment reports by D-SACK.
    pub(crate) fn option(&mut self, fields: usize, duplicate: Option<SeqNum>) -> Box<EcnCounters> {
        self.option_with_duplicate = duplicate;
        Box::new(self.octets.option(fields))
    }

    /// Returns how many of our packets a segment newly reports as marked. If the segment has delivered more
    /// packets than the ACE field can count, the octets in its AccECN option decide; without the option, the
    /// largest possible number is assumed. RFC 9768 section 3.2.2.5.2; `__tcp_accecn_process`.
    pub(crate) fn newly_marked(
        &mut self,
        flags: Flags,
        option: Option<&EcnCounters>,
        delivered: NewlyAcked,
    ) -> u32 {
        let before = self.octets.marked();
        let is_reliable = self.octets.on_acknowledgment(option, delivered.octets);
        let marked_octets = is_reliable.then(|| self.octets.marked().wrapping_sub(before));
        if delivered.packets > 0 {
            let sample = delivered.packets << FRACTION_BITS;
            self.per_acknowledgment = match self.per_acknowledgment {
                0 => sample,
                average => ((average << FRACTION_BITS) - average + sample) >> FRACTION_BITS,
            };
        }
        let delta = ace(flags).wrapping_sub(INITIAL_COUNT).wrapping_sub(self.reported) & ACE_MASK;
        let marked = if delivered.packets <= ACE_MASK {
            delta
        } else {
            self.resolve_wraps(delta, delivered, marked_octets)
        };
        self.reported = self.reported.wrapping_add(marked);
        marked
    }

    /// Returns the number of newly marked packets: `delta`, plus a multiple of eight if the ACE field has wrapped.
    fn resolve_wraps(&self, delta: u32, delivered: NewlyAcked, marked_octets: Option<u32>) -> u32 {
        let NewlyAcked { packets, octets, mss, is_exact } = delivered;
        let max = packets - ((packets - delta) & ACE_MASK);
        match marked_octets {
            None if self.per_acknowledgment > ACK_COMPRESSION_THRESHOLD << FRACTION_BITS => delta,
            Some(0) => delta,
            Some(marked) if packets >= 2 * (ACE_MASK + 1) && is_exact => {
                if octets <= marked {
                    return max;
                }
                let estimate = (u64::from(marked) * u64::from(packets)).div_ceil(octets.into()) as u32;
                max.min(delta + (estimate & !ACE_MASK))
            }
            Some(marked) if marked > delta * mss => max,
            Some(marked) if marked < (max * mss) >> SAFETY_SHIFT => delta,
            None | Some(_) => max,
        }
    }
}

/// Returns the ECN codepoint that the ACE field of a handshake segment reports. `tcp_accecn_extract_syn_ect`.
const fn reflected(ace: u32) -> Ecn {
    match ace {
        0b010 => Ecn::NotCapable,
        0b000 | 0b100 => Ecn::Capable,
        0b110 => Ecn::Congested,
        _ => Ecn::Capable1,
    }
}

/// Returns the ACE field in the flags of a segment.
const fn ace(flags: Flags) -> u32 {
    ((flags.0 & ACE.0) >> 6) as u32
}

/// Returns the flags with the ACE field set to `value`.
const fn with_ace(flags: Flags, value: u32) -> Flags {
    Flags(flags.without(ACE).0 | (value as u16) << 6)
}

/// Returns the ACE field with which a handshake segment reports that the peer's segment arrived with this
/// codepoint. RFC 9768 section 3.1.1, table 2.
const fn reflection(ecn: Ecn) -> u32 {
    match ecn {
        Ecn::NotCapable => 0b010,
        Ecn::Capable1 => 0b011,
        Ecn::Capable => 0b100,
        Ecn::Congested => 0b110,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(packets: u32) -> NewlyAcked {
        NewlyAcked { packets, octets: 1000 * packets, mss: 1000, is_exact: true }
    }

    fn ends() -> [AccurateEcn; 2] {
        let config = Config { accurate_ecn: true, ..Config::linux_6_12() };
        [AccurateEcn::new(&config), AccurateEcn::new(&config)]
    }

    /// Returns two ends whose SYNs are ECN-capable.
    fn capable_ends() -> [AccurateEcn; 2] {
        let config = Config { congestion: Algorithm::Prague, ..Config::linux_6_12() };
        [AccurateEcn::new(&config), AccurateEcn::new(&config)]
    }

    /// Returns both ends after a handshake whose SYN and SYN-ACK arrive with these codepoints.
    fn agreed(syn: Ecn, answer: Ecn) -> [AccurateEcn; 2] {
        let [mut client, mut server] = if answer == Ecn::Congested { capable_ends() } else { ends() };
        server.negotiate(Flags::SYN | client.request_flags().unwrap(), syn);
        client.negotiate(Flags::SYN | Flags::ACK | server.syn_ack_flags(Flags(0)), answer);
        assert!(client.is_negotiated() && server.is_negotiated());
        let (flags, _) = client.on_send(Flags::ACK, false);
        server.on_handshake_acknowledged(flags, false);
        [client, server]
    }

    #[test]
    fn rfc9768_3_1_2_answers_negotiate_the_ecn_mode() {
        let answers: Vec<u32> = (0..8)
            .filter(|value| {
                let [mut client, _] = ends();
                client.negotiate(with_ace(Flags::SYN | Flags::ACK, *value), Ecn::NotCapable);
                client.is_negotiated()
            })
            .collect();
        assert_eq!(answers, [0b010, 0b011, 0b100, 0b101, 0b110], "001 is classic ECN, 000 and 111 are none");
        let requests: Vec<u32> = (0..8)
            .filter(|value| {
                let [_, mut server] = ends();
                server.negotiate(with_ace(Flags::SYN, *value), Ecn::NotCapable);
                server.is_negotiated()
            })
            .collect();
        assert_eq!(requests, [0b001, 0b010, 0b100, 0b101, 0b110, 0b111], "011 requests classic ECN");
    }

    #[test]
    fn rfc9768_3_1_1_the_handshake_reflects_the_codepoints() {
        for (ecn, value) in
            [(Ecn::NotCapable, 0b010), (Ecn::Capable1, 0b011), (Ecn::Capable, 0b100), (Ecn::Congested, 0b110)]
        {
            let [mut client, mut server] = capable_ends();
            server.negotiate(Flags::SYN | client.request_flags().unwrap(), ecn);
            assert_eq!(ace(server.syn_ack_flags(Flags(0))), value);
            client.negotiate(Flags::SYN | Flags::ACK | server.syn_ack_flags(Flags(0)), ecn);
            assert_eq!(ace(client.on_send(Flags::ACK, false).0), value, "the first ACK");
            let counted = u32::from(ecn == Ecn::Congested);
            assert_eq!(ace(client.on_send(Flags::ACK, false).0), INITIAL_COUNT + counted, "later ones count");
        }
    }

    #[test]
    fn rfc9768_3_2_2_each_mark_is_counted_once_across_wraps() {
        let [mut receiver, mut sender] = agreed(Ecn::NotCapable, Ecn::NotCapable);
        let mut reported = 0;
        for packet in 0..1000 {
            receiver.on_packet(if packet % 3 == 0 { Ecn::Congested } else { Ecn::Capable }, 0);
            if packet % 2 == 1 {
                let (flags, ecn) = receiver.on_send(Flags::ACK, false);
                assert_eq!(ecn, Ecn::Capable, "pure acknowledgments, too");
                reported += sender.newly_marked(flags, None, packets(2));
            }
        }
        assert_eq!(reported, 334);
    }

    #[test]
    fn rfc9768_3_2_2_1_mark_on_the_syn_ack_is_not_counted_as_data() {
        let [mut client, mut server] = agreed(Ecn::Capable1, Ecn::Congested);
        let (flags, _) = client.on_send(Flags::ACK, false);
        assert_eq!(server.newly_marked(flags, None, packets(1)), 0);
    }

    #[test]
    fn rfc9768_3_2_2_5_1_changes_and_six_marks_force_an_ack() {
        let [mut receiver, _] = agreed(Ecn::Capable, Ecn::Capable);
        let said: Vec<bool> = [Ecn::Capable, Ecn::Congested, Ecn::Congested, Ecn::Capable]
            .map(|ecn| receiver.on_packet(ecn, 0))
            .into();
        assert_eq!(said, [false, true, false, true]);
        receiver.on_send(Flags::ACK, false);
        let said: Vec<bool> = (0..7).map(|_| receiver.on_packet(Ecn::Congested, 0)).collect();
        assert_eq!(said, [true, false, false, false, false, true, true]);
    }

    #[test]
    fn rfc9768_3_2_2_5_2_ack_of_many_packets_assumes_the_worst_case() {
        let [_, mut sender] = agreed(Ecn::NotCapable, Ecn::NotCapable);
        assert_eq!(sender.newly_marked(with_ace(Flags::ACK, INITIAL_COUNT), None, packets(2)), 0);
        let more = with_ace(Flags::ACK, (INITIAL_COUNT + 1) & ACE_MASK);
        assert_eq!(sender.newly_marked(more, None, packets(12)), 9, "1 or 9 of 12");
        let mut used = agreed(Ecn::NotCapable, Ecn::NotCapable).into_iter().next_back().unwrap();
        assert_eq!(used.newly_marked(with_ace(Flags::ACK, INITIAL_COUNT), None, packets(12)), 0);
        assert_eq!(
            used.newly_marked(more, None, packets(12)),
            1,
            "if acknowledgments usually cover many packets, the field is believed"
        );
    }
}
