//! Draws complementary cumulative distributions (CCDF) in the terminal: both axes logarithmic, 80 columns.

use hol_base::Duration;
use hol_measure::Distribution;

use crate::terminal::colour;

const WIDTH: usize = 68;
const HEIGHT: usize = 12;
const CURVE_MARKS: [char; 6] = ['●', '○', '▲', '△', '■', '□'];

/// A curve and its name.
pub type Curve<'a> = (&'a str, &'a Distribution);

/// Draws, for each time, the share of messages that take longer than this time. Returns an empty text if no
/// message was completed.
pub fn draw(curves: &[Curve<'_>]) -> String {
    let Some(frame) = Frame::around(curves) else { return String::new() };
    let mut cells = vec![[None; WIDTH]; HEIGHT];
    for (index, (_, distribution)) in curves.iter().enumerate() {
        let mut above = 0;
        for column in 0..WIDTH {
            let share = distribution.share_above(frame.latency(column)).unwrap_or(0.0);
            let row = frame.row(share);
            // A steep fall is drawn as a line. The first transport, with which the others are compared, stays visible.
            for line in &mut cells[above..=row.min(HEIGHT - 1)] {
                line[column].get_or_insert(index);
            }
            if row >= HEIGHT {
                break;
            }
            above = row;
        }
    }
    let mut text = String::from("share of messages that take longer\n");
    for (row, line) in cells.iter().enumerate() {
        text += &format!("{:>8} ┤", frame.share_label(row));
        for cell in line {
            text += &cell.map_or(" ".to_owned(), mark);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text + &frame.axis() + &legend(curves)
}

fn mark(index: usize) -> String {
    colour(&CURVE_MARKS[index % CURVE_MARKS.len()].to_string(), index)
}

fn legend(curves: &[Curve<'_>]) -> String {
    let names = curves.iter().enumerate().map(|(index, (name, _))| format!("{} {name}", mark(index)));
    format!("{:>10}{}\n", "", names.collect::<Vec<_>>().join("   "))
}

/// The ranges of both axes.
struct Frame {
    /// Decimal logarithm of the time at the left end, in ms.
    min_log_ms: f64,
    /// Decimal logarithm of the time at the right end, in ms.
    max_log_ms: f64,
    /// Number of decades of the vertical axis, downwards from a share of 1.
    share_decades: f64,
}

impl Frame {
    fn around(curves: &[Curve<'_>]) -> Option<Self> {
        let ms = |at: Option<Duration>| at.map(|d| d.as_millis_f64().max(1e-3).log10());
        let min = curves.iter().filter_map(|(_, d)| ms(d.min())).min_by(f64::total_cmp)?;
        let max = curves.iter().filter_map(|(_, d)| ms(d.max())).max_by(f64::total_cmp)?;
        let offered = curves.iter().map(|(_, d)| d.offered()).max()?;
        // A tail of fewer than ten messages is noise.
        let share_decades = (offered as f64 / 10.0).log10().clamp(1.0, 6.0);
        Some(Self { min_log_ms: min - 0.02, max_log_ms: (max + 0.02).max(min + 0.3), share_decades })
    }

    fn latency(&self, column: usize) -> Duration {
        let at = self.min_log_ms + (self.max_log_ms - self.min_log_ms) * column as f64 / (WIDTH - 1) as f64;
        Duration::from_secs_f64(10f64.powf(at) / 1e3)
    }

    /// Returns the row of a share, from 0 at the top; `HEIGHT` if the share is below the axis.
    fn row(&self, share: f64) -> usize {
        let depth = -share.log10() / self.share_decades * (HEIGHT - 1) as f64;
        depth.round().min(HEIGHT as f64) as usize
    }

    /// Returns the label of a row of the diagram: the share if this row is the nearest one to a power of ten,
    /// otherwise an empty text.
    fn share_label(&self, row: usize) -> String {
        let rows_per_decade = (HEIGHT - 1) as f64 / self.share_decades;
        let decade = (row as f64 / rows_per_decade).round();
        let nearest = (decade * rows_per_decade).round() as usize;
        if nearest != row {
            return String::new();
        }
        let digits = (decade as usize).saturating_sub(2);
        format!("{:.digits$} %", 100.0 / 10f64.powf(decade))
    }

    /// Returns the time axis of the diagram, labelled at powers of ten and at 2 and 5 times these.
    fn axis(&self) -> String {
        let (mut line, mut labels) = (vec!['─'; WIDTH], vec![' '; WIDTH]);
        let mut free = 0;
        for decade in -3..=6 {
            for step in [1.0, 2.0, 5.0] {
                let ms = step * 10f64.powi(decade);
                let position =
                    (ms.log10() - self.min_log_ms) / (self.max_log_ms - self.min_log_ms) * (WIDTH - 1) as f64;
                let column = position.round();
                let label = format!("{ms} ms");
                if column < free as f64 || column as usize + label.len() > WIDTH {
                    continue;
                }
                let column = column as usize;
                line[column] = '┬';
                labels[column..column + label.len()].iter_mut().zip(label.chars()).for_each(|(a, b)| *a = b);
                free = column + label.len() + 1;
            }
        }
        let (line, labels): (String, String) = (line.iter().collect(), labels.iter().collect());
        format!("{:>8} └{line}\n{:>10}{}\n", "", "", labels.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_measure::Recorder;

    fn curve(slow: u64) -> Distribution {
        let mut recorder = Recorder::new();
        for index in 0..10_000 {
            let ms = if index % 100 < slow { 200 } else { 20 };
            recorder.count_completed(Duration::from_millis(ms));
        }
        recorder.finish()
    }

    #[test]
    fn the_picture_fits_80_columns_and_shows_both_curves() {
        let (a, b) = (curve(1), curve(10));
        let picture = draw(&[("tcp", &a), ("sctp:streams=8", &b)]);
        assert!(picture.lines().all(|line| line.chars().count() <= 80), "{picture}");
        assert!(picture.contains('●') && picture.contains('○') && picture.contains("20 ms"), "{picture}");
        assert_eq!(picture.lines().count(), HEIGHT + 4);
    }

    #[test]
    fn without_completed_messages_no_plot_is_drawn() {
        assert_eq!(draw(&[("tcp", &Distribution::default())]), "");
    }
}
