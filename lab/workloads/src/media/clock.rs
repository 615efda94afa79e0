//! The clock of a medium: duration of frames, and RTP timestamps at 90 kHz for every sampling rate. RFC 2250 section 3,
//! RFC 3119 section 3.4.

use hol_base::Duration;
use hol_rtp::{SAMPLES_PER_FRAME, SAMPLING_RATE};

const TIMESTAMPS_PER_SECOND: u64 = 90_000;

/// Returns the duration of this many frames of media.
pub(super) fn duration(frames: u64) -> Duration {
    let nanos =
        u128::from(frames) * u128::from(SAMPLES_PER_FRAME) * 1_000_000_000 / u128::from(SAMPLING_RATE);
    Duration::from_nanos(nanos as u64)
}

/// Returns the RTP timestamp of a frame. That of the first frame is 0, which a session description would announce (RFC
/// 2326 section 12.33).
pub(super) fn timestamp(frame: u32) -> u32 {
    (u64::from(frame) * TIMESTAMPS_PER_SECOND * u64::from(SAMPLES_PER_FRAME) / u64::from(SAMPLING_RATE))
        as u32
}

/// Returns the number of the frame with an extended timestamp, which does not wrap around.
pub(super) fn frame(timestamp: u64) -> u64 {
    (timestamp * u64::from(SAMPLING_RATE)).div_ceil(TIMESTAMPS_PER_SECOND * u64::from(SAMPLES_PER_FRAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frame_at_44_1_khz_lasts_26_ms() {
        assert_eq!(duration(1), Duration::from_nanos(26_122_448));
        assert_eq!(duration(1225), Duration::from_secs(32));
        assert_eq!((timestamp(1), timestamp(1225)), (2351, 32 * 90_000));
    }

    proptest! {
        #[test]
        fn timestamp_identifies_the_frame(number in 0u32..1_800_000) {
            prop_assert_eq!(frame(timestamp(number).into()), u64::from(number));
        }
    }
}
