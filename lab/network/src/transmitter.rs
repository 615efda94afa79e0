//! The transmitter of a link: one packet at a time, each for its length divided by the rate.

use hol_base::{BitRate, Duration, Time};

use crate::event_rate::EventRate;

/// Transmits packets at the rate of the link; rounding errors do not add up over packets.
#[derive(Debug)]
pub(crate) struct Transmitter {
    rate: BitRate,
    /// Octets of each packet's link-layer header.
    overhead: u64,
    /// When the last packet will have left, rounded down; [`Time::MAX`] while the rate is 0.
    free_at: Time,
    /// The fraction of a nanosecond lost in `free_at` by rounding, in units of 1/rate ns.
    carried: u64,
    /// The remaining bits of the packet whose transmission was interrupted, multiplied by 10⁹; `None` unless the rate is 0.
    interrupted: Option<u128>,
}

impl Transmitter {
    /// Creates an idle transmitter.
    pub(crate) fn new(rate: BitRate, overhead: u64) -> Self {
        Self { rate, overhead, free_at: Time::ZERO, carried: 0, interrupted: None }
    }

    /// Returns the rate; while transmission is stopped by a rate of 0, the rate before that.
    pub(crate) fn rate(&self) -> BitRate {
        self.rate
    }

    /// Returns when the packet in transmission will have left.
    pub(crate) fn free_at(&self) -> Time {
        self.free_at
    }

    /// Returns whether a packet is in transmission, or its transmission is interrupted.
    pub(crate) fn is_sending(&self, now: Time) -> bool {
        self.interrupted.map_or(self.free_at > now, |nanobits| nanobits > 0)
    }

    /// Returns whether the rate is 0.
    pub(crate) fn is_stopped(&self) -> bool {
        self.interrupted.is_some()
    }

    /// Starts to transmit an IP packet of `length` octets; returns when its last bit will have left.
    pub(crate) fn transmit(&mut self, now: Time, length: u64) -> Time {
        debug_assert!(now >= self.free_at, "transmission at {now}, busy until {}", self.free_at);
        // The remainder is carried over to a packet that follows at once; after a pause it is dropped.
        let carried = if now == self.free_at { self.carried } else { 0 };
        let (busy, carried) = self.rate.serialization_time(length + self.overhead, carried);
        self.free_at = now + busy;
        self.carried = carried;
        self.free_at
    }

    /// Changes the rate from now on, including the remaining bits of the packet in transmission. Otherwise a
    /// packet started at a low rate would block a fast link, and a varying rate would carry less than its
    /// mean. At a rate of 0 nothing is sent until the next change.
    pub(crate) fn change(&mut self, now: Time, rate: EventRate) {
        let nanobits = self.remaining_nanobits(now);
        let EventRate::Positive(rate) = rate else {
            (self.free_at, self.interrupted) = (Time::MAX, Some(nanobits));
            return;
        };
        let is_idle = self.free_at <= now;
        self.rate = rate;
        self.interrupted = None;
        if is_idle {
            self.carried = 0;
            return;
        }
        let rate = u128::from(rate.bits_per_second());
        self.free_at = now + Duration::from_nanos(u64::try_from(nanobits / rate).unwrap_or(u64::MAX));
        // Less than the rate, which has 64 bits.
        self.carried = (nanobits % rate) as u64;
    }

    /// Returns the remaining bits of the packet in transmission, multiplied by 10⁹.
    fn remaining_nanobits(&self, now: Time) -> u128 {
        if let Some(nanobits) = self.interrupted {
            return nanobits;
        }
        let left = u128::from(self.free_at.saturating_since(now).as_nanos());
        if left == 0 { 0 } else { left * u128::from(self.rate.bits_per_second()) + u128::from(self.carried) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_link_is_exact_to_the_nanosecond_over_many_packets() {
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
    fn each_bit_is_sent_at_the_rate_of_its_time() {
        // 1000 octets: 2 ms at 1 Mbit/s are 2000 bits, 1 ms at 3 Mbit/s 3000, and 3000 are left, 6 ms at 500 kbit/s.
        let [fast, slower] = ["3Mbit", "500kbit"].map(|rate| rate.parse().unwrap());
        let mut transmitter = Transmitter::new("1Mbit".parse().unwrap(), 0);
        assert_eq!(transmitter.transmit(Time::ZERO, 1000), Time::from_millis(8));
        transmitter.change(Time::from_millis(2), fast);
        assert_eq!(transmitter.free_at(), Time::from_millis(4));
        transmitter.change(Time::from_millis(3), slower);
        assert_eq!(transmitter.free_at(), Time::from_millis(9));
        transmitter.change(Time::from_millis(10), fast);
        assert_eq!(transmitter.free_at(), Time::from_millis(9), "nothing is being sent");
    }

    #[test]
    fn busy_link_carries_the_integral_of_its_changing_rate() {
        let rates: [BitRate; 3] = ["7777777bit", "333333bit", "1Mbit"].map(|rate| rate.parse().unwrap());
        let mut transmitter = Transmitter::new(rates[0], 14);
        let (mut sent, mut nanobits) = (0_u128, 0_u128);
        for slot in 1..3000_u64 {
            let end = Time::from_millis(slot * 10);
            nanobits += 10_000_000 * u128::from(transmitter.rate().bits_per_second());
            while transmitter.free_at() < end {
                sent += 1014 * 8;
                transmitter.transmit(transmitter.free_at(), 1000);
            }
            let left = u128::from(transmitter.free_at().since(end).as_nanos());
            let carried =
                left * u128::from(transmitter.rate().bits_per_second()) + u128::from(transmitter.carried);
            assert_eq!(sent * 1_000_000_000, nanobits + carried, "exact to a fraction of a nanosecond");
            transmitter.change(end, rates[slot as usize % 3].into());
        }
    }

    #[test]
    fn rate_of_zero_interrupts_a_transmission_and_starts_none() {
        let mut transmitter = Transmitter::new("1Mbit".parse().unwrap(), 0);
        let [zero, fast] = ["0bit", "4Mbit"].map(|rate| rate.parse().unwrap());
        assert_eq!(transmitter.transmit(Time::ZERO, 1000), Time::from_millis(8));
        // 6000 bits are left; a second change to 0 leaves them.
        for at in [2, 50] {
            transmitter.change(Time::from_millis(at), zero);
            assert_eq!(transmitter.free_at(), Time::MAX);
            assert!(transmitter.is_stopped() && transmitter.is_sending(Time::from_millis(1000)));
        }
        transmitter.change(Time::from_millis(1000), fast);
        assert_eq!(transmitter.free_at(), Time::from_nanos(1_001_500_000));
        // Idle.
        transmitter.change(Time::from_millis(2000), zero);
        assert!(transmitter.free_at() == Time::MAX && !transmitter.is_sending(Time::from_millis(2001)));
        transmitter.change(Time::from_millis(3000), fast);
        assert_eq!(transmitter.free_at(), Time::from_millis(3000));
        assert_eq!(transmitter.transmit(Time::from_millis(3000), 1000), Time::from_millis(3002));
    }

    #[test]
    fn pause_discards_the_rounding_remainder() {
        let mut transmitter = Transmitter::new("3bit".parse().unwrap(), 0);
        assert_eq!(transmitter.transmit(Time::ZERO, 1), Time::from_nanos(2_666_666_666));
        let later = Time::from_millis(5000);
        assert_eq!(transmitter.transmit(later, 1).since(later).as_nanos(), 2_666_666_666);
    }
}
