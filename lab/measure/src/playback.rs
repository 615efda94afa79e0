//! Playback quality of a medium: how many frames could be played, and how often some were missing.

use hol_base::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::{Outcome, Record, nanoseconds};

/// The playback of the frames of one run, in the order in which they are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Playback {
    /// Number of frames.
    pub frames: u64,
    /// Number of frames that were complete at their playout time.
    pub playable: u64,
    /// Number of glitches: sequences of frames that could not be played.
    pub glitches: u64,
    /// Playing time of all frames.
    #[serde(rename = "lasts_ns", with = "nanoseconds")]
    pub lasts: Duration,
}

/// Builds a [`Playback`] from frames that are added one by one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaybackBuilder {
    frames: u64,
    playable: u64,
    glitches: u64,
    is_playing: bool,
    /// When the first frame and the last frame were to be sent.
    sent: [Time; 2],
}

impl Playback {
    /// Returns the share of frames that could be played, in percent.
    pub fn playable_percent(&self) -> f64 {
        100.0 * self.playable as f64 / self.frames as f64
    }

    /// Returns the number of glitches per minute; `None` for a single frame, whose playing time is unknown.
    pub fn glitches_per_minute(&self) -> Option<f64> {
        let minutes = self.lasts.as_secs_f64() / 60.0;
        (minutes > 0.0).then(|| self.glitches as f64 / minutes)
    }
}

impl PlaybackBuilder {
    /// Creates a builder that contains the first frame.
    pub(crate) fn new(frame: &Record) -> Self {
        let sent = [frame.scheduled; 2];
        let mut first = Self { frames: 0, playable: 0, glitches: 0, is_playing: true, sent };
        first.add(frame);
        first
    }

    /// Adds the next frame in the order of playback.
    pub(crate) fn add(&mut self, frame: &Record) {
        let is_playable = frame.outcome == Outcome::Completed;
        self.frames += 1;
        self.playable += u64::from(is_playable);
        self.glitches += u64::from(self.is_playing && !is_playable);
        self.is_playing = is_playable;
        // Interleaved frames are not sent in the order of playback.
        self.sent = [self.sent[0].min(frame.scheduled), self.sent[1].max(frame.scheduled)];
    }

    /// Returns the playback of all frames added.
    pub(crate) fn finish(self) -> Playback {
        let Self { frames, playable, glitches, sent: [first, last], .. } = self;
        let gaps = frames.saturating_sub(1).max(1);
        let lasts = Duration::from_nanos(
            (u128::from(last.since(first).as_nanos()) * u128::from(frames) / u128::from(gaps)) as u64,
        );
        Playback { frames, playable, glitches, lasts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordKind;

    fn playback(outcomes: &[Outcome]) -> Playback {
        let frame = |(id, outcome): (usize, &Outcome)| Record {
            id: id as u64,
            kind: RecordKind::Frame,
            parent: None,
            stream: 0,
            size: 626,
            reply_size: 0,
            scheduled: Time::from_millis(100 + 20 * id as u64),
            request: None,
            reply: None,
            outcome: *outcome,
        };
        let frames: Vec<Record> = outcomes.iter().enumerate().map(frame).collect();
        let mut so_far = PlaybackBuilder::new(&frames[0]);
        frames[1..].iter().for_each(|frame| so_far.add(frame));
        so_far.finish()
    }

    #[test]
    fn consecutive_unplayable_frames_are_one_glitch() {
        use Outcome::{Abandoned, Completed, Late};
        let all = playback(&[Late, Completed, Abandoned, Late, Completed, Abandoned]);
        assert_eq!((all.frames, all.playable, all.glitches), (6, 2, 3));
        // Six frames of 20 ms.
        assert_eq!((all.lasts, all.glitches_per_minute()), (Duration::from_millis(120), Some(1500.0)));
        assert!((all.playable_percent() - 100.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn single_frame_has_no_known_duration() {
        let one = playback(&[Outcome::Completed]);
        assert_eq!((one.playable_percent(), one.glitches_per_minute()), (100.0, None));
    }
}
