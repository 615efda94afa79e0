//! TCP Prague, the congestion control of L4S. The window shrinks in proportion to the smoothed share of
//! marked packets, and grows as if the round trip were at least 25 ms.
//! draft-briscoe-iccrg-prague-congestion-control-04 ("draft" below); details as in version 0.7 of L4STeam's
//! tcp_prague.c, without its mode for windows of less than four segments.

use hol_base::{Duration, Time};

use crate::bbr::{AckSample, ConnectionStart, RecoveryKind};
use crate::delivery_rate::is_beyond;
use crate::pacing::Pacing;

/// Weight of the newest round trip in alpha: PRAGUE_SHIFT_G. draft-briscoe-iccrg-prague-congestion-control-04,
/// section 2.3.2.
const GAIN: f64 = 1.0 / 16.0;
/// Flows with a shorter round-trip time behave as if it were this long: RTT_TARGET.
/// draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4.
const TARGET_RTT: Duration = Duration::from_millis(25);
/// The round-trip time above which the growth of the window is not scaled: MAX_SCALED_RTT.
const MAX_SCALED: Duration = Duration::from_millis(100);
/// Number of round trips after slow start after which the window's changes are scaled for short round trips:
/// DEFAULT_RTT_TRANSITION.
const RTT_TRANSITION: u32 = 4;
/// The minimum window in segments: MIN_CWND_RTT.
const MIN_WINDOW: f64 = 2.0;
/// A burst of several segments lasts at most one second divided by this number, about 1/4 ms: prague_burst_shift.
const BURSTS_PER_SECOND: u64 = 4096;
/// The minimum rate in octets per second: MINIMUM_RATE.
const MIN_RATE: f64 = 12_500.0;
/// Length in octets of the IPv4 and TCP headers with timestamps. The rate includes these headers, but the pacer
/// does not count them, so the window, not the pacing, is the final limit: tcp_mss_to_mtu.
const HEADER_OCTETS: u32 = 52;
/// The round-trip time assumed before the first sample.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// The state of the congestion control algorithm TCP Prague.
#[derive(Debug, Clone)]
pub(crate) struct Prague {
    /// Size of a segment in units of the congestion window.
    quantum: u32,
    /// Length of a full-sized segment in octets.
    segment: u32,
    /// The window in segments, with a fraction. cwnd approaches it by at most a segment per acknowledgment.
    window: f64,
    /// The window and cwnd before the last loss.
    before_loss: Option<(f64, u32)>,
    /// The smoothed share of marked packets. draft-briscoe-iccrg-prague-congestion-control-04, section 2.3.2.
    alpha: f64,
    /// Whether the peer has ever reported a mark.
    was_marked: bool,
    /// Whether marks reduce the window at the next acknowledgment.
    is_reduction_due: bool,
    /// Whether the window is being reduced after a loss.
    in_loss: bool,
    /// Number of units delivered in this round trip.
    delivered: u32,
    /// Number of units delivered with a mark in this round trip.
    marked: u32,
    /// SND.NXT when this round trip began; `None` before the first round trip.
    round_end: Option<u32>,
    /// Number of round trips since slow start.
    rounds: u32,
    /// When alpha was last updated.
    updated: Time,
    /// When marks last reduced the window.
    reduced: Option<Time>,
    smoothed_rtt: Duration,
    pacing: Pacing,
}

impl Prague {
    pub(crate) fn new(quantum: u32, initial: u32) -> Self {
        Self {
            quantum,
            segment: 1,
            window: f64::from(initial) / f64::from(quantum),
            before_loss: None,
            alpha: 0.0,
            was_marked: false,
            is_reduction_due: false,
            in_loss: false,
            delivered: 0,
            marked: 0,
            round_end: None,
            rounds: 0,
            updated: Time::ZERO,
            reduced: None,
            smoothed_rtt: NOMINAL_RTT,
            pacing: Pacing { rate: 0, burst: 1 },
        }
    }

    pub(crate) fn begin(&mut self, beginning: ConnectionStart, cwnd: u32) {
        *self = Self {
            segment: beginning.segment,
            updated: beginning.now,
            smoothed_rtt: beginning.smoothed_rtt.unwrap_or(NOMINAL_RTT),
            ..Self::new(self.quantum, cwnd)
        };
        self.pace(cwnd, true);
    }

    pub(crate) fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Handles the first mark of a round trip.
    pub(crate) fn on_mark(&mut self) {
        self.is_reduction_due = true;
    }

    /// Halves the window after a loss, like Reno. draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.1;
    /// prague_enter_loss.
    pub(crate) fn on_loss(&mut self, cwnd: u32) {
        self.before_loss = Some((self.window, cwnd));
        self.shrink_to(0.5);
        (self.in_loss, self.is_reduction_due) = (true, false);
    }

    /// Restores the window after a spurious loss detection; returns the restored cwnd. Linux: prague_cwnd_undo.
    pub(crate) fn on_undo(&mut self, cwnd: u32) -> u32 {
        self.in_loss = false;
        let Some((window, before)) = self.before_loss else { return cwnd };
        self.window = self.window.max(window);
        cwnd.max(before)
    }

    /// Handles an acknowledgment: prague_cong_control.
    pub(crate) fn on_acknowledged(&mut self, ack: &AckSample, cwnd: &mut u32, ssthresh: &mut u32) {
        self.smoothed_rtt = ack.smoothed_rtt.unwrap_or(self.smoothed_rtt);
        self.in_loss &= ack.recovery != RecoveryKind::None;
        let is_slow_start = *cwnd < *ssthresh;
        if std::mem::take(&mut self.is_reduction_due) {
            self.reduce(ack.now, is_slow_start);
        }
        self.grow(ack, cwnd, *ssthresh);
        self.step_cwnd(cwnd, ssthresh);
        self.delivered += ack.delivered;
        self.marked += ack.marked;
        self.end_round(ack, is_slow_start);
        self.pace(ack.in_flight, *cwnd < *ssthresh / 2);
    }

    /// Returns whether the window's changes are scaled for short round trips.
    fn is_scaled(&self, is_slow_start: bool) -> bool {
        !is_slow_start && self.rounds >= RTT_TRANSITION
    }

    /// Reduces the window by half of alpha. In the scaled mode for short round trips, reduces it at most once per
    /// 25 ms. draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.2; prague_enter_cwr.
    fn reduce(&mut self, now: Time, is_slow_start: bool) {
        let is_early = self.reduced.is_some_and(|before| now.since(before) < TARGET_RTT);
        if self.is_scaled(is_slow_start) && is_early {
            return;
        }
        self.reduced = Some(now);
        self.shrink_to(1.0 - self.alpha / 2.0);
    }

    /// Multiplies the window by `share`, but leaves at least two segments. L4STeam's version allows smaller
    /// windows. They would only be paced more slowly, and would not grow if the application does not fill them.
    fn shrink_to(&mut self, share: f64) {
        self.window = (self.window * share).max(MIN_WINDOW);
    }

    /// Grows the window by the units delivered without a mark. draft-briscoe-iccrg-prague-congestion-control-04,
    /// section 2.4.3; prague_update_cwnd.
    fn grow(&mut self, ack: &AckSample, cwnd: &mut u32, ssthresh: u32) {
        if ack.marked > 0 && !std::mem::replace(&mut self.was_marked, true) {
            // The share of marks is still unknown.
            self.shrink_to(0.5);
        }
        let mut unmarked = ack.delivered.saturating_sub(ack.marked);
        if unmarked == 0 || self.in_loss || !ack.is_cwnd_limited {
            return;
        }
        if *cwnd < ssthresh && !self.was_marked {
            let opened = unmarked.min(ssthresh - *cwnd);
            *cwnd += opened;
            unmarked -= opened;
            self.window = f64::from(*cwnd) / f64::from(self.quantum);
        }
        let segments = f64::from(unmarked) / f64::from(self.quantum);
        self.window += segments * self.increase() / self.window;
    }

    /// Returns the growth in segments per round trip. A flow with a round trip below 25 ms accelerates as slowly
    /// as one with 25 ms. draft-briscoe-iccrg-prague-congestion-control-04, section 2.4.4;
    /// prague_rate_scaled_ai_ack_increase.
    fn increase(&self) -> f64 {
        let rtt = self.smoothed_rtt;
        if self.rounds < RTT_TRANSITION || rtt > MAX_SCALED || rtt >= TARGET_RTT {
            return 1.0;
        }
        (rtt.as_secs_f64() / TARGET_RTT.as_secs_f64()).powi(2)
    }

    /// Moves cwnd by at most a segment towards the window.
    fn step_cwnd(&self, cwnd: &mut u32, ssthresh: &mut u32) {
        let aim = (self.window.ceil() * f64::from(self.quantum)) as u32;
        if *cwnd > aim {
            *cwnd -= self.quantum.min(*cwnd - aim);
            *ssthresh = *cwnd;
        } else if *cwnd < aim {
            *cwnd += self.quantum.min(aim - *cwnd);
        }
    }

    /// Updates alpha at the end of a round trip, or of 25 ms in the scaled mode for short round trips.
    /// draft-briscoe-iccrg-prague-congestion-control-04, section 2.3.2; prague_update_alpha.
    fn end_round(&mut self, ack: &AckSample, is_slow_start: bool) {
        let (una, nxt) = ack.progress;
        let goes_on = self.round_end.is_some_and(|end| is_beyond(end, una));
        if goes_on || (self.is_scaled(is_slow_start) && ack.now.since(self.updated) < TARGET_RTT) {
            return;
        }
        if self.was_marked {
            let share = f64::from(self.marked) / f64::from(self.delivered.max(1));
            self.alpha = (self.alpha + GAIN * (share - self.alpha)).min(1.0);
            self.updated = ack.now;
        }
        (self.delivered, self.marked, self.round_end) = (0, 0, Some(nxt));
        self.rounds += u32::from(!is_slow_start);
    }

    /// Sets the pacing rate from the window and the round trip, doubled in slow start.
    /// draft-briscoe-iccrg-prague-congestion-control-04, section 2.5.1; prague_update_pacing_rate.
    fn pace(&mut self, in_flight: u32, is_doubling: bool) {
        let segments = self.window.floor().max(f64::from(in_flight) / f64::from(self.quantum));
        let rate =
            segments * f64::from(self.segment + HEADER_OCTETS) / self.smoothed_rtt.as_secs_f64().max(1e-6);
        let rate = if is_doubling { 2.0 * rate } else { rate }.max(MIN_RATE) as u64;
        let burst = (rate / u64::from(self.segment + HEADER_OCTETS) / BURSTS_PER_SECOND).max(1) as u32;
        self.pacing = Pacing { rate, burst };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    /// Returns the state with a window of `segments` after slow start.
    fn prague(segments: u32) -> Prague {
        let beginning = ConnectionStart {
            now: Time::ZERO,
            min_rtt: Some(RTT),
            smoothed_rtt: Some(RTT),
            segment: 1448,
            seed: hol_base::Seed(1),
        };
        let mut prague = Prague::new(1, segments);
        prague.begin(beginning, segments);
        prague
    }

    fn ack(now: Time, delivered: u32, marked: u32, progress: (u32, u32)) -> AckSample {
        AckSample { delivered, marked, progress, ..AckSample::one_segment(now, RTT) }
    }

    #[test]
    fn draft_2_3_2_alpha_converges_to_the_marked_share() {
        for (marked, first) in [(0, 1), (1, u32::MAX / 2 + 9), (5, u32::MAX - 3), (10, 1)] {
            let mut prague = prague(10);
            (prague.was_marked, prague.alpha) = (true, 0.5);
            let mut una: u32 = first;
            for round in 0..200u64 {
                let now = Time::ZERO + TARGET_RTT * (round + 1);
                (prague.delivered, prague.marked) = (10, marked);
                prague.end_round(&ack(now, 0, 0, (una, una.wrapping_add(10))), false);
                una = una.wrapping_add(10);
            }
            assert!((prague.alpha - f64::from(marked) / 10.0).abs() < 0.01, "{marked}: {}", prague.alpha);
        }
    }

    #[test]
    fn draft_2_4_2_marks_reduce_the_window_by_alpha_half_once_per_rtt() {
        let mut prague = prague(100);
        (prague.alpha, prague.was_marked, prague.rounds) = (0.1, true, RTT_TRANSITION);
        let now = Time::from_millis(1000);
        prague.reduce(now, false);
        assert_eq!(prague.window, 95.0);
        prague.reduce(now + TARGET_RTT / 2, false);
        assert_eq!(prague.window, 95.0, "reduced once in 25 ms");
        prague.reduce(now + TARGET_RTT, false);
        assert!((prague.window - 90.25).abs() < 1e-9);
    }

    #[test]
    fn the_first_mark_halves_the_window() {
        let mut prague = prague(100);
        let (mut cwnd, mut ssthresh) = (100, u32::MAX);
        prague.on_mark();
        prague.on_acknowledged(&ack(Time::from_millis(20), 2, 1, (2, 102)), &mut cwnd, &mut ssthresh);
        assert!((50.0..50.1).contains(&prague.window), "{}", prague.window);
        assert_eq!(
            (cwnd, ssthresh),
            (99, 99),
            "cwnd shrinks by a segment per acknowledgment, and slow start is over"
        );
    }

    #[test]
    fn draft_2_4_1_a_loss_halves_the_window_and_may_be_undone() {
        let mut prague = prague(80);
        prague.on_loss(80);
        assert_eq!(prague.window, 40.0);
        let (mut cwnd, mut ssthresh) = (60, 60);
        let lossy = AckSample { recovery: RecoveryKind::Fast, ..ack(Time::from_millis(5), 4, 0, (4, 84)) };
        prague.on_acknowledged(&lossy, &mut cwnd, &mut ssthresh);
        assert_eq!((prague.window, cwnd), (40.0, 59), "the window does not grow during recovery");
        assert_eq!((prague.on_undo(cwnd), prague.window), (80, 80.0));
    }

    #[test]
    fn draft_2_4_4_short_round_trips_grow_as_if_they_were_25_ms() {
        let mut prague = prague(20);
        prague.rounds = RTT_TRANSITION;
        for (ms, increase) in [(5, 0.04), (10, 0.16), (25, 1.0), (80, 1.0), (200, 1.0)] {
            prague.smoothed_rtt = Duration::from_millis(ms);
            assert!((prague.increase() - increase).abs() < 1e-9, "{ms} ms");
        }
        prague.rounds = 0;
        prague.smoothed_rtt = RTT;
        assert_eq!(prague.increase(), 1.0, "right after slow start the increase is not scaled");
    }

    #[test]
    fn slow_start_grows_by_the_delivered_units_until_a_mark() {
        let mut prague = prague(10);
        let (mut cwnd, mut ssthresh) = (10, u32::MAX);
        prague.on_acknowledged(&ack(Time::from_millis(10), 10, 0, (10, 30)), &mut cwnd, &mut ssthresh);
        assert_eq!((cwnd, prague.window), (20, 20.0));
    }

    #[test]
    fn draft_2_5_1_rate_is_a_window_per_rtt_in_quarter_ms_bursts() {
        let mut prague = prague(100);
        prague.pace(0, false);
        assert_eq!(prague.pacing(), Pacing { rate: 15_000_000, burst: 2 });
        prague.pace(0, true);
        assert_eq!(prague.pacing(), Pacing { rate: 30_000_000, burst: 4 });
    }

    /// Returns the rate in Mbit/s in the second half of a minute with a round trip of `ms`, if one packet of
    /// `every` is marked.
    fn rate(ms: u64, every: u32) -> f64 {
        let (mut prague, mut cwnd, mut ssthresh, rtt) = (prague(20), 20, 20, Duration::from_millis(ms));
        let (mut now, mut una, mut phase_end, mut late) = (Time::ZERO, 1, 1, 0);
        while now < Time::from_millis(60_000) {
            now += rtt / u64::from(cwnd);
            una += 1;
            let is_marked = una % every == 0;
            if is_marked && una > phase_end {
                phase_end = una + cwnd;
                prague.on_mark();
            }
            let sample = ack(now, 1, u32::from(is_marked), (una, una + cwnd));
            let sample = AckSample { smoothed_rtt: Some(rtt), ..sample };
            prague.on_acknowledged(&sample, &mut cwnd, &mut ssthresh);
            late += u64::from(now > Time::from_millis(30_000));
        }
        late as f64 * 12e-3 / 30.0
    }

    #[test]
    fn draft_2_4_4_rate_depends_on_marks_and_not_on_the_rtt() {
        // tcp_prague.c: r = 1/p - 1 in Mbit/s up to 25 ms, and 25 ms/RTT times that beyond.
        for (ms, every) in [(5, 100), (10, 50), (20, 50)] {
            let (rate, expected) = (rate(ms, every), f64::from(every) - 1.0);
            assert!((rate / expected - 1.0).abs() < 0.15, "{ms} ms, 1 of {every}: {rate} Mbit/s");
        }
        let halved = rate(25, 10) / rate(50, 10);
        assert!((halved / 2.0 - 1.0).abs() < 0.15, "{halved}");
    }
}
