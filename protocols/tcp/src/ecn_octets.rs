//! The AccECN option, which counts octets of data by the codepoint with which they arrived. The counts
//! resolve ambiguities of the ACE field's three bits. RFC 9768 section 3.2.3, as in Linux 7.3
//! (`include/net/tcp_ecn.h`, `tcp_accecn_process_option`, `tcp_options_fit_accecn`).

use hol_wire::Ecn;
use hol_wire::tcp::EcnCounters;
use smallvec::SmallVec;

/// Initial values of the octet counters of ECT(1), ECT(0) and CE. RFC 9768 section 3.2.1.
const INITIAL_COUNTERS: [u32; 3] = [1, 1, 0];
/// Mask of the 24 bits of an octet counter.
const COUNTER_MASK: u32 = 0xff_ffff;
/// Number of octet counters in an AccECN option.
const COUNTERS: usize = 3;

/// The kinds of AccECN options that the peer has sent so far. `TCP_ACCECN_OPT_*_SEEN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PeerOption {
    None,
    Empty,
    Counters,
    /// The peer's option contained a counter that the path has set to zero.
    Zeroed,
}

/// The octet counters of both directions, each for ECT(1), ECT(0) and CE.
#[derive(Debug)]
pub(crate) struct EcnOctets {
    received_octets: [u32; COUNTERS],
    delivered: [u32; COUNTERS],
    peer_option: PeerOption,
    /// Minimum number of counters with which the next AccECN option reports all data received since the last one.
    /// `accecn_minlen`.
    min_fields: usize,
    /// Index of the only counter that currently grows; `None` if it is not known. `est_ecnfield`.
    growing: Option<usize>,
}

impl EcnOctets {
    /// Creates the counters with their initial values.
    pub(crate) const fn new() -> Self {
        Self {
            received_octets: [0; COUNTERS],
            delivered: [0; COUNTERS],
            peer_option: PeerOption::None,
            min_fields: 0,
            growing: None,
        }
    }

    /// Returns whether the peer sends the AccECN option. If it does, we send it, too.
    pub(crate) fn peer_sends_option(&self) -> bool {
        self.peer_option != PeerOption::None
    }

    /// Returns the number of marked octets that the peer has reported.
    pub(crate) const fn marked(&self) -> u32 {
        self.delivered[2]
    }

    /// Returns the numbers of octets that the peer has reported for each codepoint: ECT(1), ECT(0), CE.
    pub(crate) const fn delivered(&self) -> [u32; COUNTERS] {
        self.delivered
    }

    /// Counts received octets by the ECN codepoint of their packet. Linux: tcp_ecn_received_counters.
    pub(crate) fn on_data(&mut self, ecn: Ecn, octets: u32) {
        let Some(index) = index(ecn) else { return };
        self.received_octets[index] = self.received_octets[index].wrapping_add(octets);
        // The option's order is ECT(1), CE, ECT(0).
        self.min_fields = self.min_fields.max([1, 3, 2][index]);
    }

    /// Handles the first AccECN option of the peer, in its SYN-ACK or in the ACK of our SYN-ACK.
    /// `tcp_accecn_option_init`.
    pub(crate) fn on_first_option(&mut self, option: &EcnCounters) {
        if self.peer_option >= PeerOption::Counters {
            return;
        }
        self.peer_option = match option.values.as_slice() {
            [] => PeerOption::Empty,
            [0, ..] | [_, _, 0] => PeerOption::Zeroed,
            _ => PeerOption::Counters,
        };
    }

    /// Handles the AccECN option of an acknowledgment that has delivered `octets`; returns whether the counters
    /// are reliable. `tcp_accecn_process_option`.
    pub(crate) fn on_acknowledgment(&mut self, option: Option<&EcnCounters>, octets: u32) -> bool {
        if self.peer_option == PeerOption::Zeroed {
            return false;
        }
        let Some(option) = option else {
            let Some(index) = self.growing.filter(|_| self.peer_sends_option()) else { return false };
            self.delivered[index] = self.delivered[index].wrapping_add(octets);
            return true;
        };
        self.on_first_option(option);
        let known = self.growing;
        let (mut is_reliable, mut is_ambiguous, mut changed) = (known.is_some(), false, None);
        for (ecn, value) in option.codepoints().into_iter().zip(&option.values) {
            let index = index(ecn).expect("the option counts only ECN codepoints");
            let count = &mut self.delivered[index];
            let delta = signed(value.wrapping_sub(INITIAL_COUNTERS[index]).wrapping_sub(*count));
            *count = count.wrapping_add_signed(delta);
            is_ambiguous |= delta < 0;
            if delta != 0 && known != Some(index) {
                is_ambiguous |= changed.is_some();
                changed = changed.or(Some(index));
            }
        }
        self.growing = changed.or(known);
        if is_ambiguous {
            (self.growing, is_reliable) = (None, false);
        }
        is_reliable
    }

    /// Returns how many counters of the AccECN option fit into `space` octets together with `blocks` SACK blocks,
    /// and how many of the blocks remain. `None` if the counters that must be sent do not fit. Linux:
    /// `tcp_options_fit_accecn`.
    pub(crate) fn counters_that_fit(&self, mut space: usize, mut blocks: usize) -> Option<(usize, usize)> {
        let mut fields = COUNTERS;
        loop {
            let padding = if blocks > 0 { 2 } else { 0 };
            if space >= EcnCounters::padded_length(fields, padding) {
                return Some((fields, blocks));
            }
            if fields == self.min_fields && blocks > 2 && self.min_fields > 0 {
                // One SACK block fewer makes room.
                (blocks, space, fields) = (blocks - 1, space + 8, COUNTERS);
            } else if fields > self.min_fields {
                fields -= 1;
            } else {
                return None;
            }
        }
    }

    /// Returns an AccECN option with `fields` counters.
    pub(crate) fn option(&mut self, fields: usize) -> EcnCounters {
        self.min_fields = 0;
        Self::counters(self.received_octets, fields)
    }

    /// Returns the AccECN option of our first SYN-ACK. RFC 9768 section 3.2.3.2.1.
    pub(crate) fn first_option() -> EcnCounters {
        Self::counters([0; COUNTERS], COUNTERS)
    }

    fn counters(octets: [u32; COUNTERS], fields: usize) -> EcnCounters {
        let value = |index: usize| octets[index].wrapping_add(INITIAL_COUNTERS[index]) & COUNTER_MASK;
        let values: SmallVec<_> = [0, 2, 1].map(value).into_iter().take(fields).collect();
        EcnCounters { begins_with_ect1: true, values }
    }
}

/// Returns the index of the counter of an ECN codepoint; `None` for Not-ECT, which is not counted.
const fn index(ecn: Ecn) -> Option<usize> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable1 => Some(0),
        Ecn::Capable => Some(1),
        Ecn::Congested => Some(2),
    }
}

/// Extends a signed 24-bit number to 32 bits.
const fn signed(difference: u32) -> i32 {
    ((difference << 8) as i32) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(values: &[u32]) -> EcnCounters {
        EcnCounters { begins_with_ect1: true, values: SmallVec::from_slice(values) }
    }

    #[test]
    fn rfc9768_3_2_1_counters_begin_at_one_and_zero() {
        assert_eq!(EcnOctets::first_option(), option(&[1, 0, 1]));
        let mut octets = EcnOctets::new();
        octets.on_data(Ecn::Capable, 1000);
        octets.on_data(Ecn::Congested, 200);
        octets.on_data(Ecn::NotCapable, 50);
        assert_eq!(octets.option(3), option(&[1, 200, 1001]));
        assert_eq!(octets.option(1), option(&[1]));
    }

    #[test]
    fn rfc9768_3_2_3_counters_wrap_at_24_bits() {
        let mut octets = EcnOctets::new();
        octets.on_data(Ecn::Congested, (1 << 24) + 7);
        assert_eq!(octets.option(2), option(&[1, 7]));
        octets.on_first_option(&option(&[1, 0, 1]));
        octets.delivered[2] = (1 << 24) - 5;
        octets.on_acknowledgment(Some(&option(&[1, 7])), 12);
        assert_eq!(octets.marked(), (1 << 24) + 7);
    }

    #[test]
    fn rfc9768_3_2_3_2_4_a_zeroed_counter_ends_trust() {
        for (values, seen) in [
            (&[][..], PeerOption::Empty),
            (&[1], PeerOption::Counters),
            (&[0, 0, 1], PeerOption::Zeroed),
            (&[1, 0, 0], PeerOption::Zeroed),
            (&[1, 0, 1], PeerOption::Counters),
        ] {
            let mut octets = EcnOctets::new();
            octets.on_first_option(&option(values));
            assert_eq!(octets.peer_option, seen, "{values:?}");
        }
    }

    #[test]
    fn linux_infers_marks_from_the_only_growing_counter() {
        let mut octets = EcnOctets::new();
        octets.on_first_option(&option(&[1, 0, 1]));
        assert!(!octets.on_acknowledgment(Some(&option(&[1, 0, 1001])), 1000), "nothing was known before");
        assert!(octets.on_acknowledgment(Some(&option(&[1, 0, 2001])), 1000));
        assert!(octets.on_acknowledgment(None, 500), "what is delivered went to that counter");
        assert_eq!(octets.delivered[1], 2500);
        assert!(!octets.on_acknowledgment(Some(&option(&[10, 20, 2501])), 30), "two others grew");
        assert!(!octets.on_acknowledgment(None, 500));
    }

    #[test]
    fn linux_replaces_a_sack_block_by_counters_if_needed() {
        let mut octets = EcnOctets::new();
        assert_eq!(octets.counters_that_fit(28, 0), Some((3, 0)));
        assert_eq!(octets.counters_that_fit(8, 0), Some((2, 0)));
        assert_eq!(
            octets.counters_that_fit(4, 3),
            Some((1, 3)),
            "beside SACK blocks two octets of padding are free"
        );
        assert_eq!(octets.counters_that_fit(0, 3), Some((0, 3)));
        octets.on_data(Ecn::Congested, 1);
        assert_eq!(octets.counters_that_fit(4, 4), Some((3, 3)), "12 octets, of which 11 are the option's");
        assert_eq!(octets.counters_that_fit(4, 2), None);
    }
}
