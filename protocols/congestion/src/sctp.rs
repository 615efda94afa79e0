//! Congestion control of an SCTP path. RFC 9260 section 7.2.

/// The congestion window of one path, in octets of user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    mtu: u64,
}

impl Window {
    /// Creates the window of an unused path: cwnd is min(4 * MTU, max(2 * MTU, `initial`)), section 7.2.1.
    pub fn new(mtu: u64, initial: u64, ssthresh: u64) -> Self {
        let cwnd = (4 * mtu).min(initial.max(2 * mtu));
        Self { cwnd, ssthresh, partial_bytes_acked: 0, mtu }
    }

    /// Congestion window in octets.
    pub const fn cwnd(&self) -> u64 {
        self.cwnd
    }

    /// Slow start threshold in octets.
    pub const fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Returns cwnd limited by Max.Burst at `flight_size`; a `max_burst` of zero means no limit. Section 6.1
    /// D.
    pub fn burst_limited(&self, flight_size: u64, max_burst: u32) -> u64 {
        match max_burst {
            0 => self.cwnd,
            packets => self.cwnd.min(flight_size + u64::from(packets) * self.mtu),
        }
    }

    /// Handles a SACK that newly acknowledged `bytes_acked`, with `flight_size` outstanding before it.
    ///
    /// The window grows only if it was fully used. Sections 7.2.1 and 7.2.2.
    pub fn on_acked(&mut self, bytes_acked: u64, flight_size: u64, in_fast_recovery: bool) {
        let in_full_use = flight_size >= self.cwnd;
        if self.cwnd <= self.ssthresh {
            if in_full_use && !in_fast_recovery {
                self.cwnd += bytes_acked.min(self.mtu);
            }
            return;
        }
        self.partial_bytes_acked += bytes_acked;
        if !in_full_use {
            self.partial_bytes_acked = self.partial_bytes_acked.min(self.cwnd);
        } else if self.partial_bytes_acked >= self.cwnd {
            self.partial_bytes_acked -= self.cwnd;
            self.cwnd += self.mtu;
        }
    }

    /// Handles the acknowledgment of all outstanding data. Section 7.2.2.
    pub const fn on_flight_empty(&mut self) {
        self.partial_bytes_acked = 0;
    }

    /// Handles a mark in the round trip after a reduction: the window stays, and is counted anew. Linux: `sctp_transport_lower_cwnd`.
    pub const fn on_mark_again(&mut self) {
        self.partial_bytes_acked = 0;
    }

    /// Handles a loss shown by SACKs outside of fast recovery. Section 7.2.3.
    pub fn on_fast_retransmit(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(4 * self.mtu);
        self.cwnd = self.ssthresh;
        self.partial_bytes_acked = 0;
    }

    /// Handles the expiry of T3-rtx. Section 7.2.3.
    pub fn on_timeout(&mut self) {
        self.ssthresh = (self.cwnd / 2).max(4 * self.mtu);
        self.cwnd = self.mtu;
        self.partial_bytes_acked = 0;
    }

    /// Handles an idle period. Section 7.2.1.
    pub fn on_idle(&mut self) {
        self.cwnd = (self.cwnd / 2).max(4 * self.mtu);
        self.ssthresh = self.cwnd;
        self.partial_bytes_acked = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1500;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd, ssthresh, partial_bytes_acked: 0, mtu: MTU }
    }

    #[test]
    fn the_initial_window_is_bounded_by_two_and_four_mtu() {
        // Section 7.2.1.
        assert_eq!(Window::new(1500, 4404, 0).cwnd(), 4404);
        assert_eq!(Window::new(9000, 4404, 0).cwnd(), 18000);
        assert_eq!(Window::new(500, 4404, 0).cwnd(), 2000);
    }

    #[test]
    fn slow_start_needs_a_full_window_and_no_fast_recovery() {
        // Section 7.2.1: by the lesser of what was acknowledged and one MTU.
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
    fn an_unused_window_saves_up_no_more_than_itself() {
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
    fn loss_halves_and_timeout_closes() {
        // Section 7.2.3.
        let mut fast = window(20_000, 99_999);
        fast.on_fast_retransmit();
        assert_eq!((fast.cwnd(), fast.ssthresh()), (10_000, 10_000));
        let mut timeout = window(4380, 99_999);
        timeout.on_timeout();
        assert_eq!((timeout.cwnd(), timeout.ssthresh()), (1500, 6000));
    }

    #[test]
    fn max_burst_counts_from_what_is_in_flight() {
        // Section 6.1 D.
        let window = window(20_000, 99_999);
        assert_eq!(window.burst_limited(3000, 4), 9000);
        assert_eq!(window.burst_limited(16_000, 4), 20_000);
        assert_eq!(window.burst_limited(0, 0), 20_000);
    }

    #[test]
    fn what_is_acknowledged_beyond_a_window_counts_for_the_next() {
        // Section 7.2.2: partial_bytes_acked is reduced by cwnd, not forgotten.
        let mut window = window(6000, 3000);
        window.on_acked(4000, 6000, false);
        window.on_acked(4000, 6000, false);
        assert_eq!((window.cwnd(), window.partial_bytes_acked), (7500, 2000));
        window.on_flight_empty();
        assert_eq!(window.partial_bytes_acked, 0);
    }

    #[test]
    fn no_loss_leaves_less_than_four_mtu_and_a_timeout_halves_too() {
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
}
