//! The rate of a window-based sender under random loss (Mathis, Semke, Mahdavi, Ott, CCR 27(3), 1997).

use hol_base::{ByteCount, Duration, Ratio};

/// How often the receiver acknowledges, which determines how fast the window grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// The receiver acknowledges every packet.
    Every,
    /// The receiver acknowledges every other packet.
    Delayed,
}

impl Acks {
    /// Returns the constant C of Mathis et al.: the square root of 3/2 if every packet is acknowledged, of 3/4 if every
    /// other.
    fn constant(self) -> f64 {
        match self {
            Self::Every => 1.5f64.sqrt(),
            Self::Delayed => 0.75f64.sqrt(),
        }
    }
}

/// Returns the mean congestion window in packets, `C / sqrt(p)`; infinite without loss.
pub fn mean_window(loss: Ratio, acks: Acks) -> f64 {
    acks.constant() / loss.value().sqrt()
}

/// Returns the throughput in bit/s with packets of `mss` octets of payload: a mean congestion window per round trip.
pub fn throughput(mss: ByteCount, round_trip: Duration, loss: Ratio, acks: Acks) -> f64 {
    mss.0 as f64 * 8.0 / round_trip.as_secs_f64() * mean_window(loss, acks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_window_is_twelve_packets_at_one_percent_loss() {
        let loss = Ratio::new(0.01).unwrap();
        assert!((mean_window(loss, Acks::Every) - 12.25).abs() < 0.01);
        assert!(mean_window(Ratio::ZERO, Acks::Every).is_infinite());
    }

    // Pfuetzenreuter 2004 measured 1520, 522 and 152 kbit/s at 30, 100 and 300 ms one way, 1 % loss.
    #[test]
    fn bulk_transfers_of_2004_are_near_the_mathis_formula() {
        let loss = Ratio::new(0.01).unwrap();
        for (one_way, measured) in [(30, 1520e3), (100, 522e3), (300, 152e3)] {
            let rate = throughput(ByteCount(1448), Duration::from_millis(2 * one_way), loss, Acks::Delayed);
            assert!((rate / measured - 1.0).abs() < 0.12, "{rate} at {one_way} ms");
        }
    }
}
