//! Delay and jitter: the time from the transmitter to arrival.

use std::sync::Arc;

use hol_base::{Duration, Rng, Seed, Time};

use crate::distribution::{Distribution, UNITS_PER_JITTER};
use crate::spec::Settings;

/// A constant or varying delay; packets keep their order.
#[derive(Debug)]
pub(crate) struct Propagation {
    delay: Duration,
    jitter: Duration,
    jitter_distribution: JitterDistribution,
    rng: Rng,
    /// The latest arrival so far; later packets do not arrive before it.
    latest_arrival: Time,
}

impl Propagation {
    /// Creates a delay whose jitter derives from `seed`.
    pub(crate) fn new(settings: &Settings, seed: Seed) -> Self {
        let Settings { delay, jitter, .. } = *settings;
        Self {
            delay,
            jitter,
            jitter_distribution: JitterDistribution::from_settings(settings),
            rng: seed.rng(),
            latest_arrival: Time::ZERO,
        }
    }

    /// Creates a propagation without delay.
    pub(crate) fn none() -> Self {
        let settings = Settings { delay: Duration::ZERO, jitter: Duration::ZERO, ..Settings::default() };
        Self::new(&settings, Seed(0))
    }

    /// Returns the arrival of a packet that left at `departs`; later packets will not arrive before it.
    #[inline]
    pub(crate) fn arrival(&mut self, departs: Time) -> Time {
        self.latest_arrival = self.reordered_arrival(departs);
        self.latest_arrival
    }

    /// Returns the arrival of a packet that left at `departs` and that later packets may overtake.
    pub(crate) fn reordered_arrival(&mut self, departs: Time) -> Time {
        let way = if self.jitter == Duration::ZERO { self.delay } else { self.draw_delay() };
        self.latest_arrival.max(departs + way)
    }

    /// Returns a delay with jitter, at least zero.
    fn draw_delay(&mut self) -> Duration {
        let Self { delay, jitter, jitter_distribution, rng, .. } = self;
        let (delay, jitter) = (*delay, *jitter);
        match jitter_distribution {
            JitterDistribution::Uniform { correlation, last } => {
                let new = rng.below(2 * jitter.as_nanos() + 1) as f64;
                let variation = *correlation * last.unwrap_or(new) + (1.0 - *correlation) * new;
                *last = Some(variation);
                delay.saturating_sub(jitter) + Duration::from_nanos(variation.round() as u64)
            }
            JitterDistribution::Table(numbers) => {
                let number = i64::from(numbers[rng.below(numbers.len() as u64) as usize]);
                shift_delay(
                    delay,
                    (i128::from(jitter.as_nanos()) * i128::from(number) / i128::from(UNITS_PER_JITTER))
                        as i64,
                )
            }
            JitterDistribution::Normal { correlation, last } => {
                let new = rng.normal();
                let rest = (1.0 - *correlation * *correlation).sqrt();
                let variation = last.map_or(new, |last| *correlation * last + rest * new);
                *last = Some(variation);
                shift_delay(delay, (variation * jitter.as_nanos() as f64).round() as i64)
            }
        }
    }

    /// Updates the latest arrival when the arrival of a packet moves from one time to another.
    pub(crate) fn move_arrival(&mut self, from: Time, to: Time) {
        if self.latest_arrival == from {
            self.latest_arrival = to;
        }
    }

    /// Changes the delay from the next packet on.
    pub(crate) fn change(&mut self, delay: Duration) {
        self.delay = delay;
    }
}

/// How the jitter of each packet is drawn.
#[derive(Debug)]
enum JitterDistribution {
    /// The jitter is uniform. With a correlation ρ the delay is ρ times the last value plus 1 − ρ times a new one, as
    /// in tc-netem(8): the mean stays, the variance is multiplied by (1 − ρ)/(1 + ρ), and packets k apart have the
    /// correlation ρ to the power of k.
    Uniform {
        correlation: f64,
        /// The delay of the last packet beyond the minimum delay, in ns.
        last: Option<f64>,
    },
    /// The jitter is drawn from a table, in units of the jitter divided by [`UNITS_PER_JITTER`].
    Table(Arc<[i16]>),
    /// The jitter is a first-order autoregressive process: each value is normally distributed, and packets k apart have
    /// the correlation ρ to the power of k.
    Normal {
        correlation: f64,
        /// The deviation of the last packet, in standard deviations.
        last: Option<f64>,
    },
}

impl JitterDistribution {
    fn from_settings(settings: &Settings) -> Self {
        let correlation = settings.jitter_correlation.value();
        match settings.jitter_distribution.table() {
            Some(_) if settings.jitter_distribution == Distribution::Normal && correlation > 0.0 => {
                Self::Normal { correlation, last: None }
            }
            Some(numbers) => Self::Table(numbers),
            None => Self::Uniform { correlation, last: None },
        }
    }
}

/// Adds a signed number of ns to a delay.
fn shift_delay(delay: Duration, nanos: i64) -> Duration {
    if nanos < 0 {
        delay.saturating_sub(Duration::from_nanos(nanos.unsigned_abs()))
    } else {
        delay + Duration::from_nanos(nanos.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use hol_base::Ratio;

    use super::*;

    fn propagation(delay: Duration, jitter: Duration, correlation: Ratio, seed: Seed) -> Propagation {
        let settings = Settings { delay, jitter, jitter_correlation: correlation, ..Settings::default() };
        Propagation::new(&settings, seed)
    }

    /// Returns the delays beyond the mean, in jitters, of packets so far apart that they keep their order
    /// anyway.
    fn delays(distribution: Distribution, correlation: f64, count: u64) -> Vec<f64> {
        let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(5));
        let jitter_correlation = Ratio::new(correlation).unwrap();
        let settings = Settings {
            delay,
            jitter,
            jitter_correlation,
            jitter_distribution: distribution,
            ..Settings::default()
        };
        let mut line = Propagation::new(&settings, Seed(1));
        let departures = (0..count).map(|packet| Time::from_millis(packet * 200));
        departures
            .map(|departs| (line.arrival(departs).since(departs).as_millis_f64() - 50.0) / 5.0)
            .collect()
    }

    /// Returns the mean, and the covariance of values `lag` apart.
    fn moments(delays: &[f64], lag: usize) -> (f64, f64) {
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let products = delays.iter().zip(&delays[lag..]).map(|(one, other)| (one - mean) * (other - mean));
        (mean, products.sum::<f64>() / (delays.len() - lag) as f64)
    }

    /// Returns Kolmogorov's distance between the delays of packets and the table, times the root of their
    /// number. It exceeds 1.95 once in a thousand times (Smirnov 1948).
    fn distance(mut delays: Vec<f64>, table: &[i16]) -> f64 {
        delays.sort_by(f64::total_cmp);
        let value = |place: usize| f64::from(table[place]) / UNITS_PER_JITTER as f64;
        let below = |place: usize| {
            delays.partition_point(|way| *way < value(place) - 1e-6) as f64 / delays.len() as f64
        };
        let worst = (0..table.len())
            .filter(|place| *place == 0 || table[*place] != table[place - 1])
            .map(|place| (below(place) - place as f64 / table.len() as f64).abs())
            .fold(0.0, f64::max);
        worst * (delays.len() as f64).sqrt()
    }

    #[test]
    fn delays_follow_the_distribution_table() {
        let own = Distribution::Table([-8192, -8192, 0, 16384].into());
        for distribution in [Distribution::Normal, Distribution::Pareto, Distribution::ParetoNormal, own] {
            let table = distribution.table().unwrap();
            let found = distance(delays(distribution.clone(), 0.0, 50_000), &table);
            assert!(found < 1.95, "{distribution}: {found}");
            let other = distance(delays(Distribution::Uniform, 0.0, 50_000), &table);
            assert!(other > 10.0, "the test distinguishes them: {other}");
        }
    }

    #[test]
    fn normal_jitter_has_the_requested_correlation_and_the_full_variance() {
        for rho in [0.25, 0.5, 0.9] {
            let n = 200_000;
            let delays = delays(Distribution::Normal, rho, n);
            let (mean, variance) = moments(&delays, 0);
            // A sum of n has (1 + ρ)/(1 − ρ) times the variance of one without memory.
            let memory = ((1.0 + rho) / (1.0 - rho) / n as f64).sqrt();
            assert!(
                mean.abs() < 4.0 * memory && (variance - 1.0).abs() < 8.0 * memory,
                "{rho}: {mean} {variance}"
            );
            for lag in 1..4 {
                let found = moments(&delays, lag).1 / variance;
                assert!((found - rho.powi(lag as i32)).abs() < 4.0 * memory, "{rho}, {lag} apart: {found}");
            }
        }
    }

    #[test]
    fn no_packet_arrives_before_it_departs() {
        let settings = Settings {
            delay: Duration::from_millis(5),
            jitter: Duration::from_millis(5),
            jitter_distribution: Distribution::Normal,
            ..Settings::default()
        };
        let mut line = Propagation::new(&settings, Seed(1));
        let departures = (0..10_000).map(|packet| Time::from_millis(packet * 100));
        let at_once = departures.filter(|departs| line.arrival(*departs) == *departs).count();
        // A normal one is below −1 with the probability 0.1587.
        assert!((1587.0 - at_once as f64).abs() < 4.0 * (1587.0_f64 * 0.8413).sqrt(), "{at_once}");
    }

    #[test]
    fn without_jitter_the_delay_is_exact() {
        let mut line = propagation(Duration::from_millis(10), Duration::ZERO, Ratio::ZERO, Seed(1));
        assert_eq!(line.arrival(Time::from_millis(3)), Time::from_millis(13));
    }

    #[test]
    fn jitter_is_uniform_and_keeps_the_order() {
        let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(4));
        let mut line = propagation(delay, jitter, Ratio::ZERO, Seed(1));
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

        let mut dense = propagation(delay, jitter, Ratio::ZERO, Seed(2));
        let arrivals: Vec<Time> = (0..1000).map(|k| dense.arrival(Time::from_nanos(k * 1000))).collect();
        assert!(arrivals.is_sorted());
    }

    #[test]
    fn correlated_jitter_has_the_mean_and_correlation_of_its_recursion() {
        let (delay, jitter) = (Duration::from_millis(50), Duration::from_millis(25));
        for rho in [0.0, 0.25, 0.5, 0.9] {
            let mut line = propagation(delay, jitter, Ratio::new(rho).unwrap(), Seed(1));
            // Far enough apart that order need not be enforced; the beginning is forgotten.
            let way = |k: u64| {
                line.arrival(Time::from_millis(k * 100)).since(Time::from_millis(k * 100)).as_millis_f64()
            };
            let delays: Vec<f64> = (0..100_100).map(way).skip(100).collect();
            let mean = delays.iter().sum::<f64>() / delays.len() as f64;
            let moment = |lag: usize| {
                let products =
                    delays.iter().zip(&delays[lag..]).map(|(one, other)| (one - mean) * (other - mean));
                products.sum::<f64>() / (delays.len() - lag) as f64
            };
            // A uniform one of ± 25 ms has the variance 50²/12.
            let variance = 50.0 * 50.0 / 12.0 * (1.0 - rho) / (1.0 + rho);
            // The variance of a mean of n is (1 + ρ)/(1 − ρ) times the variance divided by n: the same for
            // every ρ.
            assert!((mean - 50.0).abs() < 4.0 * (50.0 * 50.0 / 12.0 / 1e5_f64).sqrt(), "{rho}: {mean}");
            assert!((moment(0) / variance - 1.0).abs() < 0.03, "{rho}: {}", moment(0));
            for lag in [1, 2] {
                let (found, due) = (moment(lag) / moment(0), rho.powi(lag as i32));
                assert!((found - due).abs() < 0.015, "{rho}: {found} between those {lag} apart");
            }
        }
    }
}
