//! A line of samples, reduced to the smallest and the largest one in each column of pixels, so that no peak is lost.

/// Number of pixel columns in a drawing, for the whole time.
pub(super) const COLUMNS: usize = 250;

/// Samples over time, reduced to pixel columns.
#[derive(Debug, Clone)]
pub struct SampledLine {
    /// The duration of a column, in s.
    column_s: f64,
    /// The longest gap across which samples are joined, in s.
    max_gap_s: f64,
    columns: Vec<Option<Extent>>,
}

/// The smallest and the largest sample of a column, each with its time.
#[derive(Debug, Clone, Copy)]
struct Extent {
    min: (f64, f64),
    max: (f64, f64),
}

impl SampledLine {
    /// Creates an empty line over `span` seconds, of samples that are `interval` seconds apart.
    pub fn new(span: f64, interval: f64) -> Self {
        let column_s = (span / COLUMNS as f64).max(f64::MIN_POSITIVE);
        Self { column_s, max_gap_s: 2.5 * interval + 2.0 * column_s, columns: vec![None; COLUMNS] }
    }

    /// Adds a sample to its column of pixels.
    pub fn add(&mut self, at: f64, value: f64) {
        let column = ((at / self.column_s) as usize).min(COLUMNS - 1);
        let sample = (at, value);
        let extent = self.columns[column].get_or_insert(Extent { min: sample, max: sample });
        if value < extent.min.1 {
            extent.min = sample;
        }
        if value > extent.max.1 {
            extent.max = sample;
        }
    }

    /// Returns the connected parts of the line, each as points (time in s, value).
    pub fn segments(&self) -> Vec<Vec<(f64, f64)>> {
        let mut segments: Vec<Vec<(f64, f64)>> = Vec::new();
        for Extent { min, max } in self.columns.iter().flatten() {
            let mut both = [*min, *max];
            both.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [first, last] = both;
            match segments.last_mut() {
                Some(segment) if segment.last().is_some_and(|(at, _)| first.0 - at <= self.max_gap_s) => {
                    segment.push(first);
                }
                _ => segments.push(vec![first]),
            }
            if let Some(segment) = segments.last_mut().filter(|_| last != first) {
                segment.push(last);
            }
        }
        segments
    }

    /// Returns the largest sample of the line.
    pub fn maximum(&self) -> Option<f64> {
        self.columns.iter().flatten().map(|extent| extent.max.1).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_its_peaks_and_troughs() {
        let mut line = SampledLine::new(1000.0, 0.001);
        for sample in 0..1_000_000 {
            let value = match sample {
                314_159 => 99.0,
                271_828 => -99.0,
                _ => f64::from(sample % 7),
            };
            line.add(f64::from(sample) / 1000.0, value);
        }
        let segments = line.segments();
        assert_eq!(segments.len(), 1);
        assert!(segments[0].len() <= 2 * COLUMNS, "{}", segments[0].len());
        assert!(segments[0].contains(&(314.159, 99.0)) && segments[0].contains(&(271.828, -99.0)));
        assert!(segments[0].is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(line.maximum(), Some(99.0));
    }

    #[test]
    fn a_gap_without_samples_is_not_bridged() {
        let mut line = SampledLine::new(10.0, 0.1);
        [0.0, 0.1, 0.2, 5.0, 5.1].into_iter().for_each(|at| line.add(at, 1.0));
        let lengths: Vec<usize> = line.segments().iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 2]);
    }
}
