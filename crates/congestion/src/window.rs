//! The congestion window of a TCP connection.

use hol_base::{Duration, Time};
use serde::Deserialize;

use crate::bbr::{Acknowledged, Bbr, Beginning};
use crate::cubic::Cubic;
use crate::dctcp::Dctcp;
use crate::delivery::Departure;
use crate::hystart::{Hystart, Round};
use crate::pacing::Pacing;
use crate::reno::{self, Credit};

/// How the window grows in congestion avoidance and shrinks on loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// RFC 5681.
    Reno,
    /// RFC 9438.
    Cubic,
    /// By bandwidth and round trip, with a pace: version 1, as Linux has it.
    Bbr,
    /// By the share of packets that are marked (ECN): RFC 8257, as Linux has it.
    Dctcp,
}

/// The state of an algorithm.
#[derive(Debug, Clone)]
enum Control {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
    Dctcp(Dctcp),
}

/// cwnd and ssthresh, in units: segments if the quantum is 1, octets if it is the SMSS.
#[derive(Debug, Clone)]
pub struct CongestionWindow {
    cwnd: u32,
    ssthresh: u32,
    quantum: u32,
    credit: Credit,
    control: Control,
    hystart: Option<Hystart>,
}

impl CongestionWindow {
    /// ssthresh before the first loss.
    pub const INFINITE: u32 = i32::MAX as u32;

    /// A window of `initial` units, in slow start.
    pub fn new(algorithm: Algorithm, quantum: u32, initial: u32, hystart: bool) -> Self {
        let control = match algorithm {
            Algorithm::Reno => Control::Reno,
            Algorithm::Cubic => Control::Cubic(Cubic::default()),
            Algorithm::Bbr => Control::Bbr(Box::new(Bbr::new(quantum))),
            Algorithm::Dctcp => Control::Dctcp(Dctcp::new()),
        };
        let hystart = (hystart && algorithm == Algorithm::Cubic).then(Hystart::default);
        Self { cwnd: initial, ssthresh: Self::INFINITE, quantum, credit: Credit::default(), control, hystart }
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
        let price = match &mut self.control {
            Control::Reno | Control::Dctcp(_) => self.cwnd,
            Control::Bbr(_) => return,
            Control::Cubic(cubic) => {
                cubic.price(now, self.cwnd / self.quantum, acked / self.quantum) * self.quantum
            }
        };
        self.cwnd = self.cwnd.saturating_add(self.credit.earn(acked, price.max(1)) * self.quantum);
    }

    /// A round-trip sample, the latest that an acknowledgment gave.
    pub fn on_rtt(&mut self, round: Round) {
        let Control::Cubic(cubic) = &mut self.control else { return };
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
        self.ssthresh = match &mut self.control {
            Control::Reno => reno::ssthresh(in_use, self.quantum),
            Control::Cubic(cubic) => cubic.ssthresh(in_use / self.quantum) * self.quantum,
            Control::Bbr(bbr) => return bbr.on_congestion(self.cwnd),
            Control::Dctcp(dctcp) => dctcp.ssthresh(self.cwnd, self.quantum),
        };
        self.credit.clear();
    }

    /// The congestion is a loss, which tells a controller by marks more than they do. RFC 8257 section 3.4.
    pub fn on_loss(&mut self) {
        if matches!(self.control, Control::Dctcp(_)) {
            self.ssthresh = reno::ssthresh(self.cwnd, self.quantum);
        }
    }

    /// `units` are delivered, with an echo of marks or without; SND.UNA and SND.NXT are so.
    #[inline]
    pub fn on_delivered(&mut self, units: u32, echoed: bool, progress: (u32, u32)) {
        if let Control::Dctcp(dctcp) = &mut self.control {
            dctcp.on_delivered(units, echoed, progress);
        }
    }

    /// A retransmission timeout: `loss_window` units may leave (RFC 5681 section 3.1); `losses` segments were ever taken for
    /// lost.
    pub fn on_timeout(&mut self, loss_window: u32, losses: u32) {
        self.set_cwnd(loss_window);
        self.credit.clear();
        match &mut self.control {
            Control::Reno | Control::Dctcp(_) => {}
            Control::Cubic(cubic) => cubic.on_timeout(),
            Control::Bbr(bbr) => bbr.on_timeout(losses.wrapping_mul(self.quantum)),
        }
        if let Some(hystart) = &mut self.hystart {
            *hystart = Hystart::default();
        }
    }

    /// The first segment after `idle` without any in flight.
    pub fn on_idle(&mut self, idle: Duration, now: Time) {
        match &mut self.control {
            Control::Reno | Control::Dctcp(_) => {}
            Control::Cubic(cubic) => cubic.on_idle(idle, now),
            Control::Bbr(bbr) => bbr.on_restart(now, &mut self.cwnd),
        }
    }

    /// A reduction was needless: back to the windows from before. RFC 4015 section 3.2.
    pub fn restore(&mut self, cwnd: u32, ssthresh: u32, losses: u32) {
        self.ssthresh = self.ssthresh.max(ssthresh);
        match &mut self.control {
            Control::Bbr(bbr) => bbr.on_undo(losses.wrapping_mul(self.quantum)),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => self.set_cwnd(self.cwnd.max(cwnd)),
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

    /// The controller goes by rates: it wants to hear of departures, deliveries and acknowledgments, sets the window itself
    /// whatever becomes of losses and of idle times, and has a pace.
    #[inline]
    pub fn is_rate_based(&self) -> bool {
        matches!(self.control, Control::Bbr(_))
    }

    /// How fast segments may leave, if not as fast as they can.
    #[inline]
    pub fn pacing(&self) -> Option<Pacing> {
        match &self.control {
            Control::Bbr(bbr) => Some(bbr.pacing()),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => None,
        }
    }

    /// The connection opens, as a controller by rates has to know.
    pub fn begin(&mut self, beginning: Beginning) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.begin(beginning, self.cwnd);
        }
    }

    /// A segment leaves, while others are `outstanding` or not: what it is to remember.
    #[inline]
    pub fn depart(&mut self, now: Time, outstanding: bool) -> Option<Box<Departure>> {
        match &mut self.control {
            Control::Bbr(bbr) => Some(Box::new(bbr.deliveries.depart(now, outstanding))),
            Control::Reno | Control::Cubic(_) | Control::Dctcp(_) => None,
        }
    }

    /// A segment that left at `sent` is delivered.
    #[inline]
    pub fn deliver(&mut self, departure: Option<&Departure>, sent: Time) {
        if let (Control::Bbr(bbr), Some(departure)) = (&mut self.control, departure) {
            bbr.deliveries.deliver(*departure, sent);
        }
    }

    /// `units` were delivered by an acknowledgment that tells nothing else.
    pub fn count_delivered(&mut self, units: u32) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.deliveries.count(units);
        }
    }

    /// There is no more to send than is `in_flight`.
    pub fn limit_by_application(&mut self, in_flight: u32) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.deliveries.limit_by_application(in_flight);
        }
    }

    /// All that an acknowledgment tells has been taken in.
    pub fn on_acknowledged(&mut self, ack: &Acknowledged) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_acknowledged(ack, &mut self.cwnd, &mut self.ssthresh);
        }
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
