//! Compares the later half of a run's messages with the earlier one, to find whether the mean depends on the
//! length of the run.

use hol_base::Duration;
use serde::{Deserialize, Serialize};

use crate::compare::compare_paired;

/// Maximum number of parts into which a run is divided while its length is unknown. When there are more, neighbouring
/// parts are merged.
const MAX_PARTS: usize = 64;
/// Permitted difference between the means of a run's halves, as a share of the run's mean. A run of twice the length
/// would then change the mean by about 5 %.
const MAX_DIFFERENCE: f64 = 0.1;
/// The significance level of a difference between the means of the halves. It is low because every point of a study is
/// tested; a level of one in twenty would discard many means.
pub const UNSTEADY_SIGNIFICANCE: f64 = 0.001;
/// Significance level of the rank test. Ten repetitions reach it only if all of them, or all but the one with the
/// smallest difference, change in the same direction.
const RANKS_ALPHA: f64 = 0.005;
/// Minimum number of repetitions for the rank test; with fewer, it cannot reach [`RANKS_ALPHA`].
const MIN_RANKED_REPETITIONS: usize = 10;

/// A number of completed messages and the sum of their latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencySum {
    /// Number of completed messages.
    pub count: u64,
    /// Sum of the latencies in ns.
    pub nanos: u128,
}

/// The two halves of a run's messages, in the order of the schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunHalves {
    /// The messages that were due first.
    pub earlier: LatencySum,
    /// The messages that were due later.
    pub later: LatencySum,
}

/// Builds the two halves of a run whose length is not known before its end.
#[derive(Debug, Default)]
pub(crate) struct HalvesBuilder {
    parts: Vec<LatencySum>,
    /// Number of messages in the last part, completed or not.
    last_part_messages: u64,
    /// Number of messages in each of the other parts, completed or not.
    part_messages: u64,
}

impl LatencySum {
    fn add(self, other: Self) -> Self {
        Self { count: self.count + other.count, nanos: self.nanos + other.nanos }
    }

    /// Returns the mean latency in ms; `None` without completed messages.
    pub(crate) fn mean_ms(self) -> Option<f64> {
        (self.count > 0).then(|| self.nanos as f64 / self.count as f64 / 1e6)
    }
}

impl RunHalves {
    /// Returns the mean latency of the earlier and of the later half, in ms; `None` if nothing completed in
    /// one of them.
    pub fn means_ms(&self) -> Option<(f64, f64)> {
        self.earlier.mean_ms().zip(self.later.mean_ms())
    }
}

impl HalvesBuilder {
    /// Adds the next message; `None` if it never completed.
    pub fn add(&mut self, latency: Option<Duration>) {
        if self.parts.is_empty() || self.last_part_messages == self.part_messages {
            self.begin_part();
        }
        self.last_part_messages += 1;
        let part = self.parts.last_mut().expect("a part was begun above");
        if let Some(latency) = latency {
            *part = part.add(LatencySum { count: 1, nanos: latency.as_nanos().into() });
        }
    }

    fn begin_part(&mut self) {
        self.part_messages = self.part_messages.max(1);
        if self.parts.len() == MAX_PARTS {
            self.parts = self.parts.chunks(2).map(|pair| pair[0].add(pair[1])).collect();
            self.part_messages *= 2;
        }
        self.parts.push(LatencySum::default());
        self.last_part_messages = 0;
    }

    /// Returns the sums of both halves.
    pub fn finish(&self) -> RunHalves {
        let (earlier, later) = self.parts.split_at(self.parts.len() / 2);
        let sum = |parts: &[LatencySum]| parts.iter().copied().fold(LatencySum::default(), LatencySum::add);
        RunHalves { earlier: sum(earlier), later: sum(later) }
    }
}

/// Returns whether longer runs would have the same mean, judged by the mean latencies of the earlier and the later
/// half of each repetition.
///
/// False if the halves differ by more than a tenth of their mean, and this difference is significant. With ten or
/// more repetitions it must be significant in two tests, one of means and one of ranks; with fewer, only in the
/// test of means. True for a single repetition, which does not show whether its halves differ.
pub fn is_steady(halves: &[(f64, f64)]) -> bool {
    let (earlier, later): (Vec<f64>, Vec<f64>) = halves.iter().copied().unzip();
    let n = halves.len() as f64;
    let middle = earlier.iter().chain(&later).sum::<f64>() / (2.0 * n);
    if halves.len() < 2 || !middle.is_finite() {
        return true;
    }
    let test = compare_paired(&later, &earlier, 0.0, 1.0 - UNSTEADY_SIGNIFICANCE);
    let far = test.difference.mean.abs() > MAX_DIFFERENCE * middle;
    let ranked = halves.len() >= MIN_RANKED_REPETITIONS;
    let one_way = test.ranks.is_none_or(|ranks| !ranked || ranks.p < RANKS_ALPHA);
    !(far && test.p < UNSTEADY_SIGNIFICANCE && one_way)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn halves_of(latencies: impl IntoIterator<Item = u64>) -> RunHalves {
        let mut halves = HalvesBuilder::default();
        latencies.into_iter().for_each(|ms| halves.add(Some(Duration::from_millis(ms))));
        halves.finish()
    }

    #[test]
    fn run_is_split_near_its_middle_whatever_its_length() {
        for length in [1, 2, 3, 64, 65, 1000, 12_345] {
            let halves = halves_of(0..length);
            let (earlier, later) = (halves.earlier.count, halves.later.count);
            assert_eq!(earlier + later, length);
            assert!(later.abs_diff(earlier) <= length.div_ceil(16), "{length}: {earlier} and {later}");
            assert_eq!(
                halves.earlier.nanos + halves.later.nanos,
                u128::from((0..length).sum::<u64>()) * 1_000_000
            );
        }
        assert_eq!(HalvesBuilder::default().finish().means_ms(), None);
    }

    #[test]
    fn incomplete_messages_count_for_the_split_but_not_for_the_mean() {
        let mut halves = HalvesBuilder::default();
        (0..32).for_each(|_| halves.add(None));
        (0..32).for_each(|_| halves.add(Some(Duration::from_millis(20))));
        assert_eq!((halves.finish().earlier.count, halves.finish().later.count), (0, 32));
    }

    /// SCTP at 10,000/s without loss: the backlog grows as long as the run lasts.
    #[test]
    fn growing_backlog_is_not_steady() {
        let growing = halves_of((0..4000).map(|n| 20 + n / 60)).means_ms().unwrap();
        assert!(!is_steady(&[growing; 10]));
        assert!(!is_steady(&[growing; 2]));
        assert!(is_steady(&[growing]), "one repetition shows nothing");
    }

    #[test]
    fn random_and_negligible_differences_are_steady() {
        assert!(is_steady(&[(20.1, 20.2); 10]), "by less than a tenth");
        let rare: Vec<(f64, f64)> = (0..10).map(|n| (21.0, if n == 3 { 90.0 } else { 20.0 })).collect();
        assert!(is_steady(&rare), "one run of ten");
        let noisy: Vec<(f64, f64)> =
            (0..10).map(|n| (30.0, 30.0 + [12.0, 9.0, 15.0, 3.0, -4.0][n % 5])).collect();
        assert!(is_steady(&noisy), "two of ten go the other way");
        assert!(is_steady(&[]));
    }

    #[test]
    fn difference_of_a_tenth_of_the_mean_is_not_steady() {
        assert!(!is_steady(&[(20.0, 22.4); 10]), "2.4 of 21.2");
        assert!(is_steady(&[(20.0, 21.8); 10]), "1.8 of 20.9");
        assert!(!is_steady(&[(22.4, 20.0); 2]));
        assert!(is_steady(&[(20.0, f64::INFINITY); 10]), "what never ended has no mean");
    }
}
