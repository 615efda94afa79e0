//! A histogram.

/// A histogram: the number of values in each of several classes.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    /// The upper bound of each class; values above all bounds have a class of their own.
    bounds: &'static [u64],
    /// Number of values in each class.
    counts: Vec<u64>,
    /// Sum of all values.
    sum: u64,
}

const SIZE_BOUNDS: [u64; 9] = [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536];
/// Bounds of the classes for times, in nanoseconds: 10 µs to 10 s in steps of 1, 2 and 5.
const TIME_BOUNDS: [u64; 19] = times();

const fn times() -> [u64; 19] {
    let mut times = [0; 19];
    let mut step = 0;
    while step < times.len() {
        times[step] = 10_000 * [1, 2, 5][step % 3] * 10_u64.pow(step as u32 / 3);
        step += 1;
    }
    times
}

impl Histogram {
    /// Creates a histogram of numbers, such as the sizes of batches.
    pub fn of_sizes() -> Self {
        Self::new(&SIZE_BOUNDS)
    }

    /// Creates a histogram of times in nanoseconds.
    pub fn of_times() -> Self {
        Self::new(&TIME_BOUNDS)
    }

    fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0 }
    }

    /// Counts a value in its class.
    pub fn count(&mut self, value: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// Returns the sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the number of values.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns each bound with the number of values that do not exceed it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> {
        let sums = self.counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        self.bounds.iter().copied().zip(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_every_bound_that_it_does_not_exceed() {
        let mut sizes = Histogram::of_sizes();
        [1, 4, 5, 100_000].into_iter().for_each(|value| sizes.count(value));
        let expected = [1, 2, 3, 3, 3, 3, 3, 3, 3];
        assert_eq!(sizes.cumulative().map(|(_, count)| count).collect::<Vec<_>>(), expected);
        assert_eq!((sizes.total(), sizes.sum()), (4, 100_010));
    }

    #[test]
    fn times_go_from_ten_microseconds_to_ten_seconds() {
        assert_eq!(TIME_BOUNDS[..4], [10_000, 20_000, 50_000, 100_000]);
        assert_eq!(TIME_BOUNDS[18], 10_000_000_000);
    }
}
