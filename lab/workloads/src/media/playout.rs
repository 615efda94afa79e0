//! The jitter buffer: when each frame is played.

use hol_base::{Duration, Time};

use super::clock;

/// The playout times of frames. The first frame is played a fixed time after its arrival; the others follow at the
/// intervals of the medium.
#[derive(Debug)]
pub(super) struct Playout {
    buffer: Duration,
    /// When the first packet arrived, and its frame.
    first_arrival: Option<(Time, u32)>,
}

impl Playout {
    /// Creates the playout of a jitter buffer of this length.
    pub(super) fn new(buffer: Duration) -> Self {
        Self { buffer, first_arrival: None }
    }

    /// Records the arrival of a packet of a frame.
    pub(super) fn note_arrival(&mut self, now: Time, frame: u32) {
        self.first_arrival.get_or_insert((now, frame));
    }

    /// Returns whether the playout time of a frame has passed.
    pub(super) fn is_late(&self, now: Time, frame: u32) -> bool {
        let Some((came, first)) = self.first_arrival else { return false };
        now + clock::duration(first.into()) > came + self.buffer + clock::duration(frame.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn playout_times_count_from_the_first_frame_that_arrived() {
        let mut playout = Playout::new(Duration::from_millis(200));
        let at = |nanos| Time::from_millis(500) + Duration::from_nanos(nanos);
        assert!(!playout.is_late(at(0), 7));
        playout.note_arrival(at(0), 1);
        playout.note_arrival(at(1), 2);
        assert_eq!([200_000_000, 200_000_001].map(|nanos| playout.is_late(at(nanos), 1)), [false, true]);
        // 49 frames are 1.28 s.
        assert_eq!([1_480_000_000, 1_480_000_001].map(|nanos| playout.is_late(at(nanos), 50)), [false, true]);
        assert_eq!([173_877_552, 173_877_553].map(|nanos| playout.is_late(at(nanos), 0)), [false, true]);
    }
}
