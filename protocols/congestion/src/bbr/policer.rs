//! Detects a policer: two long lossy intervals with the same delivery rate. tcp_bbr.c, "long-term";
//! draft-cardwell-iccrg-bbr-congestion-control-00 leaves it to the implementation (section 4.1.2.5).

use hol_base::{Duration, Time};

use super::bandwidth::{Bandwidth, GAIN_ONE};

/// Minimum number of rounds of an interval, bbr_lt_intvl_min_rtts. An interval of more than four times this number
/// is discarded.
const MIN_ROUNDS: u32 = 4;
/// An interval is lossy if the ratio of lost to delivered units is at least this many 256ths, about 20 %:
/// bbr_lt_loss_thresh.
const LOSSY_RATIO: u64 = 50;
/// Two bandwidths count as equal if they differ by at most this fraction, 1/8: bbr_lt_bw_ratio.
const EQUAL_WITHIN: u32 = GAIN_ONE / 8;
/// Bandwidths also count as equal if they differ by at most this many octets per second: 4 kbit/s, bbr_lt_bw_diff.
const EQUAL_WITHIN_RATE: u64 = 4000 / 8;
/// Number of rounds for which the detected bandwidth is used: bbr_lt_bw_max_rtts.
const ROUNDS_OF_USE: u32 = 48;

/// Numbers of units delivered and lost since the start of the connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DeliveryTotals {
    /// The time up to which the units are counted.
    pub(crate) at: Time,
    /// Number of units delivered.
    pub(crate) delivered: u32,
    /// Number of units lost.
    pub(crate) lost: u32,
}

/// What the policer detector needs to know of an acknowledgment or a timeout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PolicerUpdate {
    pub(crate) tally: DeliveryTotals,
    /// Whether units were newly marked as lost.
    pub(crate) losses: bool,
    /// Whether the application, not the network, limited sending.
    pub(crate) application_limited: bool,
    /// Whether this acknowledgment started a round trip.
    pub(crate) round_began: bool,
    /// Size of a unit in octets.
    pub(crate) octets_per_unit: u32,
}

/// Detects a token-bucket policer on the path, and its rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policer {
    is_sampling: bool,
    /// The bandwidth of the previous lossy interval or, while `in_use`, the detected rate of the policer.
    bandwidth: Option<Bandwidth>,
    /// Whether a policer has been detected, so that the pacing rate is limited to `bandwidth`.
    in_use: bool,
    /// Number of rounds since the start of the interval or, while `in_use`, since the rate has been used.
    rounds: u32,
    start: DeliveryTotals,
}

impl Policer {
    /// Returns the rate of the policer; `None` if none has been detected.
    pub(crate) fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|_| self.in_use)
    }

    /// Discards the detected rate and all samples.
    pub(crate) fn reset(&mut self, tally: DeliveryTotals) {
        *self = Self { start: tally, ..Self::default() };
    }

    /// Starts an interval at these totals.
    fn restart(&mut self, tally: DeliveryTotals) {
        (self.start, self.rounds) = (tally, 0);
    }

    /// Handles an acknowledgment or a timeout. `cruising` says whether BBR is in ProbeBW, where the gains are
    /// cycled. Returns `true` if the detected rate has expired.
    pub(crate) fn observe(&mut self, turn: PolicerUpdate, cruising: bool) -> bool {
        if self.in_use {
            self.rounds += u32::from(cruising && turn.round_began);
            let is_old = self.rounds >= ROUNDS_OF_USE;
            if is_old {
                self.reset(turn.tally);
            }
            return is_old;
        }
        // An interval starts at the first loss, when the tokens are used up.
        if !self.is_sampling {
            if !turn.losses {
                return false;
            }
            self.restart(turn.tally);
            self.is_sampling = true;
        }
        if turn.application_limited {
            self.reset(turn.tally);
            return false;
        }
        self.rounds += u32::from(turn.round_began);
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(turn.tally);
        }
        if self.rounds >= MIN_ROUNDS && turn.losses {
            self.end_interval(turn);
        }
        false
    }

    /// Ends the interval at a loss if the interval is long and lossy enough. Two consecutive intervals with the
    /// same bandwidth reveal a policer.
    fn end_interval(&mut self, turn: PolicerUpdate) {
        let delivered = turn.tally.delivered.wrapping_sub(self.start.delivered);
        let lost = turn.tally.lost.wrapping_sub(self.start.lost);
        let time = turn.tally.at.saturating_since(self.start.at);
        let is_lossy = delivered > 0 && u64::from(lost) * 256 >= LOSSY_RATIO * u64::from(delivered);
        if !is_lossy || time < Duration::from_millis(1) {
            return;
        }
        let bandwidth = Bandwidth::of(delivered, time);
        if let Some(before) = self.bandwidth {
            let difference = bandwidth.abs_diff(before);
            let is_same = difference <= before.times(EQUAL_WITHIN)
                || difference.octets_per_second(turn.octets_per_unit, GAIN_ONE) <= EQUAL_WITHIN_RATE;
            if is_same {
                self.bandwidth = Some(bandwidth.midpoint(before));
                (self.in_use, self.rounds) = (true, 0);
                return;
            }
        }
        self.bandwidth = Some(bandwidth);
        self.restart(turn.tally);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs rounds of 20 ms with `lost` of 100 units lost; returns the rounds after which the bandwidth in use changed.
    fn changes(policer: &mut Policer, rounds: std::ops::Range<u32>, lost: u32) -> Vec<u32> {
        let turn = |round: u32| PolicerUpdate {
            tally: DeliveryTotals {
                at: Time::from_millis(u64::from(20 * round)),
                delivered: (100 - lost) * round,
                lost: lost * round,
            },
            losses: lost > 0,
            application_limited: false,
            round_began: true,
            octets_per_unit: 1448,
        };
        let mut changes = Vec::new();
        for round in rounds {
            let before = policer.bandwidth();
            let is_old = policer.observe(turn(round), true);
            assert_eq!(is_old, before.is_some() && policer.bandwidth().is_none());
            if before != policer.bandwidth() {
                changes.push(round);
            }
        }
        changes
    }

    #[test]
    fn two_lossy_intervals_at_one_rate_set_the_rate_for_48_rounds() {
        // tcp_bbr.c: bbr_lt_bw_sampling, bbr_lt_bw_interval_done.
        let mut policer = Policer::default();
        assert_eq!(changes(&mut policer, 1..13, 25), [8]);
        assert_eq!(policer.bandwidth(), Some(Bandwidth::of(75, Duration::from_millis(20))));
        assert_eq!(changes(&mut policer, 13..61, 0), [8 + 48]);
    }

    #[test]
    fn a_path_that_loses_less_than_a_fifth_is_not_policed() {
        let mut policer = Policer::default();
        assert!(changes(&mut policer, 1..61, 15).is_empty());
    }

    /// Runs an interval of five rounds of 20 ms that begins with a loss, with `delivered` and `lost` units in each.
    fn interval(policer: &mut Policer, tally: &mut DeliveryTotals, delivered: u32, lost: u32) {
        for _ in 0..MIN_ROUNDS {
            tally.at += Duration::from_millis(20);
            (tally.delivered, tally.lost) = (tally.delivered + delivered, tally.lost + lost);
            policer.observe(turn(*tally), true);
        }
    }

    fn turn(tally: DeliveryTotals) -> PolicerUpdate {
        PolicerUpdate {
            tally,
            losses: true,
            application_limited: false,
            round_began: true,
            octets_per_unit: 1448,
        }
    }

    fn after_intervals(rates: &[u32]) -> Policer {
        let (mut policer, mut tally) = (Policer::default(), DeliveryTotals::default());
        policer.observe(PolicerUpdate { round_began: false, ..turn(tally) }, true);
        rates.iter().for_each(|delivered| interval(&mut policer, &mut tally, *delivered, *delivered));
        policer
    }

    /// tcp_bbr.c, bbr_lt_bw_interval_done: rates within an eighth are equal, and the result is the mean of both.
    #[test]
    fn intervals_that_differ_by_more_than_an_eighth_are_no_policer() {
        for (second, sum) in [(89, 169), (71, 151)] {
            let found = after_intervals(&[80, second])
                .bandwidth()
                .expect("rates that differ by less than an eighth are equal");
            let mean = Bandwidth::of(sum, Duration::from_millis(40));
            assert!(found.abs_diff(mean).octets_per_second(1, GAIN_ONE) < 2, "{found:?}");
        }
        assert_eq!(after_intervals(&[80, 91]).bandwidth(), None);
        assert_eq!(after_intervals(&[80, 69]).bandwidth(), None);
    }

    /// tcp_bbr.c, bbr_lt_bw_sampling: tokens may have accumulated while the application was idle.
    #[test]
    fn application_limited_interval_is_discarded() {
        let (mut policer, tally) =
            (after_intervals(&[80]), DeliveryTotals { at: Time::from_millis(90), delivered: 400, lost: 400 });
        policer.observe(PolicerUpdate { application_limited: true, ..turn(tally) }, true);
        assert!(policer.bandwidth.is_none() && !policer.is_sampling);
        assert_eq!(policer.start.delivered, 400, "the next interval starts here");
    }

    #[test]
    fn interval_is_abandoned_after_sixteen_rounds() {
        let (mut policer, tally) =
            (after_intervals(&[80]), DeliveryTotals { at: Time::from_millis(90), delivered: 400, lost: 400 });
        let quiet = PolicerUpdate { losses: false, ..turn(tally) };
        assert!((0..16).all(|_| !policer.observe(quiet, true)));
        assert!(policer.bandwidth.is_some());
        policer.observe(quiet, true);
        assert!(policer.bandwidth.is_none());
    }

    #[test]
    fn rounds_of_use_count_only_while_cruising() {
        let mut policer = after_intervals(&[80, 80]);
        let later = turn(DeliveryTotals { at: Time::from_millis(900), delivered: 9000, lost: 9000 });
        assert!((0..100).all(|_| !policer.observe(later, false)));
        assert!((0..100).all(|_| !policer.observe(PolicerUpdate { round_began: false, ..later }, true)));
        assert!((0..47).all(|_| !policer.observe(later, true)) && policer.observe(later, true));
    }

    /// tcp_bbr.c, bbr_lt_bw_interval_done: an interval shorter than 1 ms continues.
    #[test]
    fn interval_lasts_at_least_a_millisecond() {
        let found = |step| {
            let mut policer = Policer::default();
            policer.observe(PolicerUpdate { round_began: false, ..turn(DeliveryTotals::default()) }, true);
            for n in 1..=4 {
                let at = Time::ZERO + Duration::from_micros(step) * u64::from(n);
                policer.observe(turn(DeliveryTotals { at, delivered: 10 * n, lost: 10 * n }), true);
            }
            policer.bandwidth.is_some()
        };
        assert!(!found(249) && found(250));
    }
}
