//! CUBIC, RFC 9438, in whole segments, in ticks and in 1024ths of a second, as in Linux (`net/ipv4/tcp_cubic.c`).

use hol_base::{Duration, Time};

use crate::{TICK, TICKS_PER_SECOND, ticks};

/// beta_cubic = 0.7 as a fraction of 1024, as in the Linux kernel. RFC 9438 section 4.6.
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// Number of clock ticks for which the computed growth is reused while the window does not change: 1/32 s, rounded
/// down.
const EVALUATION_TICKS: u64 = 7;
/// The constant C = 0.4 segments/s^3, as 410/1024. With t in 1024ths of a second, C t^3 = 410 t^3 / 2^40.
const C: u64 = 410;
const C_SHIFT: u32 = 40;
/// Upper limit of the time in the window function, in 1024ths of a second: after 256 s the curve exceeds any
/// window.
const MAX_TIME: u64 = 1 << 18;

/// The state of CUBIC; windows are in segments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cubic {
    /// W_max: the window before the last reduction, in segments.
    w_max: u32,
    epoch: Option<Epoch>,
    /// The minimum round-trip time.
    rtt_min: Option<Duration>,
    /// Number of segments that must be acknowledged for each segment by which the window grows.
    price: u32,
    /// When `price` was computed, and for which window. A timeout resets these values; other losses do not.
    evaluated: Option<(Time, u32)>,
    /// Number of acknowledged segments that have not been credited to W_est yet.
    acked: u32,
}

/// The growth curve between two reductions of the window. RFC 9438 section 4.1.
#[derive(Debug, Clone)]
struct Epoch {
    /// The clock tick in which the epoch began.
    start: u64,
    /// The window at the plateau of the curve, in segments.
    origin: u32,
    /// K: time from the start of the epoch to the plateau, in 1024ths of a second.
    k: u64,
    /// W_est: the window in segments that Reno would have. RFC 9438 section 4.3.
    w_est: u32,
}

impl Cubic {
    /// Counts `acked` acknowledged segments. Returns the number of acknowledged segments for which the window
    /// grows by one segment.
    pub(crate) fn acked_per_segment(&mut self, now: Time, cwnd: u32, acked: u32) -> u32 {
        self.acked += acked;
        let age = self.evaluated.map(|(at, window)| (ticks(now) - ticks(at), window));
        if age.is_some_and(|(ticks, window)| window == cwnd && ticks <= EVALUATION_TICKS) {
            return self.price;
        }
        // Within an epoch the curve is evaluated once per tick, even if the window changed.
        let mut epoch = match self.epoch.take() {
            Some(epoch) if age.is_some_and(|(ticks, _)| ticks == 0) => epoch,
            epoch => self.follow_curve(now, cwnd, epoch, acked),
        };
        if let Some(behind) = epoch.reno_friendly(cwnd, &mut self.acked) {
            self.price = self.price.min(cwnd / behind);
        }
        self.epoch = Some(epoch);
        // RFC 9438 section 4.2: the target is at most 1.5 windows.
        self.price = self.price.max(2);
        self.price
    }

    /// Computes `price`, the number of acknowledged segments for each segment of growth. With it, the window
    /// reaches in one round trip the value that W_cubic has at the end of that round trip. RFC 9438 section 4.2.
    fn follow_curve(&mut self, now: Time, cwnd: u32, epoch: Option<Epoch>, acked: u32) -> Epoch {
        self.evaluated = Some((now, cwnd));
        let epoch = epoch.unwrap_or_else(|| {
            self.acked = acked;
            Epoch::start(now, cwnd, self.w_max)
        });
        let rtt = self.rtt_min.unwrap_or_default().as_nanos().div_ceil(TICK.as_nanos());
        let target = epoch.w_cubic(ticks(now) - epoch.start + rtt);
        self.price = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.w_max == 0 {
            // The path is still unknown: grow by at least 5 % per round trip.
            self.price = self.price.min(20);
        }
        epoch
    }

    /// Returns ssthresh after a loss and updates W_max, with fast convergence. RFC 9438 sections 4.6 and 4.7.
    pub(crate) fn ssthresh(&mut self, in_use: u32) -> u32 {
        self.epoch = None;
        self.w_max = if in_use < self.w_max {
            (u64::from(in_use) * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32
        } else {
            in_use
        };
        ((u64::from(in_use) * BETA / BETA_SCALE) as u32).max(2)
    }

    /// Resets the state of the path after a timeout. RFC 9438 section 4.8.
    pub(crate) fn on_timeout(&mut self) {
        *self = Self::default();
    }

    /// Does not count an idle period of the application as time of the epoch. RFC 9438 section 4.2.
    pub(crate) fn on_idle(&mut self, idle: Duration, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            let sent_last = Time::from_nanos(now.as_nanos().saturating_sub(idle.as_nanos()));
            epoch.start = (epoch.start + ticks(now) - ticks(sent_last)).min(ticks(now));
        }
    }

    /// Handles a round-trip sample. Returns `false` and ignores the sample in the first second of an epoch, soon
    /// after a reduction.
    pub(crate) fn on_rtt(&mut self, now: Time, rtt: Duration) -> bool {
        let recent = |epoch: &Epoch| ticks(now) - epoch.start < TICKS_PER_SECOND;
        if self.epoch.as_ref().is_some_and(recent) {
            return false;
        }
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        true
    }

    /// Returns the minimum round-trip time.
    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min
    }
}

impl Epoch {
    fn start(now: Time, cwnd: u32, w_max: u32) -> Self {
        // K = cbrt((W_max - cwnd) / C). RFC 9438 equation 2.
        let below = u64::from(w_max.saturating_sub(cwnd));
        let k = cube_root(below * ((1 << C_SHIFT) / C));
        Self { start: ticks(now), origin: w_max.max(cwnd), k, w_est: cwnd }
    }

    /// Returns W_cubic(t) = C (t - K)^3 + W_max, with `t` in clock ticks. RFC 9438 equation 1.
    fn w_cubic(&self, t: u64) -> u32 {
        let t = (t << 10) / TICKS_PER_SECOND;
        let distance = t.abs_diff(self.k).min(MAX_TIME);
        let delta = ((C * distance.pow(3)) >> C_SHIFT) as u32;
        if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) }
    }

    /// Returns by how many segments the window is below W_est, the window of Reno; `None` if it is not below. RFC
    /// 9438 section 4.3, with alpha = 8/15.
    fn reno_friendly(&mut self, cwnd: u32, acked: &mut u32) -> Option<u32> {
        let price = (cwnd * 15 / 8).max(1);
        // Each segment needs one more acknowledgment than the price, as in kernels.
        let earned = acked.saturating_sub(1) / price;
        self.w_est += earned;
        *acked -= earned * price;
        self.w_est.checked_sub(cwnd).filter(|behind| *behind > 0)
    }
}

/// Returns the cube root, rounded down.
fn cube_root(value: u64) -> u64 {
    let (mut low, mut high) = (0u64, 2_642_245);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if middle.pow(3) <= value { low = middle } else { high = middle - 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_exact() {
        for value in [0, 1, 7, 8, 26, 27, 999_999_999, 1_000_000_000, u64::MAX] {
            let root = cube_root(value);
            assert!(root.pow(3) <= value);
            assert!((root + 1).checked_pow(3).is_none_or(|next| next > value));
        }
    }

    #[test]
    fn the_curve_reaches_w_max_after_k() {
        // RFC 9438 equations 1 and 2: W_max = 100, cwnd = 70: K = cbrt(30 / 0.4) = 4.217 s.
        let epoch = Epoch::start(Time::ZERO, 70, 100);
        assert_eq!(epoch.k, 4316, "1024ths of a second");
        assert_eq!(epoch.w_cubic(0), 71);
        assert_eq!(epoch.w_cubic(1054), 100);
        assert_eq!(epoch.w_cubic(1054 + 5 * TICKS_PER_SECOND), 150);
    }

    #[test]
    fn second_loss_below_w_max_lowers_w_max() {
        // RFC 9438 section 4.7, fast convergence.
        let mut cubic = Cubic::default();
        assert_eq!(cubic.ssthresh(100), 70);
        assert_eq!(cubic.w_max, 100);
        assert_eq!(cubic.ssthresh(80), 56);
        assert_eq!(cubic.w_max, 68);
    }

    #[test]
    fn increase_of_a_window_is_kept_for_seven_ticks() {
        // As in Linux, the window function is evaluated at most 32 times a second.
        let mut cubic = Cubic::default();
        let before = cubic.acked_per_segment(Time::ZERO, 4, 1);
        cubic.ssthresh(5);
        assert_eq!(cubic.acked_per_segment(Time::from_millis(28), 4, 1), before);
        assert!(cubic.epoch.is_none());
        cubic.acked_per_segment(Time::from_millis(32), 4, 1);
        assert!(cubic.epoch.is_some());
    }

    #[test]
    fn curve_is_evaluated_once_per_tick() {
        // As in Linux. 6 s into the epoch W_cubic is 102: a window of 70 is far below it, one of 90 is not.
        let mut cubic = Cubic::default();
        cubic.ssthresh(100);
        cubic.acked_per_segment(Time::ZERO, 70, 1);
        let later = Time::from_millis(6000);
        let before = cubic.acked_per_segment(later, 70, 1);
        assert_eq!(cubic.acked_per_segment(later, 90, 1), before, "the curve is evaluated once per tick");
        assert!(cubic.acked_per_segment(later + TICK, 90, 1) > before);
    }

    #[test]
    fn short_paths_grow_as_fast_as_reno() {
        // RFC 9438 section 4.3: 8/15 of a segment for each window acknowledged.
        let mut cubic = Cubic::default();
        cubic.ssthresh(14);
        let mut now = Time::ZERO;
        let (mut cwnd, mut credit) = (9u32, 0u32);
        for _ in 0..30 {
            let window = cwnd;
            for _ in 0..window {
                now += Duration::from_millis(1);
                let price = cubic.acked_per_segment(now, cwnd, 1);
                credit += 1;
                if credit >= price {
                    credit = 0;
                    cwnd += 1;
                }
            }
        }
        assert!((18..=28).contains(&cwnd), "{cwnd}");
    }

    /// Returns the state in an epoch that began with a window of 70.
    fn in_epoch(w_max: u32) -> Cubic {
        Cubic { w_max, epoch: Some(Epoch::start(Time::ZERO, 70, w_max)), ..Cubic::default() }
    }

    #[test]
    fn target_is_the_curve_one_round_trip_ahead() {
        // RFC 9438 section 4.2 with W_max = 100: W_cubic(2 s) = 100 - 0.4 * 2.217^3 = 95.6, and 86.7 a second before.
        let second = Duration::from_secs(1);
        let ahead = |cwnd| {
            Cubic { rtt_min: Some(second), ..in_epoch(100) }.acked_per_segment(Time::ZERO + second, cwnd, 1)
        };
        assert_eq!((ahead(90), ahead(98)), (90 / 6, 9800), "98 is above the target");
        assert_eq!(
            in_epoch(100).acked_per_segment(Time::ZERO + second, 90, 1),
            9000,
            "without an RTT sample the target is the present value"
        );
    }

    #[test]
    fn window_smaller_than_renos_catches_up() {
        // RFC 9438 section 4.3: ten segments behind it, so one segment for every four.
        let epoch = Epoch { w_est: 50, ..Epoch::start(Time::ZERO, 40, 40) };
        let mut cubic = Cubic { w_max: 40, epoch: Some(epoch), ..Cubic::default() };
        assert_eq!(cubic.acked_per_segment(Time::ZERO, 40, 1), 4);
    }

    #[test]
    fn loss_at_w_max_keeps_w_max() {
        // RFC 9438 section 4.7: fast convergence applies to smaller windows.
        let mut cubic = Cubic::default();
        cubic.ssthresh(100);
        cubic.ssthresh(100);
        assert_eq!(cubic.w_max, 100);
    }

    #[test]
    fn timeout_resets_w_max_and_the_rtt() {
        // RFC 9438 section 4.8.
        let mut cubic = Cubic { rtt_min: Some(Duration::from_millis(40)), ..in_epoch(100) };
        cubic.on_timeout();
        assert_eq!((cubic.w_max, cubic.rtt_min(), cubic.epoch.is_none()), (0, None, true));
    }

    #[test]
    fn idle_time_moves_the_start_of_the_epoch() {
        // RFC 9438 section 4.2; and no epoch begins in the future.
        let start = |idle| {
            let mut cubic = in_epoch(100);
            cubic.on_idle(Duration::from_secs(idle), Time::from_millis(5000));
            cubic.epoch.unwrap().start
        };
        assert_eq!((start(3), start(9)), (3 * TICKS_PER_SECOND, 5 * TICKS_PER_SECOND));
    }

    #[test]
    fn rtt_samples_in_the_first_second_of_an_epoch_are_ignored() {
        // As in Linux: the queue of that time is no property of the path.
        let mut cubic = in_epoch(100);
        let rtt = Duration::from_millis(40);
        assert!(!cubic.on_rtt(Time::from_millis(999), rtt));
        assert_eq!(cubic.rtt_min(), None);
        assert!(cubic.on_rtt(Time::from_millis(1000), rtt) && cubic.on_rtt(Time::from_millis(1001), rtt * 2));
        assert_eq!(cubic.rtt_min(), Some(rtt));
    }
}
