//! The congestion window of a TCP connection.

use hol_base::{Duration, Time};
use serde::Deserialize;

use crate::cubic::Cubic;
use crate::hystart::{Hystart, Round};
use crate::reno::{self, Credit};

/// How the window grows in congestion avoidance and shrinks on loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
}

/// cwnd and ssthresh, in units: segments if the quantum is 1, octets if it is the SMSS.
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    cwnd: u32,
    ssthresh: u32,
    quantum: u32,
    credit: Credit,
    /// `None` is Reno.
    cubic: Option<Cubic>,
    hystart: Option<Hystart>,
}

impl CongestionWindow {
    /// ssthresh before the first loss.
    pub const INFINITE: u32 = i32::MAX as u32;

    /// A window of `initial` units, in slow start.
    pub fn new(algorithm: Algorithm, quantum: u32, initial: u32, hystart: bool) -> Self {
        let cubic = (algorithm == Algorithm::Cubic).then(Cubic::default);
        let hystart = (hystart && cubic.is_some()).then(Hystart::default);
        Self { cwnd: initial, ssthresh: Self::INFINITE, quantum, credit: Credit::default(), cubic, hystart }
    }

    /// The window in units.
    pub fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// The slow start threshold in units.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// One segment in units.
    pub fn quantum(&self) -> u32 {
        self.quantum
    }

    /// Below ssthresh. RFC 5681 section 3.1.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `acked` units left the network and the window was in use: it grows. RFC 5681 section 3.1.
    pub fn on_ack(&mut self, now: Time, acked: u32) {
        let mut acked = acked;
        if self.in_slow_start() {
            let opened = acked.min(self.ssthresh - self.cwnd);
            self.cwnd += opened;
            acked -= opened;
            if acked == 0 {
                return;
            }
        }
        let price = match &mut self.cubic {
            None => self.cwnd,
            Some(cubic) => cubic.price(now, self.cwnd / self.quantum, acked / self.quantum) * self.quantum,
        };
        self.cwnd = self.cwnd.saturating_add(self.credit.earn(acked, price.max(1)) * self.quantum);
    }

    /// A round-trip sample, the latest that an acknowledgment gave.
    pub fn on_rtt(&mut self, round: Round) {
        let Some(cubic) = &mut self.cubic else { return };
        if !cubic.on_rtt(round.now, round.rtt) || self.cwnd >= self.ssthresh {
            return;
        }
        let rtt_min = cubic.rtt_min().unwrap_or(round.rtt);
        if let Some(hystart) = &mut self.hystart
            && hystart.exits(round, rtt_min, self.cwnd / self.quantum)
        {
            self.ssthresh = self.cwnd;
        }
    }

    /// Congestion: ssthresh falls; the caller brings cwnd down at its own pace.
    ///
    /// Octets are counted from what was in `flight` (RFC 5681 section 3.1), segments from cwnd, as kernels do.
    pub fn on_congestion(&mut self, flight: u32) {
        let in_use = if self.quantum == 1 { self.cwnd } else { flight };
        self.ssthresh = match &mut self.cubic {
            None => reno::ssthresh(in_use, self.quantum),
            Some(cubic) => cubic.ssthresh(in_use / self.quantum) * self.quantum,
        };
        self.credit.clear();
    }

    /// A retransmission timeout: `loss_window` units may leave. RFC 5681 section 3.1.
    pub fn on_timeout(&mut self, loss_window: u32) {
        self.set_cwnd(loss_window);
        self.credit.clear();
        if let Some(cubic) = &mut self.cubic {
            cubic.on_timeout();
        }
        if let Some(hystart) = &mut self.hystart {
            *hystart = Hystart::default();
        }
    }

    /// The first segment after `idle` without any in flight.
    pub fn on_idle(&mut self, idle: Duration, now: Time) {
        if let Some(cubic) = &mut self.cubic {
            cubic.on_idle(idle, now);
        }
    }

    /// Sets the window, one unit at least.
    pub fn set_cwnd(&mut self, cwnd: u32) {
        self.cwnd = cwnd.max(1);
    }

    /// Sets the slow start threshold.
    pub fn set_ssthresh(&mut self, ssthresh: u32) {
        self.ssthresh = ssthresh;
    }

    /// What is worth remembering of the window while it is not used: 3/4 of it, or ssthresh. RFC 2861 section 3.
    pub fn remembered_ssthresh(&self) -> u32 {
        self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_start_opens_by_what_was_acknowledged_until_ssthresh() {
        // RFC 5681 section 3.1.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1, 10, false);
        window.on_ack(Time::ZERO, 4);
        assert_eq!(window.cwnd(), 14);
        window.set_ssthresh(16);
        window.on_ack(Time::ZERO, 18);
        assert_eq!(window.cwnd(), 17, "two to ssthresh, then one for a window of 16");
    }

    #[test]
    fn counted_in_octets_the_flight_decides_ssthresh() {
        // RFC 5681 equation 4 and the note below it: FlightSize, not cwnd.
        let mut window = CongestionWindow::new(Algorithm::Reno, 1000, 10_000, false);
        window.on_congestion(6000);
        assert_eq!(window.ssthresh(), 3000);
    }

    #[test]
    fn counted_in_octets_cubic_works_in_segments() {
        let mut window = CongestionWindow::new(Algorithm::Cubic, 1000, 100_000, false);
        window.on_congestion(100_000);
        assert_eq!(window.ssthresh(), 70_000);
        window.set_cwnd(70_000);
        for step in 1..=70 {
            window.on_ack(Time::from_millis(step), 1000);
        }
        assert!((70_000..=72_000).contains(&window.cwnd()), "{}", window.cwnd());
    }
}
