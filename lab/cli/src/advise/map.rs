//! Draws the better of two transports along an axis: one line of letters for each search.

use hol_measure::{Probe, Winner};
use hol_report::survey::{Axis, NEGLIGIBLE};

use super::SearchResult;

/// Width of the map, in columns.
const WIDTH: usize = 56;

/// Returns the axis as a line of symbols; each symbol shows which of the two transports is significantly better at
/// that value of the axis, or that neither is.
pub(super) fn axis_letters(probes: &[Probe], logarithmic: bool) -> String {
    let (Some(first), Some(last)) = (probes.first(), probes.last()) else { return String::new() };
    let min = probes.iter().map(|probe| probe.x).find(|x| *x > 0.0).unwrap_or(1.0);
    let place = |column: usize| {
        let share = column as f64 / (WIDTH - 1) as f64;
        match logarithmic {
            // The first value may be zero, which has no logarithm.
            true if column == 0 => first.x,
            true => min.max(first.x) * (last.x / min.max(first.x)).powf(share),
            false => first.x + share * (last.x - first.x),
        }
    };
    let letter = |column: usize| {
        let x = place(column);
        let before = probes.iter().rfind(|probe| probe.x <= x * (1.0 + 1e-9)).unwrap_or(first);
        let after = probes.iter().find(|probe| probe.x >= x * (1.0 - 1e-9)).unwrap_or(last);
        match (before.winner, after.winner) {
            (a, b) if a != b => '·',
            (Winner::First, _) => '─',
            (Winner::Second, _) => '█',
            (Winner::Tie, _) => '=',
            (Winner::Unsure, _) => '·',
        }
    };
    (0..WIDTH).map(letter).collect()
}

/// Returns the lines of all searches, one below the other, with the range of the axis above and an explanation below.
pub(super) fn draw_map(lines: &[SearchResult], axis: &Axis) -> String {
    let order = axis.ascending();
    let (Some(first), Some(last), Some(line)) = (order.first(), order.last(), lines.first()) else {
        return String::new();
    };
    let is_one_rival = lines.iter().all(|other| other.transport == line.transport);
    let label = |line: &SearchResult| match (line.at.as_str(), is_one_rival) {
        (at, true) => at.to_owned(),
        ("", false) => line.transport.clone(),
        (at, false) => format!("{at}, {}", line.transport),
    };
    let width = lines.iter().map(|line| label(line).chars().count()).max().unwrap_or(0);
    let [from, to] = [first, last].map(|step| axis.position(*step).to_string());
    let head =
        format!("{:width$}  {from}{:>gap$}", "", format!("{} {to}", axis.label()), gap = WIDTH - from.len());
    let rows: String = lines.iter().map(|line| format!("{:width$}  {}\n", label(line), line.map)).collect();
    format!(
        "\n{head}\n{rows}\n█ better than {}   ─ worse   = as good (within {} %)   · not decided\n",
        line.than,
        100.0 * NEGLIGIBLE
    )
}
