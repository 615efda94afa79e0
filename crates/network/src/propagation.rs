//! Delay and jitter: how long a packet is on its way after it left the transmitter.

use hol_base::{Duration, Ratio, Rng, Seed, Time};

/// A constant delay, or one that varies uniformly around it; either way packets keep their order.
///
/// With a correlation ρ the variation is ρ times the last one and 1 − ρ times a new one, as tc-netem(8) has it: the mean stays,
/// the variance is (1 − ρ)/(1 + ρ) of that without, and between packets k apart the correlation is ρ to the power of k.
#[derive(Debug)]
pub(crate) struct Propagation {
    delay: Duration,
    jitter: Duration,
    correlation: f64,
    /// The last variation, in ns beyond the least delay.
    last: Option<f64>,
    rng: Rng,
    /// The latest arrival so far: nobody overtakes.
    latest: Time,
}

impl Propagation {
    pub(crate) fn new(delay: Duration, jitter: Duration, correlation: Ratio, seed: Seed) -> Self {
        let correlation = correlation.value();
        Self { delay, jitter, correlation, last: None, rng: seed.rng(), latest: Time::ZERO }
    }

    /// When a packet arrives that left at `departs`; later ones will not arrive before it.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Time) -> Time {
        self.latest = self.overtaken(departs);
        self.latest
    }

    /// When a packet arrives that left at `departs`, if later ones may overtake it.
    pub(crate) fn overtaken(&mut self, departs: Time) -> Time {
        let earliest = departs + self.delay.saturating_sub(self.jitter);
        self.latest.max(earliest + self.variation())
    }

    fn variation(&mut self) -> Duration {
        if self.jitter == Duration::ZERO {
            return Duration::ZERO;
        }
        let new = self.rng.below(2 * self.jitter.as_nanos() + 1) as f64;
        let variation = self.correlation * self.last.unwrap_or(new) + (1.0 - self.correlation) * new;
        self.last = Some(variation);
        Duration::from_nanos(variation.round() as u64)
    }

    /// Another delay from the next packet on.
    pub(crate) fn change(&mut self, delay: Duration) {
        self.delay = delay;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_jitter_the_delay_is_exact() {
        let mut line = Propagation::new(Duration::from_millis(10), Duration::ZERO, Ratio::ZERO, Seed(1));
        assert_eq!(line.arrival(Time::from_millis(3)), Time::from_millis(13));
    }

    #[test]
    fn jitter_is_uniform_and_keeps_the_order() {
        let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(4));
        let mut line = Propagation::new(delay, jitter, Ratio::ZERO, Seed(1));
        let (mut last, mut total) = (Time::ZERO, 0.0);
        let n = 20_000u32;
        for packet in 0..n {
            // Far enough apart that order need not be enforced.
            let departs = Time::from_millis(u64::from(packet) * 10);
            let arrives = line.arrival(departs);
            let way = arrives.since(departs);
            assert!(way.abs_diff(delay) <= jitter && arrives >= last, "{way}");
            total += way.as_millis_f64();
            last = arrives;
        }
        assert!((total / f64::from(n) - 10.0).abs() < 0.1);

        let mut dense = Propagation::new(delay, jitter, Ratio::ZERO, Seed(2));
        let arrivals: Vec<Time> = (0..1000).map(|k| dense.arrival(Time::from_nanos(k * 1000))).collect();
        assert!(arrivals.is_sorted());
    }

    #[test]
    fn correlated_jitter_has_the_mean_spread_and_memory_of_its_recursion() {
        let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(25));
        for rho in [0.0, 0.25, 0.5, 0.9] {
            let mut line = Propagation::new(delay, jitter, Ratio::new(rho).unwrap(), Seed(1));
            // Far enough apart that order need not be enforced; the beginning is forgotten.
            let way = |k: u64| {
                line.arrival(Time::from_millis(k * 100)).since(Time::from_millis(k * 100)).as_millis_f64()
            };
            let ways: Vec<f64> = (0..100_100).map(way).skip(100).collect();
            let mean = ways.iter().sum::<f64>() / ways.len() as f64;
            let moment = |lag: usize| {
                let products =
                    ways.iter().zip(&ways[lag..]).map(|(one, other)| (one - mean) * (other - mean));
                products.sum::<f64>() / (ways.len() - lag) as f64
            };
            // A uniform one of ± 25 ms has the variance 50²/12.
            let variance = 50.0 * 50.0 / 12.0 * (1.0 - rho) / (1.0 + rho);
            // That of the mean of n is (1 + ρ)/(1 − ρ) of the variance over n: for every ρ the same.
            assert!((mean - 50.0).abs() < 4.0 * (50.0 * 50.0 / 12.0 / 1e5_f64).sqrt(), "{rho}: {mean}");
            assert!((moment(0) / variance - 1.0).abs() < 0.03, "{rho}: {}", moment(0));
            for lag in [1, 2] {
                let (found, due) = (moment(lag) / moment(0), rho.powi(lag as i32));
                assert!((found - due).abs() < 0.015, "{rho}: {found} between those {lag} apart");
            }
        }
    }
}
