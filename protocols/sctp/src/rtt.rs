//! The round-trip time estimate and the retransmission timeout. RFC 9260 section 6.3.1.

use hol_base::Duration;

use crate::Config;
use crate::clock::Clock;

/// The estimate of the round-trip time in whole ticks. A coarse clock therefore also rounds the averages.
#[derive(Debug, Clone)]
pub(crate) struct RttEstimator {
    clock: Clock,
    srtt: Option<u64>,
    /// The last measurement in ticks.
    last: Option<u64>,
    rttvar: u64,
    rttvar_min: u64,
    rto: u64,
    rto_min: u64,
    rto_max: u64,
}

impl RttEstimator {
    pub(crate) fn new(config: &Config, clock: Clock) -> Self {
        Self {
            clock,
            srtt: None,
            last: None,
            rttvar: 0,
            rttvar_min: clock.ticks(config.rttvar_min).max(1),
            rto: clock.ticks(config.rto_initial),
            rto_min: clock.ticks(config.rto_min),
            rto_max: clock.ticks(config.rto_max),
        }
    }

    /// Processes a measurement, in ticks, by rules C2, C3, C6, C7 and G1 of RFC 9260 section 6.3.1. Ends any
    /// back-off.
    pub(crate) fn add_sample(&mut self, rtt: u64) {
        self.last = Some(rtt);
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                self.rttvar = self.rttvar - self.rttvar / 4 + srtt.abs_diff(rtt) / 4;
                self.srtt = Some(srtt - srtt / 8 + rtt / 8);
            }
        }
        self.rttvar = self.rttvar.max(self.rttvar_min);
        let rto = self.srtt.unwrap_or(rtt) + 4 * self.rttvar;
        self.rto = rto.max(self.rto_min).min(self.rto_max);
    }

    /// Doubles the retransmission timeout, by rule E2 of RFC 9260 section 6.3.3.
    pub(crate) fn back_off(&mut self) {
        self.rto = (2 * self.rto).min(self.rto_max);
    }

    /// Returns the last measured round-trip time.
    pub(crate) fn last(&self) -> Option<Duration> {
        self.last.map(|ticks| self.clock.span(ticks))
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt.map(|ticks| self.clock.span(ticks))
    }

    pub(crate) fn rto(&self) -> Duration {
        self.clock.span(self.rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn estimator() -> RttEstimator {
        RttEstimator::new(&fixtures::rfc(), Clock::new(Duration::from_millis(1), false))
    }

    #[test]
    fn the_first_measurement_sets_the_variance_to_half() {
        // RFC 9260 section 6.3.1 C2.
        let mut rtt = estimator();
        rtt.add_sample(800);
        assert_eq!(rtt.rto(), Duration::from_millis(800 + 4 * 400));
    }

    #[test]
    fn srtt_gains_an_eighth_and_rttvar_a_quarter() {
        // RFC 9260 section 6.3.1 C3: RTTVAR = 3/4 400 + 1/4 160 = 340, SRTT = 7/8 800 + 1/8 960 = 820.
        let mut rtt = estimator();
        rtt.add_sample(800);
        rtt.add_sample(960);
        assert_eq!(rtt.srtt(), Some(Duration::from_millis(820)));
        assert_eq!(rtt.rto(), Duration::from_millis(820 + 4 * 340));
    }

    #[test]
    fn the_timeout_stays_between_its_bounds() {
        // RFC 9260 section 6.3.1 C6 and C7.
        let mut rtt = estimator();
        rtt.add_sample(20);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        for _ in 0..10 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Duration::from_secs(60));
    }

    #[test]
    fn the_variance_has_a_lower_bound() {
        // RFC 9260 section 6.3.1 G1; the bound of dcSCTP is far above a tick.
        let rttvar_min = Duration::from_millis(300);
        let mut rtt = RttEstimator::new(
            &Config { rttvar_min, ..fixtures::rfc() },
            Clock::new(Duration::from_millis(1), false),
        );
        rtt.add_sample(100);
        assert_eq!(rtt.rto(), Duration::from_millis(100 + 4 * 300));
    }

    #[test]
    fn a_measurement_ends_the_back_off() {
        // RFC 9260 section 6.3.3.
        let mut rtt = estimator();
        rtt.add_sample(20);
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        rtt.add_sample(20);
        assert_eq!(rtt.rto(), Duration::from_secs(1));
    }
}
