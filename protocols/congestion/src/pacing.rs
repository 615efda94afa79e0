//! The pacing rate that a controller sets in addition to the window.

/// The pacing rate and the burst size of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pacing {
    /// Rate in octets of payload per second.
    pub rate: u64,
    /// Number of segments that are sent back to back.
    pub burst: u32,
}

/// Maximum length of a burst in octets: GSO_LEGACY_MAX_SIZE minus the largest header, include/linux/netdevice.h.
const MAX_BURST: u64 = 65_536 - 1 - 320;

impl Pacing {
    /// Computes the burst at `rate`: 1 ms of data (sk_pacing_shift is 10), more for short round trips as in
    /// tcp_tso_autosize, and at least `min` segments. `segment` is the size of a segment in octets.
    pub(crate) fn new(rate: u64, min_rtt_us: u64, segment: u32, min: u32) -> Self {
        let allowance = MAX_BURST.checked_shr((min_rtt_us >> 9).min(64) as u32).unwrap_or(0);
        let octets = ((rate >> 10) + allowance).min(MAX_BURST);
        Self { rate, burst: ((octets / u64::from(segment)) as u32).max(min) }
    }

    /// Returns the number of segments of a burst for which the congestion window must have room.
    pub(crate) fn burst_segments(rate: u64, segment: u32, min: u32) -> u32 {
        let octets = (rate >> 10).min(MAX_BURST);
        ((octets / u64::from(segment)) as u32).clamp(min, 127)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_lasts_a_millisecond_and_is_longer_on_short_paths() {
        // tcp_tso_autosize: 100 Mbit/s are 12 kB a ms; at 1 ms of round trip there are 32 kB more.
        assert_eq!(Pacing::new(12_500_000, 40_000, 1448, 2).burst, 8);
        assert_eq!(Pacing::new(12_500_000, 1000, 1448, 2).burst, 30);
        assert_eq!(Pacing::new(100_000, 40_000, 1448, 1).burst, 1);
        assert_eq!(Pacing::burst_segments(u64::MAX, 88, 2), 127);
    }
}
