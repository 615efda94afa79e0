//! The delay of a lost packet until a retransmission arrives.

use std::collections::BTreeMap;

use hol_base::Duration;

use crate::detection::RetransmissionDelay;
use crate::{Recovery, Transfer};

/// A step in the distribution of `X`, the delay of a packet because some of its own transmissions were lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LossDelayStep {
    /// The delay `X` in ns; it does not include the one-way delay.
    pub delay: u64,
    /// Probability that `X` is at least `delay`.
    pub reached: f64,
}

/// Maximum number of consecutive losses of a packet that the distribution takes into account.
const MAX_LOSSES: u32 = 32;

/// Returns the distribution of `X`, by ascending delay; empty without loss.
pub(crate) fn loss_delay_steps(transfer: &Transfer) -> Vec<LossDelayStep> {
    let mut delays: Vec<(u64, f64)> = delays(transfer).into_iter().collect();
    let mut reached = 0.0;
    for (_, probability) in delays.iter_mut().rev() {
        reached += *probability;
        *probability = reached;
    }
    delays.into_iter().map(|(delay, reached)| LossDelayStep { delay, reached }).collect()
}

/// Returns the probability of each delay above zero, in ns. A packet is delayed if one or more of its transmissions are
/// lost.
fn delays(transfer: &Transfer) -> BTreeMap<u64, f64> {
    let (loss, detection) = (transfer.loss.value(), RetransmissionDelay::new(transfer));
    let ideal = matches!(transfer.recovery, Recovery::Ideal { .. });
    let mut arrived = BTreeMap::new();
    // For each delay of the next transmission and number of timeouts before it: the probability.
    let mut sent = BTreeMap::from([((0u64, 0), 1.0)]);
    for losses in 1..=MAX_LOSSES {
        let mut again = BTreeMap::new();
        for ((late, timeouts), probability) in sent {
            for step in detection.steps(losses == 1, timeouts) {
                let (delay, probability) =
                    (late.saturating_add(step.delay), probability * loss * step.probability);
                if !is_negligible(transfer, delay, probability) {
                    *again.entry((delay, timeouts + step.timeouts)).or_insert(0.0) += probability;
                }
            }
        }
        for ((delay, _), probability) in &again {
            *arrived.entry(*delay).or_insert(0.0) += probability * if ideal { 1.0 } else { 1.0 - loss };
        }
        if ideal || again.is_empty() {
            break;
        }
        sent = again;
    }
    arrived
}

/// Returns whether a delay adds less than ten nanoseconds to the mean: `probability * (delay + delay² / (2 spacing))`.
fn is_negligible(transfer: &Transfer, delay: u64, probability: f64) -> bool {
    let spacing = transfer.period().saturating_mul(transfer.streams.into()) as f64;
    let delay = delay as f64;
    probability * delay * (1.0 + delay / (2.0 * spacing)) < 10.0
}

/// Returns the mean number of timeouts that begin during another timeout, on one connection.
pub(crate) fn overlapping_timeouts(transfer: &Transfer) -> f64 {
    let (loss, detection) = (transfer.loss.value(), RetransmissionDelay::new(transfer));
    let by_timer = |first| -> f64 {
        let steps = detection.steps(first, 0);
        steps.iter().filter(|step| step.timeouts > 0).map(|step| step.probability).sum()
    };
    let timeouts = loss * by_timer(true) + loss * loss * by_timer(false);
    let period = transfer.period().saturating_mul(transfer.connections()) as f64;
    if timeouts > 0.0 { timeouts * detection.rto as f64 / period } else { 0.0 }
}

impl Transfer {
    /// Returns the delay of a lost message in the best case, in which as few later packets as possible reveal the loss
    /// and the first retransmission arrives; zero on a path without loss.
    ///
    /// With [`Recovery::Ideal`] this is the maximum for every message, and so an upper bound of the mean resequencing
    /// delay.
    pub fn loss_delay(&self) -> Duration {
        Duration::from_nanos(loss_delay_steps(self).first().map_or(0, |level| level.delay))
    }

    /// Returns the smallest number of streams with which a message that arrives [`Self::loss_delay`] late delays no
    /// other message.
    pub fn sufficient_streams(&self) -> u32 {
        self.loss_delay().as_nanos().div_ceil(self.period()).max(1) as u32
    }
}
