//! How long messages wait for an earlier lost message of their stream.
//!
//! A message is delivered when it and everything before it on its stream have arrived. The `i`-th message before it was
//! sent `i s` earlier, where `s` is the time between two messages of a stream; if that one arrives `X_i` late, this one
//! is late by at least `X_i - i s`. So its delay is `W = max over i of (X_i - i s)`, and with independent `X_i` the
//! distribution of `W` is a product over `i` (the model idea of Kiesel and Scharf, Networking 2006, LNCS 3976, pages
//! 451–462).

use std::collections::BTreeSet;

use hol_base::Duration;

use crate::loss_delay::{LossDelayStep, loss_delay_steps};
use crate::{Arrivals, Transfer};

/// The minimum number of parts into which a delay is divided to sample the distribution, if the distribution is
/// continuous or has very many steps.
const MIN_PARTS: u64 = 256;

/// The distribution of the resequencing delay of one direction, in ns. A message is delayed because a transmission of
/// it was lost, or because it waits for another message.
pub(crate) struct DelayDistribution {
    levels: Vec<LossDelayStep>,
    /// Mean time between two messages of a stream, in ns.
    spacing: u64,
    arrivals: Arrivals,
}

impl DelayDistribution {
    /// Computes the distribution of the resequencing delay for a transfer.
    pub fn new(transfer: &Transfer) -> Self {
        let spacing = transfer.period().saturating_mul(transfer.streams.into());
        Self { levels: loss_delay_steps(transfer), spacing, arrivals: transfer.arrivals }
    }

    /// Returns the probability that the delay of a message is at most `x` ns.
    fn cdf(&self, x: u64) -> f64 {
        match self.arrivals {
            Arrivals::Periodic => self.cdf_periodic(x),
            Arrivals::Poisson => self.cdf_poisson(x),
        }
    }

    /// Returns the probability for messages at equal intervals `s`: the product of `F(x + i s)` over all `i >= 0`,
    /// where `F` is the distribution of one packet's `X`. `F` is constant between levels, so equal factors are counted
    /// and raised to a power.
    fn cdf_periodic(&self, x: u64) -> f64 {
        let mut counted = 0;
        let mut log = 0.0;
        for LossDelayStep { delay, reached } in &self.levels {
            let messages = delay.saturating_sub(x).div_ceil(self.spacing);
            if messages > counted {
                log += (messages - counted) as f64 * (-reached).ln_1p();
            }
            counted = messages;
        }
        log.exp()
    }

    /// Returns the probability for messages as a Poisson process: `F(x) exp(-mu * integral of 1 - F from x)`, where
    /// `mu` is the message rate of a stream. The losses for which messages still wait are a Poisson process, too.
    fn cdf_poisson(&self, x: u64) -> f64 {
        let (mut below, mut integral, mut lost) = (0, 0.0, None);
        for LossDelayStep { delay, reached } in &self.levels {
            integral += reached * (delay - x.clamp(below, *delay)) as f64;
            below = *delay;
            if x < *delay && lost.is_none() {
                lost = Some(*reached);
            }
        }
        (1.0 - lost.unwrap_or(0.0)) * (-integral / self.spacing as f64).exp()
    }

    /// Returns delays in ascending order, between which the distribution is constant or nearly so.
    fn values(&self) -> Vec<u64> {
        // The distribution has steps only at delays that differ from a level by a whole number of spacings, so every
        // step has the remainder of a level.
        let remainders: BTreeSet<u64> = self.levels.iter().map(|level| level.delay % self.spacing).collect();
        let mut values = vec![0];
        let mut below = 0;
        for LossDelayStep { delay, .. } in &self.levels {
            let parts = (MIN_PARTS * (delay - below)).div_ceil(*delay);
            let steps = (delay - below) / self.spacing * remainders.len() as u64;
            if self.arrivals == Arrivals::Poisson || steps > parts {
                values.extend((1..=parts).map(|part| below + (delay - below) * part / parts));
            } else {
                for remainder in &remainders {
                    let first = (below + 1).saturating_sub(*remainder).div_ceil(self.spacing);
                    let step = |i: u64| remainder.checked_add(i.checked_mul(self.spacing)?);
                    values.extend((first..).map_while(step).take_while(|step| step <= delay));
                }
            }
            below = *delay;
        }
        values.sort_unstable();
        values.dedup();
        values
    }

    /// Approximates the distribution by single delays, each with its probability: a jump of the distribution at its
    /// position, the probability between two values at their middle.
    fn atoms(&self) -> Vec<(u64, f64)> {
        let (mut below, mut reached) = (0u64, 0.0);
        let mut atoms = Vec::new();
        for value in self.values() {
            let (before, cdf) = (value.checked_sub(1).map_or(0.0, |x| self.cdf(x)), self.cdf(value));
            for (at, upto) in [(below.midpoint(value), before), (value, cdf)] {
                if upto > reached {
                    atoms.push((at, upto - reached));
                    reached = upto;
                }
            }
            below = value;
        }
        atoms
    }

    /// Returns the mean delay in ns.
    fn mean(&self) -> f64 {
        self.atoms().iter().map(|(value, probability)| *value as f64 * probability).sum()
    }

    /// Returns the probability that the sum of two independent delays exceeds `x` ns.
    fn sum_exceeds(&self, x: u64) -> f64 {
        let atoms = self.atoms();
        let within = atoms.iter().take_while(|(value, _)| *value <= x);
        let not_above: f64 = within.map(|(value, probability)| probability * self.cdf(x - value)).sum();
        (1.0 - not_above).clamp(0.0, 1.0)
    }
}

impl Transfer {
    /// Returns the mean response time in ms: a round trip plus the mean resequencing delays of both directions.
    pub fn mean_response(&self) -> f64 {
        (self.round_trip() as f64 + 2.0 * DelayDistribution::new(self).mean()) / 1e6
    }

    /// Returns the share of the transactions that take longer than `response`.
    pub fn ccdf(&self, response: Duration) -> f64 {
        match response.as_nanos().checked_sub(self.round_trip()) {
            Some(beyond) => DelayDistribution::new(self).sum_exceeds(beyond),
            None => 1.0,
        }
    }

    /// Returns the share of the transactions that take longer than a round trip: the height of the CCDF's
    /// plateau.
    pub fn share_delayed(&self) -> f64 {
        1.0 - DelayDistribution::new(self).cdf(0).powi(2)
    }
}
