//! Congestion control of an SCTP path. RFC 9260 section 7.2.

/// The parameters of a congestion window in which implementations of SCTP differ, in octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CwndParameters {
    /// Maximum length of a packet.
    pub mtu: u64,
    /// The initial cwnd. RFC 9260 section 7.2.1.
    pub initial: u64,
    /// Maximum amount by which a SACK enlarges cwnd in slow start: L times the MTU in RFC 9260 section 7.2.1.
    pub slow_start_limit: u64,
    /// Minimum of cwnd after a fast retransmit. RFC 9260 section 7.2.3.
    pub min_after_fast_retransmit: u64,
    /// cwnd counts as fully used if at most this many octets of it are free. RFC 9260 section 7.2.1.
    pub slack: u64,
}

impl CwndParameters {
    /// Returns the parameters of RFC 9260; cwnd starts at min(4 * MTU, max(2 * MTU, `initial`)), RFC 9260 section
    /// 7.2.1.
    pub fn rfc9260(mtu: u64, initial: u64) -> Self {
        let initial = (4 * mtu).min(initial.max(2 * mtu));
        Self { mtu, initial, slow_start_limit: mtu, min_after_fast_retransmit: 4 * mtu, slack: 0 }
    }
}

/// The congestion window of one path, in octets of user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    rules: CwndParameters,
}

impl Window {
    /// Creates the window of an unused path. RFC 9260 section 7.2.1.
    pub const fn new(rules: CwndParameters, ssthresh: u64) -> Self {
        Self { cwnd: rules.initial, ssthresh, partial_bytes_acked: 0, rules }
    }

    /// Returns the congestion window in octets.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Returns the slow start threshold in octets.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Returns cwnd, limited to `max_burst` packets above `flight_size`; a `max_burst` of zero means no limit.
    /// RFC 9260 section 6.1 rule D.
    pub fn burst_limited(&self, flight_size: u64, max_burst: u32) -> u64 {
        match max_burst {
            0 => self.cwnd,
            packets => self.cwnd.min(flight_size + u64::from(packets) * self.rules.mtu),
        }
    }

    /// Reduces cwnd to the limit of Max.Burst, and raises ssthresh to the previous cwnd. RFC 9260 section 6.1 D;
    /// FreeBSD's sctp_cwnd_update_after_output.
    pub fn lower_for_burst(&mut self, flight_size: u64, max_burst: u32) {
        let limited = self.burst_limited(flight_size, max_burst);
        if limited < self.cwnd {
            self.ssthresh = self.ssthresh.max(self.cwnd);
            self.cwnd = limited;
        }
    }

    /// Handles a SACK that newly acknowledged `bytes_acked`, with `flight_size` outstanding before it.
    ///
    /// cwnd grows only if it was fully used. RFC 9260 sections 7.2.1 and 7.2.2.
    pub fn on_acked(&mut self, bytes_acked: u64, flight_size: u64, in_fast_recovery: bool) {
        let in_full_use = flight_size + self.rules.slack >= self.cwnd;
        if self.cwnd <= self.ssthresh {
            if in_full_use && !in_fast_recovery {
                self.cwnd += bytes_acked.min(self.rules.slow_start_limit);
            }
            return;
        }
        self.partial_bytes_acked += bytes_acked;
        if !in_full_use {
            self.partial_bytes_acked = self.partial_bytes_acked.min(self.cwnd);
        } else if self.partial_bytes_acked >= self.cwnd {
            self.partial_bytes_acked -= self.cwnd;
            self.cwnd += self.rules.mtu;
        }
    }

    /// Handles the acknowledgment of all outstanding data. RFC 9260 section 7.2.2.
    pub const fn on_flight_empty(&mut self) {
        self.partial_bytes_acked = 0;
    }

    /// Handles an ECN mark within a round trip after a reduction: the window does not change, but counting towards
    /// its growth restarts. Linux: `sctp_transport_lower_cwnd`.
    pub const fn on_mark_again(&mut self) {
        self.partial_bytes_acked = 0;
    }

    /// Handles a loss that SACKs show outside of fast recovery. RFC 9260 section 7.2.3.
    pub fn on_fast_retransmit(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(self.rules.min_after_fast_retransmit);
        self.cwnd = self.ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// Handles the expiry of T3-rtx. RFC 9260 section 7.2.3.
    pub fn on_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(4 * self.rules.mtu);
        self.cwnd = self.rules.mtu;
        self.partial_bytes_acked = 0;
    }

    /// Handles an idle period. RFC 9260 section 7.2.1.
    pub fn on_idle(&mut self) {
        self.cwnd = (self.cwnd / 2).max(4 * self.rules.mtu);
        self.ssthresh = self.cwnd;
        self.partial_bytes_acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1500;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd, ssthresh, partial_bytes_acked: 0, rules: CwndParameters::rfc9260(MTU, 4404) }
    }

    #[test]
    fn the_initial_window_is_bounded_by_two_and_four_mtu() {
        // Section 7.2.1.
        assert_eq!(Window::new(CwndParameters::rfc9260(1500, 4404), 0).cwnd(), 4404);
        assert_eq!(Window::new(CwndParameters::rfc9260(9000, 4404), 0).cwnd(), 18000);
        assert_eq!(Window::new(CwndParameters::rfc9260(500, 4404), 0).cwnd(), 2000);
    }

    #[test]
    fn slow_start_needs_a_full_window_and_no_fast_recovery() {
        // Section 7.2.1: by the smaller of the acknowledged octets and one MTU.
        let grown = |acked, flight, recovering| {
            let mut window = window(3000, 9000);
            window.on_acked(acked, flight, recovering);
            window.cwnd()
        };
        assert_eq!(grown(100, 3000, false), 3100);
        assert_eq!(grown(3000, 3000, false), 4500);
        assert_eq!(grown(100, 2999, false), 3000);
        assert_eq!(grown(100, 3000, true), 3000);
    }

    #[test]
    fn congestion_avoidance_adds_one_mtu_a_window() {
        // Section 7.2.2.
        let mut window = window(6000, 3000);
        for _ in 0..3 {
            window.on_acked(1500, 6000, false);
        }
        assert_eq!(window.cwnd(), 6000);
        window.on_acked(1500, 6000, false);
        assert_eq!(window.cwnd(), 7500);
    }

    #[test]
    fn partial_bytes_acked_is_at_most_an_unused_window() {
        // Section 7.2.2.
        let mut window = window(6000, 3000);
        for _ in 0..10 {
            window.on_acked(1500, 5999, false);
        }
        assert_eq!(window.cwnd(), 6000);
        window.on_acked(1, 6000, false);
        assert_eq!((window.cwnd(), window.partial_bytes_acked), (7500, 1));
    }

    #[test]
    fn loss_halves_the_window_and_timeout_sets_it_to_one_mtu() {
        // Section 7.2.3.
        let mut fast = window(20_000, 99_999);
        fast.on_fast_retransmit();
        assert_eq!((fast.cwnd(), fast.ssthresh()), (10_000, 10_000));
        let mut timeout = window(4380, 99_999);
        timeout.on_timeout();
        assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1500, 6000));
    }

    #[test]
    fn max_burst_is_added_to_the_flight_size() {
        // Section 6.1 D.
        let window = window(20_000, 99_999);
        assert_eq!(window.burst_limited(3000, 4), 9000);
        assert_eq!(window.burst_limited(16_000, 4), 20_000);
        assert_eq!(window.burst_limited(0, 0), 20_000);
    }

    #[test]
    fn partial_bytes_acked_carries_over_to_the_next_window() {
        // Section 7.2.2: partial_bytes_acked is reduced by cwnd, not reset.
        let mut window = window(6000, 3000);
        window.on_acked(4000, 6000, false);
        window.on_acked(4000, 6000, false);
        assert_eq!((window.cwnd(), window.partial_bytes_acked), (7500, 2000));
        window.on_flight_empty();
        assert_eq!(window.partial_bytes_acked, 0);
    }

    #[test]
    fn ssthresh_is_at_least_four_mtu_after_loss_and_timeout() {
        // Section 7.2.3.
        let mut fast = window(8000, 99_999);
        fast.on_fast_retransmit();
        assert_eq!((fast.cwnd(), fast.ssthresh()), (6000, 6000));
        let mut timeout = window(20_000, 99_999);
        timeout.on_timeout();
        assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1500, 10_000));
    }

    #[test]
    fn an_idle_path_loses_half_of_its_window_down_to_four_mtu() {
        // Section 7.2.1.
        for (before, after) in [(20_000, 10_000), (8000, 6000), (3000, 6000)] {
            let mut idle = Window { partial_bytes_acked: 700, ..window(before, 99_999) };
            idle.on_idle();
            assert_eq!((idle.cwnd(), idle.ssthresh(), idle.partial_bytes_acked), (after, after, 0));
        }
    }

    /// Section 7.2.1: L; and implementations that fill a window only with whole chunks.
    #[test]
    fn slow_start_limit_minimum_and_slack_apply() {
        let rules = CwndParameters {
            slow_start_limit: 2 * MTU,
            min_after_fast_retransmit: 2 * MTU,
            ..CwndParameters::rfc9260(MTU, 1)
        };
        let mut window = Window::new(rules, 9000);
        window.on_acked(9000, 3000, false);
        assert_eq!(window.cwnd(), 6000);
        window.on_fast_retransmit();
        assert_eq!((window.cwnd(), window.ssthresh()), (3000, 3000));
        let mut nearly_full = Window::new(CwndParameters { slack: MTU, ..rules }, 9000);
        nearly_full.on_acked(1000, 1499, false);
        assert_eq!(nearly_full.cwnd(), 3000);
        nearly_full.on_acked(1000, 1500, false);
        assert_eq!(nearly_full.cwnd(), 4000);
    }

    /// Section 6.1 D, as in FreeBSD: the window is reduced, and slow start restores it.
    #[test]
    fn max_burst_can_lower_the_window() {
        let mut lowered = window(20_000, 8000);
        lowered.lower_for_burst(3000, 4);
        assert_eq!((lowered.cwnd(), lowered.ssthresh()), (9000, 20_000));
        lowered.lower_for_burst(3000, 4);
        assert_eq!((lowered.cwnd(), lowered.ssthresh()), (9000, 20_000));
    }
}
