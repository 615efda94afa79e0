//! Round-trip times and the retransmission timeout. RFC 6298.

use hol_base::Duration;
use hol_wire::tcp::SeqNum;

use crate::{Config, RttEstimator};

/// The retransmission timeout if the handshake gave no round-trip sample. RFC 6298 section 5.7.
const FALLBACK_TIMEOUT: Duration = Duration::from_secs(3);

/// The estimate of the round-trip time, and the retransmission timeout (RTO).
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    estimator: RttEstimator,
    variance_floor: Duration,
    rto_min: Duration,
    rto_max: Duration,
    granularity: Duration,
    /// SRTT in eighths of a nanosecond, so that the gain of 1/8 causes no rounding.
    srtt8: Option<u64>,
    /// The smoothed mean deviation, in quarters of a nanosecond: RTTVAR as in RFC 6298.
    deviation4: u64,
    /// Linux's RTTVAR in nanoseconds: four times the largest deviation of each window.
    variance: u64,
    greatest: u64,
    window_end: SeqNum,
    /// The minimum round-trip time of the connection.
    min: Option<Duration>,
    rto: Duration,
}

impl Rtt {
    /// Creates the estimate before the first sample.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            estimator: config.rtt_estimator,
            variance_floor: config.rto_variance_floor,
            rto_min: config.rto_min,
            rto_max: config.rto_max,
            granularity: config.clock_granularity,
            srtt8: None,
            deviation4: 0,
            variance: 0,
            greatest: 0,
            window_end: SeqNum::default(),
            min: None,
            rto: config.rto_initial,
        }
    }

    /// Takes a round-trip sample. `una` and `nxt` (SND.UNA and SND.NXT) delimit the windows in which Linux
    /// measures the deviation.
    pub(crate) fn sample(&mut self, rtt: Duration, una: SeqNum, nxt: SeqNum) {
        let sample = rtt.as_nanos();
        match self.srtt8 {
            None => self.take_first_sample(sample, nxt),
            Some(srtt8) => {
                let error = sample as i64 - (srtt8 >> 3) as i64;
                self.srtt8 = Some((srtt8 as i64 + error).max(1) as u64);
                match self.estimator {
                    RttEstimator::Rfc6298 => self.update_deviation(error.abs()),
                    RttEstimator::Linux => self.update_deviation_as_linux(error, una, nxt),
                }
            }
        }
        self.reset_backoff();
    }

    /// Takes the first sample: SRTT = R, RTTVAR = R/2. RFC 6298 section 2.2.
    fn take_first_sample(&mut self, sample: u64, nxt: SeqNum) {
        self.srtt8 = Some((sample << 3).max(1));
        self.deviation4 = sample * 2;
        self.variance = self.deviation4.max(self.variance_floor.as_nanos());
        self.greatest = self.variance;
        self.window_end = nxt;
    }

    /// Updates the mean deviation: RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|. RFC 6298 section 2.3.
    fn update_deviation(&mut self, error: i64) {
        self.deviation4 = (self.deviation4 as i64 + error - (self.deviation4 >> 2) as i64) as u64;
    }

    /// Updates the deviation as Linux does. A falling round-trip time must not raise the variance much (RFC 3522),
    /// so the gain is then 1/32. The variance that is used is the largest of a window, and decays by a quarter.
    fn update_deviation_as_linux(&mut self, error: i64, una: SeqNum, nxt: SeqNum) {
        let mut change = error.abs() - (self.deviation4 >> 2) as i64;
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.deviation4 = (self.deviation4 as i64 + change) as u64;
        if self.deviation4 > self.greatest {
            self.greatest = self.deviation4;
            self.variance = self.variance.max(self.greatest);
        }
        if una.after(self.window_end) {
            self.variance -= self.variance.saturating_sub(self.greatest) / 4;
            self.window_end = nxt;
            self.greatest = self.variance_floor.as_nanos();
        }
    }

    /// Updates the minimum round-trip time. `rtt` may differ from the sample that is used for RTO.
    pub(crate) fn observe_min(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// Computes RTO from SRTT and RTTVAR. This ends the back-off. RFC 6298 section 5, last paragraph.
    pub(crate) fn reset_backoff(&mut self) {
        let Some(srtt) = self.srtt() else { return };
        let variance = match self.estimator {
            RttEstimator::Rfc6298 => Duration::from_nanos(self.deviation4).max(self.variance_floor),
            RttEstimator::Linux => Duration::from_nanos(self.variance),
        };
        let rto = (srtt + variance).round_up_to(self.granularity);
        self.rto = rto.clamp(self.rto_min, self.rto_max);
    }

    /// Doubles RTO after a timeout. RFC 6298 section 5.5.
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.rto_max);
    }

    /// Sets RTO to 3 s if the handshake has completed without a round-trip sample. RFC 6298 section 5.7.
    pub(crate) fn on_established(&mut self) {
        if self.srtt8.is_none() {
            self.rto = FALLBACK_TIMEOUT.clamp(self.rto_min, self.rto_max);
        }
    }

    /// Returns SRTT, the smoothed round-trip time; `None` before the first sample.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.srtt8.map(|srtt8| Duration::from_nanos(srtt8 >> 3))
    }

    /// Returns the minimum round-trip time of the connection.
    pub(crate) fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Returns RTO, including its back-off.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn feed(rtt: &mut Rtt, samples: &[u64]) {
        for sample in samples {
            rtt.sample(MS(*sample), SeqNum(0), SeqNum(1));
        }
    }

    #[test]
    fn the_first_sample_makes_rto_three_round_trips() {
        // RFC 6298 section 2.2.
        let mut rtt = Rtt::new(&Config::rfc9293());
        assert_eq!(rtt.rto(), MS(1000));
        feed(&mut rtt, &[400]);
        assert_eq!(rtt.rto(), MS(1200));
    }

    #[test]
    fn rttvar_is_smoothed_with_a_quarter() {
        // RFC 6298 section 2.3: RTTVAR = 3/4 200 + 1/4 80 = 170, SRTT = 7/8 400 + 1/8 480 = 410.
        let mut rtt = Rtt::new(&Config::rfc9293());
        feed(&mut rtt, &[400, 480]);
        assert_eq!(rtt.srtt(), Some(MS(410)));
        assert_eq!(rtt.rto(), MS(410 + 4 * 170));
    }

    #[test]
    fn rfc_rto_is_at_least_a_second() {
        // RFC 6298 section 2.4.
        let mut rtt = Rtt::new(&Config::rfc9293());
        feed(&mut rtt, &[20, 20, 20, 20]);
        assert_eq!(rtt.rto(), MS(1000));
    }

    #[test]
    fn linux_rto_is_srtt_plus_the_minimum_variance() {
        let mut rtt = Rtt::new(&Config::linux_6_12());
        feed(&mut rtt, &[20, 20, 20]);
        assert_eq!(rtt.rto(), MS(220));
    }

    #[test]
    fn rto_is_rounded_up_to_the_tick() {
        let mut rtt = Rtt::new(&Config::linux_6_12());
        feed(&mut rtt, &[21]);
        assert_eq!(rtt.rto(), MS(224));
    }

    #[test]
    fn back_off_doubles_and_a_sample_ends_it() {
        // RFC 6298 section 5: rule 5.5, and the remark that a new measurement may reduce the RTO again.
        let mut rtt = Rtt::new(&Config::linux_6_12());
        feed(&mut rtt, &[20]);
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), MS(880));
        feed(&mut rtt, &[20]);
        assert_eq!(rtt.rto(), MS(220));
    }

    #[test]
    fn a_handshake_without_a_sample_leaves_three_seconds() {
        // RFC 6298 section 5.7.
        let mut rtt = Rtt::new(&Config::rfc9293());
        rtt.on_established();
        assert_eq!(rtt.rto(), MS(3000));
    }
}
