//! The rate of a line: one packet at a time, each for its length divided by the rate.

use hol_base::{BitRate, Time};

/// Puts octets on the line at a constant rate, exact over any number of packets.
#[derive(Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    /// Octets of each packet beyond IP.
    overhead: u64,
    /// When the last packet has left, rounded down.
    free_at: Time,
    /// The part of a nanosecond that `free_at` lost by rounding, in units of 1/rate ns.
    carried: u64,
}

impl Transmitter {
    pub(crate) fn new(rate: BitRate, overhead: u64) -> Self {
        Self { rate, overhead, free_at: Time::ZERO, carried: 0 }
    }

    pub(crate) fn rate(&self) -> BitRate {
        self.rate
    }

    /// When the packet in transmission has left.
    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Starts to transmit an IP packet of `length` octets; returns when its last bit has left.
    pub(crate) fn transmit(&mut self, now: Time, length: u64) -> Time {
        debug_assert!(now >= self.free_at, "transmission at {now}, busy until {}", self.free_at);
        // Back to back the rounding is carried on; a pause swallows it.
        let carried = if now == self.free_at { self.carried } else { 0 };
        let (busy, carried) = self.rate.serialization(length + self.overhead, carried);
        self.free_at = now + busy;
        self.carried = carried;
        self.free_at
    }

    /// Another rate from the next packet on.
    pub(crate) fn change(&mut self, rate: BitRate) {
        self.rate = rate;
        self.carried = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_line_is_exact_to_the_nanosecond_over_many_packets() {
        let rate: BitRate = "7777777bit".parse().unwrap();
        let mut transmitter = Transmitter::new(rate, 14);
        let (mut now, mut octets) = (Time::ZERO, 0u128);
        for packet in 0..100_000u64 {
            let length = 40 + packet % 1461;
            octets += u128::from(length + 14);
            now = transmitter.transmit(now, length);
            assert_eq!(u128::from(now.as_nanos()), octets * 8_000_000_000 / 7_777_777);
        }
    }

    #[test]
    fn a_pause_starts_afresh() {
        let mut transmitter = Transmitter::new("3bit".parse().unwrap(), 0);
        assert_eq!(transmitter.transmit(Time::ZERO, 1), Time::from_nanos(2_666_666_666));
        let later = Time::from_millis(5000);
        assert_eq!(transmitter.transmit(later, 1).since(later).as_nanos(), 2_666_666_666);
    }
}
