//! Delivery rate samples, one per acknowledgment: draft-cheng-iccrg-delivery-rate-estimation-00, as in Linux'
//! tcp_rate.c.

use hol_base::{Duration, Time};

/// The connection's delivery state when a segment was sent: P of draft-cheng-iccrg-delivery-rate-estimation-00,
/// section 3.1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryAtSend {
    /// Number of units that had been delivered when the segment was sent.
    delivered: u32,
    /// When the latest delivery before the segment was sent occurred.
    delivered_at: Time,
    /// When the segment of the latest delivery was sent or, if nothing was in flight, when this segment was sent.
    first_sent: Time,
    /// Whether the application, not the network, limited sending.
    pub(crate) application_limited: bool,
    /// Units in flight, including this segment: P.tx_in_flight. Only BBR version 3 needs this value.
    pub(crate) in_flight: u32,
    /// Number of units considered lost before this segment was sent: P.lost.
    pub(crate) lost: u32,
}

impl DeliveryAtSend {
    /// Sets the number of units in flight, including this segment, and the number ever considered lost.
    pub(crate) fn with_counts(self, in_flight: u32, lost: u32) -> Self {
        Self { in_flight, lost, ..self }
    }
}

/// A rate sample: the amount delivered between the transmission of a segment and its acknowledgment.
/// draft-cheng-iccrg-delivery-rate-estimation-00, section 3.1.3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Number of units delivered before the segment was sent.
    pub(crate) prior_delivered: u32,
    /// Number of units delivered since the segment was sent.
    pub(crate) delivered: u32,
    /// The sending interval or the acknowledgment interval, whichever is longer.
    pub(crate) interval: Duration,
    /// Whether the application, not the network, limited sending.
    pub(crate) application_limited: bool,
    /// Number of units in flight when the segment was sent.
    pub(crate) in_flight: u32,
    /// Number of units considered lost before the segment was sent.
    pub(crate) prior_lost: u32,
}

/// The connection's delivery state: C of draft-cheng-iccrg-delivery-rate-estimation-00, section 3.1.1. Counts are
/// in units of the congestion window.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveryState {
    /// Number of units delivered so far: C.delivered.
    delivered: u32,
    /// When the latest delivery occurred: C.delivered_time.
    delivered_at: Time,
    first_sent: Time,
    /// Samples are application-limited until more than this many units have been delivered; `None` if the
    /// application does not limit sending.
    limited_until: Option<u32>,
    /// The delivery state of the most recently sent of the segments that this acknowledgment delivers.
    latest: Option<DeliveryAtSend>,
}

impl DeliveryState {
    /// Starts a connection whose handshake has delivered a SYN of one `quantum`.
    pub(crate) fn begin(now: Time, quantum: u32) -> Self {
        Self { delivered: quantum, delivered_at: now, first_sent: now, ..Self::default() }
    }

    /// Returns the number of units delivered so far.
    pub(crate) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Returns the time of the latest delivery.
    pub(crate) fn delivered_at(&self) -> Time {
        self.delivered_at
    }

    /// Returns whether the application limits sending.
    pub(crate) fn is_application_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// Handles the transmission of a segment. If nothing is outstanding, a new interval starts, so that idle time
    /// does not count. draft-cheng-iccrg-delivery-rate-estimation-00, section 3.2.
    pub(crate) fn on_segment_sent(&mut self, now: Time, outstanding: bool) -> DeliveryAtSend {
        if !outstanding {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        DeliveryAtSend {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            application_limited: self.limited_until.is_some(),
            in_flight: 0,
            lost: 0,
        }
    }

    /// Handles the delivery of a segment sent at `sent`. The most recently sent segment of an acknowledgment
    /// provides the sample. draft-cheng-iccrg-delivery-rate-estimation-00, section 3.3.
    pub(crate) fn on_segment_delivered(&mut self, departure: DeliveryAtSend, sent: Time) {
        if self.latest.is_none() || sent > self.first_sent {
            self.first_sent = sent;
            self.latest = Some(departure);
        }
    }

    /// Counts `units` as delivered, without taking a sample.
    pub(crate) fn count_delivered(&mut self, units: u32) {
        self.delivered = self.delivered.wrapping_add(units);
    }

    /// Returns the sample of an acknowledgment that delivered `units`. Returns `None` if the peer reneged, or if
    /// the interval is shorter than the minimum round trip, as after a spurious retransmission.
    /// draft-cheng-iccrg-delivery-rate-estimation-00, section 3.3.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        units: u32,
        reneged: bool,
        min: Duration,
    ) -> Option<RateSample> {
        self.count_delivered(units);
        if self.limited_until.is_some_and(|until| is_beyond(self.delivered, until)) {
            self.limited_until = None;
        }
        if units > 0 {
            self.delivered_at = now;
        }
        let latest = self.latest.take().filter(|_| !reneged)?;
        let sending = self.first_sent.saturating_since(latest.first_sent);
        let interval = sending.max(now.saturating_since(latest.delivered_at));
        (interval >= min && !interval.is_zero()).then_some(RateSample {
            prior_delivered: latest.delivered,
            delivered: self.delivered.wrapping_sub(latest.delivered),
            interval,
            application_limited: latest.application_limited,
            in_flight: latest.in_flight,
            prior_lost: latest.lost,
        })
    }

    /// Marks the samples of the `in_flight` units as application-limited, because the application has no more
    /// data, or because BBR keeps the window small to probe the round-trip time.
    /// draft-cheng-iccrg-delivery-rate-estimation-00, section 3.4.
    pub(crate) fn limit_by_application(&mut self, in_flight: u32) {
        self.limited_until = Some(self.delivered.wrapping_add(in_flight));
    }
}

/// Returns whether `count` is greater than `other`, taking the wrap-around of counts into account.
pub(crate) fn is_beyond(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn a_flight_is_sampled_over_the_time_of_its_acknowledgments() {
        // Section 3.1.3: ten segments at once, acknowledged one each ms after 20 ms.
        let mut deliveries = DeliveryState::begin(MS(0), 1);
        let flight: Vec<DeliveryAtSend> =
            (0..10).map(|i| deliveries.on_segment_sent(MS(100), i > 0)).collect();
        let mut samples = flight.iter().zip(0..).map(|(departure, i)| {
            deliveries.on_segment_delivered(*departure, MS(100));
            deliveries.sample(MS(120 + i), 1, false, Duration::ZERO).unwrap()
        });
        let last = samples.by_ref().last().unwrap();
        assert_eq!((last.prior_delivered, last.delivered), (1, 10));
        assert_eq!(last.interval, Duration::from_millis(29));
    }

    #[test]
    fn send_rate_bounds_the_delivery_rate() {
        // Section 3.1.3: the send rate bounds the sample. 10 segments, one each ms, all acknowledged at once.
        let mut deliveries = DeliveryState::begin(MS(0), 1);
        let early = deliveries.on_segment_sent(MS(0), false);
        deliveries.on_segment_delivered(early, MS(0));
        deliveries.sample(MS(10), 1, false, Duration::ZERO).unwrap();
        let flight: Vec<(DeliveryAtSend, u64)> =
            (11..21).map(|at| (deliveries.on_segment_sent(MS(at), true), at)).collect();
        for (departure, at) in &flight {
            deliveries.on_segment_delivered(*departure, MS(*at));
        }
        let sample = deliveries.sample(MS(25), 10, false, Duration::ZERO).unwrap();
        assert_eq!(
            (sample.delivered, sample.interval),
            (10, Duration::from_millis(20)),
            "from 0 ms to 20 ms"
        );
    }

    #[test]
    fn samples_are_application_limited_until_the_flight_is_delivered() {
        // Section 3.4.
        let mut deliveries = DeliveryState::begin(MS(0), 1);
        deliveries.limit_by_application(2);
        let departure = deliveries.on_segment_sent(MS(0), false);
        for (units, limited) in [(2, true), (1, false)] {
            deliveries.on_segment_delivered(departure, MS(0));
            assert!(deliveries.sample(MS(20), units, false, Duration::ZERO).unwrap().application_limited);
            assert_eq!(deliveries.is_application_limited(), limited);
        }
        assert!(!deliveries.on_segment_sent(MS(21), false).application_limited);
    }

    #[test]
    fn no_sample_after_reneging_or_below_the_minimum_rtt() {
        // Section 3.3.
        let mut deliveries = DeliveryState::begin(MS(0), 1);
        let departure = deliveries.on_segment_sent(MS(0), false);
        deliveries.on_segment_delivered(departure, MS(0));
        assert_eq!(deliveries.sample(MS(20), 1, true, Duration::ZERO), None);
        deliveries.on_segment_delivered(departure, MS(0));
        assert_eq!(deliveries.sample(MS(20), 1, false, Duration::from_millis(21)), None);
        assert_eq!(deliveries.delivered(), 3, "the units are counted anyway");
    }

    #[test]
    fn first_sample_begins_at_the_handshake() {
        // Sections 3.1.1 and 3.1.3: data are still outstanding, so the times of the start count.
        let mut deliveries = DeliveryState::begin(MS(5), 1);
        let departure = deliveries.on_segment_sent(MS(7), true);
        deliveries.on_segment_delivered(departure, MS(7));
        let sample = deliveries.sample(MS(8), 1, false, Duration::ZERO).unwrap();
        assert_eq!(
            sample.interval,
            Duration::from_millis(3),
            "from 5 ms to 8 ms, and sent from 5 ms to 7 ms"
        );
    }

    #[test]
    fn acknowledgment_without_delivery_keeps_the_latest_delivery_time() {
        // Section 3.3.
        let mut deliveries = DeliveryState::begin(MS(0), 1);
        deliveries.sample(MS(10), 1, false, Duration::ZERO);
        deliveries.sample(MS(20), 0, false, Duration::ZERO);
        assert_eq!(deliveries.delivered_at(), MS(10));
    }
}
