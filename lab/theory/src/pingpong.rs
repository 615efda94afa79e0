//! The response time with one message outstanding: no later packet reveals a loss, so every loss costs a
//! timeout.

use hol_base::{Duration, Ratio};

/// Returns the mean time in ms until the reply to a request arrives, if both are retransmitted after timeouts that
/// double each time.
///
/// It is `RTT + 2 RTO p / (1 - 2 p)`; `None` for a loss of 50 % and more, where the mean is infinite without a maximum
/// RTO. Tail loss probes do not change it: with one packet in flight Linux's probe timer is not shorter than the RTO.
pub fn mean_response_time(round_trip: Duration, rto: Duration, loss: Ratio) -> Option<f64> {
    let p = loss.value();
    (p < 0.5).then(|| round_trip.as_millis_f64() + 2.0 * rto.as_millis_f64() * p / (1.0 - 2.0 * p))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Pfuetzenreuter 2004, 10 Mbit/s and 1 % loss: 2.05, 1.19, 1.09, 1.007 at 5, 30, 100, 300 ms one way.
    #[test]
    fn minimum_rto_explains_the_ping_pong_times_of_2004() {
        let loss = Ratio::new(0.01).unwrap();
        for (one_way, measured) in [(5, 2.05), (30, 1.19), (100, 1.09), (300, 1.007)] {
            let round_trip = Duration::from_millis(2 * one_way);
            let sctp = mean_response_time(round_trip, Duration::from_secs(1), loss).unwrap();
            let tcp = mean_response_time(round_trip, round_trip + Duration::from_millis(200), loss).unwrap();
            assert!((sctp / tcp / measured - 1.0).abs() < 0.05, "{} at {one_way} ms", sctp / tcp);
        }
    }

    #[test]
    fn mean_is_a_round_trip_without_loss_and_infinite_at_half_loss() {
        let (round_trip, rto) = (Duration::from_millis(20), Duration::from_secs(1));
        assert_eq!(mean_response_time(round_trip, rto, Ratio::ZERO), Some(20.0));
        assert_eq!(mean_response_time(round_trip, rto, Ratio::new(0.5).unwrap()), None);
    }
}
