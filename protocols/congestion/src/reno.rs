//! Window growth and reduction of RFC 5681.

/// Counts acknowledged data exactly, and grants one quantum of growth per window of them (RFC 3465 section 2.1). A
/// quantum is the size of a segment in units of the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Credit(u32);

impl Credit {
    /// Returns the number of quanta earned by `acked` units, if one quantum costs `price` units.
    pub(crate) fn count_acked(&mut self, acked: u32, price: u32) -> u32 {
        // Credit saved at a higher price buys at most one quantum, to avoid a burst.
        let mut earned = 0;
        if self.0 >= price {
            self.0 = 0;
            earned = 1;
        }
        self.0 += acked;
        let more = self.0 / price;
        self.0 -= more * price;
        earned + more
    }

    /// Discards the acknowledged data that have not earned a quantum yet.
    pub(crate) fn clear(&mut self) {
        self.0 = 0;
    }
}

/// Returns ssthresh after a loss: half of the window that was in use, at least two quanta. RFC 5681 equation 4.
pub(crate) fn ssthresh(in_use: u32, quantum: u32) -> u32 {
    (in_use / 2).max(2 * quantum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_of_acknowledgments_grows_cwnd_by_one() {
        // RFC 5681 section 3.1: about one segment each round trip.
        let mut credit = Credit::default();
        let earned: u32 = (0..10).map(|_| credit.count_acked(1, 10)).sum();
        assert_eq!(earned, 1);
        assert_eq!(credit.count_acked(25, 10), 2);
    }

    #[test]
    fn loss_halves_the_window_but_not_below_two_segments() {
        assert_eq!(ssthresh(20, 1), 10);
        assert_eq!(ssthresh(3, 1), 2);
        assert_eq!(ssthresh(1460, 1460), 2920);
    }

    #[test]
    fn loss_clears_the_credit() {
        let mut credit = Credit::default();
        assert_eq!(credit.count_acked(9, 10), 0);
        credit.clear();
        assert_eq!(credit.count_acked(1, 10), 0);
    }
}
