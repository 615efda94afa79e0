//! DCTCP: the window shrinks in proportion to the share of marked packets. RFC 8257 section 3.3, in Linux'
//! integer arithmetic.

use crate::delivery_rate::is_beyond;

/// DCTCP's estimate of the share of marked packets.
#[derive(Debug, Clone)]
pub(crate) struct Dctcp {
    /// The estimated share of marked packets in 1024ths: DCTCP.Alpha.
    alpha: u32,
    /// SND.UNA at which the observation window ends: DCTCP.WindowEnd; `None` before the first window.
    window_end: Option<u32>,
    /// Units delivered in this observation window: DCTCP.BytesAcked.
    delivered: u32,
    /// Units delivered with a CE mark in this observation window: DCTCP.BytesMarked.
    marked: u32,
}

impl Dctcp {
    /// Value of alpha if every packet is marked.
    const MAX_ALPHA: u32 = 1024;
    /// The newest observation window has the weight 2^-GAIN_SHIFT in alpha. RFC 8257 section 4.2.
    const GAIN_SHIFT: u32 = 4;

    /// Creates the state with the highest alpha, as if every packet were marked, because nothing is known yet. RFC 8257
    /// section 4.2.
    pub(crate) fn new() -> Self {
        Self { alpha: Self::MAX_ALPHA, window_end: None, delivered: 0, marked: 0 }
    }

    /// Counts the delivered `units`, `marked` of which carried a CE mark. `una` and `nxt` are SND.UNA and SND.NXT.
    pub(crate) fn on_delivered(&mut self, units: u32, marked: u32, (una, nxt): (u32, u32)) {
        self.delivered += units;
        self.marked += marked;
        if self.window_end.is_some_and(|end| is_beyond(end, una)) {
            return;
        }
        let decay = match self.alpha >> Self::GAIN_SHIFT {
            0 => self.alpha,
            decay => decay,
        };
        let share = u64::from(self.marked) << (Self::MAX_ALPHA.ilog2() - Self::GAIN_SHIFT);
        let share = (share / u64::from(self.delivered.max(1))) as u32;
        self.alpha = (self.alpha - decay + share).min(Self::MAX_ALPHA);
        (self.delivered, self.marked, self.window_end) = (0, 0, Some(nxt));
    }

    /// Returns ssthresh after an ECN echo: `window` reduced by half of the share of marked packets, at least two
    /// quanta.
    pub(crate) fn ssthresh(&self, window: u32, quantum: u32) -> u32 {
        let less = (u64::from(window) * u64::from(self.alpha)) >> (Self::MAX_ALPHA.ilog2() + 1);
        (window - less as u32).max(2 * quantum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the state after `windows` of 10 packets each, `marked` of them echoed.
    fn after(windows: u32, marked: u32) -> Dctcp {
        let mut dctcp = Dctcp { window_end: Some(10), ..Dctcp::new() };
        for packet in 1..=10 * windows {
            dctcp.on_delivered(1, u32::from(packet % 10 < marked), (packet, packet + 10));
        }
        dctcp
    }

    #[test]
    fn rfc8257_3_3_first_echo_halves_the_window() {
        assert_eq!(Dctcp::new().ssthresh(40, 1), 20);
    }

    #[test]
    fn rfc8257_3_3_alpha_converges_to_the_marked_share() {
        for marked in 1..=10 {
            let alpha = after(200, marked).alpha as f64 / 1024.0;
            assert!((alpha - f64::from(marked) / 10.0).abs() < 0.02, "{marked} of 10: {alpha}");
        }
        assert_eq!(after(200, 0).alpha, 0);
    }

    #[test]
    fn rfc8257_4_2_window_without_marks_lowers_alpha_by_a_sixteenth() {
        assert_eq!(after(1, 0).alpha, 960);
        assert_eq!(after(2, 0).alpha, 900);
    }

    #[test]
    fn rfc8257_3_3_few_marks_reduce_the_window_a_little() {
        let dctcp = after(200, 1);
        assert_eq!(dctcp.ssthresh(1000, 1), 1000 - (1000 * dctcp.alpha / 2048));
        assert!(dctcp.ssthresh(1000, 1) > 940);
        assert_eq!(dctcp.ssthresh(2, 1), 2, "and never below two segments");
    }

    #[test]
    fn rfc8257_3_3_minimum_in_octets_is_two_segments() {
        assert_eq!(Dctcp::new().ssthresh(3000, 1000), 2000);
    }
}
