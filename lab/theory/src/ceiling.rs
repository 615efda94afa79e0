//! The maximum throughput of a one-way stream of equal messages without loss or window limits.

use hol_base::{BitRate, Duration};

/// Messages of one size, sent at equal intervals through one bottleneck.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConstantRateFlow {
    /// Number of messages.
    pub messages: u64,
    /// Octets of each message.
    pub size: u64,
    /// Octets that each message occupies on the bottleneck, including its share of the headers.
    pub wire_octets: f64,
    /// Time from the sending of one message to the next. If it is zero, each message is sent as soon as the transport
    /// has accepted the previous one.
    pub interval: Duration,
    /// Rate of the bottleneck.
    pub rate: BitRate,
    /// One-way delay of the path without queueing.
    pub delay: Duration,
}

impl ConstantRateFlow {
    /// Returns the goodput in kbit/s, from the first transmission to the last delivery.
    pub fn ceiling_kbps(&self) -> f64 {
        let serialization = self.wire_octets * 8.0 / self.rate.bits_per_second() as f64;
        // The slower of the sender and the bottleneck determines the time between two messages.
        let pace = serialization.max(self.interval.as_secs_f64());
        let span = (self.messages - 1) as f64 * pace + serialization + self.delay.as_secs_f64();
        (self.messages * self.size) as f64 * 8.0 / span / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(messages: u64, wire_octets: f64, interval_ms: u64, delay_ms: u64) -> f64 {
        let rate = BitRate::from_bits_per_second(400_000).unwrap();
        let [interval, delay] = [interval_ms, delay_ms].map(Duration::from_millis);
        ConstantRateFlow { messages, size: 500, wire_octets, interval, rate, delay }.ceiling_kbps()
    }

    // Eklund 2004, 400 kbit/s and messages of 500 octets: in packets without headers, with SCTP's headers (548), and in TCP segments of
    // 1448 octets.
    #[test]
    fn a_full_link_carries_its_rate_minus_headers_and_one_delay() {
        let tcp = 500.0 * 1500.0 / 1448.0;
        for (messages, wire_octets, delay, expected) in [
            (100, 500.0, 75, 372.0),
            (100, 548.0, 75, 341.5),
            (1000, 500.0, 75, 397.0),
            (1000, 548.0, 75, 362.5),
            (1000, tcp, 75, 383.4),
            (1000, 548.0, 25, 364.1),
            (1000, tcp, 25, 385.2),
        ] {
            let full = kbps(messages, wire_octets, 0, delay);
            assert!((full - expected).abs() < 0.2, "{full} instead of {expected}");
            assert!(
                (kbps(messages, wire_octets, 10, delay) - full).abs() < 0.2,
                "10 ms is more than it carries"
            );
        }
    }

    #[test]
    fn slow_sender_limits_the_throughput() {
        for (interval, delay, expected) in
            [(20, 75, 199.3), (30, 75, 133.1), (20, 25, 199.8), (30, 25, 133.3)]
        {
            let slow = kbps(1000, 548.0, interval, delay);
            assert!((slow - expected).abs() < 0.06, "{slow} instead of {expected}");
        }
    }
}
