//! Counts latencies, in a few nanoseconds each.

use hol_base::Duration;

use crate::bucket::Bucket;
use crate::distribution::Distribution;

/// Collects one run's latencies; [`Recorder::finish`] packs them into a [`Distribution`].
///
/// ```
/// use hol_measure::{Recorder, base::Duration};
///
/// let mut recorder = Recorder::new();
/// (1..=97).for_each(|ms| recorder.count_completed(Duration::from_millis(ms)));
/// (0..3).for_each(|_| recorder.count_failure());
/// let latency = recorder.finish();
/// assert_eq!(latency.mean_ms(), Some(49.0));
/// assert_eq!(latency.quantile(0.98), None, "three of a hundred never arrived");
/// ```
#[derive(Debug, Default)]
pub struct Recorder {
    counts: Vec<u32>,
    /// Number of messages, including failed ones.
    offered: u64,
    /// Number of messages with a latency.
    completed: u64,
    /// Sum of the latencies in ns.
    total: u128,
    /// Sum of the squared latencies in ns².
    squares: u128,
    /// The shortest and the longest latency; `None` if no message completed.
    range: Option<(Duration, Duration)>,
}

impl Recorder {
    /// Creates an empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a message that completed after `latency`.
    pub fn count_completed(&mut self, latency: Duration) {
        let bucket = Bucket::containing(latency).0 as usize;
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.offered += 1;
        self.completed += 1;
        let nanos = latency.as_nanos();
        self.total += u128::from(nanos);
        self.squares += u128::from(nanos) * u128::from(nanos);
        let (min, max) = self.range.unwrap_or((latency, latency));
        self.range = Some((min.min(latency), max.max(latency)));
    }

    /// Counts a message that was offered and never completed.
    pub fn count_failure(&mut self) {
        self.offered += 1;
    }

    /// Returns the distribution of all messages counted.
    pub fn finish(self) -> Distribution {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        Distribution {
            offered: self.offered,
            completed: self.completed,
            total: self.total,
            squares: self.squares,
            range: self.range,
            buckets: filled.map(|(at, count)| (Bucket(at as u32), (*count).into())).collect(),
        }
    }
}
