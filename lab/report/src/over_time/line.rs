//! A line of samples, reduced to the smallest and the largest one in each column of pixels, so that no peak is lost.

/// Number of pixel columns in a drawing, for the whole time.
pub(super) const COLUMNS: usize = 250;

/// Samples over time, reduced to pixel columns.
#[derive(Debug, Clone)]
pub struct Line {
    /// The duration of a column, in s.
    column: f64,
    /// The longest gap between samples that are joined.
    longest: f64,
    columns: Vec<Option<Extent>>,
}

/// The smallest and the largest sample of a column, each with its time.
#[derive(Debug, Clone, Copy)]
struct Extent {
    min: (f64, f64),
    greatest: (f64, f64),
}

impl Line {
    /// Creates an empty line over `span` seconds, of samples with this `interval`.
    pub fn new(span: f64, interval: f64) -> Self {
        let column = (span / COLUMNS as f64).max(f64::MIN_POSITIVE);
        Self { column, longest: 2.5 * interval + 2.0 * column, columns: vec![None; COLUMNS] }
    }

    /// Adds a sample.
    pub fn add(&mut self, at: f64, value: f64) {
        let column = ((at / self.column) as usize).min(COLUMNS - 1);
        let sample = (at, value);
        let extent = self.columns[column].get_or_insert(Extent { min: sample, greatest: sample });
        if value < extent.min.1 {
            extent.min = sample;
        }
        if value > extent.greatest.1 {
            extent.greatest = sample;
        }
    }

    /// Returns the segments to be drawn.
    pub fn pieces(&self) -> Vec<Vec<(f64, f64)>> {
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        for Extent { min, greatest } in self.columns.iter().flatten() {
            let mut both = [*min, *greatest];
            both.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [first, last] = both;
            match pieces.last_mut() {
                Some(piece) if piece.last().is_some_and(|(at, _)| first.0 - at <= self.longest) => {
                    piece.push(first);
                }
                _ => pieces.push(vec![first]),
            }
            if let Some(piece) = pieces.last_mut().filter(|_| last != first) {
                piece.push(last);
            }
        }
        pieces
    }

    /// Returns the largest sample.
    pub fn maximum(&self) -> Option<f64> {
        self.columns.iter().flatten().map(|extent| extent.greatest.1).reduce(f64::max)
    }

    /// Returns the duration of a column.
    pub const fn column(&self) -> f64 {
        self.column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_peak_and_no_trough_is_lost_however_long_a_run_is() {
        let mut line = Line::new(1000.0, 0.001);
        for sample in 0..1_000_000 {
            let value = match sample {
                314_159 => 99.0,
                271_828 => -99.0,
                _ => f64::from(sample % 7),
            };
            line.add(f64::from(sample) / 1000.0, value);
        }
        let pieces = line.pieces();
        assert_eq!(pieces.len(), 1);
        assert!(pieces[0].len() <= 2 * COLUMNS, "{}", pieces[0].len());
        assert!(pieces[0].contains(&(314.159, 99.0)) && pieces[0].contains(&(271.828, -99.0)));
        assert!(pieces[0].is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(line.maximum(), Some(99.0));
    }

    #[test]
    fn where_nothing_was_seen_nothing_is_joined() {
        let mut line = Line::new(10.0, 0.1);
        [0.0, 0.1, 0.2, 5.0, 5.1].into_iter().for_each(|at| line.add(at, 1.0));
        let lengths: Vec<usize> = line.pieces().iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 2]);
    }
}
