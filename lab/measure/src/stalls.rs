//! Allows for rare timeouts in a mean: a sample of runs contains few of them, and each stalls many messages.

use statrs::distribution::{ContinuousCDF, Gamma};

use crate::CONFIDENCE;

/// Number of timeouts, or of backoffs, from which on the runs themselves show their effect on the mean, so that no
/// allowance is needed.
pub const MIN_TIMEOUTS: u64 = 10;

/// The number of retransmission timeouts in a point's runs, and the effect of one more timeout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeoutCounts {
    /// Number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// Number of expiries that followed another expiry, so that the timeout had been doubled.
    pub backoffs: u64,
    /// Probability that a retransmission after a timeout, or its acknowledgement, is lost.
    pub lost_again: f64,
    /// Time in seconds for which a first timeout stalls a stream.
    pub stall_s: f64,
    /// Messages per second that wait during a stall; 0 if each message has to wait for the previous one anyway.
    pub rate: f64,
    /// Number of messages over which the mean is taken.
    pub messages: u64,
}

/// By how much rare events that did not occur in the runs may raise a mean.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Allowance {
    /// Effect of the events that were to be expected but did not occur on the mean, in ms.
    pub expected: f64,
    /// Half width of the confidence interval of `expected`, in ms.
    pub half_width: f64,
}

impl TimeoutCounts {
    /// Returns whether there were too few events to show their effect on the mean.
    ///
    /// Fewer than [`MIN_TIMEOUTS`] timeouts are too few. Fewer backoffs than that are too few if backoffs were to
    /// be expected.
    pub fn are_rare(&self) -> bool {
        self.timeouts < MIN_TIMEOUTS || (self.backoffs < MIN_TIMEOUTS && self.expected_backoffs() >= 0.05)
    }

    /// Returns the allowance for events that did not occur in the runs; zero if every kind of event was frequent.
    ///
    /// The number of timeouts follows a Poisson distribution. A timeout is followed by a backoff if its
    /// retransmission is lost. A stall of `t` seconds delays the messages that are due during the stall by `t / 2`
    /// on average. A timeout and its backoff together stall a stream three times as long as a timeout alone.
    pub fn allowance(&self) -> Allowance {
        if self.messages == 0 {
            return Allowance::default();
        }
        let ms = |stall_s: f64| 1e3 * (stall_s + self.rate * stall_s * stall_s / 2.0) / self.messages as f64;
        let (one, two) = (ms(self.stall_s), ms(3.0 * self.stall_s));
        let mut unseen = Allowance::default();
        let mut variance = 0.0;
        if self.timeouts < MIN_TIMEOUTS {
            variance += ((poisson_upper_end(self.timeouts) - self.timeouts as f64) * one).powi(2);
        }
        if self.backoffs < MIN_TIMEOUTS {
            let due = self.expected_backoffs();
            unseen.expected = (due - self.backoffs as f64).max(0.0) * two;
            variance += due * two * two;
        }
        Allowance { half_width: variance.sqrt(), ..unseen }
    }

    /// Returns the number of backoffs to be expected after these timeouts.
    fn expected_backoffs(&self) -> f64 {
        self.lost_again * self.timeouts as f64
    }
}

/// Returns the upper end of the confidence interval of a Poisson mean, if `seen` events were observed (Garwood
/// 1936).
fn poisson_upper_end(seen: u64) -> f64 {
    let law = Gamma::new(seen as f64 + 1.0, 1.0).expect("the shape is positive");
    law.inverse_cdf(0.5 + CONFIDENCE / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SCTP over eight streams at 100/s with 1 % loss, 200,000 messages.
    const SCTP: TimeoutCounts = TimeoutCounts {
        timeouts: 41,
        backoffs: 0,
        lost_again: 0.02,
        stall_s: 1.04,
        rate: 12.5,
        messages: 200_000,
    };

    // python3 -c "from scipy.stats import chi2; print(chi2.ppf(.975, 2)/2, chi2.ppf(.975, 12)/2)"
    // 3.6888794541139363 11.668332079322669
    #[test]
    fn poisson_upper_end_agrees_with_scipy() {
        assert!((poisson_upper_end(0) - 3.6888794541139363).abs() < 1e-6, "{}", poisson_upper_end(0));
        assert!((poisson_upper_end(5) - 11.668332079322669).abs() < 1e-6, "{}", poisson_upper_end(5));
    }

    // By hand: a stall of 3.12 s costs 3.12 + 12.5 * 3.12² / 2 = 63.96 s, and 0.82 of them are expected in 200,000 messages.
    #[test]
    fn unseen_backoffs_add_an_expected_stall() {
        let unseen = SCTP.allowance();
        assert!((unseen.expected - 0.82 * 63.96 / 200.0).abs() < 1e-9, "{unseen:?}");
        assert!((unseen.half_width - 0.82f64.sqrt() * 63.96 / 200.0).abs() < 1e-9, "{unseen:?}");
        assert!(SCTP.are_rare());
        let one = TimeoutCounts { backoffs: 1, ..SCTP }.allowance();
        assert_eq!((one.expected, one.half_width), (0.0, unseen.half_width));
    }

    #[test]
    fn frequent_backoffs_need_no_allowance() {
        let often = TimeoutCounts { timeouts: 1000, backoffs: 20, ..SCTP };
        assert_eq!((often.allowance(), often.are_rare()), (Allowance::default(), false));
    }

    #[test]
    fn short_sample_without_timeouts_has_a_wide_allowance() {
        let short = TimeoutCounts { timeouts: 0, messages: 1000, ..SCTP }.allowance();
        assert!(short.expected == 0.0 && short.half_width > 25.0, "{short:?}");
        assert_eq!(TimeoutCounts { messages: 0, ..SCTP }.allowance(), Allowance::default());
    }
}
