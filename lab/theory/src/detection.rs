//! The time to detect a packet loss: by acknowledgements of later packets, or by the timer.

use hol_base::Duration;

use crate::{Recovery, Transfer};

/// The distribution of the time from a transmission of a packet to its next transmission.
pub(crate) struct RetransmissionDelay {
    /// Times in ns until later packets reveal the loss of a packet's first transmission, each with its probability.
    first_loss: Vec<(u64, f64)>,
    /// Times in ns until later packets reveal the loss of a retransmission, each with its probability; empty if only
    /// the retransmission timer reveals it.
    repeated_loss: Vec<(u64, f64)>,
    /// The retransmission timeout in ns, without back-off.
    pub rto: u64,
    /// Time in ns by which the first timeout comes later than one RTO after the transmission, because the
    /// acknowledgment of the previous packet restarts the timer (RFC 7765 corrects this).
    restart_delay: u64,
    /// The maximum of the RTO after back-off, in ns.
    rto_max: u64,
}

/// One possible time until a lost packet is transmitted again, with its probability.
pub(crate) struct Step {
    /// Time to the packet's next transmission, in ns.
    pub delay: u64,
    pub probability: f64,
    /// 1 if the timer caused the transmission, otherwise 0.
    pub timeouts: u32,
}

/// A timeout that never expires, in ns, for a recovery without retransmission timer.
const NEVER: u64 = u64::MAX / 4;
/// The probability below which distributions are truncated; the remainder is attributed to the retransmission timer.
const TRUNCATION_PROBABILITY: f64 = 1e-12;

impl RetransmissionDelay {
    /// Computes the distribution for a transfer.
    pub fn new(transfer: &Transfer) -> Self {
        let arrives = 1.0 - transfer.loss.value();
        let round_trip = transfer.round_trip();
        // Only packets and ACKs of the same connection reveal a loss.
        let period = transfer.period().saturating_mul(transfer.connections());
        let after = |packets: Vec<(u64, f64)>| -> Vec<(u64, f64)> {
            packets
                .into_iter()
                .map(|(n, probability)| (round_trip.saturating_add(n.saturating_mul(period)), probability))
                .collect()
        };
        // A report requires a packet and a SACK that both arrive.
        let reported = arrives * arrives;
        let tcp_rto = |rto_min: Duration| round_trip + rto_min.as_nanos();
        let (first, again, rto, rto_max) = match transfer.recovery {
            Recovery::Ideal { reports } => {
                let fast = after(vec![(reports.into(), 1.0)]);
                (fast.clone(), fast, NEVER, NEVER)
            }
            Recovery::Sctp { rto_min, again } => {
                let fast = after(trials(3, reported));
                let again = if again { fast.clone() } else { Vec::new() };
                (fast, again, round_trip.max(rto_min.as_nanos()), 60_000_000_000)
            }
            Recovery::TcpDupThresh { rto_min } => {
                (after(duplicates(arrives)), Vec::new(), tcp_rto(rto_min), 120_000_000_000)
            }
            Recovery::TcpRack { rto_min } => {
                let again = after(trials(1, reported));
                // The reordering window, or the time until three later packets end it.
                let earliest = round_trip + (round_trip / 4).min(period.saturating_mul(3));
                let first = again.iter().map(|(delay, p)| ((*delay).max(earliest), *p)).collect();
                (first, again, tcp_rto(rto_min), 120_000_000_000)
            }
        };
        Self {
            first_loss: first,
            repeated_loss: again,
            rto,
            restart_delay: round_trip.saturating_sub(period),
            rto_max,
        }
    }

    /// Returns the possible times until a lost packet is transmitted again. `first` says whether only its first
    /// transmission has been lost; `timeouts` is its number of timeouts so far.
    pub fn steps(&self, first: bool, timeouts: u32) -> Vec<Step> {
        let backed_off = self.rto.saturating_mul(1 << timeouts.min(20)).min(self.rto_max.max(self.rto));
        let (fast, timer) = if first {
            (&self.first_loss, backed_off + self.restart_delay)
        } else {
            (&self.repeated_loss, backed_off)
        };
        let in_time = fast.iter().take_while(|(delay, _)| *delay <= timer);
        let mut steps: Vec<Step> = in_time
            .map(|(delay, probability)| Step { delay: *delay, probability: *probability, timeouts: 0 })
            .collect();
        let rest = 1.0 - steps.iter().map(|step| step.probability).sum::<f64>();
        if rest > TRUNCATION_PROBABILITY {
            steps.push(Step { delay: timer, probability: rest, timeouts: 1 });
        }
        steps
    }
}

/// Returns the distribution of the number of trials up to the success with number `successes` (negative binomial),
/// given the probability of a success.
fn trials(successes: u64, success: f64) -> Vec<(u64, f64)> {
    let mut probability = success.powi(successes as i32);
    let (mut law, mut rest) = (Vec::new(), 1.0);
    for n in (successes..).take_while(|_| success > 0.0) {
        law.push((n, probability));
        rest -= probability;
        // A small probability ends the loop only after the peak, because the probabilities grow before it.
        let grows = (n as f64) * (1.0 - success) > (n + 1 - successes) as f64;
        if rest < TRUNCATION_PROBABILITY || (!grows && probability < TRUNCATION_PROBABILITY) {
            break;
        }
        probability *= n as f64 / (n + 1 - successes) as f64 * (1.0 - success);
    }
    law
}

/// Returns the distribution of the number of packets that are sent until a TCP sender has learned of three later
/// arrivals. SACK blocks repeat what lost ACKs reported, so only the loss of the third ACK or a later one delays the
/// sender.
fn duplicates(arrives: f64) -> Vec<(u64, f64)> {
    let told_later = trials(1, arrives * arrives);
    let mut law = vec![0.0; 4];
    for (third, probability) in trials(3, arrives) {
        let after = told_later.iter().map(|(n, p)| (*n, p * (1.0 - arrives)));
        for (more, told) in [(0, arrives)].into_iter().chain(after) {
            let n = (third + more) as usize;
            law.resize(law.len().max(n + 1), 0.0);
            law[n] += probability * told;
        }
    }
    (0..).zip(law).skip(3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(law: &[(u64, f64)]) -> f64 {
        law.iter().map(|(n, p)| *n as f64 * p).sum()
    }

    // python3 -c "from scipy.stats import nbinom; print(nbinom.pmf([0, 1, 2, 5], 3, .81))"
    #[test]
    fn trials_until_the_third_success_agree_with_scipy() {
        let law = trials(3, 0.81);
        let scipy = [(3, 0.531441), (4, 0.30292137), (5, 0.1151101206), (8, 0.002763391110183897)];
        for (n, expected) in scipy {
            assert!((law[n - 3].1 - expected).abs() < 1e-12, "{n}: {}", law[n - 3].1);
        }
        assert!((mean(&law) - 3.0 / 0.81).abs() < 1e-9);
        assert!((trials(3, 0.1).iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-9, "a rising start");
        assert_eq!(trials(1, 1.0), [(1, 1.0)]);
        assert!(trials(3, 0.0).is_empty(), "never: the timer must do it");
    }

    #[test]
    fn lost_acks_delay_only_the_last_third_duplicate() {
        let law = duplicates(0.9);
        assert!((law.iter().map(|(_, p)| p).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!((mean(&law) - (3.0 / 0.9 + 0.1 / 0.81)).abs() < 1e-9);
        assert_eq!(duplicates(1.0)[0], (3, 1.0));
    }
}
