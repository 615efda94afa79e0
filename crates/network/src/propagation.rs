//! Delay and jitter: how long a packet is on its way after it left the transmitter.

use hol_base::{Duration, Rng, Seed, Time};

/// A constant delay, or one that varies uniformly around it; either way packets keep their order.
#[derive(Debug)]
pub(crate) struct Propagation {
    delay: Duration,
    jitter: Duration,
    rng: Rng,
    /// The latest arrival so far: nobody overtakes.
    latest: Time,
}

impl Propagation {
    pub(crate) fn new(delay: Duration, jitter: Duration, seed: Seed) -> Self {
        Self { delay, jitter, rng: seed.rng(), latest: Time::ZERO }
    }

    /// When a packet arrives that left at `departs`; later ones will not arrive before it.
    pub(crate) fn arrival(&mut self, departs: Time) -> Time {
        self.latest = self.overtaken(departs);
        self.latest
    }

    /// When a packet arrives that left at `departs`, if later ones may overtake it.
    pub(crate) fn overtaken(&mut self, departs: Time) -> Time {
        let earliest = departs + self.delay.saturating_sub(self.jitter);
        let variation = match self.jitter.as_nanos() {
            0 => 0,
            jitter => self.rng.below(2 * jitter + 1),
        };
        self.latest.max(earliest + Duration::from_nanos(variation))
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
        let mut line = Propagation::new(Duration::from_millis(10), Duration::ZERO, Seed(1));
        assert_eq!(line.arrival(Time::from_millis(3)), Time::from_millis(13));
    }

    #[test]
    fn jitter_is_uniform_and_keeps_the_order() {
        let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(4));
        let mut line = Propagation::new(delay, jitter, Seed(1));
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

        let mut dense = Propagation::new(delay, jitter, Seed(2));
        let arrivals: Vec<Time> = (0..1000).map(|k| dense.arrival(Time::from_nanos(k * 1000))).collect();
        assert!(arrivals.is_sorted());
    }
}
