//! Mean waiting times in a queue with one server and Poisson arrivals.

use hol_base::Duration;

/// Returns the mean wait in ms before service begins (Pollaczek–Khinchine; Kleinrock, Queueing Systems I,
/// 1975).
///
/// `variation` is the squared coefficient of variation of the service time. `None` unless `utilisation` is
/// at least 0 and below 1.
pub fn wait_mg1(utilisation: f64, service: Duration, variation: f64) -> Option<f64> {
    let stable = (0.0..1.0).contains(&utilisation);
    stable.then(|| utilisation / (1.0 - utilisation) * (1.0 + variation) / 2.0 * service.as_millis_f64())
}

/// Returns the mean wait in ms with constant service times: a link and packets of one size.
pub fn wait_md1(utilisation: f64, service: Duration) -> Option<f64> {
    wait_mg1(utilisation, service, 0.0)
}

/// Returns the mean wait in ms with exponential service times.
pub fn wait_mm1(utilisation: f64, service: Duration) -> Option<f64> {
    wait_mg1(utilisation, service, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_service_halves_the_wait() {
        let service = Duration::from_millis(10);
        assert_eq!(wait_mm1(0.5, service), Some(10.0));
        assert_eq!(wait_md1(0.5, service), Some(5.0));
        assert_eq!(wait_md1(0.0, service), Some(0.0));
        assert_eq!(wait_md1(1.0, service), None);
    }
}
